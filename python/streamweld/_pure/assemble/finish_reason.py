"""Chooses among several finish reasons of a choice, and makes the chosen one consistent with the choice's calls.

`model/finish_words` maps the finish reasons of each dialect to those used here.
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
    """What the end of a choice means for its calls that are still open."""

    SUCCESS = auto()  # the finish reason means success, so a call without arguments is complete
    UNSTATED = auto()  # the stream has ended without a finish reason
    UNFINISHED = auto()  # the finish reason means an incomplete response, so an incomplete call is not reported
    FAILED = auto()  # the finish reason means that the response failed, so no call is complete, even if its JSON is
    CUT = auto()  # the input ended too early


# The rank of a finish reason is higher if the reason means a less complete response. Of two reasons, the one with the
# higher rank is used.
_WEIGHT: Mapping[FinishReason, int] = {
    "stop": 0,
    "tool_calls": 0,
    "other": 1,
    "length": 2,
    "content_filter": 2,
    "error": 2,
}


def end_of_calls(finish: FinishState, *, ended: bool) -> CallsEnd:
    """Return what the finish reason of a choice means for its open calls.

    `ended`: the choice has ended even if it has no finish reason.
    """
    if finish.reason is None:
        return CallsEnd.UNSTATED if ended else CallsEnd.CUT
    if finish.reason in ("stop", "tool_calls"):
        return CallsEnd.SUCCESS
    return CallsEnd.FAILED if finish.reason == "error" else CallsEnd.UNFINISHED


def take_reason(choice: Choice, raw: str, mapped: FinishReason | Literal["natural"] | None) -> None:
    """Record a finish reason as received, and its meaning if known. The first reason is used unless a later one has a
    higher rank.

    The meaning "natural" stands for a normal end: `stop`, or `tool_calls` if there are calls.
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
        out.mark_misread("finish_again")  # clients use the last reason


def conclude(choice: Choice, calls: Sequence[Call]) -> FinishReason:
    """Return the finish reason for the `Finished` event.

    If the client must run one of the `calls`, `stop` and a missing reason become `tool_calls`. Without calls,
    `tool_calls` becomes `stop`. A call whose result is in the stream does not change the reason: in the AI SDK, the
    server runs the call and then continues the response.
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
