//! Decodes language-model stream parts of the AI SDK (provider specifications V2, V3, and V4, and the `fullStream` of
//! `streamText`) into wire deltas.
//!
//! Handles every part type, including parts without content, such as `start-step` and `finish`. `finish` ends the
//! stream. The assembler determines which call a fragment belongs to.

pub(crate) mod sources_files;
pub(crate) mod start;
pub(crate) mod tools;

use crate::dialect::ai_sdk::blocks::BlockKind;
use crate::dialect::ai_sdk::blocks::BlockReader;
use crate::dialect::ai_sdk::part::Schema;
use crate::dialect::ai_sdk::part::TypedPart;
use crate::dialect::ai_sdk::part::has_usable_data;
use crate::dialect::ai_sdk::part::is_typed;
use crate::dialect::ai_sdk::part::report_document;
use crate::dialect::ai_sdk::part::reports_error;
use crate::dialect::ai_sdk::parts::start::StartReader;
use crate::dialect::ai_sdk::plain_delta::PlainDelta;
use crate::dialect::anomalies::Anomalies;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::dialect::decode_context::unknown;
use crate::dialect::decoder::Decoder;
use crate::dialect::decoder::Shapes;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::dialect::upstream_error::is_bare;
use crate::dialect::upstream_error::is_problem;
use crate::json::Kind;
use crate::json::members::Document;
use crate::json::members::document;
use crate::json::members::find;
use crate::json::members::is_string;
use crate::json::members::members;
use crate::model::config::Config;
use crate::model::delta::Address;
use std::borrow::Cow;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::of("ai-sdk-parts"));

/// Names of the member that contains the text: `delta` in provider streams, `text` in `streamText`, and `textDelta` in
/// older releases.
const TEXT: [&str; 3] = ["delta", "text", "textDelta"];

pub(crate) static SHAPES: Shapes = Shapes {
    document,
    // No document of this dialect contains a complete response, but an error can be a complete document.
    is_body: |document| match document {
        Document::Object(object) => !is_typed(object) && reports_error(object),
        Document::Other(_) => false,
    },
    may_be_json_line: |_| false,
    is_error_body: |document| match document {
        Document::Object(object) => {
            reports_error(object) || is_bare(&object.members, &object.names())
        }
        Document::Other(_) => false,
    },
    has_usable_data: |document| match document {
        Document::Object(object) => has_usable_data(object, &SCHEMA),
        Document::Other(_) => false,
    },
    // Parts of the type `raw` do not belong to the response.
    is_without_output: |document| match document {
        Document::Object(object) => is_string(object.get("type"), "raw"),
        Document::Other(_) => false,
    },
};

/// The way in which the decoder handles a type of part.
#[derive(Clone, Copy, Debug)]
enum Action {
    Opening,
    Response,
    Start(BlockKind),
    Delta(BlockKind),
    End(BlockKind),
    InputStart,
    InputDelta,
    InputEnd,
    Call,
    Result,
    ToolError,
    Denied,
    Keep,
    Source,
    File,
    FinishStep,
    Finish,
    Abort,
    Error,
    Raw,
}

impl Action {
    fn of(kind: &str) -> Option<Action> {
        Some(match kind {
            "text-delta" => Action::Delta(BlockKind::Text),
            "tool-input-delta" => Action::InputDelta,
            "reasoning-delta" => Action::Delta(BlockKind::Reasoning),
            "stream-start" | "start" | "start-step" => Action::Opening,
            "response-metadata" => Action::Response,
            "text-start" => Action::Start(BlockKind::Text),
            "text-end" => Action::End(BlockKind::Text),
            "reasoning-start" => Action::Start(BlockKind::Reasoning),
            "reasoning-end" => Action::End(BlockKind::Reasoning),
            "tool-input-start" => Action::InputStart,
            "tool-input-end" => Action::InputEnd,
            "tool-call" => Action::Call,
            "tool-result" => Action::Result,
            "tool-error" => Action::ToolError,
            "tool-output-denied" => Action::Denied,
            "tool-approval-request" | "tool-approval-response" | "custom" => Action::Keep,
            "source" => Action::Source,
            "file" | "reasoning-file" => Action::File,
            "finish-step" => Action::FinishStep,
            "finish" => Action::Finish,
            "abort" => Action::Abort,
            "error" => Action::Error,
            "raw" => Action::Raw,
            _ => return None,
        })
    }
}

