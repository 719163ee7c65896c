"""What integrations share about answers: which are event streams, and what fills a silence. It knows no dialect."""

from __future__ import annotations

from typing import Final

__all__ = ["KEEP_ALIVE", "KEEP_ALIVE_SECONDS", "is_event_stream"]

KEEP_ALIVE: Final = b": keep-alive\n\n"
KEEP_ALIVE_SECONDS: Final = 5.0
"""Where pieces come in and nothing may go out yet, a comment goes out this often: clients have a timeout per read."""


def is_event_stream(content_type: str) -> bool:
    """Whether a `content-type` names an event stream; in any case, whatever its parameters say (R:A19).

    >>> is_event_stream("Text/Event-Stream; charset=windows-1252"), is_event_stream("application/json")
    (True, False)
    """
    return content_type.partition(";")[0].strip().lower() == "text/event-stream"
