"""Reads a `streamweld.Response`: what a parser made of an answer is the assistant's next turn.

It knows no dialect; whatever the answer came in, its closing events say the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._json import JsonFault, loads_raw
from streamweld.events import File, ReasoningDone, RefusalDone, Source, TextDone, ToolCall, ToolResult, Unknown
from streamweld.history.model import Call, Opaque, Origin, Reasoning, Result, Text, Turn, members_of
from streamweld.history.reading import file_of, placed

if TYPE_CHECKING:
    from streamweld.history.model import Part, Path
    from streamweld.response import Item, Response

__all__ = ["DIALECT", "read"]

DIALECT: Final = "response"


def read(response: Response, path: Path, issuer: str | None = None) -> list[Turn]:
    """The turn of the first choice; a second turn with the results that came in the same stream."""
    origin = Origin(DIALECT, path, response)
    said: list[Part] = []
    answered: list[Part] = []
    for n, item in enumerate(response.items):
        part = _part(item, origin, (*path, "items", n), issuer, response.model)
        if isinstance(part, Result):
            answered.append(part)
        else:
            said.append(part)
    turns = [Turn("assistant", tuple(said), origin)]
    if answered:
        turns.append(Turn("tool", tuple(answered), origin))
    return turns


def _part(item: Item, origin: Origin, path: Path, issuer: str | None, model: str | None) -> Part:
    match item:
        case TextDone():
            return Text(**placed(origin, path, item), text=item.text)
        case RefusalDone():
            return Text(**placed(origin, path, item), text=item.text, refusal=True)
        case ReasoningDone():
            return Reasoning(
                **placed(origin, path, item),
                segments=(item.text,) if item.text else (),
                kind=item.kind if item.kind in ("summary", "raw", "redacted") else "thinking",
                item_id=item.item_id,
                signature=item.signature,
                encrypted=item.encrypted_content,
                issuer=issuer or ("openai" if item.item_id and item.encrypted_content else None),
                model=model,
            )
        case ToolCall() if item.provider_executed:
            return Opaque(**placed(origin, path, item), kind="server_tool_call", dialect=DIALECT)
        case ToolCall() if item.custom:
            place = placed(origin, path, item)
            given = {"input": item.arguments}
            return Call(**place, call_id=item.call_id, name=item.name, input=given, item_id=item.item_id, custom=True)
        case ToolCall():
            signature = _google_signature(item.provider_metadata)
            place = placed(origin, path, item)
            text = item.raw_arguments if item.state == "invalid" and item.raw_arguments else item.arguments
            return Call(
                **place, call_id=item.call_id, name=item.name, arguments=text, item_id=item.item_id, signature=signature
            )
        case ToolResult():
            if isinstance(item.output, str):
                told = Text(text=item.output)
                return Result(**placed(origin, path, item), call_id=item.call_id, parts=(told,), is_error=item.is_error)
            return Result(**placed(origin, path, item), call_id=item.call_id, value=item.output, is_error=item.is_error)
        case File():
            place = placed(origin, path, item)
            if item.data:
                return file_of(place, f"data:{item.media_type or ''};base64,{item.data}", item.media_type)
            return file_of(place, item.url or "", item.media_type)
        case Unknown():
            return _unknown(item, origin, path)
        case Source():
            return Opaque(**placed(origin, path, item), kind="source", dialect=DIALECT)


def _unknown(item: Unknown, origin: Origin, path: Path) -> Opaque:
    """An item that no event models, as it stood on the wire: the dialect it came from takes it back."""
    try:
        raw = loads_raw(item.raw.decode("utf-8", "replace"))
    except (JsonFault, ValueError):
        raw = None
    kind = members_of(raw).get("type")
    return Opaque(**placed(origin, path, raw), kind=str(kind or "unknown"), dialect="responses")


def _google_signature(metadata: dict[str, Any] | None) -> str | None:
    told = members_of(metadata)
    for holder in (told, members_of(members_of(told.get("extra_content")).get("google"))):
        for name in ("thoughtSignature", "thought_signature"):
            found = holder.get(name)
            if isinstance(found, str) and found:
                return found
    return None
