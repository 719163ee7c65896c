//! Decodes the tool chunks of a UI message stream: the deltas of a call's input, the complete input, and the output.
//!
//! `toolCallId` is the only id that these chunks have. Both `tool-input-available` and `tool-input-error` close a call;
//! `tool-input-error` also reports that the input was rejected.

use crate::dialect::ai_sdk::part::TypedPart;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::unknown;
use crate::model::delta::Address;
use crate::model::delta::CallFields;
use crate::model::fault::Fault;
use std::borrow::Cow;

const ID: [&str; 1] = ["toolCallId"];

pub(crate) fn input_start(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &mut TypedPart<'_, '_>,
) -> ParseResult {
    let provider = chunk.provider();
    let identity = chunk.identity(&ID);
    let name = chunk.descriptive_string("toolName");
    let call = CallFields {
        address: Address {
            call_id: identity.as_deref(),
            public_id: provider.item_id.as_deref(),
            ..Address::default()
        },
        name: name.as_deref(),
        provider_executed: chunk.flag("providerExecuted"),
        metadata: provider.metadata.as_deref(),
        ..CallFields::default()
    };
    wire.assembler.call_opened(wire.out, call)
}

pub(crate) fn input_delta(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &mut TypedPart<'_, '_>,
) -> ParseResult {
    let text = chunk.text(&["inputTextDelta"]);
    let metadata = chunk.metadata();
    if text.is_empty() && metadata.is_none() {
        return Ok(());
    }
    let identity = chunk.identity(&ID);
    let address = Address {
        call_id: identity.as_deref(),
        ..Address::default()
    };
    let DecodeContext { assembler, out } = wire;
    assembler.call_text(out, 0, address, text, None, metadata.as_deref())
}

pub(crate) fn input_available(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &mut TypedPart<'_, '_>,
) -> ParseResult {
    close(wire, chunk, false).map(|_| ())
}

/// Handles `tool-input-error`, which means that the tool does not exist or its schema forbids the arguments.
///
/// The call is still emitted, so that its arguments are not lost. The rejection becomes the call's result, as in the
/// SDK's client, which sets the state `output-error`. A call with a result is not dispatchable.
pub(crate) fn input_error(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &mut TypedPart<'_, '_>,
) -> ParseResult {
    let Some(identity) = close(wire, chunk, true)? else {
        return Ok(());
    };
    let output = chunk.json(&["errorText"]).unwrap_or("null");
    let DecodeContext { assembler, out } = wire;
    assembler.result(out, 0, &identity, output, true, None)
}

/// Handles the output of a call. A preliminary output is replaced by the next output.
pub(crate) fn output_available(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &mut TypedPart<'_, '_>,
) -> ParseResult {
    let output = chunk.json(&["output"]);
    answer(wire, chunk, output, None, false)
}

pub(crate) fn output_error(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &mut TypedPart<'_, '_>,
) -> ParseResult {
    let output = chunk.json(&["errorText"]);
    answer(wire, chunk, output, None, true)
}

/// Handles a denied call, which is not dispatchable and has no output.
pub(crate) fn output_denied(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &mut TypedPart<'_, '_>,
) -> ParseResult {
    answer(wire, chunk, None, Some(r#""tool-output-denied""#), true)
}

fn close<'a>(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &mut TypedPart<'_, 'a>,
    refused: bool,
) -> Result<Option<Cow<'a, str>>, Fault> {
    let provider = chunk.provider();
    let identity = chunk.identity(&ID);
    let name = chunk.descriptive_string("toolName");
    let call = CallFields {
        address: Address {
            call_id: identity.as_deref(),
            public_id: provider.item_id.as_deref(),
            ..Address::default()
        },
        name: name.as_deref(),
        arguments: chunk.document(&["input", "args"]),
        misses_arguments: chunk.misses_arguments(&["input", "args"]),
        provider_executed: chunk.flag("providerExecuted"),
        refused,
        metadata: provider.metadata.as_deref(),
        ..CallFields::default()
    };
    wire.assembler.call_closed(wire.out, call)?;
    Ok(identity)
}

fn answer(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &mut TypedPart<'_, '_>,
    output: Option<&str>,
    kind: Option<&str>,
    is_error: bool,
) -> ParseResult {
    let Some(identity) = chunk.identity(&ID) else {
        return unknown(wire, chunk.payload);
    };
    let metadata = chunk.metadata_with("type", kind);
    let (output, metadata) = (output.unwrap_or("null"), metadata.as_deref());
    let DecodeContext { assembler, out } = wire;
    assembler.result(out, 0, &identity, output, is_error, metadata)
}