/// Decodes the payloads of one stream.
#[derive(Debug, Default)]
pub(crate) struct AiSdkParts {
    start: StartReader,
    blocks: BlockReader,
    /// Finish reason of the last step. The reason is cleared when another part follows.
    reason: Option<String>,
    ended: bool,
}

impl AiSdkParts {
    pub(crate) fn new(_config: &Config) -> AiSdkParts {
        AiSdkParts::default()
    }

    /// Emits a delta that contains only its id and text. Most payloads contain only these members.
    fn piece(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        piece: PlainDelta<'_>,
        of: Action,
    ) -> ParseResult {
        self.start.emit(wire)?;
        self.reason = None;
        if let Action::Delta(holds) = of {
            return self.blocks.piece(wire, piece, holds);
        }
        let address = Address {
            call_id: Some(piece.id),
            ..Address::default()
        };
        let DecodeContext { assembler, out } = wire;
        assembler.call_text(out, 0, address, piece.text, None, None)
    }

    fn decode_action(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        part: &mut TypedPart<'_, '_>,
        action: Action,
    ) -> ParseResult {
        match action {
            Action::Delta(holds) => self.blocks.delta(wire, part, holds, &TEXT),
            Action::InputDelta => tools::input_delta(wire, part),
            Action::Opening => self.start.opening(wire, part),
            Action::Response => self.start.response(wire, part),
            Action::Start(holds) => self.blocks.start(wire, part, holds),
            Action::End(holds) => self.blocks.end(wire, part, holds),
            Action::InputStart => tools::input_start(wire, part),
            Action::InputEnd => tools::input_end(wire, part),
            Action::Call => tools::call(wire, part),
            Action::Result => tools::result(wire, part),
            Action::ToolError => tools::error(wire, part),
            Action::Denied => tools::denied(wire, part),
            Action::Keep => {
                let Payload { text, event, .. } = part.payload;
                let DecodeContext { assembler, out } = wire;
                assembler.kept_unknown(out, 0, event, text.as_bytes(), None)
            }
            Action::Source => sources_files::source(wire, part),
            Action::File => sources_files::file(wire, part),
            Action::FinishStep => self.finish_step(wire, part),
            Action::Finish => self.finish(wire, part),
            Action::Abort => {
                // The caller aborted the stream. The response is truncated, and no finish reason can complete it.
                unknown(wire, part.payload)?;
                wire.assembler.cut();
                Ok(())
            }
            Action::Error => {
                let notes = std::mem::take(&mut part.notes);
                self.error(
                    wire,
                    notes,
                    &sources_files::error_of(part.object),
                    part.payload,
                )
            }
            Action::Raw => unknown(wire, part.payload),
        }
    }

    /// Handles the end of a `streamText` step. The step's finish reason becomes that of the stream only if no other
    /// part follows. The next step may reuse the block ids of this step.
    fn finish_step(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        part: &mut TypedPart<'_, '_>,
    ) -> ParseResult {
        usage(wire, part, "usage")?;
        let (reason, metadata) = reason_of(part);
        self.reason = reason.map(Cow::into_owned);
        if let Some(metadata) = metadata {
            wire.assembler.choice_metadata(wire.out, 0, &metadata)?;
        }
        wire.assembler.forget_addresses(wire.out, 0)?;
        self.blocks.forget();
        Ok(())
    }

    /// Handles the terminal part. `totalUsage` from `streamText` counts all steps.
    fn finish(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        part: &mut TypedPart<'_, '_>,
    ) -> ParseResult {
        self.start.emit(wire)?;
        usage(wire, part, "usage")?;
        usage(wire, part, "totalUsage")?;
        let (reason, metadata) = reason_of(part);
        if let Some(metadata) = metadata {
            wire.assembler.choice_metadata(wire.out, 0, &metadata)?;
        }
        part.notes.report(wire)?;
        if let Some(reason) = reason.as_deref().or(self.reason.as_deref()) {
            emit_reason(wire, reason)?;
        }
        wire.assembler.done(wire.out)?;
        self.ended = true;
        Ok(())
    }

