//! Result types of JSON validation.

/// Kind of the value in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    Object,
    Array,
    String,
    Number,
    Literal,
}

/// Why the text can never become valid JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    Syntax,
    TooDeep,
    /// The text has more values than the limit allows.
    TooMany,
    NumberTooBig,
}

/// Result of validating the text so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The text is valid so far, but not a complete value. Empty text is also a prefix. A number outside any container
    /// is complete only when the text ends.
    Prefix,
    /// The text is one complete value, possibly followed by whitespace.
    Complete,
    /// The text is not the beginning of any JSON text. `pos` is the first invalid byte; for a number that is too big,
    /// the byte after it.
    Broken { pos: u64, problem: Problem },
}
