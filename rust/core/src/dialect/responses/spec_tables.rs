//! The tables of the Responses dialect, loaded from `_spec/dialects.json` and indexed for the decoder.
//!
//! The tables are loaded once, on first use.

use crate::dialect::responses::name_sets::Field;
use crate::dialect::responses::name_sets::Names;
use crate::dialect::think_tags::is_white;
use crate::dialect::usage_counts::Counts;
use crate::model::delta::Address;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use crate::model::delta::PartAt;
use crate::model::finish_words::meaning;
use crate::model::spec;
use serde_json::Value;
use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::LazyLock;

/// The keep-alive that OpenAI sends, with a sequence number. openai-node rejects all other ones.
pub(crate) const OFFICIAL_KEEP_ALIVE: &str = "keepalive";

/// Classification of a piece of text: the kind of its item, its channel, and the kind of reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextKind {
    pub(crate) item: ItemKind,
    pub(crate) channel: Channel,
    reasoning: &'static str,
}

impl TextKind {
    pub(crate) const TEXT: TextKind = TextKind::new(ItemKind::Message, Channel::Text, "raw");
    const REFUSAL: TextKind = TextKind::new(ItemKind::Message, Channel::Refusal, "raw");
    pub(crate) const RAW: TextKind = TextKind::new(ItemKind::Reasoning, Channel::Reasoning, "raw");
    pub(crate) const SUMMARY: TextKind =
        TextKind::new(ItemKind::Reasoning, Channel::Reasoning, "summary");

    const fn new(item: ItemKind, channel: Channel, reasoning: &'static str) -> TextKind {
        TextKind {
            item,
            channel,
            reasoning,
        }
    }

    fn named(name: &str) -> TextKind {
        match name {
            "refusal" => TextKind::REFUSAL,
            "raw" => TextKind::RAW,
            "summary" => TextKind::SUMMARY,
            _ => TextKind::TEXT,
        }
    }

    /// Returns the part of this kind at an address. The choice is always 0, because a response has only one choice.
    pub(crate) fn at(self, address: Address<'_>) -> PartAt<'_> {
        PartAt {
            choice: 0,
            kind: self.item,
            address,
            channel: self.channel,
            reasoning_kind: self.reasoning,
        }
    }
}

/// An event that contains text. `position`: the member that contains the index of the part in its item. `member`: the
/// member that contains the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextEvent {
    pub(crate) text_kind: TextKind,
    pub(crate) position: Field,
    pub(crate) member: Field,
}

/// Event members that several functions read.
#[derive(Debug)]
pub(crate) struct Fields {
    pub(crate) kind: Field,
    pub(crate) sequence_number: Field,
    pub(crate) response: Field,
    pub(crate) error: Field,
    pub(crate) message: Field,
    pub(crate) item_id: Field,
    pub(crate) call_id: Field,
    pub(crate) name: Field,
    pub(crate) output_index: Field,
    pub(crate) content_index: Field,
    pub(crate) summary_index: Field,
    pub(crate) delta: Field,
    pub(crate) text: Field,
}

/// The events with arguments of the two call types that an encoder writes.
const WRITTEN_ARGUMENTS: [&str; 2] = [
    "response.function_call_arguments.",
    "response.custom_tool_call_input.",
];

