"""Data types that every layer shares: deltas, output, finish words. Contains no rules about streams."""
