//! The output items of a Responses stream: the events of each, and what it comes to as JSON.
//!
//! Where another dialect is written, an item has one content part, so that every content index is 0. Knows the wire of items, not which part of the source is
//! which item. Order and members of the events are those of the published schema.

use super::citations::Citation;
use super::job::Job;
use super::passed::Passed;
use super::same::is_value;
use super::writer::Writer;

/// What an item holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// The annotations as JSON, and how many.
    Text(String, i64),
    Refusal,
    Summary,
    Reasoning,
    Call {
        custom: bool,
        call_id: String,
        name: String,
    },
}

/// The beginning of an event with a piece of a text, up to its number.
macro_rules! delta {
    ($kind:literal) => {
        concat!(
            "event: ",
            $kind,
            ".delta\ndata: {\"type\":\"",
            $kind,
            ".delta\""
        )
    };
}

impl Body {
    pub(super) fn text() -> Body {
        Body::Text(String::new(), 0)
    }

    pub(super) fn call(custom: bool, call_id: &str, name: &str) -> Body {
        Body::Call {
            custom,
            call_id: call_id.to_owned(),
            name: name.to_owned(),
        }
    }

    /// What its ids begin with.
    fn prefix(&self) -> &'static str {
        match self {
            Body::Text(..) | Body::Refusal => "msg",
            Body::Summary | Body::Reasoning => "rs",
            Body::Call { .. } => "fc",
        }
    }

    /// The events of its text: what both names begin with, the member of the close, and what follows the text.
    fn events(&self, openresponses: bool) -> (&'static str, &'static str, &'static str) {
        match self {
            Body::Text(..) => ("response.output_text", "text", ",\"logprobs\":[]"),
            Body::Refusal => ("response.refusal", "refusal", ""),
            Body::Summary => ("response.reasoning_summary_text", "text", ""),
            Body::Reasoning if openresponses => ("response.reasoning", "text", ""),
            Body::Reasoning => ("response.reasoning_text", "text", ""),
            Body::Call { custom: true, .. } => ("response.custom_tool_call_input", "input", ""),
            Body::Call { .. } => ("response.function_call_arguments", "arguments", ""),
        }
    }

    /// The beginning of a delta, and its end behind the text.
    fn delta(&self, openresponses: bool) -> (&'static str, &'static str) {
        let head = match self {
            Body::Text(..) => {
                return (delta!("response.output_text"), ",\"logprobs\":[]}\n\n");
            }
            Body::Refusal => delta!("response.refusal"),
            Body::Summary => delta!("response.reasoning_summary_text"),
            Body::Reasoning if openresponses => delta!("response.reasoning"),
            Body::Reasoning => delta!("response.reasoning_text"),
            Body::Call { custom: true, .. } => delta!("response.custom_tool_call_input"),
            Body::Call { .. } => delta!("response.function_call_arguments"),
        };
        (head, "}\n\n")
    }

    /// The event around its part, and the name of the part's place.
    fn around(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Body::Call { .. } => None,
            Body::Summary => Some(("response.reasoning_summary_part", "summary_index")),
            _ => Some(("response.content_part", "content_index")),
        }
    }

    /// The part as JSON; `text` is what stands between its quotes.
    fn part(&self, to: &mut Writer, text: &str) {
        let (head, tail) = match self {
            Body::Text(..) => ("output_text\",\"text\":\"", "\",\"annotations\":["),
            Body::Refusal => ("refusal\",\"refusal\":\"", "\"}"),
            Body::Summary => ("summary_text\",\"text\":\"", "\"}"),
            Body::Reasoning => ("reasoning_text\",\"text\":\"", "\"}"),
            Body::Call { .. } => return,
        };
        to.raw("{\"type\":\"").raw(head).raw(text).raw(tail);
        if let Body::Text(annotations, _) = self {
            to.raw(annotations).raw("],\"logprobs\":[]}");
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    InProgress,
    Completed,
    Incomplete,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
            Status::Incomplete => "incomplete",
        }
    }
}

/// What an item of the source's own is found by: its index, or its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Index(i64),
    Id(String),
}

/// One output item.
#[derive(Debug)]
struct Item {
    id: String,
    /// Its output index.
    index: i64,
    /// Of what it was opened with.
    body: Body,
    /// Reasoning only: it has a list of contents.
    has_content: bool,
    encrypted: Option<String>,
    /// Places of its parts.
    parts: Vec<usize>,
    /// What the source calls them, and those of them that are not over.
    numbers: Vec<u32>,
    open: Vec<u32>,
    status: Status,
}

/// A text of an item, or the arguments of a call.
#[derive(Debug)]
pub(super) struct Part {
    item: usize,
    /// What the source calls it.
    number: u32,
    sub: i64,
    /// As the members that every event of its text has.
    place: String,
    pub(super) body: Body,
    /// As far as it came; once the part is closed, all of it, as it stands between the quotes of JSON.
    pub(super) text: String,
    is_closed: bool,
    /// The source took the text back: nothing is streamed until its last word.
    pub(super) reset: bool,
}

