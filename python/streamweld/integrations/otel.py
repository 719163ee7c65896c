"""OpenTelemetry: repairs as events of a span, an answer as the GenAI conventions write messages (extra `otel`).

    RepairMiddleware(app, on_diagnostic=otel.record)               # or any other `on_diagnostic`

`record` writes on the span that is there and opens none: official clients have spans of their own. `RequestSpan` is for
whoever makes the request himself, as the proxy does. `to_otel_messages` is pure and needs nothing. It knows names and
shapes of the conventions, all of them in `NAMES`, and no stream.
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

__all__ = ["METRICS", "NAMES", "SCHEMA", "RequestSpan", "StreamMetrics", "record", "to_otel_messages"]

SCHEMA: Final = "semantic-conventions-genai, development, 2026-11"
"""What the names below were read from. None of them is stable yet."""

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
        "usage.input_tokens": "gen_ai.usage.input_tokens",
        "usage.output_tokens": "gen_ai.usage.output_tokens",
        "usage.cached_input_tokens": "gen_ai.usage.cache_read.input_tokens",
        "usage.cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
        "usage.reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
        "server.address": "server.address",
        "server.port": "server.port",
        "status": "http.response.status_code",
    }
)
_FINISH: Final = {"tool_calls": "tool_call", "other": "stop"}
_USAGE: Final = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")
_counts: WeakKeyDictionary[Span, int] = WeakKeyDictionary()


def record(diagnostic: Diagnostic) -> None:
    """One diagnostic as an event of the current span, which also counts them; nothing where no span records.

    To be given as `on_diagnostic`. The `detail` is left out: it may hold what a model wrote.

    Raises:
        MissingExtra: where `opentelemetry-api` is not installed.
    """
    need_otel()
    from opentelemetry import trace

    _record(trace.get_current_span(), diagnostic)


def _record(span: Span, diagnostic: Diagnostic) -> None:
    if not span.is_recording():
        return
    told: dict[str, str | int | None] = {
        "anomaly.code": diagnostic.code,
        "anomaly.severity": diagnostic.severity,
        "anomaly.byte_offset": diagnostic.byte_offset,
        "anomaly.event": diagnostic.event_ordinal,
        "anomaly.part": diagnostic.part,
    }
    span.add_event(NAMES["anomaly"], {NAMES[name]: value for name, value in told.items() if value is not None})
    _counts[span] = _counts.get(span, 0) + 1
    span.set_attribute(NAMES["anomaly.count"], _counts[span])


class RequestSpan:
    """One client span for one request to a model: `chat <model>`.

    Args:
        upstream: the URL that is asked; host and port are told, nothing else of it.
        dialect: what the upstream speaks, which stands for its provider.
        model: the one that is asked for.
        stream: whether a stream is.
        headers: of the request that came in; a `traceparent` among them is the parent.

    Raises:
        MissingExtra: where `opentelemetry-api` is not installed.
    """

    def __init__(
        self, upstream: str, dialect: str, model: str | None, *, stream: bool, headers: Mapping[str, str]
    ) -> None:
        need_otel()
        from opentelemetry import propagate, trace

        parts = urlsplit(upstream)
        told = {
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
            attributes={NAMES[name]: value for name, value in told.items() if value is not None},
        )

    def inject(self, headers: MutableMapping[str, str]) -> None:
        """Write into the headers of the request that goes out whose child its spans are."""
        from opentelemetry import propagate, trace

        propagate.inject(headers, context=trace.set_span_in_context(self._span))

    def record(self, diagnostic: Diagnostic) -> None:
        """One diagnostic as an event."""
        _record(self._span, diagnostic)

    def end(self, *, status: int, first: float | None, fault: str | None, response: Response | None) -> None:
        """The request is over: its HTTP status, seconds to the first bytes, what went wrong, what was said."""
        from opentelemetry.trace import Status, StatusCode

        span = self._span
        told: dict[str, Any] = {"status": status or None, "response.first": first, "error": fault}
        if response is not None:
            told |= {
                "completeness": response.completeness,
                "response.id": response.id,
                "response.model": response.model,
                "response.finish_reasons": [_finish(choice) for choice in response.choices] or None,
            }
            if response.usage is not None:
                told |= {f"usage.{name}": getattr(response.usage, name) for name in _USAGE}
        for name, value in told.items():
            if value is not None:
                span.set_attribute(NAMES[name], value)
        if fault is not None:
            span.set_status(Status(StatusCode.ERROR, fault))
        span.end()


def to_otel_messages(response: Response) -> list[dict[str, Any]]:
    """What `gen_ai.output.messages` holds: one message a choice, each part in its place. It is the user's data.

    Args:
        response: of a parser, an iterator or a converter.

    Returns:
        Objects that `json.dumps` takes: `role`, `parts`, `finish_reason`. The arguments of a call are an object where
        they are one, else the text as it came. A source is no part: the conventions have none.

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
