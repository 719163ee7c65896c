"""State and helpers that the encoders share: the context of a conversion, losses, ids, endings and usage."""
