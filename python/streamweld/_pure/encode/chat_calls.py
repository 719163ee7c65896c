"""The tool calls of one choice as entries of `delta.tool_calls`: indexes, heads, pieces, and what contradicts them.

Knows entries; which chunk they stand in is the encoder's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.encode.same import same_value
from streamweld._pure.encode.told import Told
from streamweld._pure.encode.writer import quoted

if TYPE_CHECKING:
    from streamweld._pure.encode.job import Job
    from streamweld.events import ToolCall, ToolCallDelta, ToolCallStarted

__all__ = ["Calls"]

_EMPTY = "{}"


class _Begun:
    """A call whose head went out."""

    __slots__ = ("call_id", "corrected", "custom", "index", "name", "told")

    def __init__(self, index: int, call_id: str, name: str, *, custom: bool) -> None:
        self.index = index
        self.custom = custom  # free-form text, as only this dialect's own readers know it
        self.call_id = call_id
        self.name = name
        self.told = Told()
        self.corrected = False  # its deltas were taken back: the call will say whether that changes anything


class Calls:
    """Those of one choice."""

    __slots__ = ("_begun", "_ids", "_indexes", "_job", "_next", "_waiting", "contradicted", "written")

    def __init__(self, job: Job) -> None:
        self._job = job
        self._begun: dict[int, _Begun] = {}  # by part, until the call is whole
        self._ids: set[str] = set()  # of all calls that were begun
        self._waiting: set[str] = set()  # ids that no result answered
        self._indexes: set[int] = set()
        self._next = 0  # above all of them
        self.written = 0
        self.contradicted = False

    @property
    def waiting(self) -> bool:
        """A written call is still to be run: none that the source answered itself."""
        return bool(self._waiting)

    def is_begun(self, part: int) -> bool:
        return part in self._begun

    def answered(self, call_id: str) -> None:
        self._waiting.discard(call_id)

    def started(self, event: ToolCallStarted) -> str | None:
        """The head, if it can be written before the call is whole."""
        job = self._job
        custom = job.custom and job.passed.own
        if job.hold_arguments or job.provider_executed or not (event.call_id and event.name):
            return None
        if job.custom and not custom:
            return None
        if event.call_id in self._ids or event.call_id in job.known_call_ids:
            return None  # it will be told under an id of its own, when it is whole
        begun = self._begun[event.part] = self._begin(event.call_id, event.name, custom, job.passed.index)
        return _head(begun, "")

    def reset(self, part: int) -> None:
        if part in self._begun:
            self._begun[part].corrected = True

    def delta(self, event: ToolCallDelta) -> str | None:
        begun = self._begun.get(event.part)
        if begun is None or begun.corrected or not event.arguments:
            return None
        begun.told.add(event.arguments)
        return _piece(begun, event.arguments)

    def whole(self, call: ToolCall) -> str | None:
        """What of the call is still to be written; `contradicted` where something else was."""
        refused = call.reason == "refused"  # whole: what made it wrong is not in it
        if refused:
            self._job.losses.note("refused_call")
        begun = self._begun.pop(call.part, None)
        if begun is None:
            return self._at_once(call)
        if refused or call.state in ("complete", "empty"):
            rest = begun.told.rest(_EMPTY if not begun.told and not call.arguments else call.arguments)
            if rest is None and not call.custom and same_value(begun.told.text(), call.arguments):
                self._job.losses.note("arguments_spelling")
                rest = ""
            same = (begun.call_id, begun.name) == (call.call_id, call.name)
            same = same and not call.provider_executed and call.custom == begun.custom
            self.contradicted = rest is None or not same
        else:
            # Cut, or no JSON: what was passed on is what there is.
            rest = begun.told.rest(call.raw_arguments or call.arguments)
        return _piece(begun, rest) if rest else None

    def _at_once(self, call: ToolCall) -> str | None:
        losses = self._job.losses
        if call.provider_executed:
            losses.note("server_tool")
            return None
        if not call.name or not call.call_id:
            losses.note("nameless_call")
            return None
        if call.state == "incomplete":
            losses.note("cut_call")
            return None
        own = self._job.passed.own
        if call.custom and not own:
            losses.note("custom_call")
            arguments = f'{{"input":{quoted(call.arguments)}}}'
        else:
            arguments = call.raw_arguments or call.arguments or _EMPTY
        return _head(self._begin(call.call_id, call.name, call.custom and own), arguments)

    def _begin(self, call_id: str, name: str, custom: bool, sent: int | None = None) -> _Begun:
        index = self._next if sent is None or sent < 0 or sent in self._indexes else sent
        self._indexes.add(index)
        self._next = max(self._next, index + 1)
        begun = _Begun(index, call_id, name, custom=custom)
        self.written += 1
        self._ids.add(call_id)
        self._waiting.add(call_id)
        return begun


def _head(begun: _Begun, arguments: str) -> str:
    kind, text = _names(begun)
    inner = f'{{"name":{quoted(begun.name)},"{text}":{quoted(arguments)}}}'
    return f'{{"index":{begun.index},"id":{quoted(begun.call_id)},"type":"{kind}","{kind}":{inner}}}'


def _piece(begun: _Begun, arguments: str) -> str:
    kind, text = _names(begun)
    return f'{{"index":{begun.index},"{kind}":{{"{text}":{quoted(arguments)}}}}}'


def _names(begun: _Begun) -> tuple[str, str]:
    return ("custom", "input") if begun.custom else ("function", "arguments")
