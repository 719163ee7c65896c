"""Suites that measure the figures of the reliability scorecard (`.ci/scorecard.toml`)."""
