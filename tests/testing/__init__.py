"""Tests of streamweld.testing: builders, operators, recordings, replay, the broken gateway."""
