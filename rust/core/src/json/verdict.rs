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

/// Validation result so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Valid so far, but not a complete value. This includes empty text. A number at the root is complete only when the
    /// text ends.
    Prefix,
    /// One complete value, possibly followed by whitespace.
    Complete,
    /// Not the beginning of any JSON text. `pos` is the first invalid byte; for a number that is too big, the byte
    /// after it.
    Broken { pos: u64, problem: Problem },
}
