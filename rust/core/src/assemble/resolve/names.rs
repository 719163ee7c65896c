//! Classifies a tool name that arrives for a call: the same name, a longer one, its next piece, or another name.
//!
//! Considers only the names, the request's tool list, and how far the arguments have progressed.

use crate::assemble::settings::Tools;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The call had no name.
    Late,
    Same,
    /// A longer name that begins with the call's name.
    Grows,
    /// The next piece of the call's name.
    Fragment,
    /// The name of another tool.
    Other,
}

/// Progress of the call's arguments when the name arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No argument text.
    None,
    /// Some argument text.
    Started,
    /// The argument text is a complete JSON value, or the fragment with the name starts another value.
    Over,
}

/// Classifies the name `arriving` (not blank) relative to the call's name `current`.
///
/// Without a tool list, a different name is treated as a fragment until argument text arrives, and as the name of
/// another tool after that. A name that begins with the call's name belongs to the next call once the arguments are
/// complete. The tool list takes precedence: at any time, a name that is not a tool's name can grow into the name of a
/// tool, and the arriving name is a fragment if both names together begin a tool's name. Two names that are both in the
/// list belong to two calls.
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

/// Returns true if a longer name can belong to the call. The tool list determines this; without a tool list, the
/// progress of the arguments does.
fn may_grow(current: &str, arriving: &str, tools: &Tools, progress: Progress) -> bool {
    if progress == Progress::None {
        return true;
    }
    if tools.has(arriving) {
        return !tools.has(current);
    }
    progress == Progress::Started
}
