//! Writes unknown members of the source's objects as they were sent, if the target has the same dialect.

use crate::encode::common::compact_json::spliced;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::members;

/// Names of members, and their values as sent.
pub(crate) type ExtraMembers = Vec<(String, String)>;

/// Adds members to the object that is being written, except members that the object already has.
pub(crate) fn join(to: &mut Writer, extra: &[(String, String)], written: &[&str]) {
    let is_new = |name: &String| !written.contains(&name.as_str());
    for (name, text) in extra.iter().filter(|(name, _)| is_new(name)) {
        spliced(to.raw(",").string(name).raw(":"), text);
    }
}

/// Returns the members of an object. Values stay JSON text.
pub(crate) fn parsed(object: &str) -> ExtraMembers {
    let members = members(Raw {
        text: object,
        kind: Kind::Object,
    });
    let texts = members
        .into_iter()
        .map(|member| (member.key.name().into_owned(), member.raw.text.to_owned()));
    texts.collect()
}

/// Returns the size of the names and values, in bytes.
pub(crate) fn size(extra: &ExtraMembers) -> usize {
    let sizes = extra.iter().map(|(name, text)| name.len() + text.len());
    sizes.sum()
}
