"""A call as written in a block, before it is checked against the request's tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Argument", "WrittenCall"]


@dataclass(slots=True)
class Argument:
    """One argument.

    `raw` means text whose type depends on the schema, `json` means JSON text, and `string` means text.
    """

    key: str
    text: str
    kind: Literal["raw", "json", "string"]


@dataclass(slots=True)
class WrittenCall:
    """A parsed call. `arguments` is the JSON text of an object as written, or a list with one element per argument."""

    name: str
    arguments: str | list[Argument]
