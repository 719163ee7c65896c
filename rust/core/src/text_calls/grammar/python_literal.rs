//! Converts Python literals, and calls with keyword arguments, to JSON: `f(k='v', n=[1, True])`.
//!
//! `true`, `false`, and `null` are accepted in addition to Python's own names. Names, operators, positional arguments,
//! and all other expressions that would require evaluation are refused.

use crate::json::write_string;
use crate::text_calls::grammar::MAX_NESTING;
use crate::text_calls::grammar::is_number;
use crate::text_calls::reading::Arguments;
use crate::text_calls::reading::ParsedCall;
use crate::text_calls::reading::Value;
use crate::text_calls::reading::is_blank;
use std::collections::HashSet;

/// A position in a complete text.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str, at: usize) -> Cursor<'a> {
        Cursor { text, at }
    }

    fn remaining(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub fn peek(&self) -> Option<char> {
        self.remaining().chars().next()
    }

    fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    pub fn skip_blank(&mut self) {
        let remaining = self.remaining();
        self.at += remaining.len() - remaining.trim_start_matches(is_blank).len();
    }

    pub fn take(&mut self, character: char) -> bool {
        let comes = self.peek() == Some(character);
        self.at += if comes { character.len_utf8() } else { 0 };
        comes
    }

    fn expect(&mut self, literal: &str) -> Option<()> {
        self.remaining().strip_prefix(literal)?;
        self.at += literal.len();
        Some(())
    }

    fn run(&mut self, such: impl Fn(char) -> bool) -> &'a str {
        let remaining = self.remaining();
        let end = remaining
            .find(|character| !such(character))
            .unwrap_or(remaining.len());
        self.at += end;
        remaining.get(..end).unwrap_or_default()
    }
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Returns true if a tool name may contain the character. Tool names may contain dots and dashes.
fn is_dotted(character: char) -> bool {
    is_word(character) || matches!(character, '.' | '-')
}

/// Reads one call. Returns `None` if it is malformed or has an argument without a keyword.
pub(crate) fn call(cursor: &mut Cursor<'_>) -> Option<ParsedCall> {
    cursor.skip_blank();
    let name = cursor.run(is_dotted);
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return None;
    }
    cursor.skip_blank();
    cursor.expect("(")?;
    let mut members: Vec<(String, Value)> = Vec::new();
    let mut keys = HashSet::new();
    loop {
        cursor.skip_blank();
        if cursor.take(')') {
            return Some(ParsedCall {
                name: name.to_owned(),
                arguments: Arguments::Parameters(members),
            });
        }
        let key = cursor.run(is_word);
        if key.is_empty() || key.starts_with(|first: char| first.is_ascii_digit()) {
            return None;
        }
        cursor.skip_blank();
        cursor.expect("=")?;
        let mut value = String::new();
        literal(cursor, &mut value, 0)?;
        if !keys.insert(key) {
            return None;
        }
        members.push((key.to_owned(), Value::Json(value)));
        cursor.skip_blank();
        if !cursor.take(',') && cursor.peek() != Some(')') {
            return None;
        }
    }
}

/// Reads one literal and appends it as JSON. Returns `None` if it is malformed.
pub(crate) fn literal(cursor: &mut Cursor<'_>, out: &mut String, depth: usize) -> Option<()> {
    if depth > MAX_NESTING {
        return None;
    }
    cursor.skip_blank();
    match cursor.peek()? {
        '\'' | '"' => {
            write_string(out, &string(cursor)?);
            Some(())
        }
        '[' => list(cursor, out, ']', depth),
        '(' => list(cursor, out, ')', depth),
        '{' => dict(cursor, out, depth),
        '-' | '+' | '.' | '0'..='9' => number(cursor, out),
        _ => word(cursor, out),
    }
}

fn word(cursor: &mut Cursor<'_>, out: &mut String) -> Option<()> {
    out.push_str(match cursor.run(is_word) {
        "True" | "true" => "true",
        "False" | "false" => "false",
        "None" | "null" => "null",
        _ => return None,
    });
    Some(())
}

fn list(cursor: &mut Cursor<'_>, out: &mut String, closer: char, depth: usize) -> Option<()> {
    cursor.advance(1);
    out.push('[');
    let mut items = 0;
    let mut commas = 0;
    loop {
        cursor.skip_blank();
        if cursor.peek()? == closer {
            break;
        }
        if items > commas {
            return None;
        }
        if items > 0 {
            out.push(',');
        }
        literal(cursor, out, depth + 1)?;
        items += 1;
        cursor.skip_blank();
        if cursor.peek()? == ',' {
            cursor.advance(1);
            commas += 1;
        }
    }
    // `(1)` is a number in parentheses, not a tuple.
    if closer == ')' && items == 1 && commas == 0 {
        return None;
    }
    cursor.advance(1);
    out.push(']');
    Some(())
}

