//! Incremental verdict on JSON text. Signatures; the body follows.

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
    NumberTooBig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Valid so far, not a whole value yet (nothing at all included; a number at the root is one only at the end).
    Prefix,
    /// One whole value, maybe white space after it.
    Complete,
    Broken {
        pos: u64,
        problem: Problem,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Automaton {}

impl Automaton {
    pub fn new() -> Automaton {
        Automaton {}
    }
    pub fn feed(&mut self, _bytes: &[u8]) -> Status {
        Status::Prefix
    }
    /// The verdict so far.
    pub fn status(&self) -> Status {
        Status::Prefix
    }
    /// The verdict if the text ended here: `Complete`, `Prefix` or `Broken` (a number at the root is decided here).
    pub fn finish(&self) -> Status {
        Status::Prefix
    }
    pub fn root(&self) -> Option<Root> {
        None
    }
    pub fn depth(&self) -> u32 {
        0
    }
    pub fn in_string(&self) -> bool {
        false
    }
    pub fn is_complete_object(&self) -> bool {
        false
    }
    /// Bytes taken so far.
    pub fn pos(&self) -> u64 {
        0
    }
    /// Only white space (or nothing) so far.
    pub fn is_blank(&self) -> bool {
        true
    }
    /// An integer outside of -2^63 to 2^64-1 was seen.
    pub fn wide_integer(&self) -> bool {
        false
    }
    /// A surrogate escape without its other half was seen.
    pub fn lone_surrogate(&self) -> bool {
        false
    }
}

impl Default for Automaton {
    fn default() -> Self {
        Automaton::new()
    }
}

/// The verdict on a whole text.
pub fn check(bytes: &[u8]) -> Status {
    let mut automaton = Automaton::new();
    automaton.feed(bytes);
    automaton.finish()
}
