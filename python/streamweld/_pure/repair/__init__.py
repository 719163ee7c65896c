"""Repair a stream in its own dialect: correct bytes pass through unchanged, and all other bytes are rewritten."""
