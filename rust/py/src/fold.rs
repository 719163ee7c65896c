//! Collects the members of a response from the events of this extension's parsers.
//!
//! `response._Fold` does the same for event objects. A fold stores the events as Rust values, and builds each Python
//! object when the object is first read. For an ended stream, the values are collected at the first read. For an open
//! stream, the values are collected when `parser.response` is read, because later events would change them.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};
use streamweld_core::model::event::Delta;
use streamweld_core::model::event::Event;
use streamweld_core::model::event::Opened;
use streamweld_core::model::event::Sink;
use streamweld_core::model::output::Diagnostic;

use crate::errors;
use crate::errors::guarded;
use crate::event_log::EventLog;
use crate::events::{ReasoningDone, RefusalDone, TextDone};
use crate::objects::{build, word};
use crate::string_cache::string;

/// The state of a stream at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    events: EventLog,
    diagnostics: EventLog,
    diagnostics_dropped: u64,
    completeness: &'static str,
    dialect: Option<&'static str>,
}

impl Snapshot {
    /// Takes a snapshot. `emit` passes the events of the response so far to the log.
    pub(crate) fn of(
        py: Python<'_>,
        emit: impl FnOnce(&mut EventLog),
        diagnostics: &[Diagnostic],
        diagnostics_dropped: u64,
        completeness: &'static str,
        dialect: Option<&'static str>,
    ) -> PyResult<Snapshot> {
        let mut events = EventLog::default();
        let result = guarded(|| emit(&mut events));
        result.map_err(|panic| errors::internal(py, &panic, Vec::new()))?;
        let mut recorded = EventLog::default();
        for diagnostic in diagnostics {
            recorded.event(&diagnostic.event());
        }
        Ok(Snapshot {
            events,
            diagnostics: recorded,
            diagnostics_dropped,
            completeness,
            dialect,
        })
    }
}

/// An ended stream, whose snapshot no longer changes.
pub(crate) trait Ended: Send + Sync {
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot>;

    /// Returns false if the snapshot contains no calls.
    fn may_show_calls(&self, py: Python<'_>) -> PyResult<bool>;
}

/// The role of a snapshot's event in the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Started,
    Usage,
    Error,
    /// The start event of a text part that has a wire id.
    TextId,
    Text,
    Reasoning,
    Refusal,
    Call,
    /// A call that the provider ran.
    ServerCall,
    OtherItem,
    Finished,
    /// An event that is not part of the response, such as the closing event of a part without content.
    Withdrawn,
}

impl Role {
    /// Returns an event's role and its choice.
    fn of(event: &Event<'_>) -> (Role, i32) {
        let item = |is_item: bool, role: Role| if is_item { role } else { Role::Withdrawn };
        match *event {
            Event::ResponseStarted { .. } => (Role::Started, 0),
            Event::Usage(_) => (Role::Usage, 0),
            Event::UpstreamError { .. } => (Role::Error, 0),
            Event::TextStarted(Opened {
                item_id, choice, ..
            }) => (item(item_id.is_some(), Role::TextId), choice),
            Event::TextDone {
                text,
                annotations,
                choice,
                metadata,
                ..
            } => {
                let is_item = !text.is_empty() || is_filled(metadata) || is_filled(annotations);
                (item(is_item, Role::Text), choice)
            }
            Event::ReasoningDone {
                text,
                item_id,
                signature,
                encrypted_content,
                choice,
                metadata,
                ..
            } => {
                let carried = [signature, encrypted_content, item_id];
                let is_item = !text.is_empty()
                    || is_filled(metadata)
                    || carried.into_iter().flatten().any(|text| !text.is_empty());
                (item(is_item, Role::Reasoning), choice)
            }
            Event::RefusalDone(Delta {
                text,
                choice,
                metadata,
                ..
            }) => {
                let is_item = !text.is_empty() || is_filled(metadata);
                (item(is_item, Role::Refusal), choice)
            }
            Event::ToolCall {
                provider_executed,
                choice,
                ..
            } => match provider_executed {
                true => (Role::ServerCall, choice),
                false => (Role::Call, choice),
            },
            Event::ToolResult { choice, .. }
            | Event::Source { choice, .. }
            | Event::File { choice, .. }
            | Event::ProviderItem { choice, .. } => (Role::OtherItem, choice),
            Event::Unknown { .. } => (Role::OtherItem, 0),
            Event::Finished { choice, .. } => (Role::Finished, choice),
            _ => (Role::Withdrawn, 0),
        }
    }

