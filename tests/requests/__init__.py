"""Suites of streamweld.requests: whole requests from any API to any other."""
