//! `LazyBox` is a value that is allocated on its first mutable borrow, and takes one word until then.
//!
//! The type is used for state that few streams need. Reading an unallocated box returns a shared default value. A
//! mutable borrow always allocates, so avoid a mutable borrow if nothing will change.

use std::ops::Deref;
use std::ops::DerefMut;

/// A type whose default value is shared by all unallocated boxes.
pub trait Blank: Default + 'static {
    fn blank() -> &'static Self;
}

/// Implements `Blank` for the given types, with a static default value.
macro_rules! blank {
    ($($kind:ty),+ $(,)?) => {$(
        impl $crate::model::lazy_box::Blank for $kind {
            fn blank() -> &'static Self {
                static BLANK: std::sync::LazyLock<$kind> = std::sync::LazyLock::new(<$kind>::default);
                &BLANK
            }
        }
    )+};
}
pub(crate) use blank;

impl<T: 'static> Blank for Vec<T> {
    #[inline]
    fn blank() -> &'static Self {
        const { &Vec::new() }
    }
}

/// A value that is allocated on its first mutable borrow.
#[derive(Clone, Debug)]
pub struct LazyBox<T>(Option<Box<T>>);

impl<T> Default for LazyBox<T> {
    fn default() -> Self {
        LazyBox(None)
    }
}

impl<T: Default> LazyBox<T> {
    /// Returns true if the box is not allocated.
    pub fn is_blank(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the value, or the default value if the box is not allocated, and frees the box.
    pub fn take(&mut self) -> T {
        self.0.take().map(|value| *value).unwrap_or_default()
    }
}

impl<T> From<T> for LazyBox<T> {
    fn from(value: T) -> Self {
        LazyBox(Some(Box::new(value)))
    }
}

impl<T: Blank> Deref for LazyBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => T::blank(),
        }
    }
}

impl<T: Blank> DerefMut for LazyBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}
