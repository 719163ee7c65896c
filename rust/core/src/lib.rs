//! Turns the bytes of an LLM stream into events: framing, JSON, decoding, assembly.
//!
//! Sans-I/O: no sockets, clocks, threads, logging or environment, and nothing of Python.
//! Any bytes end in events, diagnostics or a `Fault`; nothing in here panics on input.
#![forbid(unsafe_code)]

pub mod assemble;
pub mod config;
pub mod delta;
mod dialect;
mod ending;
pub mod event;
pub mod fault;
pub mod json;
mod ladder;
pub mod limits;
pub mod out;
pub mod parser;
pub mod policy;
pub mod spec;
pub mod sse;
mod stage;

pub use config::Config;
pub use dialect::Dialect;
pub use parser::Parser;
