//! Writes items from a source in the same dialect, with the source's ids and indexes, and the final JSON of all items.
//!
//! An item from a source in the same dialect may have several parts, and ends when another item or event follows.

use crate::dialect::responses::spec_tables::FACTS;
use crate::encode::common::compact_json::spliced;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::extra_members::join;
use crate::encode::common::passed_through::AddedItem;
use crate::encode::common::passed_through::PassedThrough;
use crate::encode::common::writer::Writer;
use crate::encode::responses::body::Body;
use crate::encode::responses::item_members::ItemMembers;
use crate::encode::responses::item_members::ListedPart;
use crate::encode::responses::item_members::OtherPart;
use crate::encode::responses::items::Item;
use crate::encode::responses::items::ItemContent;
use crate::encode::responses::items::Items;
use crate::encode::responses::items::PartEnd;
use crate::encode::responses::items::Status;
use crate::encode::responses::known_items::AnnouncedItem;
use crate::encode::responses::known_items::KnownItem;
use crate::encode::responses::known_items::Listing;
use crate::encode::responses::known_items::SourceItemKey;
use crate::encode::responses::known_items::SourceItemKind;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::member_of;
use crate::json::members::string;
use crate::model::unmodelled::ItemPlace;
use crate::model::unmodelled::SentItem;
use crate::model::unmodelled::SentPart;
use std::borrow::Cow;
use std::mem;
use std::sync::Arc;

/// Returns the item of the given kind that the source opened at this index, and the number of earlier items at
/// that index. If there are several items of that kind, returns the one with this id, or the last one if no item
/// has that id.
fn sent_item<'a>(
    passed: &'a PassedThrough,
    kind: &str,
    at: Option<i64>,
    id: Option<&str>,
) -> Option<(usize, &'a AddedItem)> {
    let at_index = passed.added.get(&at?)?;
    let is_of_kind = |item: &&AddedItem| item.kind.as_deref() == Some(kind);
    let of_kind = || {
        at_index
            .iter()
            .enumerate()
            .filter(|(_, item)| is_of_kind(item))
    };
    of_kind()
        .rfind(|(_, item)| item.id.as_deref() == id)
        .or_else(|| of_kind().next_back())
}

/// Returns the item at an index as clients store it. Returns `None` if the source did not open an item of that kind, or
/// if the item's id is not kept. Also returns the item's index if its opening event passed through.
pub(crate) fn as_added(
    context: &EncodeContext,
    kind: &str,
    (at, id): (Option<i64>, Option<&str>),
) -> (Option<AddedItem>, Option<i64>) {
    let passed = &context.passed;
    let Some((before, known)) = sent_item(passed, kind, at, id) else {
        return (None, None);
    };
    let has_passed = |at: &i64| before == 0 && passed.announced.contains(at);
    let announced = at.filter(has_passed);
    let is_kept = announced.is_some() || passed.index.is_some() || before > 0;
    (is_kept.then(|| known.clone()), announced)
}

/// Returns the key of an item from a source in the same dialect.
fn source_key(
    passed: &PassedThrough,
    kind: SourceItemKind,
    (at, id): (Option<i64>, Option<&str>),
) -> SourceItemKey {
    let Some(at) = at else {
        return SourceItemKey::Id(id.unwrap_or_default().to_owned(), kind);
    };
    let before = sent_item(passed, kind.word(), Some(at), id).map_or(0, |(before, _)| before);
    SourceItemKey::Index(at, before, kind)
}

impl Items {
    /// Opens a part inside its item. Returns the positions of the item and of the part. The part has no position until
    /// it is written.
    pub(crate) fn open_own(
        &mut self,
        context: &mut EncodeContext,
        number: u32,
        body: Body,
    ) -> (usize, Option<usize>) {
        let PassedThrough { at, sub, index, .. } = context.passed;
        let id = context.passed.item_id.clone();
        let reasons = matches!(body, Body::Summary | Body::Reasoning);
        let item = self.own_item(context, &body, (at, id.as_deref()), index);
        if let Some(item) = self.all.get_mut(item) {
            item.numbers.push(number);
            item.open.insert(number);
        }
        self.item_of.insert(number, item);
        if sub.is_none() && reasons {
            return (item, None);
        }
        self.write_others_before(context, item, &body);
        // Clients append parts to an item, so the source's index is valid only as long as the source's events pass
        // through.
        let free = self.free_sub(item, &body, sub.filter(|_| index.is_some()));
        context.passed.moved |= sub.is_some_and(|sub| sub != free);
        (item, Some(self.begin(context, item, number, body, free)))
    }

