//! The output items of a Responses stream: the events of each, and what it comes to as JSON.
//!
//! Where another dialect is written, an item has one content part, so that every content index is 0. Knows the wire of items, not which part of the source is
//! which item. Order and members of the events are those of the published schema.

use std::collections::{BTreeMap, BTreeSet};

use super::citations::{Citation, citations};
use super::job::Job;
use super::responses_body::Body;
use super::same::is_value;
use super::writer::Writer;
use crate::few::{Map, Set};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    InProgress,
    Completed,
    Incomplete,
}

impl Status {
    pub(super) fn word(self) -> &'static str {
        match self {
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
            Status::Incomplete => "incomplete",
        }
    }
}

/// What an item of the source's own is found by: its index, or its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Index(i64, Sort),
    Id(String, Sort),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sort {
    Message,
    Reasoning,
}

/// One output item.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: String,
    /// Its output index.
    pub(super) index: i64,
    /// Of what it was opened with.
    pub(super) body: Body,
    /// Reasoning only: it has a list of contents.
    pub(super) has_content: bool,
    pub(super) encrypted: Option<String>,
    /// Places of its parts.
    pub(super) parts: Vec<usize>,
    /// What the source calls them, and those of them that are not over.
    pub(super) numbers: Vec<u32>,
    pub(super) open: Set<u32>,
    /// The end of one of them has passed.
    pub(super) has_ended: bool,
    /// It continued after its done event, which is written once more, at the end.
    pub(super) resumed: bool,
    /// The places that its parts have: of all but summaries, and of those.
    pub(super) subs: [Places; 2],
    /// While it is held, when that began.
    pub(super) turn: Option<u64>,
    pub(super) status: Status,
}

