"""Handle one request, from reading its headers to sending the last byte of the response.

Separate modules handle paths, headers, bodies and the transfer loops.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

from streamweld._messages import code_label
from streamweld.convert import StreamConverter
from streamweld.integrations._defaults import is_event_stream
from streamweld.integrations._reporting import ending, log_diagnostic, request_id
from streamweld.integrations.otel import RequestSpan
from streamweld.integrations.proxy import headers as passing
from streamweld.integrations.proxy import routes
from streamweld.integrations.proxy.access import log
from streamweld.integrations.proxy.answers import CLOSE, send_json, send_refusal
from streamweld.integrations.proxy.config import PROXY_DIALECTS
from streamweld.integrations.proxy.exchange import Exchange
from streamweld.integrations.proxy.names import unnamed
from streamweld.integrations.proxy.prepare import prepared
from streamweld.integrations.proxy.refusals import Refusal, converted_error
from streamweld.integrations.proxy.relay import Relay
from streamweld.integrations.proxy.unstreamed import converted
from streamweld.integrations.proxy.upstream import ask, whole_body
from streamweld.integrations.proxy.worker_threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import ClientResponse, ClientSession
    from starlette.requests import Request

    from streamweld.errors import StreamError
    from streamweld.integrations.proxy.config import ProxyConfig, ProxyDialect
    from streamweld.integrations.proxy.metrics import Metrics
    from streamweld.integrations.proxy.prepare import Prepared
    from streamweld.integrations.proxy.relay import Send
    from streamweld.options import Dialect
    from streamweld.response import Response
    from streamweld.testing.recording import Recorder

__all__ = ["LAST", "METHODS", "Conversation"]

METHODS: Final = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_TICK: Final = 5.0
_SLOWEST: Final = 1024
"""Minimum average rate, in bytes per second, at which a request body must arrive; enforced after `idle_timeout`.
Without a minimum, a client could keep any number of connections open by sending one byte from time to time.
"""
LAST: Final = 2.0
"""Maximum number of seconds to send the error ending of a response that the server cancels."""


class Conversation:
    """One request, the upstream's response, and the outcome."""

    def __init__(
        self,
        request: Request,
        send: Send,
        session: ClientSession,
        config: ProxyConfig,
        metrics: Metrics,
        *,
        pseudonym: str,
    ) -> None:
        """Read the head of the request. `pseudonym` is the proxy's name in `Via`."""
        # `request.url` is not used, because it is built from the `Host` header that the client sent.
        scope = request.scope
        path, sent = routes.request_path(scope["path"], scope.get("raw_path"), scope.get("root_path", ""))
        dialect = routes.dialect_of(path) if request.method == "POST" else None
        converts = config.to is not None and dialect in PROXY_DIALECTS and dialect != config.to
        self._request = request
        self._send = send
        self._session = session
        self._config = config
        self._metrics = metrics
        self._pseudonym = pseudonym
        self._via = ""
        self._body = b""
        self._path = path
        self._sent = sent
        self._query = quote(scope["query_string"], safe="/:@!$&'()*+,;=-._~?%")
        self._converts = converts
        self._relay: Relay | None = None
        self._span: RequestSpan | None = None
        self._headers: dict[str, str] = {}
        self._response: Response | None = None
        self._done = Exchange(request.method, path, dialect, config.to if converts else dialect)

    async def hold(self) -> None:
        """Handle the complete request.

        This method returns after the response has been sent or the client has disconnected.
        """
        done = self._done
        close: Mapping[str, str] = CLOSE  # sent with a refusal unless the body has been read
        try:
            if done.method not in METHODS:
                allow = {"allow": ", ".join(METHODS)}  # RFC 9110 15.5.6
                raise Refusal(405, "invalid_method", "method not allowed", allow)
            self._body = await self._received()
            close = {}
            await self._together()
        except Refusal as refusal:
            await send_refusal(self._send, done, refusal, close)
        finally:
            done.ended()
            self._metrics.count(done)
            log(done)
            if self._span is not None:
                # In the HTTP conventions, the value of `error.type` for an error status is also the status.
                word = str(done.status) if done.outcome == "upstream_error" else done.outcome
                fault = done.fault or (None if done.outcome in ("complete", "assumed") else word)
                self._span.end(status=done.status, first=done.first_byte, fault=fault, response=self._response)

    async def _received(self) -> bytes:
        """Return the request's body.

        The request is refused without reading its body if the headers are invalid or declare a body that is too long.
        """
        given = self._request.headers
        if "transfer-encoding" in given and "content-length" in given:
            # RFC 9112 6.1
            raise Refusal(400, "invalid_framing", "content-length and transfer-encoding must not be sent together")
        if not routes.is_safe(self._path):
            raise Refusal(400, "invalid_path", "the path does not name an endpoint of an upstream")
        self._headers, self._done.dropped = passing.received(given.items())
        self._via = passing.via(given.getlist("via"), self._pseudonym)
        most = self._config.max_body_bytes
        too_long = Refusal(413, "request_too_large", f"the request has more than {most} bytes")
        given_value = given.get("content-length", "0")
        if not given_value.isdecimal() or int(given_value) > most:
            raise too_long
        made = bytearray()
        idle, clock = self._config.idle_timeout, asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(idle) as timeouts:
                async for piece in self._request.stream():
                    made += piece
                    if len(made) > most:
                        raise too_long
                    timeouts.reschedule(idle + min(clock(), began + len(made) / _SLOWEST))
        except TimeoutError:
            raise Refusal(408, "request_timeout", "the request's body did not arrive in time") from None
        return bytes(made)

    async def _together(self) -> None:
        """Send the response. If the client disconnects or stalls, stop, and close the upstream connection.

        If the task is canceled, the response also ends as truncated, with the error of its API.
        """
        work = asyncio.create_task(self._answer())
        gone = asyncio.create_task(self._gone())
        config = self._config
        tick = min(_TICK, config.event_timeout / 4, config.client_timeout / 4)
        try:
            while not work.done():
                await asyncio.wait({work, gone}, timeout=tick, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    break
                if gone.done():
                    self._done.outcome = "client_gone"
                    break
                if self._relay is not None and self._relay.is_stalled():
                    self._done.outcome = "client_stalled"
                    break
        except asyncio.CancelledError:  # the server is stopping, and the grace period is over
            if self._done.status == 0:
                raise Refusal(503, "shutting_down", "the proxy is being stopped") from None
            if self._relay is not None:
                self._relay.stop()
            await asyncio.wait({work}, timeout=LAST)
            self._done.outcome = "shutdown"
        finally:
            gone.cancel()
            work.cancel()
            await asyncio.wait({work, gone})
        if self._done.outcome == "client_gone" and self._relay is not None and self._relay.is_delivered:
            # Some clients disconnect when they receive the terminal marker, before the upstream ends the body.
            self._done.outcome = "complete"
        if not work.cancelled():
            work.result()

    async def _gone(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass

    # The upstream's response

    async def _answer(self) -> None:
        done, config = self._done, self._config
        body, self._body = self._body, b""
        done.request_id = request_id(self._request.headers)
        requested = await in_thread(len(body), lambda: prepared(body, done.dialect, self._path, self._query, config))
        done.model = requested.model
        done.dropped = (*done.dropped, *requested.dropped)
        path, query = self._sent, self._query
        own = None if done.dialect is None or config.to is None else routes.of_gateway(config.gateway, config.to)
        # With the Anthropic API, only some gateways expect the model in the path.
        moved = done.dialect == "anthropic" and config.gateway is not None and routes.model_of(self._path) is not None
        if self._converts or ((own is not None or moved) and requested.model is not None):
            to, model = cast("str", config.to), cast("str", requested.model)
            path, query = routes.path_of(to, model, stream=requested.stream, gateway=config.gateway)
            headers = passing.converted_headers(self._headers, to, None if own is None else own["credential"])
            done.mode = "convert" if self._converts else done.mode
        else:
            headers = passing.forwarded_headers(self._headers)
        headers["via"] = self._via
        url = routes.target_of(config.upstream, path, query)
        done.stream = requested.stream
        if config.tracing and done.upstream_dialect is not None:
            given = self._request.headers
            upstream = done.upstream_dialect
            self._span = RequestSpan(config.upstream, upstream, requested.model, stream=requested.stream, headers=given)
            self._span.inject(headers)
        answer = await ask(self._session, done.method, url, headers, requested.body or None)
        try:
            await self._carry(answer, requested)
        finally:
            # `close` returns the connection to the pool if the body was read to its end, and closes the connection
            # otherwise.
            answer.close()

    async def _carry(self, answer: ClientResponse, requested: Prepared) -> None:
        done = self._done
        done.request_id = request_id(answer.headers) or done.request_id
        headers = passing.answered(answer.headers.items())
        good = 200 <= answer.status < 300
        streams = good and (requested.stream or is_event_stream(answer.headers.get("content-type", "")))
        if done.dialect is not None and streams and (requested.stream or not self._converts):
            await self._stream(answer, requested, headers)
        elif self._converts:
            await self._whole(answer, requested, headers, good=good)
        else:
            self._relay = Relay(answer, self._send, done, self._config)
            encoding = answer.headers.getall("content-encoding", ())
            await self._relay.pass_through(
                answer.status, headers | ({"content-encoding": ", ".join(encoding)} if encoding else {})
            )

    async def _stream(self, answer: ClientResponse, requested: Prepared, headers: dict[str, str]) -> None:
        done, config = self._done, self._config
        done.stream = True  # true even if the request did not ask for a stream
        if not self._converts:
            done.mode = "repair"
        converter = self._converter(answer, requested)
        self._relay = Relay(answer, self._send, done, config)
        self._metrics.opened()
        try:
            own = None if self._converts else unnamed(cast("str", done.dialect))
            await self._relay.repaired(converter, passing.of_stream(headers), own, self._recorder(answer))
        finally:
            self._metrics.closed()
            done.repaired = not self._converts and done.status != 0 and converter.repaired
            self._read(converter)

    def _recorder(self, answer: ClientResponse) -> Recorder | None:
        if self._config.record is None:
            return None
        from streamweld.testing.recording import Recorder

        kind = passing.plain(answer.headers.get("content-type"))
        done = self._done
        return Recorder(
            self._config.record,
            method=done.method,
            path=done.path,
            status=answer.status,
            content_type=kind,
            request_id=done.request_id,
        )

    async def _whole(self, answer: ClientResponse, requested: Prepared, headers: dict[str, str], *, good: bool) -> None:
        """Send an error or a response that is not streamed, in the format of the client's API."""
        done, config = self._done, self._config
        body = await whole_body(answer, config, done)
        dialect = cast("ProxyDialect", done.dialect)
        if not good:
            done.outcome = "upstream_error"
            given_value = await in_thread(len(body), lambda: converted_error(dialect, answer.status, body))
            await send_json(self._send, done, answer.status, given_value, headers)
            return
        converter = self._converter(answer, requested)
        made = await in_thread(len(body), lambda: converted(converter, body, dialect))
        self._read(converter)
        if made is None:
            error = cast("StreamError", converter.error)
            raise Refusal(502, type(error).__name__, f"the upstream's response: {error}")
        done.outcome = "complete"
        await send_json(self._send, done, 200, made, headers)

    def _converter(self, answer: ClientResponse, requested: Prepared) -> StreamConverter:
        return StreamConverter(
            source=cast("Dialect", self._done.upstream_dialect),
            target=cast("ProxyDialect", self._done.dialect) if self._converts else "same",
            policy=self._config.reading,
            limits=self._config.limits,
            tools=requested.tools,
            known_call_ids=requested.known_call_ids,
            content_type=passing.plain(answer.headers.get("content-type")) or None,
            include_usage=requested.include_usage,
            carry_reasoning=True,
            cut_ending="error",  # openai-python does not raise for a response that is `incomplete`
        )

    def _read(self, converter: StreamConverter) -> None:
        """Add the diagnostics of the response to the exchange, the log and the span."""
        done = self._done
        done.diagnostics.update(code_label(note.code, note.detail) for note in converter.diagnostics)
        last = ending(converter.error, converter.diagnostics)  # the access log shows this error as `fault`
        for note in (*converter.diagnostics, *([] if last is None else [last])):
            log_diagnostic(note, done.model, done.request_id)
            if self._span is not None:
                self._span.record(note)
        if self._span is not None:
            self._response = converter.response
