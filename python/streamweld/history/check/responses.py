"""Read input items of the Responses API and OpenResponses for the checker.

Source: OpenResponses schema, ItemParam. Items whose type is not in the schema are treated as extensions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.check.view import Block, Message, View, as_json, blocks_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld.history.check.report import Path, Report
    from streamweld.history.check.view import Json, Kind

__all__ = ["read"]

_KINDS: Final[Mapping[str, Kind]] = {
    "input_text": "text",
    "output_text": "text",
    "text": "text",
    "refusal": "refusal",
    "input_image": "image",
    "input_audio": "audio",
    "input_file": "file",
    "input_video": "video",
}
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
# Items that the server creates, except calls. Like server calls, such items may come between reasoning and the text.
_SERVER_ITEMS: Final = frozenset({"mcp_approval_request", "mcp_list_tools", "program", "compaction"})
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")


def read(items: Sequence[Any], base: Path, payload: Json, report: Report) -> View:
    """Read input items, and report values that are not items. Consecutive items with the same role form one turn."""
    messages: list[Message] = []
    for n, raw in enumerate(items):
        item = as_json(raw)
        if item is None:
            report.add("shape", (*base, n), "an item must be an object")
            continue
        messages.append(_item(item, (*base, n), report))
    view = View(messages, base, payload, payload.get("instructions"), ("instructions",))
    return view.join("assistant", "tool")


def _item(item: Json, path: Path, report: Report) -> Message:
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        return _message(item, path, report)
    kind = str(kind)
    if kind in _CALLS:
        member = _CALLS[kind]
        if not isinstance(item.get(member), str):
            report.add("arguments_not_text", path, type(item.get(member)).__name__)
        call = Block("call", path, item, kind, id=_text(item, "call_id"), name=_text(item, "name"))
        call.arguments, call.item_id = item.get(member), _text(item, "id")
        return Message("assistant", "", path, item, [call], item=kind)
    if kind in _OUTPUTS:
        output = item.get("output")
        inner, _ = blocks_of(output, (*path, "output"), report, _block)
        if output is None:
            report.add("shape", path, "an output item must have an `output`")
        result = Block("result", path, item, kind, id=_text(item, "call_id"), item_id=_text(item, "id"), inner=inner)
        return Message("tool", "", path, item, [result], item=kind)
    if kind == "reasoning":
        if not isinstance(item.get("summary"), list | tuple):
            report.add("shape", path, "the `summary` of a reasoning item must be a list")
        thought = Block("reasoning", path, item, kind, item_id=_text(item, "id"))
        thought.encrypted = _text(item, "encrypted_content") or None
        return Message("assistant", "", path, item, [thought], item=kind)
    if kind == "item_reference" or (kind == "None" and "id" in item):
        reference = Block("reference", path, item, kind, id=_text(item, "id"))
        return Message("other", "", path, item, [reference], item="item_reference")
    if not isinstance(item.get("type"), str) or not kind:
        report.add("shape", path, "an item must have a type, and a message a role")
    role = "assistant" if kind.endswith("_call") or kind in _SERVER_ITEMS else "other"
    return Message(role, "", path, item, [Block("other", path, item, kind, item_id=_text(item, "id"))], item=kind)


def _message(item: Json, path: Path, report: Report) -> Message:
    wire = _text(item, "role") or ""
    blocks, plain = blocks_of(item.get("content"), (*path, "content"), report, _block)
    if item.get("content") is None:
        report.add("shape", path, "a message must have `content`")
    if report.fact("message_type") and "type" not in item:
        report.add("message_type_missing", path, wire, "message_type")
    return Message(wire, wire, path, item, blocks, plain)


def _block(raw: Json, path: Path) -> Block:
    kind = str(raw.get("type"))
    text = raw.get("refusal" if kind == "refusal" else "text")
    found: Kind = _KINDS.get(kind, "unknown")
    if found == "text" and not isinstance(text, str):
        found = "unknown"
    return Block(found, path, raw, kind, text if isinstance(text, str) else "")


def _text(item: Json, name: str) -> str | None:
    value = item.get(name)
    return value if isinstance(value, str) else None
