//! Determines how a tool name that arrives for a call relates to the call's name: it may be the same name, a longer
//! name, the next piece of the name, or the name of another tool.
//!
//! The result depends only on the names, the request's tool list, and how far the arguments have progressed.

use crate::assemble::settings::Tools;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The call has no name yet.
    Late,
    Same,
    /// The arriving name is longer and begins with the call's name.
    Grows,
    /// The arriving name is the next piece of the call's name.
    Fragment,
    /// The arriving name is the name of another tool.
    Other,
}

/// How far the call's arguments have progressed when the name arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No argument text has arrived.
    None,
    /// The argument text is incomplete.
    Started,
    /// The argument text is a complete JSON value, or the fragment with the name starts another value.
    Over,
}

/// Returns how the name `arriving`, which is not blank, relates to the call's name `current`.
///
/// Without a tool list, a different name is a piece of the call's name until argument text arrives, and the name of
/// another tool after that. A longer name that begins with the call's name replaces the call's name as long as the
/// arguments are incomplete. If the caller supplied a tool list, the list takes precedence over these rules. If both
/// names together begin a tool's name, the arriving name is a piece. If only the longer name is in the list, it
/// replaces the call's name at any time. If both names are in the list, they belong to two calls.
pub fn relate(current: &str, arriving: &str, tools: &Tools, progress: Progress) -> Relation {
    if current.is_empty() {
        return Relation::Late;
    }
    if arriving == current {
        return Relation::Same;
    }
    if arriving.starts_with(current) && may_grow(current, arriving, tools, progress) {
        return Relation::Grows;
    }
    if tools.begins(current, arriving) && !(progress == Progress::Over && tools.has(current)) {
        return Relation::Fragment;
    }
    if progress != Progress::None || tools.has(arriving) {
        return Relation::Other;
    }
    Relation::Fragment
}

/// Returns true if the call's name may be replaced with the longer name `arriving`.
fn may_grow(current: &str, arriving: &str, tools: &Tools, progress: Progress) -> bool {
    if progress == Progress::None {
        return true;
    }
    if tools.has(arriving) {
        return !tools.has(current);
    }
    progress == Progress::Started
}
