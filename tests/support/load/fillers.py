"""Filler: input that an upstream can send without any content, and the memory that each stage uses for it.

`python -m tests.support.load.fillers [--cut|--exceed] BACKEND STAGE [FILLER ...]`
prints one line per filler: its name, the exception, and the peak memory growth. Each filler runs in its own process, so
that it cannot reuse memory that another filler freed. With `--cut`, the input ends just below the limit, so that the
stage has to read all that it has kept. With `--exceed`, the caller reports an exceeded limit instead of the end.
"""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import streamweld as sw
from streamweld.check import Checker
from streamweld.errors import StreamError
from streamweld.options import Limits
from streamweld.splice import StreamSplicer

from tests.support.attacks import KIB, MIB, PIECE, peak_of_process, reset_peak
from tests.support.backends import make_frame_reader, using
from tests.support.servers.wire import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NIGHTLY = os.environ.get("STREAMWELD_NIGHTLY") == "1"


class End(Enum):
    """What happens after the filler."""

    OPEN = auto()
    """Nothing: the filler exceeds the limit, or is not kept."""
    CUT = auto()
    """The input ends."""
    EXCEEDED = auto()
    """The caller reports that a limit was exceeded that only the caller can measure."""


# The Python backend is slow, and its memory is traced, so it gets a smaller limit and proportionally less input. Its
# reads are smaller, too, because the temporary objects created from one read take many times its size.
READ = {"native": PIECE, "pure": 4 * KIB}
LIMIT = {"native": 16 * MIB, "pure": 128 * KIB}
TOTAL = {"native": 128 * MIB if NIGHTLY else 40 * MIB, "pure": 128 * MIB if NIGHTLY else 320 * KIB}

CALL = (
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"%b","type":"function","function":'
    b'{"name":"f","arguments":"%b"}}]}}]}\n\n'
)
# Name -> (bytes sent once, bytes sent repeatedly; @ is replaced by a counter).
FILLERS: dict[str, tuple[bytes, bytes]] = {
    "comments": (b"", b": ping\n\n"),
    "comments_without_blank_lines": (b"", b": ping\n"),
    "endless_comment": (b":", b"x"),
    "unknown_fields": (b"", b"foo: bar\n"),
    "unknown_fields_apart": (b"", b"foo: bar\n\n"),
    "endless_unknown_field": (b"foo: ", b"x"),
    "blank_lines": (b"", b"\n"),
    "carriage_returns": (b"", b"\r"),
    "spaces": (b"", b" "),
    "retries": (b"", b"retry: 1\n"),
    "endless_retry": (b"retry: ", b"9"),
    "ids": (b"", b"id: 1\n"),
    "names": (b"", b"event: ping\n"),
    "endless_name": (b"event: ", b"x"),
    "keep_alives": (b"", b"event: ping\ndata: {}\n\n"),
    "nulls": (b"", b"data: null\n\n"),
    "empty_data": (b"", b"data:\n\n"),
    "payloads_without_a_dialect": (b"", b'data: {"foo":1}\n\n'),
    "endless_data": (b"data: ", b"x"),
    "data_lines": (b"", b"data: x\n"),
    "empty_data_lines": (b"", b"data:\n"),
    "wrapped_fields": (b"", b"data: id:\n"),
    "wrapped_data_lines": (b"", b"data: data:\n"),
    "long_data_lines": (b"", b"data: " + b"x" * 4000 + b"\n"),
    "endless_document": (b"{", b"x"),
    "document_lines": (b"{\n", b'"x":1,\n'),
    "document_lines_crlf": (b"{\r\n", b'"x":1,\r\n'),
    "document_lines_and_comments": (b"{\n", b'"x":1,\n:\n'),
    "documents_after_data": (b"data: x\n", b'{"a":1}\n'),
    "documents_in_a_document": (b"[1,\n", b'{"a":1}\n'),
    "endless_array": (b'[{"a":"', b"x"),
    "closed_brackets_in_an_array": (b'[{"a":"', b"}]\n"),
    "lists_in_an_unknown_member": (b'data: {"choices":[],"x":[', b"[],"),
    "members_of_a_document": (b'data: {"choices":[]', b',"x":1'),
    "depth": (b'data: {"choices":[],"x":', b"["),
}
if NIGHTLY:
    FILLERS |= {
        "carriage_returns_after_comments": (b"", b": x\r"),
        "byte_order_marks": (b"", b"\xef\xbb\xbf"),
        "zero_bytes": (b"", b"\0"),
        "long_field_names": (b"", b"x" * 50_000 + b"@: v\n"),
        "long_ids": (b"", b"id: " + b"i" * 8000 + b'@\ndata: {"choices":[]}\n\n'),
        "names_that_differ": (b"", b'event: n@\ndata: {"choices":[]}\n\n'),
        "models_that_differ": (b"", b'data: {"id":"i@","model":"m@","choices":[]}\n\n'),
        "reasons_that_differ": (b"", b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"x@"}]}\n\n'),
        "placeholders": (
            CALL % (b"a", b""),
            b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"null"}}]}}]}\n\n',
        ),
        "calls_announced_again": (b"", CALL % (b"a", b"{}")),
        "bytes_after_the_end": (b"data: [DONE]\n\n", b'data: {"a":'),
        "elements": (b"[", b'{"choices":[]},\n'),
        "blanks_in_an_array": (b"[", b" "),
    }
