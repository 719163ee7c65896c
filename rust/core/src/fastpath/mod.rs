//! The fast path: a template (constant bytes and holes) learned from a payload that was decoded in full, and tried on the next
//! ones. It gives the same delta as the decoder would; no rule of any stream is here.

pub(crate) mod chat;
pub(crate) mod items;
pub(crate) mod numeral;
pub(crate) mod text_mark;
pub(crate) mod utf8_batch;
