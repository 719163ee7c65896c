//! Turns the bytes of an LLM stream into events, in four steps: framing, JSON parsing, decoding, and assembly.
//!
//! The crate is sans-I/O and does not use sockets, clocks, threads, logging, environment variables, or Python. Every
//! input results in events, diagnostics or a `Fault`, and no input causes a panic.
#![forbid(unsafe_code)]

pub mod assemble;
pub(crate) mod dialect;
pub(crate) mod encode;
pub(crate) mod fastpath;
pub mod json;
pub mod model;
pub(crate) mod pipeline;
pub mod repair;
pub mod sse;
pub(crate) mod text_calls;

pub use crate::dialect::Dialect;
pub use crate::encode::common::encode_context::Options as WriteOptions;
pub use crate::encode::common::tool_ids::ToolIdForm;
pub use crate::encode::converter::Converter;
pub use crate::encode::converter::Refusal;
pub use crate::model::config::Config;
pub use crate::pipeline::parser::Parser;
pub use crate::repair::Repairer;

/// The examples in the crate's README, which `cargo test` compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExamples;
