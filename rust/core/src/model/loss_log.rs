//! Records the conversion losses of a rewritten stream, and merges them with the parser's diagnostics in order.

use crate::model::output::Diagnostic;
use crate::model::spec::Code;

/// The losses and rewrites of one stream, in order.
#[derive(Debug, Default)]
pub(crate) struct LossLog {
    /// Number of diagnostics that the parser has reported.
    pub(crate) parser_count: u64,
    all: Vec<Loss>,
}

/// One loss. `after` is the number of diagnostics that the parser had reported before the loss.
#[derive(Debug)]
struct Loss {
    code: Code,
    detail: &'static str,
    after: u64,
    position: (u64, u64),
}

impl LossLog {
    pub(crate) fn add(&mut self, code: Code, detail: &'static str, position: (u64, u64)) {
        self.all.push(Loss {
            code,
            detail,
            after: self.parser_count,
            position,
        });
    }

    /// Merges the diagnostics of the parser with the losses in order of occurrence. Returns at most `most` diagnostics.
    pub(crate) fn merged_with(&self, parsed: &[Diagnostic], most: usize) -> Vec<Diagnostic> {
        let mut all = Vec::new();
        let mut losses = self.all.iter().peekable();
        for (position, diagnostic) in (0..self.parser_count).zip(parsed) {
            while let Some(loss) = losses.next_if(|loss| loss.after <= position) {
                all.push(loss.diagnostic());
            }
            all.push(diagnostic.clone());
        }
        all.extend(losses.map(Loss::diagnostic));
        all.truncate(most);
        all
    }

    /// Returns the number of losses and parser diagnostics, including diagnostics that were not stored.
    pub(crate) fn count(&self) -> u64 {
        self.parser_count + self.all.len() as u64
    }
}

impl Loss {
    fn diagnostic(&self) -> Diagnostic {
        Diagnostic {
            code: self.code,
            byte_offset: self.position.0,
            event_ordinal: self.position.1,
            part: None,
            detail: self.detail.to_owned(),
        }
    }
}
