//! What has been read of one block by one family, so that text which arrives in pieces is read once.
//!
//! A grammar takes small steps. A step that the text cuts changes nothing but how far a value was scanned, and is tried
//! again when there is more.

use crate::json::MAX_DEPTH;
use crate::json::Status;
use crate::json::automaton::check;
use std::collections::HashSet;

/// Why a step was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The text ends here.
    Cut,
    /// The grammar does not allow what comes.
    Broken,
}

pub(crate) type Parse<T> = Result<T, Stop>;

/// One call of a block, before anybody checks whether it may become one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// As written, without the family's own prefix.
    pub name: String,
    pub arguments: Arguments,
}

/// The arguments of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// A JSON object, in the spelling of the text where that is JSON.
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
    /// Its type is that which the tool's schema says.
    Raw(String),
    /// The grammar says that it is a string.
    Text(String),
    /// JSON text.
    Json(String),
}

/// Where the next step is taken. Each grammar uses some of these places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    #[default]
    Start,
    Name,
    BeforeValue,
    Value,
    Object,
    AfterValue,
    Members,
    Key,
    Attribute,
    AfterCall,
}

/// How far a value was scanned whose end is not there yet.
#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    /// Bytes from the beginning of the value.
    length: usize,
    depth: u32,
    quote: Option<u8>,
    escaped: bool,
}

/// The state of one family's grammar in one block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// Everything before it was read.
    pub at: usize,
    pub place: Place,
    scan: Scan,
    pub calls: Vec<Found>,
    /// Of the call under way.
    pub name: String,
    pub key: String,
    pub is_string: bool,
    pub members: Vec<(String, Value)>,
    /// The keys of these.
    pub keys: HashSet<String>,
    /// A call has just ended.
    pub is_between: bool,
    /// One more may follow it.
    pub may_repeat: bool,
}

pub(crate) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

impl Reading {
    pub fn new(at: usize) -> Reading {
        Reading {
            at,
            ..Reading::default()
        }
    }

    pub fn rest<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.at..).unwrap_or_default()
    }

    /// The next character.
    pub fn peek(&self, text: &str) -> Parse<char> {
        self.rest(text).chars().next().ok_or(Stop::Cut)
    }

    pub fn skip_blank(&mut self, text: &str) {
        let rest = self.rest(text);
        self.at += rest.len() - rest.trim_start_matches(is_blank).len();
    }

    /// The calls that are whole, and the one under way as one more.
    pub fn end_call(&mut self) {
        let arguments = Arguments::Parameters(std::mem::take(&mut self.members));
        self.end_call_with(arguments);
    }

    pub fn end_call_with(&mut self, arguments: Arguments) {
        let name = std::mem::take(&mut self.name);
        self.calls.push(Found { name, arguments });
    }

    /// Whether the literal comes next, and moves behind it.
    pub fn take(&mut self, text: &str, literal: &str) -> Parse<bool> {
        let rest = self.rest(text);
        if rest.starts_with(literal) {
            self.at += literal.len();
            return Ok(true);
        }
        if literal.starts_with(rest) {
            return Err(Stop::Cut);
        }
        Ok(false)
    }

    /// Moves behind the literal, which must come next.
    pub fn expect(&mut self, text: &str, literal: &str) -> Parse<()> {
        if self.take(text, literal)? {
            Ok(())
        } else {
            Err(Stop::Broken)
        }
    }

    /// Moves behind the literals, with white space before and between them. All of them or none.
    pub fn expect_all(&mut self, text: &str, literals: &[String]) -> Parse<()> {
        let mut ahead = Reading::new(self.at);
        for literal in literals {
            ahead.skip_blank(text);
            ahead.expect(text, literal)?;
        }
        self.at = ahead.at;
        Ok(())
    }

    /// The longest run of such characters, of which at least one must come. A run at the end of the text may go on.
    pub fn run<'t>(&mut self, text: &'t str, such: impl Fn(char) -> bool) -> Parse<&'t str> {
        let rest = self.rest(text);
        let tail = rest.get(self.scan.length..).unwrap_or_default();
        let Some(end) = tail.find(|character| !such(character)) else {
            self.scan.length = rest.len();
            return Err(Stop::Cut);
        };
        let end = self.scan.length + end;
        self.scan = Scan::default();
        if end == 0 {
            return Err(Stop::Broken);
        }
        self.at += end;
        rest.get(..end).ok_or(Stop::Broken)
    }

    /// The text up to the literal, and moves behind that. `never`: what must not stand in it.
    pub fn until<'t>(
        &mut self,
        text: &'t str,
        literal: &str,
        never: Option<&str>,
    ) -> Parse<&'t str> {
        let rest = self.rest(text);
        let from = self.scan.length;
        let tail = rest.as_bytes().get(from..).unwrap_or_default();
        let end = memchr::memmem::find(tail, literal.as_bytes());
        let value = tail.get(..end.unwrap_or(tail.len())).unwrap_or_default();
        if never.is_some_and(|never| memchr::memmem::find(value, never.as_bytes()).is_some()) {
            return Err(Stop::Broken);
        }
        let Some(end) = end else {
            let most = literal.len().max(never.map_or(0, str::len)) - 1;
            self.scan.length = from.max(rest.len().saturating_sub(most));
            return Err(Stop::Cut);
        };
        let end = from + end;
        self.scan = Scan::default();
        self.at += end + literal.len();
        rest.get(..end).ok_or(Stop::Broken)
    }

    /// The value that begins with a bracket, up to where brackets of that kind balance outside of strings. `quotes`: what
    /// strings begin and end with.
    pub fn balanced<'t>(&mut self, text: &'t str, quotes: &[u8]) -> Parse<&'t str> {
        let rest = self.rest(text);
        let mut scan = self.scan;
        let from = scan.length;
        let (open, close) = match rest.as_bytes().first() {
            Some(b'{') => (b'{', b'}'),
            Some(b'[') => (b'[', b']'),
            _ => (b'(', b')'),
        };
        for byte in rest.as_bytes().get(from..).unwrap_or_default() {
            scan.length += 1;
            match scan.quote {
                Some(_) if scan.escaped => scan.escaped = false,
                Some(_) if *byte == b'\\' => scan.escaped = true,
                Some(quote) if quote == *byte => scan.quote = None,
                Some(_) => {}
                None if quotes.contains(byte) => scan.quote = Some(*byte),
                None if *byte == open => scan.depth += 1,
                None if *byte == close => {
                    scan.depth = scan.depth.saturating_sub(1);
                    if scan.depth == 0 {
                        self.scan = Scan::default();
                        self.at += scan.length;
                        return rest.get(..scan.length).ok_or(Stop::Broken);
                    }
                }
                None => {}
            }
        }
        self.scan = scan;
        Err(Stop::Cut)
    }

    /// A JSON object or array: what is between its brackets is checked.
    pub fn json<'t>(&mut self, text: &'t str, openers: &[char]) -> Parse<&'t str> {
        if !openers.contains(&self.peek(text)?) {
            return Err(Stop::Broken);
        }
        let raw = self.balanced(text, b"\"")?;
        match check(raw.as_bytes(), MAX_DEPTH) {
            Status::Complete => Ok(raw),
            Status::Prefix | Status::Broken { .. } => Err(Stop::Broken),
        }
    }
}

/// What a name may hold: what no markup and no call syntax uses.
pub(crate) fn in_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | ':' | '/')
}
