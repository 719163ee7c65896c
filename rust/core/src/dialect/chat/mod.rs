//! Decodes OpenAI Chat Completions chunks into wire deltas.
//!
//! The module `read` first parses the whole payload. The decoder then passes the content to the assembler in this
//! order: the members that describe the response, each choice (reasoning, text, refusal, files, calls, a complete
//! message, the finish reason), the usage, and the errors. A payload that matches the template of an earlier payload is
//! not parsed (`fastpath/chat`). The assembler determines which call a fragment belongs to.

pub(crate) mod attachments;
pub(crate) mod calls;
pub(crate) mod choice;
pub(crate) mod chunk;
pub(crate) mod content;
pub(crate) mod error;
pub(crate) mod message;
pub(crate) mod payload_kind;
pub(crate) mod read;
pub(crate) mod readers;
pub(crate) mod reasoning;
pub(crate) mod side_calls;
pub(crate) mod usage;

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::report_wide_integer;
use crate::dialect::chat::choice::ChoiceState;
pub(crate) use crate::dialect::chat::error::is_error_body;
pub(crate) use crate::dialect::chat::payload_kind::has_usable_data;
pub(crate) use crate::dialect::chat::payload_kind::is_body;
pub(crate) use crate::dialect::chat::payload_kind::is_without_output;
use crate::dialect::chat::payload_kind::lone_error;
pub(crate) use crate::dialect::chat::payload_kind::may_be_json_line;
use crate::dialect::chat::payload_kind::wrapped;
use crate::dialect::chat::read::Chunk;
use crate::dialect::chat::read::Document;
pub(crate) use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Ending;
pub(crate) use crate::dialect::decode_context::ParseResult;
pub(crate) use crate::dialect::decode_context::Payload;
pub(crate) use crate::dialect::decode_context::unknown;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::dialect::upstream_error::is_blank_error;
use crate::fastpath::chat::cache::Cache;
use crate::fastpath::chat::rows;
use crate::fastpath::chat::template::ChunkKind;
use crate::fastpath::chat::template::Template;
use crate::fastpath::chat::template::VaryingMembers;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::extra_fields::LastSeen;
use crate::model::config::Config;
use crate::model::delta::CallPiece;
use crate::model::delta::Fragment;
use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::output::Output;
use crate::model::small_map::List;
use crate::model::small_map::Set;
use crate::model::spec::Code;
use crate::model::unmodelled::ReasoningFacts;
use crate::model::unmodelled::Unmodelled;
use crate::sse::WholeEvents;
use std::borrow::Cow;

/// Decodes the payloads of one stream.
#[derive(Debug)]
pub(crate) struct Chat {
    started: bool,
    last_seen: LastSeen,
    choices: List<ChoiceState>,
    /// The lowest index of any choice that has arrived. Chunk metadata that no event contains is added to this choice.
    lowest: Option<i32>,
    /// Indexes of the choices that were merged into the first choice (AM11).
    merged: Set<i32>,
    /// The id of the last chunk. The id is stored only if the policy restarts a choice on a new id.
    last_id: Option<String>,
    /// The ordinal of the payload after the last one with token counts that clients read.
    counted_before: u64,
    /// The most recent chunk record that the repair stage received.
    kept: KeptChunk,
    cache: Cache,
}

/// The unknown members of a chunk, and whether the chunk had choices. The repair stage receives a new record only if
/// the members change or this flag changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptChunk {
    members: String,
    has_choice: bool,
}

impl Chat {
    pub(crate) fn new(config: &Config, caching: bool) -> Chat {
        let switches = &config.policy.switches;
        // With these options, two identical chunks may have different effects.
        let unsteady = config.policy.inline_reasoning
            || switches.restart_on_new_stream_id
            || switches.merge_choices;
        Chat {
            started: false,
            last_seen: LastSeen::default(),
            choices: List::default(),
            lowest: None,
            merged: Set::default(),
            last_id: None,
            counted_before: 0,
            kept: KeptChunk::default(),
            cache: Cache::new(!caching || unsteady),
        }
    }

    /// Decodes up to `most` complete events that contain only text and match the template of the preceding event.
    /// Returns an empty result if the first event does not match.
    #[inline]
    pub(crate) fn similar_events(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        input: &[u8],
        most: usize,
    ) -> WholeEvents {
        let Some(template) = self.cache.plain_event() else {
            return WholeEvents::default();
        };
        let (choice, out) = (template.choice, &mut *wire.out);
        // If the input has only one or two events, the preparation costs more than it saves.
        let is_short = input.len() < template.event_length() * 3;
        if is_short || !out.takes_rows() || !wire.assembler.awaits_text(out, choice) {
            return WholeEvents::default();
        }
        let give =
            |texts: &str, ends: &[usize]| wire.assembler.more_texts(out, choice, texts, ends);
        rows::take(template, input, most, give)
    }

