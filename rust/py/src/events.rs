//! The event classes listed in `_spec/events.json`, with their names, fields, order, and defaults.
//!
//! The classes are frozen and use ordinary `__slots__`. Creation is the hot path; all other operations (repr, ==, hash,
//! pickle, `to_dict`) use the list of fields. The three most frequent classes are in `delta`. This file contains no
//! stream logic.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, intern, pyclass::CompareOp};

use crate::lazy::{Lazy, LazyItems};

type Str = Py<PyString>;
type OptStr = Option<Py<PyString>>;
type Tuple = Py<PyTuple>;
type Object = Option<Py<PyAny>>;
/// A JSON value that is built when it is first read.
type Json = Option<Lazy>;
pub(crate) type Fields<'py> = Vec<(&'static str, Bound<'py, PyAny>)>;

/// Defines one class: its fields, its constructor signature and its extra members. The signature after `as` is the one
/// that `inspect` shows.
macro_rules! event {
    ($(#[$doc:meta])* $name:ident = $type:literal, ($($field:ident : $ty:ty),*), $signature:tt $(as $shown:literal)? $(, { $($extra:item)* })?) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "streamweld.events")]
        #[derive(Debug)]
        pub(crate) struct $name { $(#[pyo3(get)] pub(crate) $field: $ty),* }

        impl $name {
            fn fields<'py>(&self, py: Python<'py>) -> PyResult<Fields<'py>> {
                Ok(vec![$((stringify!($field), (&self.$field).into_bound_py_any(py)?)),*])
            }
        }

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = $signature $(, text_signature = $shown)?)]
            #[allow(clippy::too_many_arguments)]
            fn new($($field: $ty),*) -> Self { Self { $($field),* } }

            #[classattr]
            #[pyo3(name = "type")]
            fn type_(py: Python<'_>) -> Py<PyString> { PyString::intern(py, $type).unbind() }

            #[classattr]
            fn __match_args__(py: Python<'_>) -> PyResult<Py<PyTuple>> {
                Ok(PyTuple::new(py, [$(stringify!($field)),*])?.unbind())
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> { repr(stringify!($name), &self.fields(py)?) }

            fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
                let py = other.py();
                let same = match other.cast::<Self>() {
                    Ok(other) => equal(&self.fields(py)?, &other.get().fields(py)?)?,
                    Err(_) => return Ok(py.NotImplemented()),
                };
                answer(py, op, same)
            }

            fn __hash__(&self, py: Python<'_>) -> PyResult<isize> { hash(py, self.fields(py)?) }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
                reduce(slf.as_any(), slf.get().fields(slf.py())?)
            }

            /// Return the event as data that `json.dumps` accepts: `type` first, then the fields in constructor order.
            ///
            /// Tuples become lists. Bytes become text, with U+FFFD for invalid UTF-8. Use `.raw` to get the bytes.
            fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> { to_dict(py, $type, self.fields(py)?) }

            $($($extra)*)?
        }
    };
}

event!(
    /// Id, model and creation time of the response. Emitted at most once, before any content.
    ResponseStarted = "response_started",
    (id: OptStr, model: OptStr, created: Object, provider_metadata: Json),
    (id=None, model=None, created=None, provider_metadata=None)
);

event!(
    /// Start of a text part.
    TextStarted = "text_started",
    (part: u32, item_id: OptStr, choice: i32, provider_metadata: Json),
    (part, item_id=None, choice=0, provider_metadata=None)
);

event!(
    /// The complete text of a part, with its annotations (citations) as sent by the gateway.
    TextDone = "text_done",
    (part: u32, text: Str, annotations: LazyItems, choice: i32, provider_metadata: Json),
    (part, text, annotations=LazyItems::empty(), choice=0, provider_metadata=None) as "(part, text, annotations=(), choice=0, provider_metadata=None)"
);

event!(
    /// Start of a reasoning part.
    ReasoningStarted = "reasoning_started",
    (part: u32, kind: Str, item_id: OptStr, choice: i32, provider_metadata: Json),
    (part, kind, item_id=None, choice=0, provider_metadata=None)
);