    fn is_item(self) -> bool {
        match self {
            Role::Text
            | Role::Reasoning
            | Role::Refusal
            | Role::Call
            | Role::ServerCall
            | Role::OtherItem => true,
            Role::Started
            | Role::Usage
            | Role::Error
            | Role::TextId
            | Role::Finished
            | Role::Withdrawn => false,
        }
    }

    /// Returns true if an event with this role implies that its choice exists. A wire id alone does not create a
    /// choice.
    fn makes_choice(self) -> bool {
        self.is_item() || self == Role::Finished
    }
}

/// Returns true if there is a JSON text that is not an empty object or array.
fn is_filled(json: Option<&str>) -> bool {
    let inner = |text: &str| {
        let inner = text.strip_prefix(['{', '['])?.strip_suffix(['}', ']'])?;
        Some(inner.trim().is_empty())
    };
    json.is_some_and(|text| inner(text) != Some(true))
}

/// An event in a snapshot. The Python object is built when it is first read.
struct Entry {
    role: Role,
    choice: i32,
    object: PyOnceLock<Py<PyAny>>,
}

/// The values of a response.
struct Members {
    snapshot: Snapshot,
    /// One `Entry` for each event in the snapshot.
    entries: Vec<Entry>,
    /// The choice with the lowest index.
    first: Option<i32>,
    items: PyOnceLock<Py<PyTuple>>,
    events: PyOnceLock<Py<PyTuple>>,
    choices: PyOnceLock<(Py<PyTuple>, Py<PyAny>)>,
    diagnostics: PyOnceLock<Py<PyTuple>>,
}

impl Members {
    fn of(snapshot: Snapshot) -> Members {
        let mut first = None;
        let entries = snapshot.events.others().map(|event| {
            let (role, choice) = Role::of(&event);
            if role.makes_choice() && first.is_none_or(|first| choice < first) {
                first = Some(choice);
            }
            Entry {
                role,
                choice,
                object: PyOnceLock::new(),
            }
        });
        let entries = entries.collect();
        Members {
            snapshot,
            entries,
            first,
            items: PyOnceLock::new(),
            events: PyOnceLock::new(),
            choices: PyOnceLock::new(),
            diagnostics: PyOnceLock::new(),
        }
    }

