"""Streams that the benchmarks read: named, seeded, with the truth of each."""
