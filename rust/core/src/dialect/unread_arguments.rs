//! Recognizes members that may contain the arguments of a call under a name that no gateway is known to use.
//!
//! A call that has only a member of this kind, and no other arguments, is not treated as a call to a tool that takes no
//! arguments.

use crate::dialect::think_tags::is_white;
use crate::dialect::upstream_error::is_empty_value;
use crate::json::Automaton;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Member;
use crate::json::members::string;
use crate::model::spec;
use std::sync::LazyLock;

/// Lowercase words that occur only in the names of members without arguments.
static HARMLESS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| spec::words(spec::dialects().get("harmless_members")));

/// Returns true if one of the unknown members of a call may contain the arguments.
pub(crate) fn may_hold_arguments(members: &[Member<'_>]) -> bool {
    members
        .iter()
        .any(|member| may_be_arguments(member.raw) && !is_harmless(&member.key.name()))
}

fn is_harmless(name: &str) -> bool {
    let name = name.to_lowercase();
    HARMLESS.iter().any(|word| name.contains(word))
}

/// Returns true for a non-empty object, and for text that is a non-empty object or may be the beginning of one.
fn may_be_arguments(raw: Raw<'_>) -> bool {
    if raw.kind != Kind::String {
        return raw.kind == Kind::Object && !is_empty_value(raw);
    }
    let Some(text) = string(raw) else {
        return false;
    };
    let text = text.trim_matches(is_white);
    let Some(inner) = text.strip_prefix('{') else {
        return false;
    };
    if inner.trim_matches(|c| is_white(c) || c == '}').is_empty() {
        return inner.is_empty(); // `{}` is not the beginning of arguments
    }
    let mut automaton = Automaton::new();
    automaton.feed(text.as_bytes());
    !automaton.is_broken()
}
