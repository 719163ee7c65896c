//! Decodes the sources and files of a UI message stream.

use crate::dialect::ai_sdk::part::TypedPart;
use crate::dialect::ai_sdk::part::chosen;
use crate::dialect::ai_sdk::part::data_url;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::unknown;

const DOCUMENT: [&str; 4] = ["sourceId", "mediaType", "title", "filename"];

pub(crate) fn source_url(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &mut TypedPart<'_, '_>,
) -> ParseResult {
    let Some(url) = chunk.descriptive_string("url") else {
        return unknown(wire, chunk.payload);
    };
    let title = chunk.descriptive_string("title");
    let metadata = chunk.metadata();
    let (title, metadata) = (title.as_deref(), metadata.as_deref());
    let DecodeContext { assembler, out } = wire;
    assembler.source(out, 0, Some(&url), title, None, metadata)
}

pub(crate) fn source_document(
    wire: &mut DecodeContext<'_, '_>,
    chunk: &mut TypedPart<'_, '_>,
) -> ParseResult {
    let document = chosen(chunk.object, &DOCUMENT);
    let title = chunk.descriptive_string("title");
    let metadata = chunk.metadata();
    let (document, metadata) = (document.as_deref(), metadata.as_deref());
    let DecodeContext { assembler, out } = wire;
    assembler.source(out, 0, None, title.as_deref(), document, metadata)
}

/// Handles a `file` or `reasoning-file` chunk. If the URL is a data URL, it contains the file itself.
pub(crate) fn file(wire: &mut DecodeContext<'_, '_>, chunk: &mut TypedPart<'_, '_>) -> ParseResult {
    let media_type = chunk.descriptive_string("mediaType");
    let Some(url) = chunk.descriptive_string("url") else {
        return unknown(wire, chunk.payload);
    };
    let kind = (chunk.kind != "file").then_some(r#""reasoning-file""#);
    let metadata = chunk.metadata_with("type", kind);
    let (media_type, metadata) = (media_type.as_deref(), metadata.as_deref());
    let DecodeContext { assembler, out } = wire;
    match data_url(&url) {
        None => assembler.file(out, 0, media_type, None, Some(&url), metadata),
        Some((kind, data)) => {
            let media_type = media_type.or(Some(kind));
            assembler.file(out, 0, media_type, Some(data), None, metadata)
        }
    }
}
