"""Logging for the command `streamweld proxy`: lines of text, or one JSON object per line."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, Final, Literal, TypeAlias, get_args

__all__ = ["FORMATS", "LEVELS", "Format", "Level", "configure", "formatter"]

Format: TypeAlias = Literal["text", "json"]
Level: TypeAlias = Literal["debug", "info", "warning", "error"]
FORMATS: Final[tuple[str, ...]] = get_args(Format)
LEVELS: Final[tuple[str, ...]] = get_args(Level)


def configure(form: Format, level: Level = "info") -> None:
    """Log to standard error: streamweld's records of this level or higher, and all other records of level WARNING or
    higher.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(form))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("streamweld").setLevel(level.upper())


def formatter(form: Format) -> logging.Formatter:
    """Return the log formatter for an output format."""
    return _Json() if form == "json" else logging.Formatter("%(asctime)s %(levelname)s %(message)s")


class _Json(logging.Formatter):
    """Formats a record as a JSON object on one line, with the record's `facts` as members."""

    def format(self, record: logging.LogRecord) -> str:
        seconds, rest = divmod(record.created, 1)
        made: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{int(rest * 1000):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        made |= getattr(record, "facts", {})
        if record.exc_info:
            made["exception"] = self.formatException(record.exc_info)
        return json.dumps(made, default=str)
