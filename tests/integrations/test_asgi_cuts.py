"""Applications whose streams are truncated, with the middleware: each stream ends with an error of its API."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld.integrations.asgi import RepairMiddleware

from tests.support.failing import MARKERS, TIDY, WHOLE

if TYPE_CHECKING:
    from collections.abc import Callable

SCOPE = {"type": "http", "method": "POST", "headers": []}


def answered(*bodies: bytes, ends: bool = True, fails: BaseException | None = None, **headers: str) -> bytes:
    """Return what a client receives from an application that sends these pieces."""
    sent: list[bytes] = []
    given = {"content-type": "text/event-stream", **{name.replace("_", "-"): value for name, value in headers.items()}}

    async def app(_: Any, __: Any, send: Any) -> None:
        rows = [(name.encode(), value.encode()) for name, value in given.items()]
        await send({"type": "http.response.start", "status": 200, "headers": rows})
        for at, body in enumerate(bodies):
            more = not ends or at < len(bodies) - 1
            await send({"type": "http.response.body", "body": body, "more_body": more})
        if fails is not None:
            raise fails

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            sent.append(message["body"])

    async def run() -> None:
        try:
            await RepairMiddleware(app)(SCOPE, None, send)  # type: ignore[arg-type]
        except (LookupError, asyncio.CancelledError) as raised:
            assert raised is fails  # noqa: PT017 (the exception propagates, or none is raised)
        else:
            assert fails is None

    asyncio.run(run())
    return b"".join(sent)


def packed(body: bytes, wbits: int, *, whole: bool) -> bytes:
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(body) + packer.flush(zlib.Z_FINISH if whole else zlib.Z_SYNC_FLUSH)


CUTS: dict[str, Callable[[bytes], bytes]] = {
    "the source raises": lambda body: answered(body, ends=False, fails=LookupError("the source")),
    "it is cancelled": lambda body: answered(body, ends=False, fails=asyncio.CancelledError()),
    "it returns too early": lambda body: answered(body, ends=False),
    "it announced more": lambda body: answered(body, content_length=str(len(body) + 1)),
    "it announced less": lambda body: answered(body, content_length=str(len(body) - 1)),
    "gzip ends early": lambda body: answered(packed(body, 31, whole=False), b"", content_encoding="gzip"),
    "gzip lacks its checksum": lambda body: answered(gzip.compress(body)[:-8], content_encoding="gzip"),
    "gzip breaks": lambda body: answered(packed(body, 31, whole=False) + b"\xff" * 9, content_encoding="gzip"),
    "deflate ends early": lambda body: answered(packed(body, 15, whole=False), content_encoding="deflate"),
    "one byte of deflate": lambda body: answered(packed(body, 15, whole=True)[:1], content_encoding="deflate"),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("source", TIDY)
def test_a_tidy_stream_that_breaks_off_is_cut(source: str, cut: str) -> None:
    body = CUTS[cut](TIDY[source])
    with pytest.raises(sw.UpstreamError if cut != "one byte of deflate" else sw.TruncatedStream):
        sw.parse(body)
    if cut != "one byte of deflate":
        assert body.startswith(TIDY[source])
    assert MARKERS.get(source, b"no marker") not in body


@pytest.mark.parametrize("cut", [name for name in CUTS if name != "one byte of deflate"])
@pytest.mark.parametrize("source", MARKERS)
def test_a_stream_that_had_its_marker_is_whole(source: str, cut: str) -> None:
    assert CUTS[cut](WHOLE[source]) == WHOLE[source]


@pytest.mark.parametrize("source", TIDY)
def test_bodies_that_are_whole(source: str) -> None:
    body = WHOLE[source]
    halves = packed(body[:50], 31, whole=True) + packed(body[50:], 31, whole=True)
    for sent, encoding in (
        (body, "identity"),
        (halves, "gzip"),
        (packed(body, 15, whole=True), "deflate"),
        (packed(body, -15, whole=True), "deflate"),
    ):
        for pieces in ([sent], [bytes([byte]) for byte in sent], [sent, b""]):
            length = {"content_length": str(len(sent))}
            assert answered(*pieces, content_encoding=encoding, **length) == body
