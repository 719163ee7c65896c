"""A converter writes text, reasoning and arguments as they arrive, instead of collecting them until the end.

Readers of the target thus see the output while the model generates it. An event may wait for the next one, because it
may be a placeholder or the beginning of a marker. Not tested are arguments of several calls, because some targets write
one block at a time, free-form arguments, which most targets need as JSON, and calls that the server runs. Gemini has no
deltas of arguments.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld.events import ReasoningDelta, TextDelta, ToolCall, ToolCallDelta

from tests.support.backends import using
from tests.support.corpus import absent, recordings, sampled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.support.corpus import Recording

pytestmark = pytest.mark.skipif(absent() is not None, reason=str(absent()))

FOLDERS = ("chat", "responses", "anthropic", "gemini")
TARGETS = ("chat", "responses", "anthropic", "gemini", "ai-sdk-ui", "ai-sdk-parts")
WAITING = 8  # maximum number of characters that wait longer than until the next event
LONGEST = 1_000  # number of blocks; longer recordings show nothing more


def blocks(body: bytes) -> list[bytes]:
    return [block for block in re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)", body) if block]


def length(events: Iterable[Any]) -> Counter[str]:
    """Return the number of characters of each kind in the deltas of choice 0."""
    total: Counter[str] = Counter()
    for event in events:
        if isinstance(event, ToolCallDelta) and event.choice == 0:
            total["arguments"] += len(event.arguments)
        elif isinstance(event, TextDelta | ReasoningDelta) and event.choice == 0:
            total[type(event).__name__] += len(event.text)
    return total


def waiting(recording: Recording, target: Any, *, tools: list[str] | None = None) -> Iterator[Counter[str]]:
    """Return after each block how many characters of the blocks before it are not written yet."""
    source: Any = recording.dialect
    read, written = sw.StreamParser(dialect=source), sw.StreamParser(dialect=target)
    converter = sw.StreamConverter(source=source, target=target, tools=tools)
    unwritten: Counter[str] = Counter()
    for block in blocks(recording.body)[:LONGEST]:
        try:
            unwritten.subtract(length(written.feed(converter.feed(block))))
            yield unwritten.copy()
            unwritten.update(length(read.feed(block)))
        except sw.StreamError:
            return


def only_call(recording: Recording) -> str | None:
    """Return the name of the stream's call if there is only one and the client has to run it, as a function."""
    parser = sw.StreamParser(dialect=recording.dialect)
    try:
        events = [*parser.feed(recording.body), *parser.close()]
    except sw.StreamError:
        return None
    calls = [event for event in events if isinstance(event, ToolCall)]
    if len(calls) != 1 or not calls[0].dispatchable or calls[0].custom:
        return None
    return calls[0].name


def repeats_its_tools(recording: Recording, name: str) -> bool:
    """Return whether the opening event of a Responses stream lists the tool."""
    opening = re.search(rb'"type": ?"response\.created".*', recording.body)
    return opening is not None and re.search(rb'"name": ?"%s"' % name.encode(), opening[0]) is not None


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_text_is_written_when_it_arrives(backend: str, folder: str, target: str) -> None:
    checked = 0
    with using(backend):
        for recording in sampled(list(recordings(folder)), 10):
            for unwritten in waiting(recording, target) if recording.dialect != target else ():
                assert unwritten["TextDelta"] <= WAITING, recording.name
                assert unwritten["ReasoningDelta"] <= WAITING, recording.name
                checked += 1
    assert checked > 50 or folder == target


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "gemini"])
@pytest.mark.parametrize("folder", ["chat", "responses", "anthropic"])
def test_arguments_are_written_when_they_arrive(backend: str, folder: str, target: str) -> None:
    checked = 0
    with using(backend):
        for recording in sampled(list(recordings(folder)), 5):
            name = only_call(recording) if recording.dialect != target else None
            if name is None:
                continue
            for unwritten in waiting(recording, target, tools=[name]):
                assert unwritten["arguments"] <= WAITING, recording.name
                checked += unwritten["arguments"] >= 0
    assert checked > 50 or folder == target


def test_the_tools_that_a_response_repeats_are_enough(backend: str) -> None:
    checked = 0
    with using(backend):
        for recording in recordings("responses"):
            name = only_call(recording)
            if name is None or not repeats_its_tools(recording, name):
                continue
            assert all(unwritten["arguments"] <= WAITING for unwritten in waiting(recording, "chat")), recording.name
            checked += 1
    assert checked >= 15