/// The effect of an event, which its type determines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    KeepAlive,
    Error,
    ItemAdded,
    ItemDone,
    /// A content part or a summary part opens or closes.
    Part {
        summary: bool,
        closes: bool,
    },
    Annotation,
    TextDelta(TextEvent),
    TextValue(TextEvent),
    /// The event contains a piece of the arguments. The value is the tool's name, if the event type determines the
    /// name.
    ArgumentDelta(Option<&'static str>),
    /// The event contains the complete arguments. The value is the name of the member that contains the arguments.
    ArgumentValue(&'static str),
    Opening,
    /// The event reports the progress of a call.
    Progress,
    /// The event contains an audio fragment. The value is the member of `audio` that the fragment extends.
    AudioDelta(&'static str),
    /// The event contains a piece of the output of an announced result.
    ResultDelta,
    /// The event only announces or repeats the content of other events.
    Contentless,
    /// The event ends the response. The value is the status that the event type implies.
    Terminal(&'static str),
}

impl Kind {
    /// Returns true if the event contains a piece of text or a piece of arguments.
    pub(crate) fn is_delta(self) -> bool {
        matches!(self, Kind::TextDelta(_) | Kind::ArgumentDelta(_))
    }

    /// Returns true if the event is neither a keepalive nor an error, so that it is part of a response.
    pub(crate) fn is_part_of_response(self) -> bool {
        !matches!(self, Kind::KeepAlive | Kind::Error)
    }

    /// Returns true if an encoder writes events of this kind itself, because they concern the response, an item, a text,
    /// or the arguments of an ordinary call. `name`: the type of the event.
    pub(crate) fn is_written(self, name: &str) -> bool {
        match self {
            Kind::Progress | Kind::AudioDelta(_) | Kind::ResultDelta | Kind::Contentless => false,
            Kind::ArgumentDelta(_) | Kind::ArgumentValue(_) => WRITTEN_ARGUMENTS
                .iter()
                .any(|family| name.starts_with(family)),
            _ => true,
        }
    }
}

/// An item type that is a tool call. `name`: the tool's name, if the item type determines the name.
#[derive(Debug)]
pub(crate) struct CallType {
    pub(crate) kind: &'static str,
    pub(crate) name: Option<&'static str>,
    /// Members of the item that form the arguments.
    pub(crate) members: Vec<&'static str>,
    /// True if the arguments are an object that consists of these members.
    pub(crate) wrapped: bool,
    /// True if the arguments are free-form text.
    pub(crate) custom: bool,
    /// True if the provider runs the call.
    pub(crate) provider: bool,
    /// Members of the item that are not kept as metadata.
    pub(crate) modelled: Names,
    /// Members of the item that contain the result of the call. The first member is the output, and the second member
    /// is the error.
    pub(crate) results: Vec<&'static str>,
}

#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) kinds: HashMap<&'static str, Kind>,
    /// The `TextKind` of each content part type, and the member that contains the part's text.
    pub(crate) content: HashMap<&'static str, (TextKind, &'static str)>,
    pub(crate) calls: HashMap<&'static str, CallType>,
    pub(crate) counts: Counts,
    pub(crate) statuses: HashSet<&'static str>,
    /// Statuses of a call whose arguments are complete.
    pub(crate) finished_statuses: HashSet<&'static str>,
    /// Statuses of a call whose arguments were truncated.
    pub(crate) cut_statuses: HashSet<&'static str>,
    /// Names that some gateways use instead of the documented arguments member.
    pub(crate) other_arguments: Vec<&'static str>,
    /// Names that some gateways use instead of `delta` in events that contain a piece of the arguments.
    pub(crate) other_deltas: Vec<&'static str>,
    /// Item types with which a response may end, in addition to client calls.
    pub(crate) response_events: HashSet<&'static str>,
    /// The member that contains the output, for each item type that is a result.
    pub(crate) results: HashMap<&'static str, &'static str>,
    /// Item types that only the provider reads.
    pub(crate) provider_items: HashSet<&'static str>,
    /// The members that address a call or a result in an event about its progress.
    pub(crate) progress_address: Names,
    /// The members of a piece of a result that are not part of the output.
    pub(crate) result_address: Names,
    /// Free-form tools that the provider runs (xAI).
    pub(crate) provider_tools: HashSet<&'static str>,
    pub(crate) absent_ids: Vec<&'static str>,
    pub(crate) event_fields: Names,
    pub(crate) fields: Fields,
    pub(crate) response_fields: Names,
    pub(crate) item_fields: Names,
    pub(crate) part_fields: Names,
    /// Members that the decoder reads in items of any type.
    pub(crate) read_of_item: Names,
    pub(crate) read_of_error: Names,
    pub(crate) read_of_details: Names,
}

pub(crate) static FACTS: LazyLock<Facts> = LazyLock::new(Facts::read);

impl Facts {
    /// Returns true if the word is a finish reason that does not mean success.
    pub(crate) fn is_unsuccessful(&self, word: &str) -> bool {
        let meaning = meaning("responses", word);
        matches!(
            meaning,
            Some("length" | "content_filter" | "error" | "other")
        )
    }

    /// Returns true if a response with this status has ended. Some gateways send a finish reason as the status.
    pub(crate) fn is_final(&self, status: &str) -> bool {
        self.statuses.contains(status) || self.is_unsuccessful(status)
    }

    /// Returns true if an event with this name reports an error.
    pub(crate) fn is_error(&self, name: &str) -> bool {
        matches!(self.kinds.get(name), Some(Kind::Error))
    }

    /// Returns true if an event with this name ends a response.
    pub(crate) fn is_terminal(&self, name: &str) -> bool {
        matches!(self.kinds.get(name), Some(Kind::Terminal(_)))
    }

    /// Returns true if an event with this name contains the response: it begins, updates or ends the response.
    pub(crate) fn contains_response(&self, name: &str) -> bool {
        matches!(
            self.kinds.get(name),
            Some(Kind::Opening | Kind::Terminal(_))
        )
    }

    /// Returns true if the id is neither blank nor a placeholder (`absent_ids`).
    pub(crate) fn is_id(&self, id: &str) -> bool {
        let trimmed = id.trim_matches(is_white);
        !trimmed.is_empty() && !self.absent_ids.contains(&trimmed)
    }

    fn read() -> Facts {
        let item = [list("item_fields"), vec!["type"]].concat();
        let call_members = table("call_types").flat_map(|(_, members)| words(members));
        let others = ["status", "output", "error", "result", "tools"];
        let read_of_item = item.iter().copied().chain(call_members).chain(others);
        let event_fields = Names::of(list("event_fields"));
        let field = |name| event_fields.field(name);
        Facts {
            kinds: kinds(&event_fields),
            fields: Fields {
                kind: field("type"),
                sequence_number: field("sequence_number"),
                response: field("response"),
                error: field("error"),
                message: field("message"),
                item_id: field("item_id"),
                call_id: field("call_id"),
                name: field("name"),
                output_index: field("output_index"),
                content_index: field("content_index"),
                summary_index: field("summary_index"),
                delta: field("delta"),
                text: field("text"),
            },
            content: table("content_types")
                .map(|(name, row)| (name, (TextKind::named(nth(row, 0)), nth(row, 1))))
                .collect(),
            calls: table("call_types")
                .map(|(name, members)| (name, call_type(name, words(members).collect())))
                .collect(),
            counts: Counts::of("responses"),
            statuses: list("terminal_statuses").into_iter().collect(),
            finished_statuses: list("finished_statuses").into_iter().collect(),
            cut_statuses: list("cut_statuses").into_iter().collect(),
            other_arguments: list("other_arguments"),
            other_deltas: list("other_deltas"),
            response_events: list("answers").into_iter().collect(),
            results: list("result_types")
                .into_iter()
                .map(|name| (name, result_member(name)))
                .collect(),
            provider_items: list("provider_items").into_iter().collect(),
            progress_address: Names::of(list("progress_address")),
            result_address: Names::of([list("progress_address"), vec!["type"]].concat()),
            provider_tools: list("provider_tools").into_iter().collect(),
            absent_ids: list("absent_ids"),
            event_fields,
            response_fields: Names::of([list("response_fields"), list("echoed_fields")].concat()),
            read_of_item: Names::of(read_of_item),
            item_fields: Names::of(item),
            part_fields: Names::of(list("part_fields")),
            read_of_error: Names::of(["code", "type", "message", "detail"]),
            read_of_details: Names::of(["reason"]),
        }
    }
}

fn result_member(kind: &str) -> &'static str {
    let members = fact("result_members").and_then(|members| members.get(kind));
    members.and_then(Value::as_str).unwrap_or("output")
}

