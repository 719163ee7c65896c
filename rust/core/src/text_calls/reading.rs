//! Stores the progress of one family's grammar in one block, so that text that arrives in pieces is read only once.
//!
//! A grammar proceeds in small steps. A step that needs more text only records how far a value was scanned, and is
//! repeated when more text arrives.

use crate::json::Kind;
use crate::json::MAX_DEPTH;
use crate::json::Scanner;
use crate::json::Status;
use crate::json::automaton::check;
use std::collections::HashSet;

/// The reason why a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParseFailure {
    /// More text is needed.
    Cut,
    /// The text does not match the grammar.
    Broken,
}

pub(crate) type Parse<T> = Result<T, ParseFailure>;

/// One call in a block, before its name and arguments are checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParsedCall {
    /// Name as written, without the family's prefix.
    pub name: String,
    pub arguments: Arguments,
}

/// The arguments of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// A JSON object, as written.
    Object(String),
    /// Parameters in the order of the text.
    Parameters(Vec<(String, Value)>),
}

impl Default for Arguments {
    fn default() -> Arguments {
        Arguments::Parameters(Vec::new())
    }
}

/// The value of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Text whose type depends on the tool's schema.
    Raw(String),
    /// A value that the grammar defines as a string.
    Text(String),
    /// JSON text.
    Json(String),
}

/// The next step of a grammar. Each grammar uses some of these steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum GrammarState {
    #[default]
    Start,
    Name,
    BeforeValue,
    Value,
    Object,
    AfterValue,
    Members,
    Opener,
    Key,
    Attribute,
    Counter,
    AfterCall,
}

/// Scan position in an unfinished value.
#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    /// Number of bytes from the start of the value.
    length: usize,
    depth: u32,
    quote: Option<u8>,
    escaped: bool,
    opening: Opening,
}

/// Progress of checking the beginning of a bracketed value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Opening {
    #[default]
    Bracket,
    Inside,
    Name,
    AfterName,
    Checked,
}

/// The state of one family's grammar in one block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// Offset up to which the text was read.
    pub at: usize,
    pub state: GrammarState,
    scan: Scan,
    /// Number of literals that `expect_all` has read so far.
    step: usize,
    /// True if more than whitespace and a name was read. Any word in a sentence could be a name.
    pub has_matched: bool,
    pub calls: Vec<ParsedCall>,
    /// Name of the current call.
    pub name: String,
    pub key: String,
    pub is_string: bool,
    pub members: Vec<(String, Value)>,
    /// Keys of `members`.
    pub keys: HashSet<String>,
    /// The current value as JSON. `nested` contains the lists and objects of this value that are still open.
    pub json: String,
    pub nested: Vec<Nested>,
    /// True if a call has just ended.
    pub is_between: bool,
    /// True if another call may follow.
    pub may_repeat: bool,
}

/// An unfinished list or object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nested {
    /// Keys of an object so far. `None` for a list.
    pub keys: Option<HashSet<String>>,
    pub is_empty: bool,
}

pub(crate) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

