"""Report the repairs of one stream to a callback and to the `streamweld` logger."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from inspect import Parameter, iscoroutinefunction, signature
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast
from urllib.parse import urlsplit

from streamweld._messages import code_label, code_text
from streamweld._show import printable
from streamweld.errors import UnknownDialect, UpstreamError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from streamweld.convert import StreamConverter, Target
    from streamweld.errors import StreamError
    from streamweld.events import Diagnostic, DiagnosticCode

    OnDiagnostic: TypeAlias = Callable[[Diagnostic, "StreamContext"], object] | Callable[[Diagnostic], object]
    Callback: TypeAlias = Callable[[Diagnostic, "StreamContext"], object]

__all__ = [
    "LOGGER",
    "DiagnosticReporter",
    "OnDiagnostic",
    "StreamContext",
    "callback",
    "ending",
    "log_diagnostic",
    "plain_url",
    "request_id",
]

LOGGER: Final = logging.getLogger("streamweld")
_REQUEST_IDS: Final = ("x-request-id", "request-id", "x-amzn-requestid", "x-goog-request-id")
_CHARS: Final = 200  # maximum length of a value in the log
# Maximum number of attempts to read the model name. Each attempt takes time proportional to the length of the
# response.
_LOOKS: Final = 16


@dataclass(frozen=True, slots=True)
class StreamContext:
    """The stream that a diagnostic belongs to. Fields with an unknown value are None."""

    url: str | None
    """URL of the request, without credentials, query and fragment."""
    model: str | None
    """Name of the model as reported by the stream; if the stream does not report it, the model that was requested."""
    request_id: str | None
    """Request id from the response headers: `x-request-id`, `request-id`, or the header of a cloud provider."""
    dialect: str | None
    """Wire format of the stream."""


class StreamWatch(Protocol):
    """Interface for objects that measure one stream.

    A callback may have a method `watch_stream` that returns such an object; see `otel.StreamMetrics`.
    """

    def chunk(self, read: StreamConverter, /) -> None:
        """Record that a chunk of the stream was read."""

    def end(self, read: StreamConverter, fault: StreamError | None, /) -> None:
        """Record that the stream has ended."""


def callback(on_diagnostic: OnDiagnostic | None) -> Callback | None:
    """Adapt `on_diagnostic` to a function that accepts a diagnostic and its context.

    The callback receives the context if it requires a second positional argument or has an argument named `context`.

    Raises:
        UsageError: if `on_diagnostic` is not callable, or is asynchronous.
    """
    if on_diagnostic is None:
        return None
    if not callable(on_diagnostic):
        raise UsageError(f"on_diagnostic={on_diagnostic!r}: it must be a function of a Diagnostic and a StreamContext")
    if iscoroutinefunction(on_diagnostic) or iscoroutinefunction(type(on_diagnostic).__call__):
        raise UsageError(f"on_diagnostic={on_diagnostic!r}: it is called, not awaited; it cannot be asynchronous")
    given: Any = on_diagnostic
    if _takes_context(given):
        return given  # type: ignore[no-any-return]
    return lambda diagnostic, _: given(diagnostic)


def _takes_context(function: Any) -> bool:
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    positional = [one for one in parameters if one.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    return len(positional) > 1 and (positional[1].default is Parameter.empty or positional[1].name == "context")


def plain_url(url: str) -> str:
    """Return the URL without its credentials, query and fragment, because they may contain secrets."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if host else parts.path


def request_id(headers: Mapping[str, str]) -> str | None:
    """Return the request id that the gateway assigned.

    `headers` must have lower-case names, or be a case-insensitive mapping.
    """
    return next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)


def ending(error: StreamError | None, found: Iterable[Diagnostic]) -> Diagnostic | None:
    """Return the error that ended a stream as a diagnostic of severity `error`.

    The diagnostic's code is the `rule` of the error.

    Args:
        error: the error; None if the stream ended without one.
        found: the diagnostics of the stream. If one of these diagnostics already reports the error, the result is None.
    """
    if error is None or any(one.code == error.rule and one.severity == "error" for one in found):
        return None
    from streamweld.events import Diagnostic

    code = cast("DiagnosticCode", error.rule)  # the documentation of `Diagnostic.code` mentions these additional values
    place = (error.byte_offset or 0, error.event_ordinal or 0)
    detail = error.detail or (error.message if isinstance(error, UpstreamError) else "")
    return Diagnostic(code, "error", *place, detail=detail)


def log_diagnostic(diagnostic: Diagnostic, model: str | None, request: str | None) -> None:
    """Write one DEBUG record that identifies the stream by its model and request id.

    The text of the record may contain model output, but not a gateway's error message, which may repeat the request.
    """
    if not LOGGER.isEnabledFor(logging.DEBUG):
        return
    location = (diagnostic.code, diagnostic.severity, diagnostic.byte_offset, diagnostic.event_ordinal)
    stream = _words({"model": model, "request_id": request})
    is_from_gateway = diagnostic.code == "upstream_error"
    message = code_text(diagnostic.code) if is_from_gateway else printable(diagnostic.message, _CHARS)
    LOGGER.debug("%s (%s) at byte %s, event %s: %s%s", *location, message, f" [{stream}]" if stream else "")


