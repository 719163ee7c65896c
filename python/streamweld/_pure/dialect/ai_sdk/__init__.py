"""The two stream formats of Vercel's AI SDK (model stream parts and UI message chunks), and their shared code."""
