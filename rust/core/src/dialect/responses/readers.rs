//! Checks Responses events against the requirements of official clients, so that repair can rewrite the events that
//! clients would misread.
//!
//! openai-python and openai-node store one item at each output index and one part at each position of an item. The
//! clients raise an exception if an event contradicts what they have stored, if its item or part was not added before,
//! or if the id of an item changes. The final result of the clients is the `output` in the last event.

use crate::dialect::responses::content::is_unmodelled;
use crate::dialect::responses::edits::edit_item;
use crate::dialect::responses::edits::edit_opening;
use crate::dialect::responses::item_content::content_of;
use crate::dialect::responses::item_content::has_content;
use crate::dialect::responses::item_content::has_whole_arguments;
use crate::dialect::responses::item_content::is_whole_call;
use crate::dialect::responses::spec_tables::FACTS;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::is_string;
use crate::json::members::items;
use crate::model::event::WireFact;
use crate::model::output::Output;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use std::collections::HashMap;

/// Maximum number of items to store.
const MAX_ITEMS: usize = 4096;

/// Maximum number of additional items to store at one index.
const MAX_AT_INDEX: usize = 16;

/// Maximum number of content parts to store. Further parts are not checked.
const MAX_PARTS: usize = 4096;

/// Item types that clients find by call id.
const BY_CALL_ID: [&str; 4] = [
    "function_call",
    "custom_tool_call",
    "shell_call",
    "shell_call_output",
];

/// Item types that do not need an id.
const WITHOUT_ID: [&str; 2] = ["function_call", "custom_tool_call"];

/// Event families that clients expect under another name.
const OTHER_NAMES: [&str; 2] = ["text", "function_call.arguments"];

/// Returns the two halves of an event name: the object that the event is about, and what happened to it.
fn family_of(name: &str) -> (&str, &str) {
    let name = name.strip_prefix("response.").unwrap_or(name);
    name.rsplit_once('.').unwrap_or(("", name))
}

/// Returns the type of item that clients expect at the index in an event of this name, or `None` if they do not look for
/// an item.
pub(crate) fn expected_type(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("response.")?;
    item_type(family_of(name).0)
}

/// Returns the type of item that events of `family` address, or `None` if the events do not address items.
fn item_type(family: &str) -> Option<&'static str> {
    Some(match family {
        "output_text" | "output_text.annotation" | "refusal" => "message",
        "reasoning_text" | "reasoning_summary_part" | "reasoning_summary_text" => "reasoning",
        "function_call_arguments" => "function_call",
        "custom_tool_call_input" => "custom_tool_call",
        "mcp_call_arguments" | "mcp_call" => "mcp_call",
        "mcp_list_tools" => "mcp_list_tools",
        "code_interpreter_call_code" | "code_interpreter_call" => "code_interpreter_call",
        "file_search_call" => "file_search_call",
        "web_search_call" => "web_search_call",
        "image_generation_call" => "image_generation_call",
        _ => return None,
    })
}

/// Returns the type of content part that events of `family` address, or `None` if the events do not address content
/// parts.
fn part_type(family: &str) -> Option<&'static str> {
    Some(match family {
        "output_text" | "output_text.annotation" => "output_text",
        "refusal" => "refusal",
        "reasoning_text" => "reasoning_text",
        _ => return None,
    })
}

/// A content part of an item, in the form that clients store.
#[derive(Debug, Default)]
struct Part {
    kind: Option<String>,
    annotations: usize,
}

impl Part {
    fn of(part: Raw<'_>) -> Part {
        let Some(part) = Object::of(part) else {
            return Part::default();
        };
        Part {
            kind: word(&part, "type"),
            annotations: array(&part, "annotations").map_or(0, |raw| items(raw).len()),
        }
    }

    /// Marks the event as misread unless the part has the type `kind` and, if the event adds an annotation, the index
    /// is correct.
    fn check(&mut self, out: &mut Output<'_>, family: &str, kind: &str, event: &Object<'_>) {
        if self.kind.as_deref() != Some(kind) {
            out.mark_misread("other_kind");
        } else if family == "output_text.annotation" {
            let count = self.annotations;
            let adds = index(event, "annotation_index") == i64::try_from(count).ok();
            let action = if adds {
                EventAction::Add
            } else {
                EventAction::Change
            };
            if position_of(out, event, "annotation_index", Some(count), action).is_some() && adds {
                self.annotations += 1;
            }
        }
    }
}

