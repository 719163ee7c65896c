//! Finds the item that the address of an event refers to.
//!
//! The rules a to f are tried in order. Events always report the first id of an item. Any other id of an address that
//! was resolved to the item becomes an alias. Every lookup takes constant time.
//!
//! a   `item_id` is known, or one half of an id `call|item` is; a call is also found if `item_id` is its call id
//! b   `call_id` is the id of a call (if several calls have it, the one that the index is bound to)
//! c   `index` is bound to an item of the kind (a closed item is not found for a text delta with an unknown `item_id`)
//! d   for a call whose address is unknown: the latest open call, unless an id shows that another call is meant
//! e   for text without `item_id` and `index`, or whose `index` is bound to another kind: the latest open item of the
//!     kind
//! f   otherwise, no item is found

use crate::assemble::part::call::Call;
use crate::assemble::part::call::Id;
use crate::assemble::part::item::Item;
use crate::assemble::part::item::PartPosition;
use crate::assemble::part::text::TextPart;
use crate::assemble::resolve::call_list::CallList;
use crate::assemble::resolve::restatement::Restatement;
use crate::assemble::rule_context::RuleContext;
use crate::model::delta::Address;
use crate::model::delta::ItemKind;
use crate::model::fault::Fault;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;
use crate::model::small_map::Map;
use std::mem;

/// Why an item is looked up: for a delta or for a closing event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Delta,
    Close,
}

pub const KINDS: [ItemKind; 3] = [ItemKind::Message, ItemKind::Reasoning, ItemKind::Call];

/// The items of one choice and their lookup tables.
#[derive(Clone, Debug, Default)]
pub struct ItemIndex {
    items: Vec<Item>,
    open: CallList,
    /// The open items of each kind that were opened in the current step.
    open_of: [LazyBox<CallList>; 3],
    by_id: Map<ItemKind, Map<Id, usize>>,
    pub by_call: Map<Id, usize>,
    /// The entries of `by_call` from earlier steps, kept because the results of those calls may arrive later.
    earlier: LazyBox<Map<Id, usize>>,
    /// The items of calls whose id a later call reused, by call id and name.
    namesakes: LazyBox<Map<(String, String), usize>>,
    by_index: Map<(ItemKind, i64), usize>,
    /// The items that have a part or a call, in the order in which their first part or call was added.
    pub filled: Vec<usize>,
    /// The items that may hold late text.
    late: Vec<usize>,
    /// The kind of the item that was created last.
    pub last_kind: Option<ItemKind>,
    /// The message began again, so blocks may repeat earlier blocks at the same index.
    pub may_repeat: bool,
    /// Lookup tables that match a terminal list with the streamed content; `None` until a terminal list arrives.
    pub restated: Option<Box<Restatement>>,
}

blank!(ItemIndex, CallList, Map<Id, usize>, Map<(String, String), usize>);

impl ItemIndex {
    #[inline]
    pub fn get(&self, item: usize) -> Option<&Item> {
        self.items.get(item)
    }

    #[inline]
    pub fn get_mut(&mut self, item: usize) -> Option<&mut Item> {
        self.items.get_mut(item)
    }

    /// Returns the number of items and the number of ids.
    pub fn sizes(&self) -> (usize, usize) {
        let ids = self.by_id.values().map(Map::len).sum::<usize>();
        (self.items.len(), ids + self.by_call.len())
    }

    pub fn is_used(&self) -> bool {
        !self.items.is_empty()
    }

    /// Returns true if there is at least one item, all items are closed, and the last item is not reasoning. Reasoning
    /// alone is not a response.
    pub fn all_closed(&self) -> bool {
        self.is_used() && self.open.len() == 0 && self.last_kind != Some(ItemKind::Reasoning)
    }

