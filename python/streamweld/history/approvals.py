"""Member names and texts for tool approvals in AI SDK messages, shared by readers and writers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DENIED", "DENIED_OUTPUT", "REQUEST_DETAILS", "request_details"]

# Members of an approval request that have the same name in UIMessages (`approval`) and in ModelMessages
# (`tool-approval-request`).
REQUEST_DETAILS: Final = ("isAutomatic", "signature", "inputSchemaInput")
# Default texts for a denied call without a reason: for the result `execution-denied`, and for the state
# `output-denied`.
DENIED: Final = "Tool execution denied."
DENIED_OUTPUT: Final = "Tool call execution denied."


def request_details(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of `raw` that are listed in `REQUEST_DETAILS`."""
    return {name: raw[name] for name in REQUEST_DETAILS if name in raw}
