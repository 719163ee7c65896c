//! Decodes UI message stream chunks of the AI SDK (protocol v1, which `useChat` reads) into wire deltas.
//!
//! Handles every chunk type, including chunks without content, such as `start-step` and `finish`. `[DONE]` ends the
//! stream; `finish` does not. The assembler determines which call a fragment belongs to.

pub(crate) mod message;
pub(crate) mod sources_files;
pub(crate) mod tools;

use crate::dialect::ai_sdk::blocks::BlockKind;
use crate::dialect::ai_sdk::blocks::BlockReader;
use crate::dialect::ai_sdk::part::Schema;
use crate::dialect::ai_sdk::part::TypedPart;
use crate::dialect::ai_sdk::part::has_usable_data;
use crate::dialect::ai_sdk::part::is_typed;
use crate::dialect::ai_sdk::part::report_document;
use crate::dialect::ai_sdk::part::reports_error;
use crate::dialect::ai_sdk::part::whole_error;
use crate::dialect::ai_sdk::plain_delta::PlainDelta;
use crate::dialect::ai_sdk::ui::message::MessageReader;
use crate::dialect::anomalies::Anomalies;
use crate::dialect::client_members::ClientMembers;
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
use crate::json::members::Object;
use crate::json::members::document;
use crate::json::members::is_string;
use crate::model::config::Config;
use crate::model::delta::Address;
use std::sync::LazyLock;

/// Possible names of the member that contains the text. The protocol defines only the first name.
const TEXT: [&str; 3] = ["delta", "text", "textDelta"];

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::of("ai-sdk-ui"));
static CLIENTS: LazyLock<ClientMembers> = LazyLock::new(|| ClientMembers::of("ai-sdk-ui"));

/// Prefix of application-defined chunk types.
const DATA: &str = "data-";

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
    // A transient `data-*` chunk does not belong to the response.
    is_without_output: |document| match document {
        Document::Object(object) => {
            let kind = object.string("type");
            let transient = object.get("transient");
            kind.is_some_and(|kind| kind.starts_with(DATA))
                && transient.is_some_and(|raw| raw.kind == Kind::True)
        }
        Document::Other(_) => false,
    },
};

/// The way in which the decoder handles a type of chunk.
#[derive(Clone, Copy, Debug)]
enum Action {
    StartMessage,
    ParseResult,
    FinishStep,
    ResetStep,
    Metadata,
    Start(BlockKind),
    Delta(BlockKind),
    End(BlockKind),
    InputStart,
    InputDelta,
    InputAvailable,
    InputError,
    OutputAvailable,
    OutputError,
    OutputDenied,
    Keep,
    Data,
    SourceUrl,
    SourceDocument,
    File,
    Error,
    Finish,
    Abort,
}

impl Action {
    fn of(kind: &str) -> Option<Action> {
        Some(match kind {
            "text-delta" => Action::Delta(BlockKind::Text),
            "tool-input-delta" => Action::InputDelta,
            "reasoning-delta" => Action::Delta(BlockKind::Reasoning),
            "start" => Action::StartMessage,
            "start-step" => Action::ParseResult,
            "finish-step" => Action::FinishStep,
            "reset-step" => Action::ResetStep,
            "message-metadata" => Action::Metadata,
            "text-start" => Action::Start(BlockKind::Text),
            "text-end" => Action::End(BlockKind::Text),
            "reasoning-start" => Action::Start(BlockKind::Reasoning),
            "reasoning-end" => Action::End(BlockKind::Reasoning),
            "tool-input-start" => Action::InputStart,
            "tool-input-available" => Action::InputAvailable,
            "tool-input-error" => Action::InputError,
            "tool-output-available" => Action::OutputAvailable,
            "tool-output-error" => Action::OutputError,
            "tool-output-denied" => Action::OutputDenied,
            "tool-approval-request" | "tool-approval-response" | "custom" => Action::Keep,
            "source-url" => Action::SourceUrl,
            "source-document" => Action::SourceDocument,
            "file" | "reasoning-file" => Action::File,
            "error" => Action::Error,
            "finish" => Action::Finish,
            "abort" => Action::Abort,
            _ if kind.starts_with(DATA) => Action::Data,
            _ => return None,
        })
    }
}