impl Item {
    pub(super) fn places(&self, body: &Body) -> &Places {
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
pub(super) struct Places {
    taken: Set<i64>,
    /// Behind all of them.
    next: i64,
}

impl Places {
    /// The place of a new part: as sent, unless another one has it.
    pub(super) fn free(&self, sent: Option<i64>) -> i64 {
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
pub(super) struct Part {
    pub(super) item: usize,
    /// What the source calls it.
    pub(super) number: u32,
    pub(super) sub: i64,
    /// As the members that every event of its text has.
    pub(super) place: String,
    pub(super) body: Body,
    /// As far as it came; once the part is closed, all of it, as it stands between the quotes of JSON.
    pub(super) text: String,
    pub(super) is_closed: bool,
    /// The source took the text back: nothing is streamed until its last word.
    pub(super) reset: bool,
}

/// The items of one response, and the numbers of its events.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) all: Vec<Item>,
    pub(super) parts: Vec<Part>,
    /// Indexes of items, and the one behind them.
    taken: Set<i64>,
    next: i64,
    /// Items of the source's own that are not done, by what they are found by, and in their order.
    pub(super) held: Map<Key, usize>,
    pub(super) turns: BTreeMap<u64, (Key, usize)>,
    /// Those of them whose parts are all over.
    pub(super) idle: BTreeSet<u64>,
    pub(super) next_turn: u64,
    /// And those that are done.
    pub(super) left: Map<Key, usize>,
    /// The items of the source's parts.
    pub(super) item_of: Map<u32, usize>,
    /// Items that continued after their done event.
    pub(super) resumed: Vec<usize>,
}

impl Items {
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Part> {
        self.parts.get_mut(place)
    }

    /// An open call that a reader would run if it does not look at its status: AI SDK takes no text for `{}`.
    pub(super) fn could_be_run(&self) -> bool {
        let mut open = self.parts.iter().filter(|part| !part.is_closed);
        open.any(|part| match part.body {
            Body::Call { custom, .. } => {
                custom || part.text.trim().is_empty() || is_value(&part.text)
            }
            _ => false,
        })
    }

    /// The beginning of the next event.
    pub(super) fn frame<'j>(&mut self, job: &'j mut Job, kind: &str) -> &'j mut Writer {
        self.named(job, kind, "")
    }

    /// The same, of an event whose name has two halves.
    fn named<'j>(&mut self, job: &'j mut Job, kind: &str, end: &str) -> &'j mut Writer {
        let to = job.writer.raw("event: ").raw(kind).raw(end);
        to.raw("\ndata: {\"type\":\"").raw(kind).raw(end).raw("\"");
        numbered(job)
    }

    /// An event of a part or of its text.
    fn of<'j>(
        &mut self,
        job: &'j mut Job,
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
    pub(super) fn open(
        &mut self,
        job: &mut Job,
        number: u32,
        body: Body,
        sent: (Option<&str>, Option<i64>),
    ) -> usize {
        let item = self.add(job, &body, sent, None);
        if let Some(item) = self.all.get_mut(item) {
            item.numbers.push(number);
        }
        self.begin(job, item, number, body, 0)
    }

    /// `announced`: the index under which its opening has passed.
    pub(super) fn add(
        &mut self,
        job: &mut Job,
        body: &Body,
        (id, sent): (Option<&str>, Option<i64>),
        announced: Option<i64>,
    ) -> usize {
        let id = id.map_or_else(|| job.mint.make(body.prefix()), str::to_owned);
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

    pub(super) fn begin(
        &mut self,
        job: &mut Job,
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
            members.raw(",\"item_id\":").string(&record.id);
            members.raw(",\"output_index\":").number(record.index);
        }
        if let Some((_, index)) = body.around() {
            members.raw(",\"").raw(index).raw("\":").number(sub);
        }
        self.parts.push(Part {
            item,
            number,
            sub,
            place: members.into_text(),
            body,
            text: String::new(),
            is_closed: false,
            reset: false,
        });
        self.part(job, ".added", place);
        place
    }

    pub(super) fn item(&mut self, job: &mut Job, kind: &str, item: usize) {
        let Some(record) = self.all.get(item) else {
            return;
        };
        let index = record.index;
        let to = self.frame(job, kind).raw(",\"output_index\":");
        to.number(index).raw(",\"item\":");
        self.write_item(to, item);
        to.raw("}").end();
    }

    fn part(&mut self, job: &mut Job, end: &str, place: usize) {
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
    pub(super) fn delta(&mut self, job: &mut Job, place: usize, text: &str) {
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
    pub(super) fn keep(&mut self, place: usize, text: &str) -> bool {
        let part = self.parts.get_mut(place).filter(|part| !part.reset);
        part.map(|part| part.text.push_str(text)).is_some()
    }

    /// The whole text is known: what is missing is streamed; what contradicts stands in the close alone.
    pub(super) fn settle(&mut self, job: &mut Job, place: usize, text: &str) {
        let Some(part) = self.parts.get_mut(place) else {
            return;
        };
        match text.strip_prefix(part.text.as_str()) {
            Some(rest) => self.delta(job, place, rest),
            None => text.clone_into(&mut part.text),
        }
    }

    /// The citations of a text, if there is one; whether any is lost.
    pub(super) fn cite_all(&mut self, job: &mut Job, place: Option<usize>, list: &str) -> bool {
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
    fn cite(&mut self, job: &mut Job, place: usize, citation: &Citation<'_>) {
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
        let Some(Part {
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
    pub(super) fn close(&mut self, job: &mut Job, place: usize, whole: bool) {
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
        part.is_closed = true;
        if let Some(record) = self.all.get_mut(item) {
            if is_call || !job.passed.own {
                record.status = Status::of(whole);
            }
            record.open.remove(&number);
        }
        self.rest(item);
        if !job.passed.closed.contains(&number) {
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
    pub(super) fn close_all(&mut self, job: &mut Job) {
        self.leave(job, None, true);
        for place in 0..self.parts.len() {
            if self.parts.get(place).is_some_and(|part| !part.is_closed) {
                self.close(job, place, false);
            }
        }
        self.leave(job, None, false);
        self.end_resumed(job);
    }
}

impl Part {
    /// The call went out under this name and this id.
    pub(super) fn is_call(&self, custom: bool, call_id: &str, name: &str) -> bool {
        self.body == Body::call(custom, call_id, name)
    }
}

impl Status {
    pub(super) fn of(whole: bool) -> Status {
        if whole {
            Status::Completed
        } else {
            Status::Incomplete
        }
    }
}

/// The number of the next event, where its source numbers them.
fn numbered(job: &mut Job) -> &mut Writer {
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
