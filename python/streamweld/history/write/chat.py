"""Write Chat Completions messages, including Mistral's variant, in which thinking is part of the content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld.history.chat_reasoning import (
    DETAILS,
    EXTRA_CONTENT,
    REASONING_ITEMS,
    SIGNATURE_MEMBERS,
    THINKING_BLOCKS,
    call_signature,
    detailed_proof,
    is_in_place,
    reasoning_member,
    signature_member,
    signature_value,
    text_signature_member,
    write_details,
)
from streamweld.history.media_types import short_form
from streamweld.history.model import (
    EMPTY,
    Call,
    Media,
    Opaque,
    Reasoning,
    Result,
    Text,
    arguments_text,
    custom_input,
    members_of,
)
from streamweld.history.write.common import Writer, result_content

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["write"]


def write(turns: list[Turn], context: Context) -> dict[str, Any]:
    """Return the request members `{"messages": […]}`."""
    writer = Writer(context, turns)
    messages: list[Any] = []
    for turn in turns:
        if turn.role == "tool":
            messages += _results(turn, writer)
            continue
        message = None if turn.marks else writer.reusable_message(turn.parts, turn.origin)
        messages.append(_message(turn, writer) if message is None else message)
    return {"messages": messages}


def _message(turn: Turn, writer: Writer) -> dict[str, Any]:
    facts = writer.context.facts("reasoning")
    chunks = facts.get("accept") == "chunks"
    thoughts: list[Reasoning] = []
    blocks: list[Part] = []
    refusals: list[Text] = []
    calls: list[Call] = []
    for part in turn.parts:
        if isinstance(part, Call):
            calls.append(part)
        elif isinstance(part, Text) and part.refusal:
            refusals.append(part)
        elif isinstance(part, Reasoning):
            thoughts.append(part)
            if chunks:
                blocks.append(part)
        elif isinstance(part, (Text, Media, Opaque)):
            blocks.append(part)
    message: dict[str, Any] = {"role": turn.role}
    if blocks:
        signature = _text_signature(blocks, turn.role, writer)
        last = blocks[-1]
        if signature and len(blocks) > 1 and isinstance(last, Text) and not last.text:
            blocks.pop()  # this part contains only the signature
        message["content"] = _content(blocks, writer)
        if signature:
            message |= text_signature_member(
                signature, writer.context.facts("members").get(turn.role, (EXTRA_CONTENT,))
            )
    else:
        message["content"] = None if calls or refusals else ""
    if refusals:
        message["refusal"] = "".join([part.text for part in refusals])
    way = facts.get("details")
    details = write_details(thoughts, calls, every=way == "every") if way else []
    if details:
        message[DETAILS] = details
        for part in thoughts:
            writer.lose_proof(part, "item_id", *detailed_proof(part))
            if part.touched or not writer.own(part):
                writer.lose_extra_members(part)
    elif thoughts:
        _reasoning(thoughts, message, writer, chunks=chunks)
    origin = turn.origin
    if origin is not None and origin.dialect == writer.dialect and members_of(origin.raw).get("tool_calls") == []:
        writer.context.edit("calls_empty", origin.path, "dropped an empty tool_calls list")
    if calls:
        message["tool_calls"] = [_call(part, writer, detailed=bool(details)) for part in calls]
    if members := writer.message_members(turn, turn.parts):
        message |= members
    return message


def _text_signature(blocks: Sequence[Part], role: str, writer: Writer) -> str | None:
    """Return the signature of the last part if that part is text, and record the signatures of other parts as losses.

    A message has only one member for a signature, and the reader assigns that signature to the last part.
    """
    members = writer.context.fact("members")
    found: str | None = None
    for part in blocks:
        if isinstance(part, Text) and part.signature:
            known = bool(text_signature_member(part.signature, members.get(role, ()))) if members else None
            listed = known if known is not None else role == "assistant" and writer.own(part)
            if part is blocks[-1] and listed:
                found = part.signature
            else:
                why = "the target has no member for the signature of this text part"
                writer.context.lose("signature", part.path, why, part.signature)
    return found


def _reasoning(thoughts: Sequence[Reasoning], message: dict[str, Any], writer: Writer, *, chunks: bool) -> None:
    """Write Anthropic's signed and redacted reasoning as blocks, if the target has a member for them. Write the text of
    all other reasoning, and record its signatures, encrypted content and item ids as losses.

    `chunks`: whether the text is already in `content`, in which case only the losses are recorded.
    """
    facts, listed = writer.context.facts("reasoning"), writer.context.facts("members").get("assistant", ())
    plain: list[Reasoning] = []
    for part in thoughts:
        member = "" if chunks else reasoning_member(part, facts, listed)
        if member == THINKING_BLOCKS:
            message.setdefault(member, []).append(_thinking(part, writer))
            continue
        if member == REASONING_ITEMS:
            message.setdefault(member, []).append(part.raw)
            continue
        plain.append(part)
        for name, value in (("signature", part.signature), ("encrypted", part.encrypted), ("item_id", part.item_id)):
            if value:
                writer.context.lose(name, part.path, "the target accepts only the text of reasoning", value)
    if plain and not chunks:
        field = facts.get("field", "reasoning_content")
        message[field] = "\n\n".join([part.text for part in plain])
        for part in plain:
            writer.lose_extra_members(part)


def _thinking(part: Reasoning, writer: Writer) -> Any:
    """Return Anthropic's block for this reasoning."""
    own = writer.reusable_block(part) if part.member == THINKING_BLOCKS else None
    if own is not None:
        return own
    if part.item_id:
        writer.context.lose("item_id", part.path, "the target has no member for it in this reasoning", part.item_id)
    if part.kind == "redacted" or (part.encrypted and not part.text):
        writer.lose_proof(part, "encrypted", "item_id")
        block = {"type": "redacted_thinking", "data": part.encrypted or ""}
    else:
        writer.lose_proof(part, "signature", "item_id")
        block = {"type": "thinking", "thinking": part.text, "signature": part.signature or ""}
    return block | writer.extra_members(part)


