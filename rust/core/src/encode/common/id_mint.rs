//! Ids for what the target wants one of and the source has none: a kind, the stream's prefix, a number.
//!
//! No randomness in here: the prefix is handed in. Knows no dialect.

/// Counts the ids of one stream.
#[derive(Debug)]
pub(crate) struct IdMint {
    prefix: String,
    made: u64,
}

impl IdMint {
    pub(crate) fn new(prefix: String) -> IdMint {
        IdMint { prefix, made: 0 }
    }

    /// The next id. Those of Chat Completions have a hyphen.
    pub(crate) fn make(&mut self, kind: &str) -> String {
        self.made += 1;
        let joint = if kind == "chatcmpl" { '-' } else { '_' };
        format!("{kind}{joint}{}{}", self.prefix, self.made)
    }
}
