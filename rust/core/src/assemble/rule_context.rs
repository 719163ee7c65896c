//! What all choices of one stream share: the settings, the numbering of parts, the caps, the ids in use.
//!
//! It counts and it says no; it knows no rule. `Desk` is what a rule works at: this, and the way out.

use crate::assemble::part::call::Id;
use crate::assemble::part::object_merge::Growth;
use crate::assemble::settings::Settings;
use crate::model::fault::Fault;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;
use crate::model::limits::LimitName;
use crate::model::output::Output;
use crate::model::policy::Switches;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use crate::model::spec::Code;

pub type Step = Result<(), Fault>;

/// What a value that is kept by itself takes besides its text, in bytes: a member of merged metadata, an annotation.
const ENTRY_BYTES: i64 = 640;
/// So many of them count with their text alone: ordinary metadata passes under a small `max_text_bytes`.
const FREE_ENTRIES: i64 = 512;

/// One per stream.
#[derive(Debug, Default)]
pub struct Shared {
    pub settings: LazyBox<Settings>,
    items: u64,
    choices: u64,
    calls: u64,
    argument_bytes: usize,
    text_bytes: i64,
    /// Values that are kept by themselves.
    entries: i64,
    /// On the wire, of any call.
    pub ids_seen: Set<Id>,
    /// To closed calls.
    pub ids_given: LazyBox<Set<String>>,
    next_suffix: LazyBox<Map<String, u64>>,
    /// The dialect's calls need no id.
    pub ids_optional: bool,
    /// The payloads that brought the last fragment of a call, and the last token counts.
    pub called_at: u64,
    pub counted_at: Option<u64>,
}

blank!(Set<String>, Map<String, u64>);

/// What a rule works at, for the length of one delta.
pub struct RuleContext<'a, 'o> {
    pub shared: &'a mut Shared,
    pub out: &'a mut Output<'o>,
}

impl RuleContext<'_, '_> {
    pub fn switches(&self) -> &Switches {
        &self.out.config.policy.switches
    }

    pub fn say(&mut self, code: Code, part: u32) -> Step {
        self.out.diagnose(code, Some(part), "")
    }

    /// A fault where the value is beyond the cap.
    fn cap(&self, name: LimitName, beyond: impl Fn(u64) -> bool) -> Step {
        match self.out.config.limits.value(name) {
            Some(limit) if beyond(limit) => Err(Fault::limit(name, limit)),
            _ => Ok(()),
        }
    }

    /// The number of one more part.
    pub fn next_part(&mut self) -> Result<u32, Fault> {
        self.out.next_part()
    }

    /// One more item that the wire opens.
    pub fn count_item(&mut self) -> Step {
        let items = self.shared.items;
        self.cap(LimitName::max_parts, |limit| items >= limit)?;
        self.shared.items += 1;
        Ok(())
    }

    pub fn count_choice(&mut self) -> Step {
        let choices = self.shared.choices;
        self.cap(LimitName::max_choices, |limit| choices >= limit)?;
        self.shared.choices += 1;
        Ok(())
    }

    pub fn count_call(&mut self) -> Step {
        let calls = self.shared.calls;
        self.cap(LimitName::max_tool_calls, |limit| calls >= limit)?;
        self.shared.calls += 1;
        Ok(())
    }

    /// Before a fragment of that size is looked at: it could not be kept in any form.
    #[inline]
    pub fn check_piece(&self, size: usize) -> Step {
        self.cap(LimitName::max_arguments_bytes, |limit| size as u64 > limit)
    }

    /// A call's text has changed its size, by no more than one fragment.
    #[inline]
    pub fn count_arguments(&mut self, before: usize, after: usize) -> Step {
        self.cap(LimitName::max_arguments_bytes, |limit| after as u64 > limit)?;
        let total = (self.shared.argument_bytes + after).saturating_sub(before);
        self.cap(LimitName::max_total_arguments_bytes, |limit| {
            total as u64 > limit
        })?;
        self.shared.argument_bytes = total;
        Ok(())
    }