    /// Returns the open item with these ids and index in the source. Opens the item if it is not open yet. `index` is
    /// the index to keep.
    pub(crate) fn own_item(
        &mut self,
        context: &mut EncodeContext,
        body: &Body,
        (at, id): (Option<i64>, Option<&str>),
        index: Option<i64>,
    ) -> usize {
        let kind = match body {
            Body::Summary | Body::Reasoning => SourceItemKind::Reasoning,
            _ => SourceItemKind::Message,
        };
        let key = source_key(&context.passed, kind, (at, id));
        self.end_idle_items(context, Some(&key), true);
        context.passed.moved = false;
        let ended = self.held.get(&key).filter(|_| index.is_none());
        let ended = ended.and_then(|item| self.all.get(*item));
        if let Some(turn) = ended
            .filter(|item| item.has_ended)
            .and_then(|item| item.turn)
        {
            self.leave(context, turn, true);
        }
        let item = match self.held.get(&key) {
            Some(item) => *item,
            None => {
                // An item that was ended because another item followed is resumed if the source continues it.
                let again = index.and_then(|_| self.left.get(&key).copied());
                if let Some(item) = again {
                    self.resume(item);
                }
                let item = again.unwrap_or_else(|| {
                    // Clients do not add to an item whose closing event they have read. If the source does, the rest is
                    // a new item.
                    let ended = self.left.get(&key).and_then(|item| self.all.get(*item));
                    let is_rest = ended.is_some();
                    self.continued.extend(ended.map(|item| item.index));
                    let (added, announced) = match is_rest {
                        true => (None, None),
                        false => as_added(context, body.kind(), (at, id)),
                    };
                    let sent = (id.filter(|_| !is_rest), announced.or(index));
                    let members = self.unopened_members(&key);
                    let item = self.add(context, body, sent, (added, announced), members);
                    self.known.add(id, at, &KnownItem::Written(item));
                    self.list_others(item);
                    item
                });
                self.hold(key, item);
                item
            }
        };
        if let Some(item) = self.all.get_mut(item) {
            item.status = Status::InProgress;
            if let Some(turn) = item.turn {
                self.idle.remove(&turn);
            }
        }
        item
    }

    /// Adds the first part to an item, and returns the part's position in `parts`.
    pub(crate) fn fill(
        &mut self,
        context: &mut EncodeContext,
        item: usize,
        number: u32,
        body: Body,
    ) -> usize {
        self.write_others_before(context, item, &body);
        let sub = self.free_sub(item, &body, None);
        self.begin(context, item, number, body, sub)
    }

    /// Removes a part that ended without text from the item's open parts.
    pub(crate) fn drop_bare(&mut self, item: usize, number: u32) {
        if let Some(item) = self.all.get_mut(item) {
            item.open.remove(&number);
        }
        self.mark_idle(item);
    }

    /// Removes and returns the members of an item that is being opened.
    fn unopened_members(&mut self, key: &SourceItemKey) -> ItemMembers {
        let members = self.unopened.get_mut(key).map(mem::take);
        self.unopened.remove(key);
        members.unwrap_or_default()
    }

