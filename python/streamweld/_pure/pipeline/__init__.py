"""Stages from bytes to the decoder: payloads, dialect detection, salvage of broken JSON, and the end of a stream."""
