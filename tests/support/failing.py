"""Failing transports over real sockets: which part of a body the upstream sends, and how it disconnects before the end.

In the `TIDY` streams, only the terminal marker is missing: every block is closed, and the finish reason was sent. The
`WHOLE` streams have that marker, too.
"""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

from tests.integrations.dropin.streams import cells, frame_bytes
from tests.support.servers.upstream import Talk, Upstream
from tests.support.servers.wire import event

Failure = Callable[[Talk, bytes], Awaitable[None]]
LENGTH = 64  # number of announced bytes that are never sent


def _frames(api: str) -> list[bytes]:
    (clean,) = [cell for cell in cells(api) if cell["name"] == "clean"]
    return [frame_bytes(frame) for frame in clean["frames"]]


def _gemini(reason: str | None) -> bytes:
    candidate: dict[str, Any] = {"content": {"parts": [{"text": "Hi"}], "role": "model"}, "index": 0}
    return event({"candidates": [candidate | ({"finishReason": reason} if reason else {})]})


WHOLE = {
    "chat": b"".join(_frames("chat")),
    "anthropic": b"".join(_frames("messages")),
    "responses": b"".join(_frames("responses")),
    "gemini": _gemini(None) + _gemini("STOP"),
}
MARKERS = {"chat": b"[DONE]", "anthropic": b"message_stop", "responses": b"response.completed"}
TIDY = {
    "chat": b"".join(_frames("chat")[:-1]),
    "anthropic": b"".join(_frames("messages")[:-1]),
    "responses": b"".join(_frames("responses")[:-1]),
    "gemini": WHOLE["gemini"],
}


async def fin_in_a_chunk(talk: Talk, body: bytes) -> None:
    await talk.head()
    await talk.raw(b"%x\r\n%s" % (len(body) + LENGTH, body))
    talk.keep = False


async def fin_between_chunks(talk: Talk, body: bytes) -> None:
    await talk.head()
    await talk.send(body)
    talk.keep = False


async def rst(talk: Talk, body: bytes) -> None:
    await talk.head()
    await talk.send(body)
    await asyncio.sleep(0.1)
    talk.reset()


async def chunks_that_are_none(talk: Talk, body: bytes) -> None:
    await talk.head()
    await talk.send(body)
    await asyncio.sleep(0.1)
    await talk.raw(b"no chunk\r\n")
    talk.keep = False


async def content_length(talk: Talk, body: bytes) -> None:
    length = len(body) + LENGTH
    await talk.raw(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % length)
    await talk.raw(body)
    talk.keep = False


async def rst_of_a_body_that_ends_with_its_connection(talk: Talk, body: bytes) -> None:
    await talk.raw(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + body)
    await asyncio.sleep(0.1)
    talk.reset()


async def gzip_that_breaks(talk: Talk, body: bytes) -> None:
    packer = zlib.compressobj(wbits=31)
    await talk.head(content_encoding="gzip")
    await talk.send(packer.compress(body) + packer.flush(zlib.Z_SYNC_FLUSH) + b"\xff" * LENGTH)
    await talk.end()


async def gzip_that_ends_early(talk: Talk, body: bytes) -> None:
    packer = zlib.compressobj(wbits=31)
    await talk.head(content_encoding="gzip")
    await talk.send(packer.compress(body) + packer.flush(zlib.Z_SYNC_FLUSH))
    await talk.end()


async def gzip_without_its_checksum(talk: Talk, body: bytes) -> None:
    await talk.head(content_encoding="gzip")
    await talk.send(gzip.compress(body)[:-8])
    await talk.end()


async def deflate_that_ends_early(talk: Talk, body: bytes) -> None:
    packer = zlib.compressobj()
    await talk.head(content_encoding="deflate")
    await talk.send(packer.compress(body) + packer.flush(zlib.Z_SYNC_FLUSH))
    await talk.end()


async def silence(talk: Talk, body: bytes) -> None:
    await talk.head()
    await talk.send(body)
    await talk.wait_for_leave()


# Failures that the HTTP client detects, and some that can be detected only while the body is decompressed.
CONNECTIONS: dict[str, Failure] = {
    "fin in a chunk": fin_in_a_chunk,
    "fin between chunks": fin_between_chunks,
    "rst": rst,
    "chunks that are none": chunks_that_are_none,
    "content-length": content_length,
    "rst of a body that ends with its connection": rst_of_a_body_that_ends_with_its_connection,
    "silence": silence,
}
ENCODINGS: dict[str, Failure] = {
    "gzip that breaks": gzip_that_breaks,
    "gzip that ends early": gzip_that_ends_early,
    "gzip without its checksum": gzip_without_its_checksum,
    "deflate that ends early": deflate_that_ends_early,
}
FAILURES = CONNECTIONS | ENCODINGS


def failing() -> Upstream:
    """An upstream that fails as the header `x-request-id` requests: `<failure>|<dialect>|tidy` or `whole`."""

    async def script(talk: Talk) -> None:
        failure, dialect, kind = (talk.asked.header("x-request-id") or "").split("|")
        await FAILURES[failure](talk, (TIDY if kind == "tidy" else WHOLE)[dialect])

    return Upstream(script)
