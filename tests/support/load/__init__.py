"""Streams of many things and of filler, and the measure of time and memory on them."""
