//! Reads the members of one family from the table of families.

use serde_json::Map;
use serde_json::Value;

/// What ends a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// The block ends where its body ends.
    Body,
    Literal(String),
    /// An optional literal after the body.
    Maybe(String),
}

/// The members of a family, or of an object inside a family.
#[derive(Debug)]
pub(crate) struct Entry<'a>(pub &'a Map<String, Value>);

impl Entry<'_> {
    pub fn flag(&self, key: &str) -> bool {
        self.0.get(key) == Some(&Value::Bool(true))
    }

    pub fn is_off(&self, key: &str) -> bool {
        self.0.get(key) == Some(&Value::Bool(false))
    }

    pub fn word(&self, key: &str) -> Option<String> {
        self.0.get(key)?.as_str().map(str::to_owned)
    }

    pub fn words(&self, key: &str) -> Vec<String> {
        let list = self.0.get(key).and_then(Value::as_array);
        let words = list.into_iter().flatten().filter_map(Value::as_str);
        words.map(str::to_owned).collect()
    }

    /// Returns the value of this key if it is an object.
    pub fn inner(&self, key: &str) -> Option<Entry<'_>> {
        self.0.get(key)?.as_object().map(Entry)
    }
}