    /// So many bytes more of a call's text pass no cap.
    #[inline]
    pub fn has_room_for_arguments(&self, before: usize, more: usize) -> bool {
        let limits = &self.out.config.limits;
        let within =
            |size: usize, limit: Option<u64>| limit.is_none_or(|limit| size as u64 <= limit);
        within(before + more, limits.max_arguments_bytes)
            && within(
                self.shared.argument_bytes + more,
                limits.max_total_arguments_bytes,
            )
    }

    /// Before `more` bytes of text, reasoning, refusal or metadata are kept.
    #[inline]
    pub fn spend_text(&mut self, more: i64) -> Step {
        let total = self.shared.text_bytes + more;
        self.cap(LimitName::max_text_bytes, |limit| {
            u64::try_from(total).is_ok_and(|total| total > limit)
        })?;
        self.shared.text_bytes = total;
        Ok(())
    }

    pub fn spend_bytes(&mut self, more: usize) -> Step {
        self.spend_text(i64::try_from(more).unwrap_or(i64::MAX))
    }

    /// Metadata was merged into what is kept.
    pub fn spend_growth(&mut self, growth: Growth) -> Step {
        self.spend_entries(growth.entries)?;
        self.spend_text(growth.bytes)
    }

    /// Before so many more values are kept, each by itself; their text is counted apart.
    pub fn spend_entries(&mut self, more: i64) -> Step {
        let bytes = |entries: i64| (entries - FREE_ENTRIES).max(0).saturating_mul(ENTRY_BYTES);
        let before = self.shared.entries;
        self.spend_text(bytes(before + more) - bytes(before))?;
        self.shared.entries = before + more;
        Ok(())
    }

    pub fn check_id(&self, identity: &str) -> Step {
        self.cap(LimitName::max_id_bytes, |limit| {
            identity.len() as u64 > limit
        })
    }

    pub fn check_name(&self, name: &str) -> Step {
        self.cap(LimitName::max_name_bytes, |limit| name.len() as u64 > limit)
    }
}

impl Shared {
    /// Token counts came after the calls: the gateway counted an answer that was whole. Some gateways count in every
    /// chunk, so counts beside a fragment show nothing.
    pub fn is_counted(&self) -> bool {
        self.counted_at.is_some_and(|at| at > self.called_at)
    }

    /// A call's text has so many bytes more, for which there was room.
    #[inline]
    pub fn add_arguments(&mut self, more: usize) {
        self.argument_bytes += more;
    }

    pub fn new(settings: LazyBox<Settings>) -> Shared {
        Shared {
            settings,
            ..Shared::default()
        }
    }

    /// The id of a call that got none: the same in every run.
    pub fn minted_id(&self, part: u32) -> String {
        let seed = self.settings.seed.as_deref().unwrap_or("sw");
        format!("call_{seed}_{part}")
    }

    /// A call that was told, here or in an earlier turn, has that id.
    /// A call was announced under that id, here or in an earlier turn.
    pub fn is_used(&self, identity: &str) -> bool {
        self.ids_seen.contains(identity) || self.is_taken(identity)
    }

    pub fn is_taken(&self, identity: &str) -> bool {
        self.ids_given.contains(identity) || self.settings.known_call_ids.contains(identity)
    }

    /// `wanted`, or the first of `wanted__2`, `wanted__3` … that is in use nowhere in the stream or before it.
    ///
    /// An id from the wire need not be new on the wire; a minted one must be.
    pub fn fresh_id(&mut self, wanted: String, minted: bool) -> String {
        if !(self.is_taken(&wanted) || minted && self.ids_seen.contains(wanted.as_str())) {
            return wanted;
        }
        let mut number = self.next_suffix.get(&wanted).copied().unwrap_or(2);
        loop {
            let candidate = format!("{wanted}__{number}");
            number += 1;
            let used = self.is_taken(&candidate) || self.ids_seen.contains(candidate.as_str());
            if !used {
                self.next_suffix.insert(wanted, number);
                return candidate;
            }
        }
    }
}
