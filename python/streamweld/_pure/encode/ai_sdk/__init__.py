"""Events to the two streams of the AI SDK."""
