//! The two stream formats of Vercel's AI SDK (model stream parts and UI message chunks), and their shared code.

pub(crate) mod blocks;
pub(crate) mod part;
pub(crate) mod parts;
pub(crate) mod plain_delta;
pub(crate) mod ui;
