//! What was not carried, in order with what the parser says: the diagnostics of a stream that is written again.

use crate::out::Diagnostic;
use crate::spec::Code;

/// The losses of one stream.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// How many diagnostics the parser said so far.
    pub(crate) said: u64,
    all: Vec<Loss>,
}

/// What was not carried, behind so many diagnostics of the parser.
#[derive(Debug)]
struct Loss {
    id: &'static str,
    behind: u64,
    place: (u64, u64),
}

impl Lost {
    pub(crate) fn add(&mut self, id: &'static str, place: (u64, u64)) {
        self.all.push(Loss {
            id,
            behind: self.said,
            place,
        });
    }

    /// The diagnostics that are kept, `most` of them: the parser's, and the losses where they happened.
    pub(crate) fn among(&self, parsed: &[Diagnostic], most: usize) -> Vec<Diagnostic> {
        let mut all = Vec::new();
        let mut losses = self.all.iter().peekable();
        for (place, diagnostic) in (0..self.said).zip(parsed) {
            while let Some(loss) = losses.next_if(|loss| loss.behind <= place) {
                all.push(loss.diagnostic());
            }
            all.push(diagnostic.clone());
        }
        all.extend(losses.map(Loss::diagnostic));
        all.truncate(most);
        all
    }

    /// How many there were, kept or not.
    pub(crate) fn count(&self) -> u64 {
        self.said + self.all.len() as u64
    }
}

impl Loss {
    fn diagnostic(&self) -> Diagnostic {
        Diagnostic {
            code: Code::NOT_CARRIED,
            byte_offset: self.place.0,
            event_ordinal: self.place.1,
            part: None,
            detail: self.id.to_owned(),
        }
    }
}
