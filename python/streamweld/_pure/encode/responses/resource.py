"""The response object of the Responses API: all 31 members that its schema requires, and the usage inside.

Knows members and their neutral values: what was asked for is not known here, so everything about the request is the
API's own default. Knows no events and no items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamweld._json import loads_raw
from streamweld._pure.encode.common.writer import compact_json, members, quoted
from streamweld._pure.json.kinds import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.encode.common.usage import Counts
    from streamweld.events import ResponseStarted

__all__ = ["Resource", "Status", "usage_json"]

Status: TypeAlias = Literal["in_progress", "completed", "incomplete", "cancelled", "failed"]

_NO_OUTPUT: Final[Mapping[int, str]] = {}
_NO_ITEMS: Final[Mapping[int, Mapping[str, Any]]] = {}
_OURS: Final = ("id", "status", "output", "error", "incomplete_details")
_SAID: Final = ("type", "id", "call_id", "name", "arguments", "input")
_BEFORE_OUTPUT: Final = {"previous_response_id": "null", "instructions": "null"}
_REQUEST: Final = {
    "tools": "[]",
    "tool_choice": '"auto"',
    "truncation": '"disabled"',
    "parallel_tool_calls": "true",
    "text": '{"format":{"type":"text"}}',
    "top_p": "1",
    "presence_penalty": "0",
    "frequency_penalty": "0",
    "top_logprobs": "0",
    "temperature": "1",
    "reasoning": "null",
}
_AFTER_USAGE: Final = {
    "max_output_tokens": "null",
    "max_tool_calls": "null",
    "store": "false",
    "background": "false",
    "service_tier": '"default"',
    "metadata": "{}",
    "safety_identifier": "null",
    "prompt_cache_key": "null",
}


class Resource:
    """One response, as its events show it."""

    __slots__ = ("_created", "_id", "_model", "_sent", "passed")

    def __init__(self, identity: str, model: str, created: int) -> None:
        self._id = quoted(identity)
        self._created = created
        self._model = quoted(model)
        self.passed: set[int] = set()  # indexes of items that went out as the source wrote them
        self._sent: Mapping[str, Any] = {}  # as the source wrote it, in this dialect

    def keep_id(self, created: tuple[str | None] | None) -> None:
        """Clients have the id of the event that opened the response, if that has passed."""
        if created is not None:
            self._id = _id(created[0])

    def learn(self, started: ResponseStarted) -> None:
        """What the response calls itself, where that was not known when it began."""
        if started.model:
            self._model = quoted(started.model)
        self._created = self._created if started.created is None else started.created

    def take(self, payload: bytes) -> None:
        """The event at hand may bring the response itself: what it says of itself then stays as it is."""
        try:
            event: object = loads_raw(payload.decode("utf-8", "replace"))
        except ValueError:
            return
        if is_object(event):
            response: object = event if event.get("object") == "response" else event.get("response")
            if is_object(response):
                self._sent = response

    def json(
        self,
        status: Status,
        output: Mapping[int, str] = _NO_OUTPUT,
        ended: Mapping[int, Mapping[str, Any]] = _NO_ITEMS,
        *,
        usage: str = "null",
        incomplete: str | None = None,
        error: tuple[str, str] | None = None,
    ) -> str:
        """The object. `output`: its items by index; `ended`: those whose close passed, as it has them.

        `incomplete`: the reason; `error`: code and message.
        """
        details = "null" if incomplete is None else members(reason=quoted(incomplete))
        failure = "null" if error is None else members(code=quoted(error[0]), message=quoted(error[1]))
        sent: object = self._sent.get("output")
        again = _Again([*(sent if is_array(sent) else []), *ended.values()])
        items = [
            again.spelled(output[index] if index in output else compact_json(ended[index]))
            if index in self.passed or index in ended
            else output[index]
            for index in sorted(output.keys() | ended.keys())
        ]
        told = {
            "id": self._id,
            "object": '"response"',
            "created_at": str(self._created),
            "completed_at": "null",
            "status": quoted(status),
            "incomplete_details": details,
            "model": self._model,
            **_BEFORE_OUTPUT,
            "output": f"[{','.join(items)}]",
            "error": failure,
            **_REQUEST,
            "usage": usage,
            **_AFTER_USAGE,
        }
        if self._sent:
            told = self._as_sent(told, status)
        return "{" + ",".join([f"{quoted(name)}:{value}" for name, value in told.items()]) + "}"

    def _as_sent(self, told: dict[str, str], status: Status) -> dict[str, str]:
        """All members as the source wrote them, but for those that say what the answer came to; then what it lacked."""
        sent = self._sent
        ours: set[str] = set(_OURS)
        if sent.get("usage") is None:
            ours.add("usage")
        if told["incomplete_details"] != "null" and sent.get("status") == status:
            ours.remove("incomplete_details")
        written = {name: told[name] if name in ours else compact_json(value) for name, value in sent.items()}
        return written | {name: value for name, value in told.items() if name not in written}


class _Again:
    """The items of the answer as the source tells them again, to be found by what they say."""

    __slots__ = ("_by_said", "_output")

    def __init__(self, output: list[Any]) -> None:
        self._output = output
        self._by_said: dict[tuple[str, ...], dict[tuple[str, ...], Any]] = {}  # by the members that are compared

    def spelled(self, text: str) -> str:
        """An item that passed, in the source's own spelling where that has it."""
        item: dict[str, Any] = loads_raw(text)
        names = tuple([name for name in _SAID if isinstance(item.get(name), str)])
        if names not in self._by_said:
            self._by_said[names] = self._index(names)
        found = self._by_said[names].get(tuple([item[name] for name in names]))
        return text if found is None else compact_json(found)

    def _index(self, names: tuple[str, ...]) -> dict[tuple[str, ...], Any]:
        found: dict[tuple[str, ...], Any] = {}
        for sent in self._output:
            if is_object(sent):
                said = [value for value in map(sent.get, names) if isinstance(value, str)]
                if len(said) == len(names):
                    found.setdefault(tuple(said), sent)
        return found


def _id(identity: str | None) -> str:
    return "null" if identity is None else quoted(identity)


def usage_json(counts: Counts) -> str:
    """The counts; the schema requires numbers, so what is not known is 0."""
    total = counts.total if counts.total is not None else (counts.input or 0) + (counts.output or 0)
    # The published schema asks for the first of these two; OpenAI's client (3.54) for both.
    details = members(cached_tokens=str(counts.cached or 0), cache_write_tokens=str(counts.cache_write or 0))
    return members(
        input_tokens=str(counts.input or 0),
        input_tokens_details=details,
        output_tokens=str(counts.output or 0),
        output_tokens_details=members(reasoning_tokens=str(counts.reasoning or 0)),
        total_tokens=str(total),
    )
