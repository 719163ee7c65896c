//! The parts that every Chat chunk has: the members before the delta, and the end after it.

use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::members::Document;
use crate::json::members::document;
use crate::json::members::integer;
use crate::sse::decode_utf8;
use std::borrow::Cow;

/// The end of a chunk without a finish reason.
pub(crate) const LAST: &str = ",\"finish_reason\":null}]}";

/// Writes a chunk up to its delta. `beginning`: the beginning of every chunk, or empty before the first one.
#[inline]
pub(crate) fn begin_chunk<'j>(
    beginning: &mut String,
    context: &'j mut EncodeContext,
    index: i32,
) -> &'j mut Writer {
    if beginning.is_empty() {
        *beginning = head(context);
    }
    let to = context.writer.data().raw(beginning);
    to.raw("[{\"index\":")
        .number(i64::from(index))
        .raw(",\"delta\":")
}

/// Returns the beginning of every chunk, including the known metadata of the response.
pub(crate) fn head(context: &mut EncodeContext) -> String {
    if context.passed.own {
        complete(context);
    }
    let id = context.answer.id.take();
    let id = id.unwrap_or_else(|| context.mint.make("chatcmpl"));
    let mut head = Writer::default();
    head.raw("{\"id\":").string(&id);
    head.raw(",\"object\":\"chat.completion.chunk\",\"created\":");
    head.number(context.answer.created.unwrap_or(context.options.created));
    head.raw(",\"model\":")
        .string(context.model())
        .raw(",\"choices\":");
    head.into_text()
}

/// Adds the id, model and time from the current chunk if the first chunk left them blank (Azure).
fn complete(context: &mut EncodeContext) {
    let answer = &mut context.answer;
    if answer.id.is_some() && answer.model.is_some() {
        return;
    }
    let (text, _) = decode_utf8(&context.passed.payload);
    let Ok(Document::Object(chunk)) = document(&text, None) else {
        return;
    };
    let word = |name| chunk.string(name).filter(|word| !word.trim().is_empty());
    if answer.id.is_none() {
        answer.id = word("id").map(Cow::into_owned);
    }
    if answer.model.is_none() {
        answer.model = word("model").map(Cow::into_owned);
    }
    if answer.created.is_none_or(|created| created == 0) {
        let created = chunk.get("created");
        let created = created.filter(|raw| raw.kind == Kind::Number);
        answer.created = created.and_then(integer).or(answer.created);
    }
}
