//! Validates JSON text that arrives in pieces. Determines whether the text is a prefix of JSON, one complete value, or
//! broken.
//!
//! The automaton accepts exactly RFC 8259, with two restrictions: the nesting depth is limited, and numbers that round
//! to infinity are rejected. The automaton takes constant time per byte and does not recurse. The state is small,
//! because it is copied before each attempt to consume a piece. The input is UTF-8. The automaton defines which text is
//! valid, and the module `scan` reports its error positions.

#[cfg(test)]
mod tests;

use crate::json::MAX_DEPTH;
use crate::json::escape::Escapes;
use crate::json::number::Magnitude;
use crate::json::token::plain_run;
use crate::json::validation::Problem;
use crate::json::validation::Root;
use crate::json::validation::Status;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A value is expected.
    Value,
    /// After `[`: a value or `]` is expected.
    FirstItem,
    /// After `{`: a key or `}` is expected.
    FirstKey,
    /// After a comma in an object: a key is expected.
    Key,
    Colon,
    /// After a value: a comma or the end of the container is expected. Outside any container, only whitespace is
    /// expected.
    After,
    String,
    Escape,
    Hex,
    Literal,
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
    Broken(Problem),
}

const SYNTAX: State = State::Broken(Problem::Syntax);

/// State of the validation. To return to an earlier position, use a copy of the automaton.
#[derive(Clone, Copy, Debug)]
pub struct Automaton {
    /// One bit per level, with the innermost level in the lowest bit. A set bit means an object.
    stack: u128,
    number: Magnitude,
    pos: u64,
    /// Remaining letters of `true`, `false` or `null`, with the next letter in the lowest byte.
    literal: u32,
    escapes: Escapes,
    /// True if the current string is a key.
    key: bool,
    depth: u32,
    max_depth: u32,
    state: State,
    root: Option<Root>,
    wide_integer: bool,
}

impl Automaton {
    pub fn new() -> Automaton {
        Automaton::with_depth(MAX_DEPTH)
    }

    /// Creates an automaton whose nesting limit is the lower of `max_depth` and `MAX_DEPTH`.
    pub fn with_depth(max_depth: u32) -> Automaton {
        Automaton {
            stack: 0,
            number: Magnitude::ZERO,
            pos: 0,
            literal: 0,
            escapes: Escapes::default(),
            key: false,
            depth: 0,
            max_depth: max_depth.min(MAX_DEPTH),
            state: State::Value,
            root: None,
            wide_integer: false,
        }
    }

