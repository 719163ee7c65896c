//! Generates ids that the target requires but the source lacks: `<kind>_<prefix><n>`, numbered across all kinds in a
//! stream.
//!
//! The caller provides the prefix, so the ids are deterministic.

/// Generates the ids of one stream.
#[derive(Debug)]
pub(crate) struct IdMint {
    prefix: String,
    made: u64,
}

impl IdMint {
    pub(crate) fn new(prefix: String) -> IdMint {
        IdMint { prefix, made: 0 }
    }

    /// Returns the next id. Ids of the kind `chatcmpl` contain a hyphen instead of the underscore.
    pub(crate) fn make(&mut self, kind: &str) -> String {
        self.made += 1;
        let joint = if kind == "chatcmpl" { '-' } else { '_' };
        format!("{kind}{joint}{}{}", self.prefix, self.made)
    }
}
