"""Read AI SDK UIMessages and ModelMessages for the checker.

Source: the AI SDK's message types, convertToModelMessages and convertToLanguageModelPrompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.history.check.view import Block, Message, View, as_json, blocks_of, is_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.history.check.report import Path, Report
    from streamweld.history.check.view import Json, Kind

__all__ = ["read_model", "read_ui"]

_SHOWN_ONLY: Final = ("step-start", "source-url", "source-document", "reasoning-file", "custom")
_ANSWERED: Final = ("output-available", "output-error", "output-denied")
# A part that is still streaming is not sent; a call that waits for approval, or has it, needs no result.
_SETTLED: Final = ("input-streaming", "approval-requested", "approval-responded")


def _media(media_type: Any) -> Kind:
    head = str(media_type or "").partition("/")[0]
    return cast("Kind", head) if head in ("image", "audio", "video") else "file"


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _messages(items: Sequence[Any], base: Path, report: Report) -> list[tuple[Json, Path, str]]:
    found: list[tuple[Json, Path, str]] = []
    for n, raw in enumerate(items):
        told = as_json(raw)
        if told is None or not isinstance(told.get("role"), str):
            report.add("shape", (*base, n), "a message is an object with a role")
        else:
            found.append((told, (*base, n), str(told["role"])))
    return found


def read_ui(items: Sequence[Any], base: Path, payload: Json, report: Report) -> View:
    """UIMessages; what is none is said. A tool part is a call, and its result if it has one."""
    messages: list[Message] = []
    for told, path, wire in _messages(items, base, report):
        parts = told.get("parts")
        if not is_list(parts):
            report.add("shape", path, "a message has a list of parts")
            parts = ()
        blocks: list[Block] = []
        for n, raw in enumerate(cast("Sequence[Any]", parts)):
            piece = as_json(raw)
            if piece is None:
                report.add("shape", (*path, "parts", n), "a part is an object")
            else:
                blocks += _ui_part(piece, (*path, "parts", n), report)
        messages.append(Message(wire, wire, path, told, blocks))
    return View(messages, base, payload).join()


def _ui_part(raw: Json, path: Path, report: Report) -> list[Block]:
    kind = str(raw.get("type"))
    if kind in ("text", "reasoning"):
        if not isinstance(raw.get("text"), str):
            report.add("shape", path, "a part of text has a text")
        return [Block(cast("Kind", kind), path, raw, kind, str(raw.get("text") or ""))]
    if kind == "file":
        return [Block(_media(raw.get("mediaType")), path, raw, kind)]
    if kind == "dynamic-tool" or kind.startswith("tool-"):
        if raw.get("providerExecuted"):
            return [Block("other", path, raw, kind)]
        name = raw.get("toolName") if kind == "dynamic-tool" else kind[5:]
        call_id, state = _name(raw.get("toolCallId")), raw.get("state")
        call = Block("call", path, raw, kind, id=call_id, name=_name(name), settled=state in _SETTLED)
        if state not in (*_ANSWERED, *_SETTLED, "input-available"):
            report.add("shape", path, f"a tool part has a state, not {state!r}")
        if state in _ANSWERED and not raw.get("preliminary"):
            return [call, Block("result", path, raw, kind, id=call_id)]
        return [call]
    known = kind in _SHOWN_ONLY or kind.startswith("data-")
    return [Block("other" if known else "unknown", path, raw, kind)]


def read_model(items: Sequence[Any], base: Path, payload: Json, report: Report) -> View:
    """ModelMessages; what is none is said."""
    messages: list[Message] = []

    def part(raw: Json, at: Path) -> Block:
        return _model_part(raw, at, report)

    for told, path, wire in _messages(items, base, report):
        content = told.get("content")
        blocks, plain = blocks_of(content, (*path, "content"), report, part)
        if wire == "system" and not plain:
            report.add("shape", path, "a system message is a text")
        if wire == "tool" and plain:
            report.add("shape", path, "a tool message is a list of results")
        if content is None:
            report.add("shape", path, "a message has a content")
        if wire != "tool":  # beside its call stands what the provider ran itself
            for block in blocks:
                block.kind = "other" if block.kind == "result" else block.kind
        messages.append(Message(wire, wire, path, told, blocks, plain))
    return View(messages, base, payload).join("tool")


def _model_part(raw: Json, path: Path, report: Report) -> Block:
    kind = str(raw.get("type"))
    if kind in ("text", "reasoning"):
        if not isinstance(raw.get("text"), str):
            report.add("shape", path, "a part of text has a text")
        return Block(cast("Kind", kind), path, raw, kind, str(raw.get("text") or ""))
    if kind == "image":
        return Block("image", path, raw, kind)
    if kind == "file":
        return Block(_media(raw.get("mediaType")), path, raw, kind)
    if kind == "tool-call" and raw.get("providerExecuted"):
        return Block("other", path, raw, kind)
    if kind in ("tool-call", "tool-result"):
        block = Block("call" if kind == "tool-call" else "result", path, raw, kind)
        block.id, block.name = _name(raw.get("toolCallId")), _name(raw.get("toolName"))
        if kind == "tool-result":
            output = as_json(raw.get("output"))
            if output is None or not isinstance(output.get("type"), str):
                report.add("shape", path, "a tool result has an output with a type")
        return block
    known = kind in ("tool-approval-request", "tool-approval-response", *_SHOWN_ONLY)
    return Block("other" if known else "unknown", path, raw, kind)
