"""State and rules of the parts that a choice consists of: tool calls, texts and items, from opening to close."""