    /// Decodes a payload that matches a known template. Returns the length of the payload and its line ending, or 0 if
    /// the payload must be parsed.
    #[inline]
    pub(crate) fn match_template(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        input: &[u8],
        ending: Ending,
    ) -> Result<usize, Fault> {
        if let Some((choice, text, length)) = self.cache.plain_text(input, ending)
            && wire.assembler.more_text(wire.out, choice, text)?
        {
            return Ok(length);
        }
        self.find(wire, input, ending)
    }

    #[inline(never)]
    fn find(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        input: &[u8],
        ending: Ending,
    ) -> Result<usize, Fault> {
        let mut found = VaryingMembers::default();
        let Some((template, length)) = self.cache.find(input, ending, &mut found) else {
            return Ok(0);
        };
        let choice = template.choice;
        let is_call = matches!(template.what, ChunkKind::Call { .. });
        let is_split = || {
            self.choices
                .find(choice)
                .is_some_and(|it| it.half.is_some())
        };
        if found.details.is_some() && is_split() {
            return Ok(0); // the payload may contain the second half of a surrogate pair
        }
        let readers = || self.choices.find(choice).map(|choice| &choice.readers);
        if is_call && readers().is_none_or(|readers| !readers.is_known(found.index)) {
            return Ok(0);
        }
        let DecodeContext { assembler, out } = wire;
        if found.escaped || template.metadata.is_some() || found.usage.is_some() {
            let taken = emit_match(wire, template, &found)?;
            return Ok(if taken { length } else { 0 });
        }
        let quick = match template.what {
            ChunkKind::Text => assembler.more_text(out, choice, found.text)?,
            ChunkKind::Call { custom: false, .. } => match found.index {
                Some(index)
                    if out
                        .config
                        .limits
                        .max_tool_index
                        .is_none_or(|max| u64::from(index) <= max) =>
                {
                    assembler.more_arguments(
                        out,
                        choice,
                        CallPiece {
                            index,
                            id: found.id,
                            name: found.name,
                            text: found.text,
                        },
                    )?
                }
                _ => false,
            },
            ChunkKind::Call { .. } | ChunkKind::Reasoning => false,
        };
        let taken = quick || emit_match(wire, template, &found)?;
        Ok(if taken { length } else { 0 })
    }

    pub(crate) fn document(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        let raw = match document {
            Document::Object(chunk) => {
                let whole = Raw {
                    text: payload.text,
                    kind: Kind::Object,
                };
                return self.object(wire, chunk, whole, payload);
            }
            Document::Other(raw) => *raw,
        };
        if let Some((chunk, whole)) = lone_error(raw, wire.out.config.limits.max_json_depth) {
            return self.object(wire, &chunk, whole, payload);
        }
        if payload.event == Some("error") {
            report_wide_integer(wire, raw)?;
            return self.report_error(
                wire,
                &UpstreamErrorFields::of_value(raw),
                payload,
                Anomalies::default(),
            );
        }
        no_chunk(wire, payload)
    }

    /// Reports a payload that is not JSON as an upstream error.
    pub(crate) fn text(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        self.report_error(
            wire,
            &UpstreamErrorFields::of_text(payload.text),
            payload,
            Anomalies::default(),
        )
    }

    /// Emits the text and audio that each choice holds back. This method is called before the stream closes.
    pub(crate) fn flush(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        self.choices
            .iter_mut()
            .try_for_each(|choice| choice.flush(wire))
    }

    /// Clears the records of the choices' unknown members, because the next payload has no choices.
    pub(crate) fn forget_members(&mut self, out: &mut Output<'_>) {
        for choice in self.choices.iter_mut() {
            choice.forget_members(out);
        }
    }

    /// Checks the calls of all choices when the stream ends with `[DONE]`.
    pub(crate) fn end_choices(&mut self, out: &mut Output<'_>) {
        let choices = self.choices.iter_mut();
        choices.for_each(|choice| choice.readers.end(out, false));
    }

