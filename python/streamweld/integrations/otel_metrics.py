"""OpenTelemetry metrics for streams (extra `otel`): latency, gaps between chunks, token rate, repairs, truncation.

    metrics = otel.StreamMetrics()                                    # once per process
    client = repair(OpenAI(), on_diagnostic=metrics)                  # and every other `on_diagnostic`
    for event in metrics.measure(sw.iter_batches(response.iter_bytes())): ...

While a stream is read, only the arrival time of each chunk is stored. The measurements are recorded when the stream
ends.
"""

from __future__ import annotations

from collections import Counter, deque
from importlib.util import find_spec
from itertools import pairwise
from math import ceil
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from streamweld._spec import load_conversions
from streamweld.errors import MissingExtra, StreamError, UsageError
from streamweld.events import ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta, ToolCallStarted
from streamweld.integrations._reporting import ending

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Mapping

    from opentelemetry.metrics import Histogram, Meter, MeterProvider

    from streamweld.errors import StreamweldError
    from streamweld.events import Diagnostic, Event
    from streamweld.integrations._reporting import StreamContext
    from streamweld.iterators import AsyncEventIterator, EventIterator
    from streamweld.response import Response

__all__ = ["METRICS", "StreamMetrics", "Watch", "need_otel", "provider_name"]

METRICS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "duration": "gen_ai.client.operation.duration",
        "first_chunk": "gen_ai.client.operation.time_to_first_chunk",
        "gaps": "gen_ai.client.operation.time_per_output_chunk",
        "tokens": "gen_ai.client.token.usage",
        "first_token": "streamweld.time_to_first_token",
        "longest_gap": "streamweld.longest_gap",
        "token_rate": "streamweld.output_token_rate",
        "repairs": "streamweld.repairs",
        "streams": "streamweld.streams",
    }
)
"""The names of the instruments. The GenAI conventions have no names for the last five instruments."""

_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST: Final = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_GAPS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 10.0)
_TOKENS: Final = tuple(4**power for power in range(14))
_RATES: Final = (1, 2, 5, 10, 20, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000, 2000, 5000)
_CONTENT: Final = (TextDelta, ToolCallStarted, ToolCallDelta, ReasoningDelta, RefusalDelta)
_MOST_TIMES: Final = 65_536  # maximum number of times kept per stream, for its last chunks
_PROVIDERS: Final = {"openai": "openai", "anthropic": "anthropic", "google": "gcp.gemini"}


def need_otel() -> None:
    """Raise MissingExtra if the OpenTelemetry API is not installed."""
    if find_spec("opentelemetry") is None:
        raise MissingExtra("otel", "opentelemetry-api")


def provider_name(dialect: str | None) -> str | None:
    """Return the name that the conventions use for the provider that defines the dialect."""
    provider: str | None = load_conversions()["provider_names"].get(dialect)
    return provider if provider is None else _PROVIDERS.get(provider, provider)


class _Read(Protocol):
    """The reader of a stream: an iterator, or the converter of a repaired stream."""

    @property
    def response(self) -> Response: ...
    @property
    def dialect(self) -> str | None: ...


