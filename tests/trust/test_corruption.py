"""Corruption of one byte or one event, at every position, in every dialect (row R7).

Outcomes of a corrupted stream, compared with the intact one:
- detected: an exception, or a diagnostic that the intact stream does not have;
- unchanged: the same texts and calls, the calls in any order;
- text: other text, without a sign. A changed letter of a text cannot be detected;
- edit: the same call with the same single edit in it, or with one of its events moved or repeated, without a sign. In a
  dialect that sends arguments once and does not number its events, that cannot be detected;
- lost: arguments or calls that are shorter or missing, without a sign;
- readdressed: a fragment that was given the index of another call. In Chat, only the index identifies the call;
- doubled: an additional call, whose id is that of a sent call with the edit in it, without a sign;
- other: any other change of a call, without a sign.

The last six are silent. The requirements: no exception other than StreamError, no outcome `other`, no text of one call
in another one (except readdressed in Chat), and no doubled call. The counts by dialect are figures.
STREAMWELD_NIGHTLY=1 tries every position; a usual run tries a sample.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld.errors import StreamError

from tests.support.backends import make_parser
from tests.support.vector_files import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NIGHTLY = os.environ.get("STREAMWELD_NIGHTLY") == "1"
STEP = {"native": 1, "pure": 9} if NIGHTLY else {"native": 61, "pure": 331}
# The arguments of each call use letters that do not occur in another call, name or text.
CALLS = [("call_1", "alpha", {"q": "QQQQQQQQQQQQ"}), ("call_2", "beta", {"w": "WWWW", "x": [1, 22, 333]}),
         ("call_3", "gamma", {"z": {"z": "ZZZZZZ"}})]  # fmt: skip
MARKS = "QWZ"
OUTCOMES = ("detected", "unchanged", "text", "edit", "lost", "readdressed", "doubled", "other")


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m-1"}
    payload = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n"


@cache
def intact(dialect: str) -> bytes:
    """Return a response with text and three interleaved calls. Chat is converted to the other dialects."""
    frames = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "One moment, "}),
        chunk({"content": "please."}),
    ]
    texts = [json.dumps(arguments, separators=(",", ":")) for _, _, arguments in CALLS]
    for index, (call_id, name, _) in enumerate(CALLS):
        function = {"name": name, "arguments": ""}
        frames.append(
            chunk({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]})
        )
    for at in range(0, max(map(len, texts)), 5):
        for index, text in enumerate(texts):
            if text[at : at + 5]:
                frames.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": text[at : at + 5]}}]}))
    frames += [chunk({}, "tool_calls"), b"data: [DONE]\n\n"]
    if dialect == "chat":
        return b"".join(frames)
    converter = sw.StreamConverter(source="chat", target=dialect, seed="r7")  # type: ignore[arg-type]
    return b"".join(map(converter.feed, frames)) + converter.close()


def corruptions(body: bytes, step: int) -> Iterator[tuple[str, bytes]]:
    """Yield (description, corrupted stream) for one byte or one event at a time."""
    for at in range(0, len(body), step):
        head, byte, tail = body[:at], body[at : at + 1], body[at + 1 :]
        yield f"flip {at}", head + bytes([byte[0] ^ 1]) + tail
        yield f"delete {at}", head + tail
        yield f"repeat {at}", head + byte + byte + tail
        yield f"swap {at}", head + tail[:1] + byte + tail[1:]
    events = [event + b"\n\n" for event in body.split(b"\n\n")[:-1]]
    for at in range(0, len(events), max(1, step // 20)):
        yield f"drop event {at}", b"".join(events[:at] + events[at + 1 :])
        yield f"repeat event {at}", b"".join([*events[:at], events[at], *events[at:]])
        yield f"swap events {at}", b"".join(events[:at] + events[at + 1 : at + 2] + [events[at]] + events[at + 2 :])


@dataclass(frozen=True)
class Read:
    """The data that a client acts on, and the signs that something is wrong."""

    text: str
    calls: list[tuple[str, str, str]]
    codes: Counter[str]
    raised: bool


def read(backend: str, dialect: str, body: bytes) -> Read:
    """Return the response, with the calls that may be dispatched. An exception other than StreamError propagates."""
    parser = make_parser(backend, dialect)
    raised = False
    try:
        parser.feed(body)
        parser.close()
    except StreamError:
        raised = True
    response = parser.response
    calls = [(call.call_id, call.name, call.arguments) for call in response.dispatchable_calls]
    return Read(response.text, calls, Counter(found.code for found in parser.diagnostics), raised)


def is_one_edit(one: str, other: str) -> bool:
    """Return True if a flip, a deletion, a repetition or a swap of neighbors turns one text into the other."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    changed, by = one[start : len(one) - end], other[start : len(other) - end]
    return max(len(changed), len(by)) <= 1 or (len(changed) == 2 and changed[::-1] == by)