    /// Lets repair write the token counts again if clients do not read them from the last chunk. openai-python uses
    /// only the last chunk. The current ordinal is that of `[DONE]`, or of the end of the input.
    pub(crate) fn check_counts(&self, out: &mut Output<'_>) {
        if self.counted_before != out.position().1 {
            out.record_fact(WireFact::Counted);
            out.mark_misread("usage_missing");
        }
    }

    fn object(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        chunk: &Chunk<'_>,
        whole: Raw<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        let inner = wrapped(chunk, wire.out.config.limits.max_json_depth);
        let read = inner.as_ref().map_or(chunk, |inner| &inner.chunk);
        if chunk.wide_integer {
            wire.out.diagnose(Code::NUMERIC_OVERFLOW, None, "")?;
        }
        for key in &read.duplicates {
            wire.out.diagnose(Code::DUPLICATE_KEY, None, key)?;
        }
        let event = payload.event;
        let mut upstream_error = UpstreamErrorFields::of_chunk(chunk, whole, event);
        let mut around = Vec::new();
        let mut notes = Anomalies::default();
        if let Some(inner) = &inner {
            notes.mark_misread("envelope"); // clients look for `choices` at the top level
            upstream_error = upstream_error
                .or_else(|| UpstreamErrorFields::of_chunk(&inner.chunk, inner.raw, event));
            around = chunk
                .other_members
                .iter()
                .filter(|member| !member.key.is("data"))
                .copied()
                .collect();
        }
        if read.is_chunk() {
            if upstream_error.is_none() && read.error.is_some_and(is_blank_error) {
                notes.mark_misread("empty_error"); // @ai-sdk/openai-compatible raises for any value, even null
            }
            let within = self.chunk(wire, read, &around, payload, &mut notes)?;
            upstream_error = upstream_error.or(within);
        } else if upstream_error.is_none() {
            return no_chunk(wire, payload);
        }
        match upstream_error {
            Some(upstream_error) => self.report_error(wire, &upstream_error, payload, notes),
            None => Ok(()),
        }
    }

    fn report_error(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        upstream_error: &UpstreamErrorFields<'_>,
        payload: Payload<'_>,
        notes: Anomalies<'_>,
    ) -> ParseResult {
        self.flush(wire)?;
        notes.report_error(wire, upstream_error, payload)
    }
}

/// Emits an unknown payload. Repair removes the payload, because openai-node and the AI SDK raise an exception for it.
fn no_chunk(wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) -> ParseResult {
    wire.out.leave_out("no_choices");
    unknown(wire, payload)
}

/// Emits the content of a payload that matches a template. If the payload must be parsed, returns false and emits
/// nothing.
fn emit_match(
    wire: &mut DecodeContext<'_, '_>,
    template: &Template,
    found: &VaryingMembers<'_>,
) -> Result<bool, Fault> {
    let (choice, metadata) = (template.choice, template.metadata.as_deref());
    let DecodeContext { assembler, out } = wire;
    let text = if found.escaped {
        Text::unescape(found.text)
    } else {
        Text::plain(found.text)
    };
    match template.what {
        ChunkKind::Text | ChunkKind::Reasoning if found.text.is_empty() => return Ok(false),
        ChunkKind::Text => assembler.text(out, choice, text, metadata)?,
        ChunkKind::Reasoning => {
            if found.details.is_some() && out.wants_wire_facts() {
                if !text.is_whole() {
                    return Ok(false);
                }
                out.keep(Unmodelled::Reasoning(ReasoningFacts {
                    choice,
                    fields: None,
                    details: found.details,
                    has_text: true,
                }));
            }
            assembler.reasoning(out, choice, "raw", text, metadata)?;
            if found.details.is_some() {
                assembler.reasoning_attributes(out, choice, None, None, found.details)?;
            }
        }
        ChunkKind::Call {
            has_index_key,
            custom,
        } => {
            let max = out.config.limits.max_tool_index;
            if max.is_some_and(|max| found.index.is_some_and(|index| u64::from(index) > max)) {
                return Ok(false);
            }
            let fragment = Fragment {
                index: found.index,
                has_index_key,
                id: found.id.map(Cow::Borrowed),
                name: found.name.map(Cow::Borrowed),
                arguments: Some(text),
                array_len: 1,
                custom,
                ..Fragment::default()
            };
            assembler.call(out, choice, &fragment)?;
            if let Some(metadata) = metadata {
                assembler.choice_metadata(out, choice, metadata)?;
            }
        }
    }
    if let Some(text) = found.usage {
        assembler.usage(
            out,
            usage::read(Raw {
                text,
                kind: Kind::Object,
            }),
        )?;
    }
    Ok(true)
}
