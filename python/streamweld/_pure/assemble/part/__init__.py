"""What is assembled: calls, texts and items, from their opening to their close."""
