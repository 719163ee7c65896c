"""Writes web searches that another provider ran as items of the type `web_search_call`.

The query is known when the call is complete. The item stays open until the result of the call arrives, and other items
may be written in the meantime.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamweld._json import JsonFault, loads_arguments
from streamweld._pure.encode.common.writer import members, quoted
from streamweld._pure.json.kinds import is_array, is_object
from streamweld.events import ToolCall, ToolCallStarted, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.responses.items import Wire
    from streamweld.events import Event

__all__ = ["Search", "WebSearches"]

_Status: TypeAlias = Literal["in_progress", "completed", "failed", "incomplete"]

_NAME: Final = "web_search"
_EXPRESSED: Final = frozenset({"type", "toolName"})  # metadata that the item's type already states
_WRITTEN: Final = frozenset({"type", "url"})  # members of a found page that the item contains or implies


@dataclass(slots=True, eq=False)
class Search:
    """A search whose item is open."""

    identity: str  # JSON of the item's id
    index: int
    query: str  # JSON of the query

    def item(self, status: _Status, sources: str | None = None) -> str:
        """Return the item. `sources` are the found pages as JSON."""
        action = members(type='"search"', query=self.query, queries=f"[{self.query}]", sources=sources)
        return members(type='"web_search_call"', id=self.identity, status=quoted(status), action=action)


class WebSearches:
    """The searches of one response."""

    __slots__ = ("_by_call", "_context", "_open", "_wire")

    def __init__(self, context: EncodeContext, wire: Wire) -> None:
        self._context = context
        self._wire = wire
        self._open: dict[int, Search] = {}  # by index
        self._by_call: dict[str, deque[Search]] = {}  # open searches by the id of their call

    def expresses(self, event: Event) -> bool:
        """Return True if the item of a search already states everything in the event's metadata."""
        if not _EXPRESSED.issuperset(getattr(event, "provider_metadata", None) or ()):
            return False
        match event:
            case ToolCallStarted():
                return self._context.provider_executed and event.name == _NAME
            case ToolCall():
                return query_of(event) is not None
            case ToolResult():
                return event.call_id in self._by_call
            case _:
                return False

    def begin(self, call: ToolCall, take_index: Callable[[], int]) -> bool:
        """Write the beginning of an item. Return False if the call is not a search whose query is known."""
        query = query_of(call)
        if query is None:
            return False
        search = Search(quoted(self._context.mint.new("ws")), take_index(), quoted(query))
        self._open[search.index] = search
        self._by_call.setdefault(call.call_id, deque()).append(search)
        self._wire.event("response.output_item.added", f'{_at(search)},"item":{search.item("in_progress")}')
        self._step(search, "in_progress")
        self._step(search, "searching")
        return True

    def finish(self, result: ToolResult) -> tuple[int, str] | None:
        """Write the end of the search that has this result. Return the index and the item of the search, or None if no
        open search has this result.
        """
        searches = self._by_call.get(result.call_id)
        if searches is None:
            return None
        search = searches.popleft()
        if not searches:
            del self._by_call[result.call_id]
        del self._open[search.index]
        if result.is_error:
            if result.output is not None:
                self._context.losses.note("server_tool")
            return search.index, self._done(search, "failed")
        self._step(search, "completed")
        return search.index, self._done(search, "completed", self._sources(result.output))

    def open_indexes(self) -> list[int]:
        """Return the indexes of the items that are open, in ascending order."""
        return list(self._open)

    def cut(self, index: int) -> str:
        """Write the end of a search without a result, and return its item."""
        return self._done(self._open.pop(index), "incomplete")

    def _sources(self, output: Any) -> str | None:
        """Return the found pages, or None if there are none. Record a loss if the output has other content."""
        found: list[Any] = output if is_array(output) else []
        is_lossy = not is_array(output)
        sources: list[str] = []
        for page in found:
            url = page.get("url") if is_object(page) else None
            if isinstance(url, str) and url:
                sources.append(members(type='"url"', url=quoted(url)))
                is_lossy = is_lossy or not _WRITTEN.issuperset(page)
            else:
                is_lossy = True
        if is_lossy:
            self._context.losses.note("server_tool")
        return f"[{','.join(sources)}]" if sources else None

    def _step(self, search: Search, step: str) -> None:
        self._wire.event(f"response.web_search_call.{step}", f'"item_id":{search.identity},{_at(search)}')

    def _done(self, search: Search, status: _Status, sources: str | None = None) -> str:
        item = search.item(status, sources)
        self._wire.event("response.output_item.done", f'{_at(search)},"item":{item}')
        return item


def query_of(call: ToolCall) -> str | None:
    """Return the query of a search that the provider ran, or None if the call is not one."""
    if not call.provider_executed or call.name != _NAME or call.state != "complete" or call.custom:
        return None
    try:
        arguments = loads_arguments(call.arguments)
    except JsonFault:
        return None
    query: object = arguments.get("query") if is_object(arguments) else None
    return query if isinstance(query, str) and query else None


def _at(search: Search) -> str:
    return f'"output_index":{search.index}'
