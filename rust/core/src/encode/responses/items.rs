//! The output items of a Responses stream: the events of each, and what it comes to as JSON.
//!
//! Where another dialect is written, an item has one content part, so that every content index is 0. Knows the wire of items, not which part of the source is
//! which item. Order and members of the events are those of the published schema.

use crate::encode::common::citations::Citation;
use crate::encode::common::citations::citations;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::passed_through::AddedItem;
use crate::encode::common::same_json::is_value;
use crate::encode::common::writer::Writer;
use crate::encode::responses::body::Body;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    InProgress,
    Completed,
    Incomplete,
}

impl Status {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
            Status::Incomplete => "incomplete",
        }
    }
}

/// What an item of the source's own is found by: its index, or its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SourceItemKey {
    Index(i64, Sort),
    Id(String, Sort),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sort {
    Message,
    Reasoning,
}

/// One output item.
#[derive(Debug)]
pub(crate) struct Item {
    /// `None`: the source's own has none.
    pub(crate) id: Option<String>,
    /// Its output index.
    pub(crate) index: i64,
    /// Of what it was opened with.
    pub(crate) body: Body,
    /// Reasoning only: it has a list of contents.
    pub(crate) has_content: bool,
    pub(crate) encrypted: Option<String>,
    /// Places of its parts.
    pub(crate) parts: Vec<usize>,
    /// What the source calls them, and those of them that are not over.
    pub(crate) numbers: Vec<u32>,
    pub(crate) open: Set<u32>,
    /// The end of one of them has passed.
    pub(crate) has_ended: bool,
    /// It continued after its done event, which is written once more, at the end.
    pub(crate) resumed: bool,
    /// The places that its parts have: of all but summaries, and of those.
    pub(crate) subs: [Places; 2],
    /// While it is held, when that began.
    pub(crate) turn: Option<u64>,
    pub(crate) status: Status,
}

impl Item {
    pub(crate) fn places(&self, body: &Body) -> &Places {
        let [others, summaries] = &self.subs;
        if *body == Body::Summary {
            summaries
        } else {
            others
        }
    }
}

/// Places of parts in a list.
#[derive(Debug, Default)]
pub(crate) struct Places {
    taken: Set<i64>,
    /// Behind all of them.
    next: i64,
}

impl Places {
    /// The place of a new part: as sent, unless another one has it.
    pub(crate) fn free(&self, sent: Option<i64>) -> i64 {
        sent.filter(|sent| !self.taken.contains(sent))
            .unwrap_or(self.next)
    }

    fn take(&mut self, place: i64) {
        self.next = match self.taken.is_empty() {
            true => place.saturating_add(1),
            false => self.next.max(place.saturating_add(1)),
        };
        self.taken.insert(place);
    }
}

/// A text of an item, or the arguments of a call.
#[derive(Debug)]
pub(crate) struct ItemContent {
    pub(crate) item: usize,
    /// What the source calls it.
    pub(crate) number: u32,
    pub(crate) sub: i64,
    /// As the members that every event of its text has.
    pub(crate) place: String,
    pub(crate) body: Body,
    /// As far as it came; once the part is closed, all of it, as it stands between the quotes of JSON.
    pub(crate) text: String,
    pub(crate) end: PartEnd,
    /// The source took the text back: nothing is streamed until its last word.
    pub(crate) reset: bool,
}

/// How far a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartEnd {
    Open,
    Closed,
    /// Its item does not have it, though text of it was streamed: no event closes it, and no list has it.
    Retracted,
}

/// The items of one response, and the numbers of its events.
#[derive(Debug, Default)]
pub(crate) struct Items {
    pub(crate) all: Vec<Item>,
    pub(crate) parts: Vec<ItemContent>,
    /// Indexes of items, and the one behind them.
    taken: Set<i64>,
    next: i64,
    /// Items of the source's own that are not done, by what they are found by, and in their order.
    pub(crate) held: Map<SourceItemKey, usize>,
    pub(crate) turns: BTreeMap<u64, (SourceItemKey, usize)>,
    /// Those of them whose parts are all over.
    pub(crate) idle: BTreeSet<u64>,
    pub(crate) next_turn: u64,
    /// And those that are done.
    pub(crate) left: Map<SourceItemKey, usize>,
    /// The items of the source's parts.
    pub(crate) item_of: Map<u32, usize>,
    /// Items that continued after their done event.
    pub(crate) resumed: Vec<usize>,
}

impl Items {
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut ItemContent> {
        self.parts.get_mut(place)
    }

    /// An open call that a reader would run if it does not look at its status: AI SDK takes no text for `{}`.
    pub(crate) fn could_be_run(&self) -> bool {
        let mut open = self.parts.iter().filter(|part| part.end == PartEnd::Open);
        open.any(|part| match part.body {
            Body::Call { custom, .. } => {
                custom || part.text.trim().is_empty() || is_value(&part.text)
            }
            _ => false,
        })
    }

