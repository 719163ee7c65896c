//! Writes the JSON members and `data:` frames that both AI SDK protocols use in their parts and chunks.

use crate::encode::common::usage::Counts;
use crate::encode::common::writer::Writer;

/// Writes the beginning of a part or chunk with the given type.
pub(crate) fn frame<'w>(to: &'w mut Writer, kind: &str) -> &'w mut Writer {
    to.data().raw("{\"type\":\"").raw(kind).raw("\"")
}

/// Writes a comma and a string member. `name` includes its quotes.
pub(crate) fn member<'w>(to: &'w mut Writer, name: &str, text: &str) -> &'w mut Writer {
    to.raw(",").raw(name).raw(":").string(text)
}

/// Writes a string member as `member` does, unless `text` is `None`.
pub(crate) fn maybe<'w>(to: &'w mut Writer, name: &str, text: Option<&str>) -> &'w mut Writer {
    match text {
        Some(text) => member(to, name, text),
        None => to,
    }
}

/// Writes `providerExecuted` if the provider runs the call.
pub(crate) fn executed(to: &mut Writer, by_provider: bool) -> &mut Writer {
    to.raw(if by_provider {
        ",\"providerExecuted\":true"
    } else {
        ""
    })
}

/// Writes the provider metadata, which is already JSON, as the last member.
pub(crate) fn write_provider_metadata<'w>(
    to: &'w mut Writer,
    metadata: Option<&str>,
) -> &'w mut Writer {
    if let Some(metadata) = metadata {
        to.raw(",\"providerMetadata\":").raw(metadata);
    }
    to
}

pub(crate) fn end(to: &mut Writer) {
    to.raw("}").end();
}

/// Writes the known token counts as members.
pub(crate) fn counted(to: &mut Writer, counts: &[(&str, Option<i64>)]) {
    let mut mark = "\"";
    for (name, count) in counts {
        if let Some(count) = count {
            to.raw(mark).raw(name).raw("\":").number(*count);
            mark = ",\"";
        }
    }
}

/// Returns the number of uncached input tokens and the number of output tokens that are not reasoning. Returns `None`
/// for a number that the counts do not contain.
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
