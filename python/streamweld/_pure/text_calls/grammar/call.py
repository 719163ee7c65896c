"""A call as a block wrote it, before the request's tools were looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Argument", "WrittenCall"]


@dataclass(slots=True)
class Argument:
    """One argument. `raw`: text whose type the schema tells; `json`: JSON text; `string`: text."""

    key: str
    text: str
    kind: Literal["raw", "json", "string"]


@dataclass(slots=True)
class WrittenCall:
    """`arguments`: the JSON text of an object as written, or one entry for each argument."""

    name: str
    arguments: str | list[Argument]
