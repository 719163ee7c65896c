//! Writes the response object of the Responses API, with all members that the published schema requires.
//!
//! Members that repeat the request contain the API's default values, because a converter does not receive the request.

use crate::dialect::responses::item_content::content_of;
use crate::dialect::responses::item_content::is_whole_call;
use crate::dialect::responses::response::response_members;
use crate::dialect::responses::spec_tables::FACTS;
use crate::encode::common::compact_json::canonical;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::finish::EndingError;
use crate::encode::common::usage::Counts;
use crate::encode::common::writer::Writer;
use crate::encode::responses::items::Items;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Document;
use crate::json::members::Object;
use crate::json::members::document;
use crate::json::members::items as elements;
use crate::sse::decode_utf8;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::collections::HashSet;

/// The state of the response that an event reports.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome<'a> {
    InProgress,
    Completed,
    /// The response is incomplete for this reason, which is written in `incomplete_details`.
    Incomplete(&'a str),
    /// The response was cancelled. OpenAI documents this status but no event for it, although gateways send such an
    /// event.
    Cancelled,
    Failed(&'a EndingError),
}

impl Outcome<'_> {
    fn status(&self) -> &'static str {
        match self {
            Outcome::InProgress => "in_progress",
            Outcome::Completed => "completed",
            Outcome::Incomplete(_) => "incomplete",
            Outcome::Cancelled => "cancelled",
            Outcome::Failed(_) => "failed",
        }
    }

    /// Returns the name of the event that reports this state.
    pub(crate) fn event(&self) -> &'static str {
        match self {
            Outcome::InProgress => "response.in_progress",
            Outcome::Completed => "response.completed",
            Outcome::Incomplete(_) => "response.incomplete",
            Outcome::Cancelled => "response.cancelled",
            Outcome::Failed(_) => "response.failed",
        }
    }
}

/// Members that repeat the request, in three groups: before the output, after the error, and after the usage.
const BEFORE_OUTPUT: [(&str, &str); 2] =
    [("previous_response_id", "null"), ("instructions", "null")];
const REQUEST: [(&str, &str); 11] = [
    ("tools", "[]"),
    ("tool_choice", "\"auto\""),
    ("truncation", "\"disabled\""),
    ("parallel_tool_calls", "true"),
    ("text", "{\"format\":{\"type\":\"text\"}}"),
    ("top_p", "1"),
    ("presence_penalty", "0"),
    ("frequency_penalty", "0"),
    ("top_logprobs", "0"),
    ("temperature", "1"),
    ("reasoning", "null"),
];
const AFTER_USAGE: [(&str, &str); 8] = [
    ("max_output_tokens", "null"),
    ("max_tool_calls", "null"),
    ("store", "false"),
    ("background", "false"),
    ("service_tier", "\"default\""),
    ("metadata", "{}"),
    ("safety_identifier", "null"),
    ("prompt_cache_key", "null"),
];

/// Names of members, and their values as JSON.
type Members = Vec<(&'static str, Cow<'static, str>)>;

/// Writes the response object in its current state.
pub(crate) fn resource(
    context: &mut EncodeContext,
    id: Option<&str>,
    outcome: &Outcome<'_>,
    items: &Items,
) {
    let mut mark = "{";
    for (name, text) in members(context, id, outcome, output(context, items, None)) {
        context.writer.raw(mark).string(name).raw(":").raw(&text);
        mark = ",";
    }
    context.writer.raw("}");
}

/// Returns all items of the response as a JSON list. An item that passed through is written as the source sent it, in
/// `sent` or in the item's closing event.
fn output(context: &EncodeContext, items: &Items, sent: Option<&Object<'_>>) -> String {
    let ended = &context.passed.items;
    let mut repeated_items = RepeatedItems::of(sent, ended.values());
    let mut all = BTreeMap::new();
    items.each(
        |index, passed, item| _ = all.insert(index, (passed, item)),
        context,
    );
    for (index, item) in ended {
        let as_sent = || {
            let mut text = Writer::default();
            canonical(&mut text, item);
            (true, text.into_text())
        };
        if items.continued.contains(index) {
            // The later forms of the item in the source contain the rest, which is a new item.
            all.insert(*index, as_sent());
        } else {
            let has_passed = |(passed, _): &mut (bool, String)| *passed = true;
            all.entry(*index)
                .and_modify(has_passed)
                .or_insert_with(as_sent);
        }
    }
    for index in &items.continued {
        all.entry(*index).and_modify(|(passed, _)| *passed = false);
    }
    items
        .copied
        .each(|index, item| _ = all.insert(index, (false, item)));
    for (index, item) in &items.hosted.finished {
        all.insert(*index, (false, item.clone()));
    }
    let mut to = Writer::default();
    let mut mark = "[";
    for (passed, item) in all.values() {
        to.raw(mark);
        match repeated_items.spelled(item).filter(|_| *passed) {
            Some(sent) => canonical(&mut to, sent),
            None => _ = to.raw(item),
        }
        mark = ",";
    }
    to.raw(if mark == "[" { "[]" } else { "]" });
    to.into_text()
}