    pub fn create(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        calls: &[Call],
        kind: ItemKind,
        address: &Address<'_>,
    ) -> Result<usize, Fault> {
        ctx.count_item()?;
        let number = self.items.len();
        self.items.reserve_exact(usize::from(number == 0));
        self.items.push(Item::new(kind));
        self.last_kind = Some(kind);
        self.open.add(number);
        self.call_list_mut(kind).add(number);
        // An id that was already in use refers to the new item from now on.
        if let (Some(ids), Some(item_id)) = (self.by_id.get_mut(&kind), address.item_id) {
            ids.remove(item_id);
        }
        if let Some(call_id) = address.call_id {
            let before = self.by_call.get(call_id).copied();
            self.by_call.remove(call_id);
            if let Some((before, call)) =
                before.and_then(|item| Some((item, self.call(calls, item)?)))
            {
                let key = (call_id.to_owned(), call.name.clone());
                self.namesakes.insert(key, before);
            }
        }
        self.learn(ctx, number, address, &mut [])?;
        self.bind(number, address);
        Ok(number)
    }

    pub fn close(&mut self, item: usize) {
        let Some(record) = self.items.get_mut(item) else {
            return;
        };
        record.open = false;
        let kind = record.kind;
        self.open.remove(item);
        self.call_list_mut(kind).remove(item);
    }

    /// Opens a closed item again, because the stream continues it.
    pub fn reopen(&mut self, item: usize) {
        let Some(record) = self.items.get_mut(item) else {
            return;
        };
        record.open = true;
        let kind = record.kind;
        self.open.add(item);
        self.call_list_mut(kind).add(item);
    }

    /// Records that the part may hold late text.
    pub fn add_late(&mut self, part_position: PartPosition) {
        if let Some(record) = self.items.get_mut(part_position.item) {
            if record.late.is_empty() {
                self.late.push(part_position.item);
            }
            record.late.push(part_position.one);
        }
    }

    /// Returns the items that may hold late text, and forgets them.
    pub fn take_late(&mut self) -> Vec<usize> {
        mem::take(&mut self.late)
    }

    fn call_list_mut(&mut self, kind: ItemKind) -> &mut LazyBox<CallList> {
        let [message, reasoning, call] = &mut self.open_of;
        match kind {
            ItemKind::Message => message,
            ItemKind::Reasoning => reasoning,
            ItemKind::Call => call,
        }
    }

    fn call_list(&self, kind: ItemKind) -> &CallList {
        let [message, reasoning, call] = &self.open_of;
        match kind {
            ItemKind::Message => message,
            ItemKind::Reasoning => reasoning,
            ItemKind::Call => call,
        }
    }

    /// Binds the index of the address to the item, so that later events with the index refer to it.
    pub fn bind(&mut self, item: usize, address: &Address<'_>) {
        if let (Some(index), Some(record)) = (address.index, self.items.get_mut(item)) {
            record.index.get_or_insert(index);
            self.by_index.insert((record.kind, index), item);
        }
    }

    /// Stores the ids of the address that was resolved to the item, so that later events with these ids are also
    /// resolved to the item. Reports an unexpected id. If an id differs from the item's own id, returns the differing
    /// id the first time that it occurs.
    pub fn learn(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        item: usize,
        address: &Address<'_>,
        parts: &mut [TextPart],
    ) -> Result<Option<String>, Fault> {
        let ids = [address.item_id, address.call_id, address.public_id];
        for identity in ids.into_iter().flatten() {
            ctx.check_id(identity)?;
        }
        let Some(record) = self.items.get_mut(item) else {
            return Ok(None);
        };
        if let Some(public_id) = address.public_id.filter(|_| record.public_id.is_none()) {
            let public_id = record.public_id.insert(public_id.into()).clone();
            for one in &record.parts {
                if let Some(part) = parts.get_mut(one.position) {
                    part.item_id = Some(public_id.clone());
                }
            }
        }
        let kind = record.kind;
        let mut other = None;
        if let Some(item_id) = address.item_id {
            let ids = self.by_id.get(&kind);
            let known = ids.is_some_and(|ids| ids.contains_key(item_id));
            if known {
                record.item_id.get_or_insert_with(|| item_id.into());
            } else {
                let known_otherwise = kind == ItemKind::Call
                    && (self.by_call.contains_key(item_id) || item_id.contains('|'));
                let id = Id::from(item_id);
                let keep = if record.item_id.is_none() && !known_otherwise {
                    record.item_id = Some(id.clone());
                    true
                } else if record.count_alias() {
                    other = (!known_otherwise).then(|| item_id.to_owned());
                    true
                } else {
                    false
                };
                if keep {
                    self.by_id.slot(kind).insert(id, item);
                    if kind != ItemKind::Call {
                        ctx.spend_bytes(item_id.chars().count())?;
                    }
                }
            }
        }
        if let Some(call_id) = address.call_id.filter(|_| kind == ItemKind::Call) {
            if !self.by_call.contains_key(call_id) && record.count_alias() {
                self.by_call.insert(call_id.into(), item);
            }
        }
        if other.is_some() && !record.alias_reported {
            record.alias_reported = true;
            return Ok(other);
        }
        Ok(None)
    }

