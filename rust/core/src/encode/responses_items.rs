//! The output items of a Responses stream: the events of each, and what it comes to as JSON.
//!
//! One content part an item, so that every content index is 0. Knows the wire of items, not which part of the source is
//! which item. Order and members of the events are those of the published schema.

use super::citations::Citation;
use super::job::Job;
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
            ".delta\",\"sequence_number\":"
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

/// One output item; its place is its output index.
#[derive(Debug)]
pub(super) struct Item {
    id: String,
    /// As the members that every event of its text has.
    place: String,
    pub(super) body: Body,
    /// As far as it came; once the item is closed, all of it, as it stands between the quotes of JSON.
    pub(super) text: String,
    status: Status,
    /// The source took the text back: nothing is streamed until its last word.
    pub(super) reset: bool,
}

impl Item {
    /// The item as JSON; as it was added, it has no part yet.
    fn write(&self, to: &mut Writer) {
        let filled = self.status != Status::InProgress;
        match &self.body {
            Body::Text(..) | Body::Refusal => {
                to.raw("{\"type\":\"message\",\"id\":").string(&self.id);
                to.raw(",\"status\":").string(self.status.word());
                to.raw(",\"role\":\"assistant\",\"content\":[");
            }
            Body::Summary => {
                to.raw("{\"type\":\"reasoning\",\"id\":").string(&self.id);
                to.raw(",\"summary\":[");
            }
            Body::Reasoning => {
                to.raw("{\"type\":\"reasoning\",\"id\":").string(&self.id);
                to.raw(",\"summary\":[],\"content\":[");
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
                to.raw("{\"type\":")
                    .string(kind)
                    .raw(",\"id\":")
                    .string(&self.id);
                to.raw(",\"call_id\":").string(call_id);
                to.raw(",\"name\":").string(name).raw(",").string(member);
                to.raw(":\"").raw(if filled { &self.text } else { "" });
                to.raw("\",\"status\":").string(self.status.word()).raw("}");
                return;
            }
        }
        if filled {
            self.body.part(to, &self.text);
        }
        let thought = matches!(self.body, Body::Summary | Body::Reasoning);
        let cut = thought && self.status == Status::Incomplete;
        to.raw(if cut {
            "],\"status\":\"incomplete\"}"
        } else {
            "]}"
        });
    }
}

/// The items of one response, and the numbers of its events.
#[derive(Debug, Default)]
pub(super) struct Items {
    all: Vec<Item>,
    sequence: i64,
}

impl Items {
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Item> {
        self.all.get_mut(place)
    }

