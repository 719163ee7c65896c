//! Tool calls that a model wrote into its text: where one may stand, what it says, and whether it may become a call.
//!
//! `python/streamweld/_pure/text_calls/__init__.py` defines what both backends do. `pipeline::text_calls` holds text and
//! releases it; nothing in here does.

pub(crate) mod entry;
pub(crate) mod family;
pub(crate) mod grammar;
pub(crate) mod layout;
pub(crate) mod reading;
pub(crate) mod scanner;
pub(crate) mod settings;
pub(crate) mod values;
