//! Turns the bytes of an LLM stream into events: framing, JSON, decoding, assembly.
//!
//! Sans-I/O: no sockets, clocks, threads, logging or environment, and nothing of Python.
//! Any bytes end in events, diagnostics or a `Fault`; nothing in here panics on input.
#![forbid(unsafe_code)]

pub mod fault;
pub mod json;
pub mod limits;
pub mod policy;
pub mod spec;
pub mod sse;
