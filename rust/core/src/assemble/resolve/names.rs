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

/// How far the arguments of the call are when the name arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No text.
    None,
    /// Some text.
    Started,
    /// The text is a whole value, or the fragment with the name starts another one.
    Over,
}

/// What `arriving` (not blank) is to `current`.
///
/// Without a tool list a differing name is a fragment as long as no argument text was seen, and another name after that;
/// and a name that begins with the current one belongs to the next call once the arguments are over. The tool list
/// overrules: a name that is no tool's name grows to one at any time, and a concatenation that begins a tool's name is a
/// fragment at any time; two names that are both tools are two calls.
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

/// Whether a longer name can be the call's own: the tool list decides, or how far the arguments are.
fn may_grow(current: &str, arriving: &str, tools: &Tools, progress: Progress) -> bool {
    if progress == Progress::None {
        return true;
    }
    if tools.has(arriving) {
        return !tools.has(current);
    }
    progress == Progress::Started
}