    /// An open call that a reader would run if it does not look at its status: AI SDK takes no text for `{}`.
    pub(super) fn could_be_run(&self) -> bool {
        let mut open = self
            .all
            .iter()
            .filter(|item| item.status == Status::InProgress);
        open.any(|item| match item.body {
            Body::Call { custom, .. } => {
                custom || item.text.trim().is_empty() || is_value(&item.text)
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
        to.raw("\ndata: {\"type\":\"").raw(kind).raw(end);
        to.raw("\",\"sequence_number\":").number(self.sequence);
        self.sequence += 1;
        to
    }

    /// An event of an item's part or of its text.
    fn of<'j>(
        &mut self,
        job: &'j mut Job,
        (kind, end): (&str, &str),
        place: usize,
    ) -> &'j mut Writer {
        let to = self.named(job, kind, end);
        if let Some(item) = self.all.get(place) {
            to.raw(&item.place);
        }
        to
    }

    /// A new item; its place.
    pub(super) fn open(&mut self, job: &mut Job, body: Body) -> usize {
        let place = self.all.len();
        let id = job.mint.make(body.prefix());
        let mut members = Writer::default();
        members.raw(",\"item_id\":").string(&id);
        members.raw(",\"output_index\":").number(place as i64);
        if let Some((_, index)) = body.around() {
            members.raw(",\"").raw(index).raw("\":0");
        }
        let item = Item {
            id,
            place: members.into_text(),
            body,
            text: String::new(),
            status: Status::InProgress,
            reset: false,
        };
        self.all.push(item);
        self.item(job, "response.output_item.added", place);
        self.part(job, ".added", place);
        place
    }

    fn item(&mut self, job: &mut Job, kind: &str, place: usize) {
        let to = self.frame(job, kind).raw(",\"output_index\":");
        to.number(place as i64).raw(",\"item\":");
        if let Some(item) = self.all.get(place) {
            item.write(to);
        }
        to.raw("}").end();
    }

    fn part(&mut self, job: &mut Job, end: &str, place: usize) {
        let Some((kind, _)) = self.all.get(place).and_then(|item| item.body.around()) else {
            return;
        };
        let to = self.of(job, (kind, end), place).raw(",\"part\":");
        if let Some(item) = self.all.get(place) {
            item.body.part(to, &item.text);
        }
        to.raw("}").end();
    }

    /// A piece of the item's text.
    pub(super) fn delta(&mut self, job: &mut Job, place: usize, text: &str) {
        let openresponses = job.options.openresponses;
        let Some(item) = self.all.get_mut(place) else {
            return;
        };
        if item.reset || text.is_empty() {
            return;
        }
        item.text.push_str(text);
        let (head, end) = item.body.delta(openresponses);
        let to = job.writer.raw(head).number(self.sequence);
        to.raw(&item.place).raw(",\"delta\":");
        to.string(text).raw(end);
        self.sequence += 1;
    }

    /// The whole text is known: what is missing is streamed; what contradicts stands in the close alone.
    pub(super) fn settle(&mut self, job: &mut Job, place: usize, text: &str) {
        let Some(item) = self.all.get_mut(place) else {
            return;
        };
        match text.strip_prefix(item.text.as_str()) {
            Some(rest) => self.delta(job, place, rest),
            None => text.clone_into(&mut item.text),
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
        let Some(Item {
            body: Body::Text(all, count),
            ..
        }) = self.all.get_mut(place)
        else {
            return;
        };
        let number = *count;
        if number > 0 {
            all.push(',');
        }
        all.push_str(&annotation);
        *count += 1;
        let to = self.of(job, ("response.output_text.annotation", ".added"), place);
        to.raw(",\"annotation_index\":").number(number);
        to.raw(",\"annotation\":").raw(&annotation).raw("}").end();
    }

    /// The closing events of an item.
    pub(super) fn close(&mut self, job: &mut Job, place: usize, whole: bool) {
        let openresponses = job.options.openresponses;
        let Some(item) = self.all.get(place) else {
            return;
        };
        let (kind, member, more) = item.body.events(openresponses);
        let to = self.of(job, (kind, ".done"), place);
        to.raw(",\"").raw(member).raw("\":\"");
        if let Some(item) = self.all.get_mut(place) {
            let mut text = Writer::default();
            text.inner(&item.text);
            item.text = text.into_text();
            to.raw(&item.text);
            item.status = if whole {
                Status::Completed
            } else {
                Status::Incomplete
            };
        }
        to.raw("\"").raw(more).raw("}").end();
        self.part(job, ".done", place);
        self.item(job, "response.output_item.done", place);
    }

    /// What is open ends as incomplete, in order.
    pub(super) fn close_all(&mut self, job: &mut Job) {
        for place in 0..self.all.len() {
            let item = self.all.get(place);
            if item.is_some_and(|item| item.status == Status::InProgress) {
                self.close(job, place, false);
            }
        }
    }

    /// All items as they stand.
    pub(super) fn write(&self, to: &mut Writer) {
        let closed = self
            .all
            .iter()
            .filter(|item| item.status != Status::InProgress);
        for (place, item) in closed.enumerate() {
            if place > 0 {
                to.raw(",");
            }
            item.write(to);
        }
    }
}
