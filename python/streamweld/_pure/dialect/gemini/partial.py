"""Converts streamed arguments (`partialArgs` of a function call) to JSON text as they arrive.

The API streams the leaf values of the argument object in document order, each with its JSON path. A string may arrive
in any number of pieces. If a leaf value cannot follow the text that has been written, the text stays unfinished,
because a call with a missing value must not look complete.
"""

from __future__ import annotations

import json
import re

__all__ = ["PartialArguments", "parse_path"]

PathStep = str | int

_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def parse_path(text: str, max_depth: int) -> list[PathStep] | None:
    """Return the steps of a JSON path from the root, or None if the path is malformed or has more than `max_depth`
    steps.
    """
    if not text.startswith("$"):
        return None
    steps: list[PathStep] = []
    at = 1
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or len(steps) >= max_depth:
            return None
        name, index, *quoted = found.groups()
        if index is not None:
            steps.append(int(index))
        elif name is not None:
            steps.append(name)
        else:
            steps.append(_ESCAPED.sub(r"\1", next(key for key in quoted if key is not None)))
        at = found.end()
    return steps or None


class _Open:
    """An object or array that is being written. `key` is the key or index of the value that was written last."""

    __slots__ = ("count", "is_array", "key", "keys")

    def __init__(self, *, is_array: bool) -> None:
        self.is_array = is_array
        self.count = 0
        self.key: PathStep | None = None
        self.keys: set[str] = set()


class PartialArguments:
    """The arguments of one call. The methods return the next piece of the JSON text."""

    __slots__ = ("_begun", "_broken", "_open", "_string")

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._string: list[PathStep] | None = None  # path of the unfinished string
        self._begun = False  # whether any text has been written
        self._broken = False

    @property
    def between(self) -> bool:
        """Whether every string is finished and every leaf value could be added."""
        return self._string is None and not self._broken

    def string(self, steps: list[PathStep], text: str, *, goes_on: bool) -> str | None:
        """Return the text for a piece of a string, or None if the piece cannot be added.

        `goes_on`: whether more pieces of the string follow.
        """
        piece = json.dumps(text, ensure_ascii=False)[1:-1]
        if self._string == steps:
            written = piece
        else:
            lead = self._lead(steps)
            if lead is None:
                return None
            written = f'{lead}"{piece}'
        self._string = steps if goes_on else None
        return written if goes_on else written + '"'

    def leaf(self, steps: list[PathStep], token: str) -> str | None:
        """Return the text for a complete number, boolean, or null. Return None if the value cannot be added."""
        lead = self._lead(steps)
        return None if lead is None else lead + token

    def spoil(self) -> str:
        """Mark the arguments as unfinished, because one of their values cannot be added to the text.

        Return "{" if no text has been written, or an empty string otherwise.
        """
        begun, self._begun, self._broken = self._begun, True, True
        return "" if begun else "{"

    def close(self) -> str:
        """Return the brackets that complete the object, or "{}" if no text has been written."""
        if not self._open:
            return "{}"
        return "".join("]" if level.is_array else "}" for level in reversed(self._open))

    def _lead(self, steps: list[PathStep]) -> str | None:
        """Return the text between the last leaf value and the leaf value at `steps`: brackets, a comma, and a key.

        Return None if the leaf value cannot be added.
        """
        if self._broken:
            return None
        out: list[str] = []
        if self._string is not None:
            # The next leaf value ends a string that the API did not end explicitly.
            self._string = None
            out.append('"')
        levels = self._open
        common = 0
        while common < len(steps) - 1 and common + 1 < len(levels) and levels[common].key == steps[common]:
            common += 1
        while len(levels) > common + 1:
            out.append("]" if levels.pop().is_array else "}")
        if not levels:
            levels.append(_Open(is_array=False))
            out.append("{")
        for depth in range(common, len(steps)):
            if not self._put(levels[-1], steps[depth], out):
                return None
            if depth + 1 < len(steps):
                inner = _Open(is_array=isinstance(steps[depth + 1], int))
                levels.append(inner)
                out.append("[" if inner.is_array else "{")
        self._begun = True
        return "".join(out)

    def _put(self, level: _Open, step: PathStep, out: list[str]) -> bool:
        """Write the comma before a new member or element and, for a member, its key. Return False if the member or
        element cannot be added."""
        if isinstance(step, int):
            if not level.is_array or step != level.count:
                return False
        elif level.is_array or step in level.keys:
            return False
        else:
            level.keys.add(step)
        if level.count:
            out.append(",")
        if isinstance(step, str):
            out.append(json.dumps(step, ensure_ascii=False) + ":")
        level.count += 1
        level.key = step
        return True
