//! Turns the bytes of an LLM stream into events: framing, JSON, decoding, assembly.
//!
//! Sans-I/O: no sockets, clocks, threads, logging or environment, and nothing of Python.
//! Any bytes end in events, diagnostics or a `Fault`; nothing in here panics on input.
#![forbid(unsafe_code)]

mod ai_sdk_block;
mod ai_sdk_part;
mod ai_sdk_piece;
mod array_body;
mod arrival;
pub mod assemble;
mod behind_error;
mod block;
mod complaint;
pub mod config;
pub mod convert;
mod counts;
mod decode;
mod decoding;
pub mod delta;
mod detection;
mod dialect;
mod encode;
mod ending;
mod envelope;
pub mod event;
pub mod fault;
mod few;
mod gate;
pub mod json;
mod ladder;
mod leftovers;
pub mod limits;
mod lost;
mod notes;
pub mod out;
pub mod parser;
pub mod policy;
mod rare;
pub mod repair;
pub mod spec;
pub mod sse;
mod stage;
mod texts;
mod waiting;
mod wire;

pub use config::Config;
pub use convert::Converter;
pub use dialect::Dialect;
pub use encode::job::Options as WriteOptions;
pub use parser::Parser;
pub use repair::Repairer;
