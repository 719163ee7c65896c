"""Parse LLM streams: turn bytes into events and complete tool calls, and report everything that had to be repaired.

    import streamweld as sw

    for event in sw.iter_events(response.iter_bytes()):
        match event:
            case sw.events.TextDelta(text=text):
                print(text, end="")
            case sw.events.ToolCall() as call if call.dispatchable:
                run(call.name, call.arguments if call.custom else call.parsed)

In a stream of AI SDK UI messages, the result of a call may arrive later in the same stream. For such streams, or if
calls can wait until the stream has ended, run the calls in `response.dispatchable_calls` instead. That list omits calls
that already have a result.

`StreamParser` is the underlying sans-I/O class, and `parse` reads a complete body. `streamweld.events` contains the
event classes, `streamweld.errors` contains all exceptions, and `streamweld.sse` contains only the event-stream layer.
`check` lists the places where a stream violates the rules of its dialect. `StreamConverter`, `convert`, `iter_convert`
and `aconvert` convert a stream to another dialect. `streamweld.history` converts and repairs request histories;
`streamweld.requests` does the same for complete requests. `splice`, `iter_splice` and `asplice` join a truncated stream
and the stream that a reconnect returned. `streamweld.arrow` parses columns of recorded streams. `backend` is the name
of the backend in use: `native` or `pure`.
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
    "integrations",
    "iter_batches",
    "iter_convert",
    "iter_events",
    "iter_splice",
    "parse",
    "report",
    "requests",
    "splice",
    "sse",
    "testing",
    "usage",
]

if TYPE_CHECKING:
    from streamweld import arrow, history, integrations, report, requests, testing, usage

    __version__: str
else:

    def __getattr__(name):
        """Load some names on first use: modules that are not needed to read a stream, and `__version__`.

        Reading the metadata of a distribution takes longer than importing the rest of the package.
        """
        if name in ("arrow", "history", "integrations", "report", "requests", "testing", "usage"):
            from importlib import import_module

            return import_module(f"streamweld.{name}")
        if name != "__version__":
            raise AttributeError(f"module 'streamweld' has no attribute {name!r}")
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("streamweld")
        except PackageNotFoundError:  # the package runs from a source tree that was never installed
            found = "0+unknown"
        globals()[name] = found
        return found