CHUNK = b'data: {"choices":[{"index":0,"delta":%b}]%b}\n\n'
CANDIDATE = b'data: {"candidates":[{"content":{"parts":[{"text":"a"%b}]}%b}]%b}\n\n'
ITEM = (
    b'data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant",'
    b'"content":[]}}\n\n'
)
MESSAGE = (
    b'data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"c",'
    b'"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
)
BLOCK = b'data: {"type":"content_block_start","index":@,"content_block":{"type":"text","text":""}}\n\n'
DELTA = b'data: {"type":"content_block_delta","index":0,"delta":%b}\n\n'
UI, PARTS = b'data: {"type":"start"}\n\n', b'data: {"type":"stream-start"}\n\n'
START = b'data: {"type":"text-start","id":"@"}\n\n'
PROVIDER = b'data: {"type":"text-delta","id":"0","delta":"","providerMetadata":{"k@":{}}}\n\n'
# Fillers that a response keeps. Each is short, so that only their number grows.
KEPT: dict[str, tuple[bytes, bytes]] = {
    "members_of_chunks": (b"", CHUNK % (b"{}", b',"k@":1')),
    "members_of_deltas": (b"", CHUNK % (b'{"k@":1}', b"")),
    "members_of_choices": (b"", b'data: {"choices":[{"index":0,"k@":1,"delta":{}}]}\n\n'),
    "members_of_calls": (CALL % (b"a", b""), CHUNK % (b'{"tool_calls":[{"index":0,"k@":1}]}', b"")),
    "reasoning_details": (b"", CHUNK % (b'{"reasoning_details":[{"type":"x@"}]}', b"")),
    "audio": (b"", CHUNK % (b'{"audio":{}}', b"")),
    "annotations_of_chat": (b"", CHUNK % (b'{"annotations":[{"type":"x@"}]}', b"")),
    "images": (b"", CHUNK % (b'{"images":[{"type":"image_url","image_url":{"url":"data:x@"}}]}', b"")),
    "text_and_reasoning": (b"", CHUNK % (b'{"content":"a"}', b"") + CHUNK % (b'{"reasoning_content":"b"}', b"")),
    "reasoning_items": (
        b"",
        (
            b'data: {"type":"response.output_item.added","output_index":@,"item":{"type":"reasoning","id":"m@",'
            b'"summary":[]}}\n\n'
        ),
    ),
    "annotations_of_responses": (
        ITEM,
        (
            b'data: {"type":"response.output_text.annotation.added","output_index":0,"content_index":0,"item_id":"m",'
            b'"annotation_index":@,"annotation":{"type":"x"}}\n\n'
        ),
    ),
    "content_parts": (
        ITEM,
        (
            b'data: {"type":"response.content_part.added","output_index":0,"content_index":@,"item_id":"m",'
            b'"part":{"type":"output_text","text":"","annotations":[]}}\n\n'
        ),
    ),
    "members_of_message_deltas": (MESSAGE, b'data: {"type":"message_delta","delta":{"k@":1},"usage":{}}\n\n'),
    "members_of_usage": (MESSAGE, b'data: {"type":"message_delta","delta":{},"usage":{"k@":1}}\n\n'),
    "citations": (
        MESSAGE + BLOCK.replace(b"@", b"0"),
        DELTA % b'{"type":"citations_delta","citation":{"type":"x@"}}',
    ),
    "members_of_blocks": (
        MESSAGE + BLOCK.replace(b"@", b"0"),
        DELTA % b'{"type":"text_delta","text":"","k@":1}',
    ),
    "blocks": (MESSAGE, BLOCK),
    "members_of_documents": (b"", CANDIDATE % (b"", b"", b',"k@":1')),
    "members_of_candidates": (b"", CANDIDATE % (b"", b',"k@":1', b"")),
    "members_of_parts": (b"", CANDIDATE % (b',"k@":1', b"", b"")),
    "grounding": (b"", CANDIDATE % (b"", b',"groundingMetadata":{"k@":1}', b"")),
    "grounding_chunks": (
        b"",
        CANDIDATE % (b"", b',"groundingMetadata":{"groundingChunks":[{"web":{"uri":"@"}}]}', b""),
    ),
    "message_metadata": (UI, b'data: {"type":"message-metadata","messageMetadata":{"k@":1}}\n\n'),
    "ui_provider_metadata": (UI + START.replace(b"@", b"0"), PROVIDER),
    "ui_starts": (UI, START),
    "ui_data": (UI, b'data: {"type":"data-x","id":"@","data":1}\n\n'),
    "ui_sources": (UI, b'data: {"type":"source-url","sourceId":"@","url":"u"}\n\n'),
    "parts_provider_metadata": (PARTS + START.replace(b"@", b"0"), PROVIDER),
    "parts_starts": (PARTS, START),
    "parts_files": (PARTS, b'data: {"type":"file","mediaType":"a/b","data":"@"}\n\n'),
}
HEAD = text("hi")  # a text that makes the dialect known before the filler


