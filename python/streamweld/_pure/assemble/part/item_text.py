"""Handles text, reasoning and refusal parts that the stream opens and closes explicitly.

This module finds the part that an event belongs to and updates the text of the part. Several parts may be open at the
same time. A part begins with its opening event or, without one, with its first text. Text in the opening event is held
back until the deltas show whether they repeat or continue it. If the joined text of the deltas begins with all of the
held text, the deltas repeat it. In every other case, the deltas continue the held text, even if the part ends when
the deltas have repeated only the beginning of the held text. Complete text in a later event replaces the streamed text.
A reasoning part of an item with an id closes with the item, because encrypted content may still arrive.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from streamweld._pure.assemble.part.item import ItemPart
from streamweld._pure.assemble.part.object_merge import RawMembers
from streamweld._pure.assemble.part.text import TextPart
from streamweld._pure.assemble.rule_context import byte_length
from streamweld._pure.json.scanner import replace_lone_surrogates
from streamweld._pure.model.unmodelled import Annotated

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.item import Item
    from streamweld._pure.assemble.part.text import Channel
    from streamweld.events import ReasoningKind

_KINDS: tuple[ReasoningKind, ...] = ("summary", "raw", "thinking", "redacted")
_CANDIDATES = 64  # maximum number of parts with which a complete text that has an unknown sub-index is compared

__all__ = [
    "add_after_repetition",
    "add_joined_text",
    "add_text",
    "annotate",
    "close_part",
    "end_part",
    "find_part",
    "find_whole",
    "finish_item",
    "is_repetition",
    "open_part",
    "own_value",
    "put_metadata",
    "repeat_item",
    "repeat_open_part",
    "repeat_part",
    "report_conflict",
    "report_late_part",
    "report_unfinished_repetitions",
    "set_value",
    "set_whole_text",
    "take_back",
]


def find_part(item: Item, channel: Channel, kind: ReasoningKind | None, sub: int | None) -> ItemPart | None:
    """Return the part of the item that a delta with this sub-index belongs to.

    Return the last part that an event with the same `sub` addressed. If no event had this `sub`, return the last part
    of the channel, because some gateways send a new `content_index` in every delta. Return None if the last part of the
    channel is closed, if its complete text was received, or if two of its deltas in a row had the same `sub`.
    """
    kinds: tuple[ReasoningKind, ...] = _KINDS if kind is None else (kind,)
    called = [item.by_sub_index.get((channel, each, sub)) for each in kinds]
    named = _latest(called, lambda one: one.has_sub_index(sub))
    if named is not None:
        return named
    last = _latest([item.latest.get((channel, each)) for each in kinds], lambda _: True)
    if last is None:
        return None
    if sub is None or last.sub is None:
        return last
    return None if last.valued or last.closed or last.sub_is_reliable else last


def find_whole(item: Item, channel: Channel, kind: ReasoningKind, sub: int | None, text: str | None) -> ItemPart | None:
    """Return the part of the item that a complete text with this sub-index belongs to.

    Return the part that an event with the same `sub` addressed. If no event had this `sub`, return the first part with
    the same text whose complete text has not been received yet. If no part has the same text, return the part that a
    delta would belong to.
    """
    named = item.by_sub_index.get((channel, kind, sub))
    if named is not None and named.has_sub_index(sub):
        return named
    found = None
    if sub is not None and text:
        for one in islice(reversed(item.parts), _CANDIDATES):
            here = one.part.channel == channel and one.part.kind == kind and not one.valued
            if here and one.length == len(text) and one.part.text() == text:
                found = one
    found = found or find_part(item, channel, kind, sub)
    if found is not None and text and sub is not None and not found.has_sub_index(sub):
        found.value_sub = sub
        item.by_sub_index[channel, kind, sub] = found
    return found


def _latest(found: list[ItemPart | None], check: Callable[[ItemPart], bool]) -> ItemPart | None:
    """Of the given parts that pass the check, return the part that was opened last."""
    return max([one for one in found if one is not None and check(one)], key=lambda one: one.part.part, default=None)


def open_part(
    choice: Choice,
    item: Item,
    channel: Channel,
    kind: ReasoningKind,
    sub: int | None,
    snapshot: str | None,
    metadata: str | None,
) -> ItemPart:
    """Open a new part of the item and emit its start event. `snapshot`: the text in the opening event."""
    shared = choice.shared
    part = TextPart(shared.next_part(), choice.index, channel, kind, item.emitted_id)
    held = replace_lone_surrogates(snapshot) if snapshot else None
    if held is not None:
        shared.spend_text(byte_length(held))
    one = ItemPart(part, sub, held)
    item.add(one)
    item.by_sub_index[channel, kind, sub] = item.latest[channel, kind] = one
    choice.textual.parts.append(part)
    choice.update_pending_part(one)
    put_metadata(choice, one, metadata)
    if not shared.out.silent:
        shared.out.address = (item.index, sub, item.item_id)
        shared.out.emit(part.started(metadata))
    return one


def repeat_part(item: Item, one: ItemPart, index: int | None, text: str | None) -> bool:
    """Record that an opening event repeats a closed part, and return True.

    Return False and change nothing if the event cannot repeat the part: the item or the part is open, the part is
    empty, or the event has another index or text.
    """
    other_index = index is not None and item.index is not None and index != item.index
    other_text = bool(text) and replace_lone_surrogates(text or "") != one.part.text()
    if item.open or one.part.open or not one.length or other_index or other_text:
        return False
    one.repeated, item.repeats = 0, True
    return True


def repeat_open_part(choice: Choice, one: ItemPart, text: str | None) -> bool:
    """Record that an opening event repeats an open part of an item, because the message began again.

    Return False and change nothing if the event cannot repeat the part, because the event has another text.
    """
    begun = one.part.text() if one.snapshot is None else one.snapshot
    other_text = bool(text) and replace_lone_surrogates(text or "") != begun
    is_empty = not (begun or one.joiner.held)
    if not one.part.open or is_empty or other_text:
        return False
    if one.snapshot is None:
        one.repeated = 0
    # The stream also repeats the deltas, including the held half of a character.
    one.again, one.joiner.held = 0, ""
    choice.update_pending_part(one)
    return True


def repeat_item(item: Item) -> bool:
    """Record that an opening event without ids may repeat a closed item, and return True.

    Return False and change nothing if the item is open, has an id, had no opening event of its own, or has no text.
    """
    parts = [one for one in item.parts if one.length]
    if item.open or item.item_id is not None or not item.opened_bare or not parts:
        return False
    for one in parts:
        one.repeated = 0
    item.repeats = True
    return True


def is_repetition(choice: Choice, one: ItemPart, text: str) -> bool:
    """Return True if the text continues a repetition of the part, so that the text must be dropped.

    Report the repetition of a closed part when it is complete.
    """
    own = one.part.text()
    if one.repeated is None or not own.startswith(text, one.repeated):
        return False
    one.repeated += len(text)
    if one.repeated == one.length and not one.part.open:
        report_late_part(choice, one)
    return True


def add_after_repetition(
    choice: Choice, item: Item, one: ItemPart, text: str, sub: int | None, metadata: str | None
) -> bool:
    """Append the rest of a text that completes the repetition of an open part, and return True.

    Return False and change nothing if the part is closed, or if the text differs from the part.
    """
    repeated = one.part.text()[one.repeated or 0 :]
    if not one.part.open or not text.startswith(repeated):
        return False
    one.repeated = None
    add_joined_text(choice, item, one, text[len(repeated) :], sub, metadata)
    return True


def report_late_part(choice: Choice, one: ItemPart) -> None:
    """Report, at most once per part, that content arrived after the part was closed."""
    if not one.late_reported:
        one.late_reported = True
        choice.shared.out.diagnose("late_delta", one.part.part)


def report_unfinished_repetitions(choice: Choice, item: Item) -> None:
    """Report each repetition of a closed part that was still incomplete when the choice ended. The repeated text was
    dropped, because no event showed that it was new text.
    """
    for one in item.parts:
        if not one.part.open and one.repeated is not None and 0 < one.repeated < one.length:
            report_late_part(choice, one)


def put_metadata(choice: Choice, one: ItemPart, metadata: str | None) -> None:
    """Store metadata, which the closing event of the part will contain."""
    if metadata is None:
        return
    if one.part.metadata is None:
        one.part.metadata = RawMembers()
    choice.shared.spend_growth(one.part.metadata.add(metadata))


def annotate(
    choice: Choice, one: ItemPart, annotations: str | None, signature: str | None, encrypted_content: str | None
) -> None:
    """Store annotations, a signature and encrypted content of a part.

    Annotations are added to earlier annotations. A signature or encrypted content replaces the earlier value.
    """
    choice.shared.spend_text(byte_length((annotations or "") + (signature or "") + (encrypted_content or "")))
    choice.shared.spend_entries(0 if annotations is None else 1)
    part = one.part
    if annotations is not None:
        part.annotations.append(annotations)
        choice.shared.out.keep(Annotated(part.part, annotations))
    if signature is not None:
        part.signature = signature
    if encrypted_content is not None:
        part.encrypted_content = encrypted_content


def add_text(choice: Choice, item: Item, one: ItemPart, text: str, sub: int | None, metadata: str | None) -> None:
    """Apply one text delta to the part. Report the delta as late if the part is closed or already has its complete
    text.
    """
    if not _accepts(choice, item, one, sub, is_empty=not text):
        return
    text = one.joiner.push(text)
    if one.joiner.divides:
        choice.shared.out.mark_misread("half_character")
    choice.update_pending_part(one)
    if one.joiner.lone:
        choice.shared.out.diagnose("lone_surrogate", one.part.part)
    _append(choice, one, text, metadata)


def add_joined_text(
    choice: Choice, item: Item, one: ItemPart, text: str, sub: int | None, metadata: str | None
) -> None:
    """Apply a text to the part, like `add_text`. The joiner of the part has already joined the text with the text
    before it.
    """
    if _accepts(choice, item, one, sub, is_empty=not text):
        choice.update_pending_part(one)
        _append(choice, one, text, metadata)


def _accepts(choice: Choice, item: Item, one: ItemPart, sub: int | None, *, is_empty: bool) -> bool:
    """Return True if a delta with this sub-index can be appended to the part. Otherwise, report the delta as late,
    unless it is empty.
    """
    if one.valued or one.closed or one.labels.is_closed(sub) or not one.part.open:
        if not is_empty:
            report_late_part(choice, one)
        return False
    one.sub_is_reliable = one.sub_is_reliable or (bool(one.part.pieces) and one.last_sub == sub)
    if one.last_sub != sub:
        one.labels.change(one.last_sub, sub, one.length)
        one.last_sub = sub
        # No other part has this sub-index, because the lookup would have found it.
        item.by_sub_index[one.part.channel, one.part.kind, sub] = one
    return True


def _append(choice: Choice, one: ItemPart, text: str, metadata: str | None) -> None:
    if not text:
        put_metadata(choice, one, metadata)
        return
    held = one.snapshot
    if held is not None:
        if held.startswith(text, one.again):
            one.again += len(text)
            if one.again < len(held):
                put_metadata(choice, one, metadata)
                return
            text = held  # the deltas repeated the whole snapshot
        elif text.startswith(held[one.again :]):
            text = held[: one.again] + text  # the deltas repeated the snapshot and continued it
        else:
            text = held + held[: one.again] + text  # the deltas continued the snapshot
        one.snapshot = None
        choice.update_pending_part(one)
        choice.shared.spend_text(byte_length(text) - byte_length(held))
    else:
        choice.shared.spend_text(byte_length(text))
    _show(choice, one, text, metadata)


def _show(choice: Choice, one: ItemPart, text: str, metadata: str | None) -> None:
    one.show(text)
    if not choice.shared.out.silent:
        choice.shared.out.emit(one.part.delta(text, metadata))


def set_whole_text(choice: Choice, one: ItemPart, sub: int | None, text: str | None) -> None:
    """Set the text of a part to the complete text in a closing event or a content list.

    If the complete text begins with the streamed text, the rest is emitted as a delta; otherwise, a conflict is
    reported. If the deltas of the part had several sub-indexes, the complete text may belong only to the deltas with
    the sub-index `sub`, so it is stored until the part ends.
    """
    if not text:
        return
    text = own_value(one, replace_lone_surrogates(text))
    if not text:
        report_conflict(choice, one)  # the complete text ends before this part, whose text was streamed
        return
    current = one.part.text()
    if one.valued or not one.part.open or (one.labels.is_closed(sub) and not text.startswith(current)):
        if current != text and not one.labels.is_own_text(sub, current, text):
            report_conflict(choice, one)
        return
    if not text.startswith(current) and one.labels.note_close(sub, current, text):
        choice.shared.spend_text(byte_length(text))
        return
    set_value(choice, one, text)


def own_value(one: ItemPart, text: str) -> str:
    """Return the text of this part according to a complete text, which may also contain the closed parts that this part
    continues.
    """
    end = 0
    for earlier in one.earlier:
        if not text.startswith(earlier, end):
            return text
        end += len(earlier)
    current = one.part.text()
    is_own = not current or (end < len(text) and text.startswith(current) and not text.startswith(current, end))
    return text if is_own else text[end:]


def set_value(choice: Choice, one: ItemPart, text: str) -> None:
    """Set the text of the part. If the new text begins with the streamed text, emit the rest as a delta; otherwise,
    report a conflict.
    """
    current = one.part.text()
    revised, one.valued = one.valued, True
    one.snapshot = None
    one.joiner.held = ""
    choice.update_pending_part(one)
    if text == current:
        return
    choice.shared.spend_text(max(0, byte_length(text) - byte_length(current)))
    if text.startswith(current) and not revised:
        _show(choice, one, text[len(current) :], None)
        return
    report_conflict(choice, one)
    one.put(text)


def report_conflict(choice: Choice, one: ItemPart) -> None:
    """Report, at most once per part, that its streamed text contradicts its complete text."""
    if not one.conflict_reported:
        one.conflict_reported = True
        choice.shared.out.diagnose("conflict", one.part.part, one.part.channel)


def close_part(choice: Choice, item: Item, one: ItemPart, metadata: str | None, *, alone: bool) -> None:
    """Close a part because the stream closed it. `alone`: no more content of the part's item follows. If more content
    may follow, the part may stay open until the item ends.
    """
    if not one.part.open:
        return
    put_metadata(choice, one, metadata)
    choice.shared.out.closed.add(one.part.part)
    if one.labels.has_closes and not one.valued and not alone:
        return  # only one sub-index was closed, so the part ends with its item
    one.closed = True
    if alone or one.part.channel != "reasoning" or item.item_id is None:
        end_part(choice, one)


def end_part(choice: Choice, one: ItemPart) -> None:
    """End a part with its current text, including held-back text, and emit its closing event. Do nothing if the part is
    not open.
    """
    if not one.part.open:
        return
    closed = None if one.valued else one.labels.closed_text(one.part.text())
    if closed is not None:
        set_value(choice, one, closed)
    if one.snapshot is not None:
        held, one.snapshot = one.snapshot, None
        continued = held[: one.again]  # the deltas did not repeat all of the snapshot
        choice.shared.spend_text(byte_length(continued))
        _show(choice, one, held + continued, None)
    tail = one.joiner.flush()
    if tail:
        choice.shared.out.diagnose("lone_surrogate", one.part.part)
        choice.shared.spend_text(byte_length(tail))
        _show(choice, one, tail, None)
    one.part.open = False
    choice.update_pending_part(one)
    if not choice.shared.out.silent:
        choice.shared.out.emit(one.part.done())


def finish_item(
    choice: Choice, item: Item, encrypted_content: str | None, metadata: str | None, *, whole: bool = True
) -> None:
    """End all open parts of an item. The last part gets the encrypted content and the metadata. `whole`: the item was
    not truncated.
    """
    if item.kind == "reasoning" and whole and not item.parts and (item.item_id is not None or encrypted_content):
        # Open an empty part. Clients must send reasoning with encrypted content or an id back in the next turn, even
        # without text.
        open_part(choice, item, "reasoning", "summary", None, None, None)
    open_parts = [one for one in item.parts[item.ended :] if one.part.open]
    if open_parts:
        annotate(choice, open_parts[-1], None, None, encrypted_content)
        put_metadata(choice, open_parts[-1], metadata)
    elif metadata is not None:
        choice.shared.spend_growth(choice.metadata.add(metadata))
    for one in open_parts:
        end_part(choice, one)
    item.ended = len(item.parts)


def take_back(choice: Choice, item: Item) -> None:
    """Discard the content of an item's open parts and close them, because the response starts again."""
    for one in item.parts:
        if one.part.open:
            part = one.part
            part.pieces, part.annotations = [], []
            part.metadata = part.signature = part.encrypted_content = None
            part.open = False
            choice.update_pending_part(one)
            if not choice.shared.out.silent:
                choice.shared.out.emit(one.part.done())