/// The items of one response, and the numbers of its events.
#[derive(Debug, Default)]
pub(super) struct Items {
    all: Vec<Item>,
    parts: Vec<Part>,
    /// Behind all indexes.
    next: i64,
    /// Items of the source's own that are not done, by what they are found by.
    held: Vec<(Key, usize)>,
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
        let item = self.add(job, &body, sent, false);
        if let Some(item) = self.all.get_mut(item) {
            item.numbers.push(number);
        }
        self.begin(job, item, number, body, 0)
    }

    fn add(
        &mut self,
        job: &mut Job,
        body: &Body,
        (id, sent): (Option<&str>, Option<i64>),
        announced: bool,
    ) -> usize {
        let id = id.map_or_else(|| job.mint.make(body.prefix()), str::to_owned);
        let index = sent.unwrap_or(self.next);
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
            open: Vec::new(),
            status: Status::InProgress,
        });
        if !announced {
            self.item(job, "response.output_item.added", item);
        }
        item
    }

    fn begin(
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

    fn item(&mut self, job: &mut Job, kind: &str, item: usize) {
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
        let Some(part) = self.parts.get_mut(place) else {
            return;
        };
        if part.reset || text.is_empty() {
            return;
        }
        part.text.push_str(text);
        let (head, end) = part.body.delta(openresponses);
        job.writer.raw(head);
        let to = numbered(job);
        to.raw(&part.place).raw(",\"delta\":");
        to.string(text).raw(end);
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

    /// A citation of a text; the schema wants its place in the text.
    pub(super) fn cite(&mut self, job: &mut Job, place: usize, citation: &Citation<'_>) {
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
            record.open.retain(|open| *open != number);
        }
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
    }

    /// All items as they stand, in order of their indexes, each as `write` has it.
    pub(super) fn each(&self, mut give: impl FnMut(usize, bool, String), job: &Job) {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        let index = |item: &usize| self.all.get(*item).map(|item| item.index);
        order.sort_by_key(index);
        for (at, item) in order.iter().enumerate() {
            if order.get(at + 1).and_then(index) == index(item) {
                continue; // another one took its place
            }
            let mut text = Writer::default();
            self.write_item(&mut text, *item);
            give(at, self.has_ended(job, *item), text.into_text());
        }
    }

    fn has_ended(&self, job: &Job, item: usize) -> bool {
        let numbers = self.all.get(item).map(|item| item.numbers.iter());
        let mut numbers = numbers.into_iter().flatten();
        numbers.any(|number| job.passed.ended.contains(number))
    }

    /// The item as JSON; as it was added, it has no part yet.
    fn write_item(&self, to: &mut Writer, item: usize) {
        let Some(item) = self.all.get(item) else {
            return;
        };
        let parts = item.parts.iter().filter_map(|place| self.parts.get(*place));
        let mut parts: Vec<&Part> = parts.filter(|part| part.is_closed).collect();
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
                to.raw("{\"type\":\"message\",\"id\":").string(&item.id);
                to.raw(",\"status\":").string(item.status.word());
                to.raw(",\"role\":\"assistant\",\"content\":[");
                list(to, |_| true);
                to.raw("]}");
            }
            Body::Summary | Body::Reasoning => {
                to.raw("{\"type\":\"reasoning\",\"id\":").string(&item.id);
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
                to.raw(",\"id\":").string(&item.id);
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

/// Items of the source's own, under the ids and at the places that it gave them.
impl Items {
    /// A part opens inside of its item; its place, `None` while it is an item without a part.
    pub(super) fn open_own(
        &mut self,
        job: &mut Job,
        number: u32,
        body: Body,
    ) -> (usize, Option<usize>) {
        let Passed {
            at, sub, index, ..
        } = job.passed;
        let id = job.passed.item_id.clone();
        let key = match at {
            Some(at) => Key::Index(at),
            None => Key::Id(id.clone().unwrap_or_default()),
        };
        self.leave(job, Some(&key), true);
        let known = self.held.iter().find(|(known, _)| *known == key);
        let item = match known {
            Some((_, item)) => *item,
            None => {
                let announced = at.is_some_and(|at| job.passed.announced.contains(&at));
                let item = self.add(job, &body, (id.as_deref(), index), announced);
                self.held.push((key, item));
                item
            }
        };
        if let Some(item) = self.all.get_mut(item) {
            item.numbers.push(number);
            item.open.push(number);
        }
        if sub.is_none() && matches!(body, Body::Summary | Body::Reasoning) {
            return (item, None);
        }
        let sub = sub.unwrap_or_else(|| self.next_sub(item, &body));
        (item, Some(self.begin(job, item, number, body, sub)))
    }

    /// A part of an item that had none.
    pub(super) fn fill(&mut self, job: &mut Job, item: usize, number: u32, body: Body) -> usize {
        self.begin(job, item, number, body, 0)
    }

    /// Such a part is over, and nothing was said of it.
    pub(super) fn drop_bare(&mut self, item: usize, number: u32) {
        if let Some(item) = self.all.get_mut(item) {
            item.open.retain(|open| *open != number);
        }
    }

    /// Items are done when something else comes: those whose parts are all over, or (`whole` false) all of them.
    pub(super) fn leave(&mut self, job: &mut Job, but: Option<&Key>, whole: bool) {
        for (key, item) in std::mem::take(&mut self.held) {
            let Some(record) = self.all.get_mut(item) else {
                continue;
            };
            if Some(&key) == but || (whole && !record.open.is_empty()) {
                self.held.push((key, item));
                continue;
            }
            record.status = Status::of(whole);
            if !self.has_ended(job, item) {
                self.item(job, "response.output_item.done", item);
            }
        }
    }

    pub(super) fn encrypt(&mut self, item: usize, content: &str) {
        if let Some(item) = self.all.get_mut(item) {
            item.encrypted = Some(content.to_owned());
        }
    }

    pub(super) fn item_of(&self, place: usize) -> Option<usize> {
        self.parts.get(place).map(|part| part.item)
    }

    fn next_sub(&self, item: usize, body: &Body) -> i64 {
        let parts = self.all.get(item).map_or(&[][..], |item| item.parts.as_slice());
        let parts = parts.iter().filter_map(|place| self.parts.get(*place));
        let of_list = parts.filter(|part| (part.body == Body::Summary) == (*body == Body::Summary));
        of_list.map(|part| part.sub + 1).max().unwrap_or(0)
    }
}

impl Status {
    fn of(whole: bool) -> Status {
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
