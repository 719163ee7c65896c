"""`breaks_client` matches the clients' behavior, and the violations that remain after repair are the listed ones."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from streamweld.check.violation import rules

from tests.check.breakage import (
    FALSE_SUCCESS,
    LEFT_OVER,
    RECORD,
    RULES,
    Bench,
    breaks_client,
    chosen,
    in_rules,
    left_over,
    observe,
    repaired,
)
from tests.conftest import FULL, NIGHTLY
from tests.support import corpus
from tests.support.clients.python import python_clients
from tests.support.servers.loopback import loopback
from tests.support.vector_files import chunks_of

if TYPE_CHECKING:
    from tests.support.clients.node_side import Node
    from tests.support.clients.python import Clients
    from tests.support.servers.loopback import Loopback

__all__ = ["loopback", "python_clients"]

OUTCOMES: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))["rules"]
LEFT: dict[str, Any] = json.loads(LEFT_OVER.read_text("utf-8"))["streams"]
EVERY = 1 if NIGHTLY else 40  # check one in this many rules
EVERY_RECORDING = 1 if FULL else 15
# One rule for each client, and two rules that do not break any client.
KNOWN = {
    "chat.call_index": {"openai chat.completions.stream": ["raises TypeError"]},
    "chat.usage_not_last": {"openai chat.completions.stream": ["reads no token counts"]},
    "responses.created_first": {"openai-node responses.stream": ["raises Error"]},
    "anthropic.event_missing": {"anthropic messages.stream": ["raises AssertionError"]},
    "anthropic.message_start_repeated": {"@anthropic-ai/sdk messages.stream": ["raises AnthropicError"]},
    "gemini.done_marker": {"google-genai generate_content_stream": ["raises UnknownApiResponseError"]},
    "ai-sdk-ui.output_unknown": {"useChat": ["raises AI_UIMessageStreamError"]},
    "chat.object": {"openai chat.completions.stream": [], "@ai-sdk/openai chat": []},
    "responses.sequence_missing": {"openai responses.stream": [], "openai-node responses.stream": []},
}
recorded = pytest.mark.skipif(corpus.absent() is not None, reason=corpus.absent() or "")


@pytest.fixture
def bench(loopback: Loopback, python_clients: Clients, node: Node) -> Bench:
    return Bench(loopback, python_clients, node)


def test_the_record_is_of_the_streams_of_today() -> None:
    streams = chosen()
    assert OUTCOMES.keys() == streams.keys()
    assert rules().keys() - OUTCOMES.keys() == {"framing.too_large", "framing.too_much"}  # need many megabytes
    for rule, (vector, others) in streams.items():
        row = OUTCOMES[rule]
        assert row["body"] == hashlib.sha256(b"".join(chunks_of(vector))).hexdigest()[:16], rule
        assert row["others"] == others
        assert row["readers"].keys() == row["versions"].keys()


def test_the_rules_say_what_was_recorded() -> None:
    text = RULES.read_text("utf-8")
    assert in_rules(text, breaks_client(OUTCOMES)) == text
    for rule, readers in KNOWN.items():
        assert readers.items() <= OUTCOMES[rule]["readers"].items()
    (first, second, third) = rules()["chat.call_index"].breaks_client
    assert (first.client, first.effect) == ("openai-python", "raises TypeError")
    assert (second.client, third.client) == ("openai-node", "@ai-sdk/openai")
    assert rules()["chat.object"].breaks_client == ()


def outcome(others: list[str], *found: str) -> dict[str, Any]:
    return {"others": others, "readers": {"useChat": list(found)}, "versions": {"useChat": "7"}}


def test_a_stream_of_several_rules_is_charged_to_the_one_that_explains_it() -> None:
    made = breaks_client(
        {
            "chat.call_index": outcome([], "raises Error"),
            "chat.choice_index": outcome(["chat.call_index"], "raises Error"),  # the other rule alone raises
            "chat.no_choices": outcome(["chat.after_done"], "raises Error"),
            "chat.after_done": outcome([]),  # the other rule alone is harmless
            "chat.object": outcome(["chat.no_choices"], "raises Error"),  # a rule with severity info, next to an error
        }
    )
    effect = {"ai": {"version": "7", "effect": "raises Error"}}
    assert made == {"chat.call_index": effect, "chat.no_choices": effect}


def test_the_clients_do_what_was_recorded(bench: Bench) -> None:
    names = [*KNOWN, *sorted(OUTCOMES)[::EVERY]]
    assert observe({}, bench, names) == {rule: OUTCOMES[rule] for rule in OUTCOMES if rule in names}


def test_a_judge_finds_what_is_wrong_and_nothing_else(bench: Bench) -> None:
    chunk = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%b]}\n\n'
    text = chunk % b'{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}'
    end = chunk % b'{"index":0,"delta":{},"finish_reason":"%b"}'
    whole = bench.judge("chat", text + end % b"stop" + b"data: [DONE]\n\n")
    assert set(map(tuple, whole.values())) == {()}
    assert len(whole) == 4
    broken = bench.judge("chat", text.replace(b'"index":0,', b"") + end % b"stop" + b"data: [DONE]\n\n")
    assert broken["openai chat.completions.stream"] == ["raises TypeError"]
    cut = bench.judge("chat", text + b'data: {"choices":[{"index":0,"delta":{"content":"')
    assert set(map(tuple, cut.values())) == {()}
    assert FALSE_SUCCESS not in {
        what for row in OUTCOMES.values() for found in row["readers"].values() for what in found
    }


@recorded
@pytest.mark.parametrize("folder", corpus.FOLDERS)
def test_repair_leaves_no_violation_that_breaks_a_client(folder: str) -> None:
    """After repair, only the streams in `left_over.json` have such violations. A stream without violations must be
    removed from it.
    """
    for number, recording in enumerate(corpus.recordings(folder)):
        name = f"{folder}/{recording.name}"
        if number % EVERY_RECORDING == 0 or name in LEFT:
            found = repaired(recording)
            assert (found[1] if found else []) == LEFT.get(name, {"rules": []})["rules"], name


@recorded
def test_who_misreads_what_is_left(bench: Bench) -> None:
    names = list(LEFT) if NIGHTLY else list(LEFT)[::30]
    assert left_over(bench, names) == {name: LEFT[name] for name in names}
