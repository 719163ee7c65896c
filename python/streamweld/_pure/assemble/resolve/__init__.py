"""Which part a delta belongs to: by evidence (Chat names no part reliably) or by address (the other dialects do)."""
