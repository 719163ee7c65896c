//! Data types that all layers share: deltas, events, faults, configuration, and limits. The rules for interpreting
//! streams are in other packages.

pub mod config;
pub mod delta;
pub mod event;
pub mod fault;
pub(crate) mod finish_words;
pub(crate) mod lazy_box;
pub mod limits;
pub(crate) mod list_path;
pub(crate) mod loss_log;
pub mod output;
pub mod policy;
pub(crate) mod small_map;
pub mod spec;
pub mod unmodelled;
