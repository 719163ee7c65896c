"""OpenTelemetry: record repairs as span events, and responses as messages in the GenAI conventions (extra `otel`).

    RepairMiddleware(app, on_diagnostic=otel.record)               # or any other `on_diagnostic`

`record` writes to the current span. `record` never starts a span, because the instrumentation of official clients
starts one. `RequestSpan` is for code that sends the request itself, such as the proxy. `to_otel_messages` is a pure
function without dependencies. All names from the conventions are in `NAMES`.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from streamweld.errors import ArgumentsError
from streamweld.events import File, ReasoningDone, RefusalDone, TextDone, ToolCall, ToolResult
from streamweld.integrations.otel_metrics import METRICS, StreamMetrics, need_otel, provider_name

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from opentelemetry.trace import Span

    from streamweld.events import Diagnostic
    from streamweld.response import Choice, Response

__all__ = ["METRICS", "NAMES", "SCHEMA", "RequestSpan", "StreamMetrics", "exports_spans", "record", "to_otel_messages"]

SCHEMA: Final = "semantic-conventions-genai, development, 2026-11"
"""The release of the conventions that defines the names below. None of the names is stable yet."""

NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "anomaly": "streamweld.anomaly",
        "anomaly.code": "streamweld.anomaly.code",
        "anomaly.severity": "streamweld.anomaly.severity",
        "anomaly.byte_offset": "streamweld.anomaly.byte_offset",
        "anomaly.event": "streamweld.anomaly.event",
        "anomaly.part": "streamweld.anomaly.part",
        "anomaly.count": "streamweld.anomaly.count",
        "completeness": "streamweld.completeness",
        "error": "error.type",
        "operation": "gen_ai.operation.name",
        "provider": "gen_ai.provider.name",
        "request.model": "gen_ai.request.model",
        "request.stream": "gen_ai.request.stream",
        "response.id": "gen_ai.response.id",
        "response.model": "gen_ai.response.model",
        "response.finish_reasons": "gen_ai.response.finish_reasons",
        "response.first": "gen_ai.response.time_to_first_chunk",
        "usage.input": "gen_ai.usage.input_tokens",
        "usage.output": "gen_ai.usage.output_tokens",
        "usage.cached_read": "gen_ai.usage.cache_read.input_tokens",
        "usage.cache_write": "gen_ai.usage.cache_creation.input_tokens",
        "usage.reasoning": "gen_ai.usage.reasoning.output_tokens",
        "server.address": "server.address",
        "server.port": "server.port",
        "status": "http.response.status_code",
    }
)
_FINISH: Final = {"tool_calls": "tool_call", "other": "stop"}
# Fields of the normalized usage. The conventions count cached tokens as input, unlike some APIs.
_USAGE: Final = ("input", "output", "cached_read", "cache_write", "reasoning")
_counts: WeakKeyDictionary[Span, int] = WeakKeyDictionary()


def exports_spans() -> bool:
    """Return False if no OpenTelemetry SDK is set up, because all spans would then be discarded."""
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

    return not isinstance(get_tracer_provider(), ProxyTracerProvider)


def record(diagnostic: Diagnostic) -> None:
    """Record one diagnostic as an event of the current span, and count it on the span. Does nothing if no span is
    recording.

    Pass this function as `on_diagnostic`. The `detail` is omitted, because it may contain model output.

    Raises:
        MissingExtra: if `opentelemetry-api` is not installed.
    """
    need_otel()
    from opentelemetry import trace

    _record(trace.get_current_span(), diagnostic)


def _record(span: Span, diagnostic: Diagnostic) -> None:
    if not span.is_recording():
        return
    sent: dict[str, str | int | None] = {
        "anomaly.code": diagnostic.code,
        "anomaly.severity": diagnostic.severity,
        "anomaly.byte_offset": diagnostic.byte_offset,
        "anomaly.event": diagnostic.event_ordinal,
        "anomaly.part": diagnostic.part,
    }
    span.add_event(NAMES["anomaly"], {NAMES[name]: value for name, value in sent.items() if value is not None})
    _counts[span] = _counts.get(span, 0) + 1
    span.set_attribute(NAMES["anomaly.count"], _counts[span])


class RequestSpan:
    """A client span for one request to a model: `chat <model>`.

    Args:
        upstream: the URL of the request. Only the host and port of the URL are recorded.
        dialect: the dialect of the upstream, which determines the provider name.
        model: the requested model.
        stream: whether the request asks for a stream.
        headers: the headers of the incoming request; their `traceparent`, if present, identifies the parent span.

    Raises:
        MissingExtra: if `opentelemetry-api` is not installed.
    """

    def __init__(
        self, upstream: str, dialect: str, model: str | None, *, stream: bool, headers: Mapping[str, str]
    ) -> None:
        need_otel()
        from opentelemetry import propagate, trace

        parts = urlsplit(upstream)
        sent = {
            "operation": "chat",
            "provider": provider_name(dialect),
            "request.model": model,
            "request.stream": stream,
            "server.address": parts.hostname,
            "server.port": parts.port or {"http": 80, "https": 443}.get(parts.scheme),
        }
        self._span = trace.get_tracer("streamweld").start_span(
            f"chat {model}" if model else "chat",
            context=propagate.extract(headers),
            kind=trace.SpanKind.CLIENT,
            attributes={NAMES[name]: value for name, value in sent.items() if value is not None},
        )

    def inject(self, headers: MutableMapping[str, str]) -> None:
        """Write the trace context into the outgoing headers, so that the upstream's spans become children of this
        span.
        """
        from opentelemetry import propagate, trace

        propagate.inject(headers, context=trace.set_span_in_context(self._span))

    def record(self, diagnostic: Diagnostic) -> None:
        """Record one diagnostic as a span event."""
        _record(self._span, diagnostic)

    def end(self, *, status: int, first: float | None, fault: str | None, response: Response | None) -> None:
        """Set the HTTP status, the seconds to the first bytes, the fault and the response, and end the span."""
        from opentelemetry.trace import Status, StatusCode

        span = self._span
        sent: dict[str, Any] = {"status": status or None, "response.first": first, "error": fault}
        if response is not None:
            sent |= {
                "completeness": response.completeness,
                "response.id": response.id,
                "response.model": response.model,
                "response.finish_reasons": [_finish(choice) for choice in response.choices] or None,
            }
            if response.usage is not None:
                usage = response.usage.normalized()
                sent |= {f"usage.{name}": getattr(usage, name) for name in _USAGE}
        for name, value in sent.items():
            if value is not None:
                span.set_attribute(NAMES[name], value)
        if fault is not None:
            span.set_status(Status(StatusCode.ERROR, fault))
        span.end()


def to_otel_messages(response: Response) -> list[dict[str, Any]]:
    """Return the response as the value of `gen_ai.output.messages`: one message per choice, with its parts in order.

    The messages contain user data.

    Args:
        response: the response of a parser, an iterator or a converter.

    Returns:
        Objects that `json.dumps` accepts, with `role`, `parts` and `finish_reason`. The arguments of a call are an
        object if they parse as one, otherwise the original text. Sources are omitted, because the conventions have no
        part for them.

    >>> from streamweld import parse
    >>> body = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n'
    >>> to_otel_messages(parse(body))
    [{'role': 'assistant', 'parts': [{'type': 'text', 'content': 'Hi'}], 'finish_reason': 'stop'}]
    """
    return [
        {
            "role": "assistant",
            "parts": [part for item in choice.items if (part := _part(item)) is not None],
            "finish_reason": _finish(choice),
        }
        for choice in response.choices
    ]


def _finish(choice: Choice) -> str:
    reason = choice.finish_reason
    return "error" if reason is None else _FINISH.get(reason, reason)


def _part(item: object) -> dict[str, Any] | None:
    match item:
        case TextDone(text=text):
            return {"type": "text", "content": text}
        case ReasoningDone(text=text):
            return {"type": "reasoning", "content": text} if text else None
        case RefusalDone(text=text):
            return {"type": "refusal", "content": text}
        case ToolCall():
            kind = "server_tool_call" if item.provider_executed else "tool_call"
            return {"type": kind, "id": item.call_id, "name": item.name, "arguments": _arguments(item)}
        case ToolResult(call_id=call_id, output=output):
            return {"type": "server_tool_call_response", "id": call_id, "response": output}
        case File(media_type=media, data=data, url=url):
            modality = (media or "").partition("/")[0] or "file"
            if url is not None:
                return {"type": "uri", "modality": modality, "mime_type": media, "uri": url}
            return {"type": "blob", "modality": modality, "mime_type": media, "content": data}
        case _:
            return None


def _arguments(call: ToolCall) -> Any:
    try:
        return json.loads(json.dumps(call.parsed))
    except ArgumentsError:
        return call.arguments
