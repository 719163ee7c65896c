//! Writes the two stream protocols of the AI SDK.

pub(crate) mod chunk;
pub(crate) mod common;
pub(crate) mod parts;
pub(crate) mod ui;
pub(crate) mod web_search;
