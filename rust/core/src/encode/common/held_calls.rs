//! Holds back tool calls until it is known whether the server runs them itself.
//!
//! A Responses stream may contain a `function_call` together with its `function_call_output`. After a conversion to
//! another dialect, a client would run such a call again. Therefore, each call waits until its result arrives, or until
//! a part of another kind or the end of the response shows that the client has to run the call. Later events of calls
//! and tool results also wait, so that the order stays the same. The parser's limits also bound the amount of waiting
//! content.
//!
//! A call to a tool that the request defines does not wait, because the client runs its own tools. The caller can pass
//! the request's tools, and most servers repeat the tools in the opening event of the response.

use crate::json::Raw;
use crate::json::members::is_string;
use crate::json::members::items;
use crate::json::members::member_of;
use crate::json::members::string;
use crate::model::config::Tool;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::event::Mark;
use crate::model::small_map::Set;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::BinaryHeap;
use std::collections::HashSet;
use std::iter;
use std::mem;
use std::sync::Arc;

/// Returns true if servers of this dialect may run calls that are not marked as run by the provider.
pub(crate) fn holds(source: &str) -> bool {
    source == "responses"
}

/// What the converter does with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldDecision {
    /// The event is written.
    Write,
    /// The event is held back, and nothing is written.
    Wait,
    /// The held events are written, including the current event, which was added last.
    Release,
    /// The held events are written, followed by the current event.
    ReleaseFirst,
}

/// Stores the held events of one stream, and which calls the server ran.
#[derive(Debug, Default)]
pub(crate) struct HeldCalls {
    /// Names of the tools that the client runs, as far as they are known.
    client_tools: HashSet<String>,
    events: Vec<HeldEvent>,
    /// Call ids of the held calls without a result, by part number.
    undecided: BTreeMap<u32, Arc<str>>,
    /// Part numbers of held calls, by call id. Entries that are no longer in `undecided` are ignored.
    parts: BTreeMap<Arc<str>, BinaryHeap<u32>>,
    /// Part numbers of the calls that the server ran.
    executed: Set<u32>,
}

impl HeldCalls {
    /// Creates an empty store. `tools` contains the request's tools, if the caller passed them.
    pub(crate) fn new(tools: Option<&[Tool]>) -> HeldCalls {
        let names = tools.into_iter().flatten().map(|tool| tool.name.clone());
        HeldCalls {
            client_tools: names.collect(),
            ..HeldCalls::default()
        }
    }

    /// Adds the functions and free-form tools from the list of the request's tools that a response repeats, including
    /// the tools inside a `namespace`. Tools of other types are not added, because the server may run them.
    pub(crate) fn add_client_tools(&mut self, tools: Raw<'_>) {
        for tool in items(tools) {
            if is_string(member_of(tool, "type"), "namespace") {
                let tools = member_of(tool, "tools").map(items);
                tools
                    .iter()
                    .flatten()
                    .for_each(|tool| self.add_client_tool(*tool));
            } else {
                self.add_client_tool(tool);
            }
        }
    }

    fn add_client_tool(&mut self, tool: Raw<'_>) {
        let kind = member_of(tool, "type");
        if is_string(kind, "function") || is_string(kind, "custom") {
            let name = member_of(tool, "name").and_then(string);
            self.client_tools.extend(name.map(Cow::into_owned));
        }
    }

    /// Decides what to do with the next event, and stores a copy if the event is held.
    pub(crate) fn take(&mut self, event: &Event<'_>) -> HoldDecision {
        if let Event::ToolCallStarted {
            part,
            call_id,
            name,
            provider_executed: false,
            ..
        } = *event
            && !self.client_tools.contains(name)
        {
            self.wait(part, call_id.unwrap_or_default());
            self.keep(event);
            return HoldDecision::Wait;
        }
        if self.undecided.is_empty() {
            return HoldDecision::Write;
        }
        match *event {
            Event::ToolCallStarted { .. }
            | Event::ToolCallDelta(_)
            | Event::ToolCallReset(_)
            | Event::ToolCall { .. }
            | Event::ToolCallRetracted(_)
            | Event::ToolResult { .. } => {
                self.decide(event);
                self.keep(event);
                if self.undecided.is_empty() {
                    HoldDecision::Release
                } else {
                    HoldDecision::Wait
                }
            }
            Event::TextStarted(_)
            | Event::ReasoningStarted { .. }
            | Event::RefusalStarted(_)
            | Event::Source { .. }
            | Event::File { .. }
            | Event::Finished { .. } => HoldDecision::ReleaseFirst,
            _ => HoldDecision::Write,
        }
    }

