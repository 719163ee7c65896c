"""Builds Chat Completions streams with the given text, and reads them with `text_calls`."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from streamweld._backend import load
from streamweld.events import TextDone, ToolCall
from streamweld.options import Limits, Policy, to_config

from tests.support.backends import make_parser
from tests.support.places import VECTORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from streamweld.stream import StreamParser

FAMILIES: dict[str, Any] = json.loads((VECTORS / "text_calls" / "families.json").read_text())
PROMOTE: dict[str, Any] = json.loads((VECTORS / "text_calls" / "promote.json").read_text())
TOOLS: dict[str, Any] = FAMILIES["tools"]


def event(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def stream(
    pieces: Iterable[str],
    *,
    structured: Iterable[Mapping[str, Any]] = (),
    finish: str | None = "stop",
    reasoning: str = "",
) -> bytes:
    """Return the body of a response. If `finish` is None, it is truncated."""
    return b"".join(events(pieces, structured=structured, finish=finish, reasoning=reasoning))


def events(
    pieces: Iterable[str], *, structured: Iterable[Mapping[str, Any]] = (), finish: str | None, reasoning: str
) -> Iterator[bytes]:
    yield event({"role": "assistant", "content": ""})
    if reasoning:
        yield event({"reasoning_content": reasoning})
    for piece in pieces:
        yield event({"content": piece})
    calls = list(structured)
    for index, call in enumerate(calls):
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        yield event({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]})
    if finish is not None:
        yield event({}, "tool_calls" if calls else finish)
        yield b"data: [DONE]\n\n"


@cache
def policy_of(switches: str) -> Policy:
    return Policy(**{"text_calls": "promote", **json.loads(switches)})


def promoting(backend: str, *, tools: Mapping[str, Any] | None = None, **switches: Any) -> StreamParser:
    """Return a parser that promotes text calls. `switches`: further options of the policy."""
    return make_parser(backend, policy=policy_of(json.dumps(switches)), tools=TOOLS if tools is None else tools)


@cache
def _config(switches: str, tools: str) -> dict[str, Any]:
    return to_config(policy_of(switches), Limits(), tools=json.loads(tools))


@cache
def _events(structured: str, finish: str | None) -> tuple[bytes, bytes]:
    """Return the events before and after the text of a response."""
    first, *rest = events([], structured=json.loads(structured), finish=finish, reasoning="")
    return first, b"".join(rest)


class Cutter:
    """Reads a text that is split at a position, and returns the final text and calls, without the cost of events."""

    def __init__(
        self,
        reader: str,
        tools: Mapping[str, Any],
        *,
        structured: Iterable[Mapping[str, Any]] = (),
        finish: str | None = "stop",
        **switches: Any,
    ) -> None:
        self._make = load(reader)  # type: ignore[arg-type]
        self._config = _config(json.dumps(switches), json.dumps(tools))
        self._before, self._after = _events(json.dumps([*structured]), finish)

    def read(self, text: str, place: int) -> tuple[str, list[tuple[str, Any]]]:
        parser = self._make("chat", self._config)
        first, second = event({"content": text[:place]}), event({"content": text[place:]})
        parser.feed_silent(self._before + first + second + self._after)
        parser.close_silent()
        shown = parser.snapshot()[0]
        calls = [(one.name, json.loads(one.arguments or "{}")) for one in shown if type(one) is ToolCall]
        return "".join([one.text for one in shown if type(one) is TextDone]), calls


def calls_of(parser: StreamParser) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments or "{}")) for call in parser.response.tool_calls]


def read(backend: str, pieces: Iterable[str], **given: Any) -> StreamParser:
    """Return a parser that has read a response whose text consists of these pieces."""
    body = {key: given.pop(key) for key in ("structured", "finish", "reasoning") if key in given}
    parser = promoting(backend, **given)
    parser.feed(stream(pieces, **body))
    parser.close()
    return parser
