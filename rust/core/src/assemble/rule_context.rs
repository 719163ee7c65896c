//! `Shared` is the state that all choices of one stream share: settings, counters for the limits, and call ids in use.
//! `RuleContext` combines `Shared` with the output, because every rule uses both.
//!
//! The counters enforce the limits on calls, parts, arguments and text.

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

pub type ParseResult = Result<(), Fault>;

/// The memory in bytes that is counted, besides the text, for a value that is stored separately. Such values are
/// annotations and members of merged metadata.
const ENTRY_BYTES: i64 = 640;
/// The number of separately stored values for which only the text is counted, so that ordinary metadata fits within a
/// small `max_text_bytes`.
const FREE_ENTRIES: i64 = 512;

/// The memory in bytes that is counted for a part besides its text: its state, its copy in a converter, and its closing
/// events at the end of the stream.
const PART_BYTES: i64 = 2560;
/// The memory in bytes that is counted for an item, besides its parts.
const ITEM_BYTES: i64 = 1024;
/// The number of parts, and of items, for which only the text is counted.
const FREE_PARTS: u32 = 256;

/// The state that all choices of one stream share.
#[derive(Debug, Default)]
pub struct Shared {
    pub settings: LazyBox<Settings>,
    items: u64,
    choices: u64,
    calls: u64,
    argument_bytes: usize,
    text_bytes: i64,
    /// Number of values that are stored separately.
    entries: i64,
    /// The call ids that the stream has contained so far.
    pub ids_seen: Set<Id>,
    /// The call ids that final events have reported or that a call has reserved.
    pub ids_given: LazyBox<Set<String>>,
    next_suffix: LazyBox<Map<String, u64>>,
    /// Calls may lack an id in this dialect.
    pub ids_optional: bool,
    /// Clients of this dialect raise an exception if a choice has no finish reason.
    pub reason_required: bool,
    /// Number of JSON documents so far. One payload may contain several documents.
    pub documents: u64,
    /// The payload ordinal and document number of the last call fragment. `counted_at` contains the payload ordinal and
    /// document number of the last token counts.
    pub called_at: (u64, u64),
    pub counted_at: Option<(u64, u64)>,
}

blank!(Set<String>, Map<String, u64>);

/// The context in which rules run: the shared state and the output, borrowed for one delta.
pub struct RuleContext<'a, 'o> {
    pub shared: &'a mut Shared,
    pub out: &'a mut Output<'o>,
}

impl RuleContext<'_, '_> {
    pub fn switches(&self) -> &Switches {
        &self.out.config.policy.switches
    }

    pub fn report(&mut self, code: Code, part: u32) -> ParseResult {
        self.out.diagnose(code, Some(part), "")
    }

    /// Returns the fault for this limit if the limit is on and `beyond` returns true for its value.
    fn cap(&self, name: LimitName, beyond: impl Fn(u64) -> bool) -> ParseResult {
        match self.out.config.limits.value(name) {
            Some(limit) if beyond(limit) => Err(Fault::limit(name, limit)),
            _ => Ok(()),
        }
    }

    /// Returns the number of a new part, and counts the memory for it.
    pub fn next_part(&mut self) -> Result<u32, Fault> {
        let part = self.out.next_part()?;
        if part >= FREE_PARTS {
            self.spend_text(PART_BYTES)?;
        }
        Ok(part)
    }

    /// Counts a new item and the memory for it.
    pub fn count_item(&mut self) -> ParseResult {
        let items = self.shared.items;
        self.cap(LimitName::max_parts, |limit| items >= limit)?;
        self.shared.items += 1;
        if items >= u64::from(FREE_PARTS) {
            self.spend_text(ITEM_BYTES)?;
        }
        Ok(())
    }

    pub fn count_choice(&mut self) -> ParseResult {
        let choices = self.shared.choices;
        self.cap(LimitName::max_choices, |limit| choices >= limit)?;
        self.shared.choices += 1;
        Ok(())
    }

    pub fn count_call(&mut self) -> ParseResult {
        let calls = self.shared.calls;
        self.cap(LimitName::max_tool_calls, |limit| calls >= limit)?;
        self.shared.calls += 1;
        Ok(())
    }