    /// Stores the members of an item from the source that the encoder does not write itself.
    pub(crate) fn keep_members(&mut self, context: &mut EncodeContext, sent: &SentItem<'_>) {
        let members = ItemMembers::of(context, sent.kind, sent.item);
        let kind = match sent.kind {
            "message" => SourceItemKind::Message,
            "reasoning" => SourceItemKind::Reasoning,
            _ => return self.current = Some(members), // the events of a call follow
        };
        let raw = Raw {
            text: sent.item,
            kind: Kind::Object,
        };
        let id = member_of(raw, "id").and_then(string);
        let id = id.filter(|id| FACTS.is_id(id));
        let key = source_key(&context.passed, kind, (sent.index, id.as_deref()));
        let item = Arc::new(AnnouncedItem {
            kind,
            at: sent.index,
            id: id.map(Cow::into_owned),
        });
        match self.known_item(&key, &item) {
            Some(item) => {
                if let Some(item) = self.all.get_mut(item) {
                    item.members = members;
                }
                self.list_others(item);
            }
            None => {
                let announced = KnownItem::Announced(Arc::clone(&item));
                self.known.add(item.id.as_deref(), item.at, &announced);
                self.unopened.remove(&key);
                if !members.is_empty() {
                    _ = self.unopened.insert(key.clone(), members);
                }
            }
        }
        self.listing = Some(Listing {
            key,
            item,
            index: context.passed.index,
            ends: sent.place != ItemPlace::Added,
        });
    }

    fn known_item(&self, key: &SourceItemKey, item: &AnnouncedItem) -> Option<usize> {
        let known = self.held.get(key).or_else(|| self.left.get(key)).copied();
        let by_id = || match self.known.by_id.get(item.id.as_deref()?)? {
            KnownItem::Written(item) => Some(*item),
            _ => None,
        };
        let is_same = |known: &usize| {
            let known = self.all.get(*known);
            known.is_some_and(|known| known.body.kind() == item.kind.word())
        };
        known.or_else(|| by_id().filter(is_same))
    }

    /// Stores the content parts that are written as the item lists them.
    fn list_others(&mut self, item: usize) {
        if let Some(item) = self.all.get_mut(item) {
            let listed = mem::take(&mut item.members.content.others);
            item.others.list(listed);
        }
    }

    /// Writes the content parts of the source's item that are not written from events, and ends them if the item ends.
    pub(crate) fn end_listing(&mut self, context: &mut EncodeContext) {
        let Some(Listing {
            key,
            item: sent,
            index,
            ends,
        }) = self.listing.take()
        else {
            return;
        };
        let item = self.known_item(&key, &sent).or_else(|| {
            let members = self.unopened.get(&key)?;
            let has_address = sent.at.is_some() || sent.id.is_some();
            let is_empty = ends && members.has_no_content && has_address;
            let is_opened = is_empty || !members.content.others.is_empty();
            is_opened.then(|| {
                let address = (sent.at, sent.id.as_deref());
                self.own_item(context, &sent.kind.body(), address, index)
            })
        });
        let Some(item) = item else {
            return;
        };
        context.passed.index = index;
        let record = self.all.get(item);
        let Some(turn) = record.and_then(|item| item.turn) else {
            // Clients have the finished item, so only the output of the response contains a part that it lacks.
            return self.list_late_others(context, item);
        };
        let is_bare = record.is_some_and(|item| item.numbers.is_empty());
        if ends {
            self.end_others(context, item);
        }
        self.write_others(context, item, usize::MAX, ends);
        if ends && is_bare {
            self.leave(context, turn, true);
        } else if ends {
            self.mark_idle(item);
        }
    }

    fn list_late_others(&mut self, context: &mut EncodeContext, item: usize) {
        while let Some(part) = self.next_other(item, usize::MAX) {
            let position = self.add_other(context, item, Some(part.position), part.json);
            if let Some(item) = self.all.get_mut(item) {
                item.others.end(position);
            }
        }
    }

    /// Writes the content parts that the source's item lists before the next part that is written from events.
    fn write_others_before(&mut self, context: &mut EncodeContext, item: usize, body: &Body) {
        if *body != Body::Summary {
            let record = self.all.get(item);
            let written = record.map_or(0, |item| item.part_indexes(body).written);
            let ends = self.listing.as_ref().is_none_or(|listing| listing.ends);
            self.write_others(context, item, written, ends);
        }
    }