fn kinds(fields: &Names) -> HashMap<&'static str, Kind> {
    let part = |summary, closes| Kind::Part { summary, closes };
    let mut out = HashMap::from([
        ("response.output_item.added", Kind::ItemAdded),
        ("response.output_item.done", Kind::ItemDone),
        ("response.content_part.added", part(false, false)),
        ("response.content_part.done", part(false, true)),
        ("response.reasoning_summary_part.added", part(true, false)),
        ("response.reasoning_summary_part.done", part(true, true)),
        ("response.output_text.annotation.added", Kind::Annotation),
    ]);
    let text = |row, member| TextEvent {
        text_kind: TextKind::named(nth(row, 0)),
        position: fields.field(nth(row, 1)),
        member: fields.field(member),
    };
    out.extend(table("text_deltas").map(|(name, row)| (name, Kind::TextDelta(text(row, "delta")))));
    out.extend(
        table("text_values").map(|(name, row)| (name, Kind::TextValue(text(row, nth(row, 2))))),
    );
    out.extend(pairs("argument_deltas").map(|(name, tool)| {
        let tool = Some(tool).filter(|tool| !tool.is_empty());
        (name, Kind::ArgumentDelta(tool))
    }));
    out.extend(pairs("argument_values").map(|(name, member)| (name, Kind::ArgumentValue(member))));
    let all = |key: &str, kind: Kind| list(key).into_iter().map(move |name| (name, kind));
    out.extend(all("opening_events", Kind::Opening));
    out.extend(all("progress_events", Kind::Progress));
    out.extend(pairs("audio_deltas").map(|(name, member)| (name, Kind::AudioDelta(member))));
    out.extend(all("result_deltas", Kind::ResultDelta));
    out.extend(all("contentless_events", Kind::Contentless));
    out.extend(pairs("terminal_events").map(|(name, status)| (name, Kind::Terminal(status))));
    out.extend(all("error_events", Kind::Error));
    out.extend(all("keepalive_events", Kind::KeepAlive));
    out
}