    fn id(&self, kind: ItemKind, id: &str) -> Option<usize> {
        self.by_id.get(&kind)?.get(id).copied()
    }

    /// Returns the item that the ids of the address refer to (rules a and b), or `None`.
    pub fn by_ids(&self, calls: &[Call], kind: ItemKind, address: &Address<'_>) -> Option<usize> {
        let mut found = address.item_id.and_then(|id| self.by_item_id(kind, id));
        if let (None, ItemKind::Call, Some(call_id)) = (found, kind, address.call_id) {
            found = self
                .by_call
                .get(call_id)
                .copied()
                .or_else(|| self.id(kind, call_id))
                .or_else(|| self.unanswered(calls, call_id));
            let bound = self.at(kind, address.index);
            let bound_id = bound
                .and_then(|bound| self.call(calls, bound))
                .and_then(|call| call.id.as_deref());
            if found.is_some() && bound_id == Some(call_id) {
                found = bound;
            }
        }
        found.map(|item| self.resolve_alias(item))
    }

    fn by_item_id(&self, kind: ItemKind, item_id: &str) -> Option<usize> {
        let found = self.id(kind, item_id);
        if found.is_some() || kind != ItemKind::Call {
            return found;
        }
        if let Some(found) = self.by_call.get(item_id) {
            return Some(*found);
        }
        let (first, second) = item_id.split_once('|')?;
        [first, second].into_iter().find_map(|half| {
            self.id(kind, half)
                .or_else(|| self.by_call.get(half).copied())
        })
    }

    /// Returns the item of a call with this id from an earlier step, if the call has no result yet.
    ///
    /// Until the result of a call arrives, its id cannot refer to another call. After the result, a later step may
    /// reuse the id, because each step is a separate model response.
    fn unanswered(&self, calls: &[Call], call_id: &str) -> Option<usize> {
        let item = self.resolve_alias(*self.earlier.get(call_id)?);
        let call = self.call(calls, item)?;
        (!call.dropped && !call.answered).then_some(item)
    }

    /// Returns the item of the call that a closing event refers to, or `None`. If several open calls have the id,
    /// returns the one with the given name.
    pub fn closing(
        &self,
        calls: &[Call],
        address: &Address<'_>,
        name: Option<&str>,
    ) -> Option<usize> {
        let found = self.find(calls, ItemKind::Call, address, Purpose::Close)?;
        let call = self.call(calls, found);
        let (Some(call), Some(call_id), Some(name)) = (call, address.call_id, name) else {
            return Some(found);
        };
        if call.name.is_empty() || call.name == name {
            return Some(found);
        }
        let same = self.namesakes.get(&(call_id.to_owned(), name.to_owned()));
        let open = |item: &usize| self.get(*item).is_some_and(|item| item.open);
        same.copied().filter(open).or(Some(found))
    }

