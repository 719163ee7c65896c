"""Bytes of one response in, events out: `StreamParser`, and `parse` for a whole body.

It knows a backend's parser by its protocol and adds what needs no twin: the `Response`, and exceptions that
carry it. It never looks into the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

from streamweld._backend import Parser, backend, load
from streamweld._messages import HEAD_BYTES, choice_message, input_hint, reject_text
from streamweld.errors import NotAnEventStream, StreamError, UsageError
from streamweld.options import DEFAULT_LIMITS, DIALECTS, to_config
from streamweld.response import Response

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Self, Unpack

    from streamweld._words import Completeness
    from streamweld.events import Diagnostic, Event
    from streamweld.options import Base, Dialect, Limits, Policy, Tools
    from streamweld.partial import Following, PartialArguments

__all__ = ["StreamOptions", "StreamParser", "parse"]


class StreamOptions(TypedDict, total=False):
    """The options of `StreamParser`, which `parse` and every iterator accept too."""

    dialect: Dialect
    policy: Base | Policy
    limits: Limits
    tools: Tools | None
    known_call_ids: Iterable[str]
    content_type: str | None
    seed: str | None


class StreamParser:
    """Reads one response: bytes in pieces of any size go in, events come out. The size of the pieces changes no event.

    Args:
        dialect: the wire format, or `"auto"` to recognize it from the first payloads. One of `"chat"`, `"responses"`,
            `"anthropic"`, `"gemini"`, `"ai-sdk-parts"`, `"ai-sdk-ui"`. A named dialect is always used; if nothing in
            the stream could be read as it, `UnknownDialect` names the dialect that the stream appears to be in.
        policy: a `Policy`, or the name of a base (`"strict"`, `"standard"`, `"salvage"`): which faults raise, which are
            repaired, and how ambiguous bytes are read.
        limits: how much to accept before `LimitExceeded`; see `Limits`.
        tools: the tools of the request: their names, or a mapping of name to the JSON schema of the parameters. They
            decide names that arrive in fragments and calls without arguments.
        known_call_ids: call ids of earlier turns; a call that reuses one of them gets a new id.
        content_type: the Content-Type header of the response; used only in the message of `NotAnEventStream`.
        seed: part of generated call ids (`call_<seed>_<part>`): 1 to 64 characters of A-Z a-z 0-9 _ -. Random if None.

    Raises:
        UsageError: an option does not exist or has an impossible value.

    A parser holds no lock while it waits and may move between threads; two calls at the same time raise `ParserBusy`.

    >>> with StreamParser() as parser:
    ...     events = parser.feed(b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\\n\\n')
    ...     events += parser.feed(b"data: [DONE]\\n\\n")
    >>> [event.type for event in events]
    ['response_started', 'text_started', 'text_delta', 'text_done', 'finished']
    >>> parser.response.text, parser.response.completeness
    ('Hi', 'complete')
    """

    __slots__ = ("_base", "_head", "_is_head_open", "_parser")

    def __init__(
        self,
        *,
        dialect: Dialect = "auto",
        policy: Base | Policy = "standard",
        limits: Limits = DEFAULT_LIMITS,
        tools: Tools | None = None,
        known_call_ids: Iterable[str] = (),
        content_type: str | None = None,
        seed: str | None = None,
    ) -> None:
        if dialect not in DIALECTS:
            raise UsageError(choice_message("dialect", dialect, DIALECTS))
        config = to_config(
            policy, limits, tools=tools, known_call_ids=known_call_ids, content_type=content_type, seed=seed
        )
        self._base: str = config["base"]
        self._parser: Parser | Following = load(backend)(dialect, config)
        self._head = b""
        self._is_head_open = True

    def feed(self, data: bytes | bytearray | memoryview) -> list[Event]:
        """Take the next bytes; the events that they complete.

        Args:
            data: any piece of the body, decoded (no gzip) but for that as it came. `bytes` are read in place.

        Raises:
            StreamError: the stream cannot go on. `.events` holds what this call had decoded before, `.partial` all.
            UsageError: after `close`, or after an exception. `ParserBusy`: while another call is running.
            TypeError: for anything but bytes, `str` first of all.
        """
        if self._is_head_open:
            self._keep_head(data)
        try:
            return self._parser.feed(data)
        except StreamError as fault:
            self._complete(fault)
            raise

    def _keep_head(self, data: bytes | bytearray | memoryview) -> None:
        """Keep the first bytes of the body, which show what it is if it is not a stream."""
        if type(data) is bytes and not self._head:  # the usual first read
            self._head = data[:HEAD_BYTES]
            self._is_head_open = len(data) < HEAD_BYTES
            return
        reject_text(data)
        try:
            self._head += bytes(memoryview(data).cast("B")[: HEAD_BYTES - len(self._head)])
        except (TypeError, ValueError):  # not bytes, or a view that was released
            return  # the parser reports it
        self._is_head_open = len(self._head) < HEAD_BYTES

    def close(self, *, broken: bool = False) -> list[Event]:
        """End the stream and return the last events: `[]` the second time, and after an exception.

        Args:
            broken: whether the body ended because the transport failed (a reset connection, a chunked body without its
                last chunk). Such a stream is truncated unless its terminal marker, or all of a JSON body, was read
                before; without it, a stream that sent its finish reason counts as ended.

        Raises:
            StreamError: `TruncatedStream` where the stream was cut. All events before it are in `.events` or were
                returned; no call that was open counts as complete.
        """
        try:
            return self._parser.close(broken)
        except StreamError as fault:
            self._complete(fault)
            raise

    def _complete(self, fault: StreamError) -> None:
        fault.policy = self._base
        fault.partial = self.response
        # A stream of which something was understood is one, whatever its first bytes look like.
        if not (
            fault.hint or isinstance(fault, NotAnEventStream) or any(choice.items for choice in fault.partial.choices)
        ):
            hint = input_hint(self._head)
            if hint:
                fault.advise(hint)

    @property
    def response(self) -> Response:
        """Everything so far, as a new immutable value. Readable at any time, after an exception too."""
        events, completeness, dropped = self._parser.snapshot()
        return Response(
            events,
            cast("Completeness", completeness),
            self._parser.diagnostics,
            dropped,
            ordered=True,
            dialect=self._parser.dialect,
        )

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every repair and anomaly so far, in order; at most `Limits.max_diagnostics`."""
        return tuple(self._parser.diagnostics)

    @property
    def dialect(self) -> str | None:
        """The wire format; None until the first payload has shown it."""
        return self._parser.dialect

    def partial(self, part: int) -> PartialArguments:
        """The arguments of a tool call, live: the view grows with every `feed`, at the cost of what is new.

        Args:
            part: of a `ToolCallStarted`, or of a later event of the call.

        Returns:
            The same view each time. One that is requested late holds what was sent before.

        Raises:
            UsageError: if the part is not a tool call, or not one yet.
        """
        from streamweld.partial import Following

        if not isinstance(self._parser, Following):
            self._parser = Following(self._parser)
        return self._parser.view(part)

    def arguments_so_far(self, part: int) -> str:
        """The argument text of a tool call as far as its deltas showed it.

        Raises:
            UsageError: if the part is not a tool call, or not one yet.
        """
        from streamweld.partial import arguments_so_far

        return arguments_so_far(self._parser, part)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """`close()`, unless an exception is on its way: then the stream is left as it is."""
        if exc_type is None:
            self.close()

    def __repr__(self) -> str:
        return f"StreamParser(dialect={self.dialect!r}, backend={backend!r})"


class _Body(StreamParser):
    """A parser that is given all at once, and builds no event for each delta."""

    __slots__ = ()

    def read(self, body: bytes | bytearray | memoryview) -> Response:
        self._keep_head(body)
        try:
            self._parser.feed_silent(body)
            self._parser.close_silent()
        except StreamError as fault:
            self._complete(fault)
            raise
        return self.response


def parse(body: bytes | bytearray | memoryview, **options: Unpack[StreamOptions]) -> Response:
    """Read a whole body into a `Response`, without building an event for each delta.

    Args:
        body: the bytes of an event stream, of JSON lines, of a JSON array of events, or of one plain JSON answer.
            `StreamParser` and the iterators accept the same formats.
        **options: the options of `StreamParser`: `dialect`, `policy`, `limits`, `tools`, `known_call_ids`,
            `content_type`, `seed`.

    Raises:
        StreamError: for the same faults as `StreamParser.feed` and `close`; `.partial` holds what was read.
        UsageError: an option does not exist or has an impossible value.

    >>> parse(b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n').text
    'Hi'
    """
    return _Body(**options).read(body)