    /// Writes the content parts of an item that have at most `most` parts before them that are written from events.
    /// `ends` is true if the source's item ends, and the parts with it.
    fn write_others(&mut self, context: &mut EncodeContext, item: usize, most: usize, ends: bool) {
        while let Some(part) = self.next_other(item, most) {
            let position = self.add_other(context, item, Some(part.position), part.json);
            self.other(context, item, position, "response.content_part.added");
            if ends {
                self.end_other(context, item, position);
            }
        }
    }

    /// Removes and returns the next content part that waits with at most `most` written parts before it.
    fn next_other(&mut self, item: usize, most: usize) -> Option<ListedPart> {
        let waiting = &mut self.all.get_mut(item)?.others.waiting;
        waiting.front().filter(|part| part.before <= most)?;
        waiting.pop_front()
    }

    /// Ends the content parts of an item that are still open.
    fn end_others(&mut self, context: &mut EncodeContext, item: usize) {
        let others = |items: &Items| items.all.get(item).map_or(0, |item| item.others.open);
        if others(self) == 0 {
            return;
        }
        let count = self.all.get(item).map_or(0, |item| item.others.all.len());
        for position in 0..count {
            self.end_other(context, item, position);
        }
    }

    fn end_other(&mut self, context: &mut EncodeContext, item: usize, position: usize) {
        let record = self.all.get_mut(item);
        if record.is_some_and(|item| item.others.end(position)) {
            self.other(context, item, position, "response.content_part.done");
        }
    }

    /// Adds a content part to an item. `sent` is the part's index in the source.
    fn add_other(
        &mut self,
        context: &mut EncodeContext,
        item: usize,
        sent: Option<i64>,
        json: String,
    ) -> usize {
        // As long as the source's events pass through, clients have the part at the source's index.
        let kept = sent.filter(|_| context.passed.index.is_some());
        let Some(record) = self.all.get_mut(item) else {
            return 0;
        };
        let [indexes, _] = &mut record.subs;
        let sub = indexes.free(kept);
        indexes.take(sub);
        context.passed.moved |= kept.is_some_and(|kept| kept != sub);
        record.others.add(sent, sub, json)
    }

    /// Writes an event about a content part of a type that the encoder does not write itself.
    pub(crate) fn other_part(&mut self, context: &mut EncodeContext, sent: &SentPart<'_>) {
        if !context.passed.keeps(sent.part.len()) {
            return context.losses.note("metadata");
        }
        let index = context.passed.index;
        let reasons = sent_item(&context.passed, "reasoning", sent.index, sent.item_id).is_some();
        let kind = if reasons {
            SourceItemKind::Reasoning
        } else {
            SourceItemKind::Message
        };
        let item = self.own_item(context, &kind.body(), (sent.index, sent.item_id), index);
        let record = self.all.get(item);
        let known = record.and_then(|item| item.others.find(sent.sub, sent.closes));
        let json = sent.part.to_owned();
        let position = match known {
            Some(position) => {
                if let Some(item) = self.all.get_mut(item) {
                    item.others.update(position, json);
                }
                position
            }
            None => {
                let position = self.add_other(context, item, sent.sub, json);
                self.other(context, item, position, "response.content_part.added");
                position
            }
        };
        if sent.closes {
            self.end_other(context, item, position);
        }
        self.mark_idle(item);
    }

    /// Writes the event that opens or closes a part which is written as it was sent.
    fn other(&mut self, context: &mut EncodeContext, item: usize, position: usize, kind: &str) {
        let to = self.frame(context, kind);
        let Some(item) = self.all.get(item) else {
            return;
        };
        to.raw(",\"item_id\":").text_or_null(item.id.as_deref());
        to.raw(",\"output_index\":").number(item.index);
        if let Some(part) = item.others.all.get(position) {
            to.raw(",\"content_index\":").number(part.sub);
            spliced(to.raw(",\"part\":"), &part.json);
        }
        to.raw("}").end();
    }

    /// Stores the members of the source's call that is being written, if the call's item was already opened.
    pub(crate) fn keep_call_members(&mut self, position: usize) {
        let item = self.item_of(position);
        if let Some(item) = item.and_then(|item| self.all.get_mut(item))
            && let Some(members) = self.current.take()
        {
            item.members = members;
        }
    }

