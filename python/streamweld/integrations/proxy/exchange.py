"""What happened to one request, in numbers and names: all that metrics, the log and a span may know of it.

No header, no query, no byte of a body and no word of a model stands here.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["Exchange", "Mode", "Outcome"]

Mode: TypeAlias = Literal["pass", "repair", "convert"]
Outcome: TypeAlias = Literal[
    "complete", "assumed", "fault", "refused", "client_gone", "client_stalled", "shutdown", "aborted"
]
"""`assumed`: the policy took a stream without an end of its own for whole."""


@dataclass(slots=True)
class Exchange:
    """One request and its answer; filled as it goes on."""

    method: str
    path: str
    dialect: str | None
    upstream_dialect: str | None
    mode: Mode = "pass"
    stream: bool = False
    status: int = 0
    outcome: Outcome = "aborted"
    fault: str | None = None
    """The name of the exception, or the code of a refusal."""

    events: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    repaired: bool = False
    dropped: tuple[str, ...] = ()
    diagnostics: Counter[str] = field(default_factory=Counter[str])
    started: float = field(default_factory=time.perf_counter)
    first_byte: float | None = None
    """Seconds from the request to the first byte of the answer's body."""

    seconds: float = 0.0

    def wrote(self, body: bytes) -> None:
        """A piece of the answer's body has gone out."""
        if self.first_byte is None and body:
            self.first_byte = time.perf_counter() - self.started
        self.bytes_out += len(body)

    def ended(self) -> None:
        """It is over, however."""
        self.seconds = time.perf_counter() - self.started
