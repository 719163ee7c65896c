//! Collects the events of one call in a list.
//!
//! The core passes events one by one, except that several consecutive deltas may be passed together. Exactly one object
//! is created for each event. If an object cannot be created, for example because memory is exhausted, the error is
//! stored and the caller raises it. Deltas, the most frequent events, are built here, and `objects` builds all other
//! events.

use std::iter;

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use streamweld_core::model::event::DeltaKind;
use streamweld_core::model::event::Deltas;
use streamweld_core::model::event::Event;
use streamweld_core::model::event::Parts;
use streamweld_core::model::event::Sink;

use crate::delta::{Kind, Types};
use crate::event_log::Replay;
use crate::lazy::UnreadJson;
use crate::objects::{Built, build};
use crate::string_cache::StringCache;

/// Collects the events from one call.
pub(crate) struct Collector<'py> {
    py: Python<'py>,
    types: &'py Types,
    strings: StringCache,
    events: Vec<Py<PyAny>>,
    error: Option<PyErr>,
}

impl<'py> Collector<'py> {
    /// Creates a collector with capacity for `room` events.
    pub(crate) fn new(py: Python<'py>, room: usize) -> PyResult<Self> {
        Ok(Collector {
            py,
            types: Types::get(py)?,
            strings: StringCache::borrow(),
            events: Vec::with_capacity(room),
            error: None,
        })
    }

    /// Returns the events, or the error raised while they were being built.
    pub(crate) fn finish(self) -> PyResult<Vec<Py<PyAny>>> {
        match self.error {
            None => Ok(self.events),
            Some(error) => Err(error),
        }
    }
}

impl Collector<'_> {
    #[cold]
    fn push(&mut self, event: Built) {
        match event {
            Ok(event) => self.events.push(event),
            Err(error) => self.error = Some(error),
        }
    }

    /// Appends several deltas of the same kind. The loop is specialized for each kind, and for the common case of a
    /// single part.
    #[inline(always)]
    fn push_all(&mut self, kind: Kind, deltas: &Deltas<'_>) {
        match deltas.parts {
            Parts::One(part) => {
                self.push_each(kind, deltas.choice, deltas.texts().map(|text| (part, text)));
            }
            Parts::Each(parts) => {
                let parts = parts.iter().copied();
                self.push_each(kind, deltas.choice, parts.zip(deltas.texts()));
            }
        }
    }

    #[inline(always)]
    fn push_each<'t>(
        &mut self,
        kind: Kind,
        choice: i32,
        pieces: impl Iterator<Item = (u32, &'t str)>,
    ) {
        if self.error.is_some() {
            return;
        }
        for (part, text) in pieces {
            let text = self.strings.get(self.py, text);
            let made = self.types.make(self.py, kind, part, text, choice, None);
            match made {
                Some(event) => self.events.push(event),
                None => return self.push(Err(PyMemoryError::new_err(()))),
            }
        }
    }
}

impl Replay for Collector<'_> {
    #[inline]
    fn delta(&mut self, kind: Kind, part: u32, text: &str, choice: i32) {
        self.push_each(kind, choice, iter::once((part, text)));
    }
}

impl Sink for Collector<'_> {
    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if self.error.is_some() {
            return;
        }
        let (kind, delta) = match event {
            Event::TextDelta(delta) => (Kind::Text, delta),
            Event::ToolCallDelta(delta) => (Kind::Arguments, delta),
            Event::ReasoningDelta(delta) => (Kind::Reasoning, delta),
            _ => return self.push(build(self.py, event)),
        };
        let metadata = match delta
            .metadata
            .map(|text| UnreadJson::object(self.py, text))
            .transpose()
        {
            Ok(metadata) => metadata,
            Err(error) => return self.push(Err(error)),
        };
        let text = self.strings.get(self.py, delta.text);
        let made = self
            .types
            .make(self.py, kind, delta.part, text, delta.choice, metadata);
        match made {
            Some(event) => self.events.push(event),
            None => self.push(Err(PyMemoryError::new_err(()))),
        }
    }

    fn deltas(&mut self, deltas: &Deltas<'_>) {
        match deltas.kind {
            DeltaKind::Text => self.push_all(Kind::Text, deltas),
            DeltaKind::ToolCall => self.push_all(Kind::Arguments, deltas),
            DeltaKind::Reasoning => self.push_all(Kind::Reasoning, deltas),
            DeltaKind::Refusal => deltas.each(|event| self.event(event)),
        }
    }
}
