"""Servers and commands that the integration suites start on the loopback interface."""
