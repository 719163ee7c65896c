"""Suites for rows of the reliability scorecard (`.ci/scorecard.toml`) that measure a figure."""
