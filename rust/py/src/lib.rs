//! `streamweld._native`: streamweld-core as a Python extension module, and nothing else.
//!
//! No rule of any stream lives here. Of the package it may import `errors`, `_arguments` and `_json`, at the first use.

mod config;
mod errors;
mod events;
mod input;
mod parser;
mod sink;
mod sse;

#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::events::{
        Diagnostic, File, Finished, ReasoningDelta, ReasoningDone, ReasoningStarted, RefusalDelta,
        RefusalDone, RefusalStarted, ResponseStarted, Source, TextDelta, TextDone, TextStarted,
        ToolCall, ToolCallDelta, ToolCallReset, ToolCallRetracted, ToolCallStarted, ToolResult,
        Unknown, UpstreamErrorEvent, Usage,
    };

    #[pymodule_export]
    use crate::parser::Parser;

    #[pymodule_export]
    use crate::sse::Framer;

    /// What was built, for bug reports and `streamweld bench`.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const BUILD_INFO: &str = concat!(
        "streamweld-core ",
        env!("CARGO_PKG_VERSION"),
        " (abi3-py311)"
    );
}
