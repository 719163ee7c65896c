"""Keep approvals of tool calls for AI SDK targets, and remove them for all other targets.

A response must follow its request, and a request must follow its call.

Constraint: `results.awaits_approval`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld.history.model import ApprovalRequest, ApprovalResponse, Call, Opaque, members_of, with_parts

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["run"]

_NO_APPROVALS: Final = "the target cannot represent approvals of tool calls"


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with the approvals that the target accepts."""
    keeps = bool(context.facts("results").get("awaits_approval"))
    calls: set[str] = set()
    requests: set[str] = set()
    lost: set[int] = set()  # id() of source objects whose approval has been recorded as a loss
    out: list[Turn] = []
    for turn in turns:
        kept: list[Part] = []
        for part in turn.parts:
            if isinstance(part, Call):
                calls.add(part.call_id)
            elif isinstance(part, Opaque):
                calls.add(str(members_of(part.raw).get("toolCallId")))
            elif isinstance(part, ApprovalRequest | ApprovalResponse):
                if not keeps:
                    if id(part.raw) not in lost:
                        lost.add(id(part.raw))
                        context.lose("approval", part.path, _NO_APPROVALS, _removed(part))
                    continue
                if isinstance(part, ApprovalResponse) and part.approval_id not in requests:
                    context.edit(
                        "approval_unasked",
                        part.path,
                        "dropped an approval response because its request is missing",
                        part.raw,
                    )
                    continue
                if isinstance(part, ApprovalRequest):
                    if part.call_id not in calls:
                        context.edit(
                            "approval_unasked",
                            part.path,
                            "dropped an approval request because its tool call is missing",
                            part.raw,
                        )
                        continue
                    requests.add(part.approval_id)
            kept.append(part)
        if len(kept) == len(turn.parts):
            out.append(turn)
        elif kept:
            out.append(with_parts(turn, kept))
    return out


def _removed(part: ApprovalRequest | ApprovalResponse) -> object:
    """Return the object that represents the approval. In a UIMessage, it is a member of the call's part."""
    return members_of(part.raw).get("approval", part.raw)
