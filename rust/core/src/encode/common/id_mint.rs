//! Generates ids that the target requires but the source lacks, from a kind, the stream's prefix and a number.
//!
//! The ids are deterministic, because the caller provides the prefix.

/// Counts the ids generated for one stream.
#[derive(Debug)]
pub(crate) struct IdMint {
    prefix: String,
    made: u64,
}

impl IdMint {
    pub(crate) fn new(prefix: String) -> IdMint {
        IdMint { prefix, made: 0 }
    }

    /// Returns the next id. Chat Completions ids contain a hyphen.
    pub(crate) fn make(&mut self, kind: &str) -> String {
        self.made += 1;
        let joint = if kind == "chatcmpl" { '-' } else { '_' };
        format!("{kind}{joint}{}{}", self.prefix, self.made)
    }
}