    /// Returns the event object at this position.
    fn object<'py>(
        &self,
        py: Python<'py>,
        position: usize,
        entry: &Entry,
    ) -> PyResult<Bound<'py, PyAny>> {
        let object = entry.object.get_or_try_init(py, || {
            let event = self.snapshot.events.other(position);
            let event = event.ok_or_else(|| errors::internal(py, "no event", Vec::new()))?;
            build(py, &event)
        })?;
        Ok(object.bind(py).clone())
    }

    /// For the first choice, yields the entries whose role satisfies `has_role`, with their positions.
    fn of_first(&self, has_role: impl Fn(Role) -> bool) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries
            .iter()
            .enumerate()
            .filter(move |(_, entry)| Some(entry.choice) == self.first && has_role(entry.role))
    }

    /// For the first choice, returns the objects whose role satisfies `has_role`.
    fn objects<'py>(
        &self,
        py: Python<'py>,
        has_role: impl Fn(Role) -> bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let found = self.of_first(has_role);
        let objects = found.map(|(position, entry)| self.object(py, position, entry));
        PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns the last object with this role in any choice.
    fn last<'py>(&self, py: Python<'py>, role: Role) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut entries = self.entries.iter().enumerate().rev();
        let found = entries.find(|(_, entry)| entry.role == role);
        found
            .map(|(position, entry)| self.object(py, position, entry))
            .transpose()
    }

    /// Returns the concatenated texts with this role in the first choice. If there is only one text, returns the string
    /// of its event object instead of creating a new string.
    fn joined<'py>(&self, py: Python<'py>, role: Role) -> PyResult<Bound<'py, PyString>> {
        let mut found = self.of_first(|of| of == role);
        let Some((position, entry)) = found.next() else {
            return Ok(PyString::intern(py, ""));
        };
        if found.next().is_none() {
            let object = self.object(py, position, entry)?;
            let text = match role {
                Role::Reasoning => &object.cast_exact::<ReasoningDone>()?.get().text,
                Role::Refusal => &object.cast_exact::<RefusalDone>()?.get().text,
                _ => &object.cast_exact::<TextDone>()?.get().text,
            };
            return Ok(text.bind(py).clone());
        }
        let found = self.of_first(|of| of == role);
        let texts =
            found.filter_map(
                |(position, _)| match self.snapshot.events.other(position)? {
                    Event::TextDone { text, .. }
                    | Event::ReasoningDone { text, .. }
                    | Event::RefusalDone(Delta { text, .. }) => Some(text),
                    _ => None,
                },
            );
        Ok(string(py, &texts.collect::<String>()).into_bound(py))
    }

    /// Returns the finish reason of the first choice: the normalized reason, and the reason as sent.
    fn end(&self) -> Option<(&'static str, Option<&str>)> {
        let found = self.of_first(|of| of == Role::Finished);
        let (position, _) = found.last()?;
        match self.snapshot.events.other(position)? {
            Event::Finished {
                reason, raw_reason, ..
            } => Some((reason, raw_reason)),
            _ => None,
        }
    }

    /// Returns the wire ids of the text parts among these events, keyed by part number.
    fn text_ids<'py>(
        &self,
        py: Python<'py>,
        positions: &[usize],
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut ids = Vec::new();
        let mut texts = HashSet::new();
        for position in positions {
            match self.snapshot.events.other(*position) {
                Some(Event::TextStarted(Opened {
                    part,
                    item_id: Some(id),
                    ..
                })) => ids.push((part, id)),
                Some(Event::TextDone { part, .. }) => {
                    texts.insert(part);
                }
                _ => {}
            }
        }
        if ids.is_empty() {
            return Ok(None);
        }
        let out = PyDict::new(py);
        for (part, id) in ids.iter().filter(|(part, _)| texts.contains(part)) {
            out.set_item(part, string(py, id))?;
        }
        Ok(Some(out))
    }

    /// Returns a `response.Choice` for the events at these positions.
    fn choice<'py>(
        &self,
        class: &Bound<'py, PyAny>,
        index: i32,
        positions: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = class.py();
        let mut items = Vec::with_capacity(positions.len());
        let mut end = None;
        for position in positions {
            let Some(entry) = self.entries.get(*position) else {
                continue;
            };
            if entry.role.is_item() {
                items.push(self.object(py, *position, entry)?);
            } else if entry.role == Role::Finished {
                end = Some(self.object(py, *position, entry)?);
            }
        }
        let items = PyTuple::new(py, items)?;
        class.call1((index, items, end, self.text_ids(py, positions)?))
    }

    /// Returns all choices, and the first choice. If there are no choices, the first choice is empty.
    fn choices(&self, class: &Bound<'_, PyAny>) -> PyResult<&(Py<PyTuple>, Py<PyAny>)> {
        let py = class.py();
        self.choices.get_or_try_init(py, || {
            let mut found: BTreeMap<i32, (bool, Vec<usize>)> = BTreeMap::new();
            for (position, entry) in self.entries.iter().enumerate() {
                if entry.role.makes_choice() || entry.role == Role::TextId {
                    let (exists, positions) = found.entry(entry.choice).or_default();
                    *exists |= entry.role.makes_choice();
                    positions.push(position);
                }
            }
            let existing = found.iter().filter(|(_, (exists, _))| *exists);
            let choices = existing.map(|(index, (_, of))| self.choice(class, *index, of));
            let choices = choices.collect::<PyResult<Vec<_>>>()?;
            let first = match choices.first() {
                Some(choice) => choice.clone(),
                None => class.call0()?,
            };
            Ok((PyTuple::new(py, choices)?.unbind(), first.unbind()))
        })
    }

    /// Returns the items in the first choice.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let items = self
            .items
            .get_or_try_init(py, || self.objects(py, Role::is_item).map(Bound::unbind))?;
        Ok(items.bind(py).clone())
    }

    /// Returns the events from which an equal response can be built.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let events = self.events.get_or_try_init(py, || {
            let entries = self.entries.iter().enumerate();
            let kept = entries.filter(|(_, entry)| entry.role != Role::Withdrawn);
            let objects = kept.map(|(position, entry)| self.object(py, position, entry));
            PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?).map(Bound::unbind)
        })?;
        Ok(events.bind(py).clone())
    }

    fn diagnostics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let diagnostics = self.diagnostics.get_or_try_init(py, || {
            let recorded = self.snapshot.diagnostics.others();
            let objects = recorded.map(|event| build(py, &event));
            PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?).map(Bound::unbind)
        })?;
        Ok(diagnostics.bind(py).clone())
    }
}

