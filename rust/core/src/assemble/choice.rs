//! The state of one choice: its calls and their lookup tables, its text parts, and its finish reason.
//!
//! Every lookup takes constant time. Other modules contain the rules that change a choice and emit its events.

use crate::assemble::part::call::Call;
use crate::assemble::part::call::CallOutcome;
use crate::assemble::part::call::Id;
use crate::assemble::part::canonical_json::is_whole;
use crate::assemble::part::item::PartPosition;
use crate::assemble::part::object_merge::RawMembers;
use crate::assemble::part::text_parts::TextParts;
use crate::assemble::resolve::call_list::CallList;
use crate::assemble::resolve::item_index::ItemIndex;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::model::fault::Fault;
use crate::model::lazy_box::Blank;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use crate::model::spec::Code;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::VecDeque;

/// The internal index of a call that arrives in the legacy member `function_call`.
pub const LEGACY_INDEX: i64 = -1;
/// Maximum number of unfinished calls that are tried for a fragment that does not identify its call.
const CANDIDATES: usize = 8;
/// Maximum number of calls that are compared with a call in `function_call`.
const MIRRORED: usize = 64;

/// How a call relates to the other calls of its choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallComparison {
    Repeated,
    Own,
    /// The comparison does not show whether the call is a repetition or a separate call.
    Unclear,
}
/// Indexes below this value are looked up without hashing.
const LOW: usize = 32;

/// The finish reason of a choice.
#[derive(Clone, Debug, Default)]
pub struct FinishState {
    pub raw: Option<String>,
    /// The meaning of the finish reason.
    pub reason: Option<&'static str>,
    /// The received finish reason can mean any normal end, because it does not distinguish `stop` from `tool_calls`.
    pub natural: bool,
    /// A second finish reason has already been reported.
    pub repeated: bool,
    /// The finish reason in the emitted `Finished` event; `None` until the event is emitted.
    pub concluded: Option<&'static str>,
}

/// The default state is a static value, because the state is read for every fragment of a call.
static UNFINISHED: FinishState = FinishState {
    raw: None,
    reason: None,
    natural: false,
    repeated: false,
    concluded: None,
};

impl Blank for FinishState {
    #[inline]
    fn blank() -> &'static Self {
        &UNFINISHED
    }
}

/// An id or index that a later call took over from an earlier call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DisplacedKey {
    Id(Id),
    Index(i64),
}

/// For each index, the last call that a fragment with this index addressed.
#[derive(Clone, Debug, Default)]
pub struct ByIndex {
    low: Vec<Option<usize>>,
    higher: LazyBox<Map<i64, usize>>,
}

impl ByIndex {
    fn position(index: i64) -> Option<usize> {
        usize::try_from(index)
            .ok()
            .filter(|position| *position < LOW)
    }

    #[inline]
    pub fn get(&self, index: i64) -> Option<usize> {
        match ByIndex::position(index) {
            Some(position) => self.low.get(position).copied().flatten(),
            None => self.higher.get(&index).copied(),
        }
    }

    pub fn set(&mut self, index: i64, slot: usize) {
        let Some(position) = ByIndex::position(index) else {
            self.higher.insert(index, slot);
            return;
        };
        if self.low.len() <= position {
            self.low.reserve_exact(position + 1 - self.low.len());
            self.low.resize(position + 1, None);
        }
        if let Some(entry) = self.low.get_mut(position) {
            *entry = Some(slot);
        }
    }

    /// Removes the index if it refers to the call at `slot`.
    pub fn release(&mut self, index: i64, slot: usize) {
        if self.get(index) != Some(slot) {
            return;
        }
        match ByIndex::position(index) {
            Some(position) => {
                if let Some(entry) = self.low.get_mut(position) {
                    *entry = None;
                }
            }
            None => {
                self.higher.remove(&index);
            }
        }
    }
}

/// The calls of one type (JSON or free-form) that more text may be appended to. A JSON call is open while its text is
/// an incomplete JSON value. A free-form call is always open, because its text has no defined end.
#[derive(Clone, Debug, Default)]
pub struct OpenCalls {
    pub unfinished: CallList,
    /// The calls in `unfinished` that have a name but no argument text.
    pub waiting: LazyBox<CallList>,
}

blank!(
    OpenCalls,
    Map<i64, usize>,
    Map<u32, usize>,
    Set<(DisplacedKey, String, String)>,
    Set<PartPosition>,
);

impl OpenCalls {
    fn set(&mut self, call: &Call, present: bool) {
        let waits = present && !call.name.is_empty() && call.is_empty() && !call.tentative;
        self.unfinished.set(call.slot, present);
        if waits || !self.waiting.is_blank() {
            self.waiting.set(call.slot, waits);
        }
    }
}