event!(
    /// The complete reasoning of a part, with the values that a later turn must send back (`signature`,
    /// `encrypted_content`).
    ReasoningDone = "reasoning_done",
    (part: u32, text: Str, kind: Str, item_id: OptStr, signature: OptStr, encrypted_content: OptStr, choice: i32, provider_metadata: Json),
    (part, text, kind, item_id=None, signature=None, encrypted_content=None, choice=0, provider_metadata=None)
);

event!(
    /// Start of a refusal.
    RefusalStarted = "refusal_started",
    (part: u32, choice: i32, provider_metadata: Json),
    (part, choice=0, provider_metadata=None)
);

event!(
    /// A piece of a refusal, as received in one wire frame.
    RefusalDelta = "refusal_delta",
    (part: u32, text: Str, choice: i32, provider_metadata: Json),
    (part, text, choice=0, provider_metadata=None)
);

event!(
    /// The complete refusal.
    RefusalDone = "refusal_done",
    (part: u32, text: Str, choice: i32, provider_metadata: Json),
    (part, text, choice=0, provider_metadata=None)
);

event!(
    /// Start of a tool call. Emitted once the name is final; `call_id` may still be None.
    ToolCallStarted = "tool_call_started",
    (part: u32, call_id: OptStr, item_id: OptStr, name: Str, choice: i32, provider_metadata: Json),
    (part, call_id=None, item_id=None, name=empty(), choice=0, provider_metadata=None) as "(part, call_id=None, item_id=None, name='', choice=0, provider_metadata=None)"
);

event!(
    /// The final form of a tool call. It is never reset, retracted or repeated.
    ///
    /// `state` is `complete` (closed, the arguments are a JSON object), `empty` (closed, no argument text),
    /// `incomplete` (truncated), `invalid` (see `reason`: `no_name`, `bad_name`, `bad_id`, `overflow`, `not_json`,
    /// `not_object`, or `refused` by the sender), or `open` (only in the snapshot of an unfinished stream). `arguments`
    /// is the text as sent; after an `overflow`, it is only the first value, and `raw_arguments` is all of the text.
    /// `aliases` are other ids that the gateway used for the same call.
    ///
    /// `custom` is true for a call to a free-form tool: its `arguments` are text, not JSON, and `complete` means that
    /// all of the text has arrived. `origin` is "text" if the model wrote the call into its text
    /// (`Policy(text_calls="promote")`); `raw_text` then contains that text. For other calls, `origin` is None.
    ToolCall = "tool_call",
    (part: u32, call_id: Str, name: Str, arguments: Str, state: Str, item_id: OptStr, reason: OptStr, raw_arguments: OptStr, provider_executed: bool, aliases: Tuple, custom: bool, origin: OptStr, raw_text: OptStr, choice: i32, provider_metadata: Json),
    (part, call_id, name, arguments, state, item_id=None, reason=None, raw_arguments=None, provider_executed=false, aliases=no_items(), custom=false, origin=None, raw_text=None, choice=0, provider_metadata=None) as "(part, call_id, name, arguments, state, item_id=None, reason=None, raw_arguments=None, provider_executed=False, aliases=(), custom=False, origin=None, raw_text=None, choice=0, provider_metadata=None)",
    {
        /// The arguments as an object, parsed on each access; `{}` for an `empty` call.
        ///
        /// Raises:
        ///     ArgumentsError: if the state is neither `complete` nor `empty`, or if the call is `custom`, because its
        ///         `arguments` are text. The exception has `state`, `reason` and `rule`.
        #[getter]
        fn parsed<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
            let py = slf.py();
            static PARSED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            PARSED.import(py, "streamweld._arguments", "parsed_arguments")?.call1((slf,))
        }

        /// Whether a client may run this call.
        ///
        /// True if its state is `complete` or `empty`, it has a name and an id, and the provider does not run it.
        ///
        /// The event does not show whether the call has already been run: in a stream that continues after its tools
        /// ran (AI SDK UI messages), the result may follow later. `response.dispatchable_calls` omits such calls once
        /// the stream has ended.
        #[getter]
        fn dispatchable(&self, py: Python<'_>) -> PyResult<bool> {
            let runs = matches!(self.state.bind(py).to_str()?, "complete" | "empty");
            Ok(runs && self.name.bind(py).len()? > 0 && self.call_id.bind(py).len()? > 0 && !self.provider_executed)
        }
    }
);

