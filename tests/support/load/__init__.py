"""Streams with many elements or with filler, and measurements of their time and memory."""
