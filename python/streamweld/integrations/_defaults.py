"""Code shared by all integrations: default limits, the keep-alive interval, and recognition of event streams."""

from __future__ import annotations

import os
from typing import Final, cast

from streamweld.errors import UnknownDialect, UpstreamError, UsageError
from streamweld.options import Limits

__all__ = [
    "KEEP_ALIVE",
    "KEEP_ALIVE_SECONDS",
    "LIMITS",
    "MAX_STREAM_BYTES",
    "READS_ON",
    "check_folder",
    "is_event_stream",
]

MAX_STREAM_BYTES: Final = 256 * 1_048_576

LIMITS: Final = Limits(max_stream_bytes=MAX_STREAM_BYTES)
"""The default limits of every integration: the parser's defaults, and a cap on the size of one response."""

KEEP_ALIVE: Final = b": keep-alive\n\n"
KEEP_ALIVE_SECONDS: Final = 5.0
"""Interval in seconds between keep-alive comments while input arrives but no output can be sent yet. Without comments,
a read might time out in the client.
"""

READS_ON: Final = (UpstreamError, UnknownDialect)
"""Errors after which the rest of a body is still read: after an error from the gateway, so that the connection can be
reused, and for an unknown dialect, so that the stream passes unchanged. After any other error, streamweld has already
written an ending.
"""


def is_event_stream(content_type: str) -> bool:
    """Return True if a `content-type` is the type of an event stream. The comparison ignores case and parameters.

    >>> is_event_stream("Text/Event-Stream; charset=windows-1252"), is_event_stream("application/json")
    (True, False)
    """
    return content_type.partition(";")[0].strip().lower() == "text/event-stream"


def check_folder(record: str | os.PathLike[str] | None) -> str | os.PathLike[str] | None:
    """Validate the `record` option and return it.

    Raises:
        UsageError: if the option is not a path.
    """
    folder = cast("object", record)
    if folder is not None and not isinstance(folder, str | os.PathLike):
        raise UsageError(f"record={record!r}: it must be the path of a folder")
    return record
