//! All integration tests of the core are in one binary, because every additional binary would have to be linked with
//! the crate.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used
)] // A test is allowed to fail.

mod comparable;
mod convert_vectors;
mod items;
mod json_agree;
mod json_vectors;
mod model;
mod random;
mod repair_vectors;
mod rows_items;
mod scaling;
mod sse_framer;
mod sse_vectors;
mod templates_chat;
mod templates_items;
mod vectors;