/// One output item, in the form that clients store.
#[derive(Debug, Default)]
struct Item {
    kind: Option<String>,
    id: Option<String>,
    call_id: Option<String>,
    parts: Vec<Part>,
    summaries: usize,
    /// Number of earlier items that had the same index.
    before: usize,
    /// True once the item has been completed.
    is_done: bool,
    /// Hash of the content of a completed item, or `None` if the item has no content.
    content: Option<u64>,
}

/// The values that clients compare to find an item in the final output: its type, id, and call id.
type Identity = (Option<String>, Option<String>, Option<String>);

impl Item {
    fn of(item: &Object<'_>) -> Item {
        let parts = array(item, "content").map_or_else(Vec::new, items);
        Item {
            kind: word(item, "type"),
            id: word(item, "id"),
            call_id: word(item, "call_id"),
            parts: Vec::from_iter(parts.into_iter().take(MAX_PARTS + 1).map(Part::of)),
            summaries: array(item, "summary").map_or(0, |raw| items(raw).len()),
            before: 0,
            is_done: false,
            content: None,
        }
    }

    fn identity(&self) -> Identity {
        let by_call = BY_CALL_ID.iter().any(|kind| self.is(kind));
        let id = self.id.clone().filter(|_| !by_call);
        (self.kind.clone(), id, self.call_id.clone())
    }

    fn is(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    /// Returns true if the item is the result of a call. A result is complete when it is added.
    fn is_result(&self) -> bool {
        let kind = self.kind.as_deref();
        kind.is_some_and(|kind| kind.ends_with("_output"))
    }

    /// Returns true if the item has content, or is not complete and may still have content.
    fn may_have_content(&self) -> bool {
        self.kind.as_deref().is_some_and(has_content) && (self.content.is_some() || !self.is_done)
    }

    /// Records the item for the encoder that writes repaired events.
    fn report(&self, out: &mut Output<'_>, index: i64) {
        out.record_fact(WireFact::ItemAdded {
            index,
            kind: self.kind.as_deref(),
            id: self.id.as_deref(),
            before: self.before,
        });
    }

    /// Returns the keys by which clients find the item. Each of these keys must be unique.
    fn names(&self) -> impl Iterator<Item = Name> + '_ {
        let known = |names: &[&str]| names.iter().any(|kind| self.is(kind));
        let is_name = |name: &&String| !name.is_empty();
        let id = self.id.as_ref().filter(is_name);
        let call_id = self.call_id.as_ref().filter(is_name);
        let call = call_id.filter(|_| known(&BY_CALL_ID));
        let id = id.map(|id| (None, id.clone()));
        id.into_iter()
            .chain(call.map(|id| (self.kind.clone(), id.clone())))
    }

    /// Returns true if clients reject `item` as the completed form of this item.
    fn is_changed(&self, item: &Item) -> bool {
        let known = BY_CALL_ID.iter().any(|kind| self.is(kind));
        let ids_differ = self.id != item.id && !(known && self.id.is_none());
        self.kind != item.kind || self.call_id != item.call_id || ids_differ
    }
}

/// How the response was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Opening {
    #[default]
    Nothing,
    Sent,
    /// Repair inserts the opening event.
    Own,
}

/// A key of an item: its id, or the type and call id of a call.
type Name = (Option<String>, String);

/// The output items that clients store for one response.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    opening: Opening,
    id: Option<String>,
    items: Map<i64, Item>,
    /// Keys of the items.
    names: Set<Name>,
    /// Number of content parts in all items.
    parts: usize,
    /// True if two items have the same index or key.
    is_ambiguous: bool,
}

/// Whether an event adds or changes a part at the position that it addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventAction {
    Add,
    Change,
}

impl Readers {
    /// Marks the event as misread if official clients would interpret it incorrectly, and stores the values that these
    /// clients store. `text` is the payload of the event.
    pub(crate) fn event(
        &mut self,
        out: &mut Output<'_>,
        kind: &str,
        event: &Object<'_>,
        text: &str,
    ) {
        if word(event, "type").is_none_or(|kind| kind.is_empty()) {
            out.mark_misread("other_member"); // clients do not read the name of the event
        }
        if self.opening == Opening::Nothing {
            self.begin(out, kind, event);
        }
        match kind {
            "response.created"
            | "response.queued"
            | "response.in_progress"
            | "response.completed"
            | "response.failed"
            | "response.incomplete" => self.lifecycle(out, kind, event, text),
            "response.done" => out.mark_misread("end_name"),
            "response.output_item.added" => self.added(out, event),
            "response.output_item.done" => self.item_done(out, event, text),
            _ => {
                let (family, verb) = family_of(kind);
                if family == "content_part" {
                    self.content_part(out, verb, event);
                } else if let Some(kind) = item_type(family) {
                    self.of_item(out, (family, verb), kind, event);
                } else if OTHER_NAMES.contains(&family) {
                    out.mark_misread("other_name");
                }
            }
        }
    }