def _content(parts: Sequence[Part], writer: Writer) -> Any:
    only = parts[0]
    if (
        len(parts) == 1
        and isinstance(only, Text)
        and not writer.extra_members(only)
        and (only.raw is None or not writer.own(only))
    ):
        return only.text
    return [_block(part, writer) for part in parts]


def _block(part: Part, writer: Writer) -> Any:
    own = writer.reusable_block(part)
    if own is not None:
        return own
    if isinstance(part, Text):
        return {"type": "text", "text": part.text, **writer.extra_members(part)}
    if isinstance(part, Reasoning):
        return {"type": "thinking", "thinking": [{"type": "text", "text": part.text}], **writer.extra_members(part)}
    if isinstance(part, Media):
        return _media(part, writer) | writer.extra_members(part)
    return part.raw


def _media(part: Media, writer: Writer) -> dict[str, Any]:
    url = part.url or f"data:{part.media_type or 'application/octet-stream'};base64,{part.data or ''}"
    if part.kind == "image":
        image: dict[str, Any] = {"url": url}
        if part.detail:
            image["detail"] = part.detail
        return {"type": "image_url", "image_url": image}
    if part.kind == "video":
        return {"type": "video_url", "video_url": {"url": url}}
    if part.kind == "audio":
        form = short_form(part.media_type or "audio/wav", "audio")
        return {"type": "input_audio", "input_audio": {"data": part.data or "", "format": form}}
    if "document_url" in (writer.context.fact("file_types") or ()):
        return {
            "type": "document_url",
            "document_url": url,
            **({"document_name": part.filename} if part.filename else {}),
        }
    file: dict[str, Any] = {"file_id": part.file_id} if part.file_id else {"file_data": url}
    if part.filename:
        file["filename"] = part.filename
    return {"type": "file", "file": file}


def _call(part: Call, writer: Writer, *, detailed: bool) -> Any:
    """Return a call. `detailed`: whether the message's `reasoning_details` contain the signature."""
    own = writer.reusable_block(part)
    carried: Mapping[str, Any] = EMPTY
    if part.signature:
        carried = _carried_signature(part, writer) if own is None else EMPTY
        placed = detailed or bool(carried) or call_signature(members_of(own)) is not None
        # If a call was read from this dialect, `passes.items` has already recorded the removal of members that the
        # target lacks.
        if not placed and not (writer.own(part) and writer.context.fact("members")):
            why = "the target has no member for the signature of a call"
            writer.context.lose("signature", part.path, why, part.signature)
    if own is not None:
        return own
    head: dict[str, Any] = {"id": part.call_id, "type": "function", **carried}
    if part.custom:
        custom = {"name": part.name, "input": custom_input(part)}
        return head | {"type": "custom", "custom": custom} | writer.extra_members(part)
    head["function"] = {"name": part.name, "arguments": arguments_text(part) or "{}"}
    return head | writer.extra_members(part) if part.extra else head


def _carried_signature(part: Call, writer: Writer) -> Mapping[str, Any]:
    """Return the member with the signature of a call, if the target accepts one."""
    raw, known = members_of(part.raw) if writer.own(part) else EMPTY, writer.context.facts("members").get("call")
    carried = {
        name: raw[name]
        for name in SIGNATURE_MEMBERS
        if name in raw and name not in part.extra and (known is None or (name in known and is_in_place(raw, name)))
    }
    if carried or known is None or not part.signature:
        return carried
    name = signature_member(known)
    return EMPTY if name is None else {name: signature_value(name, part.signature)}


def _results(turn: Turn, writer: Writer) -> list[Any]:
    messages: list[Any] = []
    for part in turn.parts:
        if not isinstance(part, Result):
            writer.lose_part(part)
            continue
        own = writer.reusable_message((part,))
        if own is not None:
            messages.append(own)
            continue
        if part.is_error:
            writer.context.lose_error_flag(part)
        given = result_content(part)
        content = given if isinstance(given, str) else [_block(inner, writer) for inner in given]
        message: dict[str, Any] = {"role": "tool", "tool_call_id": part.call_id, "content": content}
        if part.name and writer.own(part) and "name" in writer.context.facts("members").get("tool", ("name",)):
            message["name"] = part.name
        message |= writer.extra_members(part)
        if members := writer.message_members(turn, (part,)):
            message |= members
        messages.append(message)
    return messages
