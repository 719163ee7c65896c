"""The test suites of streamweld. Vectors are in `vectors/`, recorded streams in $STREAMWELD_CORPUS."""
