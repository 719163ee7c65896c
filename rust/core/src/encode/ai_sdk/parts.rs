//! Writes language-model stream parts of the AI SDK (LanguageModelV4StreamPart): one `data:` event per part, without a
//! terminal marker.
//!
//! Like the SDK's own providers, this encoder uses one id per call in `tool-input-start`, `-delta`, `-end` and
//! `tool-call`, and sends each of these parts once.

use crate::encode::ai_sdk::chunk::counted;
use crate::encode::ai_sdk::chunk::end;
use crate::encode::ai_sdk::chunk::executed;
use crate::encode::ai_sdk::chunk::frame;
use crate::encode::ai_sdk::chunk::maybe;
use crate::encode::ai_sdk::chunk::member;
use crate::encode::ai_sdk::chunk::shares;
use crate::encode::ai_sdk::chunk::write_provider_metadata;
use crate::encode::ai_sdk::common::AiSdk;
use crate::encode::ai_sdk::common::Protocol;
use crate::encode::common::compact_json::canonical;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::finish;
use crate::encode::common::finish::EndingError;
use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::CallRef;
use crate::encode::common::part_details::CallResult;
use crate::encode::common::sequential_answer::Finish;
use crate::encode::common::sequential_answer::Opening;
use crate::encode::common::sequential_answer::SequentialAnswer;
use crate::encode::common::usage::Counts;
use crate::encode::common::writer::Writer;

/// Writes `stream-start`, the parts, and `finish`.
pub(crate) type AiSdkParts = SequentialAnswer<AiSdk<Parts>>;

#[derive(Debug, Default)]
pub(crate) struct Parts;

const NAME: &str = "ai-sdk-parts";
const DAY: i64 = 86_400;
/// Unix times from the start of year 1 to the end of year 9999.
const YEARS: std::ops::Range<i64> = -62_135_596_800..253_402_300_800;

impl Protocol for Parts {
    const TARGET: &'static str = NAME;
    const ENDS_WHAT_BROKE: bool = true;

    fn start(context: &mut EncodeContext, opening: Opening<'_>) {
        let to = &mut context.writer;
        Self::unopened(to);
        let id = opening.id.filter(|id| !id.is_empty());
        let model = opening.model.filter(|model| !model.is_empty());
        let time = opening.created.and_then(timestamp);
        if id.is_some() || model.is_some() || time.is_some() {
            let to = maybe(frame(to, "response-metadata"), "\"id\"", id);
            let to = maybe(to, "\"timestamp\"", time.as_deref());
            end(maybe(to, "\"modelId\"", model));
        }
    }

    fn finish(context: &mut EncodeContext, word: &str, finish: &Finish) {
        // For a source in the same dialect, `finish.raw` is the unified reason and is not repeated as `raw`.
        let raw = finish.raw.as_deref().filter(|_| !context.passed.own);
        finished(context, word, raw);
    }

    fn mark_end(_: &mut Writer) {}

    fn unopened(to: &mut Writer) {
        end(frame(to, "stream-start").raw(",\"warnings\":[]"));
    }

    fn fail(context: &mut EncodeContext, ending_error: &EndingError) {
        let to = frame(&mut context.writer, "error").raw(",\"error\":{\"message\":");
        let to = member(
            to.string(&ending_error.message),
            "\"type\"",
            &ending_error.kind,
        );
        let mut to = member(to, "\"code\"", &ending_error.code);
        if let Some(sent) = &ending_error.sent {
            to = member(to, "\"detail\"", sent);
        }
        end(to.raw("}"));
        finished(
            context,
            finish::word(NAME, "error").unwrap_or("error"),
            None,
        );
    }

    fn call_start(to: &mut Writer, call: CallRef<'_>) {
        let to = member(frame(to, "tool-input-start"), "\"id\"", call.call_id);
        let to = member(to, "\"toolName\"", call.name);
        end(executed(to, call.provider_executed));
    }

    fn call_delta(to: &mut Writer, call_id: &str, text: &str) {
        let to = member(frame(to, "tool-input-delta"), "\"id\"", call_id);
        end(member(to, "\"delta\"", text));
    }

    fn call_end(to: &mut Writer, call_id: &str) {
        end(member(frame(to, "tool-input-end"), "\"id\"", call_id));
    }

    fn call_whole(to: &mut Writer, call: &Call<'_>, text: &str, metadata: Option<&str>) {
        end(write_provider_metadata(called(to, call, text), metadata));
    }

