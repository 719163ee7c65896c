"""Read a `streamweld.Response` as the assistant's next turn.

If the dialect of a response is known, the response is first rebuilt as the message that its own API would accept. If
the dialect is unknown, the items of the response are read directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._json import JsonFault, loads_raw
from streamweld.events import (
    File,
    ProviderItem,
    ReasoningDone,
    RefusalDone,
    Source,
    TextDone,
    ToolCall,
    ToolResult,
    Unknown,
)
from streamweld.history.model import (
    MISSING,
    Call,
    Opaque,
    Origin,
    Reasoning,
    Result,
    Text,
    Turn,
    changed,
    copied,
    members_of,
)
from streamweld.history.read.common import locate, media_from_url
from streamweld.history.replay import replay
from streamweld.history.replay.common import arguments_of, written

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld.history.model import Part, Path
    from streamweld.history.replay.common import Where
    from streamweld.response import Item, Response

    Reader = Callable[[Any, Path, str | None], list[Turn]]

__all__ = ["DIALECT", "read", "read_as_it_was"]

DIALECT: Final = "response"


def read_as_it_was(
    response: Response, path: Path, issuer: str | None, readers: Mapping[str, Reader], family: str
) -> list[Turn]:
    """Return the turns of the first choice, read from the messages that the response's own API would accept.

    `readers`: the reader for each dialect; `family`: the dialect of the surrounding messages.
    """
    entry = replay(response, family)
    if entry is None:
        return read(response, path, issuer)
    dialect, made = entry
    turns: list[Turn] = []
    for message in made.messages:
        for turn in readers[dialect](message.raw, path, issuer):
            _join(turns, Turn(turn.role, tuple(_traced(turn, message.where, response, path)), turn.origin))
    origin = Origin(DIALECT, path, response)
    for n in made.beside:
        part = _beside(response.items[n], origin, (*path, "items", n), issuer, response.model)
        _join(turns, Turn("tool" if isinstance(part, Result) else "assistant", (part,), origin))
    return turns


def _join(turns: list[Turn], turn: Turn) -> None:
    """Append a turn, or merge it into the last turn if both have the same role."""
    if turns and turns[-1].role == turn.role:
        turns[-1] = Turn(turn.role, (*turns[-1].parts, *turn.parts), turns[-1].origin or turn.origin)
    else:
        turns.append(turn)


def _traced(turn: Turn, where: Where, response: Response, path: Path) -> list[Part]:
    """Return the parts, with the path of the response item that each part came from.

    Arguments that are not a JSON object are kept as text.
    """
    parts: list[Part] = []
    for part in turn.parts:
        inner = part.path[len(path) :]
        at = next((where[inner[:end]] for end in range(len(inner), -1, -1) if inner[:end] in where), None)
        if at is None:
            parts.append(copied(part, path=path))
            continue
        item = response.items[at]
        traced: Part = copied(part, path=(*path, "items", at))
        if isinstance(traced, Reasoning):
            traced = copied(traced, model=response.model)
            if traced.raw is None:  # rewrite a message member, because its name depends on the target
                traced = changed(traced)
        elif isinstance(traced, Call) and isinstance(item, ToolCall) and _is_broken(item, traced):
            traced = changed(traced, arguments=written(item), input=MISSING)
        parts.append(traced)
    return parts


def _is_broken(item: ToolCall, call: Call) -> bool:
    """Return whether the arguments are not an object although the dialect requires one."""
    return arguments_of(item) is None and call.input is not MISSING and not call.custom


def _beside(item: Item, origin: Origin, path: Path, issuer: str | None, model: str | None) -> Part:
    """Return a part for an item that no message of the dialect can contain, such as the citations of a text part."""
    if isinstance(item, TextDone):
        return Opaque(*locate(origin, path, list(item.annotations)), kind="annotations", dialect=DIALECT)
    return _part(item, origin, path, issuer, model)


def read(response: Response, path: Path, issuer: str | None = None) -> list[Turn]:
    """Return the turn for the first choice and, if the stream contains tool results, a second turn for the results."""
    origin = Origin(DIALECT, path, response)
    sent: list[Part] = []
    answered: list[Part] = []
    for n, item in enumerate(response.items):
        part = _part(item, origin, (*path, "items", n), issuer, response.model)
        if isinstance(part, Result):
            answered.append(part)
        else:
            sent.append(part)
    turns = [Turn("assistant", tuple(sent), origin)]
    if answered:
        turns.append(Turn("tool", tuple(answered), origin))
    return turns


def _part(item: Item, origin: Origin, path: Path, issuer: str | None, model: str | None) -> Part:
    match item:
        case TextDone():
            return Text(*locate(origin, path, item), text=item.text)
        case RefusalDone():
            return Text(*locate(origin, path, item), text=item.text, refusal=True)
        case ReasoningDone():
            return Reasoning(
                *locate(origin, path, item),
                segments=(item.text,) if item.text else (),
                kind=item.kind if item.kind in ("summary", "raw", "redacted") else "thinking",
                item_id=item.item_id,
                signature=item.signature,
                encrypted=item.encrypted_content,
                issuer=issuer or ("openai" if item.item_id and item.encrypted_content else None),
                model=model,
            )
        case ToolCall() if item.provider_executed:
            return Opaque(*locate(origin, path, item), kind="server_tool_call", dialect=DIALECT)
        case ToolCall() if item.custom:
            common = locate(origin, path, item)
            given = {"input": item.arguments}
            return Call(*common, call_id=item.call_id, name=item.name, input=given, item_id=item.item_id, custom=True)
        case ToolCall():
            signature = _google_signature(item.provider_metadata)
            common = locate(origin, path, item)
            return Call(
                *common,
                call_id=item.call_id,
                name=item.name,
                arguments=written(item),
                item_id=item.item_id,
                signature=signature,
            )
        case ToolResult():
            if isinstance(item.output, str):
                entry = Text(text=item.output)
                return Result(*locate(origin, path, item), call_id=item.call_id, parts=(entry,), is_error=item.is_error)
            return Result(*locate(origin, path, item), call_id=item.call_id, value=item.output, is_error=item.is_error)
        case File():
            common = locate(origin, path, item)
            if item.data:
                return media_from_url(common, f"data:{item.media_type or ''};base64,{item.data}", item.media_type)
            return media_from_url(common, item.url or "", item.media_type)
        case ProviderItem():
            return Opaque(*locate(origin, path, item.value), kind=item.kind, dialect="responses")
        case Unknown():
            return _unknown(item, origin, path)
        case Source():
            return Opaque(*locate(origin, path, item), kind="source", dialect=DIALECT)


def _unknown(item: Unknown, origin: Origin, path: Path) -> Opaque:
    """Return an unknown item unchanged, because the API that sent the item accepts it."""
    try:
        raw = loads_raw(item.raw.decode("utf-8", "replace"))
    except (JsonFault, ValueError):
        raw = None
    kind = members_of(raw).get("type")
    return Opaque(*locate(origin, path, raw), kind=str(kind or "unknown"), dialect="responses")


def _google_signature(metadata: dict[str, Any] | None) -> str | None:
    entry = members_of(metadata)
    extra = members_of(entry.get("extra_content"))
    for holder in (entry, members_of(extra.get("google")), members_of(extra.get("vertex"))):
        for name in ("thoughtSignature", "thought_signature"):
            found = holder.get(name)
            if isinstance(found, str) and found:
                return found
    return None
