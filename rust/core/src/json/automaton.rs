//! The verdict on JSON text that arrives in pieces: a prefix of JSON, one whole value, or broken.
//!
//! RFC 8259 to the letter, with two caps of our own (nesting, numbers that round to infinity). Constant time a byte,
//! no recursion, one small state that is copied to try a piece. The input is the bytes of UTF-8 text. This is the
//! verdict on validity: `scan` takes its error positions from here. Layer 1.

use super::MAX_DEPTH;
use super::number::Magnitude;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A value must come.
    Value,
    /// After `[`: a value or `]`.
    FirstItem,
    /// After `{`: a key or `}`.
    FirstKey,
    /// After a comma in an object.
    Key,
    Colon,
    /// After a value: a comma or the end of the container; at the root, white space.
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

/// The state of the verdict. A copy of it is a checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct Automaton {
    /// One bit a level, the innermost lowest: set is an object.
    stack: u128,
    number: Magnitude,
    pos: u64,
    /// What is left of `true`, `false` or `null`.
    literal: &'static [u8],
    hex: u16,
    hex_digits: u8,
    /// The string that is being read is a key.
    key: bool,
    /// The escape just before was a high surrogate.
    high: bool,
    depth: u32,
    max_depth: u32,
    state: State,
    root: Option<Root>,
    wide_integer: bool,
    lone_surrogate: bool,
}

impl Automaton {
    pub fn new() -> Automaton {
        Automaton::with_depth(MAX_DEPTH)
    }

    /// With a lower cap on nesting than `MAX_DEPTH`.
    pub fn with_depth(max_depth: u32) -> Automaton {
        Automaton {
            stack: 0,
            number: Magnitude::ZERO,
            pos: 0,
            literal: b"",
            hex: 0,
            hex_digits: 0,
            key: false,
            high: false,
            depth: 0,
            max_depth: max_depth.min(MAX_DEPTH),
            state: State::Value,
            root: None,
            wide_integer: false,
            lone_surrogate: false,
        }
    }

    /// Takes the next piece. Once broken, nothing changes any more.
    pub fn feed(&mut self, bytes: &[u8]) -> Status {
        let mut rest = bytes;
        loop {
            if self.state == State::String {
                let run = plain_run(rest);
                rest = rest.get(run..).unwrap_or_default();
                if run > 0 {
                    self.break_pair();
                }
            }
            let Some((&byte, tail)) = rest.split_first() else {
                break;
            };
            if let Err(problem) = self.step(byte) {
                if !matches!(self.state, State::Broken(_)) {
                    self.pos += (bytes.len() - rest.len()) as u64;
                    self.state = State::Broken(problem);
                }
                return self.status();
            }
            rest = tail;
        }
        self.pos += bytes.len() as u64;
        self.status()
    }

    /// The verdict so far.
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

    /// The verdict if the text ended here, which is what decides a number at the root.
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

    /// The kind of the value, once its first byte is there.
    pub fn root(&self) -> Option<Root> {
        self.root
    }

    /// How many objects and arrays are open.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Inside of a string, a key included.
    pub fn in_string(&self) -> bool {
        matches!(self.state, State::String | State::Escape | State::Hex)
    }

    /// The text is one whole object.
    #[inline]
    pub fn is_complete_object(&self) -> bool {
        self.root == Some(Root::Object) && self.status() == Status::Complete
    }

    pub fn is_broken(&self) -> bool {
        matches!(self.state, State::Broken(_))
    }

    /// Nothing but white space so far.
    pub fn is_blank(&self) -> bool {
        self.root.is_none() && self.state == State::Value
    }

    /// Bytes taken; where broken, the position of the break.
    pub fn pos(&self) -> u64 {
        self.pos
    }

    /// An integer outside of -2^63 to 2^64-1 was seen, one that the text may still go on with included.
    pub fn wide_integer(&self) -> bool {
        self.wide_integer || (self.in_number() && self.number.is_wide())
    }

    /// An escaped surrogate without its other half was seen.
    pub fn lone_surrogate(&self) -> bool {
        self.lone_surrogate
    }

    fn in_number(&self) -> bool {
        matches!(self.state, State::Zero | State::Integer)
    }

    fn in_object(&self) -> bool {
        self.stack & 1 == 1
    }

    /// A high surrogate was not followed by its low one.
    #[inline]
    fn break_pair(&mut self) {
        self.lone_surrogate |= self.high;
        self.high = false;
    }

