"""Suites of streamweld.requests: complete requests from any API to any other."""
