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
    /// Free-form text, as only this dialect's own readers know it.
    custom: bool,
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
        let foreign = provider_executed || (custom && !job.passed.own);
        if job.opens(call_id, name) && !foreign {
            let sent = job.passed.index;
            let begun = self.begin(job, choice, (call_id, name, custom), "", sent);
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
        (call_id, name, custom): (&str, &str, bool),
        arguments: &str,
        sent: Option<i64>,
    ) -> Begun {
        let choice = self.choice(index);
        let sent = sent.filter(|sent| *sent >= 0 && !choice.indexes.contains(sent));
        let place = sent.unwrap_or(choice.next);
        choice.indexes.insert(place);
        choice.next = choice.next.max(place + 1);
        choice.written += 1;
        choice.waiting.insert(call_id.to_owned());
        let to = self.begin_chunk(job, index);
        to.raw("{\"tool_calls\":[{\"index\":").number(place);
        to.raw(",\"id\":").string(call_id);
        let (kind, text) = names(custom);
        to.raw(",\"type\":\"").raw(kind).raw("\",\"").raw(kind);
        to.raw("\":{\"name\":")
            .string(name)
            .raw(text)
            .string(arguments);
        to.raw("}}]}").raw(LAST).end();
        Begun {
            index: place,
            custom,
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
        let place = (delta.choice, begun.index, begun.custom);
        part.told.push_str(delta.text);
        self.piece(job, place, delta.text);
    }

    fn piece(&mut self, job: &mut Job, (choice, index, custom): (i32, i64, bool), text: &str) {
        if text.is_empty() {
            return;
        }
        let to = self.begin_chunk(job, choice);
        to.raw("{\"tool_calls\":[{\"index\":").number(index);
        to.raw(if custom {
            ",\"custom\":{\"input\":"
        } else {
            ",\"function\":{\"arguments\":"
        });
        to.string(text);
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
                let own = call.custom && job.passed.own;
                if call.custom && !own {
                    job.losses.note("custom_call");
                }
                if call.refused {
                    job.losses.note("refused_call");
                }
                let head = (call.call_id, call.name, own);
                let text = if own {
                    call.text_behind("")
                } else {
                    call.object_text()
                };
                self.begin(job, call.choice, head, &text, None);
            }
            None => {}
        }
    }

    /// What of a call is still to be written.
    fn end_call(&mut self, job: &mut Job, call: &Call<'_>, told: &str, begun: &Begun) {
        let kept = begun.call_id == call.call_id && begun.name == call.name;
        if call.is_whole() && (!kept || call.provider_executed || call.custom != begun.custom) {
            return self.give_up(job);
        }
        if call.refused {
            job.losses.note("refused_call");
        }
        let text = call.text_behind(told);
        match text.strip_prefix(told) {
            Some(rest) => self.piece(job, (call.choice, begun.index, begun.custom), rest),
            // Cut, or no JSON: what was passed on is what there is.
            None if !call.is_whole() => {}
            None if !call.custom && is_same(told, &text) => job.losses.note("arguments_spelling"),
            None => self.give_up(job),
        }
    }
}

/// The type of an entry, and the member that its text has behind the name.
fn names(custom: bool) -> (&'static str, &'static str) {
    if custom {
        ("custom", ",\"input\":")
    } else {
        ("function", ",\"arguments\":")
    }
}
