"""Select the responses to repair, and create the repair step for each of them.

The selection and the dialect depend on the endpoint, status, content type and request. The hooks for all HTTP clients
use this module, which does no I/O. `Body` turns the chunks of one response into repaired chunks, using
`StreamConverter`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, cast, get_args
from urllib.parse import unquote, urlsplit

from streamweld._chunk_loop import ChunkProcessor
from streamweld._messages import choice_message
from streamweld.convert import StreamConverter, Target
from streamweld.errors import LimitExceeded, UsageError
from streamweld.integrations._defaults import LIMITS, READS_ON, check_folder, is_event_stream
from streamweld.integrations._inflate import BrokenBodyError
from streamweld.integrations._reporting import DiagnosticReporter, callback, plain_url, request_id
from streamweld.integrations._tools import declared_tools, request_of
from streamweld.options import DIALECTS, Policy, with_text_calls

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from streamweld.integrations._reporting import OnDiagnostic
    from streamweld.options import Base, Dialect, Limits, TextCalls
    from streamweld.testing.recording import End, Recorder

__all__ = ["EVENT_STREAM", "Body", "OnError", "RepairOptions", "Settings"]

OnError: TypeAlias = Literal["client", "raise"]

EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
"""The content type of every repaired body, regardless of the type that the gateway sent."""

# The path suffixes from which the official clients read event streams, and the dialect that they expect there. Other
# endpoints (files, assistant runs, images, speech, legacy completions) have their own events and are never modified.
_ENDPOINTS: Final[dict[str, Target]] = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "anthropic",
    ":streamGenerateContent": "gemini",
}
_VERTEX: Final = "/publishers/anthropic/"  # Vertex AI uses similar paths for the models of several vendors
_VERTEX_END: Final = ":streamRawPredict"
_MODEL: Final = re.compile(r"/models/([^/:]+):[A-Za-z]+$")
_TARGETS: Final = get_args(Target)
_ON_ERROR: Final = ("client", "raise")
_NO_BODY: Final = 204


class RepairOptions(TypedDict, total=False):
    """The keyword arguments of every function that adds repair to a client.

    policy: which faults are repaired and which raise, as in `StreamParser`.
    text_calls: what happens to tool calls that a model wrote into its text, as in `Policy`; overrides the value in
        `policy`. Only calls of tools that the request declares are considered. If the request's tool choice is `none`,
        no calls are considered.
    limits: the limits for one response, as in `StreamParser`. The default also limits a response to 256 MiB.
    upstream_dialect: the dialect in which the gateway responds, or `auto`. Set this option if the client reads another
        dialect; the response is then converted. To convert the request too, use `streamweld proxy`.
    endpoints: additional path suffixes, each with the dialect that the client reads there, or `same` to keep the
        dialect of the response. Example: `{"/api/chat": "ai-sdk-ui"}`.
    on_diagnostic: called with each `Diagnostic` and its `StreamContext` while the response is read; a function with one
        parameter receives only the diagnostic. If the stream ends with an error, the last diagnostic reports the error,
        and the code of that diagnostic is the `rule` of the error. An exception that the function raises is logged, and
        the stream continues.
    on_error: how a stream that is truncated, is broken or exceeds a limit is reported. `client`: as an error event in
        the client's dialect, which the client raises as its own exception. `raise`: the loop that reads the stream
        raises a `StreamError`, whose `partial` contains what was read before.
    record: a folder. Each stream is recorded before it is repaired, one file per stream: the bytes as they were read,
        with their times. `streamweld.testing.recording` describes the format. In addition to the body, only the
        content type and the method and path of the request are recorded.
    """

    policy: Base | Policy
    text_calls: TextCalls
    limits: Limits
    upstream_dialect: Dialect | None
    endpoints: Mapping[str, Target]
    on_diagnostic: OnDiagnostic | None
    on_error: OnError
    record: str | os.PathLike[str] | None


def _unknown_option(name: str) -> str:
    if name == "tools":
        return "there is no option tools=: the tools are read from the body of each request"
    known = list(RepairOptions.__annotations__)
    near = get_close_matches(name, known, 1)
    return f"there is no option {name}=; " + (f"did you mean {near[0]}=?" if near else f"options: {', '.join(known)}")


class Settings:
    """The validated `RepairOptions` of one hook.

    Raises:
        UsageError: if an option is invalid.
    """

    __slots__ = ("_endpoints", "_limits", "_on_diagnostic", "_policy", "_promotes", "_raises", "_record", "_upstream")

    def __init__(
        self,
        *,
        policy: Base | Policy = "standard",
        text_calls: TextCalls | None = None,
        limits: Limits = LIMITS,
        upstream_dialect: Dialect | None = None,
        endpoints: Mapping[str, Target] | None = None,
        on_diagnostic: OnDiagnostic | None = None,
        on_error: OnError = "client",
        record: str | os.PathLike[str] | None = None,
        **unknown: object,
    ) -> None:
        if unknown:
            raise UsageError(_unknown_option(next(iter(unknown))))
        if on_error not in _ON_ERROR:
            raise UsageError(f"on_error={on_error!r}: it must be one of {', '.join(_ON_ERROR)}")
        if upstream_dialect is not None and upstream_dialect not in DIALECTS:
            raise UsageError(choice_message("upstream_dialect", upstream_dialect, DIALECTS))
        given = cast("object", endpoints or {})
        if not isinstance(given, Mapping) or not all(
            isinstance(end, str) for end in cast("Mapping[object, object]", given)
        ):
            raise UsageError(f"endpoints={endpoints!r}: it must be a mapping from path suffixes to dialects")
        self._endpoints: dict[str, Target] = {**_ENDPOINTS, **(endpoints or {})}
        for end, target in self._endpoints.items():
            if target not in _TARGETS:
                raise UsageError(choice_message(f"endpoints[{end!r}]", target, _TARGETS))
        self._policy: Base | Policy = policy if text_calls is None else with_text_calls(policy, text_calls)
        self._promotes = isinstance(self._policy, Policy) and self._policy.text_calls == "promote"
        self._limits = limits
        self._upstream: Dialect | None = upstream_dialect
        self._on_diagnostic = callback(on_diagnostic)
        self._raises = on_error == "raise"
        self._record = check_folder(record)
        self._converter("chat", "", {}, include_usage=True)

    def body(
        self, method: str, url: str, status: int, headers: Mapping[str, str], request: Callable[[], bytes | None]
    ) -> Body | None:
        """Return the repair step for one response, or None if the response should be left unchanged.

        Args:
            method, url: the method and URL of the request.
            status, headers: the status and headers of the response; header names are case-insensitive.
            request: a function that returns the body of the request, if available. The function is called only if the
                result depends on the body.
        """
        target = self._target(unquote(urlsplit(url).path).rstrip("/")) if method == "POST" else None
        content_type = headers.get("content-type", "")
        if target is None or not 200 <= status < 300 or status == _NO_BODY:
            return None
        request_body: Any = request_of(request()) if self._promotes else None
        if not is_event_stream(content_type):
            # The content type is missing or wrong. If the client requested an event stream, it will parse the response
            # as one.
            request_body = request_of(request()) if request_body is None else request_body
            if request_body.get("stream") is not True:
                return None
        usage = True
        if target == "chat" and self._upstream not in (None, "chat"):
            request_body = request_of(request()) if request_body is None else request_body
            wanted = request_body.get("stream_options")
            usage = isinstance(wanted, dict) and cast("dict[str, object]", wanted).get("include_usage") is True
        # Some clients decode non-ASCII bytes in a header as lone surrogates, which the converter does not accept.
        given_value = content_type if content_type.isprintable() else ""
        converter = self._converter(target, given_value, request_body, include_usage=usage)
        named = cache(lambda: _requested_model(request, url))
        identity = request_id(headers)
        stream = (plain_url(url), identity, named)
        reporter = DiagnosticReporter(converter, self._on_diagnostic, *stream, target=target, raises=self._raises)
        recorder = None
        if self._record is not None:
            from streamweld.testing.recording import Recorder

            path = unquote(urlsplit(url).path)
            recorder = Recorder(
                self._record,
                method=method,
                path=path,
                status=status,
                content_type=given_value,
                request_id=identity,
            )
        return Body(converter, reporter, self._limits.max_inflate_ratio, recorder, raises=self._raises)

    def _target(self, path: str) -> Target | None:
        if path.endswith(_VERTEX_END) and _VERTEX in path:
            return "anthropic"
        ends = [end for end in self._endpoints if path.endswith(end)]
        return self._endpoints[max(ends, key=len)] if ends else None

    def _converter(
        self, target: Target, content_type: str, request_body: Mapping[str, Any] | None, *, include_usage: bool
    ) -> StreamConverter:
        return StreamConverter(
            source=self._upstream or ("auto" if target == "same" else target),
            target=target,
            policy=self._policy,
            limits=self._limits,
            tools=declared_tools(request_body or {}) if self._promotes else None,
            content_type=content_type or None,
            include_usage=include_usage,
            cut_ending="error",
        )


# `_EVENT` matches the lines of an event with the blank lines after it, or one line of JSON. A match that starts at the
# beginning of a line completes at most one event. `_LINE` matches one line.
_EVENT: Final = re.compile(rb"(?:[A-Za-z:][^\r\n]*(?:\r\n|\r|\n))*+[^\r\n]*+[\r\n]*+")
_LINE: Final = re.compile(rb"[^\r\n]*[\r\n]*")


class Body(ChunkProcessor[bytes]):
    """The step that repairs the bytes of one response.

    Exceptions from the connection are raised unchanged, because they describe the failure best. The failure is also
    passed to the converter. Chunks should be small (for example, `_inflate.SLICE` bytes), because all output for a
    chunk is in memory at once.
    """

    __slots__ = ("_raises", "_recorder", "_tell", "converter", "max_ratio")

    def __init__(
        self,
        converter: StreamConverter,
        reporter: DiagnosticReporter,
        max_ratio: int | None,
        recorder: Recorder | None,
        *,
        raises: bool,
    ) -> None:
        super().__init__()
        self.max_ratio = max_ratio
        self.converter: StreamConverter = converter
        self._tell = reporter
        self._raises = raises
        self._recorder = recorder

    def step(self, chunk: bytes | bytearray | memoryview) -> bytes:
        if self._recorder is not None:
            self._recorder.piece(chunk)
        if not self._raises:
            given = self.converter.feed(chunk)
            self._tell.chunk()
            return self._looked(given)
        # Feed event by event, so that everything before the fault is sent but the error ending is not. If the client
        # received the error ending, it would raise its own exception before the `StreamError` is raised.
        out: list[bytes] = []
        for event in _events(bytes(chunk)):
            out.append(self._looked(self.converter.feed(event)))
            if self.fault is not None:
                break
        self._tell.chunk()
        return b"".join(out)

    def end(self, *, broken: bool = False) -> bytes:
        self._recorded("failed" if broken else "complete")
        given = self._looked(self.converter.close(broken=broken))
        self.finish()
        return given

    def finish(self) -> None:
        """Finish the report and the recording after the stream has ended or the reader has stopped."""
        self._tell.finish()

    def failed(self, error: Exception) -> bytes:
        self._recorded("failed")
        if isinstance(error, LimitExceeded):
            return self._looked(self.converter.exceed(error.limit_name))
        left = self.converter.close(broken=True)
        if isinstance(error, BrokenBodyError):  # HTTP clients do not report this error, so the converter must report it
            self.over = True
            return self._looked(left)
        self._tell()
        self.finish()
        self.fault = error
        return b""

    def _recorded(self, how: End) -> None:
        if self._recorder is not None:
            self._recorder.end(how)

    def _looked(self, given: bytes) -> bytes:
        self._tell()
        error = self.converter.error
        if error is None:
            return given
        self.over = not isinstance(error, READS_ON)
        if self.over:
            self.finish()
        unsaid = isinstance(error, LimitExceeded) and self.converter.dialect is None and not given
        if not (self._raises or unsaid):  # `unsaid`: the dialect is unknown, so an error ending cannot be written
            return given
        self.fault = error
        return b""


def _events(chunk: bytes) -> Iterator[bytes]:
    at = 0
    pattern = _LINE  # the chunk may begin in the middle of a line
    while at < len(chunk):
        found = cast("re.Match[bytes]", pattern.match(chunk, at))
        yield found[0]
        at = found.end()
        pattern = _EVENT


def _requested_model(request: Callable[[], bytes | None], url: str) -> str | None:
    """Return the requested model, from the path (Gemini, Vertex AI) or the body of the request."""
    in_path = _MODEL.search(unquote(urlsplit(url).path))
    model = in_path[1] if in_path is not None else request_of(request()).get("model")
    return model if isinstance(model, str) else None
