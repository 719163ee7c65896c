"""Check ids and names. Constraints: `tool_id`, `tool_name`, `item_id`."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.history.check.report import Report
    from streamweld.history.check.view import Block, Message, View

__all__ = ["check_call_id", "check_ids", "conforms"]

# The id of these items belongs to another item or, for the output of a local shell, is the id of the call.
_OTHER_IDS = frozenset({"item_reference", "local_shell_call_output"})


@cache
def _only(chars: str) -> re.Pattern[str]:
    return re.compile(f"[{chars}]*")


def check_ids(view: View, report: Report) -> None:
    """Apply all rules about ids and names."""
    pending: set[str] = set()
    facts = report.facts("tool_id")
    for turn in view.turns:
        if facts.get("unique") == "turn":
            pending = set()
        for message in turn:
            for block in message.of("call"):
                check_call_id(block, block.id, facts, report)
                if facts.get("unique") and block.id is not None:
                    if block.id in pending:
                        report.add("call_id_repeated", block.path, block.id, "tool_id")
                    pending.add(block.id)
                _name(block, report)
    called = {block.id for message in view.messages for block in message.of("call")}
    for message in view.messages:
        for block in message.of("result"):
            if block.id not in called:  # for other results, the violation is reported at the call
                check_call_id(block, block.id, facts, report)
    _item_ids(view.messages, report)


def check_call_id(block: Block, call_id: str | None, facts: Mapping[str, Any], report: Report) -> None:
    """Report an id of a call that is missing, too long, or in a form that the target does not accept."""
    if call_id is None:
        if not facts.get("optional") and facts.get("min"):
            report.add("call_id_invalid", block.path, "the id is missing", "tool_id")
        return
    if any(mark in call_id for mark in facts.get("carriers", ())):
        return
    fault = _fault(call_id, facts)
    if fault is not None:
        report.add("call_id_long" if fault == "long" else "call_id_invalid", block.path, call_id, "tool_id")


def conforms(word: str, facts: Mapping[str, Any]) -> bool:
    """Return whether an id or name satisfies the constraint's `min`, `max`, `chars`, `start` and `not`."""
    return _fault(word, facts) is None


def _fault(word: str, facts: Mapping[str, Any]) -> str | None:
    """Return why an id or name violates the constraint (`long`, `short` or `chars`), or None if it does not."""
    least, most, chars, start = facts.get("min"), facts.get("max"), facts.get("chars"), facts.get("start")
    if least is not None and len(word) < least:
        return "short"
    if chars is not None and _only(chars).fullmatch(word) is None:
        return "chars"
    if start is not None and (not word or _only(start).fullmatch(word[0]) is None):
        return "chars"
    if word in facts.get("not", ()):
        return "chars"
    return "long" if most is not None and len(word) > most else None


def _name(block: Block, report: Report) -> None:
    facts = report.facts("tool_name")
    if facts and (fault := _fault(block.name or "", facts)) is not None:
        report.add(
            "tool_name_long" if fault == "long" else "tool_name_invalid", block.path, block.name or "", "tool_name"
        )


def _item_ids(messages: list[Message], report: Report) -> None:
    facts = report.facts("item_id")
    if not facts:
        return
    seen: set[str] = set()
    for message in messages:
        item_id: Any = message.raw.get("id")
        if message.item in _OTHER_IDS or item_id is None:
            continue
        path = (*message.path, "id")
        word = item_id if isinstance(item_id, str) else ""
        if facts.get("send") is False:
            report.add("item_id_sent", path, word, "item_id")
            continue
        if _fault(word, {**facts, "min": 1}) is not None:
            report.add("item_id_invalid", path, word, "item_id")
        prefix = facts.get("prefixes", {}).get(message.item)
        if prefix is not None and not word.startswith(prefix):
            report.add("item_id_prefix", path, word, "item_id")
        if facts.get("unique") and word in seen:
            report.add("item_id_repeated", path, word, "item_id")
        seen.add(word)
