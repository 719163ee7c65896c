//! Groups the events of a snapshot for `Response`: what `response._Fold` does for events of any class, for those of
//! this extension.
//!
//! `Fold` has the members of a response. They are computed when the first of them is read. If the stream has not ended
//! yet, they are computed when `parser.response` is read, because later events would change them.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::errors;
use crate::events::{
    File, Finished, ReasoningDone, RefusalDone, ResponseStarted, Source, TextDone, TextStarted,
    ToolCall, ToolResult, Unknown, UpstreamErrorEvent, Usage,
};
use crate::lazy::Lazy;

type Event<'py> = Bound<'py, PyAny>;

/// Arguments of a `response.Choice`: index, items, end, item ids.
type ChoiceFields<'py> = (
    i32,
    Bound<'py, PyTuple>,
    Option<Event<'py>>,
    Option<Bound<'py, PyDict>>,
);

/// The kept events; start, usage and error; and the choices.
type Folded<'py> = (
    Bound<'py, PyTuple>,
    Option<Event<'py>>,
    Option<Event<'py>>,
    Option<Event<'py>>,
    Vec<ChoiceFields<'py>>,
);

/// What the events say about one choice.
#[derive(Default)]
struct Gathered<'py> {
    items: Vec<Event<'py>>,
    /// Parts of the texts among the items.
    texts: Vec<u32>,
    finished: Option<Event<'py>>,
    /// Wire ids by part.
    ids: Vec<(u32, Bound<'py, PyString>)>,
    /// True if an item or the end belongs to the choice. An id alone makes no choice.
    exists: bool,
}

impl<'py> Gathered<'py> {
    fn add(&mut self, item: &Event<'py>) {
        self.exists = true;
        self.items.push(item.clone());
    }

    /// Returns the wire ids of the texts that were not withdrawn.
    fn text_ids(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        if self.ids.is_empty() {
            return Ok(None);
        }
        let texts: HashSet<u32> = self.texts.iter().copied().collect();
        let out = PyDict::new(py);
        for (part, id) in &self.ids {
            if texts.contains(part) {
                out.set_item(part, id)?;
            }
        }
        Ok(Some(out))
    }
}

/// The choices of a snapshot. Most streams have one.
#[derive(Default)]
struct Choices<'py> {
    /// The choice of the first event, and its index.
    first: Option<(i32, Gathered<'py>)>,
    others: BTreeMap<i32, Gathered<'py>>,
}

impl<'py> Choices<'py> {
    fn of(&mut self, index: i32) -> &mut Gathered<'py> {
        let (known, first) = self
            .first
            .get_or_insert_with(|| (index, Gathered::default()));
        if *known == index {
            first
        } else {
            self.others.entry(index).or_default()
        }
    }

    /// Returns the arguments of each `Choice`, ordered by index.
    fn fields(self, py: Python<'py>) -> PyResult<Vec<ChoiceFields<'py>>> {
        let Choices { first, mut others } = self;
        let fields = |(index, choice): (i32, Gathered<'py>)| {
            let ids = choice.text_ids(py)?;
            let items = PyTuple::new(py, choice.items)?;
            Ok((index, items, choice.finished, ids))
        };
        if others.is_empty() {
            return first.into_iter().filter(exists).map(fields).collect();
        }
        others.extend(first);
        others.into_iter().filter(exists).map(fields).collect()
    }
}

fn exists((_, choice): &(i32, Gathered<'_>)) -> bool {
    choice.exists
}

/// The events of a snapshot by their meaning.
struct Whole<'py> {
    events: Vec<Event<'py>>,
    started: Option<Event<'py>>,
    usage: Option<Event<'py>>,
    error: Option<Event<'py>>,
    choices: Choices<'py>,
}

