//! Payloads that tell no dialect yet, with their places. Which payload tells which dialect is `dialect::detect`'s business.

use crate::dialect::Dialect;
use crate::dialect::detect;
use crate::dialect::payload::PlacedPayload;
use crate::dialect::seen;
use crate::json::members;
use crate::json::members::Document;
use crate::model::fault::Fault;
use crate::model::fault::RAW_HEAD;
use crate::model::lazy_box::blank;
use crate::model::spec::Code;
use crate::pipeline::salvage::trim;
use crate::sse::decode_utf8;

/// Payloads that tell no dialect, before it is given up.
const MAX_HELD: usize = 16;
const MAX_HELD_BYTES: usize = 64 * 1024;

/// A payload that waits, with its place.
#[derive(Clone, Debug)]
pub(crate) struct HeldPayload {
    event: Vec<u8>,
    data: Vec<u8>,
    offset: u64,
    ordinal: u64,
    stray: bool,
}

impl HeldPayload {
    pub(crate) fn of(arrival: PlacedPayload<'_>) -> HeldPayload {
        HeldPayload {
            event: arrival.event.to_vec(),
            data: arrival.data.to_vec(),
            offset: arrival.offset,
            ordinal: arrival.ordinal,
            stray: arrival.stray,
        }
    }

    /// Of one that was read: its place, and as much of it as a fault shows.
    pub(crate) fn shown(arrival: PlacedPayload<'_>) -> HeldPayload {
        let data = arrival.data.get(..RAW_HEAD).unwrap_or(arrival.data);
        HeldPayload::of(PlacedPayload { data, ..arrival })
    }

    pub(crate) fn arrival(&self) -> PlacedPayload<'_> {
        PlacedPayload {
            event: &self.event,
            data: &self.data,
            offset: self.offset,
            ordinal: self.ordinal,
            stray: self.stray,
        }
    }
}

/// The payloads so far, as long as none of them told the dialect.
#[derive(Clone, Debug, Default)]
pub(crate) struct UndetectedPayloads {
    pub(crate) held: Vec<HeldPayload>,
    /// What was there instead of a dialect.
    names: Vec<String>,
    size: usize,
}

blank!(UndetectedPayloads);

impl UndetectedPayloads {
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The dialect that a payload tells, behind those before it.
    pub(crate) fn tells(&self, document: &Document<'_>, event: Option<&str>) -> Option<Dialect> {
        let texts: Vec<_> = self
            .held
            .iter()
            .map(|held| decode_utf8(&held.data).0)
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

    /// Keeps a payload that tells none; false where there were too many.
    pub(crate) fn hold(&mut self, arrival: PlacedPayload<'_>, document: &Document<'_>) -> bool {
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
        let mut new = seen(document);
        new.retain(|name| !self.names.contains(name));
        self.names.extend(new);
    }

    pub(crate) fn unknown_dialect(&self) -> Fault {
        let mut names = self.names.clone();
        names.sort();
        Fault::unknown_dialect(names)
    }
}

/// What the first payloads tell where a dialect was given, in case nothing of them is understood.
#[derive(Debug)]
pub(crate) struct DialectWatch {
    given: Dialect,
    waiting: Option<Box<UndetectedPayloads>>,
    /// Another dialect than the given one, and what is raised if nothing was understood.
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

    /// The stream has the given dialect: there is nothing more to see.
    pub(crate) fn is_content(&self) -> bool {
        self.waiting.is_none() && self.found.is_none()
    }

    /// One payload; the first that tells a dialect counts. The name of an event tells none.
    pub(crate) fn look(&mut self, arrival: PlacedPayload<'_>, text: &str) {
        let Some(waiting) = &mut self.waiting else {
            return;
        };
        let Ok(document) = members::document(text, None) else {
            return;
        };
        let dialect = waiting.tells(&document, None);
        if dialect.is_none() && waiting.hold(arrival, &document) {
            return;
        }
        if let Some(dialect) = dialect.filter(|dialect| *dialect != self.given) {
            waiting.note(&document);
            let mut fault = waiting.unknown_dialect();
            fault.rule = Code::OTHER_DIALECT.name();
            dialect.name().clone_into(&mut fault.detail);
            self.found = Some((dialect, arrival.place(fault)));
        }
        self.waiting = None;
    }
}
