//! The labels under which the deltas of one text part came, and what closes under one label say of it.
//!
//! Some gateways number every delta (P28), some number parts that no event announces. Both are read as one part; only a
//! close or the list of the item shows what a label means. Positions and texts; no item and no event.

/// A part with more runs than this has a new label in every delta: no label means anything.
const MAX_RUNS: usize = 64;

/// The labels of one part.
#[derive(Clone, Debug, Default)]
pub enum Labels {
    #[default]
    One,
    Several(Box<Runs>),
    TooMany,
}

/// Consecutive pieces of one label, and the closes that came under a label.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Label and start; in order.
    runs: Vec<(Option<i64>, usize)>,
    /// Label and text, in order of arrival.
    closes: Vec<(Option<i64>, String)>,
}

impl Labels {
    /// The next delta, after `length` bytes of text, has another label than the one before.
    pub fn change(&mut self, before: Option<i64>, label: Option<i64>, length: usize) {
        match self {
            Labels::One if length > 0 => {
                *self = Labels::Several(Box::new(Runs {
                    runs: vec![(before, 0), (label, length)],
                    closes: Vec::new(),
                }));
            }
            Labels::Several(all) if all.runs.len() < MAX_RUNS => all.runs.push((label, length)),
            Labels::Several(_) => *self = Labels::TooMany,
            Labels::One | Labels::TooMany => {}
        }
    }

    pub fn are_several(&self) -> bool {
        !matches!(self, Labels::One)
    }

    pub fn has(&self, label: Option<i64>) -> bool {
        matches!(self, Labels::Several(all) if all.runs.iter().any(|(known, _)| *known == label))
    }

    /// Whether the text of that label alone is `value`.
    pub fn is_own_text(&self, label: Option<i64>, text: &str, value: &str) -> bool {
        let Labels::Several(all) = self else {
            return false;
        };
        let mut rest = value;
        for (known, piece) in all.pieces(text) {
            if known == label {
                let Some(after) = rest.strip_prefix(piece) else {
                    return false;
                };
                rest = after;
            }
        }
        rest.is_empty() && self.has(label)
    }

    /// A close came under that label. False if the label does not address a piece of the part.
    pub fn note_close(&mut self, label: Option<i64>, value: &str) -> bool {
        if !self.has(label) {
            return false;
        }
        let Labels::Several(all) = self else {
            return false;
        };
        match all.closes.iter_mut().find(|(known, _)| *known == label) {
            Some((_, known)) => value.clone_into(known),
            None => all.closes.push((label, value.to_owned())),
        }
        true
    }

    pub fn has_closes(&self) -> bool {
        matches!(self, Labels::Several(all) if !all.closes.is_empty())
    }

    /// The text of the part by its closes: of one label that says anything else than its own text, the whole.
    pub fn closed_text(&self, text: &str) -> Option<String> {
        let Labels::Several(all) = self else {
            return None;
        };
        match all.closes.as_slice() {
            [] => return None,
            [(label, value)] if !self.is_own_text(*label, text, value) => {
                return Some(value.clone());
            }
            _ => {}
        }
        let mut whole = String::with_capacity(text.len());
        let mut written = Vec::new();
        for (label, piece) in all.pieces(text) {
            let close = all.closes.iter().find(|(known, _)| *known == label);
            match close {
                Some(_) if written.contains(&label) => {}
                Some((_, value)) => {
                    whole.push_str(value);
                    written.push(label);
                }
                None => whole.push_str(piece),
            }
        }
        Some(whole)
    }
}

impl Runs {
    fn pieces<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (Option<i64>, &'a str)> {
        let ends = self.runs.iter().skip(1).map(|(_, start)| *start);
        let ends = ends.chain([text.len()]);
        let pieces = self.runs.iter().zip(ends);
        pieces.map(|((label, start), end)| (*label, text.get(*start..end).unwrap_or_default()))
    }
}
