"""The log of the command `streamweld proxy`: lines of text, or one JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, Final, Literal, TypeAlias, get_args

__all__ = ["FORMATS", "Format", "configure", "formatter"]

Format: TypeAlias = Literal["text", "json"]
FORMATS: Final[tuple[str, ...]] = get_args(Format)


def configure(form: Format) -> None:
    """Write records of level INFO and above to standard error; of the server, warnings and above."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(form))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def formatter(form: Format) -> logging.Formatter:
    """What writes records in that form."""
    return _Json() if form == "json" else logging.Formatter("%(asctime)s %(levelname)s %(message)s")


class _Json(logging.Formatter):
    """A JSON object without line breaks; `facts` of the record are members of their own."""

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
