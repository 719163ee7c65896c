//! The answer as it stands: the authoritative close event of every part, from which a `Response` is folded.
//!
//! Reads everything, changes nothing. Parts stand in order of first sight, but calls among themselves in their final order.

use super::announce::final_event;
use super::call::Call;
use super::choice::Choice;
use super::finish::conclude;
use super::records::FileRecord;
use super::shared::Shared;
use super::textual::TextPart;
use crate::event::{Event, Sink};

enum Part<'a> {
    File(&'a FileRecord),
    Text(&'a TextPart, i32),
    Call(&'a Call, i32),
}

/// The close event of every part of every choice.
pub fn emit_parts(shared: &Shared, choices: &[&Choice], files: &[FileRecord], sink: &mut dyn Sink) {
    let mut parts: Vec<(u32, Part<'_>)> = Vec::new();
    parts.extend(files.iter().map(|file| (file.part, Part::File(file))));
    for choice in choices {
        let index = choice.index;
        let texts = choice.textual.parts.iter().filter(|part| !part.void);
        parts.extend(texts.map(|part| (part.part, Part::Text(part, index))));
        let calls = choice.shown().into_iter();
        let calls = calls.filter_map(|slot| choice.get(slot));
        let calls: Vec<&Call> = calls
            .filter(|call| !(call.tentative && call.is_empty()))
            .collect();
        let mut places: Vec<u32> = calls.iter().map(|call| call.part).collect();
        places.sort_unstable();
        let calls = calls.into_iter().map(|call| Part::Call(call, index));
        parts.extend(places.into_iter().zip(calls));
    }
    parts.sort_by_key(|(place, _)| *place);
    for (_, part) in parts {
        match part {
            Part::File(file) => sink.event(&file.event()),
            Part::Text(part, choice) => part.done(choice, |event| sink.event(event)),
            Part::Call(call, choice) => {
                final_event(shared, call, choice, |event| sink.event(event));
            }
        }
    }
}

/// The end of a choice, as it was told or would be.
pub fn emit_finished(choice: &Choice, give: impl FnOnce(&Event<'_>)) {
    let reason = choice.finish.concluded;
    let reason = reason.unwrap_or_else(|| conclude(&choice.finish, !choice.shown().is_empty()));
    let metadata = choice.metadata.text();
    give(&Event::Finished {
        reason,
        raw_reason: choice.finish.raw.as_deref(),
        choice: choice.index,
        metadata: metadata.as_deref(),
    });
}
