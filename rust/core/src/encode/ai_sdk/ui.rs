//! Writes the UI message stream of the AI SDK, version 1, which `useChat` reads. The written stream has one step and
//! ends with `[DONE]`.
//!
//! The schema is strict: clients reject chunks with unknown members.

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
use crate::encode::common::compact_json::spliced;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::finish::EndingError;
use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::CallRef;
use crate::encode::common::part_details::CallResult;
use crate::encode::common::sequential_answer::Finish;
use crate::encode::common::sequential_answer::Opening;
use crate::encode::common::sequential_answer::SequentialAnswer;
use crate::encode::common::usage::Counts;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::string;

/// Writes `start`, `start-step`, the chunks, `finish-step`, `finish`, and `[DONE]`.
pub(crate) type AiSdkUi = SequentialAnswer<AiSdk<Ui>>;

#[derive(Debug, Default)]
pub(crate) struct Ui;

impl Protocol for Ui {
    const TARGET: &'static str = "ai-sdk-ui";
    /// Open parts are not ended before an error, because clients treat a part without an end as incomplete.
    const ENDS_WHAT_BROKE: bool = false;

    fn start(context: &mut EncodeContext, opening: Opening<'_>) {
        if opening.model.is_some() || opening.created.is_some() {
            context.losses.note("metadata");
        }
        let id = opening.id.filter(|id| !id.is_empty());
        let minted = id.is_none().then(|| context.mint.make("msg"));
        let to = frame(&mut context.writer, "start");
        end(maybe(to, "\"messageId\"", id.or(minted.as_deref())));
        step(context, "start-step");
    }

    fn finish(context: &mut EncodeContext, word: &str, _: &Finish) {
        step(context, "finish-step");
        let counts = context.answer.usage.filter(Counts::is_known);
        if counts.is_some() && !context.options.include_usage {
            context.losses.note("usage_detail");
        }
        let to = member(
            frame(&mut context.writer, "finish"),
            "\"finishReason\"",
            word,
        );
        if let Some(counts) = counts.filter(|_| context.options.include_usage) {
            to.raw(",\"messageMetadata\":{\"usage\":");
            usage(to, &counts);
            to.raw("}");
        }
        end(to);
        Self::mark_end(&mut context.writer);
    }

    fn mark_end(to: &mut Writer) {
        to.done();
    }

    fn unopened(_: &mut Writer) {}

    fn fail(context: &mut EncodeContext, ending_error: &EndingError) {
        let to = frame(&mut context.writer, "error");
        end(member(to, "\"errorText\"", &ending_error.message));
        context.writer.done();
    }

    fn call_start(to: &mut Writer, call: CallRef<'_>) {
        let to = call_frame(to, "tool-input-start", call);
        end(executed(to, call.provider_executed));
    }

    fn call_delta(to: &mut Writer, call_id: &str, text: &str) {
        let to = member(frame(to, "tool-input-delta"), "\"toolCallId\"", call_id);
        end(member(to, "\"inputTextDelta\"", text));
    }

    /// The protocol has no chunk for the end of a call's input, because `tool-input-available` contains the complete
    /// input.
    fn call_end(_: &mut Writer, _: &str) {}

    fn call_whole(to: &mut Writer, call: &Call<'_>, text: &str, metadata: Option<&str>) {
        let to = call_frame(to, "tool-input-available", call.ran());
        to.raw(",\"input\":");
        let start = to.bytes.len();
        if call.custom {
            to.raw(text);
        } else {
            spliced(to, text);
        }
        if to.bytes.len() == start {
            to.raw("{}");
        }
        end(write_provider_metadata(
            executed(to, call.provider_executed),
            metadata,
        ));
    }

    fn call_refused(to: &mut Writer, call: &Call<'_>, reason: &str) {
        let to = call_frame(to, "tool-input-error", call.ran());
        let to = member(to, "\"input\"", &call.arguments);
        to.raw(",\"errorText\":\"invalid arguments: ");
        end(executed(to.inner(reason).raw("\""), call.provider_executed));
    }

    fn result(to: &mut Writer, given: &CallResult<'_>, call: CallRef<'_>) {
        let kind = if given.is_error {
            "tool-output-error"
        } else {
            "tool-output-available"
        };
        let to = member(frame(to, kind), "\"toolCallId\"", call.call_id);
        if given.is_error {
            member(to, "\"errorText\"", &as_text(&given.output));
        } else {
            canonical(to.raw(",\"output\":"), &given.output);
        }
        end(executed(to, call.provider_executed));
    }

    fn page(to: &mut Writer, id: &str, url: &str, title: Option<&str>) {
        let to = member(frame(to, "source-url"), "\"sourceId\"", id);
        end(maybe(member(to, "\"url\"", url), "\"title\"", title));
    }

    fn document(to: &mut Writer, id: &str, media_type: &str, title: &str, filename: Option<&str>) {
        let to = member(frame(to, "source-document"), "\"sourceId\"", id);
        let to = member(to, "\"mediaType\"", media_type);
        end(maybe(
            member(to, "\"title\"", title),
            "\"filename\"",
            filename,
        ));
    }

    fn file(to: &mut Writer, media_type: &str, data: Option<&str>, url: Option<&str>) {
        let to = frame(to, "file");
        match data {
            Some(data) => {
                to.raw(",\"url\":\"data:").inner(media_type);
                to.raw(";base64,").inner(data).raw("\"");
            }
            None => {
                member(to, "\"url\"", url.unwrap_or_default());
            }
        }
        end(member(to, "\"mediaType\"", media_type));
    }
}

/// Writes a step chunk, unless the source has the same dialect and sends its own step chunks.
fn step(context: &mut EncodeContext, kind: &str) {
    if !context.passed.own {
        end(frame(&mut context.writer, kind));
    }
}

fn call_frame<'w>(to: &'w mut Writer, kind: &str, call: CallRef<'_>) -> &'w mut Writer {
    let to = member(frame(to, kind), "\"toolCallId\"", call.call_id);
    member(to, "\"toolName\"", call.name)
}

/// Returns the content of a JSON string, or the compact JSON of any other value.
fn as_text(output: &str) -> String {
    let text = output.starts_with('"').then(|| {
        string(Raw {
            text: output,
            kind: Kind::String,
        })
    });
    text.flatten().map_or_else(
        || {
            let mut to = Writer::default();
            canonical(&mut to, output);
            to.into_text()
        },
        |text| text.into_owned(),
    )
}

/// Writes the usage as a `LanguageModelUsage` object, which applications expect here.
fn usage(to: &mut Writer, counts: &Counts) {
    let (fresh, plain) = shares(counts);
    let given = [
        ("noCacheTokens", fresh),
        ("cacheReadTokens", counts.cached),
        ("cacheWriteTokens", counts.cache_write),
    ];
    let made = [("textTokens", plain), ("reasoningTokens", counts.reasoning)];
    let mut mark = "{\"";
    for (name, count, details, shares) in [
        ("inputTokens", counts.input, "inputTokenDetails", &given[..]),
        (
            "outputTokens",
            counts.output,
            "outputTokenDetails",
            &made[..],
        ),
        ("totalTokens", counts.total, "", &[]),
    ] {
        if let Some(count) = count {
            to.raw(mark).raw(name).raw("\":").number(count);
            mark = ",\"";
        }
        if shares.iter().any(|(_, count)| count.is_some()) {
            to.raw(mark).raw(details).raw("\":{");
            counted(to, shares);
            to.raw("}");
            mark = ",\"";
        }
    }
    to.raw("}");
}
