"""Read Anthropic messages for the checker, and check that server tool calls match their results.

Source: Messages API reference.
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
    "text": "text",
    "image": "image",
    "document": "file",
    "thinking": "reasoning",
    "redacted_thinking": "reasoning",
    "tool_use": "call",
    "tool_result": "result",
}
_OTHERS: Final = frozenset(
    {
        *("server_tool_use", "mcp_tool_use", "mcp_tool_result", "search_result", "container_upload"),
        *("compaction", "fallback", "tool_reference", "tool_addition", "tool_removal", "mcp_tool_listing"),
    }
)
# Block types of other APIs, which Anthropic rejects. An unknown type is accepted, because a newer version of the API
# may have added it.
_FOREIGN: Final = frozenset(
    {
        *("image_url", "input_audio", "file", "video_url", "refusal", "reasoning", "function_call", "output_text"),
        *("input_text", "input_image", "input_file", "input_video", "tool-call", "tool-result", "function"),
        *("document_url", "redacted_reasoning", "summary_text", "reasoning_text"),
    }
)
_SERVER_CALLS: Final = ("server_tool_use", "mcp_tool_use")


def read(items: Sequence[Any], base: Path, payload: Json, report: Report) -> View:
    """Read Anthropic messages, and report items that are not messages."""
    messages: list[Message] = []
    for n, raw in enumerate(items):
        fields = as_json(raw)
        if fields is None or not isinstance(fields.get("role"), str):
            report.add("shape", (*base, n), "a message must be an object with a role")
            continue
        path, wire = (*base, n), str(fields["role"])

        def block(piece: Json, at: Path) -> Block:
            return _block(piece, at, report)

        blocks, plain = blocks_of(fields.get("content"), (*path, "content"), report, block)
        messages.append(Message(wire, wire, path, fields, blocks, plain))
    if report.fact("server_pairs"):
        _server_pairs(messages, report)
    return View(messages, base, payload, payload.get("system"), ("system",)).join()


def _block(raw: Json, path: Path, report: Report) -> Block:
    kind = str(raw.get("type"))
    known = kind in _OTHERS or (isinstance(raw.get("type"), str) and kind not in _FOREIGN)
    found = _KINDS.get(kind) or ("other" if known else "unknown")
    block = Block(found, path, raw, kind)
    if found == "text":
        block.text = raw["text"] if isinstance(raw.get("text"), str) else ""
    elif found == "reasoning":
        block.text = str(raw.get("thinking") or "")
        if kind == "thinking" and not isinstance(raw.get("thinking"), str):
            report.add("shape", path, "a thinking block must have a string in `thinking`")
        proof = raw.get("signature" if kind == "thinking" else "data")
        block.signature = proof if isinstance(proof, str) and proof else None
    elif found == "call":
        call_id, name = raw.get("id"), raw.get("name")
        block.id = call_id if isinstance(call_id, str) else None
        block.name = name if isinstance(name, str) else None
        block.arguments = raw.get("input")
    elif found == "result":
        call_id = raw.get("tool_use_id")
        block.id = call_id if isinstance(call_id, str) else None

        def inner(piece: Json, at: Path) -> Block:
            return _block(piece, at, report)

        block.inner, _ = blocks_of(raw.get("content"), (*path, "content"), report, inner)
    return block


def _server_pairs(messages: list[Message], report: Report) -> None:
    """Check that server tool results, such as `web_search_tool_result`, follow the `server_tool_use` that they belong
    to.

    Code that runs on the server can call a client tool. The result of that code is then in a later message, after the
    result of the client tool.
    """
    pending: set[str] = set()
    for message in messages:
        for block in message.blocks:
            if block.type in _SERVER_CALLS:
                pending.add(str(block.json.get("id")))
            elif block.kind == "other" and block.type.endswith("_tool_result"):
                call_id = str(block.json.get("tool_use_id"))
                if call_id not in pending:
                    report.add("server_result_unmatched", block.path, call_id, "server_pairs")
