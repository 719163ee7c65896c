//! Learns a template (constant bytes with holes) from a decoded payload, and matches later payloads against the
//! template.
//!
//! A match produces the same delta as the decoder would. This folder contains no parsing rules.

pub(crate) mod chat;
pub(crate) mod items;
pub(crate) mod numeral;
pub(crate) mod text_mark;
pub(crate) mod utf8_batch;
