"""Computes the position of a part in its item, because `content_index` and `summary_index` in the events are
unreliable.

Clients store the parts of an item in a list. Some gateways never reset the index, skip numbers, or use the same number
for two parts. The number in an event is therefore only a label for a part. The first part of an item has position 0,
the second part has position 1, and so on. An unknown label may still refer to a known part. A delta with an unknown
label belongs to the only part that was announced but has no text. A closing event with an unknown label belongs to the
only part that is still open. The module stores only indexes and channels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.model.delta import Address

__all__ = ["ContentIndexes", "Purpose"]

Purpose = Literal["open", "delta", "value", "close"]
_Stage = Literal["opened", "text", "valued", "closed"]

_STAGES: tuple[_Stage, ...] = ("opened", "text", "valued", "closed")
_REMEMBERED = 4096  # maximum number of messages, and of parts in each message

# The stages in which an event with an unknown label may address a part, and the stage of the part after the event.
_MAY_MEAN: dict[Purpose, tuple[_Stage, ...]] = {
    "open": (),
    "delta": ("opened",),
    "value": ("opened", "text"),
    "close": ("opened", "text", "valued"),
}
_LEADS_TO: dict[Purpose, _Stage] = {"open": "opened", "delta": "text", "value": "valued", "close": "closed"}


class _Message:
    __slots__ = ("at_stage", "is_over", "named", "stages", "taken")

    def __init__(self) -> None:
        self.named: dict[tuple[Channel, int], int] = {}  # positions of parts, by channel and label
        self.taken: dict[int, Channel | None] = {}  # channel by position; None for a part of unknown type
        self.stages: dict[int, _Stage] = {}
        self.at_stage: dict[tuple[Channel, _Stage], set[int]] = {}
        self.is_over = False  # the message is complete; a part that opens now belongs to another message

    def only_part(self, channel: Channel, purpose: Purpose) -> int | None:
        """Return the part of the channel that an event with an unknown label addresses.

        Return None unless exactly one part is in a suitable stage.
        """
        found = [self.at_stage.get((channel, stage), set[int]()) for stage in _MAY_MEAN[purpose]]
        return next(iter(set[int]().union(*found))) if sum(map(len, found)) == 1 else None

    def advance(self, position: int, channel: Channel, purpose: Purpose) -> None:
        """Move the part at a position to the stage that follows the event. A part never returns to an earlier stage."""
        before, after = self.stages.get(position), _LEADS_TO[purpose]
        if before is not None:
            if _STAGES.index(before) >= _STAGES.index(after):
                return
            self.at_stage[channel, before].discard(position)
        self.stages[position] = after
        self.at_stage.setdefault((channel, after), set()).add(position)


class ContentIndexes:
    """The positions of parts in all messages of one stream."""

    __slots__ = ("_by_id", "_by_index", "_ids")

    def __init__(self) -> None:
        self._by_id: dict[str, _Message] = {}
        self._by_index: dict[int, _Message] = {}  # messages without a known id
        self._ids: dict[int, str] = {}  # ids of the messages in `_by_id`, by output index

    def begin(self, address: Address) -> None:
        """Start a new message, and discard any message with the same id or index."""
        if address.item_id is not None:
            self._by_id.pop(address.item_id, None)
        if address.index is not None:
            self._by_index.pop(address.index, None)
            self._ids.pop(address.index, None)

    def of(self, address: Address, channel: Channel, purpose: Purpose) -> int | None:
        """Return the position of the part that an event addresses, or None if the event has no index.

        If the label of an opening event refers to a closed part, the event addresses a new part.
        """
        sent, opens = address.sub, purpose == "open"
        before = self._known(address) if opens else None
        if before is not None and before.is_over:
            self.begin(address)
        message = None if sent is None else self._message(address)
        if sent is None or message is None:
            return sent
        name = (channel, sent)
        position = message.named.get(name)
        if position is None or (opens and message.stages[position] == "closed"):
            if len(message.named) >= _REMEMBERED or len(message.taken) >= _REMEMBERED:
                return sent
            position = message.only_part(channel, purpose)
            if position is None:
                position = len(message.taken)
            message.named[name] = position
            message.taken[position] = channel
        message.advance(position, channel, purpose)
        return position

    def skip(self, address: Address) -> None:
        """Reserve a position for a newly opened part of unknown type."""
        message = None if address.sub is None else self._message(address)
        if message is not None and len(message.taken) < _REMEMBERED:
            message.taken[len(message.taken)] = None

    def skip_listed(self, address: Address) -> None:
        """Reserve the position of a part of unknown type that an announced item contains.

        The position is not reserved if an earlier part of the item has none.
        """
        message = None if address.sub is None else self._message(address)
        if message is not None and len(message.taken) == address.sub:
            self.skip(address)

    def finish(self, address: Address) -> None:
        """Mark the message as complete, even though the terminal output may list the message again."""
        message = self._known(address)
        if message is not None:
            message.is_over = True

    def listed(self, address: Address, channel: Channel, position: int) -> int:
        """Return the position of the part that an element of a content list repeats.

        If the part at the position of the element has another channel, the position is treated as a label, because
        lists may omit empty parts.
        """
        message = self._known(address)
        if message is None or message.taken.get(position) == channel:
            return position
        return message.named.get((channel, position), position)

    def _known(self, address: Address) -> _Message | None:
        item_id, index = address.item_id, address.index
        if item_id is not None and item_id in self._by_id:
            return self._by_id[item_id]
        if index is None:
            return None
        if index in self._ids:
            return None if item_id is not None else self._by_id.get(self._ids[index])
        return self._by_index.get(index)

    def _message(self, address: Address) -> _Message | None:
        """Return the message that an event addresses. Add the message if it is new.

        Return None if too many messages are stored or the event has neither an id nor an index.
        """
        item_id, index = address.item_id, address.index
        message = self._known(address)
        if message is None:
            if (item_id is None and index is None) or len(self._by_id) + len(self._by_index) >= _REMEMBERED:
                return None
            message = _Message()
            if item_id is None and index is not None:
                self._by_index[index] = message
                self._ids.pop(index, None)
        if item_id is not None:
            self._by_id[item_id] = message
            if index is not None:
                self._by_index.pop(index, None)
                if index in self._ids or len(self._ids) < _REMEMBERED:
                    self._ids[index] = item_id
        return message
