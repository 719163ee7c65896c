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
    /// The item as it was last sent, with its own id. `None` if it exceeds the limit.
    pub(crate) json: Option<String>,
    pub(crate) kind: String,
    /// The id that clients know. An item without an id gets a generated one.
    pub(crate) id: String,
    pub(crate) index: i64,
    pub(crate) is_done: bool,
}

impl Copied {
    /// Returns the item as the response lists it, with the status `incomplete` if it has not ended.
    fn final_json(&self) -> Option<String> {
        let json = self.json.as_ref()?;
        let mut to = Writer::default();
        if self.is_done {
            spliced(&mut to, json);
        } else {
            with_status(&mut to, json, "\"incomplete\"");
        }
        Some(to.into_text())
    }
}

/// The items of one response that are written as they were sent.
#[derive(Debug, Default)]
pub(crate) struct CopiedItems {
    pub(crate) all: Vec<Copied>,
    pub(crate) by_name: Map<Name, usize>,
}

/// What happens to one member when an object is copied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'r> {
    /// The member is written with this value. A member that the object lacks is added at its end.
    Set(&'r str),
    /// The member is written with this value, if the object has it.
    Replace(&'r str),
    Remove,
}

impl CopiedItems {
    /// Calls `give` with the index and the JSON of each stored item. An item that has not ended gets the status
    /// `incomplete`.
    pub(crate) fn each(&self, mut give: impl FnMut(i64, String)) {
        for item in &self.all {
            if let Some(json) = item.final_json() {
                give(item.index, json);
            }
        }
    }

    /// Returns the index and the JSON of each stored item that has not ended and has no status.
    pub(crate) fn open_without_status(&self) -> Vec<(i64, String)> {
        let open = self.all.iter().filter(|item| !item.is_done);
        let open = open.filter(|item| {
            item.json
                .as_deref()
                .is_some_and(|json| status(json).is_none())
        });
        open.filter_map(|item| Some((item.index, item.final_json()?)))
            .collect()
    }

    /// Returns true if an item is missing in the output because it exceeded the limit.
    pub(crate) fn lack_any(&self) -> bool {
        self.all.iter().any(|item| item.json.is_none())
    }
}

/// Writes an object as it was sent, except the members in `changes`. If a key is repeated, only its last value is
/// written. `kind` is the type to write first, for an object without a usable type.
pub(crate) fn write_members(
    to: &mut Writer,
    object: &Object<'_>,
    kind: Option<&str>,
    changes: &[(&str, Change<'_>)],
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
        let change = changes.iter().find(|(changed, _)| *changed == name);
        let text = match change {
            Some((_, Change::Remove)) => continue,
            Some((_, Change::Set(text) | Change::Replace(text))) => Some(*text),
            None => None,
        };
        to.raw(mark).string(&name).raw(":");
        mark = ",";
        match text {
            Some(text) => _ = to.raw(text),
            None => spliced(to, last.get(&name).copied().unwrap_or("null")),
        }
    }
    for (name, change) in changes {
        if let Change::Set(text) = change
            && names.insert(Cow::Borrowed(*name))
        {
            to.raw(mark).string(name).raw(":").raw(text);
            mark = ",";
        }
    }
    to.raw(if mark == "{" { "{}" } else { "}" });
}

/// Writes an item as it was sent, with another status if it has a status.
pub(crate) fn with_status(to: &mut Writer, item: &str, word: &str) {
    let Some(item) = object(item) else {
        return;
    };
    let has_status = item.get("status").and_then(string).is_some();
    let change = has_status.then_some(("status", Change::Replace(word)));
    write_members(to, &item, None, change.as_slice());
}

/// Returns the status of an item, or `None` if it has none.
pub(crate) fn status(item: &str) -> Option<String> {
    object(item)?.string("status").map(Cow::into_owned)
}

/// Returns an item as it was sent, with the id that clients know.
pub(crate) fn with_id<'i>(item: &'i str, id: &str) -> Cow<'i, str> {
    let Some(sent) = object(item).filter(|sent| sent.string("id").as_deref() != Some(id)) else {
        return Cow::Borrowed(item);
    };
    let mut text = Writer::default();
    text.string(id);
    let id = text.into_text();
    let mut to = Writer::default();
    write_members(&mut to, &sent, None, &[("id", Change::Set(&id))]);
    Cow::Owned(to.into_text())
}

pub(crate) fn object(text: &str) -> Option<Object<'_>> {
    Object::of(Raw {
        text,
        kind: Kind::Object,
    })
}