    /// Checks the first event. Clients require `response.created` before any other event.
    fn begin(&mut self, out: &mut Output<'_>, kind: &str, event: &Object<'_>) {
        self.opening = Opening::Sent;
        if FACTS.is_terminal(kind) {
            out.mark_misread("start_missing"); // the terminal event contains content that was not streamed
        } else if kind != "response.created" {
            self.opening = Opening::Own;
            out.miss_opening();
            if matches!(kind, "response.queued" | "response.in_progress") {
                let id = event.object("response").and_then(|one| word(&one, "id"));
                self.id = id.filter(|id| FACTS.is_id(id)); // the inserted opening event uses this id
            }
        }
    }

    fn lifecycle(&mut self, out: &mut Output<'_>, kind: &str, event: &Object<'_>, text: &str) {
        let Some(response) = event.object("response") else {
            return out.mark_misread("other_member");
        };
        edit_opening(out, kind, &response, text);
        let id = word(&response, "id");
        let is_own_opening = self.opening == Opening::Own;
        if kind == "response.created" && !is_own_opening {
            out.record_fact(WireFact::Created(id.as_deref()));
            self.id = id;
        } else if id != self.id || (id.is_none() && is_own_opening) {
            out.mark_misread("other_id");
        }
        let is_completed = kind == "response.completed";
        if is_completed || kind == "response.incomplete" {
            check_status(out, is_completed, &response);
            let output = array(&response, "output").map(items);
            let output =
                output.map(|items| Vec::from_iter(items.into_iter().filter_map(Object::of)));
            if let Some(output) = &output {
                self.compare(out, output);
            }
            if is_completed {
                self.completed(out, &output.unwrap_or_default());
            }
        }
    }

