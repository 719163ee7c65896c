"""What the official clients need of a chunk, so that a repair rewrites what they would misread or reject.

openai-python drops a chunk whose `object` is another, needs a `delta` object and a `choices` array in the rest, and
merges lists in a delta by `index`. It keeps tool calls in a list, so a new call must have the next index. A chunk
without `object` is not rewritten, and gets no role: only the helper of openai-python needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.json.kinds import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.model.output import Output

_CHUNK: Final = "chat.completion.chunk"
_MAX_LISTS: Final = 16  # members with lists that are remembered for a choice


def check_chunk(chunk: Mapping[str, Any], notes: Anomalies) -> None:
    """Check the members of a chunk, and whether each choice has a delta."""
    choices = chunk.get("choices")
    if chunk.get("object", _CHUNK) == _CHUNK:
        if not is_array(choices):
            notes.touch("no_choices")
        elif not all(map(_has_delta, choices)):
            notes.touch("no_delta")
    elif chunk.get("usage") or (is_array(choices) and any(map(_says_something, choices))):
        notes.touch("other_object")


def _has_delta(choice: object) -> bool:
    return is_object(choice) and (is_object(choice.get("delta")) or _is_legacy(choice))


def _is_legacy(choice: Mapping[str, Any]) -> bool:
    return "text" in choice and choice.get("delta") is None and choice.get("message") is None


def _says_something(choice: object) -> bool:
    """Whether a choice that is not of the legacy Completions has content or an end."""
    if not is_object(choice) or _is_legacy(choice):
        return False
    return any(choice.get(member) for member in ("delta", "message", "finish_reason", "finishReason"))


def _has_name(entry: Mapping[str, Any]) -> bool:
    """Whether the tool's name stands anywhere in an entry."""
    holders: tuple[object, ...] = (entry.get("function"), entry.get("custom"), entry)
    return any(is_object(holder) and holder.get("name") for holder in holders)


class Readers:
    """The lists that clients keep for one choice."""

    __slots__ = ("_bare", "_begun", "_calls", "_lists")

    def __init__(self) -> None:
        self._begun = False  # a delta of the choice came
        self._calls = 0  # in the list of tool calls
        self._bare: set[int] = set()  # of them, those without a text of arguments
        self._lists: set[str] = set()  # members that were a list

    def begin(self, out: Output, choice: int, delta: Mapping[str, Any] | None, *, is_typed: bool) -> None:
        """Check whether the first delta of the choice has a role. openai-node raises if a choice has none.

        `is_typed`: the chunk declares itself one. Others are not changed for the sake of the role alone.
        """
        if delta is not None and not self._begun:
            self._begun = True
            if is_typed and not delta.get("role"):
                out.roleless.append(choice)

    def end(self, out: Output) -> None:
        """The choice, or the stream, ends."""
        if self._bare:
            self._bare.clear()
            out.touch("no_arguments")  # readers have null in place of a text

    def has_calls(self, count: int) -> bool:
        """Whether so many calls were streamed."""
        return self._calls >= count

    def delta(self, delta: Mapping[str, Any], notes: Anomalies) -> None:
        """Check the members of a delta."""
        if is_array(delta.get("content")):
            notes.touch("content_list")
        calls = delta.get("tool_calls")
        if is_array(calls):
            for entry in calls:
                self._entry(entry, notes)
        for key, value in delta.items():
            if is_array(value) and value and key not in ("content", "tool_calls"):
                self._list(key, value, notes)

    def _list(self, key: str, value: list[Any], notes: Anomalies) -> None:
        indexed = [is_object(entry) and type(entry.get("index")) is int for entry in value]
        if key in self._lists:
            if not all(indexed):
                notes.touch("list_without_index")
        elif any(is_object(entry) for entry in value):
            if (any(indexed) and not all(indexed)) or len(self._lists) == _MAX_LISTS:
                notes.touch("list_without_index")
            if len(self._lists) < _MAX_LISTS:
                self._lists.add(key)

    def _entry(self, entry: object, notes: Anomalies) -> None:
        if not is_object(entry):
            notes.touch("empty_entry")
            return
        if entry.get("type", "function") not in ("function", "custom"):
            notes.touch("other_type")
        index = entry.get("index")
        if type(index) is not int or index < 0:
            notes.touch("no_index")
            return
        if index > self._calls:
            notes.touch("other_index")
            return
        function = entry.get("function")
        is_new = index == self._calls
        if is_new and not (entry.get("id") or _has_name(entry)):
            notes.touch("empty_entry")
            return
        self._calls += is_new
        if is_object(function):
            if isinstance(function.get("arguments"), str):
                self._bare.discard(index)
            elif is_new:
                self._bare.add(index)
        elif not is_object(entry.get("custom")) and entry.get("type") != "custom":
            notes.touch("empty_entry")