    #[inline]
    fn step(&mut self, byte: u8) -> Result<(), Problem> {
        match self.state {
            State::String => self.string(byte),
            State::After => self.after(byte),
            State::Value => self.value(byte),
            State::FirstItem if byte == b']' => self.close(),
            State::FirstItem => self.value(byte),
            State::FirstKey if byte == b'}' => self.close(),
            State::FirstKey | State::Key => {
                if byte == b'"' {
                    self.key = true;
                    self.state = State::String;
                    return Ok(());
                }
                white(byte)
            }
            State::Colon => {
                if byte == b':' {
                    self.state = State::Value;
                    return Ok(());
                }
                white(byte)
            }
            State::Escape => self.escape(byte),
            State::Hex => self.hex(byte),
            State::Literal => self.literal(byte),
            State::Broken(problem) => Err(problem),
            _ => self.number(byte),
        }
    }

    fn value(&mut self, byte: u8) -> Result<(), Problem> {
        let (state, root) = match byte {
            b'"' => {
                self.key = false;
                (State::String, Root::String)
            }
            b'{' => return self.open(Root::Object, State::FirstKey),
            b'[' => return self.open(Root::Array, State::FirstItem),
            b'-' | b'0'..=b'9' => {
                self.number = Magnitude::ZERO;
                (self.first_digit(byte), Root::Number)
            }
            b't' => {
                self.literal = b"rue";
                (State::Literal, Root::Literal)
            }
            b'f' => {
                self.literal = b"alse";
                (State::Literal, Root::Literal)
            }
            b'n' => {
                self.literal = b"ull";
                (State::Literal, Root::Literal)
            }
            _ => return white(byte),
        };
        self.state = state;
        self.root.get_or_insert(root);
        Ok(())
    }

    fn open(&mut self, root: Root, state: State) -> Result<(), Problem> {
        if self.depth >= self.max_depth {
            return Err(Problem::TooDeep);
        }
        self.depth += 1;
        self.stack = (self.stack << 1) | u128::from(root == Root::Object);
        self.state = state;
        self.root.get_or_insert(root);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        self.depth -= 1;
        self.stack >>= 1;
        self.state = State::After;
        Ok(())
    }

    fn after(&mut self, byte: u8) -> Result<(), Problem> {
        if self.depth == 0 {
            return white(byte);
        }
        match byte {
            b',' if self.in_object() => self.state = State::Key,
            b',' => self.state = State::Value,
            b'}' if self.in_object() => return self.close(),
            b']' if !self.in_object() => return self.close(),
            _ => return white(byte),
        }
        Ok(())
    }

    fn string(&mut self, byte: u8) -> Result<(), Problem> {
        match byte {
            b'"' => {
                self.break_pair();
                self.state = if self.key { State::Colon } else { State::After };
            }
            b'\\' => self.state = State::Escape,
            // The run before ended here, so this is a control character.
            _ => return Err(Problem::Syntax),
        }
        Ok(())
    }

    fn escape(&mut self, byte: u8) -> Result<(), Problem> {
        match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                self.break_pair();
                self.state = State::String;
            }
            b'u' => {
                self.hex = 0;
                self.hex_digits = 0;
                self.state = State::Hex;
            }
            _ => return Err(Problem::Syntax),
        }
        Ok(())
    }

    fn hex(&mut self, byte: u8) -> Result<(), Problem> {
        let digit = char::from(byte).to_digit(16).ok_or(Problem::Syntax)?;
        self.hex = (self.hex << 4) | (digit as u16);
        self.hex_digits += 1;
        if self.hex_digits == 4 {
            self.state = State::String;
            match self.hex {
                0xD800..=0xDBFF => {
                    self.break_pair();
                    self.high = true;
                }
                0xDC00..=0xDFFF => {
                    self.lone_surrogate |= !self.high;
                    self.high = false;
                }
                _ => self.break_pair(),
            }
        }
        Ok(())
    }

    fn literal(&mut self, byte: u8) -> Result<(), Problem> {
        match self.literal.split_first() {
            Some((&expected, rest)) if expected == byte => {
                self.literal = rest;
                if rest.is_empty() {
                    self.state = State::After;
                }
                Ok(())
            }
            _ => Err(Problem::Syntax),
        }
    }

    fn first_digit(&mut self, byte: u8) -> State {
        match byte {
            b'-' => {
                self.number.minus();
                State::Minus
            }
            b'0' => {
                self.number.integer_digit(byte);
                State::Zero
            }
            _ => {
                self.number.integer_digit(byte);
                State::Integer
            }
        }
    }

    fn number(&mut self, byte: u8) -> Result<(), Problem> {
        self.state = match (self.state, byte) {
            (State::Minus, b'0'..=b'9') => self.first_digit(byte),
            (State::Integer, b'0'..=b'9') => {
                self.number.integer_digit(byte);
                State::Integer
            }
            (State::Zero | State::Integer, b'.') => {
                self.number.float();
                State::Point
            }
            (State::Point | State::Fraction, b'0'..=b'9') => {
                self.number.fraction_digit(byte);
                State::Fraction
            }
            (State::Zero | State::Integer | State::Fraction, b'e' | b'E') => {
                self.number.float();
                State::Exponent
            }
            (State::Exponent, b'+') => State::ExponentSign,
            (State::Exponent, b'-') => {
                self.number.exponent_minus();
                State::ExponentSign
            }
            (State::Exponent | State::ExponentSign | State::ExponentDigits, b'0'..=b'9') => {
                self.number.exponent_digit(byte);
                State::ExponentDigits
            }
            (State::Zero | State::Integer | State::Fraction | State::ExponentDigits, _) => {
                return self.end_number(byte);
            }
            _ => return Err(Problem::Syntax),
        };
        Ok(())
    }

    /// The number ended before this byte, which is judged like any byte after a value.
    fn end_number(&mut self, byte: u8) -> Result<(), Problem> {
        if self.number.is_infinite() {
            return Err(Problem::NumberTooBig);
        }
        self.wide_integer |= self.number.is_wide();
        self.state = State::After;
        self.after(byte)
    }
}

