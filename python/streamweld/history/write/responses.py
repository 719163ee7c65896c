"""Write input items of the Responses API and OpenResponses."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from streamweld.history.model import (
    MISSING,
    Call,
    Media,
    Opaque,
    Reasoning,
    Result,
    Text,
    arguments_text,
    custom_input,
    json_text,
    members_of,
)
from streamweld.history.write.common import Writer, result_content

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Path, Turn

__all__ = ["write"]

_CONTENT: Final = frozenset({Text, Media})
_FREE_OUTPUT: Final = "custom_tool_call_output"
_PREFIXES: Final = {"message": "msg_", "reasoning": "rs_"}  # prefixes of generated item ids


def write(turns: list[Turn], context: Context) -> dict[str, Any]:
    """Return the request members `{"instructions": …, "input": […]}`; without `instructions` if there are none."""
    writer = Writer(context, turns)
    payload: dict[str, Any] = {}
    items: list[Any] = []
    custom: set[str] = set()  # ids of calls of free-form tools
    required = context.facts("required_members")
    complete = _Completer(writer, required)
    for turn in turns:
        if turn.top:
            given = writer.reusable_message(turn.parts)
            texts = [part.text for part in turn.parts if isinstance(part, Text)]
            payload["instructions"] = "\n\n".join(texts) if given is None else given
            for part in turn.parts:
                writer.extra_members(part)
            writer.message_members(turn, turn.parts)
            continue
        run: list[Part] = []
        for part in turn.parts:
            kind = type(part)
            content = kind in _CONTENT or (kind is Opaque and _belongs_inside(part))
            if run and (not content or (part.origin is not run[-1].origin and _own_message(part, run[-1], writer))):
                item = _message(turn, run, writer)
                items.append(complete(item, run[0]) if required else item)
                run = []
            if content:
                run.append(part)
            else:
                item = _item(part, turn, writer, custom)
                items.append(complete(item, part) if required else item)
        if run:
            item = _message(turn, run, writer)
            items.append(complete(item, run[0]) if required else item)
        elif not turn.parts:
            whole = writer.reusable_message((), turn.origin)
            if members_of(whole).get("content", "") is None:
                writer.context.edit("message_empty", turn.path, "replaced the content null with an empty string")
                whole = {**whole, "content": ""}
            if whole is None:
                whole = {"type": "message", "role": turn.role, "content": "", **writer.message_members(turn, ())}
            items.append(_typed(whole, turn.path, writer))
    return payload | {"input": items}


class _Completer:
    """Adds the members that a target requires on replayed items, such as `id` and `status`, if they are missing."""

    def __init__(self, writer: Writer, required: Mapping[str, Sequence[str]]) -> None:
        self.writer = writer
        self.required = required
        self.times: dict[str, int] = {}  # number of generated ids, by content

    def __call__(self, item: Any, first: Part) -> Any:
        """Return the item with all required members, or the item itself if none is missing. `first`: the first part of
        the item.
        """
        if not _is_replayed(item):
            return self._with_images(item, first)
        given, kind = dict(item), item.get("type") or "message"
        if isinstance(item.get("content"), list):
            given["content"] = [self._block(block) for block in item["content"]]
        for name in self.required.get(kind, ()):
            if given.get(name) is None:
                given[name] = self._id(item, kind) if name == "id" else kind if name == "type" else "completed"
        return self._item(item, given, first)

    def _item(self, item: Any, given: Any, first: Part) -> Any:
        if given == item:
            return item
        if self.writer.own(first) and first.origin is not None:
            self.writer.context.edit("member_required", first.origin.path, "added members that the target requires")
        return given

    def _with_images(self, item: Any, first: Part) -> Any:
        """Return a message or call output with the members that the target requires on images."""
        if "image" not in self.required:
            return item
        given = members_of(item)
        name = "content" if "role" in given else "output"
        blocks: Any = given.get(name)
        if not isinstance(blocks, list):
            return item
        return self._item(item, {**given, name: [self._block(block) for block in blocks]}, first)

    def _block(self, block: Any) -> Any:
        kind = members_of(block).get("type")
        if kind == "output_text":
            return {**block, **{name: [] for name in self.required.get("text", ()) if block.get(name) is None}}
        if kind == "input_image":
            return {**block, **{name: "auto" for name in self.required.get("image", ()) if block.get(name) is None}}
        return block

    def _id(self, item: Mapping[str, Any], kind: str) -> str:
        """Return an id derived from the item's content, so that the same history always gets the same ids."""
        text = json_text([kind, item.get("content"), item.get("summary")], ())
        count = self.times[text] = self.times.get(text, 0) + 1
        digest = sha256(f"{text}\0{count}".encode("utf-8", "surrogatepass")).hexdigest()
        return f"{_PREFIXES[kind]}{digest[:24]}"


def _is_replayed(item: Any) -> bool:
    """Return whether the item is model output. An assistant message with a plain string counts as input."""
    given = members_of(item)
    if given.get("type") == "message" or ("type" not in given and "role" in given):
        return given.get("role") == "assistant" and not isinstance(given.get("content"), str)
    return given.get("type") == "reasoning"


def _belongs_inside(part: Part) -> bool:
    """Return whether an opaque part belongs inside a message instead of being a separate item."""
    return part.origin is None or "role" in members_of(part.origin.raw)


def _own_message(part: Part, before: Part, writer: Writer) -> bool:
    return writer.own(part) or writer.own(before)


