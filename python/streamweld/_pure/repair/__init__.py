"""Repair a stream within its dialect: correct bytes pass through unchanged, and the rest is rewritten."""
