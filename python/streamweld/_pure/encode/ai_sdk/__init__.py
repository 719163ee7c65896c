"""Contains the encoders for the two stream protocols of the AI SDK."""
