"""Streams that the benchmarks read: named, seeded, with their expected results."""
