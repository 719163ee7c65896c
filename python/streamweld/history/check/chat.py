"""Read Chat Completions messages for the checker, including those of Mistral and other compatible servers.

Source: OpenAI API reference, Chat Completions; mistral-common for thinking chunks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.history.check.view import Block, Message, View, as_json, blocks_of, is_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld.history.check.report import Path, Report
    from streamweld.history.check.view import Json, Kind

__all__ = ["read"]

_KINDS: Final[Mapping[str, Kind]] = {
    "text": "text",
    "refusal": "refusal",
    "image_url": "image",
    "input_audio": "audio",
    "file": "file",
    "document_url": "file",
    "file_id": "file",
    "video_url": "video",
    "thinking": "reasoning",
    "reference": "other",
}
_FIELDS: Final = ("reasoning_content", "reasoning")


def read(items: Sequence[Any], base: Path, payload: Json, report: Report) -> View:
    """Read Chat Completions messages, and report items that are not messages."""
    messages: list[Message] = []
    for n, raw in enumerate(items):
        fields = as_json(raw)
        if fields is None or not isinstance(fields.get("role"), str):
            report.add("shape", (*base, n), "a message must be an object with a role")
            continue
        messages.append(_message(fields, (*base, n), report))
    return View(messages, base, payload).join("tool")


def _message(raw: Json, path: Path, report: Report) -> Message:
    wire = str(raw["role"])
    role = "tool" if wire == "function" else wire
    inner, plain = blocks_of(raw.get("content"), (*path, "content"), report, _block)
    if role == "tool":
        call_id = raw.get("tool_call_id")
        # The result of a deprecated `function_call` has no id, so it cannot be matched to its call.
        kind: Kind = "other" if wire == "function" else "result"
        result = Block(kind, path, raw, "tool", id=call_id if isinstance(call_id, str) else None, inner=inner)
        return Message(role, wire, path, raw, [result], plain)
    blocks: list[Block] = []
    for name in _FIELDS:
        thought = raw.get(name)
        if isinstance(thought, str):
            blocks.append(Block("reasoning", (*path, name), raw, name, thought))
    # Many servers send empty text along with tool calls.
    blocks += [] if plain and inner[0].text == "" and raw.get("tool_calls") else inner
    refusal = raw.get("refusal")
    if isinstance(refusal, str) and refusal:
        blocks.append(Block("refusal", (*path, "refusal"), raw, "refusal", refusal))
    blocks += _calls(raw.get("tool_calls"), (*path, "tool_calls"), report)
    if raw.get("function_call") is not None:
        blocks.append(Block("other", (*path, "function_call"), raw["function_call"], "function_call"))
    return Message(role, wire, path, raw, blocks, plain)


def _calls(entries: Any, path: Path, report: Report) -> list[Block]:
    if entries is None:
        return []
    if not is_list(entries) or not entries:
        report.add("shape", path, "tool_calls must be a list with at least one call, or be omitted")
        return []
    found: list[Block] = []
    for n, raw in enumerate(cast("Sequence[Any]", entries)):
        entry = as_json(raw)
        kind = "custom" if entry is not None and entry.get("custom") is not None else "function"
        function = None if entry is None else as_json(entry.get(kind))
        if entry is None or function is None:
            report.add("shape", (*path, n), "a tool call must be an object with a function")
            continue
        arguments = function.get("input" if kind == "custom" else "arguments")
        if not isinstance(arguments, str):
            report.add("arguments_not_text", (*path, n), type(arguments).__name__)
        call_id, name = entry.get("id"), function.get("name")
        found.append(
            Block(
                "call",
                (*path, n),
                entry,
                kind,
                id=call_id if isinstance(call_id, str) else None,
                name=name if isinstance(name, str) else None,
                arguments=arguments,
                signature=_signature(entry) if "extra_content" in entry else None,
            )
        )
    return found


def _signature(call: Json) -> str | None:
    """Return the signature that Google's endpoint requires on a call."""
    value: Any = call
    for name in ("extra_content", "google", "thought_signature"):
        value = (as_json(value) or {}).get(name)
    return value if isinstance(value, str) and value else None


def _block(raw: Json, path: Path) -> Block:
    kind = str(raw.get("type"))
    if kind == "file" and "file" not in raw:
        kind = "file_id"  # Mistral's FileChunk
    text = raw.get("refusal" if kind == "refusal" else "text")
    if kind == "text" and not isinstance(text, str):
        return Block("unknown", path, raw, kind)
    return Block(_KINDS.get(kind, "unknown"), path, raw, kind, text if isinstance(text, str) else "")
