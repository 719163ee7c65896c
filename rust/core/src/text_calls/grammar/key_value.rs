//! Parses calls with a tag for each key and each value:
//! `<tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`.

use crate::text_calls::entry::Close;
use crate::text_calls::entry::Entry;
use crate::text_calls::grammar::add_member;
use crate::text_calls::reading::GrammarState;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::ParseFailure;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Value;
use crate::text_calls::reading::is_blank;

/// The tags of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tags {
    /// Tag around each call, if a block may contain several calls.
    call: Option<Tag>,
    key: [String; 2],
    value: [String; 2],
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tag {
    open: String,
    /// Optional literal after the name.
    separator: Option<String>,
    close: String,
}

impl Tags {
    pub fn read(entry: &Entry<'_>) -> Option<Tags> {
        let call = entry.inner("call").map(|call| {
            Some(Tag {
                open: call.word("open")?,
                separator: call.word("separator"),
                close: call.word("close")?,
            })
        });
        Some(Tags {
            call: match call {
                Some(call) => Some(call?),
                None => None,
            },
            key: entry.words("key").try_into().ok()?,
            value: entry.words("value").try_into().ok()?,
        })
    }

    /// Reads one call in the block. Returns false if only the block's closing literal can follow.
    pub fn advance(&self, reading: &mut Reading, text: &str, close: &Close) -> Parse<bool> {
        let [key_open, key_close] = &self.key;
        let [value_open, value_close] = &self.value;
        loop {
            match reading.state {
                GrammarState::Start => {
                    if let Some(call) = &self.call {
                        reading.expect_next(text, &call.open)?;
                    }
                    reading.state = GrammarState::Name;
                }
                GrammarState::Name => {
                    reading.next(text)?;
                    reading.name = reading.name(text)?.to_owned();
                    reading.state = GrammarState::BeforeValue;
                }
                GrammarState::BeforeValue => {
                    reading.next(text)?;
                    let separator = self
                        .call
                        .as_ref()
                        .and_then(|call| call.separator.as_deref());
                    if let Some(separator) = separator {
                        reading.take(text, separator)?;
                    }
                    reading.state = GrammarState::Members;
                }
                GrammarState::Members => {
                    let literal = match (&self.call, close) {
                        (Some(call), _) => call.close.as_str(),
                        (None, Close::Literal(literal)) => literal.as_str(),
                        (None, _) => return Err(ParseFailure::Broken),
                    };
                    reading.next(text)?;
                    let before = reading.at;
                    if reading.take(text, literal)? {
                        if self.call.is_none() {
                            // The caller, `read_block`, reads the block's closing literal.
                            reading.at = before;
                        }
                        reading.end_call();
                        reading.state = GrammarState::Start;
                        return Ok(self.call.is_some());
                    }
                    reading.state = GrammarState::Object;
                }
                GrammarState::Object => {
                    reading.expect_next(text, key_open)?;
                    reading.state = GrammarState::Key;
                }
                GrammarState::Key => {
                    let key = reading.until(text, key_close)?.trim_matches(is_blank);
                    if key.is_empty() || key.contains(['<', '>', '\n']) {
                        return Err(ParseFailure::Broken);
                    }
                    reading.key = key.to_owned();
                    reading.state = GrammarState::Attribute;
                }
                GrammarState::Attribute => {
                    reading.expect_next(text, value_open)?;
                    reading.state = GrammarState::Value;
                }
                GrammarState::Value => {
                    let raw = reading.until(text, value_close)?.to_owned();
                    // The closing tag of this value is missing, so the text contains the next key or value.
                    if raw.contains(key_open) || raw.contains(value_open) {
                        return Err(ParseFailure::Broken);
                    }
                    add_member(reading, Value::Raw(raw))?;
                    reading.state = GrammarState::Members;
                }
                GrammarState::Opener
                | GrammarState::AfterValue
                | GrammarState::AfterCall
                | GrammarState::Counter => {
                    return Err(ParseFailure::Broken);
                }
            }
        }
    }
}
