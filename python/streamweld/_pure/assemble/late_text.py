"""Handles text that arrives after its part was closed ("late text").

Some gateways close a part too early and go on sending its deltas (https://github.com/diegosouzapw/OmniRoute/issues/14007).
Others send the deltas of a part again. Late text is held back while it repeats the closed text from its beginning:

- Late text that differs from the closed text is new. It continues in a new part of the same item.
- Late text that repeats all of the closed text is a repetition, and is dropped.
- If more text follows such a repetition, the closed text may also be the beginning of the new text (AM13). It is a
  repetition if it has at least four characters, because a longer text is not repeated by chance.
- If an event shows that no more late text follows, but the late text has repeated only the beginning of the closed
  text, the late text is new (AM13), because a gateway that sends a part again sends all of it.

If a later event contains the complete text, it decides instead whether the held text is a repetition or new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.part.content_mode import AUTO_FROM
from streamweld._pure.assemble.part.item import LateText
from streamweld._pure.assemble.part.item_text import add_joined_text, end_part, open_part, report_late_part
from streamweld._pure.assemble.part.surrogates import Joiner
from streamweld._pure.json.scanner import replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.item import Item, ItemPart

__all__ = ["add_late_text", "continue_part", "end_late_text", "end_late_texts", "is_late", "settle_late_texts"]


def is_late(one: ItemPart, sub: int | None) -> bool:
    """Return True if a delta with this sub-index arrives after the text of the part is complete."""
    return one.valued or one.closed or not one.part.open or one.labels.is_closed(sub)


def add_late_text(choice: Choice, item: Item, one: ItemPart, text: str, sub: int | None, metadata: str | None) -> None:
    """Apply a text delta with this sub-index to a part whose text is complete."""
    report_late_part(choice, one)
    choice.shared.out.mend()
    closing = one.labels.closing_text(sub)
    label = None if closing is None else sub
    if one.late is not None and one.late.label != label:
        _settle(choice, item, one, None)
    late = one.late
    if late is None:
        if closing is None:
            late = LateText(one.earlier, one.part.text(), None)
        else:
            late = LateText([], closing, label)
        one.late = late
        choice.item_index.add_late(item, one)
    late.sub = sub
    text = one.joiner.push(text)
    if one.joiner.lone:
        choice.shared.out.diagnose("lone_surrogate", one.part.part)
    rest = late.take(text)
    if rest is None:
        _continue_late(choice, item, one, late, late.held() + text, metadata)
    elif rest:
        is_repetition = late.length >= AUTO_FROM
        if late.length:
            detail = "repeated" if is_repetition else "appended"
            choice.shared.out.diagnose("ambiguous_cumulative", one.part.part, detail)
        _continue_late(choice, item, one, late, rest if is_repetition else late.held() + rest, metadata)


def end_late_text(choice: Choice, item: Item, one: ItemPart, whole: str | None) -> ItemPart:
    """Decide whether the held late text of a part is new, because an event ended the part.

    `whole`: the complete text in the event. Return the part that the event belongs to.
    """
    if one.late is None:
        return one
    return _settle(choice, item, one, one.late.is_in(replace_lone_surrogates(whole)) if whole else None)


def settle_late_texts(choice: Choice, item: Item, parts: Sequence[ItemPart], texts: Sequence[str]) -> None:
    """Decide whether the held late texts of an item are new, because a content list arrived. `parts`: the parts of the
    listed kind; `texts`: the listed texts.
    """
    if not any(one.late is not None for one in parts):
        return
    whole = "".join(texts)
    before = "".join([one.part.text() for one in parts])
    after = "".join([one.part.text() + ("" if one.late is None else one.late.held()) for one in parts])
    shown = whole == after if whole and whole in (before, after) else None
    for one in parts:
        _settle(choice, item, one, shown)


def end_late_texts(choice: Choice, item: Item) -> None:
    """Decide whether the held late texts of an item are new, because the item or the choice has ended."""
    for one in item.late:
        _settle(choice, item, one, None)
    item.late.clear()


def _settle(choice: Choice, item: Item, one: ItemPart, shown: bool | None) -> ItemPart:
    """Drop or emit the held late text of a part. `shown`: whether a complete text contains it; None: unknown."""
    late = one.late
    if late is None:
        return one
    is_new = not late.is_whole if shown is None else shown
    held = late.held() if is_new else ""
    if not held and not one.joiner.held:
        one.late = None
        return one
    choice.shared.out.mend()
    if held and shown is None:
        choice.shared.out.diagnose("ambiguous_cumulative", one.part.part, "appended")
    return _continue_late(choice, item, one, late, held, None)


def _continue_late(
    choice: Choice, item: Item, one: ItemPart, late: LateText, text: str, metadata: str | None
) -> ItemPart:
    one.late = None
    if one.valued or one.closed:
        end_part(choice, one)
    new = continue_part(choice, item, one, late.sub)
    add_joined_text(choice, item, new, text, late.sub, metadata)
    return new


def continue_part(
    choice: Choice,
    item: Item,
    one: ItemPart,
    sub: int | None,
    snapshot: str | None = None,
    metadata: str | None = None,
) -> ItemPart:
    """Open a part that continues the part `one`, in the same item. Reopen the item if it is closed.

    The new part takes over the held half of a character. `snapshot`: the text in the opening event.
    """
    joiner, one.joiner = one.joiner, Joiner()
    closing = one.labels.closing_text(sub)
    if closing is None:
        earlier, one.earlier = one.earlier, []
        closing = one.part.text()
    else:
        earlier = []
    if closing:
        earlier.append(closing)
    if not item.open:
        choice.item_index.reopen(item)
    new = open_part(choice, item, one.part.channel, one.part.kind, sub, snapshot, metadata)
    new.earlier, new.joiner = earlier, joiner
    choice.update_pending_part(new)
    return new
