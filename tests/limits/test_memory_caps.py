"""Every stage limits its memory: fillers pass or raise LimitExceeded, and memory stays close to the limit."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest
import streamweld as sw
from streamweld.errors import LimitExceeded

from tests.conftest import FULL
from tests.support.attacks import KIB, MIB, PIECE
from tests.support.backends import using
from tests.support.load.fillers import FILLERS, KEPT, LIMIT, STAGES, End, run, size_of
from tests.support.places import REPOSITORY

ROOT = REPOSITORY
# The errors that a stage may raise for a filler: an exceeded limit, or input that is not a stream in a supported
# format.
RAISED = {"-", "unknown_dialect", "not_an_event_stream", "malformed_json", "upstream_error"}
NAMED = ("limit_", "framing.", "splice_")
PAGE = 4096  # resident memory is counted in pages
USUAL = ("parser", "same", "splice")  # tested in a usual run; the others run with the full counts


def allowed(backend: str, stage: str) -> int:
    """Return the allowed memory growth."""
    limit = LIMIT["native"] if stage == "check" else LIMIT[size_of(backend, stage)]  # `check` has its own limits
    return limit + MIB + PIECE + PAGE


def measured(backend: str, stage: str, *arguments: str) -> list[list[str]]:
    """The rows that `tests.support.load.fillers` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.load.fillers", backend, stage, *arguments],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("stage", STAGES if FULL else USUAL)
def test_fillers(backend: str, stage: str) -> None:
    if stage == "check" and backend == "native":
        pytest.skip("there is one checker for both backends")
    rows = measured(backend, stage)
    assert [row[0] for row in rows] == [name for name in FILLERS for _ in range(2)]
    wrong = [
        f"{' '.join(row)} > {allowed(backend, stage)}"
        for row in rows
        if int(row[3]) > allowed(backend, stage) or not (row[2] in RAISED or row[2].startswith(NAMED))
    ]
    assert not wrong, "\n".join(wrong)


