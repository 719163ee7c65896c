"""Move system and developer messages to the place and role that the target requires. Constraint: `system`."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Final, cast

from streamweld.history.model import EMPTY, Opaque, Text, Turn, changed, with_parts
from streamweld.history.models import is_claude_from

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Part, Role

__all__ = ["run"]

_SYSTEM: Final = ("system", "developer")
_OF_SYSTEM: Final = frozenset({"tool_addition", "tool_removal", "toolAddition", "toolRemoval"})
_JOINT: Final = "\n\n"
# Dialects with instructions outside the messages, dialects with instructions inside the messages, and dialects without
# a developer role.
_OUTSIDE: Final = frozenset({"anthropic", "gemini", "bedrock-converse"})
_INSIDE: Final = frozenset({"openai-chat", "ai-sdk-ui", "ai-sdk-model"})
_NO_DEVELOPER: Final = frozenset({"anthropic", "gemini", "bedrock-converse", "ai-sdk-ui", "ai-sdk-model"})


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with all instructions where the target requires them."""
    fact = context.facts("system")
    place = fact.get("place") or ("top" if context.family in _OUTSIDE else None)
    stays = _staying(turns, context)
    lead = next((n for n, turn in enumerate(turns) if turn.role not in _SYSTEM or n in stays), len(turns))
    head = [_role(turn, context) for turn in turns[:lead]]
    if place in ("top", "instructions"):
        head = _to_top(head, context)
    elif context.family in _INSIDE or fact.get("lead") or fact.get("instructions") is False:
        head = _to_messages(head, context)
    if fact.get("single") and place not in ("top", "instructions"):
        head = _one(head, context)
    mid = fact.get("mid") or ("user" if place == "top" else "keep")
    rest = turns[lead:]
    if mid == "user":
        rest = [
            _to_user(turn, context) if turn.role in _SYSTEM and n not in stays else turn
            for n, turn in enumerate(rest, lead)
        ]
    elif place == "instructions" and fact.get("keep_developer_message"):  # later instructions: developer messages
        rest = [_to_developer(turn, context) if turn.role == "system" else turn for turn in rest]
    else:
        rest = [_role(turn, context) if turn.role in _SYSTEM else turn for turn in rest]
    out = head + rest
    if lead == len(head) == 1 and _only_moved(head[0], turns[0]) and all(map(is_, rest, turns[1:])):
        context.survey(turns).adopt(out)
    return out


def _only_moved(turn: Turn, before: Turn) -> bool:
    """Return whether a message of instructions was moved, and the survey of the history is still valid for it."""
    return turn is not before and turn.role in _SYSTEM and all(type(part) is Text for part in turn.parts)


def _staying(turns: list[Turn], context: Context) -> set[int]:
    """Return the positions of system messages that the target accepts among the messages.

    They follow a user turn or another such message, or only set options. Other dialects' messages are not among them.
    """
    found: set[int] = set()
    if not is_claude_from(context.model, context.facts("system").get("mid_claude_from")):
        return found
    for n, turn in enumerate(turns):
        if turn.role != "system" or turn.top or not _own(turn, context):
            continue
        only_options = not turn.parts and turn.origin is not None and bool(turn.origin.extra)
        if only_options or (n and (turns[n - 1].role in ("user", "tool") or n - 1 in found)):
            found.add(n)
    return found


def _own(turn: Turn, context: Context) -> bool:
    """Return whether the turn was read from the target's own dialect.

    Only changes to such a turn are recorded as edits.
    """
    origin = turn.origin
    return origin is not None and origin.dialect == context.family


def _role(turn: Turn, context: Context) -> Turn:
    fact = context.facts("system")
    role: Role = turn.role
    if role == "developer":
        way = fact.get("developer") or ("system" if context.family in _NO_DEVELOPER else "keep")
        role = cast("Role", way) if way != "keep" else role
    if role in _SYSTEM and fact.get("place") == "message" and not turn.top:
        role = fact.get("lead") or role
    if role == turn.role:
        return turn
    if _own(turn, context):
        context.edit("system_role", turn.path, f"changed the role {turn.role} to {role}")
    return _renamed(turn, role)


def _renamed(turn: Turn, role: Role) -> Turn:
    return Turn(role, tuple([changed(part) for part in turn.parts]), turn.origin, top=False)


def _to_top(head: list[Turn], context: Context) -> list[Turn]:
    """Move all leading instructions into one turn outside the messages, unless a developer message must stay inside."""
    keep = bool(context.facts("system").get("keep_developer_message"))
    moving = [turn for turn in head if turn.role == "system" or (turn.role == "developer" and not keep)]
    staying = [turn for turn in head if turn.role == "developer" and keep]
    if len(moving) == 1 and moving[0].top:
        return moving + staying
    for turn in moving:
        if not turn.top and _own(turn, context):
            context.edit("system_place", turn.path, "moved the instructions out of the messages")
    for turn in moving[1:]:
        context.lose(
            "message", turn.path, "the target has one system prompt; this message was merged into it", turn.role
        )
    parts: list[Part] = [changed(part) for turn in moving for part in turn.parts]
    return ([Turn("system", tuple(parts), moving[0].origin, top=True)] if moving else []) + staying


def _to_messages(head: list[Turn], context: Context) -> list[Turn]:
    """Move instructions from outside the messages into the first message."""
    out: list[Turn] = []
    for turn in head:
        if not turn.top:
            out.append(turn)
            continue
        role: Role = context.facts("system").get("lead") or "system"
        if _own(turn, context):
            context.edit("system_place", turn.path, "moved the instructions to the first message")
        if turn.origin is not None:
            context.lose_members(turn.origin.extra, turn.path, "the target does not have this member")
        parts = [changed(part, origin=None) for part in turn.parts]
        out.append(Turn(role, tuple(parts), None))
    return out


def _one(head: list[Turn], context: Context) -> list[Turn]:
    if len(head) < 2:
        return head
    for turn in head[1:]:
        context.edit("system_single", turn.path, "merged into the first system message")
    texts = [part for turn in head for part in turn.parts if isinstance(part, Text)]
    parts: list[Part] = [part for turn in head for part in turn.parts if not isinstance(part, Text)]
    if texts:
        parts.insert(0, changed(texts[0], text=_JOINT.join([part.text for part in texts])))
    return [with_parts(head[0], parts)]


def _to_developer(turn: Turn, context: Context) -> Turn:
    context.edit("system_role", turn.path, "changed the role system to developer")
    return _renamed(turn, "developer")


def _to_user(turn: Turn, context: Context) -> Turn:
    """Return the turn as a user message, without the members and blocks that only a system message has."""
    context.edit(
        "system_middle", turn.path, f"changed a {turn.role} message in the middle of the history to a user message"
    )
    if turn.origin is None or not _own(turn, context) or context.family not in _OUTSIDE:
        return _renamed(turn, "user")
    kept: list[Part] = []
    for part in turn.parts:
        if isinstance(part, Opaque) and part.kind in _OF_SYSTEM:
            context.lose(part.kind, part.path, "only a system message can have this part", part.raw)
        else:
            kept.append(part)
    context.lose_members(turn.origin.extra, turn.path, "only a system message can have this member")
    origin = turn.origin.with_extra(EMPTY)
    return Turn("user", tuple([changed(part, origin=origin) for part in kept]), origin, top=False)
