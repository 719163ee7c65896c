//! Stores the output items of a Responses stream, and writes their events and their final JSON.
//!
//! If the source has a different dialect, an item has only one content part, so every content index is 0. The order and
//! members of the events follow the published schema.

use crate::encode::common::citations::Annotation;
use crate::encode::common::citations::Citation;
use crate::encode::common::citations::CitedFile;
use crate::encode::common::citations::annotations;
use crate::encode::common::compact_json::spliced;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::passed_through::AddedItem;
use crate::encode::common::same_json::is_value;
use crate::encode::common::writer::Writer;
use crate::encode::responses::body::Body;
use crate::encode::responses::body::LOGPROBS;
use crate::encode::responses::copied_items::CopiedItems;
use crate::encode::responses::hosted_items::HostedItems;
use crate::encode::responses::item_members::ItemMembers;
use crate::encode::responses::item_members::OtherParts;
use crate::encode::responses::item_members::SentParts;
use crate::encode::responses::known_items::KnownItem;
use crate::encode::responses::known_items::KnownItems;
use crate::encode::responses::known_items::Listing;
use crate::encode::responses::known_items::SourceItemKey;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::items as elements;
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

/// One output item.
#[derive(Debug)]
pub(crate) struct Item {
    /// The item's id, or `None` if the item in the source has no id.
    pub(crate) id: Option<String>,
    /// The `output_index` of the item.
    pub(crate) index: i64,
    /// The kind of content that the item had when it was opened.
    pub(crate) body: Body,
    /// Reasoning only: true if the item has a `content` list.
    pub(crate) has_content: bool,
    pub(crate) encrypted: Option<String>,
    /// Positions of the item's parts in `Items::parts`.
    pub(crate) parts: Vec<usize>,
    /// Part numbers of the item's parts in the source.
    pub(crate) numbers: Vec<u32>,
    /// Numbers of the item's parts that have not ended.
    pub(crate) open: Set<u32>,
    /// True if the item's `output_item.done` event has passed through.
    pub(crate) has_ended: bool,
    /// True if the item continued after its `output_item.done` event, so that a second `output_item.done` event is
    /// written at the end.
    pub(crate) resumed: bool,
    /// Members of the source's item that the encoder does not write itself.
    pub(crate) members: ItemMembers,
    /// Content parts that are written as they were sent.
    pub(crate) others: OtherParts,
    /// Indexes in use: first those of content parts, then those of summary parts.
    pub(crate) subs: [PartIndexes; 2],
    /// Value of `next_turn` when the item was last opened or resumed. `None` if the item is not open.
    pub(crate) turn: Option<u64>,
    pub(crate) status: Status,
}

impl Item {
    pub(crate) fn sent_parts(&self, body: &Body) -> &SentParts {
        if *body == Body::Summary {
            &self.members.summary
        } else {
            &self.members.content
        }
    }

    pub(crate) fn part_indexes(&self, body: &Body) -> &PartIndexes {
        let [others, summaries] = &self.subs;
        if *body == Body::Summary {
            summaries
        } else {
            others
        }
    }
}

/// The indexes that are in use in one list of parts.
#[derive(Debug, Default)]
pub(crate) struct PartIndexes {
    taken: Set<i64>,
    /// One more than the highest index in use.
    next: i64,
    /// Number of parts that are written from events.
    pub(crate) written: usize,
}

impl PartIndexes {
    /// Returns `sent` as the index of a new part, or the next free index if another part already has the index `sent`.
    pub(crate) fn free(&self, sent: Option<i64>) -> i64 {
        sent.filter(|sent| !self.taken.contains(sent))
            .unwrap_or(self.next)
    }

    pub(crate) fn take(&mut self, position: i64) {
        self.next = match self.taken.is_empty() {
            true => position.saturating_add(1),
            false => self.next.max(position.saturating_add(1)),
        };
        self.taken.insert(position);
    }
}

/// A text part of an item, or the arguments of a call.
#[derive(Debug)]
pub(crate) struct ItemContent {
    pub(crate) item: usize,
    /// Part number in the source.
    pub(crate) number: u32,
    pub(crate) sub: i64,
    /// Number of the item's earlier parts in the same list.
    pub(crate) place: usize,
    /// JSON members that identify the part in every event about the part's text.
    pub(crate) position: String,
    pub(crate) body: Body,
    /// Text received so far. Once the part is closed, the complete text, escaped for JSON.
    pub(crate) text: String,
    pub(crate) end: PartEnd,
    /// True if the upstream reset the text, so that no more deltas are written before the closing events.
    pub(crate) reset: bool,
}

