"""Convert a stream to another dialect: `StreamConverter`, and `convert`, `iter_convert` and `aconvert` built on it.

If source and target are the same dialect, the stream is repaired in flight. This module calls the converter or repairer
of the selected backend. The module does not examine the bytes, and contains no rules about dialects.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, cast, get_args

from streamweld._backend import Converter, backend, load_converter, load_repairer
from streamweld._chunk_loop import ChunkProcessor, arun, run, timeouts_of
from streamweld._items import AsyncItems, Items, Progress
from streamweld._messages import choice_message, hinted, reject_text
from streamweld._pure.encode.common.tool_ids import source_tool_id
from streamweld._pure.pipeline.array_body import ArrayBody
from streamweld._pure.sse.block_splitter import Splitter
from streamweld._pure.sse.frame import as_bytes
from streamweld._source import Source
from streamweld._spec import LIMITS, load_history
from streamweld.errors import UsageError
from streamweld.options import DIALECTS, Limits, to_config
from streamweld.response import response_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Iterable, Iterator
    from types import TracebackType
    from typing import Self, Unpack

    from streamweld._backend import DetectingConverter
    from streamweld._pure.sse.block_splitter import PiecePosition
    from streamweld.errors import StreamError
    from streamweld.events import Diagnostic
    from streamweld.options import Base, Dialect, Policy, Tools
    from streamweld.response import Response

__all__ = [
    "AsyncConvertIterator",
    "ConvertIterator",
    "ConvertOptions",
    "StreamConverter",
    "Target",
    "aconvert",
    "convert",
    "iter_convert",
    "source_tool_id",
]

Target: TypeAlias = Literal["chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui", "same"]
ReasoningEvents: TypeAlias = Literal["openai", "openresponses"]
CutEnding: TypeAlias = Literal["incomplete", "error"]
ToolIds: TypeAlias = Literal["source", "target"]
Now: TypeAlias = float | Callable[[], float]

TARGETS: Final = get_args(Target)
_LIMITS = Limits()
_PREFIX_BYTES = 16
_LAST_SECOND: Final = 2**53  # a float represents every integer up to this value exactly
# For each target that restricts ids: the profile of the target's own API, and the name that this profile uses for the
# target (`_spec/gateways.json`).
_OWN_API: Final[dict[str, tuple[str, str]]] = {
    "chat": ("openai-chat", "openai-chat"),
    "responses": ("openai-responses", "responses"),
    "anthropic": ("anthropic", "anthropic"),
}


class ConvertOptions(TypedDict, total=False):
    """Keyword arguments of `StreamConverter` other than `target`. `convert` and the iterators also accept these
    arguments.
    """

    source: Dialect
    policy: Base | Policy
    limits: Limits
    tools: Tools | None
    known_call_ids: Iterable[str]
    content_type: str | None
    seed: str | None
    now: Now | None
    hold_arguments: bool
    include_usage: bool
    reasoning_events: ReasoningEvents
    cut_ending: CutEnding
    carry_reasoning: bool
    tool_ids: ToolIds
    raise_on_error: bool


class StreamConverter:
    """Convert one response to another dialect. Accepts bytes in chunks of any size and returns bytes.

    An upstream failure (a truncation, an error, broken JSON, a limit) is never written as a success. The converter
    immediately writes the ending that the target dialect uses for a failure, and stores the failure as `error`. Content
    that the target cannot represent is omitted and reported once, as the diagnostic `not_carried`.

    A stream that is already in the target dialect is repaired in flight. Such a stream passes through byte for byte up
    to the first event that clients of the dialect would misread (parallel calls on one index, a call announced twice, a
    truncation). The rest of the stream is rewritten, and `repaired` is true. If no diagnostic of the parser explains
    the change, the diagnostic `rewritten` reports it once. An error sent by the upstream itself passes through
    unchanged. If the dialect is unknown, all bytes pass through unchanged, and `error` is an `UnknownDialect`.

    Args:
        target: the dialect to write: `chat`, `responses`, `anthropic`, `gemini`, `ai-sdk-parts`, `ai-sdk-ui`; or `same`
            for the dialect of the source.
        source: the dialect to read, or `auto` to detect it from the first payloads.
        policy, limits, tools, known_call_ids, content_type: as for `StreamParser`. Calls to these `tools` are written
            as they arrive. A call to any other tool may be held if the source is `responses`, because the server may
            run the tool itself.
        seed: used to generate ids, for calls and for everything else that needs an id in the target; without a seed,
            these ids are random.
        now: the creation time to write if the source has none, in seconds since 1970. Either a number, or a function
            that returns one and is called once. The default is the current time, or 0 if there is a `seed`, so that
            equal input gives equal bytes.
        hold_arguments: hold back each tool call until it is complete.
        include_usage: whether to end a `chat` stream with the usage chunk that `stream_options` can request.
        reasoning_events: which event types a `responses` target uses for reasoning text: `openai`
            (`response.reasoning_text.*`) or `openresponses` (`response.reasoning.*`).
        cut_ending: how a `responses` target reports a truncation. `incomplete`: as an incomplete response, whose open
            items are closed as incomplete. `error`: as an error, like every other fault, for clients that raise only
            for errors.
        carry_reasoning: write signed and encrypted reasoning in an opaque carrier, which the client sends back with its
            next request. `history.convert` and `requests.convert` then restore the reasoning. Use this option only if
            those requests pass through one of these functions, because no provider accepts a carrier.
        tool_ids: which tool call ids to write: those of the `source`, or ids that the `target`'s own API accepts in a
            history. With `target`, an id that this API would reject, such as `functions.add:0` for Anthropic, is
            renamed. `source_tool_id` maps the new id to the old id, which `history.convert` and `requests.convert`
            restore. This option has no effect on a stream that is already in the target dialect.
        raise_on_error: raise `error` after all bytes have been returned, at the next call to `feed` or `close`.

    Raises:
        UsageError: if an option is invalid.

    >>> with StreamConverter(target="gemini", source="chat") as converter:
    ...     out = converter.feed(b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\\n\\n')
    ...     out += converter.feed(b"data: [DONE]\\n\\n") + converter.close()
    >>> out.splitlines()[0].decode()
    'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"index":0}]}'
    """

    __slots__ = (
        "_arguments",
        "_array",
        "_base",
        "_closed",
        "_converter",
        "_open",
        "_raises",
        "_repairer",
        "_room",
        "_splitter",
        "_undecided",
    )

    def __init__(
        self,
        *,
        target: Target,
        source: Dialect = "auto",
        policy: Base | Policy = "standard",
        limits: Limits = _LIMITS,
        tools: Tools | None = None,
        known_call_ids: Iterable[str] = (),
        content_type: str | None = None,
        seed: str | None = None,
        now: Now | None = None,
        hold_arguments: bool = False,
        include_usage: bool = True,
        reasoning_events: ReasoningEvents = "openai",
        cut_ending: CutEnding = "incomplete",
        carry_reasoning: bool = False,
        tool_ids: ToolIds = "source",
        raise_on_error: bool = False,
    ) -> None:
        for name, value, known in (
            ("target", target, TARGETS),
            ("source", source, DIALECTS),
            ("reasoning_events", reasoning_events, get_args(ReasoningEvents)),
            ("cut_ending", cut_ending, get_args(CutEnding)),
            ("tool_ids", tool_ids, get_args(ToolIds)),
        ):
            if value not in known:
                raise UsageError(choice_message(name, value, known))
        # Generated call ids are also random, because the next response in the conversation must not reuse an id.
        prefix = os.urandom(_PREFIX_BYTES).hex() if seed is None else seed
        given: Any = {"tools": tools, "known_call_ids": known_call_ids, "content_type": content_type}
        config = to_config(policy, limits, seed=prefix, **given)
        options = {
            "prefix": prefix,
            "created": _seconds((time.time if seed is None else 0) if now is None else now),
            "hold_arguments": bool(hold_arguments),
            "include_usage": bool(include_usage),
            "reasoning_events": reasoning_events,
            "cut_ending": cut_ending,
            "carry_reasoning": bool(carry_reasoning),
        }
        self._base: str = config["base"]
        self._arguments = (target, config, options)
        # With `auto`, the converter stores the input until the dialect is detected, because the detected dialect may be
        # the target dialect. The converter parses only complete blocks or array elements, so that the parser does not
        # buffer the same bytes again. A limit applies to the number of stored bytes.
        self._undecided = source == "auto" and target != "same"
        self._splitter = Splitter()
        self._array = ArrayBody(None)
        self._room = limits.max_event_bytes
        self._open = 0  # number of stored bytes that belong to the current block
        repairs = target in (source, "same")
        self._repairer = load_repairer(backend)(source, target, config, options) if repairs else None
        self._converter: Converter = self._repairer or load_converter(backend)(
            source,
            target,
            config,
            {**options, "tool_id_form": _tool_id_form(target) if tool_ids == "target" else None},
        )
        self._raises = raise_on_error
        self._closed = False

    def feed(self, data: bytes | bytearray | memoryview) -> bytes:
        """Feed the next bytes and return the output bytes that they complete.

        Returns `b""` once the ending has been written.

        Raises:
            UsageError: after `close`; as `ParserBusy`, while another call is running.
            StreamError: the `error`, if `raise_on_error` is set and an earlier call has already returned the ending.
            TypeError: if `data` is not bytes, for example `str`.
        """
        if self._closed:
            raise UsageError("the converter is closed")
        reject_text(data)
        self._raise_kept()
        return self._feed_undecided(as_bytes(data)) if self._undecided else self._converter.feed(data)

    def close(self, *, broken: bool = False) -> bytes:
        """End the source and return the last bytes.

        If the source was truncated, these bytes include the ending for a truncation. A second call returns `b""`.

        Args:
            broken: whether the source ended because the transport failed, as in `StreamParser.close`.

        Raises:
            StreamError: the `error`, if `raise_on_error` is set and the ending has already been returned.
        """
        self._raise_kept()
        self._closed = True
        return self._or_repaired(partial(self._converter.close, broken)) + self._converter.close(broken)

    def _feed_undecided(self, data: bytes) -> bytes:
        converter = cast("DetectingConverter", self._converter)  # not a repairer yet
        made: list[bytes] = []
        at = 0
        for piece, position in self._splitter.split(data):
            at += len(piece)
            fitting = self._take_room(piece)
            is_whole = self._is_whole(piece, position)
            if fitting < len(piece) and self._splitter.is_joined and not self._array.is_one:
                self._undecided = False
                made.append(converter.overflow(piece[:fitting]))
                break
            if position not in ("inside", "ready"):
                self._open = 0
            if is_whole:
                made.append(self._or_repaired(partial(converter.feed_stored, piece)))
                if not self._undecided:
                    made.append(self._converter.feed(data[at:]))
                    break
            elif fitting < len(piece):
                self._undecided = False
                made.append(converter.overflow(piece))
                break
            else:
                converter.store(piece)
        return b"".join(made)

    def _take_room(self, piece: bytes) -> int:
        """Count a piece of the input, and return how many of its bytes can be stored within the limit.

        A payload on several lines takes twice its size, because the parser joins the lines in a copy.
        """
        self._open += len(piece)
        if self._room is None:
            return len(piece)
        self._room -= len(piece)
        if self._splitter.is_joined:
            return len(piece) - min(len(piece), max(0, (self._open - self._room + 1) // 2))
        return len(piece) - min(len(piece), max(0, -self._room))

    def _is_whole(self, piece: bytes, position: PiecePosition) -> bool:
        """Return whether a payload ends with this piece.

        If a payload ends there, the converter can process all stored input without buffering it again.
        """
        ends = self._array.is_one is not False and self._array.ends_in(piece)
        return ends if self._array.is_one else position != "inside"

    def exceed(self, limit: str) -> bytes:
        """End the source because it exceeded a limit that only the caller can check, and return the last bytes.

        `error` is then a `LimitExceeded` for that limit. Call this method if you decompress the body yourself.

        Args:
            limit: the name of a limit in `Limits`, such as `max_inflate_ratio`.

        Raises:
            StreamError: the `error`, if `raise_on_error` is set and the ending has already been returned.
            UsageError: if the limit does not exist.
        """
        if limit not in LIMITS:
            raise UsageError(f"unknown limit {limit!r}")
        self._raise_kept()
        self._closed = True
        return self._or_repaired(partial(self._converter.exceed, limit)) + self._converter.exceed(limit)

    def _or_repaired(self, step: Callable[[], bytes]) -> bytes:
        """Return the result of a converter call. Switches to a repairer if the source is in the target dialect."""
        target, config, options = self._arguments
        try:
            made = step()
        except UsageError:
            if not self._undecided or self._converter.dialect != target:
                raise
            stored = cast("DetectingConverter", self._converter).take_stored()
            self._converter = self._repairer = load_repairer(backend)(target, target, config, options)
            made = b"".join([self._repairer.feed(piece) for piece in _drain(stored)])
        if (self._converter.dialect or self._converter.error) is not None:
            self._undecided = False
        return made

    def _raise_kept(self) -> None:
        error = self.error if self._raises else None
        if error is not None:
            self._raises = False
            self._closed = True
            raise error

    @property
    def error(self) -> StreamError | None:
        """The upstream failure, if any. When `error` is set, the ending for the failure has already been written."""
        fault = self._converter.error
        if fault is not None and fault.policy is None:
            fault.policy = self._base
            fault.partial = self.response
        return fault

    @property
    def repaired(self) -> bool:
        """Whether repair rewrote, added or omitted anything. Always False if the target is another dialect."""
        return self._repairer is not None and self._repairer.repaired

    @property
    def is_over(self) -> bool:
        """Whether further input is ignored because an ending has been written.

        After an error that the upstream itself sent, some events may still follow.
        """
        return self.error is not None if self._repairer is None else self._repairer.is_over

    @property
    def response(self) -> Response:
        """Everything read so far, as a new immutable value."""
        return response_of(self._converter)

    @property
    def tool_ids(self) -> dict[str, str]:
        """The source ids of all tool calls that were renamed so far, keyed by the new id (`tool_ids="target"`)."""
        return {} if self._repairer is not None else dict(cast("DetectingConverter", self._converter).tool_ids)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All repairs, anomalies and losses so far, in order; at most `Limits.max_diagnostics`."""
        return tuple(self._converter.diagnostics)

    @property
    def dialect(self) -> str | None:
        """The wire format of the source; None until it is detected."""
        return self._converter.dialect

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Check that `close()` was called.

        This method does not call `close()`, because the bytes that `close()` returns would be lost.
        """
        if exc_type is None and not self._closed:
            raise UsageError("call close() inside the with block: it returns the last bytes")

    def __repr__(self) -> str:
        return f"StreamConverter(source={self.dialect!r}, backend={backend!r})"


def _drain(pieces: list[bytes]) -> Iterator[bytes]:
    """Yield all pieces, and release each one when the next is requested, because its reader may store a copy."""
    pieces.reverse()
    while pieces:
        yield pieces.pop()


@cache
def _tool_id_form(target: Target) -> tuple[bool, int | None] | None:
    """Return what the target's own API requires of call ids in a history, or None if this API accepts any id.

    The result is a pair: whether only letters, digits, `_` and `-` are allowed, and the maximum length.
    """
    if target not in _OWN_API:
        return None
    profile_name, target_name = _OWN_API[target]
    profile = next(one for one in load_history("gateways")["profiles"] if one["name"] == profile_name)
    form, _source = profile["targets"][target_name]["constraints"]["tool_id"]
    return "chars" in form, form.get("max")


def _seconds(now: Now) -> int:
    """Return the time in whole seconds.

    Raises:
        UsageError: if the time is not a number from 0 to 2**53.
    """
    value = cast("object", now() if callable(now) else now)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _LAST_SECOND:
        return int(value)
    raise UsageError(f"now must be seconds since 1970, or a function that returns them, not {value!r}")


class _Writer(ChunkProcessor[bytes]):
    """Adapts a converter to the chunk loop: each result is the converter's bytes.

    The source is not read any further once an ending has been written.
    """

    __slots__ = ("_raises", "converter")

    def __init__(self, converter: StreamConverter, *, raises: bool) -> None:
        super().__init__()
        self.converter = converter
        self._raises = raises

    def step(self, chunk: bytes | bytearray | memoryview) -> bytes:
        given = self.converter.feed(chunk)
        self._look()
        return given

    def end(self, *, broken: bool = False) -> bytes:
        given = self.converter.close(broken=broken)
        self._look()
        return given

    def _look(self) -> None:
        error = self.converter.error
        if error is not None:
            self.over = self._raises or self.converter.is_over
            if self._raises:
                self.fault = error


class _Faulty(Progress[StreamConverter]):
    """Progress that includes `error`.

    The output has a valid ending even after a failure, so the failure is reported separately.
    """

    __slots__ = ()

    @property
    def error(self) -> StreamError | None:
        """The upstream failure, if any."""
        return self._reader.error

    @property
    def repaired(self) -> bool:
        """Whether repair has rewritten, added or omitted anything so far.

        Always False if the target is another dialect.
        """
        return self._reader.repaired


class ConvertIterator(Items[StreamConverter, bytes], _Faulty):
    """Iterator with the response so far, returned by `iter_convert`."""

    __slots__ = ()


class AsyncConvertIterator(AsyncItems[StreamConverter, bytes], _Faulty):
    """Iterator with the response so far, returned by `aconvert`."""

    __slots__ = ()


@hinted(*ConvertOptions.__annotations__, to="target", dialect="source")
def convert(body: bytes | bytearray | memoryview, *, target: Target, **options: Unpack[ConvertOptions]) -> bytes:
    """Convert a complete body to another dialect.

    Args:
        body: the bytes of an event stream, of JSON lines, of a JSON array of events, or of one JSON response.
        target: the dialect to write.
        **options: the options of `StreamConverter`.

    Raises:
        UsageError: if an option is invalid.
        StreamError: with `raise_on_error`, for any upstream failure.

    >>> body = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n'
    >>> convert(body, target="gemini").splitlines()[0].decode()
    'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"index":0}]}'
    """
    raises = options.pop("raise_on_error", False)
    converter = StreamConverter(target=target, **options)
    made = converter.feed(body) + converter.close()
    error = converter.error
    if raises and error is not None:
        raise error
    return made


@hinted(*ConvertOptions.__annotations__, to="target", dialect="source")
def iter_convert(
    chunks: Iterable[bytes | bytearray | memoryview],
    *,
    target: Target,
    close_source: bool = True,
    **options: Unpack[ConvertOptions],
) -> ConvertIterator:
    """Convert a stream that arrives in chunks. Yields nothing for a chunk that does not complete any output.

    Args:
        chunks: chunks of the body, such as `response.iter_bytes()` of httpx. No further chunks are read once an ending
            has been written.
        target: the dialect to write.
        close_source: whether to call `chunks.close()`, if it exists, exactly once: at the end, on an error, or when the
            loop is left early.
        **options: the options of `StreamConverter`.

    Raises:
        UsageError: as for `StreamConverter`.
        StreamError: with `raise_on_error`, after the last bytes. An exception of the source is raised unchanged, after
            the ending for a truncated stream.

    >>> pieces = [b'data: {"choices":[{"delta":{"con', b'tent":"Hi"},"finish_reason":"stop"}]}', b"\\n\\n"]
    >>> [piece.count(b"\\n\\n") for piece in iter_convert(pieces, target="gemini")]
    [1, 1]
    """
    source = Source.sync(chunks, close=close_source, other="aconvert()")
    raises = options.pop("raise_on_error", False)
    converter = StreamConverter(target=target, **options)
    return ConvertIterator(converter, source, run(_Writer(converter, raises=raises), source))


def aconvert(
    chunks: AsyncIterable[bytes | bytearray | memoryview],
    *,
    target: Target,
    idle_timeout: float | None = None,
    event_timeout: float | None = None,
    close_source: bool = True,
    **options: Unpack[ConvertOptions],
) -> AsyncConvertIterator:
    """Convert a stream that arrives in chunks, for `async for`.

    Args:
        chunks: chunks of the body: `response.aiter_bytes()` of httpx, `response.content.iter_any()` of aiohttp.
        target: the dialect to write.
        idle_timeout: how many seconds to wait for the next chunk, whatever it contains.
        event_timeout: how many seconds to wait for the next output bytes. Both timeouts end the stream as truncated,
            unless its terminal marker has been read. The timeouts need asyncio.
        close_source: whether to call `chunks.aclose()` (or `close()`), if it exists, exactly once.
        **options: the options of `StreamConverter`.

    Raises:
        UsageError: as for `StreamConverter`.
        StreamError: with `raise_on_error`, after the last bytes. An exception of the source is raised unchanged, after
            the ending for a truncated stream; a cancellation is raised at once.
    """
    source = Source.asynchronous(chunks, close=close_source, other="iter_convert()")
    timeouts = timeouts_of(idle_timeout, event_timeout)
    raises = options.pop("raise_on_error", False)
    converter = StreamConverter(target=target, **options)
    return AsyncConvertIterator(converter, source, arun(_Writer(converter, raises=raises), source, timeouts))
