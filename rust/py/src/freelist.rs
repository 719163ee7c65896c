//! Memory of dead objects for the next ones of their class. Knows no class.

use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use pyo3::ffi;

/// An object that begins with the interpreter's head, and can be linked while it is dead.
pub(crate) trait Spare {
    /// A field that is of no use to the dead.
    fn next(&mut self) -> &mut *mut ffi::PyObject;
}

/// How many dead objects of a class are kept for the next ones: as many as a read of 64 KiB or so has events.
const SPARE: usize = 256;

/// Whether the interpreter has its global lock. Without it an object's head is longer than its count and its type.
const LOCKED: bool = size_of::<ffi::PyObject>() == size_of::<[usize; 2]>();

/// The dead objects of one class, each with the next one in a field of its own. They keep their head: the type, and one
/// reference, which is the freelist's. Read and written under the global lock only; atomic so that it needs no `static mut`,
/// at no cost.
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

    /// An object of the class with its head, and with the one reference to it.
    ///
    /// # Safety
    ///
    /// The thread is attached to the interpreter.
    #[inline]
    pub(crate) unsafe fn take(&self) -> Option<*mut T> {
        let spare = self.first.load(Relaxed);
        if spare.is_null() {
            return None;
        }
        // SAFETY: what is here is an object whose link is the next one's address or null, and nobody else refers to it. The
        // lock is held from `load` to `store`: nothing in between gives it up.
        self.first.store(unsafe { (*spare).next().cast() }, Relaxed);
        self.count
            .store(self.count.load(Relaxed).wrapping_sub(1), Relaxed);
        Some(spare)
    }

    /// Keeps an object that nobody refers to any more; false where there are enough.
    ///
    /// # Safety
    ///
    /// `object` is of this freelist's class, its count is 0, its fields are dropped, and the thread is attached to the
    /// interpreter.
    #[inline]
    pub(crate) unsafe fn keep(&self, object: *mut T) -> bool {
        let count = self.count.load(Relaxed);
        if !LOCKED || count >= SPARE {
            return false;
        }
        // SAFETY: as the caller says; the lock as above. An object may come back to life while it is dropped, as after a
        // finalizer: the interpreter looks at nothing of it once `dealloc` was called.
        unsafe {
            ffi::Py_INCREF(object.cast());
            *(*object).next() = self.first.load(Relaxed).cast();
        }
        self.first.store(object, Relaxed);
        self.count.store(count + 1, Relaxed);
        true
    }
}
