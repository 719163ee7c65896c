//! The text of JSON strings. Signatures; the body follows.

use std::borrow::Cow;

/// The text of one JSON string. Surrogate halves at its ends are held apart, since a stream may cut a pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<'a> {
    pub body: Cow<'a, str>,
    /// A low surrogate without its high one at the very start.
    pub lead_low: Option<u16>,
    /// A high surrogate without its low one at the very end.
    pub tail_high: Option<u16>,
    /// A lone surrogate in the middle became U+FFFD.
    pub lone: bool,
}

impl<'a> Text<'a> {
    pub fn plain(body: &'a str) -> Text<'a> {
        Text {
            body: Cow::Borrowed(body),
            ..Text::default()
        }
    }
    /// The text of what stands between the quotes of a valid JSON string.
    pub fn unescape(raw: &'a str) -> Text<'a> {
        Text::plain(raw)
    }
    /// No text and no half of a character.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty() && self.lead_low.is_none() && self.tail_high.is_none()
    }
    /// The text where nothing can be joined to it: halves become U+FFFD. True where there was a lone surrogate.
    pub fn into_whole(self) -> (Cow<'a, str>, bool) {
        (self.body, self.lone)
    }
}

/// The half character that one text channel holds between its deltas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surrogates {}

impl Surrogates {
    /// The text to go on with; true where a surrogate stayed alone.
    pub fn join<'a>(&mut self, text: Text<'a>) -> (Cow<'a, str>, bool) {
        text.into_whole()
    }
    /// A half is waiting.
    pub fn is_pending(&self) -> bool {
        false
    }
    /// The end of the channel: U+FFFD where a half was left.
    pub fn finish(&mut self) -> Option<char> {
        None
    }
}

/// Appends a JSON string of that text, quotes included, escaping only what must be.
pub fn write_string(_out: &mut String, _text: &str) {}

/// A valid JSON text without its insignificant white space.
pub fn compact(raw: &str) -> Cow<'_, str> {
    Cow::Borrowed(raw)
}
