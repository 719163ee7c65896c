//! What is said of what was written, in order with what the parser says: the diagnostics of a stream that is written again.

use crate::model::output::Diagnostic;
use crate::model::spec::Code;

/// What was said of one stream beside the parser.
#[derive(Debug, Default)]
pub(crate) struct LossLog {
    /// How many diagnostics the parser said so far.
    pub(crate) said: u64,
    all: Vec<Word>,
}

/// Behind so many diagnostics of the parser.
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

    /// The diagnostics that are kept, `most` of them: the parser's, and these where they were said.
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

    /// How many there were, kept or not.
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