event!(
    /// A repair of a call's arguments: discard the deltas received for this part so far. The corrected text follows in
    /// full.
    ToolCallReset = "tool_call_reset",
    (part: u32, choice: i32, provider_metadata: Json),
    (part, choice=0, provider_metadata=None)
);

event!(
    /// A tentative call was withdrawn: discard the part.
    ToolCallRetracted = "tool_call_retracted",
    (part: u32, choice: i32, provider_metadata: Json),
    (part, choice=0, provider_metadata=None)
);

event!(
    /// The result of a tool that the provider ran.
    ToolResult = "tool_result",
    (part: u32, call_id: Str, output: Lazy, is_error: bool, choice: i32, provider_metadata: Json),
    (part, call_id, output, is_error=false, choice=0, provider_metadata=None)
);

event!(
    /// A piece of the output of a tool that the provider runs, sent while the tool runs.
    ///
    /// `output` is the piece as sent. The `ToolResult` that follows for the part has the whole output.
    ToolResultDelta = "tool_result_delta",
    (part: u32, call_id: Str, output: Lazy, choice: i32, provider_metadata: Json),
    (part, call_id, output, choice=0, provider_metadata=None)
);

event!(
    /// A source that the response cites.
    Source = "source",
    (part: u32, url: OptStr, title: OptStr, document: Json, choice: i32, provider_metadata: Json),
    (part, url=None, title=None, document=None, choice=0, provider_metadata=None)
);

event!(
    /// A file or image in the response, as base64 `data` or a `url`.
    File = "file",
    (part: u32, media_type: OptStr, data: OptStr, url: OptStr, choice: i32, provider_metadata: Json),
    (part, media_type=None, data=None, url=None, choice=0, provider_metadata=None)
);

event!(
    /// An item or content block that only the provider reads and that a later turn has to send back unchanged, such as
    /// a compaction or a list of MCP tools.
    ///
    /// `kind` is its `type` on the wire, and `value` is the item or block as sent.
    ProviderItem = "provider_item",
    (part: u32, kind: Str, value: Lazy, item_id: OptStr, choice: i32, provider_metadata: Json),
    (part, kind, value, item_id=None, choice=0, provider_metadata=None)
);

event!(
    /// Token counts for the response. Counts that the gateway did not send are None. `raw` is the gateway's usage
    /// object.
    Usage = "usage",
    (input_tokens: Object, output_tokens: Object, total_tokens: Object, cached_input_tokens: Object, cache_write_tokens: Object, reasoning_tokens: Object, raw: Json),
    (input_tokens=None, output_tokens=None, total_tokens=None, cached_input_tokens=None, cache_write_tokens=None, reasoning_tokens=None, raw=None),
    {
        /// Return counts normalized across APIs: the input includes the cache, and the output includes the reasoning.
        ///
        /// Args:
        ///     dialect: the API that defines the counts; by default it is inferred from the members of `raw`.
        #[pyo3(signature = (dialect=None))]
        fn normalized<'py>(slf: &Bound<'py, Self>, dialect: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
            let py = slf.py();
            static NORMALIZED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            NORMALIZED.import(py, "streamweld.usage", "normalized")?.call1((slf, dialect))
        }
    }
);

