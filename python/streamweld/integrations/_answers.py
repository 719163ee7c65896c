"""What integrations share about answers: which are event streams, how much of one is taken, what fills a silence."""

from __future__ import annotations

import os
from typing import Final, cast

from streamweld.errors import UsageError
from streamweld.options import Limits

__all__ = ["KEEP_ALIVE", "KEEP_ALIVE_SECONDS", "LIMITS", "MAX_STREAM_BYTES", "check_folder", "is_event_stream"]

MAX_STREAM_BYTES: Final = 256 * 1_048_576

LIMITS: Final = Limits(max_stream_bytes=MAX_STREAM_BYTES)
"""The default limits of every integration: those of a parser, and a cap on the whole answer."""

KEEP_ALIVE: Final = b": keep-alive\n\n"
KEEP_ALIVE_SECONDS: Final = 5.0
"""Where pieces come in and nothing may go out yet, a comment goes out this often: clients have a timeout per read."""


def is_event_stream(content_type: str) -> bool:
    """Whether a `content-type` names an event stream; in any case, whatever its parameters say.

    >>> is_event_stream("Text/Event-Stream; charset=windows-1252"), is_event_stream("application/json")
    (True, False)
    """
    return content_type.partition(";")[0].strip().lower() == "text/event-stream"


def check_folder(record: str | os.PathLike[str] | None) -> str | os.PathLike[str] | None:
    """The option `record`.

    Raises:
        UsageError: if it cannot be a path.
    """
    folder = cast("object", record)
    if folder is not None and not isinstance(folder, str | os.PathLike):
        raise UsageError(f"record={record!r}: it must be a path of a folder")
    return record
