"""The two streams of Vercel's AI SDK (model stream parts and UI message chunks) and what both share."""
