"""Repaired streams before the official client of their dialect, over HTTP on the loopback interface, in random pieces.

What the client holds at its end is written here. Of the stream as it was sent it raises or holds something else, unless
nothing but an event is missing that it does not wait for.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw

from tests.backends import using
from tests.clients_python import python_clients
from tests.loopback import loopback
from tests.vector_files import chunks_of, load

if TYPE_CHECKING:
    from tests.clients_python import Clients
    from tests.loopback import Loopback

__all__ = ["loopback", "python_clients"]

CLIENT = "anthropic messages.stream"
VECTORS = {vector["name"]: vector for vector in load("repair") if vector["file"] == "anthropic"}
MOST = 64  # bytes of a piece


def held(
    finish: str, *calls: dict[str, Any], text: str = "Hello", reasoning: str = "", counts: tuple[int, int] = (3, 9)
) -> dict[str, Any]:
    """What the client holds of a whole message."""
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
# The name of the vector -> what `check` says of the source (an event named `message` is one without a name to it), and
# what the client holds of the repaired stream.
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
}
# anthropic-python has all of the message without a repair: it never looks whether the end was told.
UNHURT = {
    "done-in-place-of-message-stop",
    "done-before-message-stop",
    "a-whole-message-behind-its-message-delta",
}


def read(loopback: Loopback, clients: Clients, body: bytes) -> dict[str, Any]:
    """What the client holds of a body that comes in pieces."""
    chance = random.Random(len(body))
    pieces: list[bytes] = []
    at = 0
    while at < len(body):
        step = chance.randint(1, MOST)
        pieces.append(body[at : at + step])
        at += step
    key = loopback.put(pieces)
    record = clients.read(CLIENT, key)
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
    """That it passes is said by the vector; `check` goes on to name it."""
    body = b"".join(chunks_of(VECTORS["done-behind-message-stop"]))
    with using(backend):
        assert sw.convert(body, source="anthropic", target="same") == body
    assert read(loopback, python_clients, body) == held("end_turn")