    fn hold(&mut self, key: SourceItemKey, item: usize) {
        let turn = self.next_turn;
        self.next_turn += 1;
        if let Some(record) = self.all.get_mut(item) {
            record.turn = Some(turn);
        }
        self.held.insert(key.clone(), item);
        self.turns.insert(turn, (key, item));
    }

    /// If all parts of the item have ended, records that the item ends as soon as another item or event follows.
    pub(crate) fn mark_idle(&mut self, item: usize) {
        let has_ended = |item: &&Item| item.open.is_empty() && item.others.open == 0;
        let item = self.all.get(item).filter(has_ended);
        if let Some(turn) = item.and_then(|item| item.turn) {
            self.idle.insert(turn);
        }
    }

    /// Ends the items whose parts have all ended, because another item or event follows. If `whole` is false, ends all
    /// items as incomplete. `but` is the key of an item that continues.
    pub(crate) fn end_idle_items(
        &mut self,
        context: &mut EncodeContext,
        but: Option<&SourceItemKey>,
        whole: bool,
    ) {
        for number in context.passed.just_ended.drain(..) {
            let item = self.item_of.get(&number);
            if let Some(item) = item.and_then(|item| self.all.get_mut(*item)) {
                item.has_ended = true;
            }
        }
        let but = but.and_then(|key| self.held.get(key)).copied();
        let but = but.and_then(|item| self.all.get(item)?.turn);
        let done: Vec<u64> = if whole {
            self.idle.iter().copied().collect()
        } else {
            self.turns.keys().copied().collect()
        };
        for turn in done.into_iter().filter(|turn| Some(*turn) != but) {
            self.leave(context, turn, whole);
        }
    }

    /// Ends the item that was opened or resumed at this turn.
    fn leave(&mut self, context: &mut EncodeContext, turn: u64, whole: bool) {
        self.idle.remove(&turn);
        let Some((key, item)) = self.turns.remove(&turn) else {
            return;
        };
        self.end_others(context, item);
        self.write_others(context, item, usize::MAX, true);
        if let Some(record) = self.all.get_mut(item) {
            record.turn = None;
            record.status = Status::of(whole);
        }
        self.held.remove(&key);
        self.left.insert(key, item);
        if !self.all.get(item).is_some_and(|item| item.resumed) {
            self.end_item(context, item);
        }
    }

    fn resume(&mut self, item: usize) {
        if let Some(record) = self.all.get_mut(item)
            && !mem::replace(&mut record.resumed, true)
        {
            self.resumed.push(item);
        }
    }

    /// Writes a second `output_item.done` event for each resumed item. The second `output_item.done` events are written
    /// only at the end, because an item can be resumed once for each of its parts.
    pub(crate) fn end_resumed(&mut self, context: &mut EncodeContext) {
        for item in mem::take(&mut self.resumed) {
            let Some(record) = self.all.get_mut(item) else {
                continue;
            };
            if record.turn.is_some() {
                self.resumed.push(item);
            } else {
                record.resumed = false;
                self.end_item(context, item);
            }
        }
    }

    /// Writes an item's `output_item.done` event, unless the source's own event passed through.
    fn end_item(&mut self, context: &mut EncodeContext, item: usize) {
        if !self.all.get(item).is_some_and(|item| item.has_ended) {
            self.item(context, "response.output_item.done", item);
        }
    }

    pub(crate) fn encrypt(&mut self, item: usize, content: &str) {
        if let Some(item) = self.all.get_mut(item) {
            item.encrypted = Some(content.to_owned());
        }
    }

    pub(crate) fn item_of(&self, position: usize) -> Option<usize> {
        self.parts.get(position).map(|part| part.item)
    }

    /// Returns `sent` as the index of a new part, or the next free index if another part already has the index `sent`.
    fn free_sub(&self, item: usize, body: &Body, sent: Option<i64>) -> i64 {
        let item = self.all.get(item);
        item.map_or(0, |item| item.part_indexes(body).free(sent))
    }
}

