//! Items of the source's own, under the ids and at the places that it gave them, and all items as they are in the end.
//!
//! An item of the source's own may have several parts, and is done when something else comes. Knows the wire of items as
//! `items` does.

use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::passed_through::AddedItem;
use crate::encode::common::passed_through::PassedThrough;
use crate::encode::common::writer::Writer;
use crate::encode::responses::body::Body;
use crate::encode::responses::items::ItemContent;
use crate::encode::responses::items::Items;
use crate::encode::responses::items::PartEnd;
use crate::encode::responses::items::Sort;
use crate::encode::responses::items::SourceItemKey;
use crate::encode::responses::items::Status;
use std::mem;

/// The item at hand as clients keep it, if it is of that kind; and its index, if its opening has passed.
pub(crate) fn as_added(job: &EncodeContext, kind: &str) -> (Option<AddedItem>, Option<i64>) {
    let PassedThrough {
        at,
        index,
        added,
        announced,
        ..
    } = &job.passed;
    let announced = at.filter(|at| announced.contains(at));
    let known = at.and_then(|at| added.get(&at));
    let known = known.filter(|item| item.kind.as_deref() == Some(kind));
    match known.filter(|_| announced.is_some() || index.is_some()) {
        Some(known) => (Some(known.clone()), announced),
        None => (None, None),
    }
}

impl Items {
    /// A part opens inside of its item; its place, `None` while it is an item without a part.
    pub(crate) fn open_own(
        &mut self,
        job: &mut EncodeContext,
        number: u32,
        body: Body,
    ) -> (usize, Option<usize>) {
        let PassedThrough { at, sub, index, .. } = job.passed;
        let id = job.passed.item_id.clone();
        let reasons = matches!(body, Body::Summary | Body::Reasoning);
        let sort = if reasons {
            Sort::Reasoning
        } else {
            Sort::Message
        };
        let key = match at {
            Some(at) => SourceItemKey::Index(at, sort),
            None => SourceItemKey::Id(id.clone().unwrap_or_default(), sort),
        };
        self.leave(job, Some(&key), true);
        job.passed.moved = false;
        let item = match self.held.get(&key) {
            Some(item) => *item,
            None => {
                // What came between may have been no end of it.
                let again = index.and_then(|_| self.left.get(&key).copied());
                if let Some(item) = again {
                    self.resume(item);
                }
                let item = again.unwrap_or_else(|| {
                    let (added, announced) = as_added(job, body.kind());
                    let sent = (id.as_deref(), announced.or(index));
                    self.add(job, &body, sent, (added, announced))
                });
                self.hold(key, item);
                item
            }
        };
        if let Some(item) = self.all.get_mut(item) {
            item.status = Status::InProgress;
            item.numbers.push(number);
            item.open.insert(number);
            if let Some(turn) = item.turn {
                self.idle.remove(&turn);
            }
        }
        self.item_of.insert(number, item);
        if sub.is_none() && reasons {
            return (item, None);
        }
        let free = self.free_sub(item, &body, sub);
        job.passed.moved |= sub.is_some_and(|sub| sub != free);
        (item, Some(self.begin(job, item, number, body, free)))
    }

    /// A part of an item that had none.
    pub(crate) fn fill(
        &mut self,
        job: &mut EncodeContext,
        item: usize,
        number: u32,
        body: Body,
    ) -> usize {
        let sub = self.free_sub(item, &body, None);
        self.begin(job, item, number, body, sub)
    }

