//! Splits text with inline `<think>` tags into reasoning and visible text as it arrives.
//!
//! The module is used only if `inline_reasoning` is set. A tag may be split across deltas. A `</think>` before any
//! other tag is an orphan. If there is an orphan, the prompt template contained the opening tag, so all text before the
//! orphan is reasoning. A block is dropped if it repeats the text of a separate reasoning field. Whitespace at both
//! ends is ignored in this comparison.

use crate::json::Text;
use std::collections::VecDeque;
use std::mem;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ThinkPiece {
    Text(Text<'static>),
    Reasoning(Text<'static>),
    /// A closing tag came before any other tag, so all earlier text was reasoning.
    Orphan,
    /// A block repeated the text of a reasoning field and was dropped.
    Repeated,
    /// The text contained half of a surrogate pair that later text cannot complete.
    Lone,
}

/// Splits the text of one choice.
#[derive(Debug, Default)]
pub(crate) struct Think {
    inside: bool,
    seen_tag: bool,
    /// Held-back text that may be the beginning of a tag.
    held: String,
    twin: DuplicateReasoning,
}

impl Think {
    /// Records the text of a separate reasoning field. A block that repeats this text is dropped.
    pub(crate) fn field(&mut self, text: &str) {
        self.twin.expected.push_back(text.to_owned());
    }

    /// Splits one piece of text.
    pub(crate) fn feed(&mut self, text: &Text<'_>) -> Vec<ThinkPiece> {
        let mut lead_low = text.lead_low;
        let mut lone = text.lone;
        let joined = (!self.held.is_empty()).then(|| {
            let mut joined = mem::take(&mut self.held);
            // A low surrogate after held-back text cannot become part of a surrogate pair.
            if lead_low.take().is_some() {
                joined.push(char::REPLACEMENT_CHARACTER);
                lone = true;
            }
            joined + &text.body
        });
        let mut out: Vec<ThinkPiece> = lone.then_some(ThinkPiece::Lone).into_iter().collect();
        let mut remaining = joined.as_deref().unwrap_or(&text.body);
        loop {
            let Some((before, tag, after)) = self.next_tag(remaining) else {
                // Hold back text that may be the beginning of a tag, unless half of a surrogate pair follows it.
                let keep = if text.tail_high.is_none() {
                    partial(remaining)
                } else {
                    0
                };
                let (shown, held) = remaining
                    .split_at_checked(remaining.len() - keep)
                    .unwrap_or((remaining, ""));
                self.push_text(&mut out, whole(shown, lead_low.take(), text.tail_high));
                held.clone_into(&mut self.held);
                break;
            };
            self.push_text(&mut out, whole(before, lead_low.take(), None));
            if tag == CLOSE && !self.inside {
                out.push(ThinkPiece::Orphan);
            } else {
                if tag == CLOSE && self.twin.close() {
                    out.push(ThinkPiece::Repeated);
                }
                self.inside = tag == OPEN;
            }
            self.seen_tag = true;
            remaining = after;
            if remaining.is_empty() && text.tail_high.is_none() {
                break;
            }
        }
        out
    }

    /// Returns the held-back text. Other output of the choice follows, so the text cannot be the beginning of a tag.
    pub(crate) fn flush(&mut self) -> Vec<ThinkPiece> {
        let mut out = Vec::new();
        let held = mem::take(&mut self.held);
        self.push_text(&mut out, whole(&held, None, None));
        out
    }

    /// Ends the choice and returns the held-back text. An unclosed block that only repeats a reasoning field is dropped
    /// like a closed block.
    pub(crate) fn end(&mut self) -> Vec<ThinkPiece> {
        let mut out = self.flush();
        if self.inside && self.twin.close() {
            out.push(ThinkPiece::Repeated);
        }
        out
    }

    /// Finds the next tag that is valid in the current state. Returns the text before the tag, the tag, and the text
    /// after the tag.
    fn next_tag<'t>(&self, text: &'t str) -> Option<(&'t str, &'static str, &'t str)> {
        let cut = |tag: &'static str| {
            text.split_once(tag)
                .map(|(before, after)| (before, tag, after))
        };
        if self.inside {
            return cut(CLOSE);
        }
        let open = cut(OPEN);
        match (&open, cut(CLOSE).filter(|_| !self.seen_tag)) {
            (None, close) => close,
            (Some((before, ..)), Some(close)) if close.0.len() < before.len() => Some(close),
            _ => open,
        }
    }

    fn push_text(&mut self, out: &mut Vec<ThinkPiece>, text: Text<'static>) {
        if text.is_empty() {
            return;
        }
        if !self.inside {
            out.push(ThinkPiece::Text(text));
        } else if let Some(text) = self.twin.novel(text) {
            out.push(ThinkPiece::Reasoning(text));
        }
    }
}