impl Items {
    /// Calls `give` for all finished items in index order, with the index, whether the item's end passed through, and
    /// the item's JSON.
    pub(crate) fn each(&self, mut give: impl FnMut(i64, bool, String), context: &EncodeContext) {
        let is_done = |item: &usize| {
            let item = self.all.get(*item);
            item.is_some_and(|item| item.status != Status::InProgress)
        };
        let mut order: Vec<usize> = (0..self.all.len()).filter(is_done).collect();
        order.sort_by_key(|item| self.all.get(*item).map(|item| item.index));
        for item in order {
            let mut text = Writer::default();
            self.write_item(&mut text, item);
            let index = self.all.get(item).map_or(0, |item| item.index);
            give(index, self.has_ended(context, item), text.into_text());
        }
    }

    fn has_ended(&self, context: &EncodeContext, item: usize) -> bool {
        let numbers = self.all.get(item).map(|item| item.numbers.iter());
        let mut numbers = numbers.into_iter().flatten();
        numbers.any(|number| context.passed.ended.contains(number))
    }

    /// Writes the item as JSON, with its closed parts. An item that was just added has no parts.
    pub(crate) fn write_item(&self, to: &mut Writer, item: usize) {
        let Some(item) = self.all.get(item) else {
            return;
        };
        let parts = item
            .parts
            .iter()
            .filter_map(|position| self.parts.get(*position));
        let mut parts: Vec<&ItemContent> =
            parts.filter(|part| part.end == PartEnd::Closed).collect();
        parts.sort_by_key(|part| part.sub);
        let mut others: Vec<&OtherPart> = item.others.all.iter().collect();
        others.sort_by_key(|part| part.sub);
        let list = |to: &mut Writer, others: &[&OtherPart], of: fn(&Body) -> bool| {
            let mut mark = "";
            let mut others = others.iter().peekable();
            for part in parts.iter().filter(|part| of(&part.body)) {
                while let Some(other) = others.next_if(|other| other.sub < part.sub) {
                    spliced(to.raw(mark), &other.json);
                    mark = ",";
                }
                to.raw(mark);
                self.write_part(to, part);
                mark = ",";
            }
            for other in others {
                spliced(to.raw(mark), &other.json);
                mark = ",";
            }
        };
        let status = match item.status {
            Status::Completed if item.members.is_incomplete => Status::Incomplete,
            status => status,
        };
        let status_word = status.word();
        match &item.body {
            Body::Text(..) | Body::Refusal => {
                to.raw("{\"type\":\"message\",\"id\":")
                    .text_or_null(item.id.as_deref());
                to.raw(",\"status\":").string(status_word);
                to.raw(",\"role\":\"assistant\",\"content\":[");
                list(to, &others, |_| true);
                to.raw("]");
            }
            Body::Summary | Body::Reasoning => {
                to.raw("{\"type\":\"reasoning\",\"id\":")
                    .text_or_null(item.id.as_deref());
                to.raw(",\"summary\":[");
                list(to, &[], |body| *body == Body::Summary);
                if item.has_content || !others.is_empty() {
                    to.raw("],\"content\":[");
                    list(to, &others, |body| *body != Body::Summary);
                }
                to.raw("]");
                if let Some(encrypted) = &item.encrypted {
                    to.raw(",\"encrypted_content\":").string(encrypted);
                }
                if status == Status::Incomplete || item.members.has("status") {
                    to.raw(",\"status\":").string(status_word);
                }
            }
            Body::Call {
                custom,
                call_id,
                name,
            } => {
                let (kind, member) = if *custom {
                    ("custom_tool_call", "input")
                } else {
                    ("function_call", "arguments")
                };
                to.raw("{\"type\":").string(kind);
                to.raw(",\"id\":").text_or_null(item.id.as_deref());
                to.raw(",\"call_id\":").string(call_id);
                to.raw(",\"name\":").string(name).raw(",").string(member);
                to.raw(":\"");
                if let Some(part) = parts.first() {
                    to.raw(&part.text);
                }
                to.raw("\",\"status\":").string(item.status.word());
            }
        }
        let mut written = vec!["status"];
        if item.encrypted.is_some() {
            written.push("encrypted_content");
        }
        join(to, &item.members.item, &written);
        to.raw("}");
    }
}