fn call_type(name: &'static str, members: Vec<&'static str>) -> CallType {
    let is = |key: &str| list(key).contains(&name);
    let results = fact("call_results").and_then(|results| results.get(name));
    let mut modelled = vec!["id", "call_id", "name"];
    modelled.extend(&members);
    let results: Vec<&str> = results.into_iter().flat_map(words).collect();
    modelled.extend(&results);
    // The type of any call except a plain function call is kept as metadata, because clients send the item back in a
    // later turn.
    modelled.extend((name == "function_call").then_some("type"));
    CallType {
        kind: name,
        name: (!is("named_calls")).then(|| name.strip_suffix("_call").unwrap_or(name)),
        members,
        wrapped: is("wrapped_calls"),
        custom: is("custom_calls"),
        provider: is("provider_calls"),
        modelled: Names::of(modelled),
        results,
    }
}

// Access to the dialect's data in the spec

fn fact(key: &str) -> Option<&'static Value> {
    spec::dialects().get("responses")?.get(key)
}

fn words(value: &'static Value) -> impl Iterator<Item = &'static str> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_str)
}

fn list(key: &str) -> Vec<&'static str> {
    fact(key).into_iter().flat_map(words).collect()
}

fn table(key: &str) -> impl Iterator<Item = (&'static str, &'static Value)> {
    let rows = fact(key).and_then(Value::as_object).into_iter().flatten();
    rows.map(|(name, value)| (name.as_str(), value))
}

fn pairs(key: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table(key).filter_map(|(name, value)| Some((name, value.as_str()?)))
}

fn nth(row: &'static Value, position: usize) -> &'static str {
    row.get(position)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
