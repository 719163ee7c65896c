"""Finish reasons: which of several holds, and what it means beside the calls that are there.

The table of words comes from outside (each dialect has its own). It knows no parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.call import Call
    from streamweld.events import FinishReason

__all__ = ["conclude", "take_reason"]

# A reason that says less good of the answer holds, whatever else is said.
_WEIGHT: Mapping[FinishReason, int] = {
    "stop": 0,
    "tool_calls": 0,
    "other": 1,
    "length": 2,
    "content_filter": 2,
    "error": 2,
}


def take_reason(choice: Choice, raw: str, mapped: FinishReason | Literal["natural"] | None) -> None:
    """One reason as sent, and what the table says it is: the first holds, unless a later one that is known is worse.

    "natural" is a word for every end that nobody forced: stop, or calls where there are some.
    """
    choice.shared.out.reasons.add(choice.index)
    finish = choice.finish
    out = choice.shared.out
    reason: FinishReason | None = "stop" if mapped == "natural" else mapped
    if finish.raw is None or mapped is not None:
        finish.natural = mapped == "natural"
    if finish.raw is None:
        if reason is None:
            out.diagnose("finish_unknown", detail=raw)
        finish.raw, finish.reason = raw, reason or "other"
        return
    if raw == finish.raw:
        return
    if not finish.repeated:
        finish.repeated = True
        out.diagnose("finish_repeated", detail=raw)
    if reason is not None and finish.reason is not None and _WEIGHT[reason] > _WEIGHT[finish.reason]:
        finish.raw, finish.reason = raw, reason


def conclude(choice: Choice, calls: Sequence[Call]) -> FinishReason:
    """What the choice's end comes to: `calls` of the client are a reason, and no calls are none.

    Calls that were answered in the stream itself (AI SDK: the server ran them, and went on) leave any reason as it is.
    """
    reason = choice.finish.reason
    waits = any(not call.answered for call in calls)
    if reason is None:
        return "tool_calls" if waits else "stop"
    if waits and reason == "stop":
        return "tool_calls"
    if not calls and reason == "tool_calls":
        return "stop"
    return reason
