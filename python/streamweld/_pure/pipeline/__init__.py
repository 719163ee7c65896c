"""From bytes to the decoder: payloads, the search for the dialect, salvage of broken JSON, and how a stream ends."""