def _message(turn: Turn, parts: Sequence[Part], writer: Writer) -> Any:
    if not writer.rewrites_all and (whole := writer.reusable_message(parts)) is not None:
        return _typed(whole, parts[0].origin.path if parts[0].origin is not None else turn.path, writer)
    role = "user" if turn.role == "tool" else turn.role
    only = parts[0]
    content: Any
    if role == "assistant" and writer.context.fact("assistant_content") == "string":
        content = "\n\n".join([part.text for part in parts if isinstance(part, Text)])
        for part in parts:
            writer.lose_extra_members(part)
    elif len(parts) == 1 and isinstance(only, Text) and not only.refusal and (only.raw is None or not writer.own(only)):
        if only.extra:
            writer.extra_members(only)
        content = only.text
    else:
        content = [_block(part, role, writer) for part in parts]
    message = {"type": "message", "role": role, "content": content}
    if members := turn.marks if writer.rewrites_all else writer.message_members(turn, parts):
        message |= members
    return message


def _typed(whole: Any, path: Path, writer: Writer) -> Any:
    """Return the message, with a `type` member if the target requires it."""
    if not writer.context.fact("message_type") or "type" in members_of(whole) or isinstance(whole, str):
        return whole
    writer.context.edit("message_type", path, "added the `type` of the message item")
    return {"type": "message", **whole}


def _block(part: Part, role: str, writer: Writer) -> Any:
    own = writer.reusable_block(part)
    if own is not None:
        return own
    if isinstance(part, Text):
        if part.refusal:
            return {"type": "refusal", "refusal": part.text, **writer.extra_members(part)}
        types: Mapping[str, str] = writer.context.facts("text_types")
        kind = types.get("system" if role == "developer" else role)
        kind = kind or ("output_text" if role == "assistant" else "input_text")
        return {"type": kind, "text": part.text, **writer.extra_members(part)}
    if isinstance(part, Media):
        return _media(part) | writer.extra_members(part)
    return part.raw


def _media(part: Media) -> dict[str, Any]:
    url = part.url or f"data:{part.media_type or 'application/octet-stream'};base64,{part.data or ''}"
    if part.kind == "image":
        where = {"file_id": part.file_id} if part.file_id else {"image_url": url}
        # The official type requires `detail`: openai-python, types/responses/response_input_image_param.py.
        return {"type": "input_image", **where, "detail": part.detail or "auto"}
    if part.kind == "video":
        return {"type": "input_video", "video_url": url}
    if part.kind == "audio":
        form = (part.media_type or "audio/wav").partition("/")[2]
        return {
            "type": "input_audio",
            "input_audio": {"data": part.data or "", "format": {"mpeg": "mp3"}.get(form, form)},
        }
    block: dict[str, Any] = {"type": "input_file"}
    if part.file_id:
        block["file_id"] = part.file_id
    elif part.url:
        block["file_url"] = part.url
    else:
        block["file_data"] = url
    if part.filename:
        block["filename"] = part.filename
    return block


def _item(part: Part, turn: Turn, writer: Writer, custom: set[str]) -> Any:
    if type(part) is Call and part.custom:
        custom.add(part.call_id)
    if (
        not writer.rewrites_all
        and (whole := writer.reusable_message((part,))) is not None
        and not _outlived(part, whole, writer, custom)
    ):
        if not (isinstance(part, Result) and _is_misformed(part)):
            return whole
        writer.context.edit("result_form", part.path, "converted the output of a call to text")
    if type(part) is Call:
        item = _call(part, writer)
    elif type(part) is Result:
        item = _output(part, writer, custom)
    elif type(part) is Reasoning:
        item = _reasoning(part, writer)
    else:
        return part.raw
    if part.item_id:
        item = {"type": item["type"], "id": part.item_id, **item}
    if part.extra:
        item |= writer.extra_members(part)
    if members := turn.marks if writer.rewrites_all else writer.message_members(turn, (part,)):
        item |= members
    return item


def _is_misformed(part: Result) -> bool:
    """Return whether the output is neither text nor a list: an object or null."""
    return part.value is not MISSING or members_of(part.raw).get("output") is None


def _outlived(part: Part, whole: Any, writer: Writer, custom: set[str]) -> bool:
    """Return whether the part is the output of a free-form call that was converted to a function call.

    Calls are converted if the target has no free-form tools.
    """
    free = writer.context.fact("free_form_tools")
    return isinstance(part, Result) and not free and whole["type"] == _FREE_OUTPUT and part.call_id not in custom


def _call(part: Call, writer: Writer) -> dict[str, Any]:
    if part.signature and not writer.own(part):
        writer.context.lose(
            "signature", part.path, "the target has no member for the signature of a call", part.signature
        )
    if part.custom:
        return {"type": "custom_tool_call", "call_id": part.call_id, "name": part.name, "input": custom_input(part)}
    text = part.arguments or arguments_text(part) or "{}"
    return {"type": "function_call", "call_id": part.call_id, "name": part.name, "arguments": text}


def _output(part: Result, writer: Writer, custom: set[str]) -> dict[str, Any]:
    if part.is_error:
        writer.context.lose_error_flag(part)
    given = result_content(part)
    output = given if isinstance(given, str) else [_block(inner, "user", writer) for inner in given]
    kind = _FREE_OUTPUT if part.call_id in custom else "function_call_output"
    return {"type": kind, "call_id": part.call_id, "output": output}


def _reasoning(part: Reasoning, writer: Writer) -> dict[str, Any]:
    raw = part.kind == "raw" and not writer.context.facts("reasoning").get("content")
    item: dict[str, Any] = {
        "type": "reasoning",
        "summary": [] if raw else [{"type": "summary_text", "text": text} for text in part.segments],
    }
    if raw:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in part.segments]
    if part.signature:
        why = "the target's reasoning items have no member for a signature"
        writer.context.lose("signature", part.path, why, part.signature)
    if part.encrypted:
        item["encrypted_content"] = part.encrypted
    return item