/// One choice of one stream.
#[derive(Clone, Debug)]
pub struct Choice {
    pub index: i32,
    pub textual: TextParts,
    /// Calls in order of creation.
    pub calls: Vec<Call>,
    /// The latest call with each id.
    pub by_id: Map<Id, usize>,
    pub by_index: ByIndex,
    /// The call that was addressed last.
    pub latest: Option<usize>,
    /// R3c3: for each position in a list of several fragments, the call that the last fragment at this position
    /// belonged to.
    pub multi: LazyBox<Map<u32, usize>>,
    /// R1d, R3a3: the complete calls whose id or index now refers to a later call. Each entry contains the lost id or
    /// index, and the name and canonical arguments of the complete call.
    pub payloads: LazyBox<Set<(DisplacedKey, String, String)>>,
    open_json: LazyBox<OpenCalls>,
    /// Open free-form calls, separate from `open_json` because a call cannot mix JSON and free-form text.
    open_text: LazyBox<OpenCalls>,
    /// Calls that have a name but no start event yet.
    pub unstarted: Vec<usize>,
    /// A tool name has arrived in pieces, so later names may also arrive in pieces.
    pub joins_names: bool,
    /// Calls that were opened without a name, in order of creation.
    pub unnamed: VecDeque<usize>,
    /// The calls with argument text that has not been emitted yet.
    pending_calls: LazyBox<Set<usize>>,
    /// An index has moved from one call to another, so the order of the indexes is not the order of the calls.
    pub rebound: bool,
    pub finish: LazyBox<FinishState>,
    pub metadata: LazyBox<RawMembers>,
    /// Items that the stream opens and closes explicitly.
    pub item_index: LazyBox<ItemIndex>,
    /// The parts that belong to an item and hold back text.
    partly: LazyBox<Set<PartPosition>>,
    /// The calls that are not dropped, by the first id that each of them received. `None` until `list_owners` is
    /// called.
    #[allow(clippy::box_collection)] // boxed because few choices need it
    owners: Option<Box<HashMap<Id, BTreeSet<usize>>>>,
    /// Calls that have changed since the last complete message that omitted them. The set is empty until the first
    /// complete message arrives.
    pub changed: BTreeSet<usize>,
    pub message_seen: bool,
    /// The final event of at least one call has been emitted.
    pub has_closed_call: bool,
    /// The parts and calls of the choice have been closed.
    pub closed: bool,
    /// The part number of the first part in the current step.
    pub step: u32,
}

impl Choice {
    /// Returns true if input is still held back: a call has no start event yet, or no event has shown some of its text.
    pub fn has_pending(&self) -> bool {
        let latest = self.latest.and_then(|slot| self.get(slot));
        let holds_back = latest.filter(|call| !call.dropped).is_some_and(|call| {
            !call.started || call.joiner.is_pending() || call.text.replayed > 0
        });
        let waits = |slot: &usize| {
            let call = self.get(*slot);
            call.is_some_and(|call| !(call.started || call.dropped))
        };
        // Clients parse the arguments of a call when the finish reason arrives, and would ignore later fragments.
        let is_early = self.finish.raw.is_some() && !self.closed && self.has_cut_call();
        holds_back
            || is_early
            || !self.pending_calls.is_empty()
            || self.unstarted.iter().any(waits)
            || self.textual.has_pending()
            || !self.partly.is_empty()
    }

    /// Returns true if the call that was addressed last has incomplete JSON arguments.
    #[inline]
    pub fn has_cut_call(&self) -> bool {
        let latest = self.latest.and_then(|slot| self.get(slot));
        latest.is_some_and(|call| {
            let is_over = call.custom || call.is_complete() || call.dropped;
            !is_over && call.index != Some(LEGACY_INDEX)
        })
    }

    /// Updates `partly` after a part has changed. A part may hold back half of a surrogate pair, text from its opening
    /// event that deltas may repeat, or the text of redacted reasoning.
    pub fn update_pending_part(&mut self, part_position: PartPosition) {
        let waits = self.item_part(part_position).is_some_and(|(one, part)| {
            let waits = one.joiner.is_pending() || one.snapshot.is_some();
            part.open && (waits || part.kind == "redacted")
        });
        if waits {
            self.partly.insert(part_position);
        } else if !self.partly.is_blank() {
            self.partly.remove(&part_position);
        }
    }

