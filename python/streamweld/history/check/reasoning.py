"""Check reasoning.

The checker does not check which provider issued the reasoning, because a request does not contain this information.
Constraint: `reasoning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.history.check.report import Report
    from streamweld.history.check.view import Block, Message, View

__all__ = ["check_reasoning"]

_FIELDS = ("reasoning_content", "reasoning")


def check_reasoning(view: View, report: Report) -> None:
    """Apply all rules about reasoning."""
    facts = report.facts("reasoning")
    accept: Any = facts.get("accept")
    if facts.get("dummy_signature"):
        _signatures(view, report)
    if accept is False:
        for message in view.messages:
            for block in message.of("reasoning"):
                report.add("reasoning_refused", block.path, block.type, "reasoning")
        return
    for message in view.messages:
        for block in message.of("reasoning"):
            _place(message, block, facts, report)
    if accept == "items":
        _items(view, facts, report)
    if accept == "field":
        _fields(view, facts, report)
    if accept == "blocks":
        _enabled(view, report)
    if facts.get("followed"):
        for message in view.messages:
            if message.role == "assistant" and message.blocks and message.blocks[-1].kind == "reasoning":
                report.add("reasoning_alone", message.blocks[-1].path, message.blocks[-1].type, "reasoning")


def _place(message: Message, block: Block, facts: Mapping[str, Any], report: Report) -> None:
    if message.role not in (facts.get("roles") or ("assistant",)):
        report.add("reasoning_role", block.path, message.wire, "reasoning")
    elif facts.get("signed") == "required" and block.signature is None:
        report.add("reasoning_unsigned", block.path, block.type, "reasoning")


def _items(view: View, facts: Mapping[str, Any], report: Report) -> None:
    replayed = 0
    for n, message in enumerate(view.messages):
        if message.item != "reasoning":
            continue
        replayed += 1
        block = message.blocks[0]
        if facts.get("max_replayed") is not None and replayed > facts["max_replayed"]:
            report.add("reasoning_too_many", message.path, str(replayed), "reasoning")
        if facts.get("needs_encrypted") and block.encrypted is None:
            report.add("reasoning_not_encrypted", message.path, "", "reasoning")
        if facts.get("item_ids") is False and block.item_id and report.facts("item_id").get("send") is not False:
            report.add("reasoning_id_sent", (*message.path, "id"), block.item_id, "reasoning")
        if facts.get("needs_id") and block.encrypted is not None and not block.item_id:
            report.add("reasoning_id_missing", message.path, "", "reasoning")
        content = message.raw.get("content")
        if content if facts.get("content") == "empty" else facts.get("content") and content is not None:
            report.add("reasoning_content", (*message.path, "content"), "", "reasoning")
        if facts.get("group") and not _followed(view.messages, n):
            report.add("reasoning_alone", message.path, block.item_id or "", "reasoning")


def _followed(messages: list[Message], at: int) -> bool:
    """Return whether the next message or item also belongs to the assistant."""
    return at + 1 < len(messages) and messages[at + 1].role == "assistant"


def _fields(view: View, facts: Mapping[str, Any], report: Report) -> None:
    field: Any = facts.get("field")
    for message in view.messages:
        for block in message.of("reasoning"):
            if block.type in _FIELDS and block.type != field:
                report.add("reasoning_field", block.path, block.type, "reasoning")
    if "fill" in facts and _thinks(view.payload):
        for message in view.messages:
            if message.role == "assistant" and message.of("call") and not isinstance(message.raw.get(field), str):
                report.add("reasoning_missing", message.path, str(field), "reasoning")


def _thinks(payload: Mapping[str, Any]) -> bool:
    """Return whether thinking is enabled. For gateways with the constraint `fill`, thinking is enabled by default."""
    thinking = payload.get("thinking")
    return not (isinstance(thinking, dict) and thinking.get("type") == "disabled")  # pyright: ignore[reportUnknownMemberType]


def _enabled(view: View, report: Report) -> None:
    """Check that the last assistant message starts with reasoning if thinking is enabled and the message will be
    continued.
    """
    thinking = view.payload.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if kind != "enabled":
        return
    said = [n for n, message in enumerate(view.messages) if message.role == "assistant"]
    asking = view.messages[said[-1]] if said else None
    if asking is None or not asking.blocks or asking.blocks[0].kind == "reasoning":
        return
    final = view.messages[-1]
    if asking is final or (asking.of("call") and final.of("result")):
        report.add("reasoning_dropped", asking.path, "", "reasoning")


def _signatures(view: View, report: Report) -> None:
    """Check that the first call of each step carries a signature (Gemini 3). Only the current turn is checked."""
    began = 0
    for n, message in enumerate(view.messages):
        if message.role == "user" and any(block.kind != "result" for block in message.blocks):
            began = n
    for message in view.messages[began:]:
        calls = message.of("call")
        if calls and calls[0].signature is None:
            report.add("signature_missing", calls[0].path, calls[0].name or "", "reasoning")
