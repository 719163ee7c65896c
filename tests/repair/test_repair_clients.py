"""Repaired streams read by the official client of their dialect, over HTTP on the loopback interface, in random pieces.

The expected results of the client are in this file. For the original stream, the client raises or returns another
result, unless only an event that the client does not need is missing.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw

from tests.support.backends import using
from tests.support.clients.python import python_clients
from tests.support.servers.loopback import loopback
from tests.support.vector_files import chunks_of, load

if TYPE_CHECKING:
    from tests.support.clients.python import Clients
    from tests.support.servers.loopback import Loopback

__all__ = ["loopback", "python_clients"]

CLIENT = "anthropic messages.stream"
VECTORS = {vector["name"]: vector for vector in load("repair") if vector["file"] == "anthropic"}
OPENAI = {"chat": "openai chat.completions.stream", "responses": "openai responses.stream"}
MOST = 64  # maximum number of bytes per piece


def held(
    finish: str, *calls: dict[str, Any], text: str = "Hello", reasoning: str = "", counts: tuple[int, int] = (3, 9)
) -> dict[str, Any]:
    """Return the expected result of the client for a complete message."""
    usage = {"input_tokens": counts[0], "output_tokens": counts[1]}
    return {
        "error": None,
        "text": text,
        "reasoning": reasoning,
        "calls": list(calls),
        "finish": finish,
        "usage": usage,
    }


CALL = {"id": "toolu_1", "name": "run", "input": {"a": 1}, "arguments": '{"a":1}'}
# Name of the vector -> the violations that `check` reports for the source (an event named `message` counts as unnamed),
# and the expected result of the client for the repaired stream.
CASES: dict[str, tuple[set[str], dict[str, Any]]] = {
    "message-start-is-missing": ({"message_start_missing"}, held("tool_use", CALL, counts=(0, 9))),
    "message-start-is-missing-and-so-are-blocks": ({"message_start_missing"}, held("refusal", text="", counts=(3, 1))),
    "done-in-place-of-message-stop": ({"done_marker", "message_stop_missing"}, held("end_turn")),
    "done-under-a-name-in-place-of-message-stop": ({"done_marker", "message_stop_missing"}, held("end_turn")),
    "done-before-message-stop": ({"done_marker"}, held("end_turn")),
    "done-under-a-name-behind-message-stop": ({"done_marker"}, held("end_turn")),
    "done-under-a-name-among-blocks": ({"done_marker"}, held("end_turn")),
    "a-whole-message-as-an-event": (
        {"event_missing", "event_unknown", "message_stop_missing"},
        held("tool_use", CALL, reasoning="hm"),
    ),
    "a-whole-message-behind-message-start": (
        {"event_missing", "event_unknown", "message_delta_missing"},
        held("tool_use", CALL, reasoning="hm"),
    ),
    "a-whole-message-behind-its-own-stream": (
        {"event_missing", "event_unknown", "message_stop_missing"},
        held("tool_use", CALL),
    ),
    "a-whole-message-behind-its-message-delta": (
        {"event_missing", "event_unknown", "message_stop_missing"},
        held("end_turn"),
    ),
    "a-whole-message-completes-its-own-stream": (
        {"event_missing", "event_unknown", "message_stop_missing", "block_unstopped"},
        held("tool_use", CALL),
    ),
    "no-event-has-a-name": ({"event_missing"}, held("tool_use", CALL, reasoning="hm")),
    "deltas-without-a-name": ({"event_missing"}, held("end_turn", text="Hello, you all")),
    "the-deltas-of-a-call-without-a-name": ({"event_missing"}, held("tool_use", CALL, text="")),
    "message-start-without-a-name": ({"event_missing"}, held("end_turn")),
    "content-block-start-without-a-name": ({"event_missing"}, held("end_turn")),
    "content-block-stop-without-a-name": ({"event_missing"}, held("end_turn")),
    "message-delta-without-a-name": ({"event_missing"}, held("end_turn")),
    "message-stop-without-a-name": ({"event_missing"}, held("end_turn")),
    "a-delta-under-a-name-that-nobody-reads": ({"event_differs"}, held("end_turn")),
    "a-delta-under-the-name-message": ({"event_missing"}, held("end_turn")),
    "an-event-without-a-type": ({"type_missing"}, held("end_turn")),
}
# anthropic-python reads these messages completely even without a repair: it does not need the end of a block or of the
# message, and from 1.17 on it accepts any name.
UNHURT = {
    "done-in-place-of-message-stop",
    "done-before-message-stop",
    "a-whole-message-behind-its-message-delta",
    "content-block-stop-without-a-name",
    "message-stop-without-a-name",
    "a-delta-under-a-name-that-nobody-reads",
    "a-delta-under-the-name-message",
}


def read(loopback: Loopback, clients: Clients, body: bytes, client: str = CLIENT) -> dict[str, Any]:
    """Return the client's result for a body that arrives in pieces."""
    chance = random.Random(len(body))
    pieces: list[bytes] = []
    at = 0
    while at < len(body):
        step = chance.randint(1, MOST)
        pieces.append(body[at : at + step])
        at += step
    key = loopback.put(pieces)
    record = clients.read(client, key)
    loopback.drop(key)
    return record