    pub fn new(index: i32, textual: TextParts) -> Choice {
        Choice {
            index,
            textual,
            calls: Vec::new(),
            by_id: Map::default(),
            by_index: ByIndex::default(),
            latest: None,
            multi: LazyBox::default(),
            payloads: LazyBox::default(),
            open_json: LazyBox::default(),
            open_text: LazyBox::default(),
            unstarted: Vec::new(),
            joins_names: false,
            unnamed: VecDeque::new(),
            pending_calls: LazyBox::default(),
            rebound: false,
            finish: LazyBox::default(),
            metadata: LazyBox::default(),
            item_index: LazyBox::default(),
            partly: LazyBox::default(),
            owners: None,
            changed: BTreeSet::new(),
            message_seen: false,
            has_closed_call: false,
            closed: false,
            step: 0,
        }
    }

    #[inline]
    pub fn get(&self, slot: usize) -> Option<&Call> {
        self.calls.get(slot)
    }

    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut Call> {
        self.calls.get_mut(slot)
    }

    pub fn create(&mut self, ctx: &mut RuleContext<'_, '_>, custom: bool) -> Result<usize, Fault> {
        ctx.count_call()?;
        let slot = self.calls.len();
        self.calls.reserve_exact(usize::from(slot == 0));
        self.calls.push(Call::new(slot, ctx.next_part()?, custom));
        Ok(slot)
    }

    /// Returns the first call that has no name yet and is neither dropped nor final.
    #[inline]
    pub fn first_unnamed(&mut self) -> Option<usize> {
        while let Some(slot) = self.unnamed.front().copied() {
            let waits =
                |call: &Call| call.name.is_empty() && !call.dropped && call.outcome.is_none();
            if self.get(slot).is_some_and(waits) {
                return Some(slot);
            }
            self.unnamed.pop_front();
        }
        None
    }

    /// Records that a fragment with this index addressed the call. Later fragments with the index address the same
    /// call.
    pub fn bind(&mut self, slot: usize, index: Option<i64>) {
        self.latest = Some(slot);
        let Some(index) = index else {
            return;
        };
        if self
            .by_index
            .get(index)
            .is_some_and(|before| before != slot)
        {
            self.rebound = true;
        }
        self.by_index.set(index, slot);
        if let Some(call) = self.get_mut(slot) {
            let first = *call.index.get_or_insert(index);
            call.several_indexes |= first != index;
        }
    }

    /// Updates the lists of open calls after a change to this call.
    pub fn track(&mut self, slot: usize) {
        let Some(call) = self.calls.get(slot) else {
            return;
        };
        if self.message_seen {
            self.changed.insert(slot);
        }
        let json = call.text.is_unfinished() && call.merge.is_none() && !call.dropped;
        let text = call.custom && !call.dropped;
        for (open, present) in [(&mut self.open_json, json), (&mut self.open_text, text)] {
            if present || !open.is_blank() {
                open.set(call, present);
            }
        }
    }

    /// Adds the call to `pending_calls` or removes it, depending on whether some of its text has not been emitted yet.
    #[inline]
    pub fn update_pending_call(&mut self, slot: usize) {
        let Some(call) = self.calls.get(slot) else {
            return;
        };
        if call.text.shown < call.text.data.len() && !call.dropped {
            self.pending_calls.insert(slot);
        } else if !self.pending_calls.is_blank() {
            self.pending_calls.remove(&slot);
        }
    }

    pub fn open_calls(&self, custom: bool) -> &OpenCalls {
        if custom {
            &self.open_text
        } else {
            &self.open_json
        }
    }

    /// R3c2: returns the last addressed call if it is unfinished and of the given type. Otherwise, returns the call of
    /// this type that was last added to the open calls.
    pub fn latest_unfinished(&self, custom: bool) -> Option<usize> {
        let latest = self.latest.and_then(|slot| self.get(slot));
        let open = |call: &&Call| call.custom == custom && !call.is_complete() && !call.dropped;
        match latest.filter(open) {
            Some(latest) => Some(latest.slot),
            None => self.open_calls(custom).unfinished.last(),
        }
    }

    /// Returns the latest unfinished call to which the piece can be appended. Checks only the last `CANDIDATES`
    /// unfinished calls.
    pub fn accepting(
        &self,
        piece: &[u8],
        custom: bool,
        other_than: Option<usize>,
    ) -> Option<usize> {
        let open = self.open_calls(custom).unfinished.latest();
        open.take(CANDIDATES).find(|slot| {
            let call = self.get(*slot).filter(|_| Some(*slot) != other_than);
            call.is_some_and(|call| call.takes(piece, custom))
        })
    }