/// Groups the events of a snapshot. Returns `None` if one of them is not an event of this extension.
fn gather<'py>(
    py: Python<'py>,
    events: impl ExactSizeIterator<Item = Event<'py>>,
) -> PyResult<Option<Whole<'py>>> {
    let mut whole = Whole {
        events: Vec::with_capacity(events.len()),
        started: None,
        usage: None,
        error: None,
        choices: Choices::default(),
    };
    for event in events {
        if let Ok(text) = event.cast_exact::<TextDone>() {
            let TextDone {
                part,
                text,
                annotations,
                choice,
                provider_metadata,
            } = text.get();
            let has_text = !text.bind(py).is_empty()?
                || is_filled(py, provider_metadata.as_ref())?
                || annotations.is_filled(py)?;
            if !has_text {
                continue;
            }
            let choice = whole.choices.of(*choice);
            choice.texts.push(*part);
            choice.add(&event);
        } else if let Ok(call) = event.cast_exact::<ToolCall>() {
            whole.choices.of(call.get().choice).add(&event);
        } else if let Ok(finished) = event.cast_exact::<Finished>() {
            let choice = whole.choices.of(finished.get().choice);
            choice.exists = true;
            choice.finished = Some(event.clone());
        } else if event.is_exact_instance_of::<ResponseStarted>() {
            whole.started = Some(event.clone());
        } else if event.is_exact_instance_of::<Usage>() {
            whole.usage = Some(event.clone());
        } else if let Ok(opened) = event.cast_exact::<TextStarted>() {
            let TextStarted {
                part,
                item_id,
                choice,
                ..
            } = opened.get();
            let Some(id) = item_id else { continue };
            let choice = whole.choices.of(*choice);
            choice.ids.push((*part, id.bind(py).clone()));
        } else if let Ok(reasoning) = event.cast_exact::<ReasoningDone>() {
            let reasoning = reasoning.get();
            let mut has_text = !reasoning.text.bind(py).is_empty()?
                || is_filled(py, reasoning.provider_metadata.as_ref())?;
            let ReasoningDone {
                signature,
                encrypted_content,
                item_id,
                ..
            } = reasoning;
            for text in [signature, encrypted_content, item_id]
                .into_iter()
                .flatten()
            {
                has_text |= !text.bind(py).is_empty()?;
            }
            if !has_text {
                continue;
            }
            whole.choices.of(reasoning.choice).add(&event);
        } else if let Ok(refusal) = event.cast_exact::<RefusalDone>() {
            let refusal = refusal.get();
            let has_text = !refusal.text.bind(py).is_empty()?
                || is_filled(py, refusal.provider_metadata.as_ref())?;
            if !has_text {
                continue;
            }
            whole.choices.of(refusal.choice).add(&event);
        } else if let Ok(result) = event.cast_exact::<ToolResult>() {
            whole.choices.of(result.get().choice).add(&event);
        } else if let Ok(source) = event.cast_exact::<Source>() {
            whole.choices.of(source.get().choice).add(&event);
        } else if let Ok(file) = event.cast_exact::<File>() {
            whole.choices.of(file.get().choice).add(&event);
        } else if event.is_exact_instance_of::<Unknown>() {
            whole.choices.of(0).add(&event);
        } else if event.is_exact_instance_of::<UpstreamErrorEvent>() {
            whole.error = Some(event.clone());
        } else {
            return Ok(None);
        }
        whole.events.push(event);
    }
    Ok(Some(whole))
}

/// Folds the events of a snapshot. Returns `None` if one of them is not an event of this extension.
#[pyfunction]
pub(crate) fn fold_snapshot<'py>(events: &Bound<'py, PyTuple>) -> PyResult<Option<Folded<'py>>> {
    let py = events.py();
    let Some(whole) = gather(py, events.iter())? else {
        return Ok(None);
    };
    let choices = whole.choices.fields(py)?;
    let kept = PyTuple::new(py, whole.events)?;
    Ok(Some((
        kept,
        whole.started,
        whole.usage,
        whole.error,
        choices,
    )))
}

/// What a parser read, at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) events: Vec<Py<PyAny>>,
    pub(crate) completeness: &'static str,
    pub(crate) diagnostics: Vec<Py<PyAny>>,
    pub(crate) diagnostics_dropped: u64,
    pub(crate) dialect: Option<&'static str>,
}

/// The members of a response.
#[derive(Debug)]
struct Members {
    events: Py<PyTuple>,
    started: Option<Py<PyAny>>,
    usage: Option<Py<PyAny>>,
    error: Option<Py<PyAny>>,
    choices: Py<PyTuple>,
    first: Py<PyAny>,
    completeness: &'static str,
    diagnostics: Py<PyTuple>,
    diagnostics_dropped: u64,
    dialect: Option<&'static str>,
}

