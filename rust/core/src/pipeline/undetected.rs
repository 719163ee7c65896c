//! Holds payloads until the dialect is detected. `dialect::detect` determines which dialect a payload identifies.

use crate::dialect::Dialect;
use crate::dialect::detect;
use crate::dialect::payload::HeldPayload;
use crate::dialect::payload::LocatedPayload;
use crate::dialect::payload_summary;
use crate::json::members;
use crate::json::members::Document;
use crate::model::fault::Fault;
use crate::model::lazy_box::blank;
use crate::pipeline::salvage::trim;
use crate::sse::decode_utf8;

/// Maximum number of inconclusive payloads before detection fails.
const MAX_HELD: usize = 16;
const MAX_HELD_BYTES: usize = 64 * 1024;

/// Payloads that are held back because none of them has identified the dialect yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct UndetectedPayloads {
    pub(crate) held: Vec<HeldPayload>,
    /// Names of the members of the payloads so far, for the error message.
    names: Vec<String>,
    size: usize,
}

blank!(UndetectedPayloads);

impl UndetectedPayloads {
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns the dialect that a payload identifies together with the held payloads before it, or `None`.
    pub(crate) fn identifies(
        &self,
        document: &Document<'_>,
        event: Option<&str>,
    ) -> Option<Dialect> {
        let texts: Vec<_> = self
            .held
            .iter()
            .map(|held| decode_utf8(held.arrival().data).0)
            .collect();
        let before = texts.iter().filter_map(|text| {
            let document = members::document(trim(text), None).ok()?;
            match document {
                Document::Object(object) => Some(object),
                Document::Other(_) => None,
            }
        });
        detect(document, event, &before.collect::<Vec<_>>())
    }

    /// Holds back an inconclusive payload. Returns false if too many payloads, or too many bytes, would be held back.
    pub(crate) fn hold(&mut self, arrival: LocatedPayload<'_>, document: &Document<'_>) -> bool {
        let size = self.size + arrival.data.len();
        if self.held.len() == MAX_HELD || size > MAX_HELD_BYTES {
            return false;
        }
        self.size = size;
        self.held.push(HeldPayload::of(arrival));
        self.note(document);
        true
    }

    pub(crate) fn note(&mut self, document: &Document<'_>) {
        let mut new = payload_summary(document);
        new.retain(|name| !self.names.contains(name));
        self.names.extend(new);
    }

    pub(crate) fn unknown_dialect(&self) -> Fault {
        Fault::unknown_dialect(self.seen())
    }

    fn seen(&self) -> Vec<String> {
        let mut names = self.names.clone();
        names.sort();
        names
    }
}

/// Detects the dialect of a stream whose dialect the caller specified.
///
/// If no payload can be decoded, the error message reports the detected dialect.
#[derive(Debug)]
pub(crate) struct DialectWatch {
    given: Dialect,
    waiting: Option<Box<UndetectedPayloads>>,
    /// The detected dialect, if it differs from the specified dialect, and the fault to raise if no payload could be
    /// decoded.
    pub(crate) found: Option<(Dialect, Fault)>,
}

impl DialectWatch {
    pub(crate) fn new(given: Dialect) -> DialectWatch {
        DialectWatch {
            given,
            waiting: Some(Box::default()),
            found: None,
        }
    }

    /// Returns true if detection ended without finding a different dialect.
    pub(crate) fn is_content(&self) -> bool {
        self.waiting.is_none() && self.found.is_none()
    }

    /// Examines one payload. The first conclusive payload determines the dialect. Event names are not used.
    pub(crate) fn look(&mut self, arrival: LocatedPayload<'_>, document: &Document<'_>) {
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        let dialect = waiting.identifies(document, None);
        if dialect.is_none() && waiting.hold(arrival, document) {
            return;
        }
        if let Some(dialect) = dialect.filter(|dialect| *dialect != self.given) {
            waiting.note(document);
            let fault = Fault::other_dialect(self.given.name(), dialect.name(), waiting.seen());
            self.found = Some((dialect, arrival.locate(fault)));
        }
        self.waiting = None;
    }
}
