"""The event stream format: all vectors with both backends, exact limits, and sources that are closed once."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamweld._extension import extension
from streamweld._spec import LIMITS
from streamweld.errors import LimitExceeded, ParserBusy, UsageError
from streamweld.options import Limits
from streamweld.sse import Frame, iter_frames

from tests.support.backends import make_frame_reader, using
from tests.support.harness import bytewise
from tests.support.places import SHARED
from tests.support.vector_files import chunks_of, label, load

CASES = SHARED / "data" / "sse_cases.json"


def read(
    backend: str, chunks: list[bytes], last_event_id: str = "", **limits: int | None
) -> tuple[list[Frame], list[int], Any]:
    reader = make_frame_reader(backend, limits=Limits(**limits), last_event_id=last_event_id)
    frames: list[Frame] = []
    counts = []
    for chunk in chunks:
        frames += reader.feed(chunk)
        counts.append(len(frames))
    return frames, counts, {name: getattr(reader, name) for name in ("last_event_id", "reconnection_time")}


@pytest.mark.parametrize("vector", load("sse"), ids=label)
def test_vector_at_every_cut(backend: str, vector: dict[str, Any]) -> None:
    whole = b"".join(chunks_of(vector))
    first = vector.get("last_event_id", "")
    expected = read(backend, [whole], first)
    for cut in range(1, len(whole)) if len(whole) <= 200 else range(1, len(whole), len(whole) // 100):
        found = read(backend, [whole[:cut], b"", whole[cut:]], first)
        assert (found[0], found[2]) == (expected[0], expected[2]), cut


@pytest.mark.parametrize("way", ["given", "whole", "bytes"])
def test_the_224_cases(backend: str, way: str) -> None:
    if not CASES.exists():
        assert len(load("sse")) == 224  # the vectors contain all 224 cases
        return
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    assert len(cases) == 224
    failed = []
    for case in cases:
        chunks = [base64.b64decode(chunk) for chunk in case["chunks"]]
        pieces = {"given": chunks, "whole": [b"".join(chunks)], "bytes": bytewise(b"".join(chunks))}[way]
        frames, counts, final = read(backend, pieces, case.get("initial_last_event_id", ""))
        right = [Frame(**event) for event in case["events"]] == frames and final == case["final"]
        if not right or (way == "given" and counts != case["events_after_chunk"]):
            failed.append(case["name"])
    assert failed == []


# Random bytes, compared with the standard's own algorithm over the whole text.


def reference(body: bytes, last_event_id: str) -> tuple[list[Frame], str, int | None]:
    """Implement section 9.2.6 of the HTML Standard, "interpreting an event stream", literally."""
    lines = re.split(r"\r\n|\n|\r", body.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace"))
    lines.pop()  # a line without a line ending is ignored
    frames: list[Frame] = []
    data = event = ""
    identifier = last_event_id
    time: int | None = None
    retry: int | None = None
    for line in lines:
        if line == "":
            last_event_id = identifier
            if data != "":
                frames.append(Frame(event or "message", data.removesuffix("\n"), last_event_id, retry))
            data = event = ""
            retry = None
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            event = value
        elif field == "data":
            data += value + "\n"
        elif field == "id" and "\0" not in value:
            identifier = value
        elif field == "retry" and re.fullmatch("[0-9]+", value) and int(value) < 1 << 63:
            retry = time = int(value)
    return frames, last_event_id, time


fields = [b"data", b"data:", b"data: ", b"event:", b"event: e", b"id:", b"id: 7", b"id", b"retry: 10", b"retry", b":"]
ends = [b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n"]
texts = [b" ", b"x", b"0", b"00012", b"9" * 19, b"{}", b"[DONE]", b"dat", b"DATA: ", b": c", b"\xef\xbb\xbf", b"\0"]
odd = [b"\xff", b"\xe2", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b", b"\x0c", b"\x1c", b"\xed\xa0\x80", b"\xf0\x9f"]
pieces_of_a_stream = st.sampled_from(fields) | st.sampled_from(ends) | st.sampled_from(texts) | st.sampled_from(odd)


@given(st.lists(pieces_of_a_stream, max_size=40), st.randoms(use_true_random=False), st.sampled_from(["", "before"]))
@pytest.mark.parametrize("name", ["pure"] if extension() is None else ["native", "pure"])
def test_any_bytes(name: str, pieces: list[bytes], rng: Any, first: str) -> None:
    body = b"".join(pieces)
    frames, last_event_id, time = reference(body, first)
    at = sorted(rng.randrange(len(body) + 1) for _ in range(rng.randrange(6)))
    cut = [body[a:b] for a, b in zip([0, *at], [*at, len(body)], strict=True)]
    for way in (pieces, [body], bytewise(body), cut):
        found, _, final = read(name, way, first)
        assert found == frames
        assert final == {"last_event_id": last_event_id, "reconnection_time": time}


# Limits


def limit_error(backend: str, chunks: list[bytes], **limits: int | None) -> LimitExceeded:
    with pytest.raises(LimitExceeded) as caught:
        read(backend, chunks, **limits)
    return caught.value


@pytest.mark.parametrize("split", [False, True], ids=["one read", "byte by byte"])
@pytest.mark.parametrize(
    ("body", "fits"),
    [
        # A line counts as its value plus one byte for its line ending. An unfinished line counts as the part of its
        # value that arrived.
        (b"data: 123456789\n\n", 10),
        (b"data:123456789\r\n\r\n", 10),
        (b"data: 1234\ndata: 6789\n\n", 10),
        (b"data\ndata:\ndata: \n\n", 3),
        (b"event: a long name of an event\nid: 123456\ndata: 123456789\n: comment\nunknown: 1\n\n", 10),
        (b"data: 123456789", 9),
        (b"data: 1234\ndata: 6789", 9),
        (b"data: 1\n\ndata: 123456789\n\n", 10),
        ("data: é€😀\n\n".encode(), 10),
    ],
)
def test_event_size_to_the_byte(backend: str, body: bytes, fits: int, split: bool) -> None:
    chunks = bytewise(body) if split else [body]
    assert (
        read(backend, chunks, max_event_bytes=fits + 1)[0]
        == read(backend, chunks, max_event_bytes=fits)[0]
        == read(backend, chunks)[0]
    )
    error = limit_error(backend, chunks, max_event_bytes=fits - 1)
    first = body.index(b"data: 1234") if b"\n\n" in body[:-2] else 0
    assert (error.limit_name, error.limit, error.observed) == ("max_event_bytes", fits - 1, fits)
    assert (error.rule, error.byte_offset) == ("limit_max_event_bytes", first)


@pytest.mark.parametrize("split", [False, True], ids=["one read", "byte by byte"])
@pytest.mark.parametrize("field", [b"event", b"id"])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_field_size_to_the_byte(backend: str, field: bytes, end: bytes, split: bool) -> None:
    body = b": hi\n\n" + field + b": 123456789" + end
    chunks = bytewise(body) if split else [body]
    for fits in (9, 10):
        read(backend, chunks, max_field_bytes=fits)
    error = limit_error(backend, chunks, max_field_bytes=8)
    assert (error.limit_name, error.limit, error.observed, error.byte_offset) == ("max_field_bytes", 8, 9, 6)


def test_limits_can_be_off(backend: str) -> None:
    assert LIMITS["max_event_bytes"] == 16 << 20
    body = b"event: " + b"e" * 10_000 + b"\ndata: " + b"x" * (17 << 20) + b"\n\n"
    (frame,), _, _ = read(backend, [body], max_event_bytes=None, max_field_bytes=0)
    assert (len(frame.event), len(frame.data)) == (10_000, 17 << 20)


def test_what_does_not_belong_to_an_event_is_never_too_long(backend: str) -> None:
    """Comments, unknown fields and `retry` values are dropped as they arrive."""
    for line in (b": ", b"unknown: ", b"x", b"retry: ", b"retry: x", b"dat"):
        body = line + b"0" * 100 + b"\ndata: 1\n\n"
        for chunks in ([body], bytewise(body)):
            assert [f.data for f in read(backend, chunks, max_event_bytes=3, max_field_bytes=3)[0]] == ["1"]


def test_frames_before_a_limit_are_not_lost(backend: str) -> None:
    body = b"data: 1\n\ndata: 2\n\ndata: 345678\n\ndata: 9\n\n"
    reader = make_frame_reader(backend, limits=Limits(max_event_bytes=6))
    with pytest.raises(LimitExceeded) as caught:
        reader.feed(body)
    assert caught.value.events == [Frame("message", "1", "", None), Frame("message", "2", "", None)]
    assert (caught.value.byte_offset, caught.value.event_ordinal) == (18, 2)
    with pytest.raises(UsageError):
        reader.feed(b"\n")
    with using(backend):
        frames = iter_frames([body], limits=Limits(max_event_bytes=6))
    assert [next(frames).data, next(frames).data] == ["1", "2"]
    with pytest.raises(LimitExceeded):
        next(frames)


# Input


def test_buffers(backend: str) -> None:
    body = b"data: 1\n\n"
    for data in (body, bytearray(body), memoryview(body), memoryview(bytearray(b"xx" + body))[2:]):
        assert make_frame_reader(backend).feed(data) == [Frame("message", "1", "", None)]
    for wrong in ("data: 1\n\n", None, 7, memoryview(body)[::2], [100]):
        with pytest.raises(TypeError):
            make_frame_reader(backend).feed(wrong)  # type: ignore[arg-type]


def test_two_calls_at_a_time() -> None:
    reader = make_frame_reader("pure")
    with reader._framer._busy, pytest.raises(ParserBusy):  # type: ignore[attr-defined]
        reader.feed(b"data: 1\n\n")
    assert len(reader.feed(b"data: 1\n\n")) == 1


def test_a_frame_is_a_value() -> None:
    frame = Frame("message", "a", "1", None)
    assert frame == Frame(event="message", data="a", id="1", retry=None)
    assert hash(frame) == hash(Frame("message", "a", "1", None))
    assert repr(frame) == "Frame(event='message', data='a', id='1', retry=None)"
    with pytest.raises(AttributeError):
        frame.data = "b"  # type: ignore[misc]
    match frame:
        case Frame(event, data, identifier, retry):
            assert (event, data, identifier, retry) == ("message", "a", "1", None)