    /// Returns the call of an item, or `None` if the item has no call.
    pub fn call<'c>(&self, calls: &'c [Call], item: usize) -> Option<&'c Call> {
        calls.get(self.get(item)?.call?)
    }

    /// Returns the item of this kind to which the index is bound, or `None`.
    pub fn at(&self, kind: ItemKind, index: Option<i64>) -> Option<usize> {
        let found = self.by_index.get(&(kind, index?))?;
        Some(self.resolve_alias(*found))
    }

    /// Returns the earlier item that turned out to have the same call as the given item, or the given item if there is
    /// none.
    pub fn resolve_alias(&self, item: usize) -> usize {
        self.get(item)
            .and_then(|item| item.alias_of)
            .unwrap_or(item)
    }

    /// Returns the closed item at the index, if the message or the item began again and the event may repeat this item.
    /// An item with an id is never repeated in this way.
    pub fn repeated_at(&self, kind: ItemKind, address: &Address<'_>) -> Option<usize> {
        if address.item_id.is_some() {
            return None;
        }
        let item = self.at(kind, address.index)?;
        let record = self.get(item)?;
        let repeats = self.may_repeat || record.repeats;
        (repeats && !record.open && record.item_id.is_none()).then_some(item)
    }

    /// Records that the message began again, so the items that follow may repeat earlier items at the same index.
    pub fn begin_again(&mut self) {
        self.may_repeat = true;
        for item in self.opened_here() {
            if let Some(record) = self.items.get_mut(item) {
                record.begins_again = record.item_id.is_none();
            }
        }
    }

    /// Returns the open item at the index, if the message began again since the item was opened and the opening event
    /// is the first one at this index.
    pub fn take_begun_again(&mut self, kind: ItemKind, address: &Address<'_>) -> Option<usize> {
        if !self.may_repeat {
            return None;
        }
        let item = self.at(kind, address.index)?;
        let record = self.items.get_mut(item)?;
        (mem::take(&mut record.begins_again) && record.open).then_some(item)
    }

    /// Returns the item that a delta or a closing event refers to (rules a to f).
    pub fn find(
        &self,
        calls: &[Call],
        kind: ItemKind,
        address: &Address<'_>,
        purpose: Purpose,
    ) -> Option<usize> {
        if let Some(found) = self.by_ids(calls, kind, address) {
            return Some(found);
        }
        let bound = self.at(kind, address.index);
        if let Some(item) = bound.filter(|item| !self.contradicts(calls, *item, address)) {
            let record = self.get(item)?;
            let means = record.open
                || purpose == Purpose::Close
                || address.item_id.is_none()
                || !record.announced
                || kind == ItemKind::Call;
            return means.then_some(item);
        }
        if kind == ItemKind::Call {
            return self.latest_call(calls, address, bound);
        }
        if address.item_id.is_none() && (address.index.is_none() || bound.is_none()) {
            // Text belongs to the latest open item of its kind if it has no index, or if its index is bound to an item
            // of another kind.
            let taken = |index: i64| {
                let mut kinds = KINDS.into_iter();
                kinds.any(|kind| self.by_index.contains_key(&(kind, index)))
            };
            return self
                .latest(kind)
                .filter(|_| address.index.is_none_or(taken));
        }
        None
    }

    fn latest_call(
        &self,
        calls: &[Call],
        address: &Address<'_>,
        bound: Option<usize>,
    ) -> Option<usize> {
        let latest = self.latest(ItemKind::Call)?;
        if bound.is_some() || self.contradicts(calls, latest, address) {
            return None;
        }
        let several = self.call_list(ItemKind::Call).len() > 1;
        if address.item_id.is_some() && (address.index.is_some() || several) {
            return None;
        }
        Some(latest)
    }

    /// Returns true if several calls are open and nothing in the address identifies one of them, so that choosing the
    /// latest open call is only a guess.
    pub fn is_guess(&self, address: &Address<'_>) -> bool {
        address.item_id.is_none()
            && address.call_id.is_none()
            && self.call_list(ItemKind::Call).len() > 1
            && self.at(ItemKind::Call, address.index).is_none()
    }

    /// Returns the last item of this kind that is still open. Ignores items of earlier steps.
    pub fn latest(&self, kind: ItemKind) -> Option<usize> {
        self.call_list(kind).last()
    }

    /// Returns the item that a closing event without a kind refers to, or `None`.
    pub fn whatever_at(&self, calls: &[Call], address: &Address<'_>) -> Option<usize> {
        let mut kinds = KINDS.into_iter();
        if let Some(found) = kinds.find_map(|kind| self.by_ids(calls, kind, address)) {
            return Some(found);
        }
        if let Some(index) = address.index {
            return self.open_at(index).into_iter().max();
        }
        if address.item_id.is_none() && address.call_id.is_none() {
            return self.open.last();
        }
        None
    }

    /// Returns the open items of all kinds to which the index is bound.
    pub fn open_at(&self, index: i64) -> Vec<usize> {
        let here = KINDS
            .into_iter()
            .filter_map(|kind| self.at(kind, Some(index)));
        here.filter(|item| self.get(*item).is_some_and(|item| item.open))
            .collect()
    }

    /// Returns the item of the latest call with this id, even if it is from an earlier step. A tool result with the id
    /// refers to this call.
    pub fn item_of_result(&self, call_id: &str) -> Option<usize> {
        let found = self.by_call.get(call_id);
        let found = found.or_else(|| self.earlier.get(call_id));
        found.map(|item| self.resolve_alias(*item))
    }

    /// Returns all open items, in order of creation.
    pub fn opened(&self) -> Vec<usize> {
        let mut opened: Vec<usize> = self.open.latest().collect();
        opened.sort_unstable();
        opened
    }

    /// Returns the open items of the current step, in order of creation.
    pub fn opened_here(&self) -> Vec<usize> {
        let mut opened: Vec<usize> = self.open_of.iter().flat_map(|open| open.latest()).collect();
        opened.sort_unstable();
        opened
    }

    /// Returns true if the item's call has an id, but the address contains a call id that does not belong to this call.
    fn contradicts(&self, calls: &[Call], item: usize, address: &Address<'_>) -> bool {
        let call = self.call(calls, item);
        let (Some(call), Some(call_id)) = (call, address.call_id) else {
            return false;
        };
        call.id.is_some() && !call.has_id(call_id)
    }

    /// Ends a step: clears the lookup tables, so that ids and indexes can be reused. Items stay open.
    pub fn forget(&mut self) {
        self.may_repeat = false;
        self.by_id.clear();
        if self.by_call.len() > 0 {
            self.by_call.move_into(&mut self.earlier);
        }
        if !self.namesakes.is_blank() {
            self.namesakes.clear();
        }
        self.by_index.clear();
        for open in self.open_of.iter_mut().filter(|open| !open.is_blank()) {
            open.clear();
        }
    }

    /// Discards the open items, and clears the lookup tables.
    pub fn drop_open(&mut self) {
        self.forget();
        self.late.clear();
        self.open.clear();
    }

    /// Removes all items and clears all tables, because the response starts again.
    pub fn start_again(&mut self) {
        *self = ItemIndex::default();
    }
}

/// Returns the address without its unusable values: blank ids, and an index that is negative or exceeds
/// `max_tool_index`.
pub fn usable<'a>(ctx: &RuleContext<'_, '_>, address: &Address<'a>) -> Address<'a> {
    let limit = ctx.out.config.limits.max_tool_index;
    let within = |index: &i64| {
        u64::try_from(*index).is_ok_and(|index| limit.is_none_or(|limit| index <= limit))
    };
    let present = |id: &&str| !id.trim().is_empty();
    Address {
        item_id: address.item_id.filter(present),
        call_id: address.call_id.filter(present),
        index: address.index.filter(within),
        sub: address.sub,
        public_id: address.public_id.filter(present),
    }
}