/// Decodes the payloads of one stream.
#[derive(Debug, Default)]
pub(crate) struct AiSdkUi {
    message: MessageReader,
    blocks: BlockReader,
    aborted: bool,
    ended: bool,
}

impl AiSdkUi {
    pub(crate) fn new(_config: &Config) -> AiSdkUi {
        AiSdkUi::default()
    }

    /// Emits a delta that contains only its id and text. Most payloads contain only these members.
    fn piece(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        piece: PlainDelta<'_>,
        of: Action,
    ) -> ParseResult {
        self.message.emit_start(wire)?;
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
        chunk: &mut TypedPart<'_, '_>,
        action: Action,
    ) -> ParseResult {
        match action {
            Action::Delta(holds) => self.blocks.delta(wire, chunk, holds, &TEXT),
            Action::InputDelta => tools::input_delta(wire, chunk),
            Action::StartMessage => self.message.start(wire, chunk),
            Action::ParseResult => step(wire, chunk),
            Action::FinishStep => {
                // The next step reuses the ids of text and reasoning blocks.
                step(wire, chunk)?;
                wire.assembler.forget_addresses(wire.out, 0)?;
                self.blocks.forget();
                Ok(())
            }
            Action::ResetStep => {
                // The application retries the step, so the output of the step is discarded.
                step(wire, chunk)?;
                wire.assembler.restart_step(wire.out, 0)?;
                self.blocks.forget();
                Ok(())
            }
            Action::Metadata => self.message.metadata(wire, chunk),
            Action::Start(holds) => self.blocks.start(wire, chunk, holds),
            Action::End(holds) => self.blocks.end(wire, chunk, holds),
            Action::InputStart => tools::input_start(wire, chunk),
            Action::InputAvailable => tools::input_available(wire, chunk),
            Action::InputError => tools::input_error(wire, chunk),
            Action::OutputAvailable => tools::output_available(wire, chunk),
            Action::OutputError => tools::output_error(wire, chunk),
            Action::OutputDenied => tools::output_denied(wire, chunk),
            Action::Keep => keep(wire, chunk, None),
            Action::Data => data(wire, chunk),
            Action::SourceUrl => sources_files::source_url(wire, chunk),
            Action::SourceDocument => sources_files::source_document(wire, chunk),
            Action::File => sources_files::file(wire, chunk),
            Action::Error => {
                let notes = std::mem::take(&mut chunk.notes);
                self.error(wire, notes, &error_of(chunk.object), chunk.payload)
            }
            Action::Finish => self.finish(wire, chunk),
            Action::Abort => {
                // The user aborted the stream. The response is truncated, and no finish reason can complete it.
                unknown(wire, chunk.payload)?;
                self.aborted = true;
                wire.assembler.cut();
                Ok(())
            }
        }
    }

    fn finish(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        chunk: &mut TypedPart<'_, '_>,
    ) -> ParseResult {
        self.message.emit_start(wire)?;
        self.message.metadata(wire, chunk)?;
        let reason = chunk.descriptive_string("finishReason");
        if let Some(members) = chunk.metadata() {
            wire.assembler.choice_metadata(wire.out, 0, &members)?;
        }
        let Some(reason) = reason else {
            return Ok(());
        };
        chunk.notes.report(wire)?;
        wire.assembler.finish(wire.out, 0, &reason)
    }

    fn error<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        notes: Anomalies<'a>,
        upstream_error: &UpstreamErrorFields<'a>,
        payload: Payload<'_>,
    ) -> ParseResult {
        self.flush(wire)?;
        notes.report_error(wire, upstream_error, payload)
    }
}

