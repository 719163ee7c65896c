"""Reads LLM streams right: bytes in, events and whole tool calls out, with a list of what had to be repaired.

    import streamweld as sw

    for event in sw.iter_events(response.iter_bytes()):
        match event:
            case sw.events.TextDelta(text=text):
                print(text, end="")
            case sw.events.ToolCall() as call if call.dispatchable:
                run(call.name, call.arguments if call.custom else call.parsed)

A stream of the AI SDK's UI messages can bring the result of a call behind it. There, and wherever the calls can wait
for the end, run `response.dispatchable_calls` instead: it leaves out what was answered.

`StreamParser` is the sans-I/O class under it, `parse` reads a whole body, `streamweld.events` holds the event classes,
`streamweld.errors` every exception, `streamweld.sse` the event-stream layer alone. `check` lists what a stream does
against the rules of its own dialect. `StreamConverter`, `convert`, `iter_convert` and `aconvert` write a stream in
another dialect. `streamweld.history` converts and mends request histories, `streamweld.requests` whole requests.
`splice`, `iter_splice` and `asplice` join a truncated stream and the stream of a reconnect.
`streamweld.arrow` parses columns of recorded streams.
`backend` tells which of the two backends reads: `native` or `pure`.
"""

from typing import TYPE_CHECKING

from streamweld import errors, events, sse
from streamweld._backend import backend
from streamweld.check import Violation, check
from streamweld.convert import (
    AsyncConvertIterator,
    ConvertIterator,
    StreamConverter,
    aconvert,
    convert,
    iter_convert,
)
from streamweld.errors import (
    ArgumentsError,
    LimitExceeded,
    MissingExtra,
    NotAnEventStream,
    ParserBusy,
    SpliceError,
    StreamError,
    StreamweldError,
    TruncatedStream,
    UnknownDialect,
    UpstreamError,
    UsageError,
)
from streamweld.events import Diagnostic, Event, ToolCall, Usage
from streamweld.iterators import (
    AsyncEventIterator,
    EventIterator,
    aiter_batches,
    aiter_events,
    iter_batches,
    iter_events,
)
from streamweld.options import Limits, Policy
from streamweld.response import Choice, Response
from streamweld.splice import AsyncSpliceIterator, SpliceIterator, StreamSplicer, asplice, iter_splice, splice
from streamweld.stream import StreamParser, parse

__all__ = [
    "ArgumentsError",
    "AsyncConvertIterator",
    "AsyncEventIterator",
    "AsyncSpliceIterator",
    "Choice",
    "ConvertIterator",
    "Diagnostic",
    "Event",
    "EventIterator",
    "LimitExceeded",
    "Limits",
    "MissingExtra",
    "NotAnEventStream",
    "ParserBusy",
    "Policy",
    "Response",
    "SpliceError",
    "SpliceIterator",
    "StreamConverter",
    "StreamError",
    "StreamParser",
    "StreamSplicer",
    "StreamweldError",
    "ToolCall",
    "TruncatedStream",
    "UnknownDialect",
    "UpstreamError",
    "Usage",
    "UsageError",
    "Violation",
    "__version__",
    "aconvert",
    "aiter_batches",
    "aiter_events",
    "arrow",
    "asplice",
    "backend",
    "check",
    "convert",
    "errors",
    "events",
    "history",
    "iter_batches",
    "iter_convert",
    "iter_events",
    "iter_splice",
    "parse",
    "requests",
    "splice",
    "sse",
]

if TYPE_CHECKING:
    from streamweld import arrow, history, requests

    __version__: str
else:

    def __getattr__(name):
        """On demand: `__version__`, because reading a distribution's metadata costs more than importing the rest, and
        `arrow`, `history` and `requests`, which are no part of reading a stream."""
        if name in ("arrow", "history", "requests"):
            from importlib import import_module

            return import_module(f"streamweld.{name}")
        if name != "__version__":
            raise AttributeError(f"module 'streamweld' has no attribute {name!r}")
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("streamweld")
        except PackageNotFoundError:  # a source tree that was never installed
            found = "0+unknown"
        globals()[name] = found
        return found