def is_subsequence(part: str, whole: str) -> bool:
    rest = iter(whole)
    return all(letter in rest for letter in part)


def kind_of(now: tuple[str, str, str], sent: list[tuple[str, str, str]], what: str) -> str:
    """Return the outcome for a call that differs from the sent calls."""
    same_id = [call for call in sent if call[0] == now[0]]
    if not same_id:
        near = [call for call in sent if is_one_edit(call[0], now[0])]
        return "doubled" if any(now[1] == name and now[2] in ("", text) for _, name, text in near) else "other"
    (was,) = same_id
    changed = [at for at in range(3) if now[at] != was[at]]
    if changed == [2] and is_subsequence(now[2], was[2]) and now[2] != was[2]:
        return "edit" if is_one_edit(now[2], was[2]) and now[2] else "lost"
    if changed == [2] and " event" in what:
        return "edit"  # an edit of a duplicate or late fragment
    return "edit" if len(changed) == 1 and is_one_edit(now[changed[0]], was[changed[0]]) else "other"


def outcome_of(what: str, before: Read, after: Read) -> str:
    if after.raised or after.codes - before.codes:
        return "detected"
    if sorted(after.calls) == sorted(before.calls):
        return "unchanged" if after.text == before.text else "text"
    kinds = {kind_of(call, before.calls, what) for call in after.calls if call not in before.calls}
    missing = {call[0] for call in before.calls} - {call[0] for call in after.calls}
    if "doubled" in kinds and len(after.calls) == len(before.calls):
        kinds = kinds - {"doubled"} | {"edit"}  # the edit is in the id, in the only event that contains it
    elif missing:
        kinds.add("lost")
    if len(after.calls) > len(before.calls) and "doubled" not in kinds:
        kinds.add("other")
    return next(kind for kind in ("other", "doubled", "lost", "edit") if kind in kinds)


def is_of_an_index(what: str, body: bytes) -> bool:
    """Return True if the edit changed one digit in the value of an `index` member."""
    kind, _, place = what.partition(" ")
    return kind == "flip" and body[: int(place)].endswith(b'"index":')


def mixed(calls: list[tuple[str, str, str]]) -> list[str]:
    """Return arguments that contain the letters of two calls."""
    return [arguments for _, _, arguments in calls if sum(mark in arguments for mark in MARKS) > 1]


def test_the_intact_streams_are_as_sent(backend: str) -> None:
    wanted = [(call_id, name, json.dumps(arguments, separators=(",", ":"))) for call_id, name, arguments in CALLS]
    for dialect in DIALECTS:
        found = read(backend, dialect, intact(dialect))
        assert (found.text, found.raised, found.calls) == ("One moment, please.", False, wanted), dialect


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_corruption(backend: str, dialect: str, figure: Callable[[str, str], None]) -> None:
    body = intact(dialect)
    before = read(backend, dialect, body)
    counts: Counter[str] = Counter()
    wrong = []
    for what, corrupted in corruptions(body, STEP[backend]):
        after = read(backend, dialect, corrupted)
        outcome = outcome_of(what, before, after)
        if outcome in ("other", "edit") and dialect == "chat" and is_of_an_index(what, body):
            outcome = "readdressed"
        counts[outcome] += 1
        if outcome == "other" or (mixed(after.calls) and outcome != "readdressed") or outcome == "doubled":
            wrong.append(f"{what}: {outcome}: {after.calls}")
    assert not wrong, f"{len(wrong)} of {counts.total()}\n" + "\n".join(wrong[:20])
    share = {name: f"{100 * counts[name] / counts.total():.1f} %" for name in ("detected", "unchanged")}
    quiet = [name for name in OUTCOMES if name not in share]
    silent = f"{100 * sum(counts[name] for name in quiet) / counts.total():.1f} %"
    kinds = ", ".join(f"{name} {counts[name]}" for name in quiet)
    seen = f"{share['detected']} detected, {share['unchanged']} unchanged"
    figure(f"{dialect}, {backend}", f"{counts.total()} corruptions: {seen}, {silent} silent ({kinds})")
