//! Merges `stream-start`, `start`, `start-step`, and `response-metadata` of an AI SDK stream into one `ResponseStarted`
//! event.
//!
//! The response id is in `response-metadata`, which follows `stream-start`. The event is therefore held back until
//! `response-metadata` or the first content arrives.

use crate::dialect::ai_sdk::part::TypedPart;
use crate::dialect::ai_sdk::part::write_member;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;

/// Collects the metadata that arrives before the start event is emitted.
#[derive(Debug, Default)]
pub(crate) struct StartReader {
    /// The metadata that is held back until the start event is emitted, as JSON objects.
    held: Vec<String>,
    seen: bool,
    emitted: bool,
}

impl StartReader {
    /// Handles `stream-start`, `start`, and `start-step`, which contain warnings and similar metadata. After the start
    /// event, metadata of these parts is added to the last event of the response.
    pub(crate) fn opening(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        part: &mut TypedPart<'_, '_>,
    ) -> ParseResult {
        self.seen = true;
        let Some(members) = part.worth_keeping() else {
            return Ok(());
        };
        if self.emitted {
            return wire.assembler.choice_metadata(wire.out, 0, &members);
        }
        self.held.push(members);
        if self.held.len() > 1 {
            // A stream has one or two opening parts with metadata. Emitting the start event at the second part limits
            // the memory for held metadata.
            return self.emit(wire);
        }
        Ok(())
    }

    /// Handles `response-metadata`, which contains the id, the model, and the creation time of the response. A second
    /// `response-metadata` is kept as metadata and does not change the id, model, or time.
    pub(crate) fn response(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        part: &mut TypedPart<'_, '_>,
    ) -> ParseResult {
        if self.emitted {
            let mut members = String::from("{");
            write_member(&mut members, "response", part.payload.text.trim());
            members.push('}');
            return wire.assembler.choice_metadata(wire.out, 0, &members);
        }
        let sent = part.object.string("timestamp");
        let time = sent.as_deref().and_then(seconds);
        let kept = match time {
            Some((_, true)) => None,
            _ => part.json(&["timestamp"]),
        };
        let identity = part.identity(&["id"]);
        let model = part.descriptive_string("modelId");
        let metadata = part.metadata_with("timestamp", kept);
        let created = time.map(|(created, _)| created);
        self.emit_fields(
            wire,
            identity.as_deref(),
            model.as_deref(),
            created,
            metadata,
        )
    }

    /// Emits the start event, unless it has already been emitted.
    #[inline]
    pub(crate) fn emit(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        if self.emitted {
            return Ok(());
        }
        self.emit_fields(wire, None, None, None, None)
    }

    /// Emits the start event at the end of the stream, if an opening part arrived. Does nothing if the start event has
    /// already been emitted.
    pub(crate) fn emit_if_seen(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        if self.seen {
            return self.emit(wire);
        }
        Ok(())
    }

    fn emit_fields(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        id: Option<&str>,
        model: Option<&str>,
        created: Option<i64>,
        metadata: Option<String>,
    ) -> ParseResult {
        self.emitted = true;
        let mut held = std::mem::take(&mut self.held);
        held.extend(metadata);
        let metadata = joined(&held);
        wire.assembler
            .started(wire.out, id, model, created, metadata.as_deref())
    }
}

/// Parses a timestamp in the format of JavaScript's `Date.prototype.toJSON`. Returns the seconds since 1970-01-01, and
/// whether that number is exact.
fn seconds(text: &str) -> Option<(i64, bool)> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = match time.split_once('.') {
        None => (time, ""),
        Some((time, fraction)) if (1..=9).contains(&fraction.len()) => (time, fraction),
        Some(_) => return None,
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let digits = fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = if leap { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = usize::try_from(month).ok()?.checked_sub(1)?;
    if !(1..=*months.get(before)?).contains(&day) {
        return None;
    }
    let past = year - 1;
    // Days from 1970-01-01 to January 1 of the year. The number is negative before 1970. The divisions must round down,
    // so that year 0 is correct.
    let years =
        past * 365 + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) - 719_162;
    let days = years + months.iter().take(before).sum::<i64>() + day - 1;
    let whole = fraction.bytes().all(|byte| byte == b'0');
    Some((((days * 24 + hour) * 60 + minute) * 60 + second, whole))
}

/// Parses three numbers with the given digit counts, separated by `between`. Returns `None` if the text has another
/// form.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[i64; 3]> {
    let mut pieces = text.split(between);
    let mut next = |digits: usize| {
        let piece = pieces.next()?;
        let fits = piece.len() == digits && piece.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| piece.parse().ok()).flatten()
    };
    let [first, second, third] = digits;
    let out = [next(first)?, next(second)?, next(third)?];
    pieces.next().is_none().then_some(out)
}

/// Joins JSON objects into one. If a key occurs more than once, JSON parsers use the last value.
fn joined(objects: &[String]) -> Option<String> {
    let mut out = String::new();
    for object in objects {
        let inner = object.get(1..object.len().saturating_sub(1));
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(inner.unwrap_or_default());
    }
    if out.is_empty() {
        return None;
    }
    out.push('}');
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some((0, true)));
        assert_eq!(
            seconds("2024-02-29T12:00:01.500Z"),
            Some((1_709_208_001, false))
        );
        assert_eq!(
            seconds("0000-03-01T00:00:00.000Z"),
            Some((-62_162_035_200, true))
        );
        for wrong in [
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00+00:00",
            "24-01-01T00:00:00Z",
            "2024-01-01-01T00:00:00Z",
        ] {
            assert_eq!(seconds(wrong), None);
        }
    }
}
