"""Approvals of tool calls in AI SDK messages: member names and texts that readers and writers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DENIED", "DENIED_OUTPUT", "REQUEST_DETAILS", "request_details"]

# The members of a request that UIMessages (`approval`) and ModelMessages (`tool-approval-request`) name alike.
REQUEST_DETAILS: Final = ("isAutomatic", "signature", "inputSchemaInput")
# The texts of a denied call without a reason: of the result `execution-denied`, and of the state `output-denied`.
DENIED: Final = "Tool execution denied."
DENIED_OUTPUT: Final = "Tool call execution denied."


def request_details(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details of an approval request."""
    return {name: raw[name] for name in REQUEST_DETAILS if name in raw}
