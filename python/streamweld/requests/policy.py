"""`RequestPolicy`: how `convert` handles options that the target does not support."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from streamweld.errors import UsageError
from streamweld.history import HistoryPolicy

__all__ = ["RequestPolicy"]


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """How `convert` handles unsupported options and broken histories.

    Attributes:
        history: how broken histories are repaired.
        vital: how to handle unsupported options that affect the response (`stop`, `n`, a tool, a response format,
            `previous_response_id`). `report` omits the option and records a loss; `raise` raises HistoryError with the
            rule `unsupported_option` and the path of the option.

    Raises:
        UsageError: if a value is not listed above.
    """

    history: HistoryPolicy = field(default_factory=HistoryPolicy)
    vital: Literal["report", "raise"] = "report"

    def __post_init__(self) -> None:
        if self.vital not in ("report", "raise"):
            raise UsageError(f"vital={self.vital!r}: it must be 'report' or 'raise'")