impl Decoder for AiSdkUi {
    fn decode(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        let Document::Object(object) = document else {
            return reject(wire, payload);
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
                return self.error(wire, Anomalies::default(), &error_of(object), payload);
            }
            return reject(wire, payload);
        };
        let of_type = schema.of_type(&kind);
        let Some(action) = Action::of(&kind) else {
            return reject(wire, payload);
        };
        if payload.tail && !of_type.recovered {
            return unknown(wire, payload);
        }
        if !CLIENTS.suit(&kind, &object.members) {
            wire.out.leave_out("member_type"); // `useChat` ends the stream here
        }
        if !of_type.frames {
            self.message.emit_start(wire)?;
        }
        let mut chunk = TypedPart {
            object,
            payload,
            kind,
            of_type,
            schema,
            notes: Anomalies::default(),
        };
        self.decode_action(wire, &mut chunk, action)?;
        chunk.notes.report(wire)
    }

    /// Handles `[DONE]`, which ends the stream. The SDK also sends `[DONE]` after an abort; the response then stays
    /// incomplete.
    fn marker(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        self.message.flush(wire)?;
        if !self.aborted {
            wire.assembler.done(wire.out)?;
        }
        self.ended = true;
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

    fn flush(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        self.message.flush(wire)
    }

    fn ended(&self) -> bool {
        self.ended
    }
}

/// Returns the action for a plain delta, or `None` if its members do not have the names that its type requires.
fn channel(piece: &PlainDelta<'_>) -> Option<Action> {
    match (piece.kind, piece.id_key, piece.text_key) {
        ("text-delta", "id", "delta") => Some(Action::Delta(BlockKind::Text)),
        ("reasoning-delta", "id", "delta") => Some(Action::Delta(BlockKind::Reasoning)),
        ("tool-input-delta", "toolCallId", "inputTextDelta") => Some(Action::InputDelta),
        _ => None,
    }
}

/// Emits an unknown payload. Repair removes the payload, because `useChat` ends the stream at a chunk that the protocol
/// does not define.
#[cold]
fn reject(wire: &mut DecodeContext<'_, '_>, payload: Payload<'_>) -> ParseResult {
    wire.out.leave_out("unknown_chunk");
    unknown(wire, payload)
}

/// Emits the metadata of a chunk that begins or ends a step. The chunk contains no other data.
fn step(wire: &mut DecodeContext<'_, '_>, chunk: &mut TypedPart<'_, '_>) -> ParseResult {
    match chunk.worth_keeping() {
        Some(members) => wire.assembler.choice_metadata(wire.out, 0, &members),
        None => Ok(()),
    }
}

/// Emits an application-defined part of the message, or an unknown event if the part is transient.
///
/// A part replaces an earlier part with the same type and id.
fn data(wire: &mut DecodeContext<'_, '_>, chunk: &mut TypedPart<'_, '_>) -> ParseResult {
    if chunk.flag("transient") {
        return unknown(wire, chunk.payload);
    }
    let identity = chunk.identity(&["id"]);
    let key = identity.map(|identity| format!("{}\n{identity}", chunk.kind));
    keep(wire, chunk, key.as_deref())
}

fn keep(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &TypedPart<'_, '_>,
    key: Option<&str>,
) -> ParseResult {
    let Payload { text, event, .. } = chunk.payload;
    let DecodeContext { assembler, out } = wire;
    assembler.kept_unknown(out, 0, event, text.as_bytes(), key)
}

/// Returns the error in a chunk. An error chunk should contain only `errorText`, but gateways send other shapes.
fn error_of<'a>(object: &Object<'a>) -> UpstreamErrorFields<'a> {
    if let Some(raw) = object.present("errorText") {
        return UpstreamErrorFields::of_message(raw);
    }
    if let Some(raw) = object.present("error") {
        return UpstreamErrorFields::of_value(raw);
    }
    let mut upstream_error = whole_error(object);
    if is_string(object.get("type"), "error") {
        upstream_error.kind = None;
    }
    upstream_error
}
