//! Encodes signatures and encrypted reasoning as opaque text (a carrier) that clients of another dialect send back.
//! Only the provider that created a signature or encrypted reasoning can use that content.
//!
//! The text is the base64 form of a JSON object that begins with `{"streamweld":1`. A carrier is decoded by
//! `history/passes/carriers.py`. The carrier contains all of the reasoning, because clients may change or drop the text
//! next to it. The carrier for the signature of a text part contains the part's offsets in the text of the whole
//! choice, in characters.

use std::borrow::Cow;

use crate::encode::common::compact_json::canonical;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::model::event::Event;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the carrier for a signed or encrypted reasoning part, or `None` for any other event.
pub(crate) fn of_reasoning(source: &str, event: &Event<'_>) -> Option<String> {
    let Event::ReasoningDone {
        text,
        kind,
        item_id,
        signature,
        encrypted_content,
        metadata,
        ..
    } = *event
    else {
        return None;
    };
    let nonempty = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
    if !nonempty(signature) && !nonempty(encrypted_content) {
        return None;
    }
    let mut to = begun(source);
    to.raw(",\"kind\":").string(kind);
    to.raw(",\"text\":").string(text);
    for (name, value) in [
        ("item_id", item_id),
        ("signature", signature),
        ("encrypted_content", encrypted_content),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            to.raw(",\"").raw(name).raw("\":").string(value);
        }
    }
    if let Some(metadata) = metadata {
        canonical(to.raw(",\"metadata\":"), metadata);
    }
    Some(closed(to))
}

/// Returns a carrier for a call's signature, and whether the signature is the event's only metadata. Returns `None` if
/// there is no signature.
pub(crate) fn of_call(source: &str, event: &Event<'_>) -> Option<(String, bool)> {
    let Event::ToolCall {
        call_id,
        metadata: Some(text),
        ..
    } = *event
    else {
        return None;
    };
    let (signature, alone) = signature(source, text)?;
    let mut to = begun(source);
    to.raw(",\"call_id\":").string(call_id);
    to.raw(",\"signature\":").string(&signature);
    Some((closed(to), alone))
}

/// Returns a carrier for the signature of a text part, and whether the signature is the part's only metadata. Returns
/// `None` if there is no signature. `start` and `end` are the part's offsets in the text of the whole choice, in
/// characters.
pub(crate) fn of_text(
    source: &str,
    metadata: Option<&str>,
    (start, end): (i64, i64),
) -> Option<(String, bool)> {
    let (signature, alone) = signature(source, metadata?)?;
    let mut to = begun(source);
    to.raw(",\"start\":").number(start);
    to.raw(",\"end\":").number(end);
    to.raw(",\"signature\":").string(&signature);
    Some((closed(to), alone))
}

fn signature<'a>(source: &str, metadata: &'a str) -> Option<(Cow<'a, str>, bool)> {
    let whole = Object::of(Raw {
        text: metadata,
        kind: Kind::Object,
    })?;
    let signature = match source {
        "gemini" => whole.string("thoughtSignature")?,
        "chat" => {
            let extra = whole.object("extra_content")?;
            extra.object("google")?.string("thought_signature")?
        }
        _ => return None,
    };
    (!signature.is_empty()).then(|| (signature, whole.names().len() == 1))
}

fn begun(source: &str) -> Writer {
    let mut to = Writer::default();
    to.raw("{\"streamweld\":1,\"from\":").string(source);
    to
}

fn closed(mut to: Writer) -> String {
    to.raw("}");
    base64(&to.bytes)
}

fn base64(bytes: &[u8]) -> String {
    let mut made = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            let letter = ALPHABET.get((bits >> (18 - 6 * position) & 63) as usize);
            let letter = letter.filter(|_| position <= group.len());
            made.push(letter.map_or('=', |letter| char::from(*letter)));
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn all_lengths() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob\u{ff}", "Zm9vYsO/"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
