"""Data types that every layer shares: deltas, output, finish words. No stream rules."""
