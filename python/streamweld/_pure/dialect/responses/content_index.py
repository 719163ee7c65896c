"""The place of a part in its message, whatever `content_index` calls it.

The content of a whole message lists its parts by their places. Some gateways give two parts one `content_index`: then
the second has the next free place, and so has what comes behind it. Knows indexes and channels; no text and no part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.model.delta import Address

__all__ = ["ContentIndexes"]

_REMEMBERED = 4096  # messages, and parts of each


class _Message:
    __slots__ = ("closed", "is_over", "named", "next", "taken")

    def __init__(self) -> None:
        self.named: dict[tuple[Channel, int], int] = {}  # by what the events call it
        self.closed: set[tuple[Channel, int]] = set()
        self.taken: dict[int, Channel] = {}
        self.next = 0  # behind all that are taken
        self.is_over = False  # what opens is a part of another one


class ContentIndexes:
    """Those of one stream."""

    __slots__ = ("_by_id", "_by_index", "_ids")

    def __init__(self) -> None:
        self._by_id: dict[str, _Message] = {}
        self._by_index: dict[int, _Message] = {}  # of which no id is known
        self._ids: dict[int, str] = {}  # of the others, by index

    def begin(self, address: Address) -> None:
        """A message is announced: what was under its id and its index is another one."""
        if address.item_id is not None:
            self._by_id.pop(address.item_id, None)
        if address.index is not None:
            self._by_index.pop(address.index, None)
            self._ids.pop(address.index, None)

    def of(self, address: Address, channel: Channel, *, opens: bool = False) -> int | None:
        """The place of the part that an event speaks of. `opens`: a closed one of that name was another one."""
        sent = address.sub
        before = self._known(address) if opens else None
        if before is not None and before.is_over:
            self.begin(address)
        message = None if sent is None else self._message(address)
        if sent is None or message is None:
            return sent
        name = (channel, sent)
        place = message.named.get(name)
        if place is not None and not (opens and name in message.closed):
            return place
        if len(message.taken) >= _REMEMBERED:
            return sent
        place = message.next if sent in message.taken else sent
        message.named[name] = place
        message.closed.discard(name)
        message.taken[place] = channel
        message.next = max(message.next, place + 1)
        return place

    def close(self, address: Address, channel: Channel) -> None:
        """The part is over, as far as events go."""
        message = self._known(address)
        if message is not None and address.sub is not None and (channel, address.sub) in message.named:
            message.closed.add((channel, address.sub))

    def finish(self, address: Address) -> None:
        """The message is over, as far as events go; a list may tell it again."""
        message = self._known(address)
        if message is not None:
            message.is_over = True

    def listed(self, address: Address, channel: Channel, place: int) -> int:
        """That of an entry of a list: its own, unless only a name of it fits (lists may leave empty parts out)."""
        message = self._known(address)
        if message is None or message.taken.get(place) == channel:
            return place
        return message.named.get((channel, place), place)

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
        """The message that an event speaks of; None where there are too many, or it says nothing."""
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
