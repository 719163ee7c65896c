//! Converts core events to Python objects, one by one. `sink` converts the three kinds of deltas.
//!
//! Strings from small fixed sets are interned, and JSON values are built when they are first read (`lazy`). Errors are
//! returned to the caller.

use std::ptr;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, PyClass};
use streamweld_core::model::event::Event;
use streamweld_core::model::event::Mark;
use streamweld_core::model::event::Opened;

use crate::events;
use crate::lazy::{Lazy, LazyItems};
use crate::string_cache::string;

/// Number of words that are kept as Python strings. Most streams use fewer distinct words.
const WORDS_KEPT: usize = 16;

/// An event, or the error raised while it was being built.
pub(crate) type Built = PyResult<Py<PyAny>>;

fn object<T>(py: Python<'_>, value: T) -> Built
where
    T: PyClass + Into<PyClassInitializer<T>>,
{
    Py::new(py, value).map(Py::into_any)
}

#[inline]
fn str(py: Python<'_>, text: &str) -> Py<PyString> {
    string(py, text)
}

fn opt(py: Python<'_>, text: Option<&str>) -> Option<Py<PyString>> {
    text.map(|text| str(py, text))
}

/// Returns a word from a small fixed set as an interned Python string.
pub(crate) fn word(py: Python<'_>, text: &'static str) -> Py<PyString> {
    static WORDS: Mutex<Vec<(&str, Py<PyString>)>> = Mutex::new(Vec::new());
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    // The same word usually has the same address, so the characters rarely have to be compared.
    let known = words.iter().find(|(known, _)| ptr::eq(*known, text));
    if let Some((_, word)) = known.or_else(|| words.iter().find(|(known, _)| *known == text)) {
        return word.clone_ref(py);
    }
    let word = PyString::intern(py, text).unbind();
    if words.len() < WORDS_KEPT {
        words.push((text, word.clone_ref(py)));
    }
    word
}

/// Returns the field for a JSON text. The field's value is built when the field is first read.
#[inline]
fn data(text: Option<&str>) -> Option<Lazy> {
    text.map(Lazy::value)
}

fn number(py: Python<'_>, number: Option<i64>) -> PyResult<Option<Py<PyAny>>> {
    number.map(|number| number.into_py_any(py)).transpose()
}

#[cold]
pub(crate) fn build(py: Python<'_>, event: &Event<'_>) -> Built {
    match *event {
        // `sink` builds deltas.
        Event::TextDelta(_) | Event::ToolCallDelta(_) | Event::ReasoningDelta(_) => Ok(py.None()),
        Event::ResponseStarted {
            id,
            model,
            created,
            metadata,
        } => object(
            py,
            events::ResponseStarted {
                id: opt(py, id),
                model: opt(py, model),
                created: number(py, created)?,
                provider_metadata: data(metadata),
            },
        ),
        Event::TextStarted(Opened {
            part,
            item_id,
            choice,
            metadata,
        }) => object(
            py,
            events::TextStarted {
                part,
                item_id: opt(py, item_id),
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::TextDone {
            part,
            text,
            annotations,
            choice,
            metadata,
        } => object(
            py,
            events::TextDone {
                part,
                text: str(py, text),
                annotations: LazyItems::members(py, annotations),
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::ReasoningStarted {
            part,
            kind,
            item_id,
            choice,
            metadata,
        } => object(
            py,
            events::ReasoningStarted {
                part,
                kind: word(py, kind),
                item_id: opt(py, item_id),
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::ReasoningDone {
            part,
            text,
            kind,
            item_id,
            signature,
            encrypted_content,
            choice,
            metadata,
        } => object(
            py,
            events::ReasoningDone {
                part,
                text: str(py, text),
                kind: word(py, kind),
                item_id: opt(py, item_id),
                signature: opt(py, signature),
                encrypted_content: opt(py, encrypted_content),
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::RefusalStarted(Mark {
            part,
            choice,
            metadata,
        }) => object(
            py,
            events::RefusalStarted {
                part,
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::RefusalDelta(delta) => object(
            py,
            events::RefusalDelta {
                part: delta.part,
                text: str(py, delta.text),
                choice: delta.choice,
                provider_metadata: data(delta.metadata),
            },
        ),
        Event::RefusalDone(delta) => object(
            py,
            events::RefusalDone {
                part: delta.part,
                text: str(py, delta.text),
                choice: delta.choice,
                provider_metadata: data(delta.metadata),
            },
        ),
        Event::ToolCallStarted {
            part,
            call_id,
            item_id,
            name,
            choice,
            metadata,
            ..
        } => object(
            py,
            events::ToolCallStarted {
                part,
                call_id: opt(py, call_id),
                item_id: opt(py, item_id),
                name: str(py, name),
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::ToolCall {
            part,
            call_id,
            name,
            arguments,
            state,
            item_id,
            reason,
            raw_arguments,
            provider_executed,
            aliases,
            custom,
            raw_text,
            choice,
            metadata,
        } => object(
            py,
            events::ToolCall {
                part,
                call_id: str(py, call_id),
                name: str(py, name),
                arguments: str(py, arguments),
                state: word(py, state),
                item_id: opt(py, item_id),
                reason: reason.map(|reason| word(py, reason)),
                raw_arguments: opt(py, raw_arguments),
                provider_executed,
                aliases: PyTuple::new(py, aliases)?.unbind(),
                custom,
                origin: raw_text.map(|_| word(py, "text")),
                raw_text: opt(py, raw_text),
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::ToolCallReset(Mark {
            part,
            choice,
            metadata,
        }) => object(
            py,
            events::ToolCallReset {
                part,
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::ToolCallRetracted(Mark {
            part,
            choice,
            metadata,
        }) => object(
            py,
            events::ToolCallRetracted {
                part,
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::ToolResult {
            part,
            call_id,
            output,
            is_error,
            choice,
            metadata,
        } => object(
            py,
            events::ToolResult {
                part,
                call_id: str(py, call_id),
                output: Lazy::value(output),
                is_error,
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::ToolResultDelta {
            part,
            call_id,
            output,
            choice,
        } => object(
            py,
            events::ToolResultDelta {
                part,
                call_id: str(py, call_id),
                output: Lazy::value(output),
                choice,
                provider_metadata: None,
            },
        ),
        Event::Source {
            part,
            url,
            title,
            document,
            choice,
            metadata,
        } => object(
            py,
            events::Source {
                part,
                url: opt(py, url),
                title: opt(py, title),
                document: data(document),
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::File {
            part,
            media_type,
            data: content,
            url,
            choice,
            metadata,
        } => object(
            py,
            events::File {
                part,
                media_type: opt(py, media_type),
                data: opt(py, content),
                url: opt(py, url),
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::ProviderItem {
            part,
            kind,
            value,
            item_id,
            choice,
        } => object(
            py,
            events::ProviderItem {
                part,
                kind: word(py, kind),
                value: Lazy::value(value),
                item_id: opt(py, item_id),
                choice,
                provider_metadata: None,
            },
        ),
        Event::Usage(usage) => object(
            py,
            events::Usage {
                input_tokens: number(py, usage.input_tokens)?,
                output_tokens: number(py, usage.output_tokens)?,
                total_tokens: number(py, usage.total_tokens)?,
                cached_input_tokens: number(py, usage.cached_input_tokens)?,
                cache_write_tokens: number(py, usage.cache_write_tokens)?,
                reasoning_tokens: number(py, usage.reasoning_tokens)?,
                raw: data(usage.raw),
            },
        ),
        Event::Finished {
            reason,
            raw_reason,
            choice,
            metadata,
        } => object(
            py,
            events::Finished {
                finish_reason: word(py, reason),
                raw_reason: opt(py, raw_reason),
                choice,
                provider_metadata: data(metadata),
            },
        ),
        Event::UpstreamError {
            code,
            kind,
            message,
            raw,
        } => object(
            py,
            events::UpstreamErrorEvent {
                code: opt(py, code),
                kind: opt(py, kind),
                message: str(py, message),
                raw: PyBytes::new(py, raw).unbind(),
            },
        ),
        Event::Diagnostic {
            code,
            severity,
            byte_offset,
            event_ordinal,
            part,
            detail,
        } => object(
            py,
            events::Diagnostic {
                code: word(py, code),
                severity: word(py, severity),
                byte_offset,
                event_ordinal,
                part,
                detail: str(py, detail),
            },
        ),
        Event::Unknown { event, raw } => object(
            py,
            events::Unknown {
                event: opt(py, event),
                raw: PyBytes::new(py, raw).unbind(),
            },
        ),
    }
}
