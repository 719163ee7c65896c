//! State that few streams need: one word and no allocation as long as nobody writes to it.
//!
//! Read it and it is as new; borrow it to write and it is there. So ask before you write what would change nothing. It
//! knows nothing of what it holds.

use std::ops::Deref;
use std::ops::DerefMut;

/// What can be lent before it was made.
pub trait Blank: Default + 'static {
    fn blank() -> &'static Self;
}

/// `Blank` for types: one that is new and stays so, shared by all.
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

/// A value that is only made when somebody writes to it.
#[derive(Clone, Debug)]
pub struct LazyBox<T>(Option<Box<T>>);

impl<T> Default for LazyBox<T> {
    fn default() -> Self {
        LazyBox(None)
    }
}

impl<T: Default> LazyBox<T> {
    /// It is as new, for all that was written.
    pub fn is_blank(&self) -> bool {
        self.0.is_none()
    }

    /// What was there; from here on it is as new.
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
