//! Decodes the tool parts of an AI SDK stream: a call's input, the complete call, its result, and the parts in between.
//!
//! The parts `tool-input-start`, `tool-input-delta`, and `tool-input-end` contain the id of the call in `id`;
//! `tool-call` contains it in `toolCallId`. `tool-call` closes the call. `tool-input-end` does not close the call,
//! because the final arguments follow and may differ (`''` becomes `'{}'`).

use crate::dialect::ai_sdk::part::TypedPart;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::unknown;
use crate::json::Kind;
use crate::json::Text;
use crate::model::delta::Address;
use crate::model::delta::CallFields;

const ID_OF_INPUT: [&str; 2] = ["id", "toolCallId"];
const ID_OF_CALL: [&str; 2] = ["toolCallId", "id"];

pub(crate) fn input_start(
    wire: &mut DecodeContext<'_, '_>,
    part: &mut TypedPart<'_, '_>,
) -> ParseResult {
    let provider = part.provider();
    let identity = part.identity(&ID_OF_INPUT);
    let name = part.descriptive_string("toolName");
    let call = CallFields {
        address: Address {
            call_id: identity.as_deref(),
            public_id: provider.item_id.as_deref(),
            ..Address::default()
        },
        name: name.as_deref(),
        provider_executed: part.flag("providerExecuted"),
        metadata: provider.metadata.as_deref(),
        ..CallFields::default()
    };
    wire.assembler.call_opened(wire.out, call)
}

pub(crate) fn input_delta(
    wire: &mut DecodeContext<'_, '_>,
    part: &mut TypedPart<'_, '_>,
) -> ParseResult {
    let text = part.text(&["delta", "text"]);
    let metadata = part.metadata();
    if text.is_empty() && metadata.is_none() {
        return Ok(());
    }
    let identity = part.identity(&ID_OF_INPUT);
    let address = of_call(identity.as_deref());
    let DecodeContext { assembler, out } = wire;
    assembler.call_text(out, 0, address, text, None, metadata.as_deref())
}

/// Handles the end of the input. `tool-input-end` has no content, but a provider may add metadata, such as Google's
/// thought signature.
pub(crate) fn input_end(
    wire: &mut DecodeContext<'_, '_>,
    part: &mut TypedPart<'_, '_>,
) -> ParseResult {
    let metadata = part.metadata();
    let identity = part.identity(&ID_OF_INPUT);
    let address = of_call(identity.as_deref());
    let DecodeContext { assembler, out } = wire;
    if metadata.is_some() {
        assembler.call_text(out, 0, address, Text::default(), None, metadata.as_deref())?;
    }
    assembler.call_paused(out, 0, address)
}

fn of_call(identity: Option<&str>) -> Address<'_> {
    Address {
        call_id: identity,
        ..Address::default()
    }
}

pub(crate) fn call(wire: &mut DecodeContext<'_, '_>, part: &mut TypedPart<'_, '_>) -> ParseResult {
    let provider = part.provider();
    let identity = part.identity(&ID_OF_CALL);
    let name = part.descriptive_string("toolName");
    // `streamText` sets `invalid` if it rejects the input of a call. `streamText` also sends a result for a rejected
    // call, so the call is not dispatchable.
    let refused = part
        .get("invalid")
        .is_some_and(|raw| raw.kind == Kind::True);
    let call = CallFields {
        address: Address {
            call_id: identity.as_deref(),
            public_id: provider.item_id.as_deref(),
            ..Address::default()
        },
        name: name.as_deref(),
        refused,
        arguments: part.document(&["input", "args"]),
        misses_arguments: part.misses_arguments(&["input", "args"]),
        provider_executed: part.flag("providerExecuted"),
        metadata: provider.metadata.as_deref(),
        ..CallFields::default()
    };
    let DecodeContext { assembler, out } = wire;
    assembler.call_closed(out, call)?;
    match identity {
        Some(identity) if refused => {
            let output = part.json(&["error"]).unwrap_or("null");
            assembler.result(out, 0, &identity, output, true, None)
        }
        _ => Ok(()),
    }
}

/// Handles `tool-result`. Providers send the result in `result`, and `streamText` sends it in `output`. A preliminary
/// result is replaced by the next result.
pub(crate) fn result(
    wire: &mut DecodeContext<'_, '_>,
    part: &mut TypedPart<'_, '_>,
) -> ParseResult {
    let output = part.json(&["result", "output"]);
    let is_error = part.flag("isError");
    answer(wire, part, output, None, is_error)
}

/// Handles `tool-error`, which means that the tool failed when it ran. The `error` member can have any JSON type.
pub(crate) fn error(wire: &mut DecodeContext<'_, '_>, part: &mut TypedPart<'_, '_>) -> ParseResult {
    let output = part.json(&["error"]);
    answer(wire, part, output, None, true)
}

/// Handles `tool-output-denied`, after which the call is not dispatchable and has no output.
pub(crate) fn denied(
    wire: &mut DecodeContext<'_, '_>,
    part: &mut TypedPart<'_, '_>,
) -> ParseResult {
    answer(wire, part, None, Some(r#""tool-output-denied""#), true)
}

fn answer(
    wire: &mut DecodeContext<'_, '_>,
    part: &mut TypedPart<'_, '_>,
    output: Option<&str>,
    kind: Option<&str>,
    is_error: bool,
) -> ParseResult {
    let Some(identity) = part.identity(&["toolCallId"]) else {
        return unknown(wire, part.payload);
    };
    let metadata = part.metadata_with("type", kind);
    let (output, metadata) = (output.unwrap_or("null"), metadata.as_deref());
    let DecodeContext { assembler, out } = wire;
    assembler.result(out, 0, &identity, output, is_error, metadata)
}