CONVERTERS = tuple(stage for stage in STAGES if stage == "same" or stage.startswith(("auto_to_", "chat_", "same_")))
# One event, whose lines the parser joins in a copy.
JOINED = ("data_lines", "empty_data_lines", "long_data_lines", "document_lines_crlf", "document_lines_and_comments")
# Fillers for a usual run: each had a second copy or a tree of values at the end.
CUT = (
    "spaces",
    "endless_data",
    *JOINED,
    "documents_in_a_document",
    "document_lines",
    "members_of_a_document",
    "endless_array",
    "closed_brackets_in_an_array",
    "lists_in_an_unknown_member",
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("stage", STAGES if FULL else ("same", "auto_to_chat", "splice"))
def test_fillers_that_are_cut(backend: str, stage: str) -> None:
    if stage == "check" and backend == "native":
        pytest.skip("there is one checker for both backends")
    _check_whole_and_by_pieces(backend, stage, "--cut", {*RAISED, "truncated"})


@pytest.mark.timeout(900)
@pytest.mark.parametrize("stage", CONVERTERS if FULL else ("same", "auto_to_chat"))
def test_fillers_before_an_exceeded_limit(backend: str, stage: str) -> None:
    _check_whole_and_by_pieces(backend, stage, "--exceed", set(RAISED))


def _check_whole_and_by_pieces(backend: str, stage: str, mode: str, rules: set[str]) -> None:
    """Check the memory of each filler in both sizes of reads, and the error with which it ends."""
    names = () if FULL else CUT
    rows = measured(backend, stage, mode, *names)
    assert [row[0] for row in rows] == [name for name in names or FILLERS for _ in range(2)]
    most = allowed(backend, stage)
    wrong = [
        f"{' '.join(row)} > {most}"
        for row in rows
        if int(row[3]) > most or not (row[2] in rules or row[2].startswith(NAMED))
    ]
    assert not wrong, "\n".join(wrong)


SPLICED = (
    *("comments_without_blank_lines", "endless_comment", "endless_unknown_field", "spaces", "endless_retry"),
    *("endless_data", "long_data_lines", "endless_document", "endless_array"),
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("end", [End.OPEN, End.CUT])
@pytest.mark.parametrize("name", SPLICED)
def test_the_splicer_keeps_no_more_than_its_limit(name: str, end: End) -> None:
    """The limit is so large that a second copy of what is kept exceeds the bound."""
    limit = 2 * MIB
    total = limit * 9 // 10 if end is End.CUT else 2 * limit
    run("pure", "splice", name, begun=False, total=64 * KIB, end=end)
    tracemalloc.start()
    rule = run("pure", "splice", name, begun=False, total=total, end=end, limit=limit)
    grown = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rule == "limit_max_event_bytes" if end is End.OPEN else rule == "-" or rule.startswith("splice_")
    assert grown <= limit + MIB + PIECE


LONG_TEXTS = {"unicode": "\u00e9\U0001f600".encode() * 400_000, "escapes": b"\\u00e9\\ud83d\\ude00" * 120_000}


@pytest.mark.parametrize("text", LONG_TEXTS)
@pytest.mark.parametrize("is_complete", [True, False])
def test_the_splicer_compares_long_events_where_they_are(text: str, is_complete: bool) -> None:
    event = b'data: {"sequence_number":0,"text":"' + LONG_TEXTS[text] + b'"}\n\n'
    last = b'data: {"sequence_number":1}\n\n'
    # Only a complete event may differ in spacing.
    first, second = (event, event.replace(b'":', b'" :', 2) + last) if is_complete else (event[:-9], event + last)
    limit = len(first) + len(second)
    sw.splice(last, last + last.replace(b"1", b"2"))
    tracemalloc.start()
    splicer = sw.StreamSplicer(first, limits=sw.Limits(max_event_bytes=limit))
    joined = [splicer.feed(second[at : at + PIECE]) for at in range(0, len(second), PIECE)]
    grown = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert b"".join(joined) == event + last
    assert grown <= limit + MIB + PIECE


# Stages that also write the ends of all open parts at once.
KEEPING = ("parser", "same", *[stage for stage in STAGES if stage.startswith("auto_to_")])
SHORT = ("members_of_deltas", "message_metadata", "ui_data", "content_parts")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("stage", KEEPING if FULL else ("parser", "same"))
def test_short_values_that_a_response_keeps(backend: str, stage: str) -> None:
    names = tuple(KEPT) if FULL else SHORT
    rows = measured(backend, stage, *names)
    assert [row[0] for row in rows] == list(names)
    most = allowed(backend, stage)
    rules = {"-", "limit_max_text_bytes", "limit_max_parts"}
    wrong = [f"{' '.join(row)} > {most}" for row in rows if int(row[3]) > most or row[2] not in rules]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("body", "rule", "place"),
    [
        (b" " * 200, "limit_max_event_bytes", (0, 0)),
        (b"data: " + b"x" * 200, "limit_max_event_bytes", (0, 0)),
        (b": ping\n" * 3 + b"event: " + b"x" * 200, "limit_max_field_bytes", (21, 0)),
        (b"data: null\n\nid: " + b"x" * 200, "limit_max_field_bytes", (12, 1)),
        (b"data: 1\n" * 20, "limit_max_event_bytes", (0, 0)),  # such an event takes twice its size
        (b": ping\n" * 3 + b"data: 1\n" * 7, "limit_max_event_bytes", (0, 0)),
        (b"data: 1\n" * 2 + b"event: " + b"x" * 200, "limit_max_field_bytes", (0, 0)),
        (b"data: 1\n" * 6 + b"event: " + b"x" * 200, "limit_max_event_bytes", (0, 0)),
        (b"{\r\n" * 20, "limit_max_event_bytes", (0, 0)),
        (b"{\n" * 40 + b"event: " + b"x" * 200, "limit_max_event_bytes", (0, 0)),
        (b"{\n" * 20 + b"event: " + b"x" * 200, "limit_max_event_bytes", (0, 0)),
        (b"{\n" * 10 + b"event: " + b"x" * 200, "limit_max_field_bytes", (0, 0)),
        (b'[{"a":"\nevent: ' + b"x" * 200, "limit_max_event_bytes", (0, 0)),  # the line is not a field inside an array
    ],
)
def test_what_a_cap_reports_while_the_dialect_is_unknown(
    backend: str, body: bytes, rule: str, place: tuple[int, int]
) -> None:
    limits = sw.Limits(max_event_bytes=100, max_field_bytes=20)
    for read in (1, 7, len(body)):
        with using(backend):
            converter = sw.StreamConverter(target="chat", limits=limits)
            for at in range(0, len(body), read):
                converter.feed(body[at : at + read])
        error = converter.error
        assert type(error) is LimitExceeded
        assert (error.rule, (error.byte_offset, error.event_ordinal)) == (rule, place)


CHUNK = b'{"choices":[{"index":0,@"delta":{"content":"Hi"}}]@}'


@pytest.mark.parametrize("target", ["same", "chat", "anthropic"])
@pytest.mark.parametrize(
    ("event", "copies"),
    [
        (b"data: " + CHUNK.replace(b"@", b"") + b"\n\n", 1),
        (b"data: " + CHUNK.replace(b"@", b"\ndata:") + b"\n\n", 2),
        (b"event: x\rdata: " + CHUNK.replace(b"@", b"\rid: 1\rdata:") + b"\r\r", 2),
        (CHUNK.replace(b"@", b"\n") + b"\n\n", 1),
        (CHUNK.replace(b"@", b"\r\n") + b"\n\n", 2),
        (CHUNK.replace(b"@", b"\n: ping\n") + b"\n\n", 2),
    ],
)
def test_a_payload_on_several_lines_takes_twice_its_size(backend: str, target: Any, event: bytes, copies: int) -> None:
    """The event may have to pass unchanged, so it is stored as it arrived, and with its lines joined.

    The lines of a document outside any field are joined already, if each ends in LF.
    """
    for limit, rule in ((len(event) * copies, None), (len(event) * copies - 1, "limit_max_event_bytes")):
        for read in (1, 7, len(event)):
            with using(backend):
                converter = sw.StreamConverter(target=target, limits=sw.Limits(max_event_bytes=limit))
                for at in range(0, len(event), read):
                    converter.feed(event[at : at + read])
            assert (converter.error and converter.error.rule) == rule, (limit, read)


def test_short_reads_take_what_their_bytes_take(backend: str) -> None:
    """If reads of two bytes were kept as separate objects, they would take 28 times their size."""
    limit = 32 * KIB
    with using(backend):
        converter = sw.StreamConverter(target="chat", limits=sw.Limits(max_event_bytes=limit))
        converter.feed(b"data: ")
        tracemalloc.start()
        for number in range(limit // 2 - 16):
            converter.feed(b"%02d" % (number % 100))
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    assert converter.error is None
    assert kept < 2 * limit


@pytest.mark.parametrize(
    ("name", "source", "bytes_of_one"),
    [
        ("blocks", "anthropic", 2560 + 1024),  # a block is a part and an item
        ("parts_starts", "ai-sdk-parts", 2560 + 1024),
        ("text_and_reasoning", "chat", 2560),
        ("content_parts", "responses", 2560),
        ("reasoning_items", "responses", 1024),
    ],
)
def test_parts_count_as_text(backend: str, name: str, source: Any, bytes_of_one: int) -> None:
    """The first 256 parts are free. Their other content takes the place of fewer than four parts."""
    free, fit = 256, 40
    head, unit = KEPT[name]
    units = [unit.replace(b"@", b"%d" % number) for number in range(free + fit + 2)]
    parts_of_unit = 2 if name == "text_and_reasoning" else 1
    for count, raised in ((free + fit - 4, None), (free + fit + 2, "limit_max_text_bytes")):
        rule = None
        with using(backend):
            parser = sw.StreamParser(dialect=source, limits=sw.Limits(max_text_bytes=fit * bytes_of_one))
            try:
                parser.feed(head + b"".join(units[: count // parts_of_unit]))
            except LimitExceeded as error:
                rule = error.rule
        assert rule == raised


@pytest.mark.parametrize(
    ("head", "unit", "copies", "counted"),
    # `copies`: those of the Python parser. `counted`: how many times the limit counts the input.
    [(b"", b" ", 1, 1), (b"", b"data: x\n", 1, 2), (b"data: ", b"x", 2, 1)],
)
def test_the_end_does_not_copy_what_was_kept(backend: str, head: bytes, unit: bytes, copies: int, counted: int) -> None:
    """At the end, a converter that does not know the dialect yet passes all its input to the parser."""
    limit = 2 * MIB
    with using(backend):
        converter = sw.StreamConverter(target="chat", limits=sw.Limits(max_event_bytes=limit))
        converter.feed(head)
        for _ in range(limit * 7 // 8 // counted // PIECE):
            converter.feed(bytes(bytearray(unit * (PIECE // len(unit)))))
        tracemalloc.start()
        converter.close()
        grown = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert converter.error is not None
    assert converter.error.rule == "truncated"
    assert grown < (MIB // 16 if backend == "native" else copies * limit)
