"""Data types that every layer shares: deltas, output and finish reasons. The types contain no rules about streams."""
