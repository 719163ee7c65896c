//! All integration tests of the core, in one binary: each would link the crate anew.

mod convert_vectors;
mod envelopes;
mod envelopes_items;
mod items;
mod json_agree;
mod json_vectors;
mod model;
mod random;
mod repair_vectors;
mod retold;
mod rows_items;
mod sse_framer;
mod sse_vectors;
mod vectors;
