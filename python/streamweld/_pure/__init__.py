"""The pure-Python backend: the readable twin of `rust/core`, folder by folder.

Nothing here knows sockets, clocks, threads, logging or the environment. What a module does in Rust and in Python must
agree in events, diagnostics, offsets and exceptions; a change to one is a change to the other.
"""
