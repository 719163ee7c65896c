"""Read AI SDK UIMessages. Each step of the assistant becomes a turn; the results of its tools form a second turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.errors import HistoryError
from streamweld.history.approvals import DENIED, DENIED_OUTPUT, REQUEST_DETAILS, request_details
from streamweld.history.model import (
    MISSING,
    ApprovalRequest,
    ApprovalResponse,
    Call,
    NestedPath,
    Opaque,
    Reasoning,
    Result,
    Text,
    Turn,
    pointer,
)
from streamweld.history.provider_metadata import read_metadata, text_signature
from streamweld.history.read.common import (
    as_list,
    as_mapping,
    as_optional_text,
    as_text,
    locate,
    media_from_url,
    new_origin,
    unknown_role,
    with_detail,
    with_inner_members,
)

if TYPE_CHECKING:
    from streamweld.history.model import Origin, Part, Path
    from streamweld.history.read.common import Json

__all__ = ["DIALECT", "read"]

DIALECT: Final = "ai-sdk-ui"
_ROLES: Final = ("system", "user", "assistant")
_MESSAGE: Final = frozenset({"role", "parts"})
_STEP: Final = frozenset({"type"})
_TEXT: Final = frozenset({"type", "text", "state"})
_SIGNED_TEXT: Final = _TEXT | {"providerMetadata"}
_REASONING: Final = frozenset({"type", "text", "state", "providerMetadata"})
_FILE: Final = frozenset({"type", "url", "mediaType", "filename"})
_TOOL: Final = frozenset(
    {
        *("type", "toolName", "toolCallId", "state", "input", "rawInput", "output", "errorText", "title"),
        *("providerExecuted", "preliminary", "callProviderMetadata", "approval"),
    }
)
_APPROVAL: Final = frozenset({"id", "approved", "reason", "requestReason", *REQUEST_DETAILS})
_RESULT: Final[frozenset[str]] = frozenset()
# Parts that are only displayed: convertToModelMessages does not send them to the model.
_SHOWN_ONLY: Final = frozenset({"step-start", "source-url", "source-document"})


def read(raw: Any, path: Path, issuer: str | None = None) -> list[Turn]:
    """Return the turns of one message: for the assistant, one or two per step.

    Raises:
        HistoryError: if the message is not an object, or has a role that the dialect does not have.
    """
    message = as_mapping(raw, path)
    role = message.get("role")
    if role not in _ROLES:
        raise unknown_role(role, _ROLES, DIALECT, path)
    origin = new_origin(DIALECT, path, message, _MESSAGE)
    raws = message.get("parts")
    if raws is None:  # only `parts` contains content
        raise HistoryError("unreadable", pointer((*path, "parts")), detail="a UI message must have parts")
    raws = as_list(raws, (*path, "parts"))
    steps: list[list[tuple[int, Json]]] = [[]]
    for n, piece in enumerate(raws):
        part = as_mapping(piece, (*path, "parts", n))
        if part.get("type") == "step-start":
            steps.append([])
            origin.extra = with_inner_members((origin, 0, path, None, origin.extra), (f"parts/{n}", part, _STEP))[4]
        else:
            steps[-1].append((n, part))
    turns: list[Turn] = []
    for step in steps:
        if not step:
            continue
        sent: list[Part] = []
        tools: list[tuple[Path, Json]] = []  # calls that the client runs
        for n, part in step:
            at = (*path, "parts", n)
            sent.append(_part(part, origin, at, issuer))
            if isinstance(sent[-1], Call):
                tools.append((at, part))
                if (approval := _approval(part)) is not None:
                    sent.append(_request(approval, part, origin, at))
        turns.append(Turn(role, tuple(sent), origin))
        answered: list[Part] = []
        for at, part in tools:
            answered += _approval_and_result(part, origin, at)
        if answered:
            turns.append(Turn("tool", tuple(answered), origin))
    return turns or [Turn(role, (), origin)]


def _tool_name(raw: Json, path: Path) -> str | None:
    kind = as_text(raw.get("type"), path)
    if kind == "dynamic-tool":
        return as_text(raw.get("toolName"), path)
    return kind[5:] if kind.startswith("tool-") else None


def _part(raw: Json, origin: Origin, path: Path, issuer: str | None) -> Part:
    kind = as_text(raw.get("type"), path)
    if kind == "text":
        signature, alone = text_signature(raw.get("providerMetadata"))
        common = locate(origin, path, raw, _SIGNED_TEXT if alone else _TEXT)
        return Text(*common, text=as_text(raw.get("text"), path), signature=signature)
    if kind == "reasoning":
        given = read_metadata(raw.get("providerMetadata"))
        return Reasoning(
            *locate(origin, path, raw, _REASONING),
            segments=(as_text(raw.get("text"), path),),
            kind="summary" if given.item_id else "redacted" if given.encrypted and not raw.get("text") else "thinking",
            item_id=given.item_id,
            signature=given.signature,
            encrypted=given.encrypted,
            issuer=given.issuer or issuer,
        )
    if kind == "file":
        common, detail = with_detail(locate(origin, path, raw, _FILE), "providerMetadata")
        return media_from_url(
            common,
            as_text(raw.get("url"), path),
            as_optional_text(raw.get("mediaType"), path),
            filename=as_optional_text(raw.get("filename"), path),
            detail=detail,
        )
    name = _tool_name(raw, path)
    if name is None or raw.get("providerExecuted"):
        return Opaque(*locate(origin, path, raw), kind=kind, dialect=DIALECT)
    given = read_metadata(raw.get("callProviderMetadata"))
    common = with_inner_members(locate(origin, path, raw, _TOOL), ("approval", raw.get("approval"), _APPROVAL))
    if raw.get("preliminary") and raw.get("output") is not None:  # the tool was interrupted before its final result
        common = (*common[:4], {**common[4], NestedPath("output"): raw["output"]})
    call_id = as_text(raw.get("toolCallId"), path)
    value = raw.get("input", MISSING)
    if value is None or value is MISSING:
        value = raw.get("rawInput", MISSING)
    if isinstance(value, str):
        return Call(
            *common, call_id=call_id, name=name, arguments=value, item_id=given.item_id, signature=given.signature
        )
    return Call(*common, call_id=call_id, name=name, input=value, item_id=given.item_id, signature=given.signature)


def _approval(raw: Json) -> Json | None:
    given = raw.get("approval")
    return as_mapping(given, ()) if isinstance(given, dict) and isinstance(given.get("id"), str) else None  # pyright: ignore[reportUnknownMemberType]


def _request(approval: Json, raw: Json, origin: Origin, path: Path) -> ApprovalRequest:
    return ApprovalRequest(
        *locate(origin, path, raw),
        approval_id=approval["id"],
        call_id=as_text(raw.get("toolCallId"), path),
        reason=as_optional_text(approval.get("requestReason"), path),
        details=request_details(approval),
    )


def _approval_and_result(raw: Json, origin: Origin, path: Path) -> list[Part]:
    """Return the user's response to an approval request and the result of the call, if the part contains them."""
    approval = _approval(raw)
    found: list[Part] = []
    if approval is not None and isinstance(approval.get("approved"), bool):
        found.append(
            ApprovalResponse(
                *locate(origin, path, raw),
                approval_id=approval["id"],
                approved=approval["approved"],
                reason=as_optional_text(approval.get("reason"), path),
            )
        )
    result = _result(raw, approval or {}, origin, path)
    return found if result is None else [*found, result]


def _result(raw: Json, approval: Json, origin: Origin, path: Path) -> Result | None:
    name, state = _tool_name(raw, path), raw.get("state")
    call_id = as_text(raw.get("toolCallId"), path)
    if state == "output-available" and not raw.get("preliminary"):
        output = raw.get("output")
        if isinstance(output, str):
            return Result(*locate(origin, path, raw), call_id=call_id, name=name, parts=(Text(text=output),))
        return Result(*locate(origin, path, raw), call_id=call_id, name=name, value=output)
    if state == "output-error":
        text = Text(text=as_text(raw.get("errorText"), path))
        return Result(*locate(origin, path, raw), call_id=call_id, name=name, parts=(text,), is_error=True)
    denied = state == "approval-responded" and approval.get("approved") is False
    if denied or state == "output-denied":
        sent = as_optional_text(approval.get("reason"), path) or (DENIED if denied else DENIED_OUTPUT)
        common, text = locate(origin, path, raw), Text(text=sent)
        return Result(*common, call_id=call_id, name=name, parts=(text,), is_error=True, denied=denied)
    return None
