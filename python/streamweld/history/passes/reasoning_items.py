"""Fix reasoning items of the Responses API: repeated ids, items at the end of a turn, too many items.

This pass runs after `passes.reasoning`, for targets that represent reasoning as items. Constraint: `reasoning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.model import Call, Opaque, Reasoning, Text, changed, members_of, removed_value, with_parts

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["run"]

_LED_TO: Final = (Text, Call)


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with each reasoning item exactly once, and always followed by the item that it led to."""
    fact = context.facts("reasoning")
    turns = _once(turns, context)
    if fact.get("content"):
        turns = _summarized(turns, fact["content"], context)
    if fact.get("group"):
        turns = _followed(turns, context)
    if fact.get("max_replayed") is not None:
        turns = _earliest(turns, fact["max_replayed"], context)
    return turns


def _holds(turn: Turn) -> bool:
    return turn.role == "assistant" and any(isinstance(part, Reasoning) for part in turn.parts)


def _leads_to(part: Part, context: Context) -> bool:
    """Return whether reasoning can lead to this part. Opaque parts qualify only if the target can represent them."""
    return isinstance(part, _LED_TO) or (isinstance(part, Opaque) and part.dialect == context.family)


def _is_followed(parts: tuple[Part, ...], at: int, context: Context) -> bool:
    """Return whether the turn has a later part that can result from the reasoning."""
    return any(_leads_to(part, context) for part in parts[at + 1 :])


def _once(turns: list[Turn], context: Context) -> list[Turn]:
    """Keep one item per id, and move the summaries of all items with that id to the item that is kept.

    The item to keep is the first one that is followed by a part that can result from it or, if there is no such item,
    the first one.
    """
    places: dict[str, list[tuple[int, int, Reasoning]]] = {}
    for n, turn in enumerate(turns):
        if _holds(turn):
            for at, part in enumerate(turn.parts):
                if isinstance(part, Reasoning) and part.item_id:
                    places.setdefault(part.item_id, []).append((n, at, part))
    new: dict[int, Reasoning | None] = {}  # id() of a part -> its replacement
    touched: set[int] = set()
    for item_id, found in places.items():
        if len(found) < 2:
            continue
        home = next((one for one in found if _is_followed(turns[one[0]].parts, one[1], context)), found[0])
        segments: list[str] = []
        for _, _, part in found:
            segments += [text for text in part.segments if text.strip() and text not in segments]
        cipher = next((part.encrypted for _, _, part in found if part.encrypted), None)
        for n, _, part in found:
            touched.add(n)
            if part is not home[2]:
                new[id(part)] = None
                text_of_part = [text for text in part.segments if text.strip()]
                what = (
                    f"merged a repetition of item {item_id!r} into the kept one"
                    if text_of_part
                    else f"dropped a repetition of item {item_id!r}"
                )
                context.edit("reasoning_repeated", part.path, what, removed_value(part))
        if tuple(segments) != home[2].segments or cipher != home[2].encrypted:
            new[id(home[2])] = changed(home[2], segments=tuple(segments), encrypted=cipher)
    return _replaced(turns, touched, new) if touched else turns


def _summarized(turns: list[Turn], accepted: str, context: Context) -> list[Turn]:
    """Return the turns with `content` removed from the items of the target's dialect.

    If an item has no summary, its content becomes the summary. `accepted`: `null`, or `empty`, which also allows an
    empty list.
    """
    new: dict[int, Reasoning | None] = {}
    touched: set[int] = set()
    for n, turn in enumerate(turns):
        for part in turn.parts if _holds(turn) else ():
            own = isinstance(part, Reasoning) and part.origin is not None and part.origin.dialect == context.family
            content = members_of(part.raw).get("content") if own else None
            refused = content if accepted == "empty" else content is not None
            if isinstance(part, Reasoning) and refused:
                what = (
                    "moved the content to the summary"
                    if part.kind == "raw"
                    else "dropped the content and kept the summary"
                )
                context.edit("reasoning_content", part.path, what, None if part.kind == "raw" else content)
                extra = {name: value for name, value in part.extra.items() if name != "content"}
                new[id(part)] = changed(part, kind="summary", extra=extra)
                touched.add(n)
    return _replaced(turns, touched, new) if touched else turns


def _replaced(turns: list[Turn], touched: set[int], new: dict[int, Reasoning | None]) -> list[Turn]:
    out: list[Turn] = []
    for n, turn in enumerate(turns):
        if n not in touched:
            out.append(turn)
            continue
        parts: list[Part] = []
        for part in turn.parts:
            members_sent: Any = new.get(id(part), part)
            if members_sent is not None:
                parts.append(members_sent)
        if parts:
            out.append(with_parts(turn, parts))
    return out


def _followed(turns: list[Turn], context: Context) -> list[Turn]:
    """Drop reasoning at the end of a turn, because the target rejects reasoning without the item that it led to."""
    new: dict[int, Reasoning | None] = {}
    touched: set[int] = set()
    for n, turn in enumerate(turns):
        if not _holds(turn) or (context.pending and n == len(turns) - 1):
            continue
        for part in reversed(turn.parts):
            if not isinstance(part, Reasoning):
                if _leads_to(part, context):
                    break
                continue
            new[id(part)] = None
            touched.add(n)
            removed = removed_value(part)
            context.edit("reasoning_alone", part.path, "dropped reasoning that no message or call follows", removed)
    return _replaced(turns, touched, new) if touched else turns


def _earliest(turns: list[Turn], most: int, context: Context) -> list[Turn]:
    """Keep only the first `most` reasoning items.

    Earlier items take precedence, so that a later turn does not change messages that were already sent. Item ids, but
    not call ids, are removed from the calls after a dropped item.
    """
    found = [(n, part) for n, turn in enumerate(turns) for part in turn.parts if isinstance(part, Reasoning)]
    surplus = found[most:]
    if not surplus:
        return turns
    gone = {id(part) for _, part in surplus}
    touched = {n for n, _ in surplus}
    out: list[Turn] = []
    for n, turn in enumerate(turns):
        if n not in touched:
            out.append(turn)
            continue
        parts: list[Part] = []
        broken = False
        for part in turn.parts:
            if id(part) in gone:
                broken = True
                context.edit(
                    "reasoning_dropped",
                    part.path,
                    f"dropped reasoning: the target accepts at most {most} reasoning items",
                    removed_value(part),
                )
                continue
            broken = broken and not isinstance(part, Reasoning)
            if broken and isinstance(part, Call) and part.item_id:
                context.edit(
                    "item_id_dropped", part.path, "dropped the item id of a call because its reasoning was dropped"
                )
                part = changed(part, item_id=None)
            parts.append(part)
        if parts:
            out.append(with_parts(turn, parts))
    return out
