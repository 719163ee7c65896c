"""The event classes.

There are two sets of event classes, and each process uses one of them. If the extension is installed, this module
exports the native classes, which the pure backend then also uses. Without the extension, this module exports the
classes in `_events`. Both sets have the same names, fields and repr, and `__module__` is this module. Type checkers
always see the Python classes.
"""

# ruff: noqa: TC004 (the names that type checkers import are bound at run time below)

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._literals import DiagnosticCode, FinishReason, ReasoningKind, Severity, ToolCallState

if TYPE_CHECKING:
    from streamweld._events import (
        Diagnostic,
        Event,
        File,
        Finished,
        ProviderItem,
        ReasoningDelta,
        ReasoningDone,
        ReasoningStarted,
        RefusalDelta,
        RefusalDone,
        RefusalStarted,
        ResponseStarted,
        Source,
        TextDelta,
        TextDone,
        TextStarted,
        ToolCall,
        ToolCallDelta,
        ToolCallReset,
        ToolCallRetracted,
        ToolCallStarted,
        ToolResult,
        ToolResultDelta,
        Unknown,
        UpstreamErrorEvent,
        Usage,
    )
else:
    from functools import reduce
    from operator import or_

    from streamweld._extension import extension
    from streamweld._spec import EVENTS

    _home = extension()
    if _home is None:
        from streamweld import _events as _home
    globals().update({name: getattr(_home, name) for name in EVENTS})
    Event = reduce(or_, [getattr(_home, name) for name in EVENTS])
    if not hasattr(ToolCallDelta, "partial"):
        from streamweld._arguments import partial_arguments

        ToolCallDelta.partial = partial_arguments

__all__ = [
    "Diagnostic",
    "DiagnosticCode",
    "Event",
    "File",
    "FinishReason",
    "Finished",
    "ProviderItem",
    "ReasoningDelta",
    "ReasoningDone",
    "ReasoningKind",
    "ReasoningStarted",
    "RefusalDelta",
    "RefusalDone",
    "RefusalStarted",
    "ResponseStarted",
    "Severity",
    "Source",
    "TextDelta",
    "TextDone",
    "TextStarted",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallReset",
    "ToolCallRetracted",
    "ToolCallStarted",
    "ToolCallState",
    "ToolResult",
    "ToolResultDelta",
    "Unknown",
    "UpstreamErrorEvent",
    "Usage",
]