fn dict(cursor: &mut Cursor<'_>, out: &mut String, depth: usize) -> Option<()> {
    cursor.advance(1);
    out.push('{');
    let mut keys: HashSet<String> = HashSet::new();
    loop {
        cursor.skip_blank();
        if cursor.take('}') {
            out.push('}');
            return Some(());
        }
        let key = match cursor.peek()? {
            '\'' | '"' => string(cursor)?,
            _ => return None,
        };
        if !keys.is_empty() {
            out.push(',');
        }
        write_string(out, &key);
        out.push(':');
        if !keys.insert(key) {
            return None;
        }
        cursor.skip_blank();
        cursor.expect(":")?;
        literal(cursor, out, depth + 1)?;
        cursor.skip_blank();
        match cursor.peek()? {
            ',' => cursor.advance(1),
            '}' => {}
            _ => return None,
        }
    }
}

fn number(cursor: &mut Cursor<'_>, out: &mut String) -> Option<()> {
    let raw = cursor.run(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_'));
    out.push_str(&decimal(raw)?);
    Some(())
}

/// Returns a decimal Python number as JSON. `.5`, `5.` and `+1` are rewritten; leading zeros, underscores and other
/// bases are refused.
fn decimal(raw: &str) -> Option<String> {
    let (sign, digits) = match raw.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", raw.strip_prefix('+').unwrap_or(raw)),
    };
    let mut spelled = sign.to_owned();
    if digits.starts_with('.') {
        spelled.push('0');
    }
    match digits.split_once('.') {
        Some((whole, after)) if !after.starts_with(|c: char| c.is_ascii_digit()) => {
            spelled.push_str(whole);
            spelled.push_str(".0");
            spelled.push_str(after);
            if whole.is_empty() {
                return None;
            }
        }
        _ => spelled.push_str(digits),
    }
    is_number(&spelled).then_some(spelled)
}

/// Reads a quoted string. The cursor must be at the opening quote.
fn string(cursor: &mut Cursor<'_>) -> Option<String> {
    let quote = cursor.peek()?;
    cursor.advance(1);
    let mut value = String::new();
    loop {
        let remaining = cursor.remaining();
        let stop = remaining.find([quote, '\\'])?;
        value.push_str(remaining.get(..stop).unwrap_or_default());
        cursor.advance(stop);
        let character = cursor.peek()?;
        cursor.advance(1);
        if character == quote {
            return Some(value);
        }
        escape(cursor, &mut value)?;
    }
}

/// Reads an escape sequence after its backslash. As in Python, an unknown escape stays unchanged.
fn escape(cursor: &mut Cursor<'_>, value: &mut String) -> Option<()> {
    let character = cursor.peek()?;
    cursor.advance(character.len_utf8());
    match character {
        '\n' => {}
        '\\' | '\'' | '"' => value.push(character),
        'a' => value.push('\u{7}'),
        'b' => value.push('\u{8}'),
        'f' => value.push('\u{c}'),
        'n' => value.push('\n'),
        'r' => value.push('\r'),
        't' => value.push('\t'),
        'v' => value.push('\u{b}'),
        'x' => value.push(code_point(cursor, 2)?),
        'u' => unit(cursor, value)?,
        'U' => value.push(code_point(cursor, 8)?),
        'N' => return None,
        '0'..='7' => {
            let mut code = character.to_digit(8).unwrap_or_default();
            for _ in 0..2 {
                let Some(digit) = cursor.peek().and_then(|digit| digit.to_digit(8)) else {
                    break;
                };
                cursor.advance(1);
                code = code * 8 + digit;
            }
            value.push(char::from_u32(code)?);
        }
        other => {
            value.push('\\');
            value.push(other);
        }
    }
    Some(())
}

fn digits(cursor: &mut Cursor<'_>, count: usize) -> Option<u32> {
    let remaining = cursor.remaining();
    let found = remaining.chars().take(count);
    if !found.clone().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    if found.count() < count {
        return None;
    }
    let code = remaining
        .get(..count)
        .and_then(|hex| u32::from_str_radix(hex, 16).ok());
    cursor.advance(count);
    code
}

fn code_point(cursor: &mut Cursor<'_>, count: usize) -> Option<char> {
    char::from_u32(digits(cursor, count)?)
}

/// Reads a `\u` escape. A surrogate pair becomes one character; an unpaired surrogate is refused.
fn unit(cursor: &mut Cursor<'_>, value: &mut String) -> Option<()> {
    let high = digits(cursor, 4)?;
    if !(0xD800..0xDC00).contains(&high) {
        value.push(char::from_u32(high)?);
        return Some(());
    }
    cursor.expect("\\u")?;
    let low = digits(cursor, 4)?;
    if !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    value.push(char::from_u32(code)?);
    Some(())
}
