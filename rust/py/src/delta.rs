//! Classes for the three most frequent events: `TextDelta`, `ReasoningDelta`, `ToolCallDelta`.
//!
//! To callers, the three classes behave like the classes in `events`. The classes are built directly on the C API,
//! because an ordinary extension object takes twice as long to create and drop, and the garbage collector would track
//! it. The objects contain only a string and sometimes plain data, so the garbage collector does not have to track
//! them. All `unsafe` code in the bindings is in this module, in `freelist` (memory reuse), in `string_cache` (string
//! creation) and in `arrow/capsule`.
//!
//! The `unsafe` code is sound because `Object` has C layout and begins with the interpreter's object head, and the type
//! spec contains the object's size. `make` returns a fully initialized object, which owns its two references. Neither
//! reference is null. Only `get_metadata` writes to the object, while the global interpreter lock is held.

use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::mem::offset_of;
use std::ptr::{addr_of_mut, null, null_mut};

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::errors;
use crate::events::{self, Fields};
use crate::freelist::{Freelist, Spare};
use crate::lazy::UnreadJson;

const MODULE: &str = "streamweld.events";

/// One of the three classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Reasoning,
    Arguments,
}

/// Properties that differ between the classes.
struct Class {
    name: &'static str,
    event: &'static str,
    /// Field names in order.
    fields: [&'static CStr; 4],
    doc: &'static CStr,
    new: ffi::newfunc,
    dealloc: ffi::destructor,
}

static CLASSES: [Class; 3] = [
    Class {
        name: "TextDelta",
        event: "text_delta",
        fields: [c"part", c"text", c"choice", c"provider_metadata"],
        doc: c"TextDelta(part, text, choice=0, provider_metadata=None)\n--\n\n\
               A piece of text, as received in one wire frame.",
        new: new_text,
        dealloc: dealloc_text,
    },
    Class {
        name: "ReasoningDelta",
        event: "reasoning_delta",
        fields: [c"part", c"text", c"choice", c"provider_metadata"],
        doc: c"ReasoningDelta(part, text, choice=0, provider_metadata=None)\n--\n\n\
               A piece of reasoning, as received in one wire frame.",
        new: new_reasoning,
        dealloc: dealloc_reasoning,
    },
    Class {
        name: "ToolCallDelta",
        event: "tool_call_delta",
        fields: [c"part", c"arguments", c"choice", c"provider_metadata"],
        doc: c"ToolCallDelta(part, arguments, choice=0, provider_metadata=None)\n--\n\n\
               A piece of a call's arguments. The pieces since the part's last `ToolCallReset` add up to the whole text.",
        new: new_arguments,
        dealloc: dealloc_arguments,
    },
];

#[repr(C)]
struct Object {
    head: ffi::PyObject,
    text: *mut ffi::PyObject,
    /// A dict, an `UnreadJson` until the metadata is first read, or None, which is immortal and not reference-counted
    /// here.
    metadata: *mut ffi::PyObject,
    part: c_uint,
    choice: c_int,
}

/// The three classes, created on first use.
#[derive(Debug)]
pub(crate) struct Types {
    text: Py<PyType>,
    reasoning: Py<PyType>,
    arguments: Py<PyType>,
}

impl Types {
    pub(crate) fn get(py: Python<'_>) -> PyResult<&Types> {
        static TYPES: PyOnceLock<Types> = PyOnceLock::new();
        TYPES.get_or_try_init(py, || {
            let [text, reasoning, arguments] = &CLASSES;
            Ok(Types {
                text: class(py, text)?,
                reasoning: class(py, reasoning)?,
                arguments: class(py, arguments)?,
            })
        })
    }