/// Returns true for whitespace within a line.
pub(crate) fn is_indent(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

impl Reading {
    pub fn new(at: usize) -> Reading {
        Reading {
            at,
            ..Reading::default()
        }
    }

    pub fn remaining<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.at..).unwrap_or_default()
    }

    /// Returns the next character, without consuming it.
    pub fn peek(&self, text: &str) -> Parse<char> {
        self.remaining(text).chars().next().ok_or(ParseFailure::Cut)
    }

    pub fn skip_blank(&mut self, text: &str) {
        let remaining = self.remaining(text);
        self.at += remaining.len() - remaining.trim_start_matches(is_blank).len();
    }

    /// Skips whitespace, and returns the next character without consuming it.
    pub fn next(&mut self, text: &str) -> Parse<char> {
        self.skip_blank(text);
        self.peek(text)
    }

    /// Ends the current call, whose arguments are the parameters read so far.
    pub fn end_call(&mut self) {
        let arguments = Arguments::Parameters(std::mem::take(&mut self.members));
        self.end_call_with(arguments);
    }

    pub fn end_call_with(&mut self, arguments: Arguments) {
        let name = std::mem::take(&mut self.name);
        self.calls.push(ParsedCall { name, arguments });
    }

    /// Reads the literal if it comes next. Returns true if it does.
    pub fn take(&mut self, text: &str, literal: &str) -> Parse<bool> {
        let remaining = self.remaining(text);
        if remaining.starts_with(literal) {
            self.at += literal.len();
            self.has_matched |= !literal.is_empty();
            return Ok(true);
        }
        if literal.starts_with(remaining) {
            return Err(ParseFailure::Cut);
        }
        Ok(false)
    }

    /// Reads the literal, which must come next.
    pub fn expect(&mut self, text: &str, literal: &str) -> Parse<()> {
        if self.take(text, literal)? {
            Ok(())
        } else {
            Err(ParseFailure::Broken)
        }
    }

    /// Reads the literal with optional whitespace before it.
    pub fn expect_next(&mut self, text: &str, literal: &str) -> Parse<()> {
        self.next(text)?;
        self.expect(text, literal)
    }

    /// Reads the literals, each with optional whitespace before it. If the text ends early, the next attempt skips the
    /// literals that have already been read.
    pub fn expect_all(&mut self, text: &str, literals: &[String]) -> Parse<()> {
        while let Some(literal) = literals.get(self.step) {
            self.expect_next(text, literal)?;
            self.step += 1;
        }
        self.step = 0;
        Ok(())
    }

    /// Reads a run of 1 to `MAX_NAME` characters for which `such` returns true. A run at the end of the text may
    /// continue.
    pub fn run<'t>(&mut self, text: &'t str, such: impl Fn(char) -> bool) -> Parse<&'t str> {
        let remaining = self.remaining(text);
        let tail = remaining.get(self.scan.length..).unwrap_or_default();
        let found = tail.find(|character| !such(character));
        let end = self.scan.length + found.unwrap_or(tail.len());
        let run = remaining.get(..end).unwrap_or_default();
        if end > MAX_NAME && run.chars().count() > MAX_NAME {
            return Err(ParseFailure::Broken);
        }
        if found.is_none() {
            self.scan.length = end;
            return Err(ParseFailure::Cut);
        }
        self.scan = Scan::default();
        if end == 0 {
            return Err(ParseFailure::Broken);
        }
        self.at += end;
        Ok(run)
    }

    /// Reads a name: everything up to whitespace, a quotation mark, a bracket, or a separator.
    pub fn name<'t>(&mut self, text: &'t str) -> Parse<&'t str> {
        self.run(text, in_name)
    }

    /// Returns the text before the literal. Consumes the text and the literal.
    pub fn until<'t>(&mut self, text: &'t str, literal: &str) -> Parse<&'t str> {
        let remaining = self.remaining(text);
        let from = self.scan.length;
        let tail = remaining.as_bytes().get(from..).unwrap_or_default();
        let Some(end) = memchr::memmem::find(tail, literal.as_bytes()) else {
            self.scan.length = from.max((remaining.len() + 1).saturating_sub(literal.len()));
            return Err(ParseFailure::Cut);
        };
        let end = from + end;
        self.scan = Scan::default();
        self.at += end + literal.len();
        self.has_matched = true;
        remaining.get(..end).ok_or(ParseFailure::Broken)
    }

    /// Checks that `first` follows the opening bracket at the current position.
    ///
    /// If `first` is a parenthesis, a name may precede it. Any other bracketed text is not a call, so it is not read to
    /// its end.
    pub fn opens(&mut self, text: &str, first: u8) -> Parse<()> {
        let remaining = self.remaining(text).as_bytes();
        let scan = &mut self.scan;
        while scan.opening != Opening::Checked {
            let byte = *remaining.get(scan.length).ok_or(ParseFailure::Cut)?;
            let is_blank = is_blank(byte.into());
            scan.opening = match scan.opening {
                Opening::Bracket => {
                    scan.depth = 1;
                    Opening::Inside
                }
                _ if byte == first => {
                    // `balanced` reads the value.
                    scan.opening = Opening::Checked;
                    break;
                }
                Opening::Inside if is_blank => Opening::Inside,
                Opening::Inside | Opening::Name if first == b'(' && in_callee(byte) => {
                    Opening::Name
                }
                Opening::Name | Opening::AfterName if is_blank => Opening::AfterName,
                _ => return Err(ParseFailure::Broken),
            };
            scan.length += 1;
        }
        Ok(())
    }

    /// Reads a value that begins with a bracket, up to the position at which all brackets outside strings are closed.
    pub fn balanced<'t>(&mut self, text: &'t str, syntax: Syntax) -> Parse<&'t str> {
        let remaining = self.remaining(text);
        let mut scan = self.scan;
        let from = scan.length;
        for byte in remaining.as_bytes().get(from..).unwrap_or_default() {
            scan.length += 1;
            match (scan.quote, *byte) {
                (Some(_), _) if scan.escaped => scan.escaped = false,
                (Some(_), b'\\') => scan.escaped = true,
                (Some(quote), byte) if quote == byte => scan.quote = None,
                (Some(_), _) => {}
                (None, b'"') => scan.quote = Some(b'"'),
                (None, b'\'') if syntax == Syntax::Python => scan.quote = Some(b'\''),
                (None, b'{' | b'[') => scan.depth += 1,
                (None, b'(') if syntax == Syntax::Python => scan.depth += 1,
                (None, b'}' | b']') => scan.depth = scan.depth.saturating_sub(1),
                (None, b')') if syntax == Syntax::Python => {
                    scan.depth = scan.depth.saturating_sub(1);
                }
                (None, _) => {}
            }
            if scan.depth == 0 && scan.quote.is_none() {
                self.scan = Scan::default();
                self.at += scan.length;
                self.has_matched = true;
                return remaining.get(..scan.length).ok_or(ParseFailure::Broken);
            }
        }
        self.scan = scan;
        Err(ParseFailure::Cut)
    }

    /// Reads a JSON object or array and checks its syntax.
    pub fn json<'t>(&mut self, text: &'t str, opener: char) -> Parse<&'t str> {
        if self.next(text)? != opener {
            return Err(ParseFailure::Broken);
        }
        let raw = self.balanced(text, Syntax::Json)?;
        match check(raw.as_bytes(), MAX_DEPTH) {
            Status::Complete => Ok(raw),
            Status::Prefix | Status::Broken { .. } => Err(ParseFailure::Broken),
        }
    }

    /// Reads a JSON object without duplicate keys as the arguments of the current call.
    pub fn object(&mut self, text: &str) -> Parse<()> {
        let raw = self.json(text, '{')?;
        if !has_unique_keys(raw) {
            return Err(ParseFailure::Broken);
        }
        self.end_call_with(Arguments::Object(raw.to_owned()));
        Ok(())
    }
}

