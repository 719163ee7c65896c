"""Repair a stream within its dialect: correct bytes pass through unchanged, the rest is rewritten."""