    fn call_refused(to: &mut Writer, call: &Call<'_>, _: &str) {
        end(called(to, call, &call.arguments).raw(",\"invalid\":true"));
    }

    fn result(to: &mut Writer, given: &CallResult<'_>, call: CallRef<'_>) {
        let to = member(frame(to, "tool-result"), "\"toolCallId\"", call.call_id);
        member(to, "\"toolName\"", call.name).raw(",\"result\":");
        if given.output == "null" {
            to.raw("{}"); // the schema does not allow null
        } else {
            canonical(to, &given.output);
        }
        end(to.raw(if given.is_error {
            ",\"isError\":true"
        } else {
            ""
        }));
    }

    fn page(to: &mut Writer, id: &str, url: &str, title: Option<&str>) {
        let to = frame(to, "source").raw(",\"sourceType\":\"url\"");
        let to = member(member(to, "\"id\"", id), "\"url\"", url);
        end(maybe(to, "\"title\"", title));
    }

    fn document(to: &mut Writer, id: &str, media_type: &str, title: &str, filename: Option<&str>) {
        let to = frame(to, "source").raw(",\"sourceType\":\"document\"");
        let to = member(member(to, "\"id\"", id), "\"mediaType\"", media_type);
        end(maybe(
            member(to, "\"title\"", title),
            "\"filename\"",
            filename,
        ));
    }

    fn file(to: &mut Writer, media_type: &str, data: Option<&str>, url: Option<&str>) {
        let to = member(frame(to, "file"), "\"mediaType\"", media_type).raw(",\"data\":");
        end(match data {
            // Specification V4 puts `data` or `url` in a nested object, which @ai-sdk/gateway reads. V3 cannot
            // represent a URL.
            Some(data) => member(to.raw("{\"type\":\"data\""), "\"data\"", data).raw("}"),
            None => member(
                to.raw("{\"type\":\"url\""),
                "\"url\"",
                url.unwrap_or_default(),
            )
            .raw("}"),
        });
    }
}

fn called<'w>(to: &'w mut Writer, call: &Call<'_>, text: &str) -> &'w mut Writer {
    let to = member(frame(to, "tool-call"), "\"toolCallId\"", &call.call_id);
    let to = member(to, "\"toolName\"", &call.name);
    executed(member(to, "\"input\"", text), call.provider_executed)
}

fn finished(context: &mut EncodeContext, word: &str, raw: Option<&str>) {
    let counts = context.answer.usage.unwrap_or_default();
    let to = frame(&mut context.writer, "finish").raw(",\"finishReason\":{\"unified\":");
    maybe(to.string(word), "\"raw\"", raw).raw("},\"usage\":");
    usage(to, &counts);
    end(to);
}

fn usage(to: &mut Writer, counts: &Counts) {
    let (fresh, plain) = shares(counts);
    to.raw("{\"inputTokens\":{");
    counted(
        to,
        &[
            ("total", counts.input),
            ("noCache", fresh),
            ("cacheRead", counts.cached),
            ("cacheWrite", counts.cache_write),
        ],
    );
    to.raw("},\"outputTokens\":{");
    counted(
        to,
        &[
            ("total", counts.output),
            ("text", plain),
            ("reasoning", counts.reasoning),
        ],
    );
    to.raw("}}");
}

/// Formats a time as JavaScript's `toISOString` does. Returns `None` for years that JavaScript formats differently.
fn timestamp(seconds: i64) -> Option<String> {
    if !YEARS.contains(&seconds) {
        return None;
    }
    let (days, rest) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    // Years are counted from 0000-03-01 and begin in March, so that the leap day is the last day of a year.
    let (era, day) = (
        (days + 719_468).div_euclid(146_097),
        (days + 719_468).rem_euclid(146_097),
    );
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = year + era * 400 + i64::from(month > 9);
    let month = if month < 10 { month + 3 } else { month - 9 };
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_as_dates() {
        for (seconds, date) in [
            (0, Some("1970-01-01T00:00:00.000Z")),
            (951_827_696, Some("2000-02-29T12:34:56.000Z")),
            (-1, Some("1969-12-31T23:59:59.000Z")),
            (-62_135_596_800, Some("0001-01-01T00:00:00.000Z")),
            (253_402_300_799, Some("9999-12-31T23:59:59.000Z")),
            (253_402_300_800, None),
            (i64::MIN, None),
        ] {
            assert_eq!(timestamp(seconds).as_deref(), date);
        }
    }
}
