"""Write AI SDK UIMessages. A tool part contains both the call and its result.

Each assistant turn becomes a separate message, so that a later step never changes an earlier message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from streamweld.history.approvals import DENIED, DENIED_OUTPUT
from streamweld.history.media_types import written_type
from streamweld.history.model import (
    MISSING,
    ApprovalRequest,
    ApprovalResponse,
    Call,
    Media,
    Reasoning,
    Result,
    Text,
    copied,
    members_of,
    result_text,
)
from streamweld.history.open_calls import OpenCalls
from streamweld.history.provider_metadata import read_metadata, write_detail, write_metadata
from streamweld.history.write.common import Writer

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Origin, Part, Turn

__all__ = ["write"]


def write(turns: list[Turn], context: Context) -> dict[str, Any]:
    """Return the request members `{"messages": […]}`."""
    writer = Writer(context, turns)
    messages: list[Any] = []
    for group in _groups(turns, writer):
        parts = [part for turn in group for part in turn.parts]
        whole = writer.reusable_message(parts, group[0].origin)
        messages.append(_message(group, parts, len(messages), writer) if whole is None else whole)
    return {"messages": messages}


def _groups(turns: list[Turn], writer: Writer) -> list[list[Turn]]:
    """Group the turns by message: an assistant turn with its results, or all steps of one source message."""
    groups: list[list[Turn]] = []
    for turn in turns:
        last = groups[-1] if groups else None
        if (
            last is not None
            and last[0].role == "assistant"
            and (turn.role == "tool" or (turn.role == "assistant" and _are_one_message(last[0], turn, writer)))
        ):
            last.append(turn)
        else:
            groups.append([turn])
    return groups


def _are_one_message(first: Turn, turn: Turn, writer: Writer) -> bool:
    shared = _origin(turn, writer)
    return shared is not None and shared is _origin(first, writer)


def _origin(turn: Turn, writer: Writer) -> Origin | None:
    for part in turn.parts:
        if writer.own(part):
            return part.origin
    return turn.origin if turn.origin is not None and turn.origin.dialect == writer.dialect else None


def _message(group: list[Turn], parts: list[Part], number: int, writer: Writer) -> dict[str, Any]:
    results: OpenCalls[Result] = OpenCalls()
    for n, turn in enumerate(group):
        for part in turn.parts:
            if isinstance(part, Result):
                results.add(n, part.call_id, part.name or "", part)
    requests: dict[str, ApprovalRequest] = {}
    responses: dict[str, ApprovalResponse] = {}
    if writer.approvals:
        requests = {part.call_id: part for part in parts if isinstance(part, ApprovalRequest)}
        responses = {part.approval_id: part for part in parts if isinstance(part, ApprovalResponse)}
    written: list[Any] = []
    steps = 0
    for turn in group:
        if turn.role == "assistant":
            if steps:
                written.append({"type": "step-start"})
            steps += 1
        for part in turn.parts:
            if isinstance(part, Call):
                request = requests.get(part.call_id) if requests else None
                response = None if request is None else responses.get(request.approval_id)
                written.append(_tool(part, request, response, results.take(part.call_id, part.name), writer))
            elif isinstance(part, Reasoning) and not writer.own(part):
                written += [_reasoning(part, text) for text in part.segments or ("",)]
                writer.extra_members(part)
            elif not isinstance(part, (Result, ApprovalRequest, ApprovalResponse)):
                written.append(_part(part, writer))
    role = "assistant" if group[0].role == "tool" else group[0].role
    head = {"id": f"msg_{number + 1}", "role": role, "parts": written}
    if members := writer.message_members(group[0], parts):
        head |= members
    return head


def _metadata(part: Reasoning | Call, member: str, encrypted: str | None, issuer: str | None) -> dict[str, Any]:
    raw: Any = part.raw
    if part.origin is not None and part.origin.dialect == "ai-sdk-ui" and isinstance(raw, Mapping):
        given = cast("Mapping[str, Any]", raw).get(member)
        was = read_metadata(given)
        if (was.item_id, was.signature, was.encrypted) == (part.item_id, part.signature, encrypted):
            return {member: given} if given is not None else {}
    if not (part.item_id or part.signature or encrypted):
        return {}
    made = write_metadata(issuer, part.item_id, part.signature, encrypted)
    return {member: made} if made else {}


def _reasoning(part: Reasoning, text: str) -> dict[str, Any]:
    return {"type": "reasoning", "text": text, **_metadata(part, "providerMetadata", part.encrypted, part.issuer)}


def _part(part: Part, writer: Writer) -> Any:
    own = writer.reusable_block(part)
    if own is not None:
        return own
    beyond = writer.extra_members(part)
    if isinstance(part, Text):
        text = {"type": "text", "text": part.text, **beyond}
        if part.signature:
            text["providerMetadata"] = write_metadata("google", None, part.signature, None)
        return text
    if isinstance(part, Reasoning):
        return _reasoning(part, part.text) | beyond
    if isinstance(part, Media):
        media_type = written_type(part, "image/png" if part.kind == "image" else "application/octet-stream")
        url = part.url or f"data:{media_type};base64,{part.data or ''}"
        name = {"filename": part.filename} if part.filename else {}
        file = {"type": "file", "mediaType": media_type, "url": url, **name, **beyond}
        if options := write_detail(part.detail):
            own = members_of(beyond.get("providerMetadata"))
            provider, level = next(iter(options.items()))
            file["providerMetadata"] = {**own, provider: {**members_of(own.get(provider)), **level}}
        return file
    return part.raw


def _tool(
    call: Call,
    request: ApprovalRequest | None,
    response: ApprovalResponse | None,
    result: Result | None,
    writer: Writer,
) -> Any:
    others = [part for part in (request, response, result) if part is not None]
    own = None if writer.rewrites_all else writer.reusable_block(call)
    if own is not None and all(writer.reusable_block(part) is own for part in others):
        return own
    beyond = writer.extra_members(call)
    value: Any = writer.arguments_object(call)
    value = call.arguments if value is None else value
    raw: Any = call.raw if writer.own(call) else {}
    dynamic = members_of(raw).get("type") == "dynamic-tool"
    head: dict[str, Any] = {"type": "dynamic-tool", "toolName": call.name} if dynamic else {"type": f"tool-{call.name}"}
    head |= {"toolCallId": call.call_id, "input": value}
    for part in others:
        if part.extra:
            writer.extra_members(part)
    for inner in () if result is None else result.parts:
        writer.lose_extra_members(inner)
        if not isinstance(inner, Text):
            writer.context.lose(
                "media", inner.path, "the target's tool output is a JSON value and cannot contain media", inner.raw
            )
    head |= _state(request, response, result, writer)
    issuer = "google" if call.signature else "openai" if call.item_id else None
    if metadata := _metadata(call, "callProviderMetadata", None, issuer):
        head |= metadata
    return head | beyond if beyond else head


def _state(
    request: ApprovalRequest | None, response: ApprovalResponse | None, result: Result | None, writer: Writer
) -> dict[str, Any]:
    """Return the members of a tool part that depend on its state: `state`, the output, and the approval.

    The approval is included because `validateUIMessages` requires it in these states.
    """
    if result is None:
        if request is None:
            return {"state": "input-available"}
        state = "approval-requested" if response is None else "approval-responded"
        return {"state": state, "approval": _approval(request, response)}
    if request is not None and response is not None and not response.approved and result.is_error:
        state, usual = ("approval-responded", DENIED) if result.denied else ("output-denied", DENIED_OUTPUT)
        given = result_text(result)
        if given != (response.reason or usual) and not (response.reason and given == usual):
            if response.reason:
                why = "a tool part can state only one reason for a denial, and the result states another"
                writer.context.lose("reason", response.path, why, response.reason)
            response = copied(response, reason=given)
        return {"state": state, "approval": _approval(request, response)}
    head: dict[str, Any] = {"state": "output-available"}
    if result.is_error:
        head = {"state": "output-error", "errorText": result_text(result)}
    else:
        head["output"] = _output(result)
    if request is not None and response is not None and response.approved:
        head["approval"] = _approval(request, response)
    elif request is not None:
        writer.context.lose(
            "approval",
            request.path,
            "the target cannot represent an open approval of a call that has an output",
            request.approval_id,
        )
    return head


def _approval(request: ApprovalRequest, response: ApprovalResponse | None) -> dict[str, Any]:
    given: dict[str, Any] = {"id": request.approval_id}
    if request.reason is not None:
        given["requestReason"] = request.reason
    given |= request.details
    if response is not None:
        given["approved"] = response.approved
        if response.reason is not None:
            given["reason"] = response.reason
    return given


def _output(result: Result) -> Any:
    return result_text(result) if result.value is MISSING else result.value
