"""Plain data that every layer shares: deltas, events, faults, configuration, limits. No rule of any stream."""
