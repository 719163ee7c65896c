"""Reads LLM streams right: bytes in, events and whole tool calls out."""