    /// Compares the final output with the completed items. openai-python and openai-node return the final output, and
    /// the AI SDK reads only items that were streamed.
    fn compare(&self, out: &mut Output<'_>, output: &[Object<'_>]) {
        if self.is_ambiguous || self.items.len() >= MAX_ITEMS {
            return;
        }
        if output.is_empty() && self.items.len() > 0 {
            return out.mark_misread("empty_output");
        }
        let listed = output
            .iter()
            .filter_map(|item| Some((item, content_of(item)?)));
        let listed = Vec::from_iter(listed);
        let mut left = listed.iter().map(|(_, content)| *content);
        let mut indexes = Vec::from_iter(self.items.keys());
        indexes.sort_unstable();
        let streamed = indexes.into_iter().filter_map(|at| self.items.get(at));
        let mut streamed = streamed.filter_map(|item| item.content);
        let lacks_any = !streamed.all(|one| left.any(|other| other == one));
        let with_content = listed.iter().filter(|(item, _)| {
            let kind = item.string("type");
            kind.is_some_and(|kind| has_content(&kind))
        });
        let most = self.items.values().filter(|item| item.may_have_content());
        if lacks_any || with_content.count() > most.count() {
            out.mark_misread("other_output");
        }
    }

    /// Checks the final output. Clients require that the final output contain every item that has not been completed
    /// before.
    fn completed(&self, out: &mut Output<'_>, output: &[Object<'_>]) {
        let mut last = HashMap::new();
        for sent in output.iter().take(MAX_ITEMS) {
            check_whole(out, sent);
            if !is_whole_call(sent) && has_whole_arguments(sent) {
                out.mark_misread("other_status");
            }
            let item = Item::of(sent);
            last.insert(item.identity(), item.id);
        }
        let is_open = |item: &&Item| !item.is_done && !item.is_result();
        for item in self.items.values().filter(is_open) {
            // The AI SDK runs a call of the client only when its item is completed.
            let is_call = WITHOUT_ID.iter().any(|kind| item.is(kind));
            let found = last.get(&item.identity());
            if is_call || found.is_none_or(|id| *id != item.id) {
                out.mark_misread("not_closed");
            }
        }
    }

    fn added(&mut self, out: &mut Output<'_>, event: &Object<'_>) {
        let Some(item) = event.object("item") else {
            return;
        };
        let Some(at) = index(event, "output_index") else {
            return out.mark_misread("no_index");
        };
        if is_string(item.get("type"), "function_call") {
            check_arguments(out, &item);
        } else if is_string(item.get("type"), "message") && array(&item, "content").is_none() {
            out.mark_misread("no_text"); // clients add parts to the list
        }
        let mut item = Item::of(&item);
        let Some(known) = self.items.get_mut(&at) else {
            return self.keep(out, at, item);
        };
        out.mark_misread("index_taken");
        self.is_ambiguous = true;
        if known.is_changed(&item) && known.before < MAX_AT_INDEX {
            item.before = known.before + 1;
            *known = item;
            known.report(out, at);
        }
    }

    /// Stores a new item. Marks the event as misread if the item has no id, or if its id is that of another item.
    fn keep(&mut self, out: &mut Output<'_>, at: i64, item: Item) {
        if self.items.len() >= MAX_ITEMS {
            return;
        }
        let has_id = match &item.id {
            Some(id) => !id.is_empty(),
            None => WITHOUT_ID.iter().any(|kind| item.is(kind)),
        };
        if !has_id {
            out.mark_misread("no_id");
        }
        for name in item.names() {
            if !self.names.insert(name) {
                out.mark_misread("id_taken");
                self.is_ambiguous = true;
            }
        }
        item.report(out, at);
        self.parts += item.parts.len();
        self.items.insert(at, item);
    }

    fn item_done(&mut self, out: &mut Output<'_>, event: &Object<'_>, text: &str) {
        let Some(sent) = event.object("item") else {
            return;
        };
        let Some(at) = index(event, "output_index") else {
            return out.mark_misread("no_index");
        };
        check_whole(out, &sent);
        edit_item(out, &sent, text);
        let done = Item {
            is_done: true,
            content: content_of(&sent),
            ..Item::of(&sent)
        };
        let is_full = self.items.len() >= MAX_ITEMS;
        match self.items.get_mut(&at) {
            None => {
                if !is_full {
                    out.mark_misread("not_opened");
                }
                self.keep(out, at, done);
            }
            Some(known) if known.is_changed(&done) => out.mark_misread("other_id"),
            Some(known) => {
                self.parts = (self.parts + done.parts.len()).saturating_sub(known.parts.len());
                let before = known.before;
                *known = Item { before, ..done };
                known.report(out, at);
            }
        }
        out.record_fact(WireFact::ItemEnded {
            index: at,
            item: sent.raw.text,
        });
    }

    /// Returns the item that an event addresses. If clients cannot find the item, marks the event as misread and
    /// returns `None`.
    fn item(&mut self, out: &mut Output<'_>, event: &Object<'_>, kind: &str) -> Option<&mut Item> {
        let at = index(event, "output_index");
        let is_full = self.items.len() >= MAX_ITEMS;
        let Some(item) = at.and_then(|at| self.items.get_mut(&at)) else {
            if !is_full {
                let why = at.map_or("no_index", |_| "not_opened");
                out.mark_misread(why);
            }
            return None;
        };
        let id = event.string("item_id").filter(|id| !id.is_empty());
        let why = if !item.is(kind) {
            "other_kind"
        } else if id.is_none() {
            "no_id"
        } else if id.as_deref() != item.id.as_deref() {
            "other_id"
        } else {
            return Some(item);
        };
        out.mark_misread(why);
        None
    }

    fn content_part(&mut self, out: &mut Output<'_>, verb: &str, event: &Object<'_>) {
        let action = match verb {
            "added" => EventAction::Add,
            "done" => EventAction::Change,
            _ => return,
        };
        let Some(part) = event.object("part") else {
            return;
        };
        let is_other = is_unmodelled(&part);
        let is_reasoning = |item: &Item| item.is("reasoning");
        let inside = || index(event, "output_index").and_then(|at| self.items.get(&at));
        let is_reasoning = is_string(part.get("type"), "reasoning_text")
            || (is_other && inside().is_some_and(is_reasoning));
        let kind = if is_reasoning { "reasoning" } else { "message" };
        let is_full = self.parts > MAX_PARTS;
        let Some(item) = self.item(out, event, kind) else {
            return;
        };
        if item.is("message") && !(is_message_part(&part) || is_other) {
            out.mark_misread("other_kind");
        }
        let count = (!is_full).then_some(item.parts.len());
        let Some(position) = position_of(out, event, "content_index", count, action) else {
            return;
        };
        let part = Part::of(part.raw);
        match action {
            _ if is_full => {}
            EventAction::Change => {
                if let Some(known) = item.parts.get_mut(position) {
                    *known = part;
                }
            }
            EventAction::Add => {
                item.parts.push(part);
                self.parts += 1;
            }
        }
    }

    fn of_item(
        &mut self,
        out: &mut Output<'_>,
        (family, verb): (&str, &str),
        kind: &str,
        event: &Object<'_>,
    ) {
        let is_full = self.parts > MAX_PARTS;
        let Some(item) = self.item(out, event, kind) else {
            return;
        };
        if let Some(kind) = part_type(family) {
            let count = (!is_full).then_some(item.parts.len());
            let position = position_of(out, event, "content_index", count, EventAction::Change);
            if let Some(position) = position
                && let Some(part) = item.parts.get_mut(position).filter(|_| !is_full)
            {
                part.check(out, family, kind, event);
            }
        } else if family.starts_with("reasoning_summary") {
            let action = match verb {
                "added" => EventAction::Add,
                _ => EventAction::Change,
            };
            let count = (!is_full).then_some(item.summaries);
            let position = position_of(out, event, "summary_index", count, action);
            if position.is_some() && action == EventAction::Add {
                item.summaries += 1;
            }
        }
        if verb == "delta" && !has_text(event) {
            out.mark_misread("no_text");
        }
    }
}

