//! The calls of a Chat Completions stream: head, pieces of the arguments, and what the close says of both.
//!
//! Knows when a call can be begun before it is whole, and when its close contradicts what went out.

use super::chat::{Chat, LAST};
use super::job::{Call, Job};
use super::same::is_same;
use crate::event::{Delta, Event};

/// A call of which the id and the name went out.
#[derive(Debug)]
pub(super) struct Begun {
    index: i64,
    call_id: String,
    name: String,
    /// The source took its text back: its last word decides.
    pub(super) reset: bool,
}

impl Chat {
    /// A call that opens is begun if all of its head is known and its reader is to run it.
    pub(super) fn start(&mut self, job: &mut Job, event: &Event<'_>) {
        let Event::ToolCallStarted {
            part,
            call_id: Some(call_id),
            name,
            provider_executed: false,
            custom: false,
            choice,
            ..
        } = *event
        else {
            return;
        };
        if job.opens(call_id, name) {
            self.begin(job, (part, choice), (call_id, name), "");
        }
    }

    pub(super) fn begun(&mut self, part: u32) -> Option<&mut Begun> {
        self.parts.get_mut(&part)?.call.as_mut()
    }

    fn begin(
        &mut self,
        job: &mut Job,
        (part, index): (u32, i32),
        (call_id, name): (&str, &str),
        arguments: &str,
    ) {
        let choice = self.choice(index);
        let place = choice.next;
        choice.next += 1;
        choice.calls.insert(call_id.to_owned());
        self.parts.slot(part).call = Some(Begun {
            index: place,
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            reset: false,
        });
        let to = self.begin_chunk(job, index);
        to.raw("{\"tool_calls\":[{\"index\":").number(place);
        to.raw(",\"id\":").string(call_id);
        to.raw(",\"type\":\"function\",\"function\":{\"name\":");
        to.string(name).raw(",\"arguments\":").string(arguments);
        to.raw("}}]}").raw(LAST).end();
    }

    pub(super) fn arguments(&mut self, job: &mut Job, delta: Delta<'_>) {
        let Some(part) = self.parts.get_mut(&delta.part) else {
            return;
        };
        let Some(begun) = part.call.as_ref().filter(|begun| !begun.reset) else {
            return;
        };
        let index = begun.index;
        part.told.push_str(delta.text);
        let to = self.begin_chunk(job, delta.choice);
        to.raw("{\"tool_calls\":[{\"index\":").number(index);
        to.raw(",\"function\":{\"arguments\":").string(delta.text);
        to.raw("}}]}").raw(LAST).end();
    }

    pub(super) fn call(&mut self, job: &mut Job, event: &Event<'_>) {
        let Some(call) = &Call::of(event) else {
            return;
        };
        job.took(call.call_id);
        let part = self.parts.get_mut(&call.part).map(std::mem::take);
        self.parts.remove(&call.part);
        let text = call.object_text();
        let Some((told, begun)) = part.and_then(|part| Some((part.told, part.call?))) else {
            if job.writes(call) {
                let place = (call.part, call.choice);
                self.begin(job, place, (call.call_id, call.name), &text);
                self.parts.remove(&call.part);
            }
            return;
        };
        let kept = begun.call_id == call.call_id && begun.name == call.name;
        if call.is_good() && (!kept || call.provider_executed) {
            return self.give_up(job);
        }
        match text.strip_prefix(told.as_str()) {
            Some("") => {}
            Some(rest) => {
                let delta = Delta {
                    part: call.part,
                    text: rest,
                    choice: call.choice,
                    metadata: None,
                };
                self.parts.slot(call.part).call = Some(Begun {
                    reset: false,
                    ..begun
                });
                self.arguments(job, delta);
                self.parts.remove(&call.part);
            }
            None if !call.is_good() => {}
            None if is_same(&told, &text) => job.losses.note("arguments_spelling"),
            None => self.give_up(job),
        }
    }
}
