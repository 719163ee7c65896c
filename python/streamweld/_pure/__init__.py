"""The pure-Python backend: the readable twin of `rust/core`, folder by folder.

This package does not use sockets, clocks, threads, logging or environment variables. Events, diagnostics, offsets and
exceptions must be identical to those of the Rust core, so every change must be made in both.
"""