/// Returns the position that an event addresses among `count` parts, or `None` if the position is wrong. An event that
/// adds a part must address the next position. If the number of parts is unknown, `count` is `None`.
fn position_of(
    out: &mut Output<'_>,
    event: &Object<'_>,
    key: &str,
    count: Option<usize>,
    action: EventAction,
) -> Option<usize> {
    let found = index(event, key).and_then(|at| usize::try_from(at).ok());
    let why = match (found, count) {
        (None, _) => "no_index",
        (_, None) => return found,
        (Some(at), Some(count)) => match action {
            EventAction::Add if at < count => "index_taken",
            EventAction::Add if at > count => "other_index",
            EventAction::Change if at >= count => "not_opened",
            _ => return found,
        },
    };
    out.mark_misread(why);
    None
}

/// Checks the status of the final response. openai-python and openai-node return it. If an incomplete response has no
/// reason, the AI SDK reads it as complete.
fn check_status(out: &mut Output<'_>, is_completed: bool, response: &Object<'_>) {
    let is_success = is_string(response.get("status"), "completed");
    let has_reason = || {
        let details = response.object("incomplete_details");
        let reason = details.and_then(|details| word(&details, "reason"));
        reason.is_some_and(|reason| !reason.trim().is_empty())
    };
    if !is_success && (is_completed || !has_reason()) {
        out.mark_misread("other_status");
    }
}

/// Checks the members of a completed item that clients use without validation.
fn check_whole(out: &mut Output<'_>, item: &Object<'_>) {
    if is_string(item.get("type"), "function_call") {
        if word(item, "name").is_none_or(|name| name.is_empty()) {
            out.mark_misread("no_name");
        }
        check_arguments(out, item);
    } else if is_string(item.get("type"), "message") {
        let is_readable = |part: &Object<'_>| is_message_part(part) || is_unmodelled(part);
        let is_part = |raw| Object::of(raw).is_some_and(|part| is_readable(&part));
        match array(item, "content") {
            None => out.mark_misread("no_text"),
            Some(raw) if !items(raw).into_iter().all(is_part) => out.mark_misread("other_kind"),
            Some(_) => {}
        }
    }
}

fn check_arguments(out: &mut Output<'_>, call: &Object<'_>) {
    match call.get("arguments").map(|raw| raw.kind) {
        Some(Kind::String) => {}
        None | Some(Kind::Null) => out.mark_misread("no_arguments"),
        Some(_) => out.mark_misread("args_object"),
    }
}

fn is_message_part(part: &Object<'_>) -> bool {
    let kind = part.get("type");
    is_string(kind, "output_text") || is_string(kind, "refusal")
}

fn array<'a>(holder: &Object<'a>, key: &str) -> Option<Raw<'a>> {
    holder.get(key).filter(|raw| raw.kind == Kind::Array)
}

fn has_text(event: &Object<'_>) -> bool {
    event
        .get("delta")
        .is_some_and(|raw| raw.kind == Kind::String)
}

fn index(holder: &Object<'_>, key: &str) -> Option<i64> {
    let raw = holder.get(key).filter(|raw| raw.kind == Kind::Number)?;
    raw.text.parse().ok().filter(|number| *number >= 0)
}

fn word(holder: &Object<'_>, key: &str) -> Option<String> {
    let text = holder.string(key)?;
    Some(text.into_owned())
}
