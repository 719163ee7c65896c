//! Calls as messages with a recipient: `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>`.

use crate::text_calls::grammar::json::has_unique_keys;
use crate::text_calls::reading::Arguments;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::Place;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Stop;
use crate::text_calls::reading::in_name;

/// Recipients of other kinds are not functions.
const PREFIX: &str = "functions.";
const CHANNEL: &str = "<|channel|>commentary";
const CONSTRAIN: &str = "<|constrain|>json";
const MESSAGE: &str = "<|message|>";

/// The one call of the block.
pub(crate) fn advance(reading: &mut Reading, text: &str) -> Parse<bool> {
    loop {
        match reading.place {
            Place::Start => {
                reading.expect(text, PREFIX)?;
                reading.place = Place::Name;
            }
            Place::Name => {
                reading.name = reading.run(text, in_name)?.to_owned();
                reading.place = Place::BeforeValue;
            }
            Place::BeforeValue => {
                let mut ahead = Reading::new(reading.at);
                for literal in [CHANNEL, CONSTRAIN, MESSAGE] {
                    ahead.skip_blank(text);
                    let rest = ahead.rest(text);
                    if rest.starts_with(literal) {
                        ahead.at += literal.len();
                    } else if [CHANNEL, CONSTRAIN, MESSAGE]
                        .iter()
                        .any(|one| one.starts_with(rest))
                    {
                        return Err(Stop::Cut);
                    } else if literal == MESSAGE {
                        return Err(Stop::Broken);
                    }
                }
                reading.at = ahead.at;
                reading.place = Place::Value;
            }
            Place::Value => {
                reading.skip_blank(text);
                let raw = reading.json(text, &['{'])?.to_owned();
                if !has_unique_keys(&raw) {
                    return Err(Stop::Broken);
                }
                reading.end_call_with(Arguments::Object(raw));
                return Ok(false);
            }
            _ => return Err(Stop::Broken),
        }
    }
}
