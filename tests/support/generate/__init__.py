"""Generators of streams and histories, one module for each kind."""
