//! One choice: its calls and how to find them, its text parts, its finish reason.
//!
//! State and lookups, every one in one step. It knows no rule and no event.

use crate::assemble::part::call::Call;
use crate::assemble::part::call::Id;
use crate::assemble::part::call::Verdict;
use crate::assemble::part::item::Spot;
use crate::assemble::part::object_merge::RawMembers;
use crate::assemble::part::text_parts::TextParts;
use crate::assemble::resolve::call_list::CallList;
use crate::assemble::resolve::item_index::ItemIndex;
use crate::assemble::rule_context::RuleContext;
use crate::assemble::rule_context::Step;
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

/// The private index of the one call of `function_call`.
pub const LEGACY_INDEX: i64 = -1;
/// How many unfinished calls a stray fragment is tried on.
const CANDIDATES: usize = 8;
/// Indexes up to here are found without hashing.
const LOW: usize = 32;

/// What was said about the end of a choice.
#[derive(Clone, Debug, Default)]
pub struct FinishState {
    pub raw: Option<String>,
    /// Mapped.
    pub reason: Option<&'static str>,
    /// The word says neither stop nor calls, but that nobody forced the end.
    pub natural: bool,
    /// A second one was reported.
    pub repeated: bool,
    /// As it was told at the end.
    pub concluded: Option<&'static str>,
}

/// Asked with every piece of a call: nothing to make first.
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

/// What a displaced call is remembered by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DisplacedKey {
    Id(Id),
    Index(i64),
}

/// The last call addressed through each index.
#[derive(Clone, Debug, Default)]
pub struct ByIndex {
    low: Vec<Option<usize>>,
    rest: LazyBox<Map<i64, usize>>,
}

impl ByIndex {
    fn place(index: i64) -> Option<usize> {
        usize::try_from(index).ok().filter(|place| *place < LOW)
    }

    #[inline]
    pub fn get(&self, index: i64) -> Option<usize> {
        match ByIndex::place(index) {
            Some(place) => self.low.get(place).copied().flatten(),
            None => self.rest.get(&index).copied(),
        }
    }

    pub fn set(&mut self, index: i64, slot: usize) {
        let Some(place) = ByIndex::place(index) else {
            self.rest.insert(index, slot);
            return;
        };
        if self.low.len() <= place {
            self.low.reserve_exact(place + 1 - self.low.len());
            self.low.resize(place + 1, None);
        }
        if let Some(entry) = self.low.get_mut(place) {
            *entry = Some(slot);
        }
    }
}

/// Calls of one type that may go on: JSON that is a prefix of JSON, or free-form text, which has no end.
#[derive(Clone, Debug, Default)]
pub struct OpenCalls {
    pub unfinished: CallList,
    /// Of these, the named ones without any argument text.
    pub waiting: LazyBox<CallList>,
}

blank!(
    OpenCalls,
    Map<i64, usize>,
    Map<u32, usize>,
    Set<(DisplacedKey, String, String)>,
    Set<Spot>,
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
    /// In order of creation.
    pub calls: Vec<Call>,
    /// The latest call with that id.
    pub by_id: Map<Id, usize>,
    pub by_index: ByIndex,
    /// The last call addressed at all.
    pub latest: Option<usize>,
    /// R3c3: by place in the last list of several.
    pub multi: LazyBox<Map<u32, usize>>,
    /// R1d, R3a3: what calls said that were displaced: key, name, canonical arguments.
    pub payloads: LazyBox<Set<(DisplacedKey, String, String)>>,
    open_json: LazyBox<OpenCalls>,
    /// Free-form text and JSON share no call.
    open_text: LazyBox<OpenCalls>,
    /// Named, not shown yet.
    pub unstarted: Vec<usize>,
    /// Of whose text something was not shown.
    owing: LazyBox<Set<usize>>,
    /// An index went from one call to another: it is no order.
    pub rebound: bool,
    pub finish: LazyBox<FinishState>,
    pub metadata: LazyBox<RawMembers>,
    /// What the wire itself opens and closes.
    pub book: LazyBox<ItemIndex>,
    /// Parts of it of which something was taken that no event has shown.
    partly: LazyBox<Set<Spot>>,
    /// The calls that are there, by their first id; once that was asked.
    #[allow(clippy::box_collection)] // few choices need it
    owners: Option<Box<HashMap<Id, BTreeSet<usize>>>>,
    /// Those that changed since a whole message left them out; from the first message on.
    pub changed: BTreeSet<usize>,
    pub message_seen: bool,
    /// A call was told as final.
    pub has_told: bool,
    /// Its parts and calls are.
    pub closed: bool,
    /// The first part of the step that it is in.
    pub step: u32,
}