    /// Returns each class with its name.
    pub(crate) fn all(&self) -> [(&'static str, &Py<PyType>); 3] {
        [
            ("TextDelta", &self.text),
            ("ReasoningDelta", &self.reasoning),
            ("ToolCallDelta", &self.arguments),
        ]
    }

    #[inline]
    fn of(&self, kind: Kind) -> &Py<PyType> {
        match kind {
            Kind::Text => &self.text,
            Kind::Reasoning => &self.reasoning,
            Kind::Arguments => &self.arguments,
        }
    }

    /// Creates an event. Returns `None` if memory cannot be allocated.
    #[inline]
    pub(crate) fn make(
        &self,
        py: Python<'_>,
        kind: Kind,
        part: u32,
        text: Py<PyString>,
        choice: i32,
        metadata: Option<Py<PyAny>>,
    ) -> Option<Py<PyAny>> {
        let class = self.of(kind).as_ptr().cast::<ffi::PyTypeObject>();
        // SAFETY: `class` is one of the three classes here: its objects have the layout and size of `Object`. Every
        // field is written before the object becomes visible to other code. The object's head is initialized for this
        // class, with one reference, which the caller receives. The object also owns a reference to its type.
        unsafe {
            let object = match kind.freelist().take() {
                Some(spare) => spare,
                None => ffi::PyObject_New::<Object>(class),
            };
            if object.is_null() {
                return None;
            }
            addr_of_mut!((*object).text).write(text.into_ptr());
            addr_of_mut!((*object).metadata)
                .write(metadata.map_or_else(|| ffi::Py_None(), Py::into_ptr));
            addr_of_mut!((*object).part).write(part);
            addr_of_mut!((*object).choice).write(choice);
            Some(Bound::from_owned_ptr(py, object.cast()).unbind())
        }
    }
}

/// Unused objects of each class, kept so that their memory can be reused.
static FREE_OBJECTS: [Freelist<Object>; 3] = [const { Freelist::new() }; 3];

impl Spare for Object {
    fn next(&mut self) -> &mut *mut ffi::PyObject {
        &mut self.text
    }
}

impl Kind {
    #[inline(always)]
    fn freelist(self) -> &'static Freelist<Object> {
        let [text, reasoning, arguments] = &FREE_OBJECTS;
        match self {
            Kind::Text => text,
            Kind::Reasoning => reasoning,
            Kind::Arguments => arguments,
        }
    }
}

/// Defines the function that the interpreter calls when an object loses its last reference.
macro_rules! deallocator {
    ($dealloc:ident, $kind:expr) => {
        unsafe extern "C" fn $dealloc(slf: *mut ffi::PyObject) {
            // SAFETY: `slf` is an object of this class to which no references exist.
            unsafe { drop_object(slf, $kind.freelist()) }
        }
    };
}

deallocator!(dealloc_text, Kind::Text);
deallocator!(dealloc_reasoning, Kind::Reasoning);
deallocator!(dealloc_arguments, Kind::Arguments);

/// # Safety
///
/// `slf` must be created by `make`, have the freelist's class and have no references, and the thread must be attached
/// to the interpreter.
#[inline(always)]
unsafe fn drop_object(slf: *mut ffi::PyObject, freelist: &Freelist<Object>) {
    let object = slf.cast::<Object>();
    // SAFETY: the object's references are owned and are not used after they are dropped, and the memory is either kept
    // or freed. Each object owns a reference to its type; the reference stays with the memory.
    unsafe {
        ffi::Py_DECREF((*object).text);
        if (*object).metadata != ffi::Py_None() {
            ffi::Py_DECREF((*object).metadata);
        }
        if !freelist.keep(object) {
            let class = ffi::Py_TYPE(slf);
            ffi::PyObject_Free(slf.cast());
            ffi::Py_DECREF(class.cast());
        }
    }
}

/// Creates one class. The interpreter keeps pointers to the class's data, so the data is leaked once per process.
fn class(py: Python<'_>, class: &Class) -> PyResult<Py<PyType>> {
    let [part, text, choice, metadata] = class.fields;
    let member = |name: &'static CStr, code: c_int, offset: usize| ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: code,
        offset: offset as ffi::Py_ssize_t,
        flags: ffi::Py_READONLY,
        doc: null(),
    };
    let members = Box::leak(Box::new([
        member(part, ffi::Py_T_UINT, offset_of!(Object, part)),
        member(text, ffi::Py_T_OBJECT_EX, offset_of!(Object, text)),
        member(choice, ffi::Py_T_INT, offset_of!(Object, choice)),
        ffi::PyMemberDef::default(),
    ]));
    let getters = Box::leak(Box::new([
        ffi::PyGetSetDef {
            name: metadata.as_ptr(),
            get: Some(get_metadata),
            ..ffi::PyGetSetDef::default()
        },
        ffi::PyGetSetDef::default(),
    ]));
    let method =
        |name: &'static CStr, call: ffi::PyCFunction, doc: &'static CStr| ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunction: call },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: doc.as_ptr(),
        };
    let methods = Box::leak(Box::new([
        method(c"__reduce__", reduce, c"__reduce__($self)\n--\n\n"),
        method(
            c"to_dict",
            to_dict,
            c"to_dict($self)\n--\n\n\
              The event as data that `json.dumps` takes: `type` first, then every field in order of construction.",
        ),
        ffi::PyMethodDef::zeroed(),
    ]));
    let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_tp_doc, class.doc.as_ptr().cast_mut().cast()),
        slot(ffi::Py_tp_new, class.new as *mut c_void),
        slot(ffi::Py_tp_dealloc, class.dealloc as *mut c_void),
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_getset, getters.as_mut_ptr().cast()),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        slot(ffi::Py_tp_repr, repr as *mut c_void),
        slot(ffi::Py_tp_richcompare, compare as *mut c_void),
        slot(ffi::Py_tp_hash, hash as *mut c_void),
        slot(0, null_mut()),
    ];
    let path = Box::leak(CString::new(format!("{MODULE}.{}", class.name))?.into_boxed_c_str());
    let mut spec = ffi::PyType_Spec {
        name: path.as_ptr(),
        basicsize: size_of::<Object>() as c_int,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec is complete and terminated, its names, members and methods are never freed, and each function
    // has the signature that its slot requires.
    let made = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec))? };
    let made = made.cast_into::<PyType>()?;
    made.setattr("type", PyString::intern(py, class.event))?;
    made.setattr("__match_args__", PyTuple::new(py, names(class))?)?;
    Ok(made.unbind())
}

