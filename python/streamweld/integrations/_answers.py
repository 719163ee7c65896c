"""What the integrations ask of an answer before they touch it: is it an event stream? It knows no stream's content."""

from __future__ import annotations

__all__ = ["is_event_stream"]


def is_event_stream(content_type: str) -> bool:
    """Whether a `content-type` names an event stream; in any case, whatever its parameters say (R:A19).

    >>> is_event_stream("Text/Event-Stream; charset=windows-1252"), is_event_stream("application/json")
    (True, False)
    """
    return content_type.partition(";")[0].strip().lower() == "text/event-stream"
