//! Calls as messages with a recipient: `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>`.

use crate::text_calls::reading::Parse;
use crate::text_calls::reading::Place;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Stop;

/// Recipients of other kinds are not functions.
const PREFIX: &str = "functions.";

/// The one call of the block.
pub(crate) fn advance(reading: &mut Reading, text: &str) -> Parse<bool> {
    loop {
        match reading.place {
            Place::Start => {
                reading.expect(text, PREFIX)?;
                reading.place = Place::Name;
            }
            Place::Name => {
                reading.name = reading.name(text)?.to_owned();
                reading.place = Place::AfterCall;
            }
            Place::AfterCall => {
                reading.next(text)?;
                let has_channel = reading.take(text, "<|channel|>")?;
                reading.place = if has_channel {
                    Place::Key
                } else {
                    Place::Attribute
                };
            }
            Place::Key => {
                reading.expect_next(text, "commentary")?;
                reading.place = Place::Attribute;
            }
            Place::Attribute => {
                reading.next(text)?;
                let is_constrained = reading.take(text, "<|constrain|>")?;
                reading.place = if is_constrained {
                    Place::Members
                } else {
                    Place::BeforeValue
                };
            }
            Place::Members => {
                reading.expect_next(text, "json")?;
                reading.place = Place::BeforeValue;
            }
            Place::BeforeValue => {
                reading.expect_next(text, "<|message|>")?;
                reading.place = Place::Value;
            }
            Place::Value => {
                reading.object(text)?;
                return Ok(false);
            }
            Place::Object | Place::Opener | Place::AfterValue => return Err(Stop::Broken),
        }
    }
}
