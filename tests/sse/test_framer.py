"""The pure framer: stray payload lines, offsets, unfinished input at the end, and cost. Frames are tested in other
modules.
"""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamweld._pure.sse.framer import Frame, Framer, FramerLimit, Pending, Stray
from streamweld._spec import LIMITS

from tests.support.harness import bytewise
from tests.support.load.linear import assert_linear, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Row = tuple[Any, ...]


def frame(data: str, offset: int, event: str = "message") -> Row:
    return ("frame", event, data.encode(), offset)


def stray(data: str, offset: int) -> Row:
    return ("stray", data.encode(), offset)


def row(item: Frame | Stray) -> Row:
    if isinstance(item, Frame):
        return ("frame", item.event, item.data, item.offset)
    return ("stray", item.data, item.offset)


def run(pieces: Iterable[bytes], keep_stray: bool = True, **limits: int) -> tuple[list[Row], Row | Pending | None]:
    """Return the results, and the unfinished rest or the exceeded limit."""
    framer = Framer({**LIMITS, **limits}, keep_stray=keep_stray)
    rows: list[Row] = []
    try:
        for piece in pieces:
            rows += map(row, framer.feed(piece))
    except FramerLimit as fault:
        rows += map(row, fault.items)
        assert framer.finish() is None
        return rows, (fault.limit_name, fault.limit, fault.observed, fault.offset)
    return rows, framer.finish()


STRAYS: list[tuple[str, list[Row]]] = [
    ('{"a":1}\n', [stray('{"a":1}', 0)]),
    ('\ufeff{"a":1}\r\n', [stray('{"a":1}', 3)]),
    ('{"a":1}\n{"b":2}\n\n{"c":3}\n', [stray('{"a":1}', 0), stray('{"b":2}', 8), stray('{"c":3}', 17)]),
    ("data: a\n\n[DONE]\n", [frame("a", 0), stray("[DONE]", 9)]),
    # A stray line instead of a frame without data.
    ('data:\n {"a":1}\n\ndata: b\n\n', [stray(' {"a":1}', 6), frame("b", 16)]),
    ('data\ndata: b\n{"a":\n1}\n\n', [frame("\nb", 0), stray('{"a":\n1}', 13)]),
    ('event: error\n{"a":\n1}\n\ndata: b\n\n', [stray('{"a":\n1}', 13), frame("b", 23)]),
    # After a frame with data, in the order of the block.
    ('data: a\n{"b":1}\n\n', [frame("a", 0), stray('{"b":1}', 8)]),
    ("data: a\n<html>\nx\n\n", [frame("a", 0), stray("<html>\nx", 8)]),
    ("data:\ndata:\n[1]\n\n", [frame("\n", 0), stray("[1]", 12)]),
    ('{"a":1}\ndata: b\n\n', [stray('{"a":1}', 0), frame("b", 8)]),
    # Pretty-printed JSON is held until the block ends, regardless of how its later lines end.
    ('{\n  "a": {\n    "b": []\n  }\n}\n\n', [stray('{\n  "a": {\n    "b": []\n  }\n}', 0)]),
    ('\t[\n1\n, {"a":2}\n]\n\n', [stray('\t[\n1\n, {"a":2}\n]', 0)]),
    ("<html>\n<p>\ndata\n</p>\nid\n</html>\n\n", [stray("<html>\n<p>\n</p>\n</html>", 0)]),
    ("{\n: comment\nda\nretryx: 7\n\n", [stray("{\nda\nretryx: 7", 0)]),
    ("{\nd\nevent: x\n  \n}\n\n", [stray("{\nd\n  \n}", 0)]),
    # Not a payload, because neither the line nor an earlier line of the block starts with `{`, `[` or `<`.
    ("error: x\nfoo\n  bar {}\n\n", []),
    ("foo\n{\n\nfoo\n\n", [stray("{", 4)]),
    ("[1]\nfoo\n\n", [stray("[1]", 0)]),
    ("   \n\t\n \n\n", []),
    ("\x0b{}\n\n", []),
    (": {}\nid: {}\nretry: [1]\nevent: <a>\n\n", []),
]


