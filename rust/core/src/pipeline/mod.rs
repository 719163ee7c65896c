//! Stages from bytes to the decoder: payloads, dialect detection, salvage of broken JSON, and the end of a stream.

pub(crate) mod after_error;
pub(crate) mod array_body;
pub(crate) mod detect;
pub(crate) mod dispatch;
pub(crate) mod end_of_stream;
pub(crate) mod frame_receiver;
pub(crate) mod nested_event;
pub mod parser;
pub(crate) mod payload_pipeline;
pub(crate) mod salvage;
pub(crate) mod text_calls;
pub(crate) mod undetected;
