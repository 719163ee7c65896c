//! Decodes the parts of a candidate other than text and function calls: files, code that the model ran, and provider
//! tools.
//!
//! A result without an id belongs to the preceding call.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::gemini::spec_tables::FACTS;
use crate::dialect::gemini::spec_tables::a_word;
use crate::dialect::gemini::spec_tables::an_id;
use crate::dialect::gemini::spec_tables::extra_fields;
use crate::dialect::gemini::spec_tables::nonnull;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Object;
use crate::json::members::find;
use crate::model::delta::Address;
use crate::model::delta::CallFields;
use crate::model::delta::ItemKind;
use std::borrow::Cow;

/// Members of a part that this module decodes. Each member corresponds to a kind of part.
pub(crate) const KINDS: [&str; 7] = [
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];
const FAILED: [&str; 2] = ["OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED"];

/// A part and its place in the candidate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartContext<'p, 'a> {
    pub(crate) choice: i32,
    /// Position of the part in its candidate.
    pub(crate) position: i64,
    pub(crate) part: &'p Object<'a>,
    pub(crate) at: Pointer<'p>,
    /// Unknown members of the part.
    pub(crate) extra: &'p ExtraFields<'a>,
}

/// Decodes one part of a candidate. `kind`: the kind of the part, which is one of `KINDS`.
pub(crate) fn read_tool<'a>(
    wire: &mut DecodeContext<'_, '_>,
    kind: &str,
    position: PartContext<'_, 'a>,
    notes: &mut Anomalies<'a>,
) -> ParseResult {
    let Some(inner) = notes.an_object(&position.part.members, position.at, kind) else {
        return Ok(());
    };
    let (members, at) = (&inner.members, position.at.member(kind));
    let metadata = |modelled: &[&str]| position.extra.and(&extra_fields(members, modelled)).text();
    match kind {
        "inlineData" => {
            let data = notes.a_text(members, at, "data");
            let media_type = a_word(members, at, "mimeType", notes);
            let data = notes.clean(data);
            let data = Some(data.as_ref()).filter(|data| !data.is_empty());
            let metadata = metadata(&["mimeType", "data"]);
            let (media_type, metadata) = (media_type.as_deref(), metadata.as_deref());
            wire.assembler
                .file(wire.out, position.choice, media_type, data, None, metadata)
        }
        "fileData" => {
            let uri = a_word(members, at, "fileUri", notes);
            let media_type = a_word(members, at, "mimeType", notes);
            let metadata = metadata(&["mimeType", "fileUri"]);
            let (media_type, metadata) = (media_type.as_deref(), metadata.as_deref());
            let uri = uri.as_deref();
            wire.assembler
                .file(wire.out, position.choice, media_type, None, uri, metadata)
        }
        "executableCode" => {
            let id = an_id(members, at, notes);
            let metadata = position.extra.text();
            let (code, arguments) = (Some(FACTS.code_tool), inner.raw.text);
            call(wire, position, id, code, arguments, metadata.as_deref())
        }
        "toolCall" => {
            let id = an_id(members, at, notes);
            let name = a_word(members, at, "toolType", notes);
            let metadata = metadata(&["id", "toolType", "args"]);
            let arguments = nonnull(members, "args").map_or("{}", |raw| raw.text);
            call(
                wire,
                position,
                id,
                name.as_deref(),
                arguments,
                metadata.as_deref(),
            )
        }
        "codeExecutionResult" => {
            let outcome = a_word(members, at, "outcome", notes);
            let failed = outcome.is_some_and(|outcome| FAILED.contains(&outcome.as_ref()));
            let id = an_id(members, at, notes);
            let metadata = position.extra.text();
            result(
                wire,
                position,
                id,
                inner.raw.text,
                failed,
                metadata.as_deref(),
            )
        }
        // The member is `toolResponse`, or `functionResponse` if a relay ran the function itself.
        _ => {
            let metadata = metadata(&["id", "response"]);
            let output = find(members, "response").map_or("null", |raw| raw.text);
            let id = an_id(members, at, notes);
            result(wire, position, id, output, false, metadata.as_deref())
        }
    }
}

/// Opens and closes a call that the provider runs and whose arguments are complete.
fn call(
    wire: &mut DecodeContext<'_, '_>,
    position: PartContext<'_, '_>,
    id: Option<Cow<'_, str>>,
    name: Option<&str>,
    arguments: &str,
    metadata: Option<&str>,
) -> ParseResult {
    let address = Address {
        call_id: id.as_deref(),
        index: Some(position.position),
        ..Address::default()
    };
    let call_fields = CallFields {
        choice: position.choice,
        address,
        name,
        arguments: Some(Text::plain(arguments)),
        provider_executed: true,
        metadata,
        ..CallFields::default()
    };
    let DecodeContext { assembler, out } = wire;
    assembler.call_opened(out, call_fields)?;
    assembler.item_closed(
        out,
        position.choice,
        Some(ItemKind::Call),
        address,
        None,
        None,
    )
}

/// Emits the result of a call. A result without an id belongs to the last closed call. If there is no such call, the
/// part is emitted as unknown content.
fn result(
    wire: &mut DecodeContext<'_, '_>,
    position: PartContext<'_, '_>,
    id: Option<Cow<'_, str>>,
    output: &str,
    failed: bool,
    metadata: Option<&str>,
) -> ParseResult {
    let DecodeContext { assembler, out } = wire;
    let id = id.or_else(|| {
        let last = assembler.last_closed_call(position.choice)?;
        Some(Cow::Owned(last.to_owned()))
    });
    match id {
        Some(id) => assembler.result(out, position.choice, &id, output, failed, metadata),
        None => {
            let raw = position.part.raw.text.as_bytes();
            assembler.kept_unknown(out, position.choice, None, raw, None)
        }
    }
}
