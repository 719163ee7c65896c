//! The place of a list in the delta of a Chat chunk, such as `provider_specific_fields/thinking_blocks`.
//!
//! Clients merge all lists that have the same path in the deltas of a choice. Lists with more than four names in their
//! path are not examined.

/// Maximum number of stored lists per choice.
pub(crate) const MAX_LISTS: usize = 16;

/// Maximum number of names in a path.
const MAX_NAMES: usize = 4;

/// Maximum size of the path of a stored list, in bytes.
const MAX_SIZE: usize = 256;

/// The names of the members that lead to a value.
#[derive(Debug, Clone)]
pub(crate) struct ListPath {
    pub(crate) text: String,
    names: usize,
}

impl ListPath {
    /// Returns the path of a member of the delta.
    pub(crate) fn of(name: &str) -> ListPath {
        ListPath {
            text: name.to_owned(),
            names: 1,
        }
    }

    /// Returns the path of a member of the value at this path, or `None` if the member is too deep to be examined.
    pub(crate) fn member(&self, name: &str) -> Option<ListPath> {
        if self.names == MAX_NAMES {
            return None;
        }
        let text = if self.is_long() {
            self.text.clone() // so that the time does not depend on the number of members
        } else {
            format!("{}/{name}", self.text)
        };
        Some(ListPath {
            text,
            names: self.names + 1,
        })
    }

    /// Returns true if the path is too long for a list at this path to be stored.
    pub(crate) fn is_long(&self) -> bool {
        self.text.len() > MAX_SIZE
    }
}
