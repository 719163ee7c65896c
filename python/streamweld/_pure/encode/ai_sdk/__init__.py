"""Encoders of the two stream protocols of the AI SDK."""
