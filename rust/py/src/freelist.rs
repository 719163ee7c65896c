//! Keeps the memory of dropped objects, so that new objects of the same class can reuse it.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use pyo3::ffi;

/// An object that begins with the interpreter's object head and can be linked into a list once no references to it
/// exist.
pub(crate) trait Spare {
    /// Returns the field that stores the link, which must be a field that a dead object does not need.
    fn next(&mut self) -> &mut *mut ffi::PyObject;
}

/// Maximum number of dead objects to keep per class, which is about the number of events in a 64 KiB read.
const SPARE: usize = 256;

/// True if the interpreter has a global lock. In an interpreter without a global lock, an object head contains more
/// than a count and a type.
const LOCKED: bool = size_of::<ffi::PyObject>() == size_of::<[usize; 2]>();

/// The dead objects of one class, as a linked list. Each object keeps its object head, and thereby its reference to the
/// type. The list is accessed only while the global lock is held. Atomic fields avoid a `static mut` at no cost.
#[derive(Debug)]
pub(crate) struct Freelist<T> {
    first: AtomicPtr<T>,
    count: AtomicUsize,
}

impl<T: Spare> Freelist<T> {
    pub(crate) const fn new() -> Freelist<T> {
        Freelist {
            first: AtomicPtr::new(null_mut()),
            count: AtomicUsize::new(0),
        }
    }

    /// Returns an object of the class with an initialized head. The caller gets the only reference to the object.
    ///
    /// # Safety
    ///
    /// The thread must be attached to the interpreter.
    #[inline]
    pub(crate) unsafe fn take(&self) -> Option<*mut T> {
        let spare = self.first.load(Relaxed);
        if spare.is_null() {
            return None;
        }
        // SAFETY: the list contains only objects whose link is null or the address of the next object, and nothing else
        // refers to them. The lock is held from `load` to `store`, because nothing in between releases it.
        self.first.store(unsafe { (*spare).next().cast() }, Relaxed);
        self.count
            .store(self.count.load(Relaxed).wrapping_sub(1), Relaxed);
        Some(spare)
    }

    /// Adds an unreferenced object to the list. Returns false if the list is full.
    ///
    /// # Safety
    ///
    /// `object` must have this freelist's class and a reference count of 0, its fields must be dropped, and the thread
    /// must be attached to the interpreter.
    #[inline]
    pub(crate) unsafe fn keep(&self, object: *mut T) -> bool {
        let count = self.count.load(Relaxed);
        if !LOCKED || count >= SPARE {
            return false;
        }
        // SAFETY: guaranteed by the caller, and the lock is held as in `take`. `dealloc` may resurrect an object, as
        // finalizers do, because the interpreter does not access the object after calling `dealloc`.
        unsafe {
            ffi::Py_INCREF(object.cast());
            *(*object).next() = self.first.load(Relaxed).cast();
        }
        self.first.store(object, Relaxed);
        self.count.store(count + 1, Relaxed);
        true
    }
}
