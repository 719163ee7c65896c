//! Defines `streamweld._native`, the Python bindings of streamweld-core. The bindings contain no parsing rules.
//!
//! This crate imports only the modules `errors`, `_arguments`, and `_json` of the package, and imports each when it is
//! first needed.

mod arrow;
mod config;
mod convert;
#[allow(unsafe_code)]
mod delta;
mod errors;
mod event_log;
mod events;
mod fold;
#[allow(unsafe_code)]
mod freelist;
mod input;
mod lazy;
mod objects;
mod parser;
mod partial;
mod repair;
mod sink;
mod sse;
#[allow(unsafe_code)]
mod string_cache;

#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    use crate::delta::Types;

    #[pymodule_export]
    use crate::arrow::{
        ArrowBatch, ArrowReader, ArrowSchema, ArrowTable, describe_arrow, read_arrow,
    };

    #[pymodule_export]
    use crate::convert::Converter;

    #[pymodule_export]
    use crate::events::{
        Diagnostic, File, Finished, ProviderItem, ReasoningDone, ReasoningStarted, RefusalDelta,
        RefusalDone, RefusalStarted, ResponseStarted, Source, TextDone, TextStarted, ToolCall,
        ToolCallReset, ToolCallRetracted, ToolCallStarted, ToolResult, ToolResultDelta, Unknown,
        UpstreamErrorEvent, Usage,
    };

    #[pymodule_export]
    use crate::fold::Fold;

    #[pymodule_export]
    use crate::parser::Parser;

    #[pymodule_export]
    use crate::partial::complete_object;

    #[pymodule_export]
    use crate::repair::Repairer;

    #[pymodule_export]
    use crate::sse::Framer;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        for (name, class) in Types::get(module.py())?.all() {
            module.add(name, class)?;
        }
        Ok(())
    }

    /// Information about the build, for bug reports and `streamweld bench`.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const BUILD_INFO: &str = concat!(
        "streamweld-core ",
        env!("CARGO_PKG_VERSION"),
        " (abi3-py311)"
    );
}
