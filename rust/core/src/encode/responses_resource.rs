//! The response as a whole: the members that the published schema requires, in its order.
//!
//! What a converter cannot know of the request has the API's default. Knows no event.

use super::finish::Trouble;
use super::job::Job;
use super::responses_items::Items;

/// How far the response came.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome<'a> {
    InProgress,
    Completed,
    /// With the reason.
    Incomplete(&'a str),
    Failed(&'a Trouble),
}

impl Outcome<'_> {
    fn status(&self) -> &'static str {
        match self {
            Outcome::InProgress => "in_progress",
            Outcome::Completed => "completed",
            Outcome::Incomplete(_) => "incomplete",
            Outcome::Failed(_) => "failed",
        }
    }

    /// The event that says it.
    pub(super) fn event(&self) -> &'static str {
        match self {
            Outcome::InProgress => "response.in_progress",
            Outcome::Completed => "response.completed",
            Outcome::Incomplete(_) => "response.incomplete",
            Outcome::Failed(_) => "response.failed",
        }
    }
}

/// Writes the response as it stands.
pub(super) fn resource(job: &mut Job, id: &str, outcome: &Outcome<'_>, items: &Items) {
    let Job { writer, answer, .. } = job;
    writer.raw("{\"id\":").string(id);
    writer.raw(",\"object\":\"response\",\"created_at\":");
    writer.number(answer.created.unwrap_or(0));
    writer.raw(",\"completed_at\":null,\"status\":");
    writer.string(outcome.status());
    writer.raw(",\"incomplete_details\":");
    match outcome {
        Outcome::Incomplete(reason) => writer.raw("{\"reason\":").string(reason).raw("}"),
        _ => writer.raw("null"),
    };
    writer.raw(",\"model\":");
    writer.string(answer.model.as_deref().unwrap_or("unknown"));
    writer.raw(",\"previous_response_id\":null,\"instructions\":null,\"output\":[");
    items.write(writer);
    writer.raw("],\"error\":");
    match outcome {
        Outcome::Failed(trouble) => {
            writer.raw("{\"code\":").string(&trouble.code);
            writer
                .raw(",\"message\":")
                .string(&trouble.message)
                .raw("}")
        }
        _ => writer.raw("null"),
    };
    writer.raw(concat!(
        ",\"tools\":[],\"tool_choice\":\"auto\",\"truncation\":\"disabled\",\"parallel_tool_calls\":true",
        ",\"text\":{\"format\":{\"type\":\"text\"}},\"top_p\":1,\"presence_penalty\":0",
        ",\"frequency_penalty\":0,\"top_logprobs\":0,\"temperature\":1,\"reasoning\":null,\"usage\":"
    ));
    let usage = answer
        .usage
        .filter(|counts| counts.is_told() && !matches!(outcome, Outcome::InProgress));
    match usage {
        None => _ = writer.raw("null"),
        Some(counts) => {
            writer
                .raw("{\"input_tokens\":")
                .number(counts.input.unwrap_or(0));
            writer.raw(",\"input_tokens_details\":{\"cached_tokens\":");
            writer.number(counts.cached.unwrap_or(0));
            writer.raw(",\"cache_write_tokens\":");
            writer.number(counts.cache_write.unwrap_or(0));
            writer
                .raw("},\"output_tokens\":")
                .number(counts.output.unwrap_or(0));
            writer.raw(",\"output_tokens_details\":{\"reasoning_tokens\":");
            writer.number(counts.reasoning.unwrap_or(0));
            writer
                .raw("},\"total_tokens\":")
                .number(counts.sum())
                .raw("}");
        }
    }
    writer.raw(concat!(
        ",\"max_output_tokens\":null,\"max_tool_calls\":null,\"store\":false,\"background\":false",
        ",\"service_tier\":\"default\",\"metadata\":{},\"safety_identifier\":null,\"prompt_cache_key\":null}"
    ));
}
