"""A call as written in a block, before it is checked against the request's tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Argument", "WrittenCall"]


@dataclass(slots=True)
class Argument:
    """One argument. `raw`: text whose type depends on the schema; `json`: JSON text; `string`: text."""

    key: str
    text: str
    kind: Literal["raw", "json", "string"]


@dataclass(slots=True)
class WrittenCall:
    """A parsed call. `arguments`: the JSON text of an object as written, or one entry per argument."""

    name: str
    arguments: str | list[Argument]
