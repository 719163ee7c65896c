"""One stream, from bytes of one dialect to bytes of the same: what is right passes as it is, the rest is rewritten."""