    /// The beginning of the next event.
    pub(crate) fn frame<'j>(&mut self, job: &'j mut EncodeContext, kind: &str) -> &'j mut Writer {
        self.named(job, kind, "")
    }

    /// The same, of an event whose name has two halves.
    fn named<'j>(&mut self, job: &'j mut EncodeContext, kind: &str, end: &str) -> &'j mut Writer {
        let to = job.writer.raw("event: ").raw(kind).raw(end);
        to.raw("\ndata: {\"type\":\"").raw(kind).raw(end).raw("\"");
        numbered(job)
    }

    /// An event of a part or of its text.
    fn of<'j>(
        &mut self,
        job: &'j mut EncodeContext,
        (kind, end): (&str, &str),
        place: usize,
    ) -> &'j mut Writer {
        let to = self.named(job, kind, end);
        if let Some(part) = self.parts.get(place) {
            to.raw(&part.place);
        }
        to
    }

    /// A new item with its one part; the part's place. `sent`: the id and the index that the source gave it.
    pub(crate) fn open(
        &mut self,
        job: &mut EncodeContext,
        number: u32,
        body: Body,
        sent: (Option<&str>, Option<i64>),
        added: Option<AddedItem>,
    ) -> usize {
        let item = self.add(job, &body, sent, (added, None));
        if let Some(item) = self.all.get_mut(item) {
            item.numbers.push(number);
        }
        self.begin(job, item, number, body, 0)
    }

    /// `added`: the item as clients keep it; `announced`: the index under which its opening has passed.
    pub(crate) fn add(
        &mut self,
        job: &mut EncodeContext,
        body: &Body,
        (id, sent): (Option<&str>, Option<i64>),
        (added, announced): (Option<AddedItem>, Option<i64>),
    ) -> usize {
        let id = match added {
            Some(added) => added.id,
            None => Some(id.map_or_else(|| job.mint.make(body.prefix()), str::to_owned)),
        };
        self.next = self.next.max(job.passed.behind);
        let free = sent.filter(|sent| !self.taken.contains(sent));
        let index = free.unwrap_or(self.next);
        job.passed.moved = free != sent;
        self.taken.insert(index);
        self.next = self.next.max(index.saturating_add(1));
        let item = self.all.len();
        self.all.push(Item {
            id,
            index,
            body: body.clone(),
            has_content: *body == Body::Reasoning,
            encrypted: None,
            parts: Vec::new(),
            numbers: Vec::new(),
            open: Set::default(),
            has_ended: false,
            resumed: false,
            subs: Default::default(),
            turn: None,
            status: Status::InProgress,
        });
        if announced != Some(index) {
            self.item(job, "response.output_item.added", item);
        }
        item
    }

    pub(crate) fn begin(
        &mut self,
        job: &mut EncodeContext,
        item: usize,
        number: u32,
        body: Body,
        sub: i64,
    ) -> usize {
        let place = self.parts.len();
        let mut members = Writer::default();
        if let Some(record) = self.all.get_mut(item) {
            record.has_content |= body == Body::Reasoning;
            record.parts.push(place);
            let [others, summaries] = &mut record.subs;
            let places = if body == Body::Summary {
                summaries
            } else {
                others
            };
            places.take(sub);
            members
                .raw(",\"item_id\":")
                .text_or_null(record.id.as_deref());
            members.raw(",\"output_index\":").number(record.index);
        }
        if let Some((_, index)) = body.around() {
            members.raw(",\"").raw(index).raw("\":").number(sub);
        }
        self.parts.push(ItemContent {
            item,
            number,
            sub,
            place: members.into_text(),
            body,
            text: String::new(),
            end: PartEnd::Open,
            reset: false,
        });
        self.part(job, ".added", place);
        place
    }

    pub(crate) fn item(&mut self, job: &mut EncodeContext, kind: &str, item: usize) {
        let Some(record) = self.all.get(item) else {
            return;
        };
        let index = record.index;
        let to = self.frame(job, kind).raw(",\"output_index\":");
        to.number(index).raw(",\"item\":");
        self.write_item(to, item);
        to.raw("}").end();
    }

    fn part(&mut self, job: &mut EncodeContext, end: &str, place: usize) {
        let Some((kind, _)) = self.parts.get(place).and_then(|part| part.body.around()) else {
            return;
        };
        let to = self.of(job, (kind, end), place).raw(",\"part\":");
        if let Some(part) = self.parts.get(place) {
            part.body.part(to, &part.text);
        }
        to.raw("}").end();
    }

    /// A piece of a part's text.
    pub(crate) fn delta(&mut self, job: &mut EncodeContext, place: usize, text: &str) {
        let openresponses = job.options.openresponses;
        if text.is_empty() || !self.keep(place, text) {
            return;
        }
        if let Some(part) = self.parts.get(place) {
            let (head, end) = part.body.delta(openresponses);
            job.writer.raw(head);
            let to = numbered(job);
            to.raw(&part.place).raw(",\"delta\":");
            to.string(text).raw(end);
        }
    }

    /// Keeps it, unless the source took the text back.
    pub(crate) fn keep(&mut self, place: usize, text: &str) -> bool {
        let part = self.parts.get_mut(place).filter(|part| !part.reset);
        part.map(|part| part.text.push_str(text)).is_some()
    }

    /// The whole text is known: what is missing is streamed; what contradicts stands in the close alone.
    pub(crate) fn settle(&mut self, job: &mut EncodeContext, place: usize, text: &str) {
        let Some(part) = self.parts.get_mut(place) else {
            return;
        };
        match text.strip_prefix(part.text.as_str()) {
            Some(rest) => self.delta(job, place, rest),
            None => {
                if text.is_empty() && job.passed.own && part.body.around().is_some() {
                    part.end = PartEnd::Retracted;
                }
                text.clone_into(&mut part.text);
            }
        }
    }

    /// The citations of a text, if there is one; whether any is lost.
    pub(crate) fn cite_all(
        &mut self,
        job: &mut EncodeContext,
        place: Option<usize>,
        list: &str,
    ) -> bool {
        let (cited, others) = citations(list);
        let mut lost = others;
        for citation in &cited {
            let place = place.filter(|_| citation.start.is_some() && citation.end.is_some());
            match place {
                Some(place) if !job.cut => self.cite(job, place, citation),
                Some(_) => {}
                None => lost = true,
            }
        }
        lost
    }

    /// A citation of a text; the schema wants its place in the text.
    fn cite(&mut self, job: &mut EncodeContext, place: usize, citation: &Citation<'_>) {
        let (Some(start), Some(end)) = (citation.start, citation.end) else {
            return;
        };
        let mut annotation = Writer::default();
        annotation.raw("{\"type\":\"url_citation\",\"url\":");
        annotation.string(&citation.url);
        annotation.raw(",\"start_index\":").number(start);
        annotation.raw(",\"end_index\":").number(end);
        let title = citation.title.as_deref().unwrap_or_default();
        annotation.raw(",\"title\":").string(title).raw("}");
        let annotation = annotation.into_text();
        let Some(ItemContent {
            body: Body::Text(all, count),
            number,
            ..
        }) = self.parts.get_mut(place)
        else {
            return;
        };
        let has_passed = job.passed.closed.contains(number);
        let number = *count;
        if number > 0 {
            all.push(',');
        }
        all.push_str(&annotation);
        *count += 1;
        if has_passed {
            return;
        }
        let to = self.of(job, ("response.output_text.annotation", ".added"), place);
        to.raw(",\"annotation_index\":").number(number);
        to.raw(",\"annotation\":").raw(&annotation).raw("}").end();
    }

    /// The closing events of a part, unless they passed, and of its item, unless that is the source's own.
    pub(crate) fn close(&mut self, job: &mut EncodeContext, place: usize, whole: bool) {
        let openresponses = job.options.openresponses;
        let Some(part) = self.parts.get_mut(place) else {
            return;
        };
        let (item, number) = (part.item, part.number);
        let (kind, member, more) = part.body.events(openresponses);
        let is_call = part.body.around().is_none();
        let mut text = Writer::default();
        text.inner(&part.text);
        part.text = text.into_text();
        let is_retracted = part.end == PartEnd::Retracted;
        if !is_retracted {
            part.end = PartEnd::Closed;
        }
        if let Some(record) = self.all.get_mut(item) {
            if is_call || !job.passed.own {
                record.status = Status::of(whole);
            }
            record.open.remove(&number);
        }
        self.rest(item);
        if !(is_retracted || job.passed.closed.contains(&number)) {
            let to = self.of(job, (kind, ".done"), place);
            to.raw(",\"").raw(member).raw("\":\"");
            if let Some(part) = self.parts.get(place) {
                to.raw(&part.text);
            }
            to.raw("\"").raw(more).raw("}").end();
            self.part(job, ".done", place);
        }
        let is_done = if is_call {
            !job.passed.ended.contains(&number)
        } else {
            !job.passed.own
        };
        if is_done {
            self.item(job, "response.output_item.done", item);
        }
    }

    /// What is open ends as incomplete, in order.
    pub(crate) fn close_all(&mut self, job: &mut EncodeContext) {
        self.leave(job, None, true);
        for place in 0..self.parts.len() {
            if self
                .parts
                .get(place)
                .is_some_and(|part| part.end == PartEnd::Open)
            {
                self.close(job, place, false);
            }
        }
        self.leave(job, None, false);
        self.end_resumed(job);
    }
}

impl ItemContent {
    /// The call went out under this name and this id.
    pub(crate) fn is_call(&self, custom: bool, call_id: &str, name: &str) -> bool {
        self.body == Body::call(custom, call_id, name)
    }
}

impl Status {
    pub(crate) fn of(whole: bool) -> Status {
        if whole {
            Status::Completed
        } else {
            Status::Incomplete
        }
    }
}

/// The number of the next event, where its source numbers them.
fn numbered(job: &mut EncodeContext) -> &mut Writer {
    if let Some(number) = &mut job.passed.sequence {
        let to = job.writer.raw(",\"sequence_number\":");
        match i64::try_from(*number) {
            Ok(number) => to.number(number),
            Err(_) => to.raw(&number.to_string()),
        };
        *number += 1;
    }
    &mut job.writer
}