    fn error<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        notes: Anomalies<'a>,
        upstream_error: &UpstreamErrorFields<'a>,
        payload: Payload<'_>,
    ) -> ParseResult {
        self.start.emit_if_seen(wire)?;
        notes.report_error(wire, upstream_error, payload)
    }
}

impl Decoder for AiSdkParts {
    fn decode(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        let Document::Object(object) = document else {
            return unknown(wire, payload);
        };
        if !payload.tail
            && let Some(piece) = PlainDelta::of(object)
            && let Some(of) = channel(&piece)
        {
            return self.piece(wire, piece, of);
        }
        let schema: &'static Schema = &SCHEMA;
        report_document(wire, object, schema)?;
        let kind = object.string("type");
        let Some(kind) = kind.filter(|_| !is_problem(&object.members)) else {
            if reports_error(object) || payload.event == Some("error") {
                let upstream_error = sources_files::error_of(object);
                return self.error(wire, Anomalies::default(), &upstream_error, payload);
            }
            return unknown(wire, payload);
        };
        let of_type = schema.of_type(&kind);
        let action = Action::of(&kind).filter(|_| !payload.tail || of_type.recovered);
        let Some(action) = action else {
            return unknown(wire, payload);
        };
        if !of_type.frames {
            self.start.emit(wire)?;
        }
        if !matches!(action, Action::FinishStep | Action::Finish | Action::Raw) {
            self.reason = None;
        }
        let mut part = TypedPart {
            object,
            payload,
            kind,
            of_type,
            schema,
            notes: Anomalies::default(),
        };
        self.decode_action(wire, &mut part, action)?;
        part.notes.report(wire)
    }

    /// Handles a `[DONE]` that a gateway sends. The dialect does not define a `[DONE]` marker, so the marker ends the
    /// stream only after the finish reason of a step.
    fn marker(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        if let Some(reason) = &self.reason {
            self.start.emit_if_seen(wire)?;
            emit_reason(wire, reason)?;
            wire.assembler.done(wire.out)?;
            self.ended = true;
        }
        Ok(())
    }

    fn text(&mut self, wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) -> ParseResult {
        self.flush(wire)?;
        Anomalies::default().report_error(
            wire,
            &UpstreamErrorFields::of_text(payload.text),
            payload,
        )
    }

    /// Emits the start event. Does not emit the finish reason of the last step, because further steps may be missing.
    fn flush(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        self.start.emit_if_seen(wire)
    }

    fn ended(&self) -> bool {
        self.ended
    }
}

/// Returns the action for a plain delta, or `None` if its members do not have the names that its type requires.
fn channel(piece: &PlainDelta<'_>) -> Option<Action> {
    if !TEXT.contains(&piece.text_key) {
        return None;
    }
    match (piece.kind, piece.id_key) {
        ("text-delta", "id") => Some(Action::Delta(BlockKind::Text)),
        ("reasoning-delta", "id") => Some(Action::Delta(BlockKind::Reasoning)),
        ("tool-input-delta", _) => Some(Action::InputDelta),
        _ => None,
    }
}

fn emit_reason(wire: &mut DecodeContext<'_, '_>, reason: &str) -> ParseResult {
    wire.assembler.finish(wire.out, 0, reason)
}

/// Returns the unified finish reason, and the part's metadata, including the provider's finish reason.
fn reason_of<'a>(part: &mut TypedPart<'_, 'a>) -> (Option<Cow<'a, str>>, Option<String>) {
    let sent = part.get("finishReason");
    let Some(raw) = sent.filter(|raw| raw.kind == Kind::Object) else {
        let reason = part.descriptive_string("finishReason");
        return (reason, part.metadata());
    };
    let inner = members(raw);
    let provider = find(&inner, "raw");
    let unified = part.text_of(find(&inner, "unified"));
    let reason = unified.or_else(|| part.text_of(provider));
    let named = provider.is_some_and(|raw| raw.kind == Kind::String);
    let metadata = part.metadata_with("finishReason", named.then_some(raw.text));
    (reason, metadata)
}

fn usage(wire: &mut DecodeContext<'_, '_>, part: &mut TypedPart<'_, '_>, key: &str) -> ParseResult {
    match part.an_object(key) {
        Some(raw) => {
            let counts = part.schema.counts.read(raw);
            wire.assembler.merge_usage(wire.out, counts)
        }
        None => Ok(()),
    }
}
