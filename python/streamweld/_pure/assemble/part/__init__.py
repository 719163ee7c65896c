"""The parts of a response while they are assembled: tool calls, texts and items, from opening to close."""
