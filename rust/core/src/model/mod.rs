//! Data types that every layer shares: deltas, events, faults, configuration and limits. The types contain no rules
//! about streams.

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
