"""Check the order of roles.

Constraints: `roles`, `system`, `alternation`, `first_role`, `role_order`, `last_role`, `last_assistant`, `after_tool`,
`user_required`, `min_items`, `prefill`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld.history.models import is_claude_from

if TYPE_CHECKING:
    from streamweld.history.check.report import Report
    from streamweld.history.check.view import Json, Message, View

__all__ = ["check_order"]

_PROMPTS = ("system", "developer")


def check_order(view: View, report: Report) -> None:
    """Apply all rules about roles and their order."""
    messages_sent = [message for message in view.messages if message.wire]
    if len(view.messages) < (report.fact("min_items") or 0):
        report.add("too_few", view.base, "", "min_items")
    _roles(view, messages_sent, report)
    _system(view, messages_sent, report)
    if report.fact("user_required") and view.messages and not any(message.role == "user" for message in messages_sent):
        report.add("user_missing", view.base, "", "user_required")
    _neighbours(messages_sent, report)
    if report.fact("last_assistant") == "prefix":
        for message in messages_sent[:-1]:
            if message.raw.get("prefix"):
                report.add("prefix_early", message.path, "", "last_assistant")
    _ends(view, report)


def _roles(view: View, messages_sent: list[Message], report: Report) -> None:
    roles = report.fact("roles")
    outside = report.facts("system").get("place") == "top"
    amid = is_claude_from(_model(view.payload), report.facts("system").get("mid_claude_from"))
    for n, message in enumerate(messages_sent):
        if outside and message.role in _PROMPTS:
            before = messages_sent[n - 1].role if n else ""
            if not amid or not (before in ("user", "tool", "system") or not message.blocks):
                report.add("system_place", message.path, message.wire, "system")
        elif roles is not None and message.wire not in roles:
            report.add("role_unknown", message.path, message.wire, "roles")


def _system(view: View, messages_sent: list[Message], report: Report) -> None:
    facts = report.facts("system")
    if facts.get("instructions") is False and view.top:
        report.add("instructions_ignored", view.top_path, "", "system")
    begun = False  # whether any message except system and developer messages has been seen
    prompts = 0
    for message in messages_sent:
        if message.role not in _PROMPTS:
            begun = True
            continue
        prompts += 1
        if facts.get("place") == "instructions" and message.role == "system":
            report.add("instructions_preferred", message.path, "", "system")
        if facts.get("single") and (begun or prompts > 1):
            report.add("system_single", message.path, "", "system")
        elif facts.get("mid") == "user" and begun and report.fact("role_order") is None:
            report.add("system_mid", message.path, "", "system")


def _neighbours(messages_sent: list[Message], report: Report) -> None:
    order, after_tool = report.facts("role_order"), report.facts("after_tool")
    alternate = report.fact("alternation") == "merge"
    before: Message | None = None
    for message in messages_sent:
        if before is not None:
            if alternate and before.wire == message.wire:
                report.add("roles_alternate", message.path, message.wire, "alternation")
            if before.role in order and message.role not in order[before.role]:
                report.add("role_order", message.path, f"{message.role} after {before.role}", "role_order")
            elif before.role == "tool" and message.role in after_tool:
                report.add("user_after_tool", message.path, "", "after_tool")
        before = message


def _ends(view: View, report: Report) -> None:
    messages = view.messages
    if not messages:
        return
    first, last = messages[0], messages[-1]
    needed = report.fact("first_role")
    if needed and first.role != needed and first.role not in _PROMPTS:
        report.add("first_role", first.path, first.wire, "first_role")
    roles = report.fact("last_role")
    if roles is not None and last.role not in roles:
        report.add("last_role", last.path, last.wire, "last_role")
    open_end = last.role == "assistant" and not last.of("call") and last.raw.get("prefix") is not True
    if open_end and report.fact("last_assistant") == "prefix":
        report.add("last_assistant", last.path, "", "last_assistant")
    refuses = is_claude_from(_model(view.payload), report.facts("prefill").get("claude_before"))
    speaks = last.role == "assistant" and bool(last.blocks) and last.blocks[-1].kind in ("text", "image", "file")
    if speaks and refuses:
        report.add("prefill_refused", last.path, "", "prefill")


def _model(payload: Json) -> str | None:
    found = payload.get("model", payload.get("modelId"))
    return found if isinstance(found, str) else None