    /// Checks that a fragment alone does not exceed `max_arguments_bytes`, before any work is spent on it.
    #[inline]
    pub fn check_piece(&self, size: usize) -> ParseResult {
        self.cap(LimitName::max_arguments_bytes, |limit| size as u64 > limit)
    }

    /// Checks the limits on arguments after the size of a call's text has changed, and updates the total of all calls.
    #[inline]
    pub fn count_arguments(&mut self, before: usize, after: usize) -> ParseResult {
        self.cap(LimitName::max_arguments_bytes, |limit| after as u64 > limit)?;
        let total = (self.shared.argument_bytes + after).saturating_sub(before);
        self.cap(LimitName::max_total_arguments_bytes, |limit| {
            total as u64 > limit
        })?;
        self.shared.argument_bytes = total;
        Ok(())
    }

    /// Returns true if a call's text of `before` bytes can grow by `more` bytes within the limits.
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

    /// Counts `more` bytes of text, reasoning, refusal or metadata towards `max_text_bytes`. This method is called
    /// before the bytes are stored.
    #[inline]
    pub fn spend_text(&mut self, more: i64) -> ParseResult {
        let total = self.shared.text_bytes + more;
        self.cap(LimitName::max_text_bytes, |limit| {
            u64::try_from(total).is_ok_and(|total| total > limit)
        })?;
        self.shared.text_bytes = total;
        Ok(())
    }

    pub fn spend_bytes(&mut self, more: usize) -> ParseResult {
        self.spend_text(i64::try_from(more).unwrap_or(i64::MAX))
    }

    /// Counts a change in the size of stored members towards `max_text_bytes`.
    pub fn spend_growth(&mut self, growth: Growth) -> ParseResult {
        self.spend_entries(growth.entries)?;
        self.spend_text(growth.bytes)
    }

    /// Counts the fixed memory for `more` values that are stored separately. `spend_text` counts the text of these
    /// values.
    pub fn spend_entries(&mut self, more: i64) -> ParseResult {
        let bytes = |entries: i64| (entries - FREE_ENTRIES).max(0).saturating_mul(ENTRY_BYTES);
        let before = self.shared.entries;
        self.spend_text(bytes(before + more) - bytes(before))?;
        self.shared.entries = before + more;
        Ok(())
    }

    pub fn check_id(&self, identity: &str) -> ParseResult {
        self.cap(LimitName::max_id_bytes, |limit| {
            identity.len() as u64 > limit
        })
    }

    pub fn check_name(&self, name: &str) -> ParseResult {
        self.cap(LimitName::max_name_bytes, |limit| name.len() as u64 > limit)
    }
}

impl Shared {
    /// Returns true if token counts arrived in a later document than the last call fragment. Token counts after the
    /// last call fragment show that the response is complete, because gateways count tokens at the end of a response.
    /// Counts in the same document as a fragment do not show that the response is complete, because some gateways send
    /// counts in every chunk.
    pub fn is_counted(&self) -> bool {
        self.counted_at.is_some_and(|at| at > self.called_at)
    }

    /// Adds `more` bytes to the total size of all arguments. `has_room_for_arguments` must have returned true.
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

    /// Returns an id for a call that received none. The id depends only on the seed and the part number, so it is the
    /// same in every run.
    pub fn minted_id(&self, part: u32) -> String {
        let seed = self.settings.seed.as_deref().unwrap_or("sw");
        format!("call_{seed}_{part}")
    }

    /// Returns true if any call has received or reported this id, in this stream or in an earlier turn.
    pub fn is_used(&self, identity: &str) -> bool {
        self.ids_seen.contains(identity) || self.is_taken(identity)
    }

    pub fn is_taken(&self, identity: &str) -> bool {
        self.ids_given.contains(identity) || self.settings.known_call_ids.contains(identity)
    }

    /// Returns `wanted` if this id is free. Otherwise, returns the first of `wanted__2`, `wanted__3` … that no call has
    /// used, in this stream or in an earlier turn.
    ///
    /// `minted`: the id is not from the wire, so it is free only if the stream has not contained it.
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