/// Returns all members that the schema requires, in the schema's order.
fn members(
    context: &EncodeContext,
    id: Option<&str>,
    outcome: &Outcome<'_>,
    output: String,
) -> Members {
    let text = |write: &dyn Fn(&mut Writer)| {
        let mut to = Writer::default();
        write(&mut to);
        Cow::Owned(to.into_text())
    };
    let answer = &context.answer;
    let model = answer.model.as_deref().unwrap_or("unknown");
    let fixed = |(name, value): &(&'static str, &'static str)| (*name, Cow::Borrowed(*value));
    let mut fields = vec![
        ("id", text(&|to| _ = to.text_or_null(id))),
        ("object", Cow::Borrowed("\"response\"")),
        (
            "created_at",
            text(&|to| _ = to.number(answer.created.unwrap_or(context.options.created))),
        ),
        ("completed_at", Cow::Borrowed("null")),
        ("status", text(&|to| _ = to.string(outcome.status()))),
        ("incomplete_details", text(&|to| details(to, outcome))),
        ("model", text(&|to| _ = to.string(model))),
    ];
    fields.extend(BEFORE_OUTPUT.iter().map(fixed));
    fields.push(("output", Cow::Owned(output)));
    fields.push(("error", text(&|to| failure(to, outcome))));
    fields.extend(REQUEST.iter().map(fixed));
    fields.push(("usage", text(&|to| usage(to, answer.usage, outcome))));
    fields.extend(AFTER_USAGE.iter().map(fixed));
    fields
}

/// The response object as a source in this dialect sent it.
#[derive(Debug)]
pub(crate) struct SourceResponse(String);

/// Members that describe the outcome, which the converter determines.
const OWN_MEMBERS: [&str; 5] = ["id", "status", "output", "error", "incomplete_details"];

/// Members that identify an item in the source's output.
const IDENTIFYING_MEMBERS: [&str; 6] = ["type", "id", "call_id", "name", "arguments", "input"];

impl SourceResponse {
    /// Returns the response object of a payload, which is the payload itself or one of its members, or `None` if there
    /// is none.
    pub(crate) fn of(payload: &[u8]) -> Option<SourceResponse> {
        let (text, _) = decode_utf8(payload);
        let Ok(Document::Object(event)) = document(&text, None) else {
            return None;
        };
        let is_of_response = event
            .string("type")
            .is_some_and(|name| FACTS.contains_response(&name));
        if event.present("response").is_none() && is_of_response {
            let mut text = String::new();
            for member in response_members(&event) {
                text.push(if text.is_empty() { '{' } else { ',' });
                text.extend(["\"", member.key.raw, "\":", member.raw.text]);
            }
            return (!text.is_empty()).then(|| SourceResponse(text + "}"));
        }
        let is_response = event.string("object").as_deref() == Some("response");
        let response = if is_response {
            Some(event)
        } else {
            event.object("response")
        };
        let response = response.filter(|response| !response.members.is_empty());
        response.map(|response| SourceResponse(response.raw.text.to_owned()))
    }

    /// Writes the members as the source sent them, except those that describe the outcome, and adds the missing
    /// members.
    pub(crate) fn write(
        &self,
        context: &mut EncodeContext,
        id: Option<&str>,
        outcome: &Outcome<'_>,
        items: &Items,
    ) {
        let Some(sent) = Object::of(Raw {
            text: &self.0,
            kind: Kind::Object,
        }) else {
            return;
        };
        let mut fields = members(context, id, outcome, output(context, items, Some(&sent)));
        let mut own_members = OWN_MEMBERS.to_vec();
        if sent.present("usage").is_none() {
            own_members.push("usage");
        }
        if sent
            .present("created_at")
            .is_none_or(|raw| raw.kind != Kind::Number)
        {
            own_members.push("created_at");
        }
        if sent.string("model").is_none() {
            own_members.push("model");
        }
        let incomplete = matches!(outcome, Outcome::Incomplete(_));
        let has_details = sent
            .object("incomplete_details")
            .is_some_and(|details| !details.members.is_empty());
        if incomplete && has_details && sent.string("status").as_deref() == Some(outcome.status()) {
            own_members.retain(|name| *name != "incomplete_details");
        }
        let last = sent
            .members
            .iter()
            .map(|member| (member.key.name(), member.raw));
        let last: HashMap<_, _> = last.collect();
        let to = &mut context.writer;
        let mut mark = "{";
        let mut names = HashSet::new();
        for member in &sent.members {
            let name = member.key.name();
            if !names.insert(name.clone()) {
                continue;
            }
            to.raw(mark).string(&name).raw(":");
            mark = ",";
            let position = fields.iter().position(|(known, _)| **known == *name);
            match position.map(|position| fields.remove(position)) {
                Some((known, text)) if own_members.contains(&known) => _ = to.raw(&text),
                _ => canonical(to, last.get(&name).map_or("null", |raw| raw.text)),
            }
        }
        for (name, text) in fields {
            to.raw(mark).string(name).raw(":").raw(&text);
            mark = ",";
        }
        to.raw("}");
    }
}

