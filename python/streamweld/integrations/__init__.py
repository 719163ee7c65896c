"""Streams repaired where they pass: under the official clients, and in front of a server."""