@pytest.mark.parametrize(("body", "rows"), STRAYS)
def test_stray_payloads(body: str, rows: list[Row]) -> None:
    data = body.encode()
    ways = [[data], bytewise(data), *([data[:cut], data[cut:]] for cut in range(len(data)))]
    for way in ways:
        assert run(way)[0] == rows
        assert [r for r in run(way, keep_stray=False)[0] if r[2]] == [r for r in rows if r[0] == "frame"]


def test_a_document_on_one_line_does_not_wait() -> None:
    framer = Framer(LIMITS, keep_stray=True)
    assert framer.feed(b'{"a":1}') == []
    assert [row(item) for item in framer.feed(b"\n")] == [stray('{"a":1}', 0)]
    assert framer.feed(b"{\n}\n") == []


def test_offsets_are_of_the_first_data_line() -> None:
    body = "\ufeff: hi\n\nevent: e\nid: 1\ndata: a\ndata: b\r\n\r\ndata\r\rdata: é\n\ndata: c\n\n"
    rows = [frame("a\nb", 24, "e"), frame("", 43), frame("é", 49), frame("c", 59)]
    assert run([body.encode()]) == (rows, None)


def pending(body: bytes, keep_stray: bool = True) -> dict[str, Any] | None:
    ends = [run(way, keep_stray)[1] for way in ([body], bytewise(body))]
    assert ends[0] == ends[1]
    if ends[0] is None:
        return None
    assert isinstance(ends[0], Pending)
    return {name: getattr(ends[0], name) for name in Pending.__slots__}


NOTHING: dict[str, Any] = {
    "data": None,
    "stray": None,
    "stray_offset": -1,
    "event": "message",
    "id": "",
    "retry": None,
    "is_joined": False,
    "open_line": None,
    "partial": False,
    "mid_utf8": False,
    "open": True,
}


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (b"", None),
        (b"data: a\n\n", None),
        (b": comment\nfoo\n", None),
        (b"data: a\r\r", None),
        (b"data: a\n", {"data": b"a", "offset": 0}),
        (b"data: a\r", {"data": b"a", "offset": 0}),
        (b"data: a", {"data": b"a", "offset": 0, "partial": True}),
        (b"\n\ndata: a\ndata: b", {"data": b"a\nb", "offset": 2, "partial": True}),
        (b"data: a\nda", {"data": b"a", "offset": 0, "partial": True}),
        (b"data: a\ndata", {"data": b"a", "offset": 0, "partial": True}),
        (b"data: a\ndata: ", {"data": b"a\n", "offset": 0, "partial": True}),
        (b"data", {"data": None, "offset": 0, "partial": True}),
        (b"data: a\n\nda", {"offset": 9, "partial": True}),
        (b"data: a\n\nevent: e\ndata: b", {"data": b"b", "offset": 18, "event": "e", "partial": True}),
        (b"event: e", {"offset": 0, "partial": True}),
        (b'event: edata: {"a":1}\n', {"data": b'{"a":1}', "offset": 0, "event": "e", "is_joined": True}),
        (b"id: 7 data:[1]\ndata", {"data": b"[1]", "offset": 0, "id": "7", "is_joined": True, "partial": True}),
        (b"retry: 5data: {}\r\n", {"data": b"{}", "offset": 0, "retry": 5, "is_joined": True}),
        (b"retry: 5xdata: {}\n", {"offset": 0}),
        (b"event: edata: x\n", {"offset": 0, "event": "edata: x"}),
        (b"event: e\nid: 7\nretry: 5\n", {"offset": 0, "event": "e", "id": "7", "retry": 5}),
        (b": comment", {"offset": 0, "partial": True, "open": False}),
        (b"data: a\n\nfoo", {"offset": 9, "partial": True, "open": False}),
        (b"  ", {"offset": 0, "partial": True, "open": False}),
        (b'{"a":1}', {"stray": b'{"a":1}', "stray_offset": 0, "offset": 0, "partial": True}),
        (b"\n<html>\nx\n", {"stray": b"<html>\nx", "stray_offset": 1, "offset": 1}),
        (b"data: a\n[DONE]\n", {"data": b"a", "offset": 0, "stray": b"[DONE]", "stray_offset": 8}),
        (b"data: \xe2\x82", {"data": b"\xe2\x82", "offset": 0, "partial": True, "mid_utf8": True}),
        (b"data: \xf0\x9f\x98", {"data": b"\xf0\x9f\x98", "offset": 0, "partial": True, "mid_utf8": True}),
        (b"data: \xff", {"data": b"\xff", "offset": 0, "partial": True}),
        (b"data: \xe2\x82x", {"data": b"\xe2\x82x", "offset": 0, "partial": True}),
        (b"data: \xe2\x82\n", {"data": b"\xe2\x82", "offset": 0}),
        (b": \xc3", {"offset": 0, "partial": True, "mid_utf8": True, "open": False}),
        (b"\xef\xbb", {"offset": 0, "partial": True, "mid_utf8": True}),
        (b"\xef\xbb\xbf", None),
    ],
)
def test_what_the_end_leaves(body: bytes, left: dict[str, Any] | None) -> None:
    found = pending(body)
    if left is None:
        assert found is None
        return
    assert found is not None
    is_open = left.get("partial", False) and body != b"\xef\xbb"
    line = {"open_line": max(body.rfind(b"\n"), body.rfind(b"\r")) + 1 if is_open else None}
    assert found == NOTHING | line | left


