"""Check that calls and outputs of built-in tools of the Responses API that the client runs form pairs.

These items (shell, apply_patch, computer, tool search) have types of their own, and each output belongs to a call with
the same `call_id` and of the matching type. Items of a type that the gateway rejects are reported by
`check.content` alone. Constraints: `results`, `tool_id`, `items`.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from streamweld.history.check.ids import check_call_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.history.check.report import Report
    from streamweld.history.check.view import Block, View

__all__ = ["check_client_calls"]

# The type of each output -> the type of its call.
_OUTPUTS: Final[Mapping[str, str]] = {
    "shell_call_output": "shell_call",
    "local_shell_call_output": "local_shell_call",
    "apply_patch_call_output": "apply_patch_call",
    "computer_call_output": "computer_call",
    "tool_search_output": "tool_search_call",
}
_CALLS: Final = frozenset(_OUTPUTS.values())
_ITEMS: Final = _CALLS | _OUTPUTS.keys()


@dataclass(slots=True, eq=False)
class _Pair:
    """The items with one id and of one tool.

    `calls`: the number of calls in the history, of which `seen` precede the current item. `waiting`: calls that have no
    output yet. `early`: outputs that precede their call.
    """

    calls: int
    seen: int = 0
    waiting: deque[Block] = field(default_factory=deque["Block"])
    early: int = 0


def check_client_calls(view: View, report: Report) -> None:
    """Report calls without an output, outputs without a call, and repeated calls and outputs."""
    facts = report.facts("results")
    accepted = report.fact("items")
    if not facts or accepted is None:
        return
    items = [block for message in view.messages for block in message.blocks if block.type in _ITEMS]
    # The server may store the other half of a pair.
    if not items or any(message.item == "item_reference" for message in view.messages):
        return
    items = [block for block in items if "*" in accepted or block.type in accepted]
    stored = view.payload.get("previous_response_id") or view.payload.get("conversation")
    chained = bool(stored) and report.fact("stored_responses") is not False
    total = Counter(key for block in items if block.type in _CALLS and (key := _key(block)) is not None)
    pairs: dict[tuple[str, str], _Pair] = {}
    answered = {block.id for message in view.messages for block in message.of("result")}
    for block in items:
        key = _key(block)
        if key is None:
            continue
        pair = pairs.setdefault(key, _Pair(total[key]))
        if block.type in _CALLS:
            pair.seen += 1
            check_call_id(block, key[1], report.facts("tool_id"), report)
            if pair.seen > 1 and report.facts("tool_id").get("unique") == "request":
                report.add("call_id_repeated", block.path, key[1], "tool_id")
            if pair.early:
                pair.early -= 1
            else:
                pair.waiting.append(block)
            continue
        if block.type == "local_shell_call_output" and block.json.get("id") != key[1]:
            report.add("output_id", block.path, key[1])
        if pair.waiting:
            pair.waiting.popleft()
        elif pair.seen + pair.early < pair.calls:
            pair.early += 1
            report.add("result_before_call", block.path, key[1], "results")
        elif pair.calls:
            if facts.get("single"):
                report.add("result_repeated", block.path, key[1], "results")
        elif facts.get("matched") and not chained:
            report.add("result_unmatched", block.path, key[1], "results")
    if facts.get("required"):
        for pair in pairs.values():
            for block in pair.waiting:
                if (key := _key(block)) is not None and key[1] not in answered:
                    report.add("call_unanswered", block.path, key[1], "results")


def _key(block: Block) -> tuple[str, str] | None:
    """Return the type of the call and the id that pair a call with its output, or None if the server ran the call."""
    raw = block.json
    call_id = raw.get("call_id") or (raw.get("id") if block.type == "local_shell_call_output" else None)
    if not isinstance(call_id, str) or raw.get("execution") == "server":
        return None
    return _OUTPUTS.get(block.type, block.type), call_id
