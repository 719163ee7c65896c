//! Determines which members of an event must be added or replaced before clients accept the event.
//!
//! @ai-sdk/openai validates the events that it reads and raises an exception if a member is missing. openai-node raises
//! an exception if an item in the opening event is announced again. The rest of the payload stays unchanged.

use crate::dialect::responses::spec_tables::FACTS;
use crate::json::Kind;
use crate::json::members::Object;
use crate::json::members::is_string;
use crate::json::members::items;
use crate::model::event::CREATED;
use crate::model::event::Edit;
use crate::model::event::WireFact;
use crate::model::output::Output;

/// Returns the statuses that @ai-sdk/openai accepts in a completed call of this type, or an empty list for other items.
fn statuses(kind: &str) -> &'static [&'static str] {
    match kind {
        "function_call" => &["in_progress", "completed", "incomplete"],
        "custom_tool_call" => &["completed"],
        _ => &[],
    }
}

/// Reports the edits that an event needs if it opens the response. `text` is the payload of the event.
pub(crate) fn edit_opening(out: &mut Output<'_>, kind: &str, response: &Object<'_>, text: &str) {
    if matches!(kind, "response.created" | "response.in_progress") {
        Edits { out, text }.opening(response);
    }
}

/// Reports the edits that a completed item needs. `text` is the payload of the event.
pub(crate) fn edit_item(out: &mut Output<'_>, item: &Object<'_>, text: &str) {
    Edits { out, text }.completed_item(item);
}

/// Reports the edits of one payload.
struct Edits<'e, 'o> {
    out: &'e mut Output<'o>,
    text: &'e str,
}

impl Edits<'_, '_> {
    fn opening(&mut self, response: &Object<'_>) {
        let created = response.get("created_at");
        if created.is_none_or(|raw| raw.kind != Kind::Number) {
            self.set(response, "created_at", CREATED);
        }
        if response
            .get("model")
            .is_none_or(|raw| raw.kind != Kind::String)
        {
            self.set(response, "model", "\"unknown\"");
        }
        let output = response.get("output");
        let output = output.filter(|raw| raw.kind == Kind::Array && !items(*raw).is_empty());
        if let Some(output) = output {
            self.replace("items_at_start", output.text, "[]");
        }
    }

    fn completed_item(&mut self, item: &Object<'_>) {
        let accepted = item.string("type").map_or(&[][..], |kind| statuses(&kind));
        let status = item.get("status");
        let is_accepted = accepted.iter().any(|word| is_string(status, word));
        let is_cut = item
            .string("status")
            .is_some_and(|status| FACTS.cut_statuses.contains(status.trim()));
        if !(accepted.is_empty() || is_accepted || is_cut) {
            self.set(item, "status", "\"completed\"");
        }
    }

    /// Reports that the member of an object gets this value. A missing member becomes the first member.
    fn set(&mut self, holder: &Object<'_>, name: &str, value: &str) {
        if let Some(raw) = holder.get(name) {
            return self.replace("member_type", raw.text, value);
        }
        let comma = if holder.members.is_empty() { "" } else { "," };
        let member = format!("\"{name}\":{value}{comma}");
        if let Some(inside) = holder.raw.text.get(1..1) {
            self.replace("member_type", inside, &member);
        }
    }

    /// Reports that a part of the payload is replaced.
    fn replace(&mut self, why: &'static str, part: &str, new: &str) {
        let start = part.as_ptr().addr() - self.text.as_ptr().addr();
        self.out.record_fact(WireFact::Edited(Edit {
            payload: self.text,
            why,
            start,
            end: start + part.len(),
            new,
        }));
    }
}