def test_the_end_can_be_asked_for_twice() -> None:
    framer = Framer(LIMITS)
    framer.feed(b"data: a\ndata")
    assert framer.finish() == framer.finish()


fields = ["data: a", "data:", "data", "data: " + "x" * 30, "event: e", "id: 1", "retry: 5", ": c", "dat", "e"]
strays = ['{"a":1}', "{", "}", "[DONE]", "<p>", "  {", "  x", "\t[1]", '"k": 2,', "   " * 10, " ", "foo", "\ufeff", "é"]
lines = st.sampled_from(fields) | st.sampled_from(strays) | st.just("")


@given(
    st.lists(st.tuples(lines, st.sampled_from(["\n", "\n", "\r\n", "\r"])), max_size=25),
    st.booleans(),
    st.sampled_from([5, 20, 1000]),
    st.randoms(use_true_random=False),
)
def test_no_cut_changes_anything(parts: list[tuple[str, str]], whole: bool, limit: int, rng: Any) -> None:
    body = "".join(line + end for line, end in parts).encode()
    if not whole:
        body = body[: rng.randrange(len(body) + 1)]
    at = sorted(rng.randrange(len(body) + 1) for _ in range(rng.randrange(6)))
    cut = [body[a:b] for a, b in zip([0, *at], [*at, len(body)], strict=True)]
    expected = run([body], max_event_bytes=limit, max_field_bytes=20)
    for way in (bytewise(body), cut, [b"", *cut, b""]):
        assert run(way, max_event_bytes=limit, max_field_bytes=20) == expected
    without = run([body], keep_stray=False)[0]
    kept = [r for r in run([body])[0] if r[0] == "frame"]
    assert [r for r in without if r[2]] == [r for r in kept if r[2]]  # stray lines replace only frames without data


@pytest.mark.parametrize("body", [b"{23456789", b"{2345\n78\n", b"data: 3\n{567890", b"  {456789", b"          {"])
def test_stray_bytes_count(body: bytes) -> None:
    for way in ([body], bytewise(body)):
        assert isinstance(run(way, max_event_bytes=50)[1], Pending)
        assert run(way, max_event_bytes=8)[1] == ("max_event_bytes", 8, 9, 0)
        assert run([b"data: 1\n\n", *way], max_event_bytes=8)[1] == ("max_event_bytes", 8, 9, 9)


def test_blanks_that_become_nothing_are_never_too_long() -> None:
    body = b" " * 100 + b"\ndata: 1\n\n" + b"\t" * 100 + b"x\n\n"
    for way in ([body], bytewise(body)):
        assert run(way, max_event_bytes=8) == ([frame("1", 101)], None)


