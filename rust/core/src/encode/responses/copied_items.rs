//! Stores the items from a source in the same dialect that are written as they were sent, and writes their JSON.

use crate::encode::common::compact_json::spliced;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::string;
use crate::model::small_map::Map;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::HashSet;

/// Identifies an item by its type and its id, or by its call id if it has no id, or by its index if it has neither.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    Id(String, String),
    Call(String, String),
    Index(String, i64),
}

/// An item that is written as it was sent.
#[derive(Debug)]
pub(crate) struct Copied {
    /// The item as it was last sent. `None` if there is no room to store it.
    pub(crate) json: Option<String>,
    pub(crate) index: i64,
    pub(crate) is_done: bool,
}

/// The items of one response that are written as they were sent.
#[derive(Debug, Default)]
pub(crate) struct CopiedItems {
    pub(crate) all: Vec<Copied>,
    pub(crate) by_name: Map<Name, usize>,
    /// Output indexes of the items, by id, and by the index in the source.
    pub(crate) by_id: Map<String, i64>,
    pub(crate) by_index: Map<i64, i64>,
}

impl CopiedItems {
    /// Calls `give` with the index and the JSON of each stored item. An item that has not ended gets the status
    /// `incomplete`.
    pub(crate) fn each(&self, mut give: impl FnMut(i64, String)) {
        for item in &self.all {
            let Some(json) = &item.json else {
                continue;
            };
            let mut to = Writer::default();
            if item.is_done {
                spliced(&mut to, json);
            } else {
                with_status(&mut to, json, "\"incomplete\"");
            }
            give(item.index, to.into_text());
        }
    }

    /// Returns true if an item is missing in the output because there was no room to store it.
    pub(crate) fn lack_any(&self) -> bool {
        self.all.iter().any(|item| item.json.is_none())
    }
}

/// Writes an object as it was sent, except the values that `replaced` returns. If a key is repeated, only its last
/// value is written. `kind` is the type to write first, for an object without a usable type.
pub(crate) fn write_members<'r>(
    to: &mut Writer,
    object: &Object<'_>,
    kind: Option<&str>,
    replaced: impl Fn(&str) -> Option<&'r str>,
) {
    let last = object.members.iter();
    let last: HashMap<_, _> = last
        .map(|member| (member.key.name(), member.raw.text))
        .collect();
    let mut names = HashSet::new();
    let mut mark = "{";
    if let Some(kind) = kind {
        to.raw("{\"type\":").string(kind);
        mark = ",";
        names.insert(Cow::Borrowed("type"));
    }
    for member in &object.members {
        let name = member.key.name();
        if !names.insert(name.clone()) {
            continue;
        }
        to.raw(mark).string(&name).raw(":");
        mark = ",";
        match replaced(&name) {
            Some(text) => _ = to.raw(text),
            None => spliced(to, last.get(&name).copied().unwrap_or("null")),
        }
    }
    to.raw(if mark == "{" { "{}" } else { "}" });
}

/// Writes an item as it was sent, with another status if it has a status.
pub(crate) fn with_status(to: &mut Writer, item: &str, status: &str) {
    let Some(item) = object(item) else {
        return;
    };
    let has_status = item.get("status").and_then(string).is_some();
    write_members(to, &item, None, |name| {
        (name == "status" && has_status).then_some(status)
    });
}

pub(crate) fn object(text: &str) -> Option<Object<'_>> {
    Object::of(Raw {
        text,
        kind: Kind::Object,
    })
}
