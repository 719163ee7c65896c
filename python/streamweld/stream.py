"""Parse the bytes of a response into events: `StreamParser`, and `parse` for a complete body.

This module calls the parser of the selected backend, and adds what both backends share: the `Response`, and exceptions
that contain it. This module does not interpret the bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from streamweld._backend import Parser, backend, load
from streamweld._messages import HEAD_BYTES, choice_message, input_hint, reject_keywords, reject_text
from streamweld.errors import NotAnEventStream, StreamError, UsageError
from streamweld.options import DEFAULT_LIMITS, DIALECTS, USUAL, to_config
from streamweld.response import response_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Self, Unpack

    from streamweld.events import Diagnostic, Event
    from streamweld.options import Base, Dialect, Limits, Policy, Tools
    from streamweld.partial import Following, PartialArguments
    from streamweld.response import Response

__all__ = ["StreamOptions", "StreamParser", "parse"]

# Names that other functions use for these options, each with the name to use here.
_CALLED: Final = {
    **dict.fromkeys(("format", "source"), "dialect="),
    **{name: f"policy=Policy({name}=…)" for name in ("text_calls", "text_call_families", "missing_terminal")},
}


class StreamOptions(TypedDict, total=False):
    """The options of `StreamParser`, which `parse` and every iterator also accept."""

    dialect: Dialect
    policy: Base | Policy
    limits: Limits
    tools: Tools | None
    known_call_ids: Iterable[str]
    content_type: str | None
    seed: str | None


class StreamParser:
    """Parses one response: accepts bytes in chunks of any size, and returns events.

    Chunk sizes do not affect the events.

    Args:
        dialect: the wire format, or `"auto"` to detect it from the first payloads. One of `"chat"`, `"responses"`,
            `"anthropic"`, `"gemini"`, `"ai-sdk-parts"`, `"ai-sdk-ui"`. A dialect given here is always used. If nothing
            in the stream is valid in that dialect, `UnknownDialect` is raised and reports the dialect that was
            detected.
        policy: a `Policy`, or the name of a base (`"strict"`, `"standard"`, `"salvage"`): which faults raise, which are
            repaired, and how ambiguous input is interpreted.
        limits: how much input to accept before raising `LimitExceeded`; see `Limits`.
        tools: the tools of the request: their definitions in any dialect, their names, or a mapping from name to the
            JSON schema of the parameters. The tools help to assemble names that arrive in fragments, and to interpret
            calls without arguments.
        known_call_ids: call ids of earlier turns; a call that reuses one of them gets a new id.
        content_type: the Content-Type header of the response; used only in the message of `NotAnEventStream`.
        seed: part of generated call ids (`call_<seed>_<part>`): 1 to 64 characters of A-Z a-z 0-9 _ -. Random if None.

    Raises:
        UsageError: if an option does not exist or has an invalid value.

    A parser may be passed from one thread to another between two calls. Two simultaneous calls raise `ParserBusy`.

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
        config = USUAL.get(policy) if isinstance(policy, str) and limits is DEFAULT_LIMITS else None
        if config is None or not (tools is None and known_call_ids == () and content_type is None and seed is None):
            config = to_config(
                policy, limits, tools=tools, known_call_ids=known_call_ids, content_type=content_type, seed=seed
            )
        self._base: str = config["base"]
        self._parser: Parser | Following = load(backend)(dialect, config)
        self._head = b""
        self._is_head_open = True

    def feed(self, data: bytes | bytearray | memoryview) -> list[Event]:
        """Feed the next bytes and return the events that they complete.

        Args:
            data: any chunk of the body, decompressed but otherwise as received. `bytes` are not copied.

        Raises:
            StreamError: if the stream cannot be read any further. `.events` contains the events that this call decoded
                before the fault; `.partial` contains everything read so far.
            UsageError: after `close`, or after an exception; as `ParserBusy`, while another call is running.
            TypeError: if `data` is not bytes, for example `str`.
        """
        if self._is_head_open:
            if type(data) is bytes and not self._head:  # the fast path for the usual first read
                self._head = data[:HEAD_BYTES]
                self._is_head_open = len(data) < HEAD_BYTES
            else:
                self._keep_head(data)
        try:
            return self._parser.feed(data)
        except StreamError as fault:
            self._complete(fault)
            raise

    def _keep_head(self, data: bytes | bytearray | memoryview) -> None:
        """Keep the first bytes, so that a body that is not a stream can be recognized."""
        reject_text(data)
        try:
            self._head += bytes(memoryview(data).cast("B")[: HEAD_BYTES - len(self._head)])
        except (TypeError, ValueError):  # the data is not bytes, or is a released memoryview
            return  # the parser raises the error
        self._is_head_open = len(self._head) < HEAD_BYTES

    def close(self, *, broken: bool = False) -> list[Event]:
        """End the stream and return the last events. Returns `[]` on a second call and after an exception.

        Args:
            broken: whether the body ended because the transport failed (a reset connection, a chunked body without its
                last chunk). Such a stream counts as truncated, unless its terminal marker or a complete JSON body has
                already been read. If the transport did not fail, a stream that sent its finish reason counts as ended.

        Raises:
            StreamError: as `TruncatedStream`, if the stream was truncated. All events before that point were returned
                or are in `.events`; no open call counts as complete.
        """
        try:
            return self._parser.close(broken)
        except StreamError as fault:
            self._complete(fault)
            raise

    def _complete(self, fault: StreamError) -> None:
        fault.policy = self._base
        fault.partial = self.response
        # If anything was decoded, the body is a stream, so its first bytes are not examined.
        if not (
            fault.hint or isinstance(fault, NotAnEventStream) or any(choice.items for choice in fault.partial.choices)
        ):
            hint = input_hint(self._head)
            if hint:
                fault.advise(hint)

    @property
    def response(self) -> Response:
        """Everything read so far, as a new immutable `Response`.

        This property is available at any time, even after an exception.
        """
        return response_of(self._parser)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All repairs and anomalies so far, in order; at most `Limits.max_diagnostics`."""
        return tuple(self._parser.diagnostics)

    @property
    def dialect(self) -> str | None:
        """The wire format; None until it is detected."""
        return self._parser.dialect

    def partial(self, part: int) -> PartialArguments:
        """Return a live view of a tool call's arguments.

        The view grows with every `feed`. The time for an update depends only on the length of the new text.

        Args:
            part: the part number of a `ToolCallStarted`, or of a later event of the call.

        Returns:
            The same view each time. A view that is requested late also contains what was received before.

        Raises:
            UsageError: if the part is not a tool call, or its call has not started yet.
        """
        from streamweld.partial import Following

        if not isinstance(self._parser, Following):
            self._parser = Following(self._parser)
        return self._parser.view(part)

    def arguments_so_far(self, part: int) -> str:
        """Return the argument text received so far for a tool call.

        Raises:
            UsageError: if the part is not a tool call, or its call has not started yet.
        """
        from streamweld.partial import arguments_so_far

        return arguments_so_far(self._parser, part)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Call `close()`. If an exception is being raised, do not end the stream."""
        if exc_type is None:
            self.close()

    def __repr__(self) -> str:
        return f"StreamParser(dialect={self.dialect!r}, backend={backend!r})"


