"""`/metrics`: Prometheus counters, updated once per exchange and never per event.

Each label has only a few possible values, all from a fixed set. No value comes from a client, an upstream or a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from streamweld.integrations.proxy.exchange import Exchange

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE: Final[str] = CONTENT_TYPE_LATEST
_FIRST: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_WHOLE: Final = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The counters of one proxy."""

    def __init__(self) -> None:
        self._registry = made = CollectorRegistry()
        kinds = ("dialect", "upstream", "mode")
        self._requests = Counter("streamweld_requests", "Requests, by status.", ("dialect", "status"), registry=made)
        self._streams = Counter(
            "streamweld_streams", "Finished streams, by outcome.", (*kinds, "outcome"), registry=made
        )
        self._open = Gauge("streamweld_streams_open", "Streams that are open.", registry=made)
        self._repaired = Counter("streamweld_streams_repaired", "Streams that were repaired.", kinds, registry=made)
        self._events = Counter("streamweld_events", "Events sent to clients.", kinds, registry=made)
        self._faults = Counter(
            "streamweld_faults", "Streams that ended early, by exception.", ("fault",), registry=made
        )
        self._diagnostics = Counter(
            "streamweld_diagnostics", "Repairs, anomalies and losses, by code.", ("code",), registry=made
        )
        self._bytes = Counter("streamweld_bytes", "Bytes of bodies.", ("direction",), registry=made)
        self._first = Histogram(
            "streamweld_first_byte_seconds",
            "From the request to the first byte of a stream.",
            buckets=_FIRST,
            registry=made,
        )
        self._whole = Histogram(
            "streamweld_stream_seconds", "From the request to the end of a stream.", buckets=_WHOLE, registry=made
        )

    def opened(self) -> None:
        """Count a stream that has started."""
        self._open.inc()

    def closed(self) -> None:
        """Count a stream that has ended."""
        self._open.dec()

    def count(self, done: Exchange) -> None:
        """Count a finished exchange."""
        dialect, upstream = done.dialect or "none", done.upstream_dialect or "none"
        self._requests.labels(dialect, str(done.status)).inc()
        self._bytes.labels("in").inc(done.bytes_in)
        self._bytes.labels("out").inc(done.bytes_out)
        for label, times in done.diagnostics.items():
            self._diagnostics.labels(label.partition("(")[0]).inc(times)
        if done.fault is not None:
            self._faults.labels(done.fault).inc()
        if not done.stream:
            return
        kinds = (dialect, upstream, done.mode)
        self._streams.labels(*kinds, done.outcome).inc()
        self._events.labels(*kinds).inc(done.events)
        if done.repaired:
            self._repaired.labels(*kinds).inc()
        if done.first_byte is not None:
            self._first.observe(done.first_byte)
        self._whole.observe(done.seconds)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._registry)
