//! Stores the sub-indexes ("labels") of the deltas of one text part, and the closing text of each label.
//!
//! Some gateways number every delta; others use the numbers for parts that no event announced. The deltas are read as
//! one part in both cases, because only a closing event or the content list of the item shows which case applies.

/// Maximum number of runs, that is, of consecutive deltas with the same label. A part with more runs is assumed to have
/// a new label in every delta, so its labels are ignored.
const MAX_RUNS: usize = 64;

/// The labels of the deltas of one part.
#[derive(Clone, Debug, Default)]
pub enum Labels {
    #[default]
    One,
    Several(Box<Runs>),
    TooMany,
}

/// The runs of text with the same label, and the closing text of each label.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The label of each run, and the offset in the part's text at which the run starts.
    runs: Vec<(Option<i64>, usize)>,
    /// The closing texts and their labels, in order of arrival.
    closes: Vec<(Option<i64>, String)>,
    /// The labels that only closing events have, each with the label of the deltas that have the same text.
    aliases: Vec<(Option<i64>, Option<i64>)>,
}

impl Labels {
    /// Records that the label changes from `before` to `label` after `length` bytes of the part's text.
    pub fn change(&mut self, before: Option<i64>, label: Option<i64>, length: usize) {
        match self {
            Labels::One if length > 0 => {
                *self = Labels::Several(Box::new(Runs {
                    runs: vec![(before, 0), (label, length)],
                    ..Runs::default()
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
        matches!(self, Labels::Several(all) if all.has(label))
    }

    /// Returns the label of each run of deltas. The result is empty unless there are several runs.
    pub fn known(&self) -> impl Iterator<Item = Option<i64>> {
        let runs = match self {
            Labels::Several(all) => all.runs.as_slice(),
            Labels::One | Labels::TooMany => &[],
        };
        runs.iter().map(|(label, _)| *label)
    }

    /// Returns the closing text of the label, or `None` if the label has none.
    pub fn closing_text(&self, label: Option<i64>) -> Option<&str> {
        match self {
            Labels::Several(all) => all.close_of(all.meant(label)),
            Labels::One | Labels::TooMany => None,
        }
    }

    pub fn is_closed(&self, label: Option<i64>) -> bool {
        matches!(self, Labels::Several(all) if all.close_of(all.meant(label)).is_some())
    }

    /// Returns true if `value` equals the closing text of the label or, if the label has no closing text, the text of
    /// the label's deltas. `text`: the text of the part.
    pub fn is_own_text(&self, label: Option<i64>, text: &str, value: &str) -> bool {
        let Labels::Several(all) = self else {
            return false;
        };
        let label = all.meant(label);
        match all.close_of(label) {
            Some(known) => known == value,
            None => all.has(label) && all.is_streamed(label, text, value),
        }
    }

    /// Stores the closing text of a label. Returns false and stores nothing if no run has this label or this text.
    ///
    /// If no delta had this label, the closing text is stored for the first label that has the same text and no closing
    /// text yet.
    pub fn note_close(&mut self, label: Option<i64>, text: &str, value: &str) -> bool {
        let Labels::Several(all) = self else {
            return false;
        };
        if !all.has(label) {
            let open = |known: &Option<i64>| {
                all.close_of(*known).is_none() && all.is_streamed(*known, text, value)
            };
            let mut labels = all.runs.iter().map(|(known, _)| *known);
            let Some(same) = labels.find(open) else {
                return false;
            };
            all.aliases.push((label, same));
        }
        let label = all.meant(label);
        match all.closes.iter_mut().find(|(known, _)| *known == label) {
            Some((_, known)) => value.clone_into(known),
            None => all.closes.push((label, value.to_owned())),
        }
        true
    }

    /// Empties all runs, because the part's text was replaced. `length` is the length of the new text. The new text
    /// belongs to no label.
    pub fn replaced(&mut self, length: usize) {
        if let Labels::Several(all) = self {
            all.runs.iter_mut().for_each(|(_, start)| *start = length);
        }
    }

    pub fn has_closes(&self) -> bool {
        matches!(self, Labels::Several(all) if !all.closes.is_empty())
    }

    /// Returns the text of the part, in which closing texts replace the deltas with the same label. Returns `None` if
    /// no closing text arrived. If only one closing text arrived, and this text differs from the deltas with its label,
    /// the closing text is the text of the whole part.
    pub fn closed_text(&self, text: &str) -> Option<String> {
        let Labels::Several(all) = self else {
            return None;
        };
        match all.closes.as_slice() {
            [] => return None,
            [(label, value)] if !all.is_streamed(*label, text, value) => {
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
    fn has(&self, label: Option<i64>) -> bool {
        self.runs.iter().any(|(known, _)| *known == label)
            || self.aliases.iter().any(|(alias, _)| *alias == label)
    }

    fn meant(&self, label: Option<i64>) -> Option<i64> {
        let alias = self.aliases.iter().find(|(alias, _)| *alias == label);
        alias.map_or(label, |(_, meant)| *meant)
    }

    fn close_of(&self, label: Option<i64>) -> Option<&str> {
        let close = self.closes.iter().find(|(known, _)| *known == label);
        close.map(|(_, value)| value.as_str())
    }

    /// Returns true if `value` is the concatenated text of all deltas with this label.
    fn is_streamed(&self, label: Option<i64>, text: &str, value: &str) -> bool {
        let mut rest = value;
        for (_, piece) in self.pieces(text).filter(|(known, _)| *known == label) {
            let Some(after) = rest.strip_prefix(piece) else {
                return false;
            };
            rest = after;
        }
        rest.is_empty()
    }

    fn pieces<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (Option<i64>, &'a str)> {
        let ends = self.runs.iter().skip(1).map(|(_, start)| *start);
        let ends = ends.chain([text.len()]);
        let pieces = self.runs.iter().zip(ends);
        pieces.map(|((label, start), end)| (*label, text.get(*start..end).unwrap_or_default()))
    }
}
