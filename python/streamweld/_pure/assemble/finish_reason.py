"""Chooses among several finish reasons, and makes the chosen one consistent with the calls of the choice.

Each dialect has its own table that maps its words to reasons.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld._pure.assemble.choice import Choice, FinishState
    from streamweld._pure.assemble.part.call import Call
    from streamweld.events import FinishReason

__all__ = ["CallsEnd", "conclude", "end_of_calls", "take_reason"]


class CallsEnd(Enum):
    """What the end of a choice implies for its open calls."""

    SUCCESS = auto()  # the finish reason means success, so a call without arguments is complete
    UNSTATED = auto()  # no finish reason was sent, but the stream has ended
    UNFINISHED = auto()  # the finish reason means an incomplete response, so an unfinished call is not an anomaly
    FAILED = auto()  # the response failed, so a call may not be meant to run even if its JSON is complete
    CUT = auto()  # the input ended too early


# The more incomplete the response, the higher the rank. Of two reasons, the one with the higher rank is used.
_WEIGHT: Mapping[FinishReason, int] = {
    "stop": 0,
    "tool_calls": 0,
    "other": 1,
    "length": 2,
    "content_filter": 2,
    "error": 2,
}


def end_of_calls(finish: FinishState, *, ended: bool) -> CallsEnd:
    """Return what a choice with this finish reason implies for its open calls.

    `ended`: the stream has ended, even for choices without a finish reason.
    """
    if finish.reason is None:
        return CallsEnd.UNSTATED if ended else CallsEnd.CUT
    if finish.reason in ("stop", "tool_calls"):
        return CallsEnd.SUCCESS
    return CallsEnd.FAILED if finish.reason == "error" else CallsEnd.UNFINISHED


def take_reason(choice: Choice, raw: str, mapped: FinishReason | Literal["natural"] | None) -> None:
    """Record a finish reason, as sent and as mapped. The first reason is used, unless a later mapped reason has a
    higher rank.

    "natural" stands for a normal end: `stop`, or `tool_calls` if there are calls.
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
    elif finish.reason is not None and _WEIGHT[finish.reason] > (0 if reason is None else _WEIGHT[reason]):
        out.mark_misread("finish_again")  # clients use the last one


def conclude(choice: Choice, calls: Sequence[Call]) -> FinishReason:
    """Return the final reason of a choice.

    Unanswered client `calls` turn `stop` or a missing reason into `tool_calls`; `tool_calls` without calls becomes
    `stop`. Calls that were answered in the stream itself (AI SDK: the server ran them and continued) do not change the
    reason.
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
