"""Writes the response object of the Responses API, with all members that the published schema requires.

Members that repeat the request contain the API's default values, because a converter does not receive the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamweld._json import loads_raw
from streamweld._pure.dialect.responses.item_content import content_of, is_whole_call
from streamweld._pure.dialect.responses.spec_tables import EVENT_FIELDS, OPENINGS, RESPONSE_FIELDS, TERMINALS
from streamweld._pure.encode.common.writer import compact_json, members, quoted
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.scanner import BigInteger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.dialect.responses.item_content import Content
    from streamweld._pure.encode.common.usage import Counts
    from streamweld.events import ResponseStarted

__all__ = ["Resource", "Status", "usage_json"]

Status: TypeAlias = Literal["in_progress", "completed", "incomplete", "cancelled", "failed"]

_Identity: TypeAlias = tuple[tuple[str, ...], "Content | None", bool]

_NO_OUTPUT: Final[Mapping[int, str]] = {}
_NO_ITEMS: Final[Mapping[int, Mapping[str, Any]]] = {}
_OWN_MEMBERS: Final = ("id", "status", "output", "error", "incomplete_details")
_ONLY_OF_EVENTS: Final = EVENT_FIELDS - RESPONSE_FIELDS
_IDENTIFYING_MEMBERS: Final = ("type", "id", "call_id", "name", "arguments", "input")
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
    """The response object, built from the events so far."""

    __slots__ = ("_created", "_id", "_model", "_sent", "continued", "passed")

    def __init__(self, identity: str, model: str, created: int) -> None:
        self._id = quoted(identity)
        self._created = created
        self._model = quoted(model)
        self.continued: set[int] = set()  # indexes of items whose rest was written as a new item
        self.passed: set[int] = set()  # indexes of items that were written as the source sent them
        self._sent: Mapping[str, Any] = {}  # the response as the source sent it in this dialect

    def keep_id(self, created: tuple[str | None] | None) -> None:
        """If the event that opened the response passed through, keep its id, because clients already received it."""
        if created is not None:
            self._id = _id(created[0])

    def learn(self, started: ResponseStarted) -> None:
        """Set the model and creation time of the response if they were unknown when the response began."""
        if started.model:
            self._model = quoted(started.model)
        self._created = self._created if started.created is None else started.created

    def take(self, payload: bytes) -> None:
        """Store the response object of the current event, if there is one, so that its members can be written
        unchanged.
        """
        try:
            event: object = loads_raw(payload.decode("utf-8", "replace"))
        except ValueError:
            return
        if is_object(event):
            response: object = event.get("response")
            kind = event.get("type")
            if response is None and isinstance(kind, str) and (kind in OPENINGS or kind in TERMINALS):
                # The members of the response are next to the type.
                response = {name: value for name, value in event.items() if name not in _ONLY_OF_EVENTS} or None
            elif event.get("object") == "response":
                response = event
            if is_object(response):
                self._sent = response

    def json(
        self,
        status: Status,
        output: Mapping[int, str] = _NO_OUTPUT,
        ended: Mapping[int, Mapping[str, Any]] = _NO_ITEMS,
        raw: Mapping[int, str] = _NO_OUTPUT,
        *,
        usage: str = "null",
        incomplete: str | None = None,
        error: tuple[str, str] | None = None,
    ) -> str:
        """Return the object as JSON.

        `output` contains the items by index. `ended` contains the items whose closing event passed through, as sent.
        `raw` contains the items that are written as they were sent last.
        `incomplete` is the reason for an incomplete response. `error` is a code and a message.
        """
        details = "null" if incomplete is None else members(reason=quoted(incomplete))
        failure = "null" if error is None else members(code=quoted(error[0]), message=quoted(error[1]))
        sent: object = self._sent.get("output")
        repeated_items = _RepeatedItems([*(sent if is_array(sent) else []), *ended.values()])
        items = [
            raw[index]
            if index in raw
            else self._beginning(output, ended, index)
            if index in self.continued
            else repeated_items.spelled(output[index] if index in output else compact_json(ended[index]))
            if index in self.passed or index in ended
            else output[index]
            for index in sorted(output.keys() | ended.keys() | raw.keys())
        ]
        fields = {
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
            fields = self._as_sent(fields, status)
        return "{" + ",".join([f"{quoted(name)}:{value}" for name, value in fields.items()]) + "}"

    def _beginning(self, output: Mapping[int, str], ended: Mapping[int, Mapping[str, Any]], index: int) -> str:
        """Return an item whose rest was written as a new item. Its later forms in the source contain that rest."""
        return compact_json(ended[index]) if index in ended else output[index]

    def _as_sent(self, fields: dict[str, str], status: Status) -> dict[str, str]:
        """Return the members as the source sent them, except those that describe the outcome, followed by the missing
        members.
        """
        sent = self._sent
        ours: set[str] = set(_OWN_MEMBERS)
        if sent.get("usage") is None:
            ours.add("usage")
        created = sent.get("created_at")
        if isinstance(created, bool) or not isinstance(created, int | float | BigInteger):
            ours.add("created_at")
        if not isinstance(sent.get("model"), str):
            ours.add("model")
        has_details = is_object(details := sent.get("incomplete_details")) and bool(details)
        if fields["incomplete_details"] != "null" and sent.get("status") == status and has_details:
            ours.remove("incomplete_details")
        written = {name: fields[name] if name in ours else compact_json(value) for name, value in sent.items()}
        return written | {name: value for name, value in fields.items() if name not in written}


class _RepeatedItems:
    """The items that the source repeats in its response object, found by their identifying members."""

    __slots__ = ("_by_identity", "_output")

    def __init__(self, output: list[Any]) -> None:
        self._output = output
        self._by_identity: dict[tuple[str, ...], dict[_Identity, Any]] = {}  # by the names of the compared members

    def spelled(self, text: str) -> str:
        """Return the form in which the source repeats an item that passed through, or the item itself if it is not
        repeated."""
        item: dict[str, Any] = loads_raw(text)
        names = tuple([name for name in _IDENTIFYING_MEMBERS if isinstance(item.get(name), str)])
        if names not in self._by_identity:
            self._by_identity[names] = self._index(names)
        found = self._by_identity[names].get(_identity(item, names))
        return text if found is None else compact_json(found)

    def _index(self, names: tuple[str, ...]) -> dict[_Identity, Any]:
        found: dict[_Identity, Any] = {}
        for sent in self._output:
            if is_object(sent) and all(isinstance(sent.get(name), str) for name in names):
                found.setdefault(_identity(sent, names), sent)
        return found


def _identity(item: Mapping[str, Any], names: tuple[str, ...]) -> _Identity:
    """Return the values of the identifying members, what applications read of the item, and whether the item is a
    complete call.
    """
    return tuple([item[name] for name in names]), content_of(item), is_whole_call(item)


def _id(identity: str | None) -> str:
    return "null" if identity is None else quoted(identity)


def usage_json(counts: Counts) -> str:
    """Return the usage object. The schema requires numbers, so unknown counts are written as 0."""
    total = counts.total if counts.total is not None else (counts.input or 0) + (counts.output or 0)
    # The published schema requires `cached_tokens`. OpenAI's client (3.54) also requires `cache_write_tokens`.
    details = members(cached_tokens=str(counts.cached or 0), cache_write_tokens=str(counts.cache_write or 0))
    return members(
        input_tokens=str(counts.input or 0),
        input_tokens_details=details,
        output_tokens=str(counts.output or 0),
        output_tokens_details=members(reasoning_tokens=str(counts.reasoning or 0)),
        total_tokens=str(total),
    )