event!(
    /// End of a choice, emitted after all its parts. `raw_reason` is the finish reason as sent.
    Finished = "finished",
    (finish_reason: Str, raw_reason: OptStr, choice: i32, provider_metadata: Json),
    (finish_reason, raw_reason=None, choice=0, provider_metadata=None) as "(finish_reason, raw_reason=None, choice=0, provider_metadata=None)",
    {
        /// Deprecated alias of `finish_reason`.
        #[getter]
        fn reason(&self, py: Python<'_>) -> Str { self.finish_reason.clone_ref(py) }
    }
);

event!(
    /// An error that the gateway sent inside the stream. This is the last event before `UpstreamError` is raised.
    UpstreamErrorEvent = "upstream_error_event",
    (code: OptStr, kind: OptStr, message: Str, raw: Py<PyBytes>),
    (code, kind, message, raw)
);

event!(
    /// A repair or an anomaly. `code` is stable. The offset and ordinal locate the diagnostic in the stream and do not
    /// depend on the chunk sizes.
    ///
    /// `message` is human-readable; `detail` is the part of it that depends on the stream.
    Diagnostic = "diagnostic",
    (code: Str, severity: Str, byte_offset: u64, event_ordinal: u64, part: Option<u32>, detail: Str),
    (code, severity, byte_offset, event_ordinal, part=None, detail=empty()) as "(code, severity, byte_offset, event_ordinal, part=None, detail='')",
    {
        /// A sentence that describes what happened and what streamweld did, followed by `detail`.
        #[getter]
        fn message<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
            let py = slf.py();
            static MESSAGE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            MESSAGE.import(py, "streamweld._messages", "diagnostic_message")?.call1((slf,))
        }

        /// The URL of the documentation for the code.
        #[getter]
        fn help_url<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
            let py = slf.py();
            static HELP_URL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            HELP_URL.import(py, "streamweld._messages", "diagnostic_help_url")?.call1((slf,))
        }
    }
);

event!(
    /// A payload that no decoder recognizes, unchanged.
    Unknown = "unknown",
    (event: OptStr, raw: Py<PyBytes>),
    (event, raw)
);

fn empty() -> Str {
    Python::attach(|py| PyString::intern(py, "").unbind())
}

fn no_items() -> Tuple {
    Python::attach(|py| PyTuple::empty(py).unbind())
}

pub(crate) fn repr(name: &str, fields: &Fields<'_>) -> PyResult<String> {
    let mut out = String::from(name);
    for (i, (field, value)) in fields.iter().enumerate() {
        out.push_str(if i == 0 { "(" } else { ", " });
        out.push_str(field);
        out.push('=');
        out.push_str(value.repr()?.to_str()?);
    }
    out.push(')');
    Ok(out)
}

pub(crate) fn equal(left: &Fields<'_>, right: &Fields<'_>) -> PyResult<bool> {
    for ((_, left), (_, right)) in left.iter().zip(right) {
        if !left.eq(right)? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) fn answer(py: Python<'_>, op: CompareOp, same: bool) -> PyResult<Py<PyAny>> {
    match op {
        CompareOp::Eq => same.into_py_any(py),
        CompareOp::Ne => (!same).into_py_any(py),
        _ => Ok(py.NotImplemented()),
    }
}

/// Returns the class and the arguments from which `pickle` rebuilds the event.
pub(crate) fn reduce<'py>(
    slf: &Bound<'py, PyAny>,
    fields: Fields<'py>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = slf.py();
    let values = fields.into_iter().map(|(_, value)| value);
    let values = PyTuple::new(py, values.collect::<Vec<_>>())?;
    PyTuple::new(py, [slf.get_type().into_any(), values.into_any()])
}

pub(crate) fn hash(py: Python<'_>, fields: Fields<'_>) -> PyResult<isize> {
    let values: Vec<_> = fields.into_iter().map(|(_, value)| value).collect();
    PyTuple::new(py, values)?.hash()
}

pub(crate) fn to_dict<'py>(
    py: Python<'py>,
    name: &str,
    fields: Fields<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item(intern!(py, "type"), name)?;
    for (field, value) in fields {
        let value = if let Ok(bytes) = value.cast::<PyBytes>() {
            String::from_utf8_lossy(bytes.as_bytes()).into_bound_py_any(py)?
        } else if let Ok(tuple) = value.cast::<PyTuple>() {
            tuple.to_list().into_any()
        } else {
            value
        };
        dict.set_item(field, value)?;
    }
    Ok(dict)
}