    /// Such a part is over, and nothing was said of it.
    pub(crate) fn drop_bare(&mut self, item: usize, number: u32) {
        if let Some(item) = self.all.get_mut(item) {
            item.open.remove(&number);
        }
        self.rest(item);
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

    /// A part of the item is over: it may be done when something else comes.
    pub(crate) fn rest(&mut self, item: usize) {
        let item = self.all.get(item).filter(|item| item.open.is_empty());
        if let Some(turn) = item.and_then(|item| item.turn) {
            self.idle.insert(turn);
        }
    }

    /// Items are done when something else comes: those whose parts are all over, or (`whole` false) all of them.
    pub(crate) fn leave(
        &mut self,
        job: &mut EncodeContext,
        but: Option<&SourceItemKey>,
        whole: bool,
    ) {
        for number in job.passed.just_ended.drain(..) {
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
            self.idle.remove(&turn);
            let Some((key, item)) = self.turns.remove(&turn) else {
                continue;
            };
            if let Some(record) = self.all.get_mut(item) {
                record.turn = None;
                record.status = Status::of(whole);
            }
            self.held.remove(&key);
            self.left.insert(key, item);
            if !self.all.get(item).is_some_and(|item| item.resumed) {
                self.end_item(job, item);
            }
        }
    }

    fn resume(&mut self, item: usize) {
        if let Some(record) = self.all.get_mut(item)
            && !mem::replace(&mut record.resumed, true)
        {
            self.resumed.push(item);
        }
    }

    /// Writes the done events of resumed items: once, as an item may have many parts and resume as often.
    pub(crate) fn end_resumed(&mut self, job: &mut EncodeContext) {
        for item in mem::take(&mut self.resumed) {
            let Some(record) = self.all.get_mut(item) else {
                continue;
            };
            if record.turn.is_some() {
                self.resumed.push(item);
            } else {
                record.resumed = false;
                self.end_item(job, item);
            }
        }
    }

    /// The done event of an item, unless the source's own passed.
    fn end_item(&mut self, job: &mut EncodeContext, item: usize) {
        if !self.all.get(item).is_some_and(|item| item.has_ended) {
            self.item(job, "response.output_item.done", item);
        }
    }

    pub(crate) fn encrypt(&mut self, item: usize, content: &str) {
        if let Some(item) = self.all.get_mut(item) {
            item.encrypted = Some(content.to_owned());
        }
    }

    pub(crate) fn item_of(&self, place: usize) -> Option<usize> {
        self.parts.get(place).map(|part| part.item)
    }

    /// The place of a new part: as sent, unless another one has it.
    fn free_sub(&self, item: usize, body: &Body, sent: Option<i64>) -> i64 {
        let item = self.all.get(item);
        item.map_or(0, |item| item.places(body).free(sent))
    }
}

impl Items {
    /// All items that are done, in order of their indexes, each as `write` has it.
    pub(crate) fn each(&self, mut give: impl FnMut(i64, bool, String), job: &EncodeContext) {
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
            give(index, self.has_ended(job, item), text.into_text());
        }
    }

    fn has_ended(&self, job: &EncodeContext, item: usize) -> bool {
        let numbers = self.all.get(item).map(|item| item.numbers.iter());
        let mut numbers = numbers.into_iter().flatten();
        numbers.any(|number| job.passed.ended.contains(number))
    }

    /// The item as JSON; as it was added, it has no part yet.
    pub(crate) fn write_item(&self, to: &mut Writer, item: usize) {
        let Some(item) = self.all.get(item) else {
            return;
        };
        let parts = item.parts.iter().filter_map(|place| self.parts.get(*place));
        let mut parts: Vec<&ItemContent> =
            parts.filter(|part| part.end == PartEnd::Closed).collect();
        parts.sort_by_key(|part| part.sub);
        let list = |to: &mut Writer, of: fn(&Body) -> bool| {
            let mut mark = "";
            for part in parts.iter().filter(|part| of(&part.body)) {
                to.raw(mark);
                part.body.part(to, &part.text);
                mark = ",";
            }
        };
        match &item.body {
            Body::Text(..) | Body::Refusal => {
                to.raw("{\"type\":\"message\",\"id\":")
                    .text_or_null(item.id.as_deref());
                to.raw(",\"status\":").string(item.status.word());
                to.raw(",\"role\":\"assistant\",\"content\":[");
                list(to, |_| true);
                to.raw("]}");
            }
            Body::Summary | Body::Reasoning => {
                to.raw("{\"type\":\"reasoning\",\"id\":")
                    .text_or_null(item.id.as_deref());
                to.raw(",\"summary\":[");
                list(to, |body| *body == Body::Summary);
                if item.has_content {
                    to.raw("],\"content\":[");
                    list(to, |body| *body != Body::Summary);
                }
                to.raw("]");
                if let Some(encrypted) = &item.encrypted {
                    to.raw(",\"encrypted_content\":").string(encrypted);
                }
                to.raw(if item.status == Status::Incomplete {
                    ",\"status\":\"incomplete\"}"
                } else {
                    "}"
                });
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
                to.raw("\",\"status\":").string(item.status.word()).raw("}");
            }
        }
    }
}
