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

/// The reason why no continuation can make the text valid JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    Syntax,
    TooDeep,
    /// The text has more values than the limit allows.
    TooMany,
    NumberTooBig,
}

/// Result of validating the consumed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The text is valid, but it is not a complete value yet. Empty text is also a prefix. A number outside any
    /// container becomes complete only when the text ends.
    Prefix,
    /// The text is one complete value, possibly followed by whitespace.
    Complete,
    /// The text is not the beginning of any JSON text. `pos` is the offset of the first invalid byte or, if a number is
    /// too big, of the byte after the number.
    Broken { pos: u64, problem: Problem },
}