fn names(class: &Class) -> [&'static str; 4] {
    class.fields.map(|name| name.to_str().unwrap_or_default())
}

// Functions that the interpreter calls. These functions are not performance-critical, and only their raw pointers are
// unsafe.

/// Runs a call from the interpreter into this module. Sets an exception if the call fails or panics.
fn guard<T>(failed: T, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
    Python::attach(|py| {
        let result = errors::guarded(|| call(py));
        let result = result.unwrap_or_else(|panic| Err(errors::internal(py, &panic, Vec::new())));
        result.unwrap_or_else(|error| {
            error.restore(py);
            failed
        })
    })
}

/// Borrows an object that the interpreter passed, for the duration of a call. Null becomes `None`.
///
/// # Safety
///
/// `object` is null or an object that lives at least as long as the call.
unsafe fn borrowed<'py>(py: Python<'py>, object: *mut ffi::PyObject) -> Option<Bound<'py, PyAny>> {
    // SAFETY: guaranteed by the caller.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, object) }
}

/// Borrows the object on which a method was called, which is never null.
///
/// # Safety
///
/// `object` is an object that lives at least as long as the call.
unsafe fn this<'py>(py: Python<'py>, object: *mut ffi::PyObject) -> Bound<'py, PyAny> {
    // SAFETY: guaranteed by the caller.
    unsafe { Bound::from_borrowed_ptr(py, object) }
}

