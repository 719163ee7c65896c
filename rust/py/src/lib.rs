//! `streamweld._native`: streamweld-core as a Python extension module, and nothing else.
//!
//! No rule of any stream lives here; may import only `streamweld.events` and `streamweld.errors`.

#[pyo3::pymodule(gil_used = false)]
mod _native {
    /// What was built, for bug reports and `streamweld bench`.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const BUILD_INFO: &str = concat!(
        "streamweld-core ",
        env!("CARGO_PKG_VERSION"),
        " (abi3-py311)"
    );
}
