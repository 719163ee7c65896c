//! Whole events in a row that differ in one short text only: framing, template and text in one go.
//!
//! From the end of one text to the beginning of the next all bytes are known, so that is one comparison. Texts are put
//! together a few dozen at a time, looked at once whether they are UTF-8, and given away at once. What is not quite like
//! that ends the row, and is left to those who know more. It knows the bytes of a template and nothing of what they mean.

use crate::fastpath::chat::template::Template;
use crate::fastpath::utf8_batch::AT_ONCE;
use crate::fastpath::utf8_batch::Utf8Batch;
use crate::json::token::string_end;
use crate::sse::WholeEvents;

/// Gives the texts of the events that `input` begins with, at most so many: several in one, with the end of each. `give`
/// tells whether they were taken.
pub(crate) fn take(
    template: &Template,
    input: &[u8],
    most: usize,
    mut give: impl FnMut(&str, &[usize]) -> bool,
) -> WholeEvents {
    let mut taken = WholeEvents::default();
    loop {
        let rest = input.get(taken.bytes..).unwrap_or_default();
        let texts = gather(template, rest, AT_ONCE.min(most - taken.events));
        let (text, ends) = texts.valid();
        if ends.is_empty() || !give(text, ends) {
            return taken;
        }
        taken.events += ends.len();
        taken.bytes += ends.len() * template.event_length() + text.len();
        if ends.len() < AT_ONCE {
            return taken;
        }
    }
}

fn gather(template: &Template, input: &[u8], most: usize) -> Utf8Batch {
    let mut texts = Utf8Batch::new();
    let (before, after) = template.around();
    let Some(mut rest) = input.strip_prefix(before) else {
        return texts;
    };
    while texts.count() < most {
        let Some(text) = rest.first_chunk() else {
            break;
        };
        let Some((length @ 1.., false)) = string_end(text, 0) else {
            break;
        };
        let behind = rest.get(length..).unwrap_or_default();
        if let Some(next) = behind.strip_prefix(&*template.fixed) {
            texts.add(text, length);
            rest = next;
            continue;
        }
        if behind.starts_with(after) {
            // The next event is another one, or has not come yet.
            texts.add(text, length);
        }
        break;
    }
    texts
}