/// Returns an event's class, and its fields in order.
fn fields<'py>(slf: &Bound<'py, PyAny>) -> PyResult<(&'static Class, Fields<'py>)> {
    let types = Types::get(slf.py())?;
    let [text, reasoning, arguments] = &CLASSES;
    let class = match slf.get_type() {
        class if class.is(&types.text) => text,
        class if class.is(&types.reasoning) => reasoning,
        _ => arguments,
    };
    let names = names(class).into_iter();
    let fields = names.map(|name| Ok((name, slf.getattr(name)?)));
    Ok((class, fields.collect::<PyResult<Fields<'_>>>()?))
}

/// Returns the metadata. The value is built and stored at the first read, while the global interpreter lock is held.
/// The other fields never change.
unsafe extern "C" fn get_metadata(slf: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    let place = slf.cast::<Object>();
    guard(null_mut(), |py| {
        // SAFETY: the interpreter passes an object of this class that lives as long as the call. The event's metadata
        // is a Python object, and `metadata` has a separate reference to it.
        let metadata = unsafe { this(py, (*place).metadata) };
        let Some(value) = UnreadJson::value_of(&metadata)? else {
            return Ok(metadata.into_ptr());
        };
        // Python code ran while the value was built, so another thread may have stored a value in the meantime.
        // SAFETY: as above. If the text is still stored, its reference is dropped and replaced by a reference to the
        // value. Both references are owned, and `metadata` keeps the text alive until the end.
        unsafe {
            if (*place).metadata != metadata.as_ptr() {
                return Ok(this(py, (*place).metadata).into_ptr());
            }
            (*place).metadata = value.clone_ref(py).into_ptr();
            ffi::Py_DECREF(metadata.as_ptr());
        }
        Ok(value.into_ptr())
    })
}

unsafe extern "C" fn repr(slf: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(null_mut(), |py| {
        // SAFETY: the interpreter passes an object of this class.
        let slf = unsafe { this(py, slf) };
        let name = slf.get_type().name()?;
        let text = events::repr(name.to_str()?, &fields(&slf)?.1)?;
        Ok(PyString::new(py, &text).into_ptr())
    })
}

unsafe extern "C" fn compare(
    slf: *mut ffi::PyObject,
    other: *mut ffi::PyObject,
    op: c_int,
) -> *mut ffi::PyObject {
    guard(null_mut(), |py| {
        // SAFETY: the interpreter passes an object of this class and another object.
        let (slf, other) = unsafe { (this(py, slf), this(py, other)) };
        let op = CompareOp::from_raw(op).filter(|_| slf.get_type().is(other.get_type()));
        let Some(op) = op else {
            return Ok(py.NotImplemented().into_ptr());
        };
        let same = events::equal(&fields(&slf)?.1, &fields(&other)?.1)?;
        Ok(events::answer(py, op, same)?.into_ptr())
    })
}

unsafe extern "C" fn hash(slf: *mut ffi::PyObject) -> ffi::Py_hash_t {
    guard(-1, |py| {
        // SAFETY: the interpreter passes an object of this class.
        let slf = unsafe { this(py, slf) };
        events::hash(py, fields(&slf)?.1)
    })
}

unsafe extern "C" fn reduce(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(null_mut(), |py| {
        // SAFETY: the interpreter passes an object of this class.
        let slf = unsafe { this(py, slf) };
        Ok(events::reduce(&slf, fields(&slf)?.1)?.into_ptr())
    })
}

unsafe extern "C" fn to_dict(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(null_mut(), |py| {
        // SAFETY: the interpreter passes an object of this class.
        let slf = unsafe { this(py, slf) };
        let (class, fields) = fields(&slf)?;
        Ok(events::to_dict(py, class.event, fields)?.into_ptr())
    })
}

/// Defines the constructor of one class. A function with the same signature parses the arguments.
macro_rules! constructor {
    ($new:ident, $call:ident, $name:literal, $kind:expr, $text:ident) => {
        #[pyfunction(name = $name)]
        #[pyo3(signature = (part, $text, choice=0, provider_metadata=None))]
        fn $call(
            py: Python<'_>,
            part: u32,
            $text: Py<PyString>,
            choice: i32,
            provider_metadata: Option<Py<PyAny>>,
        ) -> PyResult<Py<PyAny>> {
            let metadata = provider_metadata.filter(|metadata| !metadata.is_none(py));
            let made = Types::get(py)?.make(py, $kind, part, $text, choice, metadata);
            made.ok_or_else(|| PyMemoryError::new_err(()))
        }

        unsafe extern "C" fn $new(
            _: *mut ffi::PyTypeObject,
            args: *mut ffi::PyObject,
            kwargs: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
            guard(null_mut(), |py| {
                // SAFETY: the interpreter passes a tuple, and either a dict or null.
                let (args, kwargs) = unsafe { (this(py, args), borrowed(py, kwargs)) };
                let kwargs = kwargs
                    .map(|kwargs| kwargs.cast_into::<PyDict>())
                    .transpose()?;
                static CALL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                let call = CALL.get_or_try_init(py, || {
                    wrap_pyfunction!($call, py).map(|call| call.into_any().unbind())
                })?;
                let made = call
                    .bind(py)
                    .call(args.cast_into::<PyTuple>()?, kwargs.as_ref())?;
                Ok(made.into_ptr())
            })
        }
    };
}

constructor!(new_text, text_delta, "TextDelta", Kind::Text, text);
constructor!(
    new_reasoning,
    reasoning_delta,
    "ReasoningDelta",
    Kind::Reasoning,
    text
);
constructor!(
    new_arguments,
    tool_call_delta,
    "ToolCallDelta",
    Kind::Arguments,
    arguments
);
