"""Converted streams read by the official clients, over HTTP on the loopback interface, in random pieces.

Each client's result must equal the expected result of the source in the corpus or the vector, except for listed losses.
A truncated or corrupted source never becomes an ending that a client treats as a success.
"""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld._spec import load_conversions

from tests.conftest import FULL, backends
from tests.support import corpus
from tests.support.audio import transcript
from tests.support.backends import using
from tests.support.clients.compare import NODE_AI, NODE_SDK, PYTHON, TARGETS, differences, is_success
from tests.support.clients.expected import from_recording, from_vector
from tests.support.clients.python import python_clients
from tests.support.harness import policy_of
from tests.support.servers.loopback import loopback
from tests.support.vector_files import chunks_of, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from streamweld.response import Response

    from tests.support.clients.expected import Expected
    from tests.support.clients.node_side import Node
    from tests.support.clients.python import Clients
    from tests.support.servers.loopback import Loopback

__all__ = ["loopback", "python_clients"]

CHOSEN: dict[str, Any] = json.loads((Path(__file__).parent / "convert_clients.json").read_text("utf-8"))
EVERY = 6  # one in this many recorded streams, with the full counts
LOSSES = {row["id"]: frozenset(row["targets"]) for row in load_conversions()["losses"]}
CORRUPTIONS = 40 if FULL else 8
# Sizes of pieces. A long body is sent in large pieces, because it would otherwise take seconds.
LONG, SMALL, LARGE = 4_000, (3, 17, 64, 300), (300, 4_000)
# The bytes that show, in each dialect, that the response is over or that all its parts are complete. A source that is
# truncated after them counts as finished (`assumed`); a source truncated before them is never a success.
THE_END = {
    "chat": b'"finish_reason":"',
    "responses": b"response.output_item.done",
    "anthropic": b"content_block_stop",
    "gemini": b'"finishReason"',
    "ai-sdk-parts": b'"finish"',
    "ai-sdk-ui": b'"finish"',
}


@dataclass(frozen=True)
class Stream:
    """A source: how it is read, and its expected result."""

    name: str
    dialect: str
    body: Callable[[], bytes]
    options: dict[str, Any]
    expected: Callable[[Response], Expected]


def of_recording(recording: corpus.Recording) -> Stream:
    return Stream(
        f"{recording.folder}/{recording.name}",
        recording.dialect,
        lambda: recording.body,
        {},
        lambda response: from_recording(recording, response),
    )


def of_vector(name: str) -> Stream:
    layer, file, short = name.split("/")
    (vector,) = [v for v in load(layer) if (v["file"], v["name"]) == (file, short)]
    options = {key: value for key, value in policy_of(vector["options"]).items() if key != "dialect"}
    return Stream(
        name,
        layer,
        lambda: b"".join(chunks_of(vector)),
        options,
        lambda response: from_vector(vector, response),
    )


@cache
def streams() -> tuple[Stream, ...]:
    by_name = {f"{r.folder}/{r.name}": r for r in corpus.all_recordings()}
    names = [row["recording"] for row in CHOSEN["streams"] if "recording" in row] if by_name else []
    if FULL:
        names += [name for name in list(by_name)[::EVERY] if name not in names]
    vectors = [of_vector(row["vector"]) for row in CHOSEN["streams"] if "vector" in row]
    return (*(of_recording(by_name[name]) for name in names), *vectors)


@dataclass(frozen=True)
class Converted:
    """The output of one backend for a source."""

    body: bytes
    error: sw.StreamError | None
    losses: frozenset[str]
    response: Response

    @property
    def is_whole(self) -> bool:
        """True if the response ended without an error and was not truncated."""
        found = self.response
        return self.error is None and found.completeness != "truncated" and found.finish_reason not in (None, "error")


def convert(names: Iterable[str], stream: Stream, body: bytes, target: Any) -> list[Converted]:
    """Convert with every backend, and return equal outputs only once."""
    made: list[Converted] = []
    for backend in names:
        with using(backend):
            options = {"seed": "sw", **stream.options}
            converter = sw.StreamConverter(source=stream.dialect, target=target, **options)  # type: ignore[arg-type]
            written = converter.feed(body) + converter.close()
        losses = frozenset(d.detail for d in converter.diagnostics if d.code == "not_carried")
        if all(written != other.body for other in made):
            made.append(Converted(written, converter.error, losses, converter.response))
    return made