def pieces(name: str, total: int, read: int, *, begun: bool) -> Iterator[bytes]:
    head, unit = FILLERS[name] if name in FILLERS else KEPT[name]
    yield HEAD + head if begun else head
    count = max(1, read // len(unit))
    for place in range(max(1, total // (count * len(unit)))):
        # A new object each time, like the reads from a network, so that kept references are visible as memory growth.
        if b"@" in unit:
            yield b"".join([unit.replace(b"@", b"%d" % number) for number in range(place * count, (place + 1) * count)])
        else:
            yield bytes(bytearray(unit * count))


def frames(limits: Limits, backend: str) -> Any:
    return make_frame_reader(backend, limits=limits)


def parser(limits: Limits, _: str) -> Any:
    return sw.StreamParser(limits=limits)


def converter(target: Any, source: Any = "auto", *, hold: bool = False) -> Callable[[Limits, str], Any]:
    return lambda limits, _: sw.StreamConverter(source=source, target=target, limits=limits, hold_arguments=hold)


def checker(_: Limits, __: str) -> Any:
    return Checker()


def splicer(limits: Limits, _: str) -> Any:
    """The filler is the second of two streams; the first one was truncated inside its second event."""
    return StreamSplicer(HEAD + text("there")[:20], limits=limits)


STAGES: dict[str, Callable[[Limits, str], Any]] = {
    "frames": frames,
    "parser": parser,
    "auto_to_responses": converter("responses"),
    "auto_to_chat": converter("chat"),
    "chat_to_anthropic": converter("anthropic", "chat"),
    "same": converter("same"),
    "chat_same": converter("same", "chat"),
    "same_held": converter("same", hold=True),
    "check": checker,
    "splice": splicer,
}
if NIGHTLY:
    STAGES |= {
        "auto_to_anthropic": converter("anthropic"),
        "auto_to_parts": converter("ai-sdk-parts"),
        "auto_to_ui": converter("ai-sdk-ui"),
    }


def size_of(backend: str, stage: str) -> str:
    """Return the backend whose limit and read size apply to a stage. The splicer always runs in Python."""
    return "pure" if stage == "splice" else backend


def run(backend: str, stage: str, name: str, *, begun: bool, total: int, end: End, limit: int | None = None) -> str:
    """Return the rule of the exception, or `-` if there was none. The exception itself is not returned, because it
    would keep the filler in memory.
    """
    with using(backend):
        limit = limit or LIMIT[size_of(backend, stage)]
        made = STAGES[stage](Limits(max_event_bytes=limit, max_text_bytes=limit), backend)
        try:
            for piece in pieces(name, total, READ[size_of(backend, stage)], begun=begun):
                if piece:
                    made.feed(piece)
                    raise_error(made)
            if end is End.CUT and stage != "frames":
                made.close()
            elif end is End.EXCEEDED:
                made.exceed("max_inflate_ratio")
            raise_error(made)
        except StreamError as fault:
            return str(fault.rule)
    return "-"


def raise_error(made: object) -> None:
    """Raise the error of a converter, which does not raise errors itself."""
    if isinstance(made, sw.StreamConverter) and made.error is not None:
        raise made.error


def grown(backend: str, stage: str, name: str, *, begun: bool, end: End) -> tuple[str, int]:
    """Return the exception and the memory growth: that of Python objects for the pure backend, that of the process for
    the native backend.
    """
    # Run once before the measurement, because a new process has not mapped all its files yet, and the tables for the
    # ending after an error are loaded only once.
    run(backend, stage, name, begun=begun, total=64 * KIB, end=end)
    run(backend, stage, name, begun=begun, total=64 * KIB, end=End.OPEN, limit=16 * KIB)
    gc.collect()
    total = TOTAL[size_of(backend, stage)] if end is End.OPEN else LIMIT[size_of(backend, stage)] * 9 // 10
    if size_of(backend, stage) == "pure" or stage == "check":
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        raised = run(backend, stage, name, begun=begun, total=total, end=end)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return raised, peak - before
    reset_peak()
    before = peak_of_process()
    raised = run(backend, stage, name, begun=begun, total=total, end=end)
    return raised, peak_of_process() - before


def main(backend: str, stage: str, *names: str, end: End = End.OPEN) -> None:
    todo = [(name, begun) for name in names or FILLERS for begun in (False, True) if not (begun and name in KEPT)]
    for name, begun in todo:  # this process reads nothing: what it freed would count as growth of its children
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            raised, size = grown(backend, stage, name, begun=begun, end=end)
            print(name, "begun" if begun else "fresh", raised, size, flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    options = {"--cut": End.CUT, "--exceed": End.EXCEEDED}
    given = [argument for argument in sys.argv[1:] if argument not in options]
    main(*given, end=next((options[argument] for argument in sys.argv[1:] if argument in options), End.OPEN))