class StreamMetrics:
    """Creates the instruments, and records measurements for streams.

    If an object of this class is the `on_diagnostic` of `repair`, `RepairMiddleware` or a client hook, it measures
    every stream that passes through, whether or not the stream needs a repair. In that case, times are measured from
    the arrival of the response headers.

    Args:
        meter_provider: the provider that creates the instruments; the default is the global provider.
        attributes: added to every measurement, such as `{"server.address": "gateway.example"}`.
        gaps_per_stream: how many gaps to record per stream, evenly spaced; None records all. The SDK needs a few
            microseconds to record a gap. The longest gap is always recorded, in a separate instrument.

    Raises:
        MissingExtra: if `opentelemetry-api` is not installed.
        UsageError: if an option is invalid.
    """

    def __init__(
        self,
        *,
        meter_provider: MeterProvider | None = None,
        attributes: Mapping[str, str] | None = None,
        gaps_per_stream: int | None = 64,
    ) -> None:
        if gaps_per_stream is not None and gaps_per_stream < 1:
            raise UsageError(f"gaps_per_stream={gaps_per_stream!r}: it must be a positive number, or None for all gaps")
        need_otel()
        self._gaps_per_stream = gaps_per_stream
        from opentelemetry.metrics import get_meter

        self._attributes = {"gen_ai.operation.name": "chat", **(attributes or {})}
        meter = get_meter("streamweld", meter_provider=meter_provider)
        self._duration = _histogram(meter, "duration", "s", "Duration of a stream.", _SECONDS)
        self._first_chunk = _histogram(meter, "first_chunk", "s", "Time to the first chunk with an event.", _FIRST)
        self._gaps = _histogram(meter, "gaps", "s", "Time between two chunks with events.", _GAPS)
        self._longest_gap = _histogram(meter, "longest_gap", "s", "Longest time between two chunks with events.", _GAPS)
        self._tokens = _histogram(meter, "tokens", "{token}", "Tokens that the stream reports.", _TOKENS)
        self._first_token = _histogram(
            meter, "first_token", "s", "Time to the first text, reasoning, refusal or tool call.", _FIRST
        )
        self._token_rate = _histogram(
            meter, "token_rate", "{token}/s", "Output tokens a second, from the first token to the end.", _RATES
        )
        self._repairs = meter.create_counter(METRICS["repairs"], "{repair}", "Repairs and anomalies, by code.")
        self._streams = meter.create_counter(METRICS["streams"], "{stream}", "Streams, by how they ended.")

    def __call__(self, diagnostic: Diagnostic, context: StreamContext) -> None:
        """Count one repair."""
        self._repairs.add(1, self._of(context.dialect, context.model) | _anomaly(diagnostic.code, diagnostic.severity))

    def watch_stream(self) -> Watch:
        """Start the measurement of one stream. The client hooks call this method."""
        return Watch(self, None)

    def measure(self, batches: EventIterator[list[Event]], *, started: float | None = None) -> Generator[Event]:
        """Yield the events of a stream, and record its metrics when it ends or the reader stops.

        Args:
            batches: from `iter_batches`.
            started: when the request was sent, as returned by `time.perf_counter()`; the default is the time of the
            first `next()`.

        Raises:
            StreamError: as `batches` does.
        """
        watch = Watch(self, started)
        note, fault = watch.times.append, None
        try:
            for batch in batches:
                note(perf_counter())
                if watch.first_token is None:
                    watch.look_at(batch)
                yield from batch
        except StreamError as error:
            fault = error
            raise
        finally:
            batches.close()
            self._finish(watch, batches, fault)

    async def ameasure(
        self, batches: AsyncEventIterator[list[Event]], *, started: float | None = None
    ) -> AsyncGenerator[Event]:
        """Yield the events of an asynchronous stream (from `aiter_batches`), and record its metrics like `measure`."""
        watch = Watch(self, started)
        note, fault = watch.times.append, None
        try:
            async for batch in batches:
                note(perf_counter())
                if watch.first_token is None:
                    watch.look_at(batch)
                for event in batch:
                    yield event
        except StreamError as error:
            fault = error
            raise
        finally:
            await batches.aclose()
            self._finish(watch, batches, fault)

    def _finish(
        self,
        watch: Watch,
        batches: EventIterator[list[Event]] | AsyncEventIterator[list[Event]],
        fault: StreamError | None,
    ) -> None:
        found = Counter((one.code, one.severity) for one in batches.diagnostics)
        last = ending(fault, batches.diagnostics)
        if last is not None:
            found[last.code, last.severity] += 1
        about = self._of(batches.dialect, batches.response.model)
        for (code, severity), count in found.items():
            self._repairs.add(count, about | _anomaly(code, severity))
        watch.end(batches, fault)

    def _of(self, dialect: str | None, model: str | None) -> dict[str, str]:
        about = dict(self._attributes)
        provider = provider_name(dialect)
        if provider is not None:
            about.setdefault("gen_ai.provider.name", provider)
        if model is not None:
            about["gen_ai.response.model"] = model
        return about

    def record(self, watch: Watch, read: _Read, fault: StreamweldError | None) -> None:
        """Record the metrics of a stream that has ended."""
        response = read.response
        about = self._of(read.dialect, response.model)
        ended = about | {"streamweld.completeness": response.completeness}
        if fault is not None:
            ended["error.type"] = type(fault).__name__
        self._streams.add(1, ended)
        times = watch.times
        last = times[-1] if times else watch.started
        self._duration.record(last - watch.started, about if fault is None else ended)
        if watch.first_chunk is not None:
            self._first_chunk.record(watch.first_chunk - watch.started, about)
        if len(times) > 1:
            gaps = [later - earlier for earlier, later in pairwise(times)]
            self._longest_gap.record(max(gaps), about)
            step = 1 if self._gaps_per_stream is None else ceil(len(gaps) / self._gaps_per_stream)
            for gap in gaps[::step]:
                self._gaps.record(gap, about)
        if watch.first_token is not None:
            self._first_token.record(watch.first_token - watch.started, about)
        # Before the end, the counts can be placeholders. For example, the first event of Messages reports one output
        # token.
        if response.usage is None or response.completeness in ("open", "truncated"):
            return
        usage = response.usage.normalized()  # the conventions count cached tokens as input, unlike some APIs
        for kind, count in (("input", usage.input), ("output", usage.output)):
            if count is not None:
                self._tokens.record(count, about | {"gen_ai.token.type": kind})
        if usage.output and watch.first_token is not None and last > watch.first_token:
            self._token_rate.record(usage.output / (last - watch.first_token), about)


class Watch:
    """The times measured for one stream."""

    __slots__ = ("_ended", "_metrics", "first_chunk", "first_token", "started", "times")

    def __init__(self, metrics: StreamMetrics, started: float | None) -> None:
        self._metrics = metrics
        self._ended = False
        self.started: float = perf_counter() if started is None else started
        self.times: deque[float] = deque(maxlen=_MOST_TIMES)
        self.first_chunk: float | None = None
        self.first_token: float | None = None

    def look_at(self, events: list[Event]) -> None:
        """Record the time if the latest chunk is the first chunk, or the first chunk with content."""
        if self.first_chunk is None:
            self.first_chunk = self.times[-1]
        if any(isinstance(event, _CONTENT) for event in events):
            self.first_token = self.times[-1]

    def chunk(self, read: _Read) -> None:
        """Record the time of a chunk that the instrumented client reads."""
        self.times.append(perf_counter())
        # This search is fast, because the response is small until it has content.
        if self.first_token is None:
            self.look_at([])
            if any(choice.items for choice in read.response.choices):
                self.first_token = self.times[-1]

    def end(self, read: _Read, fault: StreamweldError | None) -> None:
        """Record the measurements. Only the first call has an effect."""
        if not self._ended:
            self._ended = True
            self._metrics.record(self, read, fault)


def _histogram(meter: Meter, name: str, unit: str, what: str, bounds: tuple[float, ...]) -> Histogram:
    return meter.create_histogram(METRICS[name], unit, what, explicit_bucket_boundaries_advisory=list(bounds))


def _anomaly(code: str, severity: str) -> dict[str, Any]:
    return {"streamweld.anomaly.code": code, "streamweld.anomaly.severity": severity}