def test_documents_of_one_block_do_not_add_up() -> None:
    body = b'event: x\n{"a":1}\n{"b":2}\n{"c":3}\ndata: 12\n\n'
    for way in ([body], bytewise(body)):
        rows, end = run(way, max_event_bytes=8)
        assert [r[0] for r in rows] == ["stray", "stray", "stray", "frame"]
        assert end is None
    assert run([body], max_event_bytes=7)[1] == ("max_event_bytes", 7, 8, 0)
    assert run([body[9:]], max_event_bytes=7)[1] == ("max_event_bytes", 7, 8, 0)
    assert run([b"{}\n" + body[9:]], max_event_bytes=7)[1] == ("max_event_bytes", 7, 8, 3)


# Cost


def feed_for_ever(framer: Framer, piece: bytes) -> None:
    while True:
        framer.feed(piece)


@pytest.mark.parametrize(
    ("start", "piece", "limit"),
    [
        (b"data: ", b"x" * 64, 1 << 20),
        (b"data: ", b"x", 1 << 16),
        (b"data: ", b"x" * 100_000, 1 << 20),
        (b"", b"data:\n" * 9, 1 << 18),
        (b"", b"data: x\n" * 9, 1 << 18),
        (b"<", b"x" * 64, 1 << 18),
        (b"<\n", b"x\n" * 9, 1 << 18),
        (b"id: ", b"x" * 64, 1 << 18),
    ],
)
def test_an_endless_event_is_refused_before_its_memory_is_spent(start: bytes, piece: bytes, limit: int) -> None:
    framer = Framer({"max_event_bytes": limit, "max_field_bytes": limit}, keep_stray=True)
    framer.feed(start)
    tracemalloc.start()
    try:
        with pytest.raises(FramerLimit):
            feed_for_ever(framer, piece)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= limit + (1 << 18), peak


@pytest.mark.parametrize("start", [b": ", b"foo: ", b"retry: ", b"  "])
def test_what_belongs_to_nothing_is_not_kept(start: bytes) -> None:
    framer = Framer({"max_event_bytes": 1000}, keep_stray=True)
    framer.feed(start)
    tracemalloc.start()
    try:
        for _ in range(2000):
            framer.feed(b" " * 1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000


def test_one_huge_read_costs_no_copy_of_itself() -> None:
    comment = b": " + b"x" * (16 << 20)
    body = b"data: " + b"x" * (16 << 20)
    framer = Framer({"max_event_bytes": 1 << 20})
    tracemalloc.start()
    try:
        framer.feed(comment)
        framer.feed(b"\n")
        with pytest.raises(FramerLimit):
            framer.feed(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= (1 << 20) + (1 << 18)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: b"data: " + b"x" * n,
        lambda n: b"data:\n" * (n // 6),
        lambda n: b"data: x\n\n" * (n // 9),
        lambda n: b": x\n" * (n // 4),
        lambda n: b"\n" * n,
        lambda n: b"\r" * n,
        lambda n: b"<\n" + b"x\n" * (n // 2),
        lambda n: b"retry: " + b"0" * n,
        lambda n: b" " * n,
        lambda n: b"event: " + b"x" * n,
    ],
    ids=["line", "lines", "events", "comments", "LF", "CR", "stray", "retry", "blanks", "event"],
)
@pytest.mark.parametrize("read", [7, 64, 1 << 30], ids=["7-byte reads", "64-byte reads", "one read"])
def test_linear_time(make: Callable[[int], bytes], read: int) -> None:
    assert_linear(lambda: Framer({}, keep_stray=True).feed, make, read, size=5_000 if read < 64 else 30_000)


def test_an_8_mb_line_in_64_byte_reads() -> None:
    pieces = [b"data: " + b"x" * 58, *[b"x" * 64] * ((8 << 20) // 64)]
    assert seconds(Framer({}).feed, pieces) < 3.0  # linear: 0.2 s on a developer machine; quadratic: minutes