/// The members of a response. `class` is `response.Choice`.
#[pyclass(frozen, module = "streamweld._native")]
pub(crate) struct Fold {
    class: Py<PyAny>,
    members: PyOnceLock<Members>,
    /// An ended stream whose values have not been collected yet.
    ended: Mutex<Option<Arc<dyn Ended>>>,
}

impl Fold {
    /// Creates a fold of a snapshot.
    pub(crate) fn now(snapshot: Snapshot, class: &Bound<'_, PyAny>) -> Fold {
        let members = PyOnceLock::new();
        let _ = members.set(class.py(), Members::of(snapshot));
        Fold {
            class: class.clone().unbind(),
            members,
            ended: Mutex::new(None),
        }
    }

    /// Creates a fold of an ended stream. The snapshot is taken when it is first needed.
    pub(crate) fn later(ended: Arc<dyn Ended>, class: &Bound<'_, PyAny>) -> Fold {
        Fold {
            class: class.clone().unbind(),
            members: PyOnceLock::new(),
            ended: Mutex::new(Some(ended)),
        }
    }

    /// Locks the ended stream. The lock is held only while the stream is read or removed.
    fn ended(&self) -> MutexGuard<'_, Option<Arc<dyn Ended>>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the members. If two threads collect the values at the same time, both threads use the values that were
    /// stored first.
    fn get(&self, py: Python<'_>) -> PyResult<&Members> {
        if let Some(members) = self.members.get(py) {
            return Ok(members);
        }
        let ended = self.ended().clone();
        if let Some(ended) = ended {
            let members = Members::of(ended.snapshot(py)?);
            let _ = self.members.set(py, members);
            let done = self.ended().take();
            drop(done);
        }
        let members = self.members.get(py);
        members.ok_or_else(|| errors::internal(py, "no members", Vec::new()))
    }

    /// Returns the calls with this role in the first choice. Takes no snapshot for a response without calls, because
    /// most responses have no calls.
    fn calls<'py>(&self, py: Python<'py>, role: Role) -> PyResult<Bound<'py, PyTuple>> {
        if self.members.get(py).is_none()
            && let Some(ended) = self.ended().clone()
            && !ended.may_show_calls(py)?
        {
            return Ok(PyTuple::empty(py));
        }
        self.get(py)?.objects(py, |of| of == role)
    }
}

#[pymethods]
impl Fold {
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.get(py)?.events(py)
    }

    #[getter]
    fn started<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.get(py)?.last(py, Role::Started)
    }

    #[getter]
    fn usage<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.get(py)?.last(py, Role::Usage)
    }

    #[getter]
    fn error<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.get(py)?.last(py, Role::Error)
    }

    #[getter]
    fn choices(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let (choices, _) = self.get(py)?.choices(self.class.bind(py))?;
        Ok(choices.clone_ref(py))
    }

    /// The choice with the lowest index, or an empty choice.
    #[getter]
    fn first(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (_, first) = self.get(py)?.choices(self.class.bind(py))?;
        Ok(first.clone_ref(py))
    }

    // The members of the first choice, which are available without building a `Choice` object.

    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.get(py)?.joined(py, Role::Text)
    }

    #[getter]
    fn reasoning<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.get(py)?.joined(py, Role::Reasoning)
    }

    #[getter]
    fn refusal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.get(py)?.joined(py, Role::Refusal)
    }

    #[getter]
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.get(py)?.items(py)
    }

    #[getter]
    fn tool_calls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.calls(py, Role::Call)
    }

    #[getter]
    fn server_tool_calls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.calls(py, Role::ServerCall)
    }

    #[getter]
    fn finish_reason(&self, py: Python<'_>) -> PyResult<Option<Py<PyString>>> {
        let end = self.get(py)?.end();
        Ok(end.map(|(reason, _)| word(py, reason)))
    }

    #[getter]
    fn raw_finish_reason(&self, py: Python<'_>) -> PyResult<Option<Py<PyString>>> {
        let end = self.get(py)?.end();
        Ok(end
            .and_then(|(_, raw)| raw)
            .map(|reason| string(py, reason)))
    }

    #[getter]
    fn completeness(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.get(py)?.snapshot.completeness)
    }

    #[getter]
    fn diagnostics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.get(py)?.diagnostics(py)
    }

    #[getter]
    fn diagnostics_dropped(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.get(py)?.snapshot.diagnostics_dropped)
    }

    /// The result is always true, because the parts are in order and `Unknown` is treated as a part.
    #[getter]
    fn ordered(&self) -> bool {
        true
    }

    #[getter]
    fn dialect(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(self.get(py)?.snapshot.dialect)
    }
}