impl Default for Automaton {
    fn default() -> Self {
        Automaton::new()
    }
}

/// White space between tokens is skipped, any other byte cannot be.
#[inline]
fn white(byte: u8) -> Result<(), Problem> {
    match byte {
        b' ' | b'\n' | b'\r' | b'\t' => Ok(()),
        _ => Err(Problem::Syntax),
    }
}

/// How many bytes at the start are plain string text: no quote, backslash or control character.
#[inline]
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const TOPS: u64 = ONES << 7;
    let mut rest = bytes;
    // Eight bytes at once: a borrow out of a matching byte can only raise false alarms above it, so the lowest one
    // is right.
    while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * b'"' as u64);
        let slash = word ^ (ONES * b'\\' as u64);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let found =
            (quote.wrapping_sub(ONES) & !quote) | (slash.wrapping_sub(ONES) & !slash) | control;
        let found = found & TOPS;
        if found != 0 {
            return bytes.len() - rest.len() + (found.trailing_zeros() / 8) as usize;
        }
        rest = tail;
    }
    let plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    bytes.len() - rest.len() + rest.iter().take_while(|byte| plain(byte)).count()
}

/// The verdict on a whole text; `Prefix` is one that ends too early.
pub fn check(bytes: &[u8], max_depth: u32) -> Status {
    let mut automaton = Automaton::with_depth(max_depth);
    automaton.feed(bytes);
    automaton.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &[u8]) -> Status {
        let whole = check(text, MAX_DEPTH);
        let mut bytewise = Automaton::new();
        for byte in text {
            bytewise.feed(&[*byte]);
        }
        assert_eq!(
            bytewise.finish(),
            whole,
            "{:?}",
            String::from_utf8_lossy(text)
        );
        whole
    }

    fn broken(pos: u64) -> Status {
        Status::Broken {
            pos,
            problem: Problem::Syntax,
        }
    }

    #[test]
    fn whole_values() {
        for text in [
            "{}",
            "[]",
            "\"\"",
            "0",
            "-0",
            "1.5e+3",
            "true",
            "false",
            "null",
            " { \"a\" : [ 1 , { } , [ ] ] } \r\n\t",
            "[1,2,3]",
            "{\"a\":{\"b\":\"\\u00e9\\n\"},\"a\":null}",
            "1E5",
            "10",
            "\"\\ud800\"",
            "\"\u{2028}\u{7f}é😀\"",
        ] {
            assert_eq!(verdict(text.as_bytes()), Status::Complete, "{text}");
        }
    }

    #[test]
    fn prefixes() {
        for text in [
            "",
            " ",
            "{",
            "{\"",
            "{\"a",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,",
            "[",
            "[1",
            "[1,",
            "\"a",
            "\"\\",
            "\"\\u",
            "\"\\u12",
            "t",
            "tru",
            "-",
            "1.",
            "1e",
            "1e+",
            "[1e999",
            "nul",
        ] {
            assert_eq!(verdict(text.as_bytes()), Status::Prefix, "{text}");
        }
    }

    #[test]
    fn a_break_is_where_the_byte_is() {
        for (text, pos) in [
            ("x", 0),
            ("{,", 1),
            ("{\"a\" 1}", 5),
            ("[1,]", 3),
            ("{\"a\":1,}", 7),
            ("[1 2]", 3),
            ("01", 1),
            ("-a", 1),
            ("1.e", 2),
            ("1e+-", 3),
            ("+1", 0),
            (".5", 0),
            ("\"\\x\"", 2),
            ("\"\\u12G4\"", 5),
            ("\"\t\"", 1),
            ("nulx", 3),
            ("{} {", 3),
            ("{}x", 2),
            ("[}", 1),
            ("{]", 1),
            ("[1}", 2),
            ("{\"a\":1]", 6),
            ("{'a':1}", 1),
            ("NaN", 0),
            ("Infinity", 0),
            ("[NaN]", 1),
            ("\u{feff}{}", 0),
            ("\u{a0}1", 0),
            ("1\u{b}", 1),
            ("//", 0),
            ("truefalse", 4),
            ("\"a\"b", 3),
            ("{\"a\":,}", 5),
            ("[,1]", 1),
            ("--1", 1),
            ("1 2", 2),
            ("0x1", 1),
            ("\"\u{1f}", 1),
            ("{1:2}", 1),
        ] {
            assert_eq!(verdict(text.as_bytes()), broken(pos), "{text}");
        }
    }

    #[test]
    fn depth_is_capped() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let at_cap = format!("{}1{}", open.repeat(128), close.repeat(128));
            assert_eq!(verdict(at_cap.as_bytes()), Status::Complete);
            let over = open.repeat(129);
            let pos = (open.len() * 128) as u64;
            assert_eq!(
                verdict(over.as_bytes()),
                Status::Broken {
                    pos,
                    problem: Problem::TooDeep
                }
            );
        }
        assert_eq!(check(b"[[[]]]", 3), Status::Complete);
        assert_eq!(
            check(b"[[[]]]", 2),
            Status::Broken {
                pos: 2,
                problem: Problem::TooDeep
            }
        );
        assert_eq!(
            check(&b"[".repeat(100_000), 9999),
            Status::Broken {
                pos: 128,
                problem: Problem::TooDeep
            }
        );
    }

    #[test]
    fn numbers_that_are_infinite_break_where_they_end() {
        let too_big = |pos| Status::Broken {
            pos,
            problem: Problem::NumberTooBig,
        };
        assert_eq!(verdict(b"1e999"), too_big(5));
        assert_eq!(verdict(b"[1e999]"), too_big(6));
        assert_eq!(verdict(b"{\"a\":-1e999 }"), too_big(11));
        assert_eq!(verdict(b"[1e-999]"), Status::Complete);
        assert_eq!(verdict("9".repeat(5000).as_bytes()), Status::Complete);
    }

    #[test]
    fn what_it_tells_besides() {
        let mut automaton = Automaton::new();
        assert!(automaton.is_blank());
        automaton.feed(b" ");
        assert!(automaton.is_blank());
        assert_eq!(automaton.root(), None);
        automaton.feed(b"{\"a");
        assert!(automaton.in_string() && !automaton.is_blank());
        assert_eq!(
            (automaton.root(), automaton.depth(), automaton.pos()),
            (Some(Root::Object), 1, 4)
        );
        let mut trial = automaton;
        assert!(matches!(trial.feed(b"\n"), Status::Broken { pos: 4, .. }));
        assert!(matches!(
            trial.feed(b"\":1}"),
            Status::Broken { pos: 4, .. }
        ));
        assert_eq!(automaton.feed(b"\":1}"), Status::Complete);
        assert!(automaton.is_complete_object());
        for (text, wide) in [
            ("18446744073709551615", false),
            ("18446744073709551616", true),
            ("[1e30]", false),
        ] {
            let mut automaton = Automaton::new();
            automaton.feed(text.as_bytes());
            assert_eq!(automaton.wide_integer(), wide, "{text}");
        }
        let lone = [
            r#""\ud800""#,
            r#""\udc00""#,
            r#""\ud800x\udc00""#,
            r#""\ud800\n""#,
            r#""\ud800\ud800\udc00""#,
        ];
        for text in lone {
            let mut automaton = Automaton::new();
            automaton.feed(text.as_bytes());
            assert!(automaton.lone_surrogate(), "{text}");
        }
        let mut automaton = Automaton::new();
        automaton.feed(br#"["\ud83d\ude00","\u00e9"]"#);
        assert!(!automaton.lone_surrogate());
    }

    #[test]
    fn the_run_stops_where_a_byte_loop_does() {
        let plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
        for stop in 0..=255u8 {
            for at in 0..20 {
                let mut bytes = vec![b'a'; 40];
                bytes[at] = stop;
                bytes[at + 3] = 0x80;
                let expected = bytes.iter().take_while(|byte| plain(byte)).count();
                assert_eq!(plain_run(&bytes), expected, "{stop} at {at}");
            }
        }
    }
}
