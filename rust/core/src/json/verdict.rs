//! The words of a verdict on JSON text.

/// What kind of value the text holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    Object,
    Array,
    String,
    Number,
    Literal,
}

/// Why the text can never be JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    Syntax,
    TooDeep,
    /// It has more values than a cap lets it have.
    TooMany,
    NumberTooBig,
}

/// The verdict so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Valid so far and no whole value yet: nothing at all, too. A number at the root is whole only at the end.
    Prefix,
    /// One whole value, maybe with white space after it.
    Complete,
    /// No JSON text begins like this. `pos` is the first byte that cannot be; for a number that is too big, the byte
    /// after it.
    Broken { pos: u64, problem: Problem },
}
