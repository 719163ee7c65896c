//! Templates of Chat chunks.

pub(crate) mod cache;
pub(crate) mod learn;
pub(crate) mod rows;
pub(crate) mod template;
