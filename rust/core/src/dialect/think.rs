//! Inline `<think>` tags: splits a text, as it arrives, into what was thought and what was said.
//!
//! Opt-in. Knows tags and nothing of chunks; a tag may be cut anywhere. Only `</think>` before any opening tag counts as
//! an orphan (a template had opened it): then everything before it was thought.

use crate::json::Text;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(Text<'static>),
    Reasoning(Text<'static>),
    /// The text so far was reasoning.
    Orphan,
    /// A block said what a reasoning field had said; it was left out.
    Repeated,
}

/// The splitter of one choice.
#[derive(Debug, Default)]
pub(crate) struct Think {
    inside: bool,
    /// An opening tag, or an orphan closing one, was seen.
    opened: bool,
    /// The beginning of what may become a tag.
    held: String,
    /// What the reasoning fields of this choice said.
    fields: String,
    /// How much of `fields` the block at hand has repeated, as long as it does.
    repeats: Option<usize>,
}

impl Think {
    /// A reasoning field said so.
    pub(crate) fn field(&mut self, text: &str) {
        self.fields.push_str(text);
    }

    pub(crate) fn feed(&mut self, text: &Text<'_>) -> Vec<Piece> {
        let mut out = Vec::new();
        let joined;
        let mut rest: &str = if self.held.is_empty() {
            &text.body
        } else {
            joined = std::mem::take(&mut self.held) + &text.body;
            &joined
        };
        let mut lead_low = text.lead_low;
        loop {
            let (before, tag, after) = self.next_tag(rest);
            let last = tag.is_none();
            if last && text.tail_high.is_none() {
                // What may be the beginning of a tag waits.
                let (shown, held) = before
                    .split_at_checked(before.len() - partial(before))
                    .unwrap_or((before, ""));
                self.plain(&mut out, piece(shown, lead_low, None));
                held.clone_into(&mut self.held);
            } else {
                self.plain(
                    &mut out,
                    piece(before, lead_low, text.tail_high.filter(|_| last)),
                );
            }
            lead_low = None;
            match tag {
                None => return out,
                Some(OPEN) => {
                    self.inside = true;
                    self.opened = true;
                    self.repeats = (!self.fields.is_empty()).then_some(0);
                }
                Some(_) if self.inside => {
                    self.inside = false;
                    if self.repeats.take().is_some_and(|length| length > 0) {
                        out.push(Piece::Repeated);
                    }
                }
                Some(_) => {
                    self.opened = true;
                    out.push(Piece::Orphan);
                }
            }
            rest = after;
        }
    }

    /// The text ends, or something else comes in between: what was held is text after all.
    pub(crate) fn flush(&mut self) -> Vec<Piece> {
        let mut out = Vec::new();
        let held = std::mem::take(&mut self.held);
        self.plain(&mut out, piece(&held, None, None));
        out
    }

    /// What stands before the next tag that counts, the tag, and what stands behind it.
    fn next_tag<'t>(&self, text: &'t str) -> (&'t str, Option<&'static str>, &'t str) {
        let tag = match (self.inside, self.opened) {
            (true, _) => text.find(CLOSE).map(|at| (at, CLOSE)),
            (false, true) => text.find(OPEN).map(|at| (at, OPEN)),
            (false, false) => {
                let (open, close) = (text.find(OPEN), text.find(CLOSE));
                match (open, close) {
                    (Some(open), Some(close)) if close < open => Some((close, CLOSE)),
                    (Some(open), _) => Some((open, OPEN)),
                    (None, close) => close.map(|close| (close, CLOSE)),
                }
            }
        };
        let split = tag.and_then(|(at, tag)| {
            let (before, behind) = text.split_at_checked(at)?;
            Some((before, Some(tag), behind.strip_prefix(tag)?))
        });
        split.unwrap_or((text, None, ""))
    }

    fn plain(&mut self, out: &mut Vec<Piece>, text: Text<'static>) {
        if text.is_empty() {
            return;
        }
        if !self.inside {
            return out.push(Piece::Text(text));
        }
        if let Some(done) = self.repeats {
            let expected = self.fields.get(done..).unwrap_or_default();
            if text.lead_low.is_none()
                && text.tail_high.is_none()
                && expected.starts_with(text.body.as_ref())
            {
                self.repeats = Some(done + text.body.len());
                return;
            }
            self.repeats = None;
            let kept = self.fields.get(..done).unwrap_or_default().to_owned();
            if !kept.is_empty() {
                out.push(Piece::Reasoning(piece(&kept, None, None)));
            }
        }
        out.push(Piece::Reasoning(text));
    }
}

fn piece(body: &str, lead_low: Option<u16>, tail_high: Option<u16>) -> Text<'static> {
    Text {
        lead_low,
        tail_high,
        ..Text::plain(body).into_owned()
    }
}

/// How many bytes at the end of the text may be the beginning of a tag.
fn partial(text: &str) -> usize {
    let longest = CLOSE.len() - 1;
    (1..=longest.min(text.len()))
        .rev()
        .find(|length| {
            let end = text.get(text.len() - length..).unwrap_or_default();
            !end.is_empty() && (OPEN.starts_with(end) || CLOSE.starts_with(end))
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(texts: &[&str]) -> (String, String) {
        let mut think = Think::default();
        let mut pieces: Vec<Piece> = texts
            .iter()
            .flat_map(|text| think.feed(&Text::plain(text)))
            .collect();
        pieces.extend(think.flush());
        let (mut said, mut thought) = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Text(text) => said.push_str(&text.body),
                Piece::Reasoning(text) => thought.push_str(&text.body),
                Piece::Orphan => thought.push_str(&std::mem::take(&mut said)),
                Piece::Repeated => {}
            }
        }
        (said, thought)
    }

    #[test]
    fn tags_may_be_cut_anywhere() {
        let whole = "<think>hm <b</think>hi</think> < <thin";
        for first in 0..whole.len() {
            for second in first..whole.len() {
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
        assert_eq!(
            split(&["hm</th", "ink>hi"]),
            ("hi".to_owned(), "hm".to_owned())
        );
        assert_eq!(
            split(&["hm</think>hi</think>"]),
            ("hi</think>".to_owned(), "hm".to_owned())
        );
        assert_eq!(
            split(&["<think>hm", "m"]),
            (String::new(), "hmm".to_owned())
        );
    }

    #[test]
    fn a_block_that_repeats_the_reasoning_field_is_left_out() {
        let mut think = Think::default();
        think.field("hm");
        let pieces = think.feed(&Text::plain("<think>hm</think>hi"));
        assert_eq!(
            pieces,
            [Piece::Repeated, Piece::Text(piece("hi", None, None))]
        );
        let mut think = Think::default();
        think.field("hm");
        let pieces = think.feed(&Text::plain("<think>hx</think>"));
        assert_eq!(pieces, [Piece::Reasoning(piece("hx", None, None))]);
    }
}
