//! Decodes the sources, files, and errors of an AI SDK stream.
//!
//! Accepts the member names of all three provider specifications and of `streamText`.

use crate::dialect::ai_sdk::part::TypedPart;
use crate::dialect::ai_sdk::part::chosen;
use crate::dialect::ai_sdk::part::data_url;
use crate::dialect::ai_sdk::part::filled;
use crate::dialect::ai_sdk::part::whole_error;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::unknown;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::json::Kind;
use crate::json::Number;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::members;
use crate::json::members::present;
use crate::json::members::text;
use std::borrow::Cow;

const DOCUMENT: [&str; 4] = ["id", "mediaType", "title", "filename"];
/// Members that contain the data of a file. A `GeneratedFile` has both `base64`, a getter, and `base64Data`, the field
/// that the getter returns.
const FILE_TEXTS: [&str; 3] = ["data", "base64", "base64Data"];
const SCHEMES: [&str; 3] = ["http://", "https://", "data:"];

/// Handles `source`, which describes a web page with a URL, or a document.
pub(crate) fn source(
    wire: &mut DecodeContext<'_, '_>,
    part: &mut TypedPart<'_, '_>,
) -> ParseResult {
    let (title, url) = (
        part.descriptive_string("title"),
        part.descriptive_string("url"),
    );
    let kind = part.object.string("sourceType");
    let mut document = None;
    if kind.as_deref() == Some("document") {
        document = chosen(part.object, &DOCUMENT);
    } else if url.is_none() {
        return unknown(wire, part.payload);
    }
    let identity = match document {
        Some(_) => None,
        None => part.json(&["id"]),
    };
    let metadata = part.metadata_with("id", identity);
    wire.assembler.source(
        wire.out,
        0,
        url.as_deref(),
        title.as_deref(),
        document.as_deref(),
        metadata.as_deref(),
    )
}

/// Handles `file` and `reasoning-file`, which contain base64 data or a URL. `streamText` wraps the content of a `file`
/// or `reasoning-file` part in a `file` member.
pub(crate) fn file(wire: &mut DecodeContext<'_, '_>, part: &mut TypedPart<'_, '_>) -> ParseResult {
    let mut media_type = part.descriptive_string("mediaType");
    let wrapped = part.get("file").filter(|raw| raw.kind == Kind::Object);
    let (position, sent) = match wrapped {
        Some(wrapped) => ("file", Some(wrapped)),
        None => ("data", part.present("data")),
    };
    if let Some(wrapped) = wrapped.filter(|_| media_type.is_none()) {
        media_type = part.text_of(find(&members(wrapped), "mediaType"));
    }
    let (mut data, mut url) = match sent {
        Some(raw) => contents(part, raw),
        None => (None, None),
    };
    let is_location = |data: &Cow<'_, str>| SCHEMES.iter().any(|scheme| data.starts_with(scheme));
    if url.is_none() && data.as_ref().is_some_and(is_location) {
        url = data.take();
    }
    let kind = (part.kind != "file").then_some(r#""reasoning-file""#);
    let (data, url) = (data.as_deref(), url.as_deref());
    let inline = url.and_then(data_url);
    let (kind_of_data, data, url) = match inline {
        Some((kind, data)) => (Some(kind), Some(data), None),
        None => (None, data, url),
    };
    if data.is_none() && url.is_none() {
        if let Some(raw) = sent {
            part.shape(raw, position);
        }
        return unknown(wire, part.payload);
    }
    let metadata = part.metadata_with("type", kind);
    let media_type = media_type.as_deref().or(kind_of_data);
    let DecodeContext { assembler, out } = wire;
    assembler.file(out, 0, media_type, data, url, metadata.as_deref())
}

/// Returns the data and the URL of a file. Usually, a file has either data or a URL.
fn contents<'a>(
    part: &mut TypedPart<'_, 'a>,
    raw: Raw<'a>,
) -> (Option<Cow<'a, str>>, Option<Cow<'a, str>>) {
    match raw.kind {
        Kind::Object => {
            // Specification V4 wraps the file in an object whose `type` is `url` or `data`, which is also the name of
            // the member with the content. A `GeneratedFile` contains its data in `base64` or `base64Data` instead.
            let inner = members(raw);
            let url = part.text_of(find(&inner, "url"));
            let mut texts = FILE_TEXTS.iter();
            let data = texts.find_map(|name| filled(find(&inner, name)));
            (data.map(|data| part.clean(data)), url)
        }
        _ => (text(raw).map(|data| part.clean(data)), None),
    }
}

/// Reads the error of an `error` part. A JavaScript error has `name` instead of a type and `statusCode` instead of a
/// code.
pub(crate) fn error_of<'a>(object: &Object<'a>) -> UpstreamErrorFields<'a> {
    let Some(error) = object.present("error") else {
        return whole_error(object);
    };
    let mut fields = UpstreamErrorFields::of_value(error);
    if error.kind != Kind::Object {
        return fields;
    }
    let inner = members(error);
    if fields.code.as_ref().is_none_or(|code| code.is_empty()) {
        fields.code = present(find(&inner, "statusCode")).and_then(status);
    }
    if fields.kind.as_ref().is_none_or(|kind| kind.is_empty()) {
        let name = filled(find(&inner, "name")).map(|name| name.into_whole());
        fields.lone |= name.as_ref().is_some_and(|(_, lone)| *lone);
        fields.kind = name.map(|(name, _)| name);
    }
    fields
}

/// Returns an integer as decimal text, or `None` for any other value.
fn status(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    let number = Number { raw: raw.text };
    if raw.kind != Kind::Number || !number.is_integer() {
        return None;
    }
    let small = number.as_i64().map(|number| number.to_string());
    small
        .or_else(|| number.as_u64().map(|number| number.to_string()))
        .map(Cow::Owned)
}