/// Whether and how a part has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartEnd {
    Open,
    Closed,
    /// Text of the part was streamed, but the final item does not contain the part. No event closes the part, and the
    /// item does not list the part.
    Retracted,
}

/// Stores the items of one response, and writes their events.
#[derive(Debug, Default)]
pub(crate) struct Items {
    pub(crate) all: Vec<Item>,
    pub(crate) parts: Vec<ItemContent>,
    /// Indexes of the items, and the next free index.
    taken: Set<i64>,
    next: i64,
    /// Open items from a source in the same dialect, by key.
    pub(crate) held: Map<SourceItemKey, usize>,
    /// The items in `held` by their `turn`, which is the order in which they were opened or resumed.
    pub(crate) turns: BTreeMap<u64, (SourceItemKey, usize)>,
    /// Keys in `turns` of the open items whose parts have all ended.
    pub(crate) idle: BTreeSet<u64>,
    pub(crate) next_turn: u64,
    /// Finished items, by key.
    pub(crate) left: Map<SourceItemKey, usize>,
    /// The item that contains each part of the source, by part number.
    pub(crate) item_of: Map<u32, usize>,
    /// Items that are written as they were sent.
    pub(crate) copied: CopiedItems,
    /// Items of tools that the provider of another dialect ran.
    pub(crate) hosted: HostedItems,
    /// The items by the ids and indexes that the source gives them.
    pub(crate) known: KnownItems,
    /// Members of the source's items that no event has opened yet.
    pub(crate) unopened: Map<SourceItemKey, ItemMembers>,
    /// Members of the source's item whose events are being written.
    pub(crate) current: Option<ItemMembers>,
    /// The message or reasoning item whose events are being written.
    pub(crate) listing: Option<Listing>,
    /// Items that continued after their `output_item.done` event and need a second `output_item.done` event.
    pub(crate) resumed: Vec<usize>,
    /// Indexes of the items whose rest is written as a new item.
    pub(crate) continued: BTreeSet<i64>,
}

