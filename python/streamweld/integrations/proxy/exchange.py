"""The record of one request and its response, for the metrics, the log and the span.

The record does not contain headers, queries, body bytes or model output.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["Exchange", "Mode", "Outcome"]

Mode: TypeAlias = Literal["pass", "repair", "convert"]
Outcome: TypeAlias = Literal[
    "complete",
    "assumed",
    "fault",
    "upstream_error",
    "refused",
    "client_gone",
    "client_stalled",
    "shutdown",
    "aborted",
]
"""How an exchange ended.

`complete`: the upstream's response was sent to its end. `assumed`: the policy accepted a stream without a terminal
marker as complete. `fault`: a response that had begun was truncated, broken or too long. `upstream_error`: the upstream
did not answer, answered with an error status, or sent something else than a response of its API, such as an HTML page.
`refused`: the proxy rejected the request. `shutdown`: the proxy was stopped. `aborted`: an exception in the proxy.
"""


@dataclass(slots=True)
class Exchange:
    """The record of one request and its response, which is updated while the proxy handles them."""

    method: str
    path: str
    dialect: str | None
    upstream_dialect: str | None
    mode: Mode = "pass"
    stream: bool = False
    status: int = 0
    outcome: Outcome = "aborted"
    fault: str | None = None
    """Name of the exception, or code of the refusal."""

    model: str | None = None
    """Name of the requested model. The model in the response is not used, because reading it would take time
    proportional to the length of the response.
    """

    request_id: str | None = None
    """Request id that the upstream assigned, or the request id from the client."""

    events: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    repaired: bool = False
    dropped: tuple[str, ...] = ()
    diagnostics: Counter[str] = field(default_factory=Counter[str])
    """Number of diagnostics by code, with the reason in parentheses if the code has a fixed set of reasons."""

    started: float = field(default_factory=time.perf_counter)
    first_byte: float | None = None
    """Seconds from the request to the first byte of the response body."""

    seconds: float = 0.0

    def wrote(self, body: bytes) -> None:
        """Record that a piece of the response body was sent."""
        if self.first_byte is None and body:
            self.first_byte = time.perf_counter() - self.started
        self.bytes_out += len(body)

    def ended(self) -> None:
        """Record the end of the exchange, regardless of the outcome."""
        self.seconds = time.perf_counter() - self.started