/// The items that the source repeats in its response object, found by their identifying members.
struct RepeatedItems<'s> {
    sent: Vec<Object<'s>>,
    /// The items, keyed by the values of the members that are compared.
    by_identity: HashMap<Vec<&'static str>, HashMap<Identity, &'s str>>,
}

/// The values of the identifying members, what applications read of the item, and whether the item is a complete call.
type Identity = (Vec<Option<String>>, Option<u64>, bool);

impl<'s> RepeatedItems<'s> {
    fn of(
        sent: Option<&'s Object<'s>>,
        ended: impl Iterator<Item = &'s String>,
    ) -> RepeatedItems<'s> {
        let list = sent.and_then(|sent| sent.get("output"));
        let list = list.filter(|raw| raw.kind == Kind::Array);
        let list = list.map(elements).unwrap_or_default();
        let ended = ended.map(|text| Raw {
            text,
            kind: Kind::Object,
        });
        RepeatedItems {
            sent: list
                .into_iter()
                .chain(ended)
                .filter_map(Object::of)
                .collect(),
            by_identity: HashMap::new(),
        }
    }

    /// Returns an item as the source sent it, or `None`. The first item with the same identifying members is used.
    fn spelled(&mut self, item: &str) -> Option<&'s str> {
        let item = Object::of(Raw {
            text: item,
            kind: Kind::Object,
        })?;
        let names: Vec<&'static str> = IDENTIFYING_MEMBERS
            .into_iter()
            .filter(|name| item.string(name).is_some())
            .collect();
        let identity_of = |one: &Object<'_>| -> Identity {
            let words = names.iter().map(|name| one.string(name));
            let words = words.map(|word| word.map(Cow::into_owned)).collect();
            (words, content_of(one), is_whole_call(one))
        };
        let identity = identity_of(&item);
        if !self.by_identity.contains_key(&names) {
            let mut known = HashMap::new();
            for one in &self.sent {
                known.entry(identity_of(one)).or_insert(one.raw.text);
            }
            self.by_identity.insert(names.clone(), known);
        }
        self.by_identity.get(&names)?.get(&identity).copied()
    }
}

fn details(writer: &mut Writer, outcome: &Outcome<'_>) {
    match outcome {
        Outcome::Incomplete(reason) => writer.raw("{\"reason\":").string(reason).raw("}"),
        _ => writer.raw("null"),
    };
}

fn failure(writer: &mut Writer, outcome: &Outcome<'_>) {
    match outcome {
        Outcome::Failed(ending_error) => {
            writer.raw("{\"code\":").string(&ending_error.code);
            writer
                .raw(",\"message\":")
                .string(&ending_error.message)
                .raw("}")
        }
        _ => writer.raw("null"),
    };
}

fn usage(writer: &mut Writer, counts: Option<Counts>, outcome: &Outcome<'_>) {
    let usage =
        counts.filter(|counts| counts.is_known() && !matches!(outcome, Outcome::InProgress));
    match usage {
        None => _ = writer.raw("null"),
        Some(counts) => {
            writer
                .raw("{\"input_tokens\":")
                .number(counts.input.unwrap_or(0));
            writer.raw(",\"input_tokens_details\":{\"cached_tokens\":");
            writer.number(counts.cached.unwrap_or(0));
            writer.raw(",\"cache_write_tokens\":");
            writer.number(counts.cache_write.unwrap_or(0));
            writer
                .raw("},\"output_tokens\":")
                .number(counts.output.unwrap_or(0));
            writer.raw(",\"output_tokens_details\":{\"reasoning_tokens\":");
            writer.number(counts.reasoning.unwrap_or(0));
            writer
                .raw("},\"total_tokens\":")
                .number(counts.sum())
                .raw("}");
        }
    }
}
