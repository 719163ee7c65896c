"""Repair a stream in its dialect: correct bytes pass through unchanged, and the rest is rewritten."""
