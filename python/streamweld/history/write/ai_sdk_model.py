"""Write AI SDK ModelMessages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from streamweld.history.approvals import DENIED
from streamweld.history.media_types import written_type
from streamweld.history.model import (
    MISSING,
    ApprovalRequest,
    ApprovalResponse,
    Call,
    Media,
    Opaque,
    Reasoning,
    Result,
    Text,
    members_of,
    result_text,
)
from streamweld.history.open_calls import OpenCalls
from streamweld.history.provider_metadata import read_metadata, write_detail, write_metadata
from streamweld.history.write.common import Writer, result_content

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["write"]


def write(turns: list[Turn], context: Context) -> dict[str, Any]:
    """Return the request members `{"messages": […]}`."""
    writer = Writer(context, turns)
    names: OpenCalls[str] = OpenCalls()
    messages: list[Any] = []
    for n, turn in enumerate(turns):
        for part in turn.parts:
            if isinstance(part, Call):
                names.add(n, part.call_id, part.name, part.name)
        whole = writer.reusable_message(turn.parts, turn.origin)
        if whole is not None:
            for part in turn.parts:
                if isinstance(part, Result):
                    names.take(part.call_id, part.name)
            messages.append(whole)
            continue
        message = {"role": turn.role, "content": _content(turn, writer, names)}
        if members := writer.message_members(turn, turn.parts):
            message |= members
        messages.append(message)
    return {"messages": messages}


def _content(turn: Turn, writer: Writer, names: OpenCalls[str]) -> Any:
    if turn.role == "system":
        for part in turn.parts:
            writer.extra_members(part)
        return "\n\n".join([part.text for part in turn.parts if isinstance(part, Text)])
    only = turn.parts[0] if len(turn.parts) == 1 else None
    if (
        isinstance(only, Text)
        and not only.signature
        and not writer.extra_members(only)
        and (only.raw is None or not writer.own(only))
    ):
        return only.text
    out: list[Any] = []
    for part in turn.parts:
        named = names.take(part.call_id, part.name) if isinstance(part, Result) else None
        own = writer.reusable_block(part)
        if own is not None:
            out.append(own)
        elif isinstance(part, Reasoning) and not writer.own(part):
            out += [_reasoning(part, text) for text in part.segments or ("",)]
            writer.extra_members(part)
        else:
            out.append(_block(part, named, writer))
    return out


def _options(part: Reasoning | Call, encrypted: str | None, issuer: str | None) -> dict[str, Any]:
    """Return the provider options for a part: the original options if they still match the part, otherwise new ones."""
    raw: Any = part.raw
    if part.origin is not None and part.origin.dialect == "ai-sdk-model" and isinstance(raw, Mapping):
        given = cast("Mapping[str, Any]", raw).get("providerOptions")
        was = read_metadata(given)
        if (was.item_id, was.signature, was.encrypted) == (part.item_id, part.signature, encrypted):
            return {"providerOptions": given} if given is not None else {}
    made = write_metadata(issuer, part.item_id, part.signature, encrypted)
    return {"providerOptions": made} if made else {}


def _merged(head: dict[str, Any], beyond: Mapping[str, Any]) -> dict[str, Any]:
    """Return the written part with the members for which the model has no field. In the provider options, the written
    metadata takes precedence.
    """
    options = members_of(beyond.get("providerOptions"))
    if not options:
        return {**head, **beyond}
    made = {**options}
    for issuer, sent in members_of(head.get("providerOptions")).items():
        made[issuer] = {**members_of(made.get(issuer)), **members_of(sent)}
    return {**head, **beyond, "providerOptions": made}


def _reasoning(part: Reasoning, text: str) -> dict[str, Any]:
    return {"type": "reasoning", "text": text, **_options(part, part.encrypted, part.issuer)}


def _block(part: Part, named: str | None, writer: Writer) -> Any:
    beyond = writer.extra_members(part)
    if isinstance(part, Text):
        made = write_metadata("google", None, part.signature, None)
        return {"type": "text", "text": part.text, **({"providerOptions": made} if made else {}), **beyond}
    if isinstance(part, Reasoning):
        return _merged(_reasoning(part, part.text), beyond)
    if isinstance(part, Call):
        value: Any = writer.arguments_object(part)
        value = part.arguments if value is None else value
        issuer = "google" if part.signature else "openai" if part.item_id else None
        head = {"type": "tool-call", "toolCallId": part.call_id, "toolName": part.name, "input": value}
        return _merged({**head, **_options(part, None, issuer)}, beyond)
    if isinstance(part, Result):
        head = {"type": "tool-result", "toolCallId": part.call_id, "toolName": named or part.name or "unknown"}
        return {**head, "output": _output(part, writer), **beyond}
    if isinstance(part, Media):
        return _merged(_file(part), beyond)
    if isinstance(part, ApprovalRequest):
        head = {"type": "tool-approval-request", "approvalId": part.approval_id, "toolCallId": part.call_id}
        return {**head, **_reason(part.reason), **part.details, **beyond}
    if isinstance(part, ApprovalResponse):
        head = {"type": "tool-approval-response", "approvalId": part.approval_id, "approved": part.approved}
        ran = {"providerExecuted": True} if part.provider_executed else {}
        return {**head, **_reason(part.reason), **ran, **beyond}
    return part.raw


def _reason(reason: str | None) -> dict[str, str]:
    return {} if reason is None else {"reason": reason}


def _output(part: Result, writer: Writer) -> dict[str, Any]:
    if part.denied:
        sent = result_text(part)
        return {"type": "execution-denied", **_reason(None if sent == DENIED else sent)}
    failed = "error-" if part.is_error else ""
    if part.value is not MISSING and not isinstance(part.value, str):
        return {"type": failed + "json", "value": part.value}
    given = result_content(part)
    if isinstance(given, str):
        return {"type": failed + "text", "value": given}
    if part.is_error:
        writer.context.lose_error_flag(part)
    return {"type": "content", "value": [_inner(inner, writer) for inner in given]}


def _inner(part: Text | Media | Opaque, writer: Writer) -> Any:
    own = writer.reusable_block(part)
    old = isinstance(part, Media) and members_of(own).get("type") == "media"
    if (own is not None and not old) or isinstance(part, Opaque):
        return part.raw
    if old:
        writer.context.edit(
            "file_type", part.path, "converted the `media` block of AI SDK 5 to its form in later versions"
        )
    if isinstance(part, Text):
        return {"type": "text", "text": part.text, **writer.extra_members(part)}
    writer.extra_members(part)
    image, options = part.kind == "image", _detail(part)
    if part.filename and (image or part.url):
        writer.context.lose(
            "filename", part.path, "in a tool result, the target has file names only for inline files", part.filename
        )
    if part.url:
        return {"type": "image-url" if image else "file-url", "url": part.url, **options}
    name = {"filename": part.filename} if part.filename and not image else {}
    kind = "image-data" if image else "file-data"
    return {"type": kind, "data": part.data or "", "mediaType": _type(part), **name, **options}


def _detail(part: Media) -> dict[str, Any]:
    options = write_detail(part.detail)
    return {"providerOptions": options} if options else {}


def _type(part: Media) -> str:
    defaults = {"image": "image/*", "audio": "audio/wav", "video": "video/mp4", "file": "application/pdf"}
    return written_type(part, defaults[part.kind])


def _file(part: Media) -> dict[str, Any]:
    data = part.url or part.data or part.file_id or ""
    name = {"filename": part.filename} if part.filename else {}
    return {"type": "file", "data": data, "mediaType": _type(part), **name, **_detail(part)}