impl Members {
    /// Folds a snapshot. `class` is `response.Choice`.
    fn of(py: Python<'_>, snapshot: Snapshot, class: &Py<PyAny>) -> PyResult<Members> {
        let class = class.bind(py);
        let events = snapshot
            .events
            .into_iter()
            .map(|event| event.into_bound(py));
        // Every event of a snapshot is one of this extension's.
        let whole = gather(py, events)?;
        let whole = whole.ok_or_else(|| errors::internal(py, "unknown event", Vec::new()))?;
        let mut choices = Vec::with_capacity(1);
        for choice in whole.choices.fields(py)? {
            choices.push(class.call1(choice)?);
        }
        let first = match choices.first() {
            Some(choice) => choice.clone().unbind(),
            None => class.call0()?.unbind(),
        };
        Ok(Members {
            events: PyTuple::new(py, whole.events)?.unbind(),
            started: whole.started.map(Bound::unbind),
            usage: whole.usage.map(Bound::unbind),
            error: whole.error.map(Bound::unbind),
            choices: PyTuple::new(py, choices)?.unbind(),
            first,
            completeness: snapshot.completeness,
            diagnostics: PyTuple::new(py, snapshot.diagnostics)?.unbind(),
            diagnostics_dropped: snapshot.diagnostics_dropped,
            dialect: snapshot.dialect,
        })
    }
}

/// What a fold is made from: an ended stream, whose snapshot does not change anymore.
pub(crate) trait Ended: Send + Sync {
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot>;
}

/// A fold that was not needed yet.
struct Unread {
    ended: Box<dyn Ended>,
    class: Py<PyAny>,
}

/// The members of a response.
#[pyclass(frozen, module = "streamweld._native")]
pub(crate) struct Fold {
    members: PyOnceLock<Members>,
    /// Dropped when the members are there.
    unread: Mutex<Option<Arc<Unread>>>,
}

impl Fold {
    /// Folds a snapshot now.
    pub(crate) fn now(snapshot: Snapshot, class: &Bound<'_, PyAny>) -> PyResult<Fold> {
        let py = class.py();
        let members = PyOnceLock::new();
        let _ = members.set(py, Members::of(py, snapshot, class.as_unbound())?);
        Ok(Fold {
            members,
            unread: Mutex::new(None),
        })
    }

    /// Folds the snapshot of an ended stream when it is needed.
    pub(crate) fn later(ended: Box<dyn Ended>, class: &Bound<'_, PyAny>) -> Fold {
        let class = class.clone().unbind();
        Fold {
            members: PyOnceLock::new(),
            unread: Mutex::new(Some(Arc::new(Unread { ended, class }))),
        }
    }

    /// Locks what is unread. The lock is held only to read or take it.
    fn unread(&self) -> MutexGuard<'_, Option<Arc<Unread>>> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the members. If two threads build them at once, both get those that were stored first.
    fn get(&self, py: Python<'_>) -> PyResult<&Members> {
        if let Some(members) = self.members.get(py) {
            return Ok(members);
        }
        let unread = self.unread().clone();
        if let Some(unread) = unread {
            let members = Members::of(py, unread.ended.snapshot(py)?, &unread.class)?;
            let _ = self.members.set(py, members);
            let done = self.unread().take();
            drop(done);
        }
        let members = self.members.get(py);
        members.ok_or_else(|| errors::internal(py, "no members", Vec::new()))
    }
}

#[pymethods]
impl Fold {
    #[getter]
    fn events(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        Ok(self.get(py)?.events.clone_ref(py))
    }

    #[getter]
    fn started(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(shared(py, &self.get(py)?.started))
    }

    #[getter]
    fn usage(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(shared(py, &self.get(py)?.usage))
    }

    #[getter]
    fn error(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(shared(py, &self.get(py)?.error))
    }

    #[getter]
    fn choices(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        Ok(self.get(py)?.choices.clone_ref(py))
    }

    /// The choice with the lowest index, or an empty one.
    #[getter]
    fn first(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.get(py)?.first.clone_ref(py))
    }

    #[getter]
    fn completeness(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.get(py)?.completeness)
    }

    #[getter]
    fn diagnostics(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        Ok(self.get(py)?.diagnostics.clone_ref(py))
    }

    #[getter]
    fn diagnostics_dropped(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.get(py)?.diagnostics_dropped)
    }

    /// True: parts are in order, and `Unknown` is a part.
    #[getter]
    fn ordered(&self) -> bool {
        true
    }

    #[getter]
    fn dialect(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(self.get(py)?.dialect)
    }
}

fn shared(py: Python<'_>, event: &Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    event.as_ref().map(|event| event.clone_ref(py))
}

/// Returns true if there is a value that is not empty.
fn is_filled(py: Python<'_>, value: Option<&Lazy>) -> PyResult<bool> {
    value.map_or(Ok(false), |value| value.is_filled(py))
}
