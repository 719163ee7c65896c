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
            provider_executed,
            custom,
            choice,
            ..
        } = *event
        else {
            return;
        };
        if job.opens(call_id, name) && !(provider_executed || custom) {
            let begun = self.begin(job, choice, (call_id, name), "");
            self.parts.slot(part).call = Some(begun);
        }
    }

    pub(super) fn begun(&mut self, part: u32) -> Option<&mut Begun> {
        self.parts.get_mut(&part)?.call.as_mut()
    }

    fn begin(
        &mut self,
        job: &mut Job,
        index: i32,
        (call_id, name): (&str, &str),
        arguments: &str,
    ) -> Begun {
        let choice = self.choice(index);
        let place = choice.next;
        choice.next += 1;
        choice.waiting.insert(call_id.to_owned());
        let to = self.begin_chunk(job, index);
        to.raw("{\"tool_calls\":[{\"index\":").number(place);
        to.raw(",\"id\":").string(call_id);
        to.raw(",\"type\":\"function\",\"function\":{\"name\":");
        to.string(name).raw(",\"arguments\":").string(arguments);
        to.raw("}}]}").raw(LAST).end();
        Begun {
            index: place,
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            reset: false,
        }
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
        self.piece(job, (delta.choice, index), delta.text);
    }

    fn piece(&mut self, job: &mut Job, (choice, index): (i32, i64), text: &str) {
        if text.is_empty() {
            return;
        }
        let to = self.begin_chunk(job, choice);
        to.raw("{\"tool_calls\":[{\"index\":").number(index);
        to.raw(",\"function\":{\"arguments\":").string(text);
        to.raw("}}]}").raw(LAST).end();
    }

    pub(super) fn call(&mut self, job: &mut Job, event: &Event<'_>) {
        let Some(call) = &Call::of(event) else {
            return;
        };
        job.takes(call.call_id);
        let part = self.parts.get_mut(&call.part).map(std::mem::take);
        self.parts.remove(&call.part);
        match part.and_then(|part| Some((part.told, part.call?))) {
            Some((told, begun)) => self.end_call(job, call, &told, &begun),
            None if job.writes(call) => {
                if call.refused {
                    job.losses.note("refused_call");
                }
                let head = (call.call_id, call.name);
                self.begin(job, call.choice, head, &call.object_text());
            }
            None => {}
        }
    }

    /// What of a call is still to be written.
    fn end_call(&mut self, job: &mut Job, call: &Call<'_>, told: &str, begun: &Begun) {
        let kept = begun.call_id == call.call_id && begun.name == call.name;
        if call.is_whole() && (!kept || call.provider_executed || call.custom) {
            return self.give_up(job);
        }
        if call.refused {
            job.losses.note("refused_call");
        }
        let text = call.text_behind(told);
        match text.strip_prefix(told) {
            Some(rest) => self.piece(job, (call.choice, begun.index), rest),
            // Cut, or no JSON: what was passed on is what there is.
            None if !call.is_whole() => {}
            None if is_same(told, &text) => job.losses.note("arguments_spelling"),
            None => self.give_up(job),
        }
    }
}
