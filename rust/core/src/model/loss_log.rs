//! Conversion losses of a rewritten stream, in order with the diagnostics of the parser.

use crate::model::output::Diagnostic;
use crate::model::spec::Code;

/// The losses and rewrites of one stream.
#[derive(Debug, Default)]
pub(crate) struct LossLog {
    /// Number of diagnostics that the parser reported so far.
    pub(crate) said: u64,
    all: Vec<Word>,
}

/// One loss; `behind` is the number of parser diagnostics reported before it.
#[derive(Debug)]
struct Word {
    code: Code,
    detail: &'static str,
    behind: u64,
    place: (u64, u64),
}

impl LossLog {
    pub(crate) fn add(&mut self, code: Code, detail: &'static str, place: (u64, u64)) {
        self.all.push(Word {
            code,
            detail,
            behind: self.said,
            place,
        });
    }

    /// Returns at most `most` diagnostics: those of the parser with the losses inserted in order.
    pub(crate) fn among(&self, parsed: &[Diagnostic], most: usize) -> Vec<Diagnostic> {
        let mut all = Vec::new();
        let mut words = self.all.iter().peekable();
        for (place, diagnostic) in (0..self.said).zip(parsed) {
            while let Some(word) = words.next_if(|word| word.behind <= place) {
                all.push(word.diagnostic());
            }
            all.push(diagnostic.clone());
        }
        all.extend(words.map(Word::diagnostic));
        all.truncate(most);
        all
    }

    /// Returns the number of diagnostics and losses, including those that were not stored.
    pub(crate) fn count(&self) -> u64 {
        self.said + self.all.len() as u64
    }
}

impl Word {
    fn diagnostic(&self) -> Diagnostic {
        Diagnostic {
            code: self.code,
            byte_offset: self.place.0,
            event_ordinal: self.place.1,
            part: None,
            detail: self.detail.to_owned(),
        }
    }
}
