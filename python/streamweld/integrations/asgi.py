"""`RepairMiddleware`: repair the streams that an ASGI application sends. The middleware has no dependencies.

    app.add_middleware(RepairMiddleware, policy="standard")        # Starlette, FastAPI
    app = RepairMiddleware(app)                                    # any ASGI application

This module handles ASGI messages, and the status and two headers of a response. `StreamConverter` repairs the stream.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld.convert import StreamConverter
from streamweld.errors import LimitExceeded
from streamweld.integrations._defaults import (
    KEEP_ALIVE,
    KEEP_ALIVE_SECONDS,
    LIMITS,
    READS_ON,
    check_folder,
    is_event_stream,
)
from streamweld.integrations._inflate import SLICE, BrokenBodyError, Inflater, is_plain, is_readable, slices
from streamweld.integrations._pace import FEED, Pace
from streamweld.integrations._reporting import DiagnosticReporter, StreamContext, callback, plain_url, request_id
from streamweld.integrations._tools import declared_tools, request_of
from streamweld.options import Policy, with_text_calls

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping

    from streamweld.integrations._reporting import Callback, OnDiagnostic
    from streamweld.options import Base, Dialect, Limits, TextCalls
    from streamweld.testing.recording import End, Recorder

    Message: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    Send: TypeAlias = Callable[[Message], Awaitable[None]]
    App: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

__all__ = ["RepairMiddleware", "StreamContext"]


_MAX_REQUEST: Final = 32 * 1_048_576  # the same value as the default of `ProxyConfig.max_body_bytes`


class RepairMiddleware:
    """Repairs the event streams that an ASGI application sends, each in its own dialect.

    These responses pass through unchanged: those with a status other than 200 or a content type other than
    `text/event-stream`, responses to HEAD, and bodies in an encoding other than gzip and deflate. Event streams in an
    unknown dialect also pass through unchanged. The first events of such a stream are held back until detection fails.
    After that, no data is kept, so the size of the stream is not limited. `content-length` and `content-encoding` are
    removed from streams. A stream that needs no repair passes through byte for byte. Data is held back only until the
    middleware can determine whether the data needs a repair.

    If a stream is truncated, is broken or exceeds a limit, the response ends at that point with the dialect's own
    error. If the application raises an exception, is canceled or returns in the middle of a stream, the dialect's own
    error ending is sent before an exception propagates. A body that is shorter or longer than its `content-length`, or
    whose compressed data is incomplete, counts as truncated. If a limit is exceeded before the dialect is known, the
    exception is raised in the application.

    Args:
        app: the application.
        dialect: the dialect of the application's streams, or `auto` to detect it from the first payloads.
        policy: which faults are repaired, and which end the stream with an error.
        text_calls: what happens to tool calls that a model wrote into its text, as in `Policy`; overrides the value in
            `policy`. With `promote`, the middleware reads the JSON body of a POST request before it calls the
            application, because only calls of tools that the request declares are promoted. The application gets the
            same body. If the body is larger than 32 MiB, only its beginning is read in advance, and no call is
            promoted.
        limits: the limits for a stream. The defaults are those of the parser, plus a limit of 256 MiB for one response.
        on_diagnostic: called with each `Diagnostic` and its `StreamContext`, in the task of the request; a function
            with one parameter receives only the diagnostic. If this function raises an exception, the exception is
            logged, and the stream continues.
        record: a folder. Each stream is recorded as the application sent it, before it is repaired, one file per
            stream. `streamweld.testing.recording` describes the format.

    Raises:
        UsageError: if an option is invalid. The exception is raised by the constructor, not at the first request.
    """

    def __init__(
        self,
        app: App,
        *,
        dialect: Dialect = "auto",
        policy: Base | Policy = "standard",
        text_calls: TextCalls | None = None,
        limits: Limits = LIMITS,
        on_diagnostic: OnDiagnostic | None = None,
        record: str | os.PathLike[str] | None = None,
    ) -> None:
        self._app = app
        self._record = check_folder(record)
        self._dialect: Dialect = dialect
        self._policy: Base | Policy = policy if text_calls is None else with_text_calls(policy, text_calls)
        self._promotes = isinstance(self._policy, Policy) and self._policy.text_calls == "promote"
        self.limits = limits
        self._on_diagnostic = callback(on_diagnostic)
        self.converter("")

    def converter(self, content_type: str, request: bytes | None = None) -> StreamConverter:
        """Create the converter that repairs one response. `request`: the body of the request, if it is known."""
        return StreamConverter(
            source=self._dialect,
            target="same",
            policy=self._policy,
            limits=self.limits,
            tools=declared_tools(request_of(request)) if self._promotes else None,
            content_type=content_type or None,
            cut_ending="error",
        )

    def recorder(
        self, scope: MutableMapping[str, Any], status: int, content_type: str, request_id: str | None = None
    ) -> Recorder | None:
        """Create the recorder for one response, or return None without the `record` option."""
        if self._record is None:
            return None
        from streamweld.testing.recording import Recorder

        path = scope.get("path", "")
        return Recorder(
            self._record,
            method=scope["method"],
            path=path,
            status=status,
            content_type=content_type,
            request_id=request_id,
        )

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http" or scope["method"] == "HEAD":
            await self._app(scope, receive, send)
            return
        requested: bytes | None = None
        if self._promotes and scope["method"] == "POST" and _is_json(_names(scope.get("headers", ()))):
            requested, receive = await _read_ahead(receive)
        answer = _Answer(self, send, self._on_diagnostic, scope, requested)
        try:
            await self._app(scope, answer.watching(receive), answer)
            await answer.cut()  # no effect if the response has already ended
        except (Exception, asyncio.CancelledError):  # even if the server is stopping, the client gets an error ending
            await answer.cut()
            raise
        finally:
            answer.finish()


class _Answer:
    """Replaces the application's `send` for one response."""

    _inflater: Inflater
    _tell: DiagnosticReporter

    def __init__(
        self,
        middleware: RepairMiddleware,
        send: Send,
        on_diagnostic: Callback | None,
        scope: MutableMapping[str, Any],
        requested: bytes | None,
    ) -> None:
        self._scope = scope
        self._middleware = middleware
        self._send = send
        self._on_diagnostic = on_diagnostic
        self._stream: StreamConverter | None = None
        self._recorder: Recorder | None = None
        self._held: Message | None = None
        self._kept: list[tuple[bytes, bytes]] = []
        self._length: int | None = None
        self._received = 0
        self._over = False
        self._left = False  # whether the client has disconnected
        self._passed = 0.0
        self._requested = requested

    async def __call__(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            await self._begin(message)
        elif self._stream is not None and kind == "http.response.body":
            await self._body(self._stream, message)
        else:
            # The application gave the server a file to send, by path or descriptor. The contents of the file are not
            # available here.
            if self._held is not None:
                await self._send(self._held)
                self._held = self._stream = None
            await self._send(message)

    def watching(self, receive: Receive) -> Receive:
        """Return the application's `receive`, which also records that the client has disconnected."""

        async def receiving() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                self._left = True
            return message

        return receiving

    async def cut(self) -> None:
        """End the response as truncated, because the application failed, was canceled or returned too early.

        If the client has disconnected, the stream does not count as truncated, and nothing is sent.
        """
        if self._stream is None or self._over or self._left:
            return
        self._over = True
        self._recorded("failed")
        out = self._stream.close(broken=True)
        self._tell()
        if out:
            with suppress(OSError):  # the client has disconnected
                await self._pass(out, more=True)

    def finish(self) -> None:
        """Finish the report after the application has returned."""
        self._recorded("left")
        if self._stream is not None:
            self._tell.finish()

    def _recorded(self, how: End) -> None:
        """Record that the body has ended. Only the first call has an effect."""
        if self._recorder is not None:
            self._recorder.end(how)
            self._recorder = None

    def _reporter(self, stream: StreamConverter, identity: str | None) -> DiagnosticReporter:
        requested = _names(self._scope.get("headers", ()))
        scheme, path = self._scope.get("scheme", "http"), self._scope.get("path", "")
        url = plain_url(f"{scheme}://{requested['host']}{path}") if "host" in requested else path
        return DiagnosticReporter(stream, self._on_diagnostic, url, identity)

    async def _begin(self, message: Message) -> None:
        headers = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
        kind, encoding = _value(headers, b"content-type"), _value(headers, b"content-encoding")
        if message["status"] != 200 or not is_event_stream(kind) or not is_readable(encoding):
            await self._send(message)
            return
        self._stream = self._middleware.converter(kind, self._requested)
        self._requested = None
        identity = request_id(_names(headers)) or request_id(_names(self._scope.get("headers", ())))
        self._tell = self._reporter(self._stream, identity)
        self._recorder = self._middleware.recorder(self._scope, message["status"], kind, identity)
        self._inflater = Inflater(encoding, self._middleware.limits.max_inflate_ratio)
        gone = (b"content-length",) if is_plain(encoding) else (b"content-length", b"content-encoding")
        self._kept = [header for header in headers if header[0] not in gone]
        length = _value(headers, b"content-length")
        self._length = int(length) if length.isdecimal() else None
        self._passed = time.monotonic()
        if any(name == b"content-length" for name, _ in headers):
            # A `pathsend` message needs the original headers. A response with a length is not a live stream, so its
            # headers can wait for the next message.
            self._held = message
        else:
            await self._send({**message, "headers": self._kept})

    async def _body(self, stream: StreamConverter, message: Message) -> None:
        data, more = message.get("body", b""), message.get("more_body", False)
        if self._over:
            return
        self._received += len(data)
        pace = Pace()
        out = b""
        try:
            for piece in self._inflater.feed(data):
                if self._recorder is not None and piece:
                    self._recorder.piece(piece)
                for part in slices(piece, FEED):
                    out += stream.feed(part)
                    self._tell()
                    # Send each slice before decompressing the next slice, so that a small compressed body does not
                    # become a large message.
                    if out and (len(out) >= SLICE or pace.is_due):
                        await self._pass(out, more=True)
                        out = b""
                    await pace.pause()
            if not more:
                self._check_length()
                self._inflater.end()
                self._recorded("complete")
                out += stream.close()
        except BrokenBodyError:
            more = False
            self._recorded("failed")
            out += stream.close(broken=True)
        except LimitExceeded as limit:
            out += stream.exceed(limit.limit_name)
        if data:
            self._tell.chunk()
        self._tell()
        if isinstance(stream.error, LimitExceeded) and stream.dialect is None:
            self._over = True
            raise stream.error  # the dialect is unknown, so an error ending cannot be written; close the connection
        # If the application sends more data after an ending, treat it as if the client had disconnected.
        self._over = not more or not (stream.error is None or isinstance(stream.error, READS_ON))
        if out or self._over:
            await self._pass(out, more=not self._over)
        elif data and time.monotonic() - self._passed >= KEEP_ALIVE_SECONDS:
            await self._pass(KEEP_ALIVE, more=True)

    def _check_length(self) -> None:
        if self._length is not None and self._length != self._received:
            raise BrokenBodyError("the length of the body differs from its content-length")

    async def _pass(self, body: bytes, *, more: bool) -> None:
        if self._held is not None:
            start, self._held = self._held, None
            await self._send({**start, "headers": self._kept})
        self._passed = time.monotonic()
        try:
            await self._send({"type": "http.response.body", "body": body, "more_body": more})
        except OSError:  # some servers report with this exception that the client has disconnected
            self._left = True
            raise


def _is_json(headers: dict[str, str]) -> bool:
    """Return whether the body of a request may be JSON. Some clients do not send a content type."""
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


async def _read_ahead(receive: Receive) -> tuple[bytes | None, Receive]:
    """Read the body of a request. Return the body, and a `receive` that first returns the same messages again.

    The body is None if it is too long, or if the client disconnects.
    """
    body = BytesIO()  # `getvalue` does not copy the body
    while True:
        message = await receive()
        more = message["type"] != "http.request" or message.get("more_body", False)
        body.write(message.get("body", b""))
        if not more or message["type"] != "http.request" or body.tell() > _MAX_REQUEST:
            break
    content = body.getvalue()
    read: deque[Message] = deque([{"type": "http.request", "body": content, "more_body": more}])
    if message["type"] != "http.request":
        read.append(message)

    async def receiving() -> Message:
        return read.popleft() if read else await receive()

    return None if more or len(content) > _MAX_REQUEST else content, receiving


def _names(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {bytes(name).lower().decode("latin-1"): bytes(value).decode("latin-1") for name, value in headers}


def _value(headers: list[tuple[bytes, bytes]], wanted: bytes) -> str:
    return ", ".join([value.decode("latin-1") for name, value in headers if name == wanted])
