"""A griffe extension that shows doctests anywhere in a docstring as code blocks."""

from __future__ import annotations

import re
from typing import Any

import griffe

# A doctest runs from a line with a prompt to the next blank line.
DOCTEST = re.compile(r"(?m)^(?P<indent> *)>>> .*(?:\n(?! *$).*)*")


def fenced(text: str) -> str:
    """The docstring with each doctest between fences and preceded by a blank line."""

    def fence(match: re.Match[str]) -> str:
        indent = match["indent"]
        return f"\n{indent}```pycon\n{match[0]}\n{indent}```\n"

    return DOCTEST.sub(fence, text)


class FencedDoctests(griffe.Extension):
    """Rewrites the docstring of each object once, after griffe has loaded the object."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None and ">>>" in obj.docstring.value and "```pycon" not in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)