    /// Consumes the next piece, and returns the result for the text that ends with this piece. Once the text is broken,
    /// the state no longer changes.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Status {
        if self.goes_on(bytes) {
            return Status::Prefix;
        }
        self.run(bytes)
    }

    /// Consumes the next piece, unless it makes the text invalid. If the piece would make the text invalid, the state
    /// does not change.
    ///
    /// Returns the result for the text that ends with the piece, or the error that the piece would cause.
    #[inline]
    pub fn offer(&mut self, bytes: &[u8]) -> Status {
        if self.goes_on(bytes) {
            return Status::Prefix;
        }
        let mut attempt = *self;
        let status = attempt.run(bytes);
        if !attempt.is_broken() {
            *self = attempt;
        }
        status
    }

    /// If the whole piece is plain text inside a string, consumes it and returns true. Most pieces of arguments are
    /// plain text inside a string.
    #[inline(always)]
    fn goes_on(&mut self, bytes: &[u8]) -> bool {
        self.is_inside() && plain_run(bytes) == bytes.len() && self.goes_on_with(bytes.len())
    }

    /// Consumes `length` bytes of string text, which must not contain a quote, backslash, or control character.
    ///
    /// Outside a string, or after an escaped high surrogate, returns false and consumes nothing.
    #[inline(always)]
    pub fn goes_on_with(&mut self, length: usize) -> bool {
        let inside = self.is_inside();
        self.pos += if inside { length as u64 } else { 0 };
        inside
    }

    #[inline(always)]
    fn is_inside(&self) -> bool {
        self.state == State::String && !self.escapes.half()
    }

    #[inline(never)]
    fn run(&mut self, bytes: &[u8]) -> Status {
        if self.is_broken() {
            return self.status();
        }
        // Keep the state in a local variable during the loop. Access through memory would take more time than the rest
        // of the loop.
        let mut state = self.state;
        let mut rest = bytes;
        loop {
            if state == State::String {
                let run = plain_run(rest);
                rest = rest.get(run..).unwrap_or_default();
                if run > 0 {
                    self.escapes.other_text();
                }
            }
            let Some((&byte, tail)) = rest.split_first() else {
                break;
            };
            state = self.step(state, byte);
            if matches!(state, State::Broken(_)) {
                break;
            }
            rest = tail;
        }
        self.state = state;
        self.pos += (bytes.len() - rest.len()) as u64;
        self.status()
    }

    /// Returns the result for the consumed text.
    #[inline]
    pub fn status(&self) -> Status {
        match self.state {
            State::After if self.depth == 0 => Status::Complete,
            State::Broken(problem) => Status::Broken {
                pos: self.pos,
                problem,
            },
            _ => Status::Prefix,
        }
    }

    /// Returns the result if the text ends here. The end of the text completes a number at the root.
    pub fn finish(&self) -> Status {
        match self.state {
            State::Zero | State::Integer | State::Fraction | State::ExponentDigits
                if self.depth == 0 =>
            {
                if self.number.is_infinite() {
                    return Status::Broken {
                        pos: self.pos,
                        problem: Problem::NumberTooBig,
                    };
                }
                Status::Complete
            }
            _ => self.status(),
        }
    }

    /// Returns the kind of the value if its first byte has arrived.
    pub fn root(&self) -> Option<Root> {
        self.root
    }

    /// Returns the number of open objects and arrays.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns true if the text ends inside a string or a key.
    pub fn in_string(&self) -> bool {
        matches!(self.state, State::String | State::Escape | State::Hex)
    }

    /// Returns true if the text is one complete object.
    #[inline]
    pub fn is_complete_object(&self) -> bool {
        self.root == Some(Root::Object) && self.status() == Status::Complete
    }

    pub fn is_broken(&self) -> bool {
        matches!(self.state, State::Broken(_))
    }

    /// Returns true if the consumed text is only whitespace.
    pub fn is_blank(&self) -> bool {
        self.root.is_none() && self.state == State::Value
    }

    /// Returns the number of bytes consumed or, if the text is broken, the position of the error.
    pub fn pos(&self) -> u64 {
        self.pos
    }

    /// Returns true if the text has an integer outside -2^63 to 2^64-1. An integer that may still continue is included.
    pub fn wide_integer(&self) -> bool {
        self.wide_integer || (self.in_number() && self.number.is_wide())
    }

    /// Returns true if the text has an unpaired surrogate escape.
    pub fn lone_surrogate(&self) -> bool {
        self.escapes.lone_surrogate()
    }

    fn in_number(&self) -> bool {
        matches!(self.state, State::Zero | State::Integer)
    }

    fn in_object(&self) -> bool {
        self.stack & 1 == 1
    }

    /// Returns the state after this byte.
    #[inline]
    fn step(&mut self, state: State, byte: u8) -> State {
        match state {
            State::String => self.string(byte),
            State::After => self.after(byte),
            State::Value => self.value(state, byte),
            State::FirstItem if byte == b']' => self.close(),
            State::FirstItem => self.value(state, byte),
            State::FirstKey if byte == b'}' => self.close(),
            State::FirstKey | State::Key if byte == b'"' => {
                self.key = true;
                State::String
            }
            State::Colon if byte == b':' => State::Value,
            State::FirstKey | State::Key | State::Colon => white(state, byte),
            State::Escape => self.escape(byte),
            State::Hex => self.hex(byte),
            State::Literal => self.literal(byte),
            State::Broken(_) => state,
            _ => self.number(state, byte),
        }
    }

    #[inline]
    fn value(&mut self, state: State, byte: u8) -> State {
        let (next, root) = match byte {
            b'"' => {
                self.key = false;
                (State::String, Root::String)
            }
            b'{' => (self.open(State::FirstKey), Root::Object),
            b'[' => (self.open(State::FirstItem), Root::Array),
            b'-' | b'0'..=b'9' => {
                self.number = Magnitude::ZERO;
                (self.first_digit(byte), Root::Number)
            }
            b't' => (self.first_letter(b"rue\0"), Root::Literal),
            b'f' => (self.first_letter(b"alse"), Root::Literal),
            b'n' => (self.first_letter(b"ull\0"), Root::Literal),
            _ => return white(state, byte),
        };
        self.root.get_or_insert(root);
        next
    }

    fn open(&mut self, state: State) -> State {
        if self.depth >= self.max_depth {
            return State::Broken(Problem::TooDeep);
        }
        self.depth += 1;
        self.stack = (self.stack << 1) | u128::from(state == State::FirstKey);
        state
    }

    fn close(&mut self) -> State {
        self.depth -= 1;
        self.stack >>= 1;
        State::After
    }

    #[inline]
    fn after(&mut self, byte: u8) -> State {
        match byte {
            _ if self.depth == 0 => white(State::After, byte),
            b',' if self.in_object() => State::Key,
            b',' => State::Value,
            b'}' if self.in_object() => self.close(),
            b']' if !self.in_object() => self.close(),
            _ => white(State::After, byte),
        }
    }

    #[inline]
    fn string(&mut self, byte: u8) -> State {
        match byte {
            b'"' => {
                self.escapes.other_text();
                if self.key { State::Colon } else { State::After }
            }
            b'\\' => State::Escape,
            // The run of plain characters ended at this byte, so it is a control character.
            _ => {
                self.escapes.other_text();
                SYNTAX
            }
        }
    }

    fn escape(&mut self, byte: u8) -> State {
        match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                self.escapes.other_text();
                State::String
            }
            b'u' => State::Hex,
            _ => SYNTAX,
        }
    }

    fn hex(&mut self, byte: u8) -> State {
        match self.escapes.digit(byte) {
            Some(true) => State::String,
            Some(false) => State::Hex,
            None => SYNTAX,
        }
    }

    fn first_letter(&mut self, rest: &[u8; 4]) -> State {
        self.literal = u32::from_le_bytes(*rest);
        State::Literal
    }

    fn literal(&mut self, byte: u8) -> State {
        if self.literal as u8 != byte {
            return SYNTAX;
        }
        self.literal >>= 8;
        if self.literal == 0 {
            State::After
        } else {
            State::Literal
        }
    }

    fn first_digit(&mut self, byte: u8) -> State {
        if byte == b'-' {
            self.number.minus();
            return State::Minus;
        }
        self.number.integer_digit(byte);
        if byte == b'0' {
            State::Zero
        } else {
            State::Integer
        }
    }

    fn number(&mut self, state: State, byte: u8) -> State {
        use State::{
            Exponent, ExponentDigits, ExponentSign, Fraction, Integer, Minus, Point, Zero,
        };
        match (state, byte) {
            (Minus, b'0'..=b'9') => self.first_digit(byte),
            (Integer, b'0'..=b'9') => {
                self.number.integer_digit(byte);
                Integer
            }
            (Zero | Integer, b'.') => {
                self.number.float();
                Point
            }
            (Point | Fraction, b'0'..=b'9') => {
                self.number.fraction_digit(byte);
                Fraction
            }
            (Zero | Integer | Fraction, b'e' | b'E') => {
                self.number.float();
                Exponent
            }
            (Exponent, b'+') => ExponentSign,
            (Exponent, b'-') => {
                self.number.exponent_minus();
                ExponentSign
            }
            (Exponent | ExponentSign | ExponentDigits, b'0'..=b'9') => {
                self.number.exponent_digit(byte);
                ExponentDigits
            }
            (Zero | Integer | Fraction | ExponentDigits, _) => self.end_number(byte),
            _ => SYNTAX,
        }
    }

    /// Ends the number before this byte, and handles the byte as the first byte after a value.
    fn end_number(&mut self, byte: u8) -> State {
        if self.number.is_infinite() {
            return State::Broken(Problem::NumberTooBig);
        }
        self.wide_integer |= self.number.is_wide();
        self.after(byte)
    }
}

impl Default for Automaton {
    fn default() -> Self {
        Automaton::new()
    }
}

/// Returns the same state for whitespace between tokens, and a syntax error for any other byte.
#[inline]
fn white(state: State, byte: u8) -> State {
    match byte {
        b' ' | b'\n' | b'\r' | b'\t' => state,
        _ => SYNTAX,
    }
}

/// Validates a complete text. The result `Prefix` means that the text ends too early.
pub fn check(bytes: &[u8], max_depth: u32) -> Status {
    let mut automaton = Automaton::with_depth(max_depth);
    automaton.feed(bytes);
    automaton.finish()
}
