"""Member names and default texts for tool approvals in AI SDK messages. Readers and writers share this module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DENIED", "DENIED_OUTPUT", "REQUEST_DETAILS", "request_details"]

# Members of an approval request that have the same name in UIMessages (`approval`) and ModelMessages
# (`tool-approval-request`).
REQUEST_DETAILS: Final = ("isAutomatic", "signature", "inputSchemaInput")
# Default texts for a call that was denied without a reason: `DENIED` for the `execution-denied` result,
# `DENIED_OUTPUT` for the `output-denied` state.
DENIED: Final = "Tool execution denied."
DENIED_OUTPUT: Final = "Tool call execution denied."


def request_details(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return those members of `raw` that are in `REQUEST_DETAILS`."""
    return {name: raw[name] for name in REQUEST_DETAILS if name in raw}