    /// Returns true if a call in `function_call` repeats one of the last calls from `tool_calls`.
    ///
    /// No gateway sends some calls in `tool_calls` and others in `function_call`. A call with the same name is
    /// therefore a different call only if its complete arguments differ.
    pub fn mirrors(&mut self, name: &str, arguments: &[u8]) -> bool {
        let whole = is_whole(arguments);
        let last = self.calls.iter_mut().rev().take(MIRRORED);
        let mut named = last
            .filter(|call| call.name == name && call.index != Some(LEGACY_INDEX) && !call.dropped);
        named.any(|call| match (whole, call.is_complete()) {
            (false, _) => true,
            (true, true) => call.repeats(arguments),
            (true, false) => arguments.starts_with(&call.text.data),
        })
    }

    /// Compares a call that arrived outside a delta's `tool_calls` with the last calls of the choice. A call whose
    /// arguments are only the beginning of another call's arguments counts as a repetition, because some gateways
    /// repeat, outside `tool_calls`, the arguments sent so far.
    pub fn compare(&mut self, id: Option<&str>, name: &str, arguments: &[u8]) -> CallComparison {
        let whole = is_whole(arguments);
        let count = self.calls.len();
        for call in self.calls.iter_mut().rev().take(MIRRORED) {
            let is_same = id.is_some_and(|id| call.has_id(id));
            if call.dropped || (!name.is_empty() && call.name != name && !is_same) {
                continue;
            }
            let is_repeated = call.text.data.starts_with(arguments)
                || match (whole, call.is_complete()) {
                    (false, _) => false,
                    (true, true) => call.repeats(arguments),
                    (true, false) => arguments.starts_with(&call.text.data),
                };
            match (is_repeated, is_same) {
                (true, _) => return CallComparison::Repeated,
                (false, true) => return CallComparison::Unclear,
                (false, false) => {}
            }
        }
        let is_call = !name.is_empty() && (whole || arguments.is_empty());
        if is_call && count <= MIRRORED {
            CallComparison::Own
        } else {
            CallComparison::Unclear
        }
    }

    /// Marks the other open calls as ambiguous, because the fragment that the call `chosen` received may belong to one
    /// of them. The next pieces of these calls may also be assigned to the wrong call.
    pub fn mark_ambiguous(&mut self, chosen: usize, code: Code) {
        let custom = self.get(chosen).is_some_and(|call| call.custom);
        let open = self.open_calls(custom).unfinished.latest();
        let open: Vec<usize> = open.take(CANDIDATES).collect();
        for slot in open.into_iter().filter(|slot| *slot != chosen) {
            if let Some(call) = self.get_mut(slot) {
                call.pending_ambiguity.get_or_insert(code);
            }
        }
    }

    pub fn next_waiting(&self, custom: bool, latest: bool) -> Option<usize> {
        let waiting = &self.open_calls(custom).waiting;
        if latest {
            waiting.last()
        } else {
            waiting.first()
        }
    }

    /// Stores the name and arguments of a complete call that loses its id or index to a later call, so that a replay of
    /// the complete call is still recognized.
    pub fn remember(&mut self, slot: usize, key: DisplacedKey) {
        if let Some(call) = self.calls.get_mut(slot)
            && call.is_complete()
            && call.merge.is_none()
        {
            let content = call.canonical().into_owned();
            self.payloads.insert((key, call.name.clone(), content));
        }
    }

    pub fn is_replay(&self, key: &DisplacedKey, name: &str, canonical: String) -> bool {
        self.payloads
            .contains(&(key.clone(), name.to_owned(), canonical))
    }

    /// Sets the first id that the call received.
    pub fn set_id(&mut self, slot: usize, id: Id) {
        let Some(call) = self.calls.get_mut(slot) else {
            return;
        };
        if let Some(owners) = self.owners.as_mut().filter(|_| !call.dropped) {
            owners.entry(id.clone()).or_default().insert(slot);
        }
        call.id = Some(id);
    }

    /// Marks the call as dropped or not dropped. A dropped call is not part of the response.
    pub fn set_dropped(&mut self, slot: usize, dropped: bool) {
        let Some(call) = self.calls.get_mut(slot) else {
            return;
        };
        call.dropped = dropped;
        if let (Some(owners), Some(id)) = (&mut self.owners, &call.id) {
            let owned = owners.entry(id.clone()).or_default();
            _ = if dropped {
                owned.remove(&slot)
            } else {
                owned.insert(slot)
            };
        }
    }

