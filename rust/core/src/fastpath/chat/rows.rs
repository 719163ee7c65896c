//! Processes a row, which is a sequence of complete Chat events that differ only in one short text.
//!
//! One pass finds and matches the events and extracts their texts. All bytes between two texts are known, so a single
//! comparison covers these bytes. A few dozen texts are collected, checked for UTF-8 together, and delivered together.
//! The first event that differs in any other way ends the row and is decoded by the full decoder. This file compares
//! the bytes of a template without interpreting them.

use crate::fastpath::chat::template::Template;
use crate::fastpath::utf8_batch::AT_ONCE;
use crate::fastpath::utf8_batch::Utf8Batch;
use crate::json::token::string_end;
use crate::sse::WholeEvents;

/// Delivers the texts of up to `most` events at the start of `input`, and returns how many events were consumed.
///
/// Each call to `give` receives several texts with their end offsets, and returns how many of these texts it accepted.
pub(crate) fn take(
    template: &Template,
    input: &[u8],
    most: usize,
    mut give: impl FnMut(&str, &[usize]) -> usize,
) -> WholeEvents {
    let mut taken = WholeEvents::default();
    loop {
        let remaining = input.get(taken.bytes..).unwrap_or_default();
        let texts = gather(template, remaining, AT_ONCE.min(most - taken.events));
        let (text, ends) = texts.valid();
        if ends.is_empty() {
            return taken;
        }
        let given = give(text, ends);
        let end = given.checked_sub(1).and_then(|last| ends.get(last));
        taken.events += given;
        taken.bytes += given * template.event_length() + end.copied().unwrap_or_default();
        if given < AT_ONCE {
            return taken;
        }
    }
}

fn gather(template: &Template, input: &[u8], most: usize) -> Utf8Batch {
    let mut texts = Utf8Batch::new();
    let (before, after) = template.around();
    let Some(mut remaining) = input.strip_prefix(before) else {
        return texts;
    };
    while texts.count() < most {
        let Some(text) = remaining.first_chunk() else {
            break;
        };
        let Some((length @ 1.., false)) = string_end(text, 0) else {
            break;
        };
        let following = remaining.get(length..).unwrap_or_default();
        if let Some(next) = following.strip_prefix(&*template.fixed) {
            texts.add(text, length);
            remaining = next;
            continue;
        }
        if following.starts_with(after) {
            // Stop here, because the next event differs or has not arrived yet.
            texts.add(text, length);
        }
        break;
    }
    texts
}
