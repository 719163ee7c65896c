//! Adds an `index` to the objects in the lists of a delta, because clients merge the lists of two deltas by index.
//!
//! openai-python accumulates the lists that a member of the delta has in successive chunks. The client stores the first
//! list unchanged, unless an entry has an `index`. In every later list, each entry must have an `index`. The client
//! merges the entry into the stored entry at that position, or appends it if that position is free. Lists inside the
//! objects of a delta, such as LiteLLM's `provider_specific_fields.thinking_blocks`, are merged in the same way.

use crate::encode::common::compact_json::canonical;
use crate::encode::common::extra_members::parsed;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::items;
use crate::model::list_path::ListPath;
use crate::model::list_path::MAX_LISTS;
use crate::model::small_map::Map;
use std::collections::HashSet;

/// The lists that a client has accumulated from the deltas of one choice.
#[derive(Debug, Default)]
pub(crate) struct ListIndexes {
    /// The lists by path, such as `provider_specific_fields/thinking_blocks`.
    lists: Map<String, KnownList>,
}

#[derive(Debug, Default)]
struct KnownList {
    length: i64,
    /// One more than the highest index.
    after_last: i64,
    /// True if an entry was an object.
    has_objects: bool,
}

/// How a member of a delta is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Indexed {
    /// The member is written as sent.
    Same,
    /// The member is written as this JSON. `is_lossy` is true if entries that clients cannot merge were removed.
    Changed { json: String, is_lossy: bool },
    /// The member cannot be written.
    Dropped,
}

impl ListIndexes {
    /// Returns true if the list at the path has entries.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.lists.get(path).is_some()
    }

    /// Adds indexes to the lists in the value of a member, and stores the lengths of these lists.
    pub(crate) fn index(&mut self, name: &str, value: &str) -> Indexed {
        if value.starts_with('{') && value.contains('[') {
            let mut text = Writer::default();
            canonical(&mut text, value);
            return self.value(&ListPath::of(name), &text.into_text());
        }
        self.value(&ListPath::of(name), value)
    }

    fn value(&mut self, path: &ListPath, value: &str) -> Indexed {
        match value.as_bytes().first() {
            Some(b'[') => self.list(path, value),
            Some(b'{') if value.contains('[') => self.object(path, value),
            _ => Indexed::Same,
        }
    }

    fn object(&mut self, path: &ListPath, object: &str) -> Indexed {
        let mut to = Writer::default();
        let (mut is_changed, mut lossy) = (false, false);
        let mut mark = "{";
        for (name, value) in parsed(object) {
            let path = path.member(&name);
            let indexed = path.map_or(Indexed::Same, |path| self.value(&path, &value));
            let value = match indexed {
                Indexed::Same => value,
                Indexed::Changed { json, is_lossy } => {
                    is_changed = true;
                    lossy |= is_lossy;
                    json
                }
                Indexed::Dropped => {
                    (is_changed, lossy) = (true, true);
                    continue;
                }
            };
            to.raw(mark).string(&name).raw(":").raw(&value);
            mark = ",";
        }
        to.raw(if mark == "{" { "{}" } else { "}" });
        if !is_changed {
            return Indexed::Same;
        }
        Indexed::Changed {
            json: to.into_text(),
            is_lossy: lossy,
        }
    }

    fn list(&mut self, path: &ListPath, list: &str) -> Indexed {
        let entries = items(Raw {
            text: list,
            kind: Kind::Array,
        });
        if entries.is_empty() {
            return Indexed::Same;
        }
        let has_objects = entries.iter().any(|entry| entry.kind == Kind::Object);
        let is_known = self.has(&path.text);
        if !is_known && (self.lists.len() == MAX_LISTS || path.is_long()) {
            return if has_objects {
                Indexed::Dropped
            } else {
                Indexed::Same
            };
        }
        let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        let indexes: Vec<_> = entries.iter().map(|entry| index_of(*entry)).collect();
        let is_whole = entries.iter().all(|entry| entry.kind == Kind::Object);
        let has_index =
            |entry: &Raw<'_>| Object::of(*entry).is_some_and(|entry| entry.has("index"));
        let is_indexed = entries.iter().any(has_index);
        let known = self.lists.slot(path.text.clone());
        let had_objects = known.has_objects;
        known.has_objects |= has_objects;
        // Clients store a first list without indexes unchanged, and append later entries to a list without objects.
        if !had_objects && (known.length > 0 || !(is_whole || is_indexed)) {
            known.length = known.length.saturating_add(count);
            return Indexed::Same;
        }
        let mut to = Writer::default();
        let mut is_changed = !is_whole;
        let mut made = HashSet::new(); // positions of entries that had no index
        let mut mark = "[";
        let objects = entries.iter().zip(indexes);
        for (entry, index) in objects.filter(|(entry, _)| entry.kind == Kind::Object) {
            to.raw(mark);
            mark = ",";
            let is_new = index.is_none_or(|index| index >= known.length);
            match index.filter(|index| !made.contains(index)) {
                Some(index) => {
                    known.after_last = known.after_last.max(index.saturating_add(1));
                    canonical(&mut to, entry.text);
                    known.length = known.length.saturating_add(i64::from(is_new));
                }
                None => {
                    is_changed = true;
                    // Clients also append an entry whose index is past the end of the list.
                    let index = known.length.max(known.after_last);
                    put_index(&mut to, *entry, index);
                    known.after_last = index.saturating_add(1);
                    made.insert(known.length);
                    known.length = known.length.saturating_add(1);
                }
            }
        }
        if mark == "[" {
            return Indexed::Dropped;
        }
        if !is_changed {
            return Indexed::Same;
        }
        to.raw("]");
        Indexed::Changed {
            json: to.into_text(),
            is_lossy: !is_whole,
        }
    }
}

/// Writes the entry with `index` as its last member.
fn put_index(to: &mut Writer, entry: Raw<'_>, index: i64) {
    let mut text = Writer::default();
    canonical(&mut text, entry.text);
    to.raw("{");
    for (name, value) in parsed(&text.into_text()) {
        if name != "index" {
            to.string(&name).raw(":").raw(&value).raw(",");
        }
    }
    to.raw("\"index\":").number(index).raw("}");
}

/// Returns the index of an entry, or `None` if clients cannot use it as a position.
fn index_of(entry: Raw<'_>) -> Option<i64> {
    let raw = Object::of(entry)?.get("index")?;
    let number = raw.text.parse().ok()?;
    Some(number).filter(|number| raw.kind == Kind::Number && *number >= 0)
}
