//! The pieces of which both protocols of the AI SDK build their parts and chunks.
//!
//! Knows JSON members and frames; no event, and no order.

use crate::encode::common::usage::Counts;
use crate::encode::common::writer::Writer;

/// The beginning of a part or chunk.
pub(crate) fn frame<'w>(to: &'w mut Writer, kind: &str) -> &'w mut Writer {
    to.data().raw("{\"type\":\"").raw(kind).raw("\"")
}

/// A member that is a string, behind another one. `name` is quoted already.
pub(crate) fn member<'w>(to: &'w mut Writer, name: &str, text: &str) -> &'w mut Writer {
    to.raw(",").raw(name).raw(":").string(text)
}

/// The same, where there is something to say.
pub(crate) fn maybe<'w>(to: &'w mut Writer, name: &str, text: Option<&str>) -> &'w mut Writer {
    match text {
        Some(text) => member(to, name, text),
        None => to,
    }
}

/// Who runs the call, where that is the provider.
pub(crate) fn executed(to: &mut Writer, by_provider: bool) -> &mut Writer {
    to.raw(if by_provider {
        ",\"providerExecuted\":true"
    } else {
        ""
    })
}

/// The last member of some, JSON already.
pub(crate) fn hung<'w>(to: &'w mut Writer, metadata: Option<&str>) -> &'w mut Writer {
    if let Some(metadata) = metadata {
        to.raw(",\"providerMetadata\":").raw(metadata);
    }
    to
}

pub(crate) fn end(to: &mut Writer) {
    to.raw("}").end();
}

/// Members of counts that are known.
pub(crate) fn counted(to: &mut Writer, counts: &[(&str, Option<i64>)]) {
    let mut mark = "\"";
    for (name, count) in counts {
        if let Some(count) = count {
            to.raw(mark).raw(name).raw("\":").number(*count);
            mark = ",\"";
        }
    }
}

/// What of the input was read anew, and what of the output is no reasoning; where that is known.
pub(crate) fn shares(counts: &Counts) -> (Option<i64>, Option<i64>) {
    let cached = counts.cached.unwrap_or(0);
    let cached = cached.saturating_add(counts.cache_write.unwrap_or(0));
    let is_known = counts.cached.is_some() || counts.cache_write.is_some();
    let fresh = counts.input.filter(|_| is_known);
    let fresh = fresh.map(|input| input.saturating_sub(cached).max(0));
    let plain = counts.output.zip(counts.reasoning);
    let plain = plain.map(|(output, reasoning)| output.saturating_sub(reasoning).max(0));
    (fresh, plain)
}