    /// Records that the server ran a held call, that a held call was retracted, or that the id of a held call changed.
    fn decide(&mut self, event: &Event<'_>) {
        match *event {
            Event::ToolCall {
                part,
                call_id,
                provider_executed,
                ..
            } => {
                if provider_executed && self.undecided.remove(&part).is_some() {
                    self.executed.insert(part);
                } else if let Some(known) = self.undecided.get(&part)
                    && **known != *call_id
                {
                    self.wait(part, call_id);
                }
            }
            Event::ToolCallRetracted(mark) => _ = self.undecided.remove(&mark.part),
            Event::ToolResult { call_id, .. } => {
                if let Some(part) = self.latest(call_id) {
                    self.undecided.remove(&part);
                    self.executed.insert(part);
                }
            }
            _ => {}
        }
    }

    /// Adds a held call, or replaces the id of a held call.
    fn wait(&mut self, part: u32, call_id: &str) {
        let call_id: Arc<str> = call_id.into();
        self.parts.entry(call_id.clone()).or_default().push(part);
        self.undecided.insert(part, call_id);
    }

    /// Returns the part number of the latest held call with this id, or `None`. Later calls have higher part numbers.
    fn latest(&mut self, call_id: &str) -> Option<u32> {
        let parts = self.parts.get_mut(call_id)?;
        let undecided = &self.undecided;
        let waits = |part: &u32| undecided.get(part).is_some_and(|id| **id == *call_id);
        iter::from_fn(|| parts.pop()).find(waits)
    }

    fn keep(&mut self, event: &Event<'_>) {
        if let Event::ToolCallDelta(Delta {
            part,
            text,
            metadata: None,
            ..
        }) = *event
            && let Some(HeldEvent::Pieces(pieces)) = self.events.last_mut()
            && pieces.part == part
        {
            return pieces.push(text);
        }
        self.events.extend(HeldEvent::of(event));
    }

    /// Removes and returns the held events. The client must run the calls that still have no result.
    pub(crate) fn release(&mut self) -> Vec<HeldEvent> {
        self.undecided.clear();
        self.parts.clear();
        mem::take(&mut self.events)
    }

    /// Returns a copy of the event in which the call is marked as run by the provider, or `None` if the server did not
    /// run the call.
    pub(crate) fn as_executed<'e>(&self, event: &Event<'e>) -> Option<Event<'e>> {
        let mut changed = *event;
        match &mut changed {
            Event::ToolCallStarted {
                part,
                provider_executed,
                ..
            }
            | Event::ToolCall {
                part,
                provider_executed,
                ..
            } if self.executed.contains(part) => *provider_executed = true,
            _ => return None,
        }
        Some(changed)
    }
}

/// A copy of a held event, or of several deltas.
#[derive(Debug)]
pub(crate) enum HeldEvent {
    Started(Box<Started>),
    Pieces(Pieces),
    Delta(u32, String, i32, Option<String>),
    Call(Box<Call>),
    Reset(HeldMark),
    Retracted(HeldMark),
    Result(Box<HeldResult>),
}

#[derive(Debug)]
pub(crate) struct Started {
    part: u32,
    call_id: Option<String>,
    item_id: Option<String>,
    name: String,
    provider_executed: bool,
    custom: bool,
    choice: i32,
    metadata: Option<String>,
}

/// Consecutive deltas of a call, without metadata. `ends` contains the end offset of each delta.
#[derive(Debug)]
pub(crate) struct Pieces {
    part: u32,
    choice: i32,
    texts: String,
    ends: Vec<usize>,
}

impl Pieces {
    fn push(&mut self, text: &str) {
        self.texts.push_str(text);
        self.ends.push(self.texts.len());
    }
}

#[derive(Debug)]
pub(crate) struct Call {
    part: u32,
    call_id: String,
    name: String,
    arguments: String,
    state: &'static str,
    item_id: Option<String>,
    reason: Option<&'static str>,
    raw_arguments: Option<String>,
    provider_executed: bool,
    aliases: Vec<String>,
    custom: bool,
    raw_text: Option<String>,
    choice: i32,
    metadata: Option<String>,
}

#[derive(Debug)]
pub(crate) struct HeldMark {
    part: u32,
    choice: i32,
    metadata: Option<String>,
}

#[derive(Debug)]
pub(crate) struct HeldResult {
    part: u32,
    call_id: String,
    output: String,
    is_error: bool,
    choice: i32,
    metadata: Option<String>,
}

