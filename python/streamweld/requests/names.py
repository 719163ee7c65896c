"""Rename tools whose names the target rejects. `history.convert` renames the calls of these tools in the same way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streamweld.history.ids import form_of, leading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.requests.context import RequestContext

__all__ = ["Names"]


class Names:
    """The tool names of one request. `renamed` maps each source name that changed to its target name."""

    __slots__ = ("_form", "_start", "_work", "renamed")

    def __init__(self, context: RequestContext) -> None:
        fact = context.profile.constraints.get("tool_name")
        self._form = None if fact is None else form_of(fact)
        self._start = re.compile(f"[{fact['start']}]") if fact is not None and "start" in fact else None
        self._work = context
        self.renamed: dict[str, str] = {}

    def fits(self, name: str) -> bool:
        """Return whether the target accepts the name."""
        if self._form is None:
            return True
        return self._form.fits(name) and (self._start is None or self._start.match(name) is not None)

    def fit(self, name: str, path: Sequence[str | int]) -> str:
        """Return the name to use for the target.

        The same name always gives the same result, so that the names of calls and tools match.
        """
        if self._form is None or self.fits(name):
            return name
        made = self._form.made(name)
        new = made if self._start is None or self._start.match(made) else self._form.made(leading(self._start) + name)
        if name not in self.renamed:
            self._work.edit("tool_name", path, f"changed the tool name {name!r} to {new!r}", name)
            self.renamed[name] = new
        return new