impl Items {
    /// Returns true if no item has been written.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    pub(crate) fn get_mut(&mut self, position: usize) -> Option<&mut ItemContent> {
        self.parts.get_mut(position)
    }

    /// Returns true if a client that ignores the status of calls would run an open call. The AI SDK treats missing
    /// arguments as `{}`.
    pub(crate) fn could_be_run(&self) -> bool {
        let mut open = self.parts.iter().filter(|part| part.end == PartEnd::Open);
        open.any(|part| match part.body {
            Body::Call { custom, .. } => {
                custom || part.text.trim().is_empty() || is_value(&part.text)
            }
            _ => false,
        })
    }

    /// Writes the beginning of the next event, up to its sequence number.
    pub(crate) fn frame<'j>(
        &mut self,
        context: &'j mut EncodeContext,
        kind: &str,
    ) -> &'j mut Writer {
        self.named(context, kind, "")
    }

    /// Writes the beginning of an event whose name is passed in two halves.
    fn named<'j>(
        &mut self,
        context: &'j mut EncodeContext,
        kind: &str,
        end: &str,
    ) -> &'j mut Writer {
        let to = context.writer.raw("event: ").raw(kind).raw(end);
        to.raw("\ndata: {\"type\":\"").raw(kind).raw(end).raw("\"");
        numbered(context)
    }

    /// Writes the beginning of an event about a part or its text.
    fn of<'j>(
        &mut self,
        context: &'j mut EncodeContext,
        (kind, end): (&str, &str),
        position: usize,
    ) -> &'j mut Writer {
        let to = self.named(context, kind, end);
        if let Some(part) = self.parts.get(position) {
            to.raw(&part.position);
        }
        to
    }

    /// Adds an item with its only part, and returns the part's position. `sent` contains the id and the index from the
    /// source.
    pub(crate) fn open(
        &mut self,
        context: &mut EncodeContext,
        number: u32,
        body: Body,
        sent: (Option<&str>, Option<i64>),
        added: Option<AddedItem>,
    ) -> usize {
        let members = self.current.take().unwrap_or_default();
        let item = self.add(context, &body, sent, (added, None), members);
        let at = context.passed.at.filter(|_| context.passed.own);
        self.known.add(sent.0, at, &KnownItem::Written(item));
        if let Some(item) = self.all.get_mut(item) {
            item.numbers.push(number);
        }
        self.begin(context, item, number, body, 0)
    }

    /// Adds an item and writes its opening event, unless that event passed through. `added` is the item as clients
    /// store it. `announced` is the index in the opening event that passed through.
    pub(crate) fn add(
        &mut self,
        context: &mut EncodeContext,
        body: &Body,
        (id, sent): (Option<&str>, Option<i64>),
        (added, announced): (Option<AddedItem>, Option<i64>),
        members: ItemMembers,
    ) -> usize {
        let id = match added {
            Some(added) => added.id,
            None => Some(id.map_or_else(|| context.mint.make(body.prefix()), str::to_owned)),
        };
        let index = self.take_index(context, sent);
        let item = self.all.len();
        self.known
            .add(id.as_deref(), None, &KnownItem::Written(item));
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
            members,
            others: OtherParts::default(),
            subs: Default::default(),
            turn: None,
            status: Status::InProgress,
        });
        if announced != Some(index) {
            self.item(context, "response.output_item.added", item);
        }
        item
    }

    /// Returns `sent` as the index of a new item, or the next free index if another item already has the index `sent`.
    pub(crate) fn take_index(&mut self, context: &mut EncodeContext, sent: Option<i64>) -> i64 {
        self.next = self.next.max(context.passed.next_index);
        let free = sent.filter(|sent| !self.taken.contains(sent));
        let index = free.unwrap_or(self.next);
        context.passed.moved = free != sent;
        self.taken.insert(index);
        self.next = self.next.max(index.saturating_add(1));
        index
    }

    pub(crate) fn begin(
        &mut self,
        context: &mut EncodeContext,
        item: usize,
        number: u32,
        body: Body,
        sub: i64,
    ) -> usize {
        let position = self.parts.len();
        let mut members = Writer::default();
        let mut place = 0;
        if let Some(record) = self.all.get_mut(item) {
            record.has_content |= body == Body::Reasoning;
            record.parts.push(position);
            let [others, summaries] = &mut record.subs;
            let part_indexes = if body == Body::Summary {
                summaries
            } else {
                others
            };
            place = part_indexes.written;
            part_indexes.written += 1;
            part_indexes.take(sub);
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
            place,
            position: members.into_text(),
            body,
            text: String::new(),
            end: PartEnd::Open,
            reset: false,
        });
        self.part(context, ".added", position);
        position
    }

    pub(crate) fn item(&mut self, context: &mut EncodeContext, kind: &str, item: usize) {
        let Some(record) = self.all.get(item) else {
            return;
        };
        let index = record.index;
        let to = self.frame(context, kind).raw(",\"output_index\":");
        to.number(index).raw(",\"item\":");
        self.write_item(to, item);
        to.raw("}").end();
    }

    /// Writes the event that opens an item without parts.
    pub(crate) fn open_hosted(&mut self, context: &mut EncodeContext, index: i64, item: &str) {
        self.hosted_item(context, "response.output_item.added", index, item);
    }

    /// Writes the event that closes an item without parts, and stores the item for the response object.
    pub(crate) fn finish_hosted(&mut self, context: &mut EncodeContext, index: i64, item: String) {
        self.hosted_item(context, "response.output_item.done", index, &item);
        self.hosted.finished.push((index, item));
    }

    pub(crate) fn hosted_item(
        &mut self,
        context: &mut EncodeContext,
        kind: &str,
        index: i64,
        item: &str,
    ) {
        let to = self.frame(context, kind).raw(",\"output_index\":");
        to.number(index).raw(",\"item\":").raw(item).raw("}").end();
    }

    /// Writes an event that reports the progress of an item.
    pub(crate) fn report_progress(
        &mut self,
        context: &mut EncodeContext,
        kind: &str,
        (id, index): (&str, i64),
    ) {
        let to = self.frame(context, kind).raw(",\"item_id\":").string(id);
        to.raw(",\"output_index\":").number(index).raw("}").end();
    }
    fn part(&mut self, context: &mut EncodeContext, end: &str, position: usize) {
        let Some((kind, _)) = self.parts.get(position).and_then(|part| part.body.around()) else {
            return;
        };
        let to = self.of(context, (kind, end), position).raw(",\"part\":");
        if let Some(part) = self.parts.get(position) {
            self.write_part(to, part);
        }
        to.raw("}").end();
    }

    /// Writes a part as JSON, with the unknown members of the source's part once the part is closed.
    pub(crate) fn write_part(&self, to: &mut Writer, part: &ItemContent) {
        let item = self.all.get(part.item);
        let item = item.filter(|_| part.end == PartEnd::Closed);
        let members = item.map_or(&[][..], |item| {
            item.sent_parts(&part.body)
                .members(part.place, part.body.part_kind())
        });
        part.body.part(to, &part.text, members);
    }

    /// Writes a piece of text to a part. `tokens` contains the piece's log probabilities.
    pub(crate) fn delta(
        &mut self,
        context: &mut EncodeContext,
        position: usize,
        text: &str,
        tokens: &str,
    ) {
        let openresponses = context.options.openresponses;
        if text.is_empty() || !self.keep(position, text) {
            return;
        }
        if let Some(part) = self.parts.get(position) {
            let (head, end) = part.body.delta(openresponses);
            context.writer.raw(head);
            let to = numbered(context);
            to.raw(&part.position).raw(",\"delta\":");
            to.string(text);
            if let Body::Text(..) = part.body {
                to.raw(LOGPROBS).raw(tokens);
            }
            to.raw(end);
        }
        self.add_logprobs(position, tokens);
    }

    /// Stores the log probabilities of a text part. The closing event of the part contains all log probabilities.
    /// Returns false if the part does not contain text.
    pub(crate) fn add_logprobs(&mut self, position: usize, tokens: &str) -> bool {
        let Some(ItemContent {
            body: Body::Text(_, _, all),
            ..
        }) = self.parts.get_mut(position)
        else {
            return false;
        };
        if !(all.is_empty() || tokens.is_empty()) {
            all.push(',');
        }
        all.push_str(tokens);
        true
    }

    pub(crate) fn has_logprobs(&self, position: usize) -> bool {
        let part = self.parts.get(position);
        part.is_some_and(|part| matches!(&part.body, Body::Text(_, _, all) if !all.is_empty()))
    }

    /// Records a piece of text. Returns false and records nothing if the upstream reset the text.
    pub(crate) fn keep(&mut self, position: usize, text: &str) -> bool {
        let part = self.parts.get_mut(position).filter(|part| !part.reset);
        part.map(|part| part.text.push_str(text)).is_some()
    }

    /// If the final text begins with the streamed text, writes the rest of the final text. If the final text
    /// contradicts the streamed text, only the closing events contain the final text.
    pub(crate) fn finish_text(&mut self, context: &mut EncodeContext, position: usize, text: &str) {
        let Some(part) = self.parts.get_mut(position) else {
            return;
        };
        match text.strip_prefix(part.text.as_str()) {
            Some(rest) => self.delta(context, position, rest, ""),
            None => {
                if text.is_empty() && context.passed.own && part.body.around().is_some() {
                    part.end = PartEnd::Retracted;
                }
                text.clone_into(&mut part.text);
            }
        }
    }

    /// Writes the citations of the text part at `position`. Returns true if any citation cannot be written.
    pub(crate) fn cite_all(
        &mut self,
        context: &mut EncodeContext,
        position: Option<usize>,
        list: &str,
        text: &str,
    ) -> bool {
        if context.passed.own {
            let part = position.and_then(|position| self.parts.get(position));
            // Annotations that arrived in an event of their own were written in its place.
            let written = match part.map(|part| &part.body) {
                Some(Body::Text(_, count, _)) => usize::try_from(*count).unwrap_or_default(),
                _ => 0,
            };
            let is_listed = part.is_some_and(|part| part.end != PartEnd::Retracted);
            let Some(position) = position.filter(|_| is_listed) else {
                let sent = elements(Raw {
                    text: list,
                    kind: Kind::Array,
                });
                return sent.len() > written;
            };
            self.copy_annotations(context, position, list, written);
            return false;
        }
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        let mut lost = false;
        for annotation in annotations(list, Some(length)) {
            let has_form = match annotation {
                Annotation::Page(_) => true,
                Annotation::File(_) => context.source == "anthropic",
                Annotation::Other => false,
            };
            let Some(position) = position.filter(|_| has_form) else {
                lost = true;
                continue;
            };
            match annotation {
                _ if context.cut => {}
                Annotation::Page(citation) => self.cite(context, position, &citation),
                Annotation::File(file) => {
                    self.annotate(context, position, &file_citation(&file, length));
                }
                Annotation::Other => {}
            }
        }
        lost
    }

    /// Writes the annotations of a source in the same dialect as they were sent, without the first `written`.
    pub(crate) fn copy_annotations(
        &mut self,
        context: &mut EncodeContext,
        position: usize,
        list: &str,
        written: usize,
    ) {
        let sent = elements(Raw {
            text: list,
            kind: Kind::Array,
        });
        for annotation in sent.into_iter().skip(written) {
            let mut to = Writer::default();
            spliced(&mut to, annotation.text);
            self.annotate(context, position, &to.into_text());
        }
    }

    /// Writes a citation of a text part. A citation without a position is omitted, because the schema requires a
    /// position.
    pub(crate) fn cite(
        &mut self,
        context: &mut EncodeContext,
        position: usize,
        citation: &Citation<'_>,
    ) {
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
        self.annotate(context, position, &annotation.into_text());
    }

    /// Adds an annotation to a text part.
    fn annotate(&mut self, context: &mut EncodeContext, position: usize, annotation: &str) {
        let Some(ItemContent {
            body: Body::Text(all, count, _),
            number,
            ..
        }) = self.parts.get_mut(position)
        else {
            return;
        };
        let has_passed = context.passed.closed.contains(number);
        let number = *count;
        if number > 0 {
            all.push(',');
        }
        all.push_str(annotation);
        *count += 1;
        if has_passed {
            return;
        }
        let to = self.of(
            context,
            ("response.output_text.annotation", ".added"),
            position,
        );
        to.raw(",\"annotation_index\":").number(number);
        to.raw(",\"annotation\":").raw(annotation).raw("}").end();
    }

    /// Writes the closing events of a part and of its item, except those that passed through. If the source has the
    /// same dialect, `end_idle_items` ends items with text or reasoning instead.
    pub(crate) fn close(&mut self, context: &mut EncodeContext, position: usize, whole: bool) {
        let openresponses = context.options.openresponses;
        let Some(part) = self.parts.get_mut(position) else {
            return;
        };
        let (item, number) = (part.item, part.number);
        let (kind, member) = part.body.events(openresponses);
        let is_call = part.body.around().is_none();
        let mut text = Writer::default();
        text.inner(&part.text);
        part.text = text.into_text();
        let is_retracted = part.end == PartEnd::Retracted;
        if !is_retracted {
            part.end = PartEnd::Closed;
        }
        if let Some(record) = self.all.get_mut(item) {
            if is_call || !context.passed.own {
                record.status = Status::of(whole);
            }
            record.open.remove(&number);
        }
        self.mark_idle(item);
        // The closing event of a call with another status than `completed` does not end the call.
        let index = self.all.get(item).map(|item| item.index);
        let has_ended = context.passed.ended.contains(&number)
            || index.is_some_and(|index| is_call && context.passed.items.contains_key(&index));
        let is_closed = context.passed.closed.contains(&number) || (is_call && has_ended);
        if !(is_retracted || is_closed) {
            let to = self.of(context, (kind, ".done"), position);
            to.raw(",\"").raw(member).raw("\":\"");
            if let Some(part) = self.parts.get(position) {
                to.raw(&part.text).raw("\"");
                if let Body::Text(_, _, tokens) = &part.body {
                    to.raw(LOGPROBS).raw(tokens).raw("]");
                }
            }
            to.raw("}").end();
            self.part(context, ".done", position);
        }
        let is_done = if is_call {
            !has_ended
        } else {
            !context.passed.own
        };
        if is_done {
            self.item(context, "response.output_item.done", item);
        }
    }

    /// Closes all open parts and items as incomplete, in order.
    pub(crate) fn close_all(&mut self, context: &mut EncodeContext) {
        self.end_idle_items(context, None, true);
        for position in 0..self.parts.len() {
            let part = self.parts.get(position);
            let open = part.filter(|part| part.end == PartEnd::Open);
            if let Some(item) = open.map(|part| part.item) {
                let index = self.all.get(item).map(|item| item.index);
                self.end_searches(context, index);
                self.close(context, position, false);
            }
        }
        self.end_searches(context, None);
        self.end_idle_items(context, None, false);
        self.end_resumed(context);
        self.end_copies(context);
    }
}

impl ItemContent {
    /// Returns true if the call was written with this type, id, and name.
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

/// Returns the citation of a file, which refers to the end of the text.
fn file_citation(file: &CitedFile<'_>, length: i64) -> String {
    let mut to = Writer::default();
    to.raw("{\"type\":\"file_citation\",\"file_id\":")
        .string(&file.id);
    let name = file.name.as_deref().unwrap_or_default();
    to.raw(",\"filename\":").string(name);
    to.raw(",\"index\":").number(length).raw("}");
    to.into_text()
}

/// Writes the number of the next event, if the source numbers its events.
fn numbered(context: &mut EncodeContext) -> &mut Writer {
    if let Some(number) = &mut context.passed.sequence {
        let to = context.writer.raw(",\"sequence_number\":");
        match i64::try_from(*number) {
            Ok(number) => to.number(number),
            Err(_) => to.raw(&number.to_string()),
        };
        *number += 1;
    }
    &mut context.writer
}
