"""The state and rules of tool calls, text parts and items, from their opening to their closing event."""
