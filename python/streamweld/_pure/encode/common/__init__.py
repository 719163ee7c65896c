"""State and helpers that all encoders use: the context of a conversion, losses, ids, endings and usage."""
