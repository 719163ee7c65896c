"""Which answers are repaired under a client, and into what: by endpoint, status, type and what the request asked for.

Sans-I/O, shared by every HTTP client. It knows which dialect a client reads at which path, and gives the step that
turns the pieces of one answer into repaired ones; what stands in them, `StreamConverter` knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, cast, get_args
from urllib.parse import unquote, urlsplit

from streamweld._messages import choice_message
from streamweld._step import Step
from streamweld.convert import StreamConverter, Target
from streamweld.errors import LimitExceeded, UpstreamError, UsageError
from streamweld.integrations._answers import LIMITS, check_folder, is_event_stream
from streamweld.integrations._inflate import BrokenBodyError
from streamweld.integrations._tell import Teller, callback, plain_url, request_id
from streamweld.integrations._tools import declared_tools
from streamweld.options import DIALECTS, Policy, with_text_calls

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from streamweld.integrations._tell import OnDiagnostic
    from streamweld.options import Base, Dialect, Limits, TextCalls
    from streamweld.testing.recording import End, Recorder

__all__ = ["EVENT_STREAM", "Body", "OnError", "RepairOptions", "Settings"]

OnError: TypeAlias = Literal["client", "raise"]

EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
"""The type of every repaired body, whatever the gateway called it."""

# How the paths end at which the official clients read event streams of a dialect. What stands beside them (files, runs
# of assistants, images, speech, the legacy completions) has events of its own, and is never touched.
_ENDPOINTS: Final[dict[str, Target]] = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "anthropic",
    ":streamGenerateContent": "gemini",
}
_VERTEX: Final = "/publishers/anthropic/"  # Vertex AI serves several makers' models at one kind of path
_VERTEX_END: Final = ":streamRawPredict"
_TARGETS: Final = get_args(Target)
_ON_ERROR: Final = ("client", "raise")
_NO_BODY: Final = 204


class RepairOptions(TypedDict, total=False):
    """The keywords of everything that repairs under a client.

    policy: what is repaired and what is an error, as of `StreamParser`.
    text_calls: what becomes of tool calls that a model wrote into its text, as of `Policy`; it holds over that of
        `policy`. The tools are those that the request declares; a request without tools, or with the tool choice
        `none`, gets no such call.
    limits: how much of an answer is taken, as of `StreamParser`; without it, 256 MiB of one answer.
    upstream_dialect: the dialect that the gateway answers in, or `auto`, if it is not the one that the client reads;
        the answer is converted. The request goes out as the client wrote it: to convert that as well, take
        `streamweld proxy`.
    endpoints: other ends of paths, and the dialect that the client reads there, or `same`: whatever comes. As in
        `{"/api/chat": "ai-sdk-ui"}`.
    upstream: the former name of `upstream_dialect`.
    on_diagnostic: called with each `Diagnostic` and its `StreamContext` when the answer is read; a function of one
        argument gets the diagnostic alone. An exception that it raises is logged, and the stream goes on.
    on_error: what a client sees of a stream that was cut, is broken or passes a limit: `client`: an error event of its
        dialect, which it raises as its own exception; `raise`: the `StreamError`, with `.partial`, out of its loop.
    record: a folder. Each stream is recorded there before it is repaired, one file a stream, in the format that
        `streamweld.testing.recording` describes: its bytes as they were read, and when. No header but the content
        type is recorded, and nothing of the request but its method and path.
    """

    policy: Base | Policy
    text_calls: TextCalls
    limits: Limits
    upstream_dialect: Dialect | None
    upstream: Dialect | None
    endpoints: Mapping[str, Target]
    on_diagnostic: OnDiagnostic | None
    on_error: OnError
    record: str | os.PathLike[str] | None


class Settings:
    """The options of one hook, checked once: `RepairOptions`.

    Raises:
        UsageError: for an option that cannot be.
    """

    __slots__ = ("_endpoints", "_limits", "_on_diagnostic", "_policy", "_promotes", "_raises", "_record", "_upstream")

    def __init__(
        self,
        *,
        policy: Base | Policy = "standard",
        text_calls: TextCalls | None = None,
        limits: Limits = LIMITS,
        upstream_dialect: Dialect | None = None,
        upstream: Dialect | None = None,
        endpoints: Mapping[str, Target] | None = None,
        on_diagnostic: OnDiagnostic | None = None,
        on_error: OnError = "client",
        record: str | os.PathLike[str] | None = None,
    ) -> None:
        if on_error not in _ON_ERROR:
            raise UsageError(f"on_error={on_error!r}: it must be one of {', '.join(_ON_ERROR)}")
        if upstream is not None and upstream_dialect is not None:
            raise UsageError("upstream= is the former name of upstream_dialect=: give one of them")
        spoken = upstream if upstream_dialect is None else upstream_dialect
        if spoken is not None and spoken not in DIALECTS:
            name = "upstream" if upstream_dialect is None else "upstream_dialect"
            raise UsageError(choice_message(name, spoken, DIALECTS))
        given = cast("object", endpoints or {})
        if not isinstance(given, Mapping) or not all(
            isinstance(end, str) for end in cast("Mapping[object, object]", given)
        ):
            raise UsageError(f"endpoints={endpoints!r}: it must be a mapping of ends of paths to dialects")
        self._endpoints: dict[str, Target] = {**_ENDPOINTS, **(endpoints or {})}
        for end, target in self._endpoints.items():
            if target not in _TARGETS:
                raise UsageError(choice_message(f"endpoints[{end!r}]", target, _TARGETS))
        self._policy: Base | Policy = policy if text_calls is None else with_text_calls(policy, text_calls)
        self._promotes = isinstance(self._policy, Policy) and self._policy.text_calls == "promote"
        self._limits = limits
        self._upstream: Dialect | None = spoken
        self._on_diagnostic = callback(on_diagnostic)
        self._raises = on_error == "raise"
        self._record = check_folder(record)
        self._converter("chat", "", {}, include_usage=True)

    def body(
        self, method: str, url: str, status: int, headers: Mapping[str, str], request: Callable[[], bytes | None]
    ) -> Body | None:
        """The step for one answer; None for those that are left as they are.

        Args:
            method, url: of the request.
            status, headers: of the answer; names of headers are compared without case.
            request: gives the body of the request, if that can be had. It is asked only where the type does not tell.
        """
        target = self._target(unquote(urlsplit(url).path).rstrip("/")) if method == "POST" else None
        content_type = headers.get("content-type", "")
        if target is None or not 200 <= status < 300 or status == _NO_BODY:
            return None
        asked: Any = _asked(request) if self._promotes else None
        if not is_event_stream(content_type):
            # Called something else, or nothing: a client that asked for an event stream reads it as one.
            asked = _asked(request) if asked is None else asked
            if asked.get("stream") is not True:
                return None
        usage = True
        if target == "chat" and self._upstream not in (None, "chat"):
            asked = _asked(request) if asked is None else asked
            wanted = asked.get("stream_options")
            usage = isinstance(wanted, dict) and cast("dict[str, object]", wanted).get("include_usage") is True
        # Some clients keep bytes that are no text as halves of surrogate pairs; what is told of a type are words.
        said = content_type if content_type.isprintable() else ""
        converter = self._converter(target, said, asked, include_usage=usage)
        teller = Teller(converter, self._on_diagnostic, plain_url(url), request_id(headers))
        recorder = None
        if self._record is not None:
            from streamweld.testing.recording import Recorder

            path = unquote(urlsplit(url).path)
            recorder = Recorder(self._record, method=method, path=path, status=status, content_type=said)
        return Body(converter, teller, self._limits.max_inflate_ratio, recorder, raises=self._raises)

    def _target(self, path: str) -> Target | None:
        if path.endswith(_VERTEX_END) and _VERTEX in path:
            return "anthropic"
        ends = [end for end in self._endpoints if path.endswith(end)]
        return self._endpoints[max(ends, key=len)] if ends else None

    def _converter(
        self, target: Target, content_type: str, asked: Mapping[str, Any] | None, *, include_usage: bool
    ) -> StreamConverter:
        return StreamConverter(
            source=self._upstream or ("auto" if target == "same" else target),
            target=target,
            policy=self._policy,
            limits=self._limits,
            tools=declared_tools(asked or {}) if self._promotes else None,
            content_type=content_type or None,
            include_usage=include_usage,
            cut_ending="error",
        )


# Lines of an event, up to and including the blank lines behind it; a line of JSON alone. At most one event is complete
# in each, if it begins at the beginning of a line.
_EVENT: Final = re.compile(rb"(?:[A-Za-z:][^\r\n]*(?:\r\n|\r|\n))*+[^\r\n]*+[\r\n]*+")
_LINE: Final = re.compile(rb"[^\r\n]*[\r\n]*")


class Body(Step[bytes]):
    """The step of one answer: repaired bytes.

    What the connection raises goes on as it is, because the client knows it best; the converter is told that the
    transport has failed. Pieces should be small, for instance of `_inflate.SLICE` bytes: what one of them becomes is in
    memory at once.
    """

    __slots__ = ("_raises", "_recorder", "_tell", "converter", "max_ratio")

    def __init__(
        self,
        converter: StreamConverter,
        teller: Teller,
        max_ratio: int | None,
        recorder: Recorder | None,
        *,
        raises: bool,
    ) -> None:
        super().__init__()
        self.max_ratio = max_ratio
        self.converter: StreamConverter = converter
        self._tell = teller
        self._raises = raises
        self._recorder = recorder

    def step(self, chunk: bytes | bytearray | memoryview) -> bytes:
        if self._recorder is not None:
            self._recorder.piece(chunk)
        if not self._raises:
            given = self.converter.feed(chunk)
            self._tell.chunk()
            return self._looked(given)
        # Event by event, so that all that stands before the fault goes out, and of the ending nothing: a client would
        # raise its own exception from that before ours comes.
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
        """The stream is over, or nobody reads it any more."""
        self._tell.finish()

    def failed(self, error: Exception) -> bytes:
        self._recorded("failed")
        if isinstance(error, LimitExceeded):
            return self._looked(self.converter.exceed(error.limit_name))
        left = self.converter.close(broken=True)
        if isinstance(error, BrokenBodyError):  # no client raises this: it is the converter's to report
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
        # Behind an error of the gateway the rest is read, for the connection; behind ours there is nothing to wait for.
        self.over = not isinstance(error, UpstreamError)
        if self.over:
            self.finish()
        unsaid = isinstance(error, LimitExceeded) and self.converter.dialect is None and not given
        if not (self._raises or unsaid):  # `unsaid`: there is no dialect to write an ending in
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


def _asked(request: Callable[[], bytes | None]) -> dict[str, Any]:
    """The request as an object, where it is one that says something of streams or tools; else empty."""
    body = request()
    if body is None or (b'"stream' not in body and b'tools"' not in body and b'functions"' not in body):
        return {}
    try:
        asked: object = json.loads(body)
    except ValueError:
        return {}
    return cast("dict[str, Any]", asked) if isinstance(asked, dict) else {}
