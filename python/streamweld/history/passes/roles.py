"""Fix the order of roles: the first role, the last role, and alternation. Inserted messages are short and constant.

Constraints: `prefill`, `first_role`, `alternation`, `after_tool`, `last_assistant`, `calls_after`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.model import EMPTY, Call, Media, Text, Turn, with_parts
from streamweld.history.models import is_claude_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Role

__all__ = ["applies", "run"]

_SHOWN: Final = (Text, Media)
_FIRST: Final = "(The conversation begins here.)"
_BETWEEN: Final = "OK."
_LAST: Final = "Continue."
_SIDES: Final = ("user", "assistant", "tool")
_SYSTEM: Final = ("system", "developer")


def applies(constraints: Mapping[str, Any]) -> bool:
    """Return whether the target has a constraint on the order of roles."""
    results = constraints.get("results") or EMPTY
    names = ("alternation", "calls_after", "first_role", "after_tool", "last_assistant", "prefill")
    return any(constraints.get(name) for name in names) or bool(results.get("alone") or results.get("beside_not"))


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns in an order of roles that the target accepts."""
    merges = context.fact("alternation") == "merge"
    if (merges or context.fact("calls_after")) and context.survey(turns).joined:
        turns = _merged(turns, context, assistant_only=not merges)
    turns = _first(turns, context)
    answer = context.facts("after_tool").get("user")
    results = context.facts("results")
    if answer is not None or results.get("alone"):
        turns = _between(turns, answer or "assistant", None, context)
    elif results.get("beside_not"):
        turns = _between(turns, "assistant", frozenset(results["beside_not"]), context)
    if context.fact("last_assistant") == "prefix":
        turns = _prefix(turns, context)
    return _without_prefill(turns, context)


def _without_prefill(turns: list[Turn], context: Context) -> list[Turn]:
    """Add a user message after a final assistant text, because newer Claude models reject prefilled responses."""
    last = turns[-1] if turns else None
    if last is None or last.role != "assistant" or context.pending:
        return turns
    refuses = is_claude_from(context.model, context.facts("prefill").get("claude_before"))
    if not refuses or not isinstance(last.parts[-1], _SHOWN):
        return turns
    context.edit("prefill_refused", last.path, "added a user message at the end")
    return [*turns, Turn("user", (Text(text=_LAST, path=last.path),))]


def _first(turns: list[Turn], context: Context) -> list[Turn]:
    at = next((n for n, turn in enumerate(turns) if turn.role not in _SYSTEM), None)
    if at is None or turns[at].role == "user" or context.pending:
        return turns
    calls_need_user = bool(context.fact("calls_after")) and any(isinstance(part, Call) for part in turns[at].parts)
    if context.fact("first_role") != "user" and not calls_need_user:
        return turns
    context.edit("first_role", turns[at].path, "added a user message at the start")
    return [*turns[:at], Turn("user", (Text(text=_FIRST, path=turns[at].path),)), *turns[at:]]


def _merged(turns: list[Turn], context: Context, *, assistant_only: bool) -> list[Turn]:
    """Merge consecutive turns that have the same role.

    Results and the user text after them remain separate turns, which are written as one message.

    `assistant_only`: merge only the assistant's turns, so that a turn with calls follows the user or a result.
    """
    out: list[Turn] = []
    run: list[Part] = []
    for turn in turns:
        last = out[-1] if out else None
        joins = not assistant_only or turn.role == "assistant"
        if joins and last is not None and turn.role == last.role and turn.role in _SIDES and run:
            if turn.parts:
                context.edit("roles_merged", turn.path, f"merged into the preceding {turn.role} message")
                run += turn.parts
            continue
        if last is not None and run:
            out[-1] = _closed(last, run)
        run = list(turn.parts)
        out.append(turn)
    if out and run:
        out[-1] = _closed(out[-1], run)
    return out


def _closed(turn: Turn, run: list[Part]) -> Turn:
    return turn if len(run) == len(turn.parts) else with_parts(turn, run)


def _between(turns: list[Turn], role: Role, kinds: frozenset[str] | None, context: Context) -> list[Turn]:
    """Insert a message with this role between results and the user message that follows them.

    `kinds`: insert the message only if the user message has media of one of these kinds; None to insert it always.
    """
    out: list[Turn] = []
    for turn in turns:
        apart = kinds is None or any(isinstance(part, Media) and part.kind in kinds for part in turn.parts)
        if apart and out and out[-1].role == "tool" and turn.role == "user":
            context.edit(
                "after_tool", turn.path, f"added a message with role {role} between a tool result and the user message"
            )
            out.append(Turn(role, (Text(text=_BETWEEN, path=turn.path),)))
        out.append(turn)
    return out


def _prefix(turns: list[Turn], context: Context) -> list[Turn]:
    last = turns[-1] if turns else None
    if last is None or last.role != "assistant" or context.pending:
        return turns
    if last.origin is not None and last.origin.extra.get("prefix"):
        return turns
    context.edit("last_assistant", last.path, "marked the last message as a prefix of the answer (`prefix: true`)")
    return [*turns[:-1], with_parts(last, last.parts, marks={"prefix": True})]