fn whole(body: &str, lead_low: Option<u16>, tail_high: Option<u16>) -> Text<'static> {
    Text {
        lead_low,
        tail_high,
        ..Text::plain(body).into_owned()
    }
}

/// Returns the number of bytes at the end of the text that may be the beginning of a tag.
fn partial(text: &str) -> usize {
    // Both tags contain a single `<`, so only the last `<` can begin an incomplete tag.
    let end = text
        .rfind('<')
        .and_then(|at| text.get(at..))
        .unwrap_or_default();
    let begins = end.len() < CLOSE.len() && (OPEN.starts_with(end) || CLOSE.starts_with(end));
    if begins { end.len() } else { 0 }
}

/// Splits a complete text. Returns the reasoning and the visible text.
pub(crate) fn split_whole(text: &str) -> (String, String) {
    let (mut thought, mut shown) = (String::new(), String::new());
    let mut remaining = text;
    if let Some((before, after)) = text
        .split_once(CLOSE)
        .filter(|(before, _)| !before.contains(OPEN))
    {
        thought.push_str(before);
        remaining = after;
    }
    while let Some((before, block)) = remaining.split_once(OPEN) {
        shown.push_str(before);
        let (block, after) = block.split_once(CLOSE).unwrap_or((block, ""));
        thought.push_str(block);
        remaining = after;
    }
    shown.push_str(remaining);
    (thought, shown)
}