/// Syntax of a bracketed value. JSON has neither single quotes nor parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    Json,
    Python,
}

/// Maximum length of a name, in characters.
const MAX_NAME: usize = 256;

/// Returns true if a name may contain the character. Characters of markup and call syntax are excluded.
pub(crate) fn in_name(character: char) -> bool {
    !matches!(
        character,
        '\0'..=' '
            | '<'
            | '>'
            | '"'
            | '\''
            | '`'
            | '{'
            | '}'
            | '['
            | ']'
            | '('
            | ')'
            | ','
            | ';'
            | '='
            | '|'
    )
}

fn in_callee(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// Returns true if no object in the JSON text has duplicate keys.
pub(crate) fn has_unique_keys(json: &str) -> bool {
    unique(&mut Scanner::of_validated(json)) == Some(true)
}

/// Returns true if no object at the cursor has duplicate keys. Recursion is limited, because the depth was already
/// checked.
fn unique(scanner: &mut Scanner<'_>) -> Option<bool> {
    match scanner.kind().ok()? {
        Kind::Object => {
            let mut keys = HashSet::new();
            scanner.enter_object().ok()?;
            while let Some(key) = scanner.next_key().ok()? {
                if !keys.insert(key.name().into_owned()) || !unique(scanner)? {
                    return Some(false);
                }
            }
        }
        Kind::Array => {
            scanner.enter_array().ok()?;
            while scanner.next_item().ok()? {
                if !unique(scanner)? {
                    return Some(false);
                }
            }
        }
        _ => drop(scanner.skip().ok()?),
    }
    Some(true)
}
