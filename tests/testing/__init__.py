"""The test kit: builders, operators, recordings, replay, the broken gateway."""
