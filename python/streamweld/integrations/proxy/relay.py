"""Transfer a response from the upstream to the client, through a converter or unchanged.

A `Relay` records when the upstream last sent data and when the client last accepted data, so that the caller can end
stalled transfers.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld._spec import load_conversions, load_proxy
from streamweld.errors import LimitExceeded, NotAnEventStream, TruncatedStream, UnknownDialect
from streamweld.integrations._defaults import KEEP_ALIVE, KEEP_ALIVE_SECONDS
from streamweld.integrations._inflate import slices
from streamweld.integrations._pace import FEED, Pace
from streamweld.integrations.proxy.headers import plain
from streamweld.integrations.proxy.refusals import Refusal
from streamweld.integrations.proxy.upstream import UpstreamCutError, inflater_of, plain_pieces, raw_pieces
from streamweld.integrations.proxy.worker_threads import ConverterTask

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping

    from aiohttp import ClientResponse

    from streamweld.convert import StreamConverter
    from streamweld.errors import StreamError
    from streamweld.integrations.proxy.config import ProxyConfig
    from streamweld.integrations.proxy.exchange import Exchange, Outcome
    from streamweld.testing.recording import End, Recorder

    Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

__all__ = ["Relay"]


_ERRORS: Final = 400  # the lowest error status
_HTML: Final = "text/html"
_TRUNCATED: Final = b'"message":"%s"' % load_conversions()["faults"][TruncatedStream.__name__][1].encode()
_STOPPED: Final = b'"message":"%s"' % load_proxy()["stopped"].encode()


class Relay:
    """The transfer of one response.

    Args:
        answer: the upstream's response; its status and headers have arrived.
        send: the ASGI function that sends to the client.
        done: the record of the exchange, which is updated during the transfer.
        config: the configuration, which sets the stall timeouts and the maximum number of bytes.
    """

    def __init__(self, answer: ClientResponse, send: Send, done: Exchange, config: ProxyConfig) -> None:
        self._answer = answer
        self._send = send
        self._exchange = done
        self._config = config
        self._head: tuple[int, list[tuple[bytes, bytes]]] | None = None
        self._event_at = self._sent_at = time.monotonic()
        self._sending = False
        self._stopping = False
        self._is_waiting = False  # all output so far was sent, and the upstream has not sent more
        self.is_delivered: bool = False
        """Whether the transfer was canceled after the client had received the whole stream, with its terminal marker.
        """

    async def repaired(
        self,
        converter: StreamConverter,
        headers: dict[str, str],
        last: Callable[[bytes], bytes] | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """Send the response through `converter` and then through `last`, which receives complete blocks.

        After a fault, the converter's error ending is sent, and the upstream connection is closed at once. A failure of
        the transport is reported to the converter.

        Raises:
            Refusal: if the response does not contain any part of a stream and nothing was sent. A client retries or
                reports an error status, but would accept an empty stream.
        """
        inflater, pace = inflater_of(self._answer, self._config.limits), Pace()
        pieces = self._recorded(plain_pieces(self._answer, inflater, self._exchange, pace), recorder)
        self._begin(200, headers)
        work = ConverterTask(converter)
        rest = b""
        try:
            async with aclosing(_converted(pieces, work, pace)) as made:
                async for out in made:
                    if converter.error is not None:
                        rest = out
                        self._answer.close()
                        break
                    if out:
                        await self._pass(self._counted(out, last))
                    elif time.monotonic() - self._sent_at >= KEEP_ALIVE_SECONDS:
                        await self._keep_alive()
            rest += await work.close()
        except asyncio.CancelledError:
            self.is_delivered = self._is_waiting and await work.ends_complete()
            raise
        except UpstreamCutError:
            rest = await work.close(broken=True)
            if self._stopping:
                rest = _told_of_stop(rest)
        except LimitExceeded as limit:
            self._answer.close()
            rest = await work.exceed(limit)
        if converter.error is not None and self._head is not None:
            self._refuse(converter.error)
        done, rest = self._exchange, self._counted(rest, last)
        done.outcome, done.fault = _outcome(converter, self._config)
        await self._pass(rest, more=False)

    async def pass_through(self, status: int, headers: dict[str, str]) -> None:
        """Send every byte unchanged.

        If the body is truncated or too long, the response is not terminated properly, so that the client can detect
        that it is incomplete.
        """
        self._begin(status, headers)
        done, pace = self._exchange, Pace()
        try:
            async with aclosing(raw_pieces(self._answer, done, pace)) as pieces:
                async for data in pieces:
                    if done.bytes_in > self._config.max_stream_bytes:
                        done.outcome, done.fault = "fault", LimitExceeded.__name__
                        return
                    await self._pass(data)
                    await pace.pause()
        except UpstreamCutError as error:
            if self._head is not None:
                raise Refusal(502, "upstream_cut", "the upstream's response was truncated") from None
            done.outcome, done.fault = "fault", str(error)
            return
        html = done.dialect is not None and plain(headers.get("content-type")) == _HTML  # an API would send JSON
        done.outcome = "upstream_error" if html or status >= _ERRORS else "complete"
        await self._pass(b"", more=False)

    def is_stalled(self) -> bool:
        """Return True if the client has not accepted data for too long.

        Also closes the upstream connection if no event has arrived for too long; the transfer loop then treats the
        response as truncated.
        """
        now = time.monotonic()
        if self._sending:
            return now - self._sent_at > self._config.client_timeout
        if now - self._event_at > self._config.event_timeout:
            self.leave()
        return False

    def leave(self) -> None:
        """Close the upstream connection; the transfer loop then treats the response as truncated."""
        self._answer.close()

    def stop(self) -> None:
        """Close the upstream connection because the proxy is stopping.

        The client still gets an error, but the recording does not report a failure of the upstream.
        """
        self._stopping = True
        self.leave()

    # Internals

    async def _recorded(self, pieces: AsyncGenerator[bytes], recorder: Recorder | None) -> AsyncGenerator[bytes]:
        """Record the pieces as they pass through."""
        how: End = "left"
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    self._is_waiting = False
                    if recorder is not None:
                        recorder.piece(piece)
                    yield piece
                    self._is_waiting = True
            how = "complete"
        except UpstreamCutError:
            how = "left" if self._stopping else "failed"
            raise
        finally:
            if recorder is not None:
                recorder.end(how)

    def _begin(self, status: int, headers: dict[str, str]) -> None:
        """Store the status and headers, which are sent with the first bytes of the body.

        Until then, an error can be sent instead.
        """
        self._head = (status, [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()])

    async def _pass(self, body: bytes, *, more: bool = True) -> None:
        self._event_at = self._sent_at = time.monotonic()
        self._sending = True
        if self._head is not None:
            (status, headers), self._head = self._head, None
            self._exchange.status = status
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
        self._exchange.wrote(body)
        self._sending = False

    def _counted(self, out: bytes, last: Callable[[bytes], bytes] | None) -> bytes:
        out = out if last is None else last(out)
        self._exchange.events += out.count(b"\n\n") + out.count(b"\n\r\n")
        return out

    async def _keep_alive(self) -> None:
        """Send a comment if input arrives but no output can be sent yet.

        Without a comment, a read might time out in the client. Comments do not count as events.
        """
        event_at = self._event_at
        await self._pass(KEEP_ALIVE)
        self._event_at = event_at

    def _refuse(self, fault: StreamError) -> None:
        nothing = isinstance(fault, NotAnEventStream | UnknownDialect)
        if nothing or (isinstance(fault, TruncatedStream) and fault.where == "empty"):
            content_type = plain(self._answer.headers.get("content-type")) or "no content type"
            kind = type(fault).__name__
            message = (
                f"the upstream answered with status {self._answer.status} ({content_type}), but its body is not an"
                " event stream of a known dialect"
            )
            raise Refusal(502, kind, message)


def _told_of_stop(rest: bytes) -> bytes:
    """Return the last bytes of a truncated stream, with an error whose reason is that the proxy is stopping.

    The replaced text contains quotation marks. Quotation marks in the model's output are escaped, so only the error can
    match.
    """
    return rest.replace(_TRUNCATED, _STOPPED)


async def _converted(pieces: AsyncGenerator[bytes], work: ConverterTask, pace: Pace) -> AsyncGenerator[bytes]:
    """Yield the converter's output after each piece and, for long pieces, after every few milliseconds of work.

    Stops after the first error.
    """
    async with aclosing(pieces):
        async for piece in pieces:
            made: list[bytes] = []
            for part in slices(piece, FEED):
                made.append(await work.feed(part))
                if work.converter.error is not None:
                    yield b"".join(made)
                    return
                if pace.is_due:
                    if any(made):
                        yield b"".join(made)
                        made.clear()
                    await pace.pause()
            yield b"".join(made)


def _outcome(converter: StreamConverter, config: ProxyConfig) -> tuple[Outcome, str | None]:
    """Return how a stream ended, and the name of the fault that ended it early, if any."""
    fault = converter.error
    if fault is not None:
        return "fault", type(fault).__name__
    if not config.reads_on:
        return "complete", None
    # With this policy, the response reports the truncation, and no exception is raised.
    match converter.response.completeness:
        case "complete":
            return "complete", None
        case "assumed":
            return "assumed", None
        case _:
            return "fault", TruncatedStream.__name__