def pieces_of(body: bytes, name: str) -> list[bytes]:
    chance = random.Random(name)
    most = chance.choice(SMALL if len(body) < LONG else LARGE)
    pieces, at = [], 0
    while at < len(body):
        step = chance.randint(1, most)
        pieces.append(body[at : at + step])
        at += step
    return pieces


class Readers:
    """All clients of a dialect, in Python and in Node, reading one body of one of the backends."""

    def __init__(self, backends: list[str], loopback: Loopback, python_clients: Clients, node: Node) -> None:
        self.backends = backends
        self._server = loopback
        self._python = python_clients
        self._node = node

    def read(self, target: str, pieces: list[bytes], tools: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return client -> its result. `tools`: the names that an application declares."""
        key = self._server.put(pieces)
        url = f"{self._server.origin}/{key}"
        with ThreadPoolExecutor(1) as pool:
            requested = pool.submit(self._ask, target, url, sorted(set(tools)))
            held = {name: self._python.read(name, key) for name in PYTHON.get(target, ())}
            held |= requested.result()
        self._server.drop(key)
        return held

    def _ask(self, target: str, url: str, tools: list[str]) -> dict[str, dict[str, Any]]:
        held: dict[str, dict[str, Any]] = self._node.ask("ai.read", url=url, clients=NODE_AI[target], tools=tools)
        if target in NODE_SDK:
            held |= self._node.ask("sdk.read", url=url, clients=NODE_SDK[target])
        return held


@pytest.fixture
def readers(pytestconfig: pytest.Config, loopback: Loopback, python_clients: Clients, node: Node) -> Readers:
    return Readers(backends(pytestconfig), loopback, python_clients, node)


def names_of(response: Response) -> list[str]:
    return [call.name for call in (*response.tool_calls, *response.server_tool_calls) if call.name]


def to_targets(some: Iterable[Stream]) -> list[Any]:
    return [
        pytest.param(stream, target, id=f"{stream.name}-{target}")
        for stream in some
        for target in TARGETS
        if target != stream.dialect
    ]


@pytest.mark.parametrize(("stream", "target"), to_targets(streams()))
def test_clients_hold_what_the_source_said(readers: Readers, stream: Stream, target: str) -> None:
    for made in convert(readers.backends, stream, stream.body(), target):
        assert all(target in LOSSES[loss] for loss in made.losses)
        expected = stream.expected(made.response)
        if stream.dialect == "chat":
            expected = replace(expected, text=expected.text or "".join(map(transcript, made.response.choices[:1])))
        held = readers.read(target, pieces_of(made.body, f"{stream.name} {target}"), names_of(made.response))
        for client, record in held.items():
            if made.is_whole:
                found = list(
                    differences(client, expected, record, source=stream.dialect, target=target, losses=made.losses)
                )
                assert not found, (client, found, sorted(expected.filled), sorted(made.losses))
            else:
                assert not is_success(record), (client, record, made.error)


CITING = {
    "openai chat.completions.stream": "annotations",
    "openai-node chat.completions.stream": "annotations",
    "@ai-sdk/openai chat": "sources",
}


CITED = {
    "annotations_of_several_texts": ["https://a.b", "https://c.d", "https://e.f"],
    "cited_pages_of_anthropic": ["https://a.b"],
    "source_of_the_ai_sdk": ["https://a.b"],
}


@pytest.mark.parametrize("name", CITED)
def test_clients_of_chat_hold_every_citation(readers: Readers, name: str) -> None:
    """Chat clients get every citation: openai-python rejects a second list of them, openai-node keeps the last list,
    @ai-sdk/openai requires complete entries."""
    (vector,) = [v for v in load("convert") if v["name"] == name]
    for backend in readers.backends:
        with using(backend):
            made = sw.convert(b"".join(chunks_of(vector)), source=vector["source"], target="chat", seed="sw")
        held = readers.read("chat", [made], ())
        for client, member in CITING.items():
            cited = held[client][member]
            urls = [entry if member == "sources" else entry["url_citation"]["url"] for entry in cited]
            assert urls == CITED[name], (client, held[client]["error"])


# Files of vectors about content other than text, reasoning and calls of the client.
CARRIED = ("citations", "searches", "media", "phases")
# The sources that the AI SDK reads, by vector and client.
SOURCES = {
    "cited_pages_of_a_file_to_responses": {"@ai-sdk/openai responses": ["", "https://a", "B"]},
    "cited_pages_from_chat_to_anthropic": {"@ai-sdk/anthropic": ["https://a", "https://b"]},
    "cited_pages_from_anthropic_to_gemini": {"@ai-sdk/google": ["https://a", "https://a.b/g"]},
    "cited_pages_without_a_title_to_parts": {"@ai-sdk/gateway": ["Document 0", "Document 1"]},
    "cited_document_without_a_title_to_ui": {"useChat": ["Document 2"]},
}


@pytest.mark.parametrize("vector", [v for v in load("convert") if v["file"] in CARRIED], ids=lambda v: str(v["name"]))
def test_clients_read_carried_content(readers: Readers, vector: dict[str, Any]) -> None:
    """No client rejects a citation, a search, an image or a phase that the conversion wrote."""
    for backend in readers.backends:
        with using(backend):
            made = sw.convert(b"".join(chunks_of(vector)), source=vector["source"], target=vector["target"], seed="sw")
        held = readers.read(vector["target"], [made], ("web_search",))
        assert {client: record["error"] for client, record in held.items() if record["error"]} == {}
        for client, sources in SOURCES.get(vector["name"], {}).items():
            assert held[client]["sources"] == sources


def test_the_chosen_streams() -> None:
    rows = CHOSEN["streams"]
    assert len(rows) == 62
    assert len({row.get("vector") or row["recording"] for row in rows}) == 62
    assert all(row["why"] for row in rows)
    sources = {row.get("vector", row.get("recording")).split("/")[0] for row in rows}
    assert {corpus.FOLDERS.get(source, source) for source in sources} == set(TARGETS)


# Endings


def events_of(body: bytes) -> list[int]:
    """Return the end positions of the events of a body."""
    places, at = [], 0
    while (at := body.find(b"\n\n", at)) >= 0:
        at += 2
        places.append(at)
    return places


# If an incomplete response contains calls and a reason that these clients do not support, they report `tool-calls`. The
# calls themselves are complete.
LOOSE = {"@ai-sdk/openai responses", "@ai-sdk/open-responses"}
ENDINGS = [of_vector(name) for name in CHOSEN["endings"]]


def never_a_success(readers: Readers, stream: Stream, target: str, bodies: Iterable[bytes]) -> int:
    """Return how many of the sources are not a success. No client may report success for one of these."""
    judged: set[bytes] = set()
    for body in bodies:
        for made in convert(readers.backends, stream, body, target):
            whole = made.is_whole and made.response.finish_reason in ("stop", "tool_calls")
            ended = THE_END[stream.dialect] in body or b"[DONE]" in body
            if (whole and ended) or made.body in judged:
                continue
            judged.add(made.body)
            held = readers.read(target, pieces_of(made.body, target), names_of(made.response))
            for client, record in held.items():
                if client in LOOSE and made.is_whole and made.response.dispatchable_calls:
                    continue
                assert not is_success(record), (client, record, body)
    return len(judged)


@pytest.mark.parametrize(("stream", "target"), to_targets(ENDINGS))
def test_a_cut_is_no_success_for_any_client(readers: Readers, stream: Stream, target: str) -> None:
    body = stream.body()
    places = events_of(body)[:-1]
    assert THE_END[stream.dialect] not in body[: places[0]]
    assert never_a_success(readers, stream, target, (body[:place] for place in places))


@pytest.mark.parametrize(("stream", "target"), to_targets(ENDINGS))
def test_corruption_is_no_success_for_any_client(readers: Readers, stream: Stream, target: str) -> None:
    body = stream.body()
    chance = random.Random(f"{stream.name} {target}")

    def corrupted() -> Iterator[bytes]:
        for _ in range(CORRUPTIONS):
            at = chance.randrange(len(body))
            other = chance.choice((b"", b"\n\n", b'"', b"{", b"\xff", bytes([chance.randrange(256)])))
            yield body[:at] + other + body[at + chance.randrange(4) :]

    never_a_success(readers, stream, target, corrupted())
