//! Emits the closing event of every part in its current state. A `Response` is built from these events.
//!
//! The state of the assembler is not changed. Parts are in order of first appearance, except that calls are in their
//! final order relative to each other.

use crate::assemble::choice::Choice;
use crate::assemble::finish_reason::conclude;
use crate::assemble::part::attachment::Attachments;
use crate::assemble::part::attachment::Record;
use crate::assemble::part::call::Call;
use crate::assemble::part::call_events::final_event;
use crate::assemble::part::text_parts::Channel;
use crate::assemble::part::text_parts::TextPart;
use crate::assemble::rule_context::Shared;
use crate::model::event::Event;
use crate::model::event::Sink;

enum SnapshotPart<'a> {
    Attachments(&'a Record),
    /// The start event of a text part with an item id, which the closing event does not contain.
    Named(&'a TextPart, i32),
    Text(&'a TextPart, i32),
    Call(&'a Call, i32),
}

/// Emits the closing event of every part of every choice. For a text part with an item id, the start event is emitted
/// before the closing event.
pub fn emit_parts(
    shared: &Shared,
    choices: &[&Choice],
    attached: &Attachments,
    sink: &mut dyn Sink,
) {
    let mut parts: Vec<(u32, SnapshotPart<'_>)> = Vec::new();
    let records = attached.records.iter();
    parts.extend(records.map(|(part, record)| (*part, SnapshotPart::Attachments(record))));
    for choice in choices {
        let index = choice.index;
        let texts = || choice.textual.parts.iter().filter(|part| !part.void);
        let named = texts().filter(|part| part.channel == Channel::Text && part.item_id.is_some());
        parts.extend(named.map(|part| (part.part, SnapshotPart::Named(part, index))));
        let texts = texts();
        parts.extend(texts.map(|part| (part.part, SnapshotPart::Text(part, index))));
        let calls = choice.shown().into_iter();
        let calls = calls.filter_map(|slot| choice.get(slot));
        let calls: Vec<&Call> = calls
            .filter(|call| !(call.tentative && call.is_empty()))
            .collect();
        let mut positions: Vec<u32> = calls.iter().map(|call| call.part).collect();
        positions.sort_unstable();
        let calls = calls
            .into_iter()
            .map(|call| SnapshotPart::Call(call, index));
        parts.extend(positions.into_iter().zip(calls));
    }
    parts.sort_by_key(|(position, _)| *position);
    for (position, part) in parts {
        match part {
            SnapshotPart::Attachments(record) => sink.event(&record.event(position)),
            SnapshotPart::Named(part, choice) => {
                part.started(choice, None, |event| sink.event(event))
            }
            SnapshotPart::Text(part, choice) => part.done(choice, |event| sink.event(event)),
            SnapshotPart::Call(call, choice) => {
                final_event(shared, call, choice, |event| sink.event(event));
            }
        }
    }
}

/// Emits the `Finished` event of a choice. If the choice has not ended, the reason is the one that would be emitted
/// now.
pub fn emit_finished(choice: &Choice, give: impl FnOnce(&Event<'_>)) {
    let reason = choice.finish.concluded;
    let reason = reason.unwrap_or_else(|| conclude(&choice.finish, &choice.client_calls()));
    let metadata = choice.metadata.text();
    give(&Event::Finished {
        reason,
        raw_reason: choice.finish.raw.as_deref(),
        choice: choice.index,
        metadata: metadata.as_deref(),
    });
}