/// Returns true if Python's `str.strip` removes the character. Both backends must compare the same text.
pub(crate) fn is_white(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Compares the text of a `<think>` block with the text of a separate reasoning field. Whitespace at both ends is
/// ignored.
///
/// The comparison takes linear time, because each character of either text is examined once. The block is held back
/// while it matches the field. At the first difference, the complete held-back text is released.
#[derive(Debug, Default)]
struct DuplicateReasoning {
    /// Text of the field that no block has repeated yet.
    expected: VecDeque<String>,
    /// Number of bytes in the first expected text that have already been repeated.
    offset: usize,
    /// Held-back text of the block, which equals the beginning of the field.
    held: String,
    /// True if the block has repeated more than whitespace.
    matched: bool,
    /// True if this block differs from the field.
    parted: bool,
}

impl DuplicateReasoning {
    /// Returns the text of the block that can be emitted now, or `None` while the block repeats the field.
    fn novel(&mut self, mut text: Text<'static>) -> Option<Text<'static>> {
        if self.parted {
            return Some(text);
        }
        if text.lead_low.is_none() && text.tail_high.is_none() && self.repeats(&text.body) {
            self.held.push_str(&text.body);
            return None;
        }
        self.parted = true;
        if !self.held.is_empty() {
            let mut body = mem::take(&mut self.held);
            if text.lead_low.take().is_some() {
                body.push(char::REPLACEMENT_CHARACTER);
                text.lone = true;
            }
            body.push_str(&text.body);
            text.body = body.into();
        }
        Some(text)
    }

    /// Ends the block. Returns true if the block is dropped, because it repeated earlier reasoning.
    fn close(&mut self) -> bool {
        let dropped = !self.held.is_empty() && self.matched;
        self.held.clear();
        self.matched = false;
        self.parted = false;
        dropped
    }

    fn repeats(&mut self, text: &str) -> bool {
        let mut remaining = text;
        if !self.matched {
            remaining = remaining.trim_start_matches(is_white);
            self.skip_white();
        }
        while !remaining.is_empty() {
            let Some(first) = self.expected.front() else {
                // Only whitespace may follow the repeated text. If other text follows, the block differs from the
                // field.
                return remaining.chars().all(is_white) && self.matched;
            };
            let left = first.get(self.offset..).unwrap_or_default();
            if let Some(after) = remaining.strip_prefix(left) {
                remaining = after;
                self.expected.pop_front();
                self.offset = 0;
            } else if left.starts_with(remaining) {
                self.offset += remaining.len();
                remaining = "";
            } else {
                return false;
            }
            self.matched = true;
        }
        !self.expected.is_empty() || self.matched
    }

    fn skip_white(&mut self) {
        while let Some(first) = self.expected.front() {
            let left = first
                .get(self.offset..)
                .unwrap_or_default()
                .trim_start_matches(is_white);
            if !left.is_empty() {
                self.offset = first.len() - left.len();
                return;
            }
            self.expected.pop_front();
            self.offset = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(texts: &[&str]) -> (String, String) {
        let mut think = Think::default();
        let mut pieces: Vec<ThinkPiece> = texts
            .iter()
            .flat_map(|text| think.feed(&Text::plain(text)))
            .collect();
        pieces.extend(think.end());
        let (mut shown, mut thought) = (String::new(), String::new());
        for piece in pieces {
            match piece {
                ThinkPiece::Text(text) => shown.push_str(&text.body),
                ThinkPiece::Reasoning(text) => thought.push_str(&text.body),
                ThinkPiece::Orphan => thought.push_str(&mem::take(&mut shown)),
                ThinkPiece::Repeated | ThinkPiece::Lone => {}
            }
        }
        (shown, thought)
    }

    #[test]
    fn tags_may_be_split_anywhere() {
        let whole = "<think>hm <b</think>hi</think> < <thin";
        for second in 0..whole.len() {
            for first in 0..second {
                let (start, end) = whole.split_at(second);
                let (start, middle) = start.split_at(first);
                let texts = [start, middle, end];
                let expected = ("hi</think> < <thin".to_owned(), "hm <b".to_owned());
                assert_eq!(split(&texts), expected, "{texts:?}");
            }
        }
    }

    #[test]
    fn an_orphan_close_makes_the_text_before_it_reasoning() {
        let pair = |shown: &str, thought: &str| (shown.to_owned(), thought.to_owned());
        assert_eq!(split(&["hm</th", "ink>hi"]), pair("hi", "hm"));
        assert_eq!(split(&["hm</think>hi</think>"]), pair("hi</think>", "hm"));
        assert_eq!(split(&["<think>hm", "m"]), pair("", "hmm"));
        assert_eq!(
            split_whole("hm</think>hi<think>m</think>!"),
            ("hmm".to_owned(), "hi!".to_owned())
        );
    }

    #[test]
    fn a_block_that_repeats_the_reasoning_field_is_left_out() {
        let mut think = Think::default();
        think.field(" h");
        think.field("m");
        let pieces = think.feed(&Text::plain("<think>\nhm\n</think>hi"));
        assert_eq!(
            pieces,
            [
                ThinkPiece::Repeated,
                ThinkPiece::Text(whole("hi", None, None))
            ]
        );
        let mut think = Think::default();
        think.field("hm");
        assert_eq!(think.feed(&Text::plain("<think>h")), []);
        assert_eq!(
            think.feed(&Text::plain("x</think>")),
            [ThinkPiece::Reasoning(whole("hx", None, None))]
        );
    }
}
