//! Parses the calls in a block. Each form in which calls are written (`shape`) has a parser.

pub(crate) mod braces;
pub(crate) mod harmony;
pub(crate) mod json;
pub(crate) mod key_value;
pub(crate) mod named_json;
pub(crate) mod python;
pub(crate) mod python_literal;
pub(crate) mod xml;

use crate::json::token::number_end;
use crate::text_calls::entry::Close;
use crate::text_calls::entry::Entry;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::ParseFailure;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Value;

/// Maximum nesting depth of lists and objects that are not JSON.
const MAX_NESTING: usize = 64;

/// The form in which the calls in a block are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Grammar {
    Json(json::Grammar),
    Xml(Box<xml::Tags>),
    KeyValue(key_value::Tags),
    NamedJson(named_json::Literals),
    PythonLines,
    PythonList,
    Braces(braces::Literals),
    Harmony,
}

impl Grammar {
    /// Reads the grammar of a family. Returns `None` if the family lacks a member that its shape requires.
    pub fn read(entry: &Entry<'_>) -> Option<Grammar> {
        Some(match entry.word("shape")?.as_str() {
            "json" => Grammar::Json(json::Grammar::read(entry)?),
            "xml" => Grammar::Xml(Box::new(xml::Tags::read(entry)?)),
            "key_value" => Grammar::KeyValue(key_value::Tags::read(entry)?),
            "named_json" => Grammar::NamedJson(named_json::Literals::read(entry)),
            "python" if entry.word("form").as_deref() == Some("lines") => Grammar::PythonLines,
            "python" => Grammar::PythonList,
            "braces" => Grammar::Braces(braces::Literals::read(entry)?),
            "harmony" => Grammar::Harmony,
            _ => return None,
        })
    }

    /// Reads one or more calls. Returns true if the block may contain another call.
    fn advance(&self, reading: &mut Reading, text: &str, close: &Close) -> Parse<bool> {
        match self {
            Grammar::Json(grammar) => grammar.advance(reading, text),
            Grammar::Xml(tags) => tags.advance(reading, text),
            Grammar::KeyValue(tags) => tags.advance(reading, text, close),
            Grammar::NamedJson(literals) => literals.advance(reading, text),
            Grammar::PythonLines => python::one(reading, text),
            Grammar::PythonList => python::list(reading, text),
            Grammar::Braces(literals) => literals.advance(reading, text),
            Grammar::Harmony => harmony::advance(reading, text),
        }
    }

    /// Parses the body and the closing literal of a block.
    pub fn read_block(&self, reading: &mut Reading, text: &str, close: &Close) -> Parse<()> {
        loop {
            let is_between = reading.is_between && !reading.calls.is_empty();
            if is_between {
                let Close::Literal(literal) = close else {
                    return Ok(());
                };
                reading.skip_blank(text);
                match reading.take(text, literal) {
                    Ok(true) => return Ok(()),
                    Ok(false) if reading.may_repeat => {}
                    Ok(false) => return Err(ParseFailure::Broken),
                    // Wait for more text, because the next call may begin with the same characters as the closing
                    // literal.
                    Err(stop) => return Err(stop),
                }
            }
            reading.is_between = false;
            reading.may_repeat = self.advance(reading, text, close)?;
            reading.is_between = true;
        }
    }
}

/// Returns true if the text is a number in JSON syntax.
///
/// A number beyond the range of floats is one, so that its block is read to its end. The value is refused when the
/// arguments are checked.
fn is_number(text: &str) -> bool {
    number_end(text.as_bytes(), 0).is_some_and(|(end, _)| end == text.len())
}

/// Adds the parameter whose key has been read. A duplicate key makes the block malformed.
fn add_member(reading: &mut Reading, value: Value) -> Parse<()> {
    let key = std::mem::take(&mut reading.key);
    if reading.members.is_empty() {
        reading.keys.clear();
    }
    if !reading.keys.insert(key.clone()) {
        return Err(ParseFailure::Broken);
    }
    reading.members.push((key, value));
    Ok(())
}
