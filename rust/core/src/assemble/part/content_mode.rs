//! Removes repeated text if each content delta contains all of the text so far (AM8). The default mode, `delta`, does
//! not remove anything.
//!
//! `cumulative`: a piece that begins with the text so far replaces that text. `auto`: works like `cumulative`, but only
//! once a piece has extended a text of at least `AUTO_FROM` characters. Neither `cumulative` nor `auto` is the default,
//! because real text may happen to repeat itself.

use crate::json::Text;
use crate::model::policy::ContentMode as Mode;
use std::borrow::Cow;

/// Minimum length in characters of a text that `auto` treats as repeated. The next piece may begin with a shorter text
/// by chance, as "and" begins with "a".
pub const AUTO_FROM: usize = 4;

const BLANK: [u32; 5] = [0x20, 0x09, 0x0a, 0x0d, 0x0c];

/// Removes repeated text from the content of one choice. Each comparison takes time proportional to the length of the
/// piece.
#[derive(Clone, Debug)]
pub struct ContentMode {
    cumulative: bool,
    /// A removed repetition has already been reported.
    pub reported: bool,
    /// `is_doubtful` has already returned true.
    doubted: bool,
    /// The code points of the text so far. Each half of a split surrogate pair counts as one code point.
    so_far: Vec<u32>,
}

impl ContentMode {
    pub fn new(mode: Mode) -> Option<ContentMode> {
        (mode != Mode::Delta).then(|| ContentMode {
            cumulative: mode == Mode::Cumulative,
            reported: false,
            doubted: false,
            so_far: Vec::new(),
        })
    }

    /// AM13: returns true if the piece begins with the text so far, but that text is too short to be treated as
    /// repeated. Returns true at most once.
    pub fn is_doubtful(&mut self, text: &Text<'_>) -> bool {
        let length = self.so_far.len();
        if self.doubted || self.cumulative || length == 0 || length >= AUTO_FROM {
            return false;
        }
        let is_blank = |point: &u32| BLANK.contains(point);
        let points: Vec<u32> = points_of(text).take(length + 1).collect();
        self.doubted = points.len() > length
            && points.starts_with(&self.so_far)
            && !self.so_far.iter().all(is_blank);
        self.doubted
    }

    /// Returns the new text in the piece, and true if repeated text was removed.
    pub fn read<'a>(&mut self, text: Text<'a>) -> (Text<'a>, bool) {
        let points = code_points(&text);
        let length = self.so_far.len();
        let enough = if self.cumulative {
            points.len() >= length
        } else {
            points.len() > length && length >= AUTO_FROM
        };
        let new = match points.strip_prefix(self.so_far.as_slice()) {
            Some(new) if enough && length > 0 => new,
            _ => {
                self.so_far.extend(points);
                return (text, false);
            }
        };
        self.cumulative = true;
        self.so_far.extend_from_slice(new);
        let tail_high = text.tail_high.filter(|_| !new.is_empty());
        let body = new.iter().filter_map(|point| char::from_u32(*point));
        let rest = Text {
            body: Cow::Owned(body.collect()),
            lead_low: None,
            tail_high,
            lone: text.lone,
        };
        (rest, true)
    }
}

fn code_points(text: &Text<'_>) -> Vec<u32> {
    points_of(text).collect()
}

fn points_of<'t>(text: &'t Text<'_>) -> impl Iterator<Item = u32> + 't {
    let lead = text.lead_low.map(u32::from);
    let tail = text.tail_high.map(u32::from);
    let body = text.body.chars().map(u32::from);
    lead.into_iter().chain(body).chain(tail)
}