class _Body(StreamParser):
    """A parser for a complete body, which does not create delta events."""

    __slots__ = ()

    def read(self, body: bytes | bytearray | memoryview) -> Response:
        if type(body) is bytes:
            self._head = body[:HEAD_BYTES]
        else:
            self._keep_head(body)
        try:
            self._parser.feed_silent(body)
            self._parser.close_silent()
        except StreamError as fault:
            self._complete(fault)
            raise
        return self.response


def parse(body: bytes | bytearray | memoryview, **options: Unpack[StreamOptions]) -> Response:
    """Parse a complete body into a `Response`, without creating an event for each delta.

    Args:
        body: the bytes of an event stream, of JSON lines, of a JSON array of events, or of one JSON response.
            `StreamParser` and the iterators accept the same formats.
        **options: the options of `StreamParser`: `dialect`, `policy`, `limits`, `tools`, `known_call_ids`,
            `content_type`, `seed`.

    Raises:
        StreamError: for the same faults as `StreamParser.feed` and `close`; `.partial` holds everything read before the
            fault.
        UsageError: if an option does not exist or has an invalid value.

    >>> parse(b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n').text
    'Hi'
    """
    try:
        reader = _Body(**options)
    except TypeError:
        reject_keywords("parse", options, [*StreamOptions.__annotations__, "body"], _CALLED)
        raise
    return reader.read(body)