def rules_of(body: bytes) -> set[str]:
    return {violation.rule.removeprefix("anthropic.") for violation in sw.check(body, dialect="anthropic")}


@pytest.mark.parametrize("name", CASES)
def test_the_client_holds_the_message(backend: str, loopback: Loopback, python_clients: Clients, name: str) -> None:
    body = b"".join(chunks_of(VECTORS[name]))
    rules, message = CASES[name]
    with using(backend):
        made = sw.convert(body, source="anthropic", target="same", seed="vec")
        assert (rules_of(body), rules_of(made)) == (rules, set())
    assert read(loopback, python_clients, made) == message
    assert (read(loopback, python_clients, body) == message) == (name in UNHURT)


def test_a_marker_without_a_name_does_no_harm(backend: str, loopback: Loopback, python_clients: Clients) -> None:
    """A `[DONE]` without an event name passes through repair and does not affect the client."""
    body = b"".join(chunks_of(VECTORS["done-behind-message-stop"]))
    with using(backend):
        assert sw.convert(body, source="anthropic", target="same") == body
    assert read(loopback, python_clients, body) == held("end_turn")


@pytest.mark.parametrize("name", ["events-under-the-name-of-another", "what-says-nothing-may-have-no-name"])
def test_what_readers_take_as_it_is_passes(
    backend: str, loopback: Loopback, python_clients: Clients, name: str
) -> None:
    body = b"".join(chunks_of(VECTORS[name]))
    with using(backend):
        assert sw.convert(body, source="anthropic", target="same") == body
    assert read(loopback, python_clients, body) == held("end_turn")


@pytest.mark.parametrize(
    "name",
    ["an-error-without-a-name", "an-error-under-the-name-of-another", "an-error-under-a-name-that-nobody-reads"],
)
def test_the_client_raises_the_error_of_the_upstream(
    backend: str, loopback: Loopback, python_clients: Clients, name: str
) -> None:
    body = b"".join(chunks_of(VECTORS[name]))
    with using(backend):
        converter = sw.StreamConverter(source="anthropic", target="same")
        made = converter.feed(body) + converter.close()
    shown = "{'type': 'error', 'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}"
    assert read(loopback, python_clients, made)["error"] == {"name": "APIStatusError", "message": shown}
    assert read(loopback, python_clients, body) == held("end_turn", text="Hello")


@pytest.mark.parametrize(
    ("dialect", "name", "error", "text", "lost"),
    [
        ("chat", "a-chunk-under-a-name-of-threads", None, "Hello", True),
        ("chat", "an-error-under-its-name-alone", "slow down", "Hel", True),
        ("responses", "an-event-under-the-name-error", "no", "", True),
        ("chat", "chunks-under-names", None, "Hello", False),
        ("responses", "events-under-no-name-or-another", None, "Hello", False),
    ],
)
def test_names_that_official_clients_of_openai_misread(
    backend: str,
    loopback: Loopback,
    python_clients: Clients,
    dialect: Any,
    name: str,
    error: str | None,
    text: str,
    lost: bool,
) -> None:
    vector = next(v for v in load("repair") if (v["file"], v["name"]) == (dialect, name))
    body = b"".join(chunks_of(vector))
    with using(backend):
        converter = sw.StreamConverter(source=dialect, target="same")
        made = converter.feed(body) + converter.close()
    before, after = (read(loopback, python_clients, one, OPENAI[dialect]) for one in (body, made))
    assert (after["error"], after["text"]) == (error and {"name": "APIError", "message": error}, text)
    assert (before != after) == lost
    assert before["error"] is None