impl HeldEvent {
    /// Copies an event that concerns a call. Returns `None` for other events.
    fn of(event: &Event<'_>) -> Option<HeldEvent> {
        Some(match *event {
            Event::ToolCallStarted {
                part,
                call_id,
                item_id,
                name,
                provider_executed,
                custom,
                choice,
                metadata,
            } => HeldEvent::Started(Box::new(Started {
                part,
                call_id: own(call_id),
                item_id: own(item_id),
                name: name.to_owned(),
                provider_executed,
                custom,
                choice,
                metadata: own(metadata),
            })),
            Event::ToolCallDelta(Delta {
                part,
                text,
                choice,
                metadata: None,
            }) => {
                let mut pieces = Pieces {
                    part,
                    choice,
                    texts: String::new(),
                    ends: Vec::new(),
                };
                pieces.push(text);
                HeldEvent::Pieces(pieces)
            }
            Event::ToolCallDelta(Delta {
                part,
                text,
                choice,
                metadata,
            }) => HeldEvent::Delta(part, text.to_owned(), choice, own(metadata)),
            Event::ToolCall {
                part,
                call_id,
                name,
                arguments,
                state,
                item_id,
                reason,
                raw_arguments,
                provider_executed,
                aliases,
                custom,
                raw_text,
                choice,
                metadata,
            } => HeldEvent::Call(Box::new(Call {
                part,
                call_id: call_id.to_owned(),
                name: name.to_owned(),
                arguments: arguments.to_owned(),
                state,
                item_id: own(item_id),
                reason,
                raw_arguments: own(raw_arguments),
                provider_executed,
                aliases: aliases.to_vec(),
                custom,
                raw_text: own(raw_text),
                choice,
                metadata: own(metadata),
            })),
            Event::ToolCallReset(mark) => HeldEvent::Reset(HeldMark::of(mark)),
            Event::ToolCallRetracted(mark) => HeldEvent::Retracted(HeldMark::of(mark)),
            Event::ToolResult {
                part,
                call_id,
                output,
                is_error,
                choice,
                metadata,
            } => HeldEvent::Result(Box::new(HeldResult {
                part,
                call_id: call_id.to_owned(),
                output: output.to_owned(),
                is_error,
                choice,
                metadata: own(metadata),
            })),
            _ => return None,
        })
    }

    /// Calls `give` with the held event, or with each of the held deltas.
    pub(crate) fn each(&self, mut give: impl FnMut(&Event<'_>)) {
        match self {
            HeldEvent::Started(started) => give(&Event::ToolCallStarted {
                part: started.part,
                call_id: started.call_id.as_deref(),
                item_id: started.item_id.as_deref(),
                name: &started.name,
                provider_executed: started.provider_executed,
                custom: started.custom,
                choice: started.choice,
                metadata: started.metadata.as_deref(),
            }),
            HeldEvent::Pieces(pieces) => {
                let mut start = 0;
                for end in &pieces.ends {
                    give(&Event::ToolCallDelta(Delta {
                        part: pieces.part,
                        text: pieces.texts.get(start..*end).unwrap_or_default(),
                        choice: pieces.choice,
                        metadata: None,
                    }));
                    start = *end;
                }
            }
            HeldEvent::Delta(part, text, choice, metadata) => give(&Event::ToolCallDelta(Delta {
                part: *part,
                text,
                choice: *choice,
                metadata: metadata.as_deref(),
            })),
            HeldEvent::Call(call) => give(&Event::ToolCall {
                part: call.part,
                call_id: &call.call_id,
                name: &call.name,
                arguments: &call.arguments,
                state: call.state,
                item_id: call.item_id.as_deref(),
                reason: call.reason,
                raw_arguments: call.raw_arguments.as_deref(),
                provider_executed: call.provider_executed,
                aliases: &call.aliases,
                custom: call.custom,
                raw_text: call.raw_text.as_deref(),
                choice: call.choice,
                metadata: call.metadata.as_deref(),
            }),
            HeldEvent::Reset(mark) => give(&Event::ToolCallReset(mark.mark())),
            HeldEvent::Retracted(mark) => give(&Event::ToolCallRetracted(mark.mark())),
            HeldEvent::Result(result) => give(&Event::ToolResult {
                part: result.part,
                call_id: &result.call_id,
                output: &result.output,
                is_error: result.is_error,
                choice: result.choice,
                metadata: result.metadata.as_deref(),
            }),
        }
    }
}

impl HeldMark {
    fn of(mark: Mark<'_>) -> HeldMark {
        HeldMark {
            part: mark.part,
            choice: mark.choice,
            metadata: own(mark.metadata),
        }
    }

    fn mark(&self) -> Mark<'_> {
        Mark {
            part: self.part,
            choice: self.choice,
            metadata: self.metadata.as_deref(),
        }
    }
}

fn own(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}