def _words(facts: Mapping[str, str | None]) -> str:
    """Return the known facts as `name=value` pairs on one line."""
    return " ".join([f"{name}={printable(value, _CHARS)}" for name, value in facts.items() if value is not None])


class DiagnosticReporter:
    """Reports the diagnostics that a converter has recorded since the last call, and logs the stream.

    The error that ends a stream is reported as the last diagnostic. Diagnostics beyond `Limits.max_diagnostics` are
    counted by the converter but not reported. An exception that the callback raises is logged, and the stream
    continues. `requested_model` reads the model from the request. This function is called only if a diagnostic is
    reported before the stream reports its model.

    `target` is the target of the converter, and `raises` is whether its error is raised to the reader. With the target
    `same`, a stream in an unknown dialect passes through unchanged. An unknown dialect is not an error in that case,
    unless the error is raised.
    """

    __slots__ = (
        "_converter",
        "_debug",
        "_ended",
        "_finished",
        "_looks",
        "_model",
        "_raises",
        "_request_id",
        "_requested_model",
        "_tell",
        "_reported_count",
        "_target",
        "_url",
        "_watch",
    )

    def __init__(
        self,
        converter: StreamConverter,
        tell: Callback | None,
        url: str | None,
        request: str | None,
        requested_model: Callable[[], str | None] = lambda: None,
        *,
        target: Target = "same",
        raises: bool = False,
    ) -> None:
        self._converter = converter
        self._target = target
        self._raises = raises
        self._requested_model = requested_model
        self._tell = tell
        self._url = url
        self._request_id = request
        self._model: str | None = None
        self._looks = _LOOKS
        self._reported_count = 0
        self._debug = LOGGER.isEnabledFor(logging.DEBUG)
        self._finished = False
        self._ended = False
        watch: Callable[[], StreamWatch] | None = getattr(tell, "watch_stream", None)
        self._watch = None if watch is None else watch()

    def __call__(self) -> None:
        """Report new diagnostics. Call this method after every `feed` and `close`."""
        if self._tell is None and not self._debug:
            return
        found, error = self._converter.diagnostics, self._error()
        if self._reported_count == len(found) and (error is None or self._ended):
            return
        context = self._context()
        while self._reported_count < len(found):
            diagnostic = found[self._reported_count]
            self._reported_count += 1
            self._report(diagnostic, context)
        if error is not None and not self._ended:
            self._ended = True
            last = ending(error, found)
            if last is not None:
                self._report(last, context)

    def _report(self, diagnostic: Diagnostic, context: StreamContext) -> None:
        if self._debug:
            log_diagnostic(diagnostic, context.model, context.request_id)
        if self._tell is not None:
            try:
                self._tell(diagnostic, context)
            except Exception:
                LOGGER.exception("on_diagnostic raised an exception for %s; the stream continues", diagnostic.code)

    def chunk(self) -> None:
        """Record that a chunk of the stream was fed."""
        if self._watch is not None:
            self._watch.chunk(self._converter)

    def finish(self) -> None:
        """Log the stream if it has diagnostics, was repaired or ended with an error.

        Call this method when the stream has ended.

        Only the first call has an effect.
        """
        if self._finished:
            return
        self._finished = True
        converter = self._converter
        self()
        found, error = converter.diagnostics, self._error()
        if self._watch is not None:
            self._watch.end(converter, error)
        if error is not None:
            level, event = logging.WARNING, "a stream ended with an error"
        elif converter.repaired:
            level, event = logging.INFO, "repaired a stream"
        elif found and self._target not in ("same", converter.dialect):
            level, event = logging.INFO, "converted a stream that has diagnostics"
        elif found:
            level, event = logging.DEBUG, "passed a stream unchanged that has diagnostics"
        elif converter.error is not None:
            level, event = logging.DEBUG, "passed a stream unchanged because its dialect is unknown"
        else:
            return
        if not LOGGER.isEnabledFor(level):
            return
        self._looks = max(self._looks, 1)
        context = self._context()
        counts = Counter(code_label(diagnostic.code, diagnostic.detail) for diagnostic in found)
        facts = {
            "url": context.url,
            "model": context.model,
            "request_id": context.request_id,
            "dialect": context.dialect,
            "diagnostics": ",".join([f"{code}:{count}" for code, count in sorted(counts.items())]) or None,
            "error": None if error is None else error.rule,
        }
        LOGGER.log(level, "%s: %s", event, _words(facts))

    def _error(self) -> StreamError | None:
        """Return the error that ended the stream, if any."""
        converter = self._converter
        error = converter.error
        passes = self._target == "same" and not self._raises and not converter.repaired
        return None if passes and isinstance(error, UnknownDialect) else error

    def _context(self) -> StreamContext:
        if self._model is None and self._looks:
            self._looks -= 1
            self._model = self._converter.response.model
        model = self._requested_model() if self._model is None else self._model
        return StreamContext(self._url, model, self._request_id, self._converter.dialect)
