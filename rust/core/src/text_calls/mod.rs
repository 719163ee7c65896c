//! Finds tool calls that a model wrote into its text, parses them, and determines whether they may become real calls.
//!
//! The docstring of `python/streamweld/_pure/text_calls/__init__.py` specifies the behavior of both backends. Text is
//! held back and released in `pipeline::text_calls`, not here.

pub(crate) mod byte_set;
pub(crate) mod entry;
pub(crate) mod family;
pub(crate) mod fences;
pub(crate) mod grammar;
pub(crate) mod layout;
pub(crate) mod marker_tree;
pub(crate) mod marks;
pub(crate) mod open;
pub(crate) mod plain_text;
pub(crate) mod quotes;
pub(crate) mod reading;
pub(crate) mod scanner;
pub(crate) mod settings;
pub(crate) mod values;
pub(crate) mod words;
