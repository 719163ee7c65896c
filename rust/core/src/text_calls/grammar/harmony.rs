//! Parses calls that are messages with a recipient:
//! `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>`.

use crate::text_calls::reading::GrammarState;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::ParseFailure;
use crate::text_calls::reading::Reading;

/// Prefix of a recipient that is one of the request's tools.
const PREFIX: &str = "functions.";

/// Reads the only call in the block, and returns false, because no other call may follow.
pub(crate) fn advance(reading: &mut Reading, text: &str) -> Parse<bool> {
    loop {
        match reading.state {
            GrammarState::Start => {
                reading.expect(text, PREFIX)?;
                reading.state = GrammarState::Name;
            }
            GrammarState::Name => {
                reading.name = reading.name(text)?.to_owned();
                reading.state = GrammarState::AfterCall;
            }
            GrammarState::AfterCall => {
                reading.next(text)?;
                let has_channel = reading.take(text, "<|channel|>")?;
                reading.state = if has_channel {
                    GrammarState::Key
                } else {
                    GrammarState::Attribute
                };
            }
            GrammarState::Key => {
                reading.expect_next(text, "commentary")?;
                reading.state = GrammarState::Attribute;
            }
            GrammarState::Attribute => {
                reading.next(text)?;
                let is_constrained = reading.take(text, "<|constrain|>")?;
                reading.state = if is_constrained {
                    GrammarState::Members
                } else {
                    // The model also writes the content type as plain text.
                    let _ = reading.take(text, "json")? || reading.take(text, "code")?;
                    GrammarState::BeforeValue
                };
            }
            GrammarState::Members => {
                reading.expect_next(text, "json")?;
                reading.state = GrammarState::BeforeValue;
            }
            GrammarState::BeforeValue => {
                reading.expect_next(text, "<|message|>")?;
                reading.state = GrammarState::Value;
            }
            GrammarState::Value => {
                reading.object(text)?;
                return Ok(false);
            }
            GrammarState::Object
            | GrammarState::Opener
            | GrammarState::AfterValue
            | GrammarState::Counter => {
                return Err(ParseFailure::Broken);
            }
        }
    }
}
