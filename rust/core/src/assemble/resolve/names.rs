//! How a name that arrives relates to the name a call has: the same, more of it, a piece of it, or another one.
//!
//! Pure questions on strings and the request's tool list. It changes nothing and knows no index, id or arguments.

use crate::assemble::settings::Tools;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The call had none.
    Late,
    Same,
    /// It begins with the call's name.
    Grows,
    /// The next piece of it.
    Fragment,
    /// Another tool's name.
    Other,
}

/// What `arriving` (not blank) is to `current`.
///
/// Without a tool list a differing name is a fragment as long as no argument text was seen, and another name after that.
/// The tool list overrules: a concatenation that begins a tool's name is a fragment at any time; two names that are both
/// tools are two calls.
pub fn relate(current: &str, arriving: &str, tools: &Tools, arguments_started: bool) -> Relation {
    if current.is_empty() {
        return Relation::Late;
    }
    if arriving == current {
        return Relation::Same;
    }
    let both_are_tools = tools.has(current) && tools.has(arriving);
    if arriving.starts_with(current) && !(both_are_tools && arguments_started) {
        return Relation::Grows;
    }
    if tools.begins(current, arriving) {
        return Relation::Fragment;
    }
    if arguments_started || tools.has(arriving) {
        return Relation::Other;
    }
    Relation::Fragment
}