impl Choice {
    /// A call was announced and not shown, or something of what is open is held back.
    pub fn owes(&self) -> bool {
        let latest = self.latest.and_then(|slot| self.get(slot));
        let holds_back = latest
            .filter(|call| !call.dropped)
            .is_some_and(|call| !call.started || call.joiner.is_pending() || call.text.shadow > 0);
        let waits = |slot: &usize| {
            let call = self.get(*slot);
            call.is_some_and(|call| !(call.started || call.dropped))
        };
        holds_back
            || !self.owing.is_empty()
            || self.unstarted.iter().any(waits)
            || self.textual.owes()
            || !self.partly.is_empty()
    }

    /// Keeps `partly` right after a part has changed: of one that is open, half a character may wait for its other half, its
    /// beginning for what may repeat it, or all of it for its end.
    pub fn weigh(&mut self, spot: Spot) {
        let waits = self.one(spot).is_some_and(|(one, part)| {
            let waits = one.joiner.is_pending() || one.snapshot.is_some();
            part.open && (waits || part.kind == "redacted")
        });
        if waits {
            self.partly.insert(spot);
        } else if !self.partly.is_blank() {
            self.partly.remove(&spot);
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
            owing: LazyBox::default(),
            rebound: false,
            finish: LazyBox::default(),
            metadata: LazyBox::default(),
            book: LazyBox::default(),
            partly: LazyBox::default(),
            owners: None,
            changed: BTreeSet::new(),
            message_seen: false,
            has_told: false,
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

    pub fn create(&mut self, desk: &mut RuleContext<'_, '_>, custom: bool) -> Result<usize, Fault> {
        desk.count_call()?;
        let slot = self.calls.len();
        self.calls.reserve_exact(usize::from(slot == 0));
        self.calls.push(Call::new(slot, desk.next_part()?, custom));
        Ok(slot)
    }

    /// The call was addressed through that index.
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

    /// Keep the rosters right after the call has changed.
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

    /// Notes whether something of the call's text is held back.
    #[inline]
    pub fn keep_account(&mut self, slot: usize) {
        let Some(call) = self.calls.get(slot) else {
            return;
        };
        if call.text.shown < call.text.data.len() && !call.dropped {
            self.owing.insert(slot);
        } else if !self.owing.is_blank() {
            self.owing.remove(&slot);
        }
    }

    pub fn open_calls(&self, custom: bool) -> &OpenCalls {
        if custom {
            &self.open_text
        } else {
            &self.open_json
        }
    }

    /// R3c2: of the calls of that type, the latest of all if it is unfinished, else the last that became so.
    pub fn latest_unfinished(&self, custom: bool) -> Option<usize> {
        let latest = self.latest.and_then(|slot| self.get(slot));
        let open = |call: &&Call| call.custom == custom && !call.is_complete() && !call.dropped;
        match latest.filter(open) {
            Some(latest) => Some(latest.slot),
            None => self.open_calls(custom).unfinished.last(),
        }
    }

    /// The latest unfinished call that can take the payload. Only the last few are tried.
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

    /// One of the open calls was given what may have been another's: that holds for the others' next pieces too.
    pub fn contest(&mut self, taker: usize, code: Code) {
        let custom = self.get(taker).is_some_and(|call| call.custom);
        let open = self.open_calls(custom).unfinished.latest();
        let open: Vec<usize> = open.take(CANDIDATES).collect();
        for slot in open.into_iter().filter(|slot| *slot != taker) {
            if let Some(call) = self.get_mut(slot) {
                call.contested.get_or_insert(code);
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

    /// A complete call is displaced from its id or index: what it said must still be recognised.
    pub fn remember(&mut self, slot: usize, key: DisplacedKey) {
        if let Some(call) = self.calls.get_mut(slot)
            && call.is_complete()
            && call.merge.is_none()
        {
            let said = call.canonical().into_owned();
            self.payloads.insert((key, call.name.clone(), said));
        }
    }

    pub fn said_before(&self, key: &DisplacedKey, name: &str, canonical: String) -> bool {
        self.payloads
            .contains(&(key.clone(), name.to_owned(), canonical))
    }

    /// The call has that id for its first one.
    pub fn set_id(&mut self, slot: usize, id: Id) {
        let Some(call) = self.calls.get_mut(slot) else {
            return;
        };
        if let Some(owners) = self.owners.as_mut().filter(|_| !call.dropped) {
            owners.entry(id.clone()).or_default().insert(slot);
        }
        call.id = Some(id);
    }

    /// The call never was, or is there after all.
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

    /// From here on it can be asked who has which id.
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

    /// The calls that are there with that first id, in order of creation, from one on.
    pub fn owned(&self, id: &str, from: usize) -> impl Iterator<Item = usize> + '_ {
        let owned = self.owners.as_ref().and_then(|owners| owners.get(id));
        owned
            .into_iter()
            .flat_map(move |owned| owned.range(from..).copied())
    }

    /// Of the first so many calls those that changed since the last time, in order.
    pub fn take_changed(&mut self, count: usize) -> Vec<usize> {
        let later = self.changed.split_off(&count);
        let taken = std::mem::replace(&mut self.changed, later);
        taken.into_iter().collect()
    }

    /// What the call came to.
    pub fn tell(&mut self, slot: usize, verdict: Verdict) {
        if let Some(call) = self.calls.get_mut(slot) {
            call.verdict = Some(Box::new(verdict));
            self.has_told = true;
        }
    }

    /// AM10: the answer starts again.
    pub fn forget_calls(&mut self) {
        self.calls.clear();
        self.has_told = false;
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
        self.owing = LazyBox::default();
        self.rebound = false;
    }

    /// The calls that are there, in order of creation.
    pub fn live(&self) -> Vec<usize> {
        let live = self.calls.iter().filter(|call| !call.dropped);
        live.map(|call| call.slot).collect()
    }

    /// Those of them that no close of their own has told.
    pub fn undecided(&self) -> Vec<usize> {
        let calls = self.calls.iter();
        let undecided = calls.filter(|call| !call.dropped && call.verdict.is_none());
        undecided.map(|call| call.slot).collect()
    }

    /// The calls that are there, in their final order: by index where every call has one of its own that never changed
    /// hands, else by arrival.
    pub fn in_order(&self) -> Vec<usize> {
        let mut slots = self.live();
        let index = |slot: usize| {
            let call = self.get(slot).filter(|call| !call.several_indexes);
            call.and_then(|call| call.index)
        };
        let distinct: HashSet<i64> = slots.iter().filter_map(|slot| index(*slot)).collect();
        if !self.rebound && distinct.len() >= slots.len() {
            slots.sort_by_key(|slot| index(*slot).unwrap_or(0));
        }
        slots
    }

    /// Those shown that are the client's: only they are a reason to finish.
    pub fn client_calls(&self) -> Vec<&Call> {
        let shown = self.shown();
        let calls = shown.iter().filter_map(|slot| self.get(*slot));
        calls.filter(|call| !call.provider_executed).collect()
    }

    /// The calls that are more than a guess, in their final order.
    pub fn shown(&self) -> Vec<usize> {
        let mut slots = self.in_order();
        slots.retain(|slot| self.get(*slot).is_some_and(is_more_than_a_guess));
        slots
    }

    /// There is one of them.
    pub fn has_shown(&self) -> bool {
        let mut calls = self.calls.iter().filter(|call| !call.dropped);
        calls.any(is_more_than_a_guess)
    }
}

fn is_more_than_a_guess(call: &Call) -> bool {
    call.verdict.is_some() || !call.name.is_empty() || !call.is_empty()
}

/// Unmodelled members that no event could carry.
pub fn leave(desk: &mut RuleContext<'_, '_>, choice: &mut Choice, metadata: &str) -> Step {
    let more = choice.metadata.add(metadata);
    desk.spend_growth(more)
}