    /// Builds `owners`, the table that `owned` uses, unless it exists already.
    pub fn list_owners(&mut self) {
        if self.owners.is_some() {
            return;
        }
        let mut owners: HashMap<Id, BTreeSet<usize>> = HashMap::new();
        for call in self.calls.iter().filter(|call| !call.dropped) {
            if let Some(id) = &call.id {
                owners.entry(id.clone()).or_default().insert(call.slot);
            }
        }
        self.owners = Some(Box::new(owners));
    }

    /// Returns the calls whose first received id is `id`, in order of creation, starting at position `from`. Excludes
    /// dropped calls.
    pub fn owned(&self, id: &str, from: usize) -> impl Iterator<Item = usize> + '_ {
        let owned = self.owners.as_ref().and_then(|owners| owners.get(id));
        owned
            .into_iter()
            .flat_map(move |owned| owned.range(from..).copied())
    }

    /// Removes from `changed` the calls whose position is less than `count`, and returns them in order of creation.
    pub fn take_changed(&mut self, count: usize) -> Vec<usize> {
        let later = self.changed.split_off(&count);
        let taken = std::mem::replace(&mut self.changed, later);
        taken.into_iter().collect()
    }

    /// Stores the final result of the call.
    pub fn set_outcome(&mut self, slot: usize, outcome: CallOutcome) {
        if let Some(call) = self.calls.get_mut(slot) {
            call.outcome = Some(Box::new(outcome));
            self.has_closed_call = true;
        }
    }

    /// AM10: removes all calls, because the response starts again.
    pub fn forget_calls(&mut self) {
        self.calls.clear();
        self.has_closed_call = false;
        self.owners = None;
        self.changed.clear();
        self.by_id.clear();
        self.by_index = ByIndex::default();
        self.latest = None;
        self.multi = LazyBox::default();
        self.payloads = LazyBox::default();
        self.open_json = LazyBox::default();
        self.open_text = LazyBox::default();
        self.unstarted.clear();
        self.unnamed.clear();
        self.pending_calls = LazyBox::default();
        self.rebound = false;
    }

    /// Returns the calls that are not dropped, in order of creation.
    pub fn live(&self) -> Vec<usize> {
        let live = self.calls.iter().filter(|call| !call.dropped);
        live.map(|call| call.slot).collect()
    }

    /// Returns the calls that are not dropped and have no final result yet.
    pub fn undecided(&self) -> Vec<usize> {
        let calls = self.calls.iter();
        let undecided = calls.filter(|call| !call.dropped && call.outcome.is_none());
        undecided.map(|call| call.slot).collect()
    }

    /// Returns the calls that are not dropped, in their final order. The calls are sorted by index if each call has
    /// exactly one index, no two calls share an index, no index moved between calls, and no call came from
    /// `function_call`. Otherwise, the calls are in order of creation.
    pub fn in_order(&self) -> Vec<usize> {
        let mut slots = self.live();
        let index = |slot: usize| {
            let call = self.get(slot).filter(|call| !call.several_indexes);
            call.and_then(|call| call.index)
        };
        let distinct: HashSet<i64> = slots.iter().filter_map(|slot| index(*slot)).collect();
        let legacy = distinct.contains(&LEGACY_INDEX);
        if !self.rebound && !legacy && distinct.len() >= slots.len() {
            slots.sort_by_key(|slot| index(*slot).unwrap_or(0));
        }
        slots
    }

    /// Returns those calls of `shown_calls` that the client must run, in their final order. Only calls that the client
    /// must run justify the finish reason `tool_calls`.
    pub fn client_calls(&self) -> Vec<&Call> {
        let shown = self.shown();
        let calls = shown.iter().filter_map(|slot| self.get(*slot));
        calls.filter(|call| !call.provider_executed).collect()
    }

    /// Returns the calls that have a name, arguments or a final result, in their final order. A call that has none of
    /// these is not part of the response.
    pub fn shown(&self) -> Vec<usize> {
        let mut slots = self.in_order();
        slots.retain(|slot| self.get(*slot).is_some_and(is_more_than_a_guess));
        slots
    }

    /// Returns true if `shown` would return at least one call.
    pub fn has_shown(&self) -> bool {
        let mut calls = self.calls.iter().filter(|call| !call.dropped);
        calls.any(is_more_than_a_guess)
    }
}

fn is_more_than_a_guess(call: &Call) -> bool {
    call.outcome.is_some() || !call.name.is_empty() || !call.is_empty()
}

/// Stores unmodeled members that no other event can contain. The `Finished` event of the choice contains these members.
pub fn leave(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, metadata: &str) -> ParseResult {
    let more = choice.metadata.add(metadata);
    ctx.spend_growth(more)
}
