"""The result of one client for one stream: its calls, its text, or the error that it raised. This module needs only the
standard library.
"""

from __future__ import annotations

import json
from typing import Any


class Outcome:
    """Calls as [id, name, arguments]; arguments are text until `to_json`."""

    def __init__(self) -> None:
        self.calls: list[list[Any]] = []
        self.text = ""
        self.finish: str | None = None
        self.told: str | None = None  # an error that arrived as an event and was not raised
        self.ran: list[Any] = []  # tools that a framework ran
        self.error: BaseException | None = None

    def to_json(self) -> dict[str, Any]:
        calls = [[call_id, name, _value(arguments)] for call_id, name, arguments in self.calls]
        error = None if self.error is None else [type(self.error).__name__, str(self.error)]
        return {
            "calls": calls,
            "text": self.text,
            "finish": self.finish,
            "told": self.told,
            "ran": self.ran,
            "error": error,
        }


def _value(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return {"not JSON": arguments}
