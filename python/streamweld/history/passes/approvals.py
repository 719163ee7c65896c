"""Keep approvals of tool calls for AI SDK targets, and remove them for all other targets.

For other targets, a denied call without a result gets a result that contains the reason. An approval response must
follow its request, and the request must follow its call.

Constraint: `results.awaits_approval`.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Final

from streamweld.history.approvals import DENIED
from streamweld.history.model import (
    ApprovalRequest,
    ApprovalResponse,
    Call,
    Opaque,
    Result,
    Text,
    members_of,
    with_parts,
)

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["run"]

_APPROVALS: Final = (ApprovalRequest, ApprovalResponse)
_NO_APPROVALS: Final = "the target cannot represent approvals of tool calls"


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with the approvals that the target accepts."""
    keeps = bool(context.facts("results").get("awaits_approval"))
    calls: set[str] = set()
    requests: dict[str, str] = {}  # call ids by approval id
    answered = {result.call_id for result in context.survey(turns).results}
    lost: set[int] = set()  # the id() of each source object whose approval has been recorded as a loss
    out: list[Turn] = []
    for turn in turns:
        kept: list[Part] = []
        for part in turn.parts:
            if isinstance(part, Call):
                calls.add(part.call_id)
            elif isinstance(part, Opaque):
                calls.add(str(members_of(part.raw).get("toolCallId")))
            elif isinstance(part, _APPROVALS):
                if not keeps:
                    if id(part.raw) not in lost:
                        lost.add(id(part.raw))
                        context.lose("approval", part.path, _NO_APPROVALS, _removed(part))
                    if isinstance(part, ApprovalRequest):
                        requests[part.approval_id] = part.call_id
                    elif not part.approved and not part.provider_executed:
                        call_id = requests.get(part.approval_id)
                        if call_id is not None and call_id not in answered:
                            answered.add(call_id)
                            kept.append(_denial(part, call_id))
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
                    requests[part.approval_id] = part.call_id
            kept.append(part)
        if len(kept) == len(turn.parts) and all(map(is_, kept, turn.parts)):
            out.append(turn)
        elif kept:
            out.append(with_parts(turn, kept))
    return out


def _denial(part: ApprovalResponse, call_id: str) -> Result:
    """Return the result of a call that the user did not allow."""
    inner = (Text(text=part.reason or DENIED),)
    return Result(part.origin, part.at, part.path, call_id=call_id, parts=inner, is_error=True, denied=True)


def _removed(part: ApprovalRequest | ApprovalResponse) -> object:
    """Return the object that represents the approval. In a UIMessage, the approval is a member of the call's part."""
    return members_of(part.raw).get("approval", part.raw)
