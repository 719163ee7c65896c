"""Parts and calls that the wire itself opens and closes: the wire deltas of every dialect but Chat.

An item is what the wire addresses: a Responses output item, an Anthropic content block, an AI SDK id. It holds one call
or text-like parts. `Assembler` inherits these methods; each handles one wire delta. `item` resolves an address to an
item, `item_text` updates parts, `item_call` updates calls, `reannounced` handles calls that are announced twice, and
`terminal_items` handles terminal lists. Contains nothing specific to one dialect.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from streamweld._pure.assemble.item_lists import grouped
from streamweld._pure.assemble.part.item_call import (
    add_arguments,
    describe,
    hold,
    name_call,
    note_ids,
    says,
    tell_arguments,
)
from streamweld._pure.assemble.part.item_end import end_item
from streamweld._pure.assemble.part.item_shared_id import fork_item, settle_fork
from streamweld._pure.assemble.part.item_text import (
    add_text,
    annotate,
    close_part,
    end_part,
    find_part,
    find_whole,
    open_part,
    put_metadata,
    tell_value,
)
from streamweld._pure.assemble.part.reannounced import (
    is_another,
    is_close_under_another_id,
    is_closed,
    is_own_close,
    rename_call,
    say_again,
    shadow,
)
from streamweld._pure.assemble.resolve.by_address import (
    addressed_call,
    fill,
    item_of_opening,
    known_item,
    learn,
    new_call,
    new_item,
    opened,
    restatement,
    say_late,
)
from streamweld._pure.assemble.resolve.terminal_items import restated_call, restated_part
from streamweld._pure.json.scanner import replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.item import Item
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.model.delta import Address, ItemKind, ListedPart
    from streamweld.events import ReasoningKind

__all__ = ["ItemSurface"]


class ItemSurface:
    """The half of the assembler that knows items. `metadata` is the text of a JSON object, everywhere."""

    __slots__ = ()

    @abstractmethod
    def _item_choice(self, choice: int) -> Choice | None:
        """The choice, or None where nothing of it counts any more."""

    # Text, reasoning, refusals

    def item_opened(self, choice: int, kind: ItemKind, address: Address) -> None:
        """An item that has no part yet."""
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.book.usable(address)
        item = state.book.by_ids(kind, address)
        if item is None:
            bound = state.book.at(kind, address.index)
            item = bound if bound is not None and bound.open and not bound.announced else None
        if item is None:
            item = new_item(state, kind, address)
        else:
            learn(state, item, address)
        state.book.bind(item, address)
        item.announced = item.opened_bare = True
        if item.index is not None:
            state.shared.out.announce(item.index)

    def part_opened(
        self,
        choice: int,
        kind: ItemKind,
        address: Address,
        channel: Channel,
        reasoning_kind: ReasoningKind,
        text: str | None,
        metadata: str | None,
    ) -> None:
        """A part opens. `text`: what the opening carries already, a snapshot."""
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.book.usable(address)
        item = item_of_opening(state, kind, address)
        one = find_part(item, channel, reasoning_kind, address.sub)
        if one is not None and one.part.open and one.sub == address.sub:
            put_metadata(state, one, metadata)  # it is there already: announced twice, or deltas came first
            return
        fill(state, item)
        open_part(state, item, channel, reasoning_kind, address.sub, text, metadata)

    def part_text(
        self,
        choice: int,
        kind: ItemKind,
        address: Address,
        channel: Channel,
        reasoning_kind: ReasoningKind,
        text: str,
        metadata: str | None,
    ) -> None:
        """A piece of a part's text; opens what is not known."""
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.book.usable(address)
        item = state.book.find(kind, address, "delta")
        if item is not None and _is_over(item, address):
            item = None
        if item is None and not text:
            return
        if item is None and address.index is not None and not state.shared.ids_optional:
            state.shared.out.touch("not_opened")  # its opening is missing; Gemini has none
        item = known_item(state, kind, address, item)
        one = find_part(item, channel, reasoning_kind, address.sub)
        if one is None and not item.open:
            say_late(state, item)
        if one is None and (not text or not item.open):
            return
        one = one or opened(state, item, channel, reasoning_kind, address.sub)
        add_text(state, item, one, text, address.sub, metadata)

    def part_value(
        self,
        choice: int,
        kind: ItemKind,
        address: Address,
        channel: Channel,
        reasoning_kind: ReasoningKind,
        text: str | None,
    ) -> None:
        """The whole text of a part, said with authority; it is not closed by that."""
        state = self._item_choice(choice)
        if state is None or not text:
            return
        address = state.book.usable(address)
        item = known_item(state, kind, address, state.book.find(kind, address, "delta"))
        one = find_whole(item, channel, reasoning_kind, address.sub, text)
        one = one or opened(state, item, channel, reasoning_kind, address.sub)
        tell_value(state, one, address.sub, text)
        if not item.open:
            end_part(state, one)

    def part_attributes(
        self,
        choice: int,
        kind: ItemKind,
        address: Address,
        channel: Channel,
        annotations: str | None,
        signature: str | None,
        encrypted_content: str | None,
        metadata: str | None,
    ) -> None:
        """What hangs on a part. `annotations`: the text of a JSON array."""
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.book.usable(address)
        item = known_item(state, kind, address, state.book.find(kind, address, "delta"))
        one = find_part(item, channel, None, address.sub)
        if one is None:
            reason: ReasoningKind = "raw" if channel != "reasoning" else "summary" if item.opened_bare else "thinking"
            one = opened(state, item, channel, reason, address.sub)
        if one.part.open and item.open:
            annotate(state, one, annotations, signature, encrypted_content)
            put_metadata(state, one, metadata)
        elif not one.late_said:
            one.late_said = True
            state.shared.out.diagnose("late_delta", one.part.part)

    def part_closed(
        self,
        choice: int,
        kind: ItemKind,
        address: Address,
        channel: Channel,
        reasoning_kind: ReasoningKind,
        text: str | None,
        metadata: str | None,
    ) -> None:
        """A part is whole. `text` None: as it was streamed."""
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.book.usable(address)
        item = state.book.find(kind, address, "close")
        if item is None and not text:
            return
        item = known_item(state, kind, address, item)
        one = find_whole(item, channel, reasoning_kind, address.sub, text)
        if one is None and not text:
            return
        one = one or opened(state, item, channel, reasoning_kind, address.sub)
        # An item that was opened by itself, or numbers its parts, has a close of its own.
        alone = not item.open or (not item.opened_bare and address.sub is None)
        tell_value(state, one, address.sub, text)
        close_part(state, item, one, metadata, alone=alone)
        if alone and not item.has_open_part:
            state.book.close(item)

    def item_closed(
        self,
        choice: int,
        kind: ItemKind | None,
        address: Address,
        encrypted_content: str | None,
        metadata: str | None,
    ) -> None:
        """An item is whole, with all that is in it. `kind` None: whatever is open there."""
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.book.usable(address)
        if kind is None:
            item = state.book.whatever_at(address)
        else:
            item = state.book.find(kind, address, "close")
        if item is None:
            if kind != "reasoning" or (address.item_id is None and not encrypted_content):
                return
            item = new_item(state, kind, address)
        learn(state, item, address)
        if settle_fork(state, item):
            item = state.book.at("call", address.index) or item
        if not item.open:
            return
        if item.kind == "call" and item.call is not None:
            describe(state, item.call, custom=False, provider_executed=False, metadata=metadata)
        end_item(state, item, encrypted_content, metadata)
        if kind is None and address.index is not None:
            # Deltas of another type opened parts of their own in the block.
            for other in state.book.open_at(address.index):
                end_item(state, other, None, None)

    def parts_listed(self, choice: int, entries: Sequence[ListedPart], *, again: bool) -> None:
        """The parts of an item, whole. `again`: in a terminal list, which only repeats."""
        state = self._item_choice(choice)
        if state is None:
            return
        texts = [replace_lone_surrogates(entry.text or "") for entry in entries]
        groups, group_of = grouped(state, entries, texts, again=again)
        for entry, text, group in zip(entries, texts, group_of, strict=True):
            number, group.told = group.told, group.told + 1
            if group.list is not None:
                group.list.tell(state, number, entry, text, again=again)
            elif again:
                self._restate_alone(choice, entry, text)
        for group in groups:
            if group.list is not None:
                group.list.end(state)

    def _restate_alone(self, choice: int, entry: ListedPart, text: str) -> None:
        """An entry of a terminal list whose item is not known by its id."""
        item, address, channel = entry.item, entry.address, entry.channel
        if entry.annotations is not None:
            self.part_attributes(choice, item, address, channel, entry.annotations, None, None, None)
        self.restate_part(choice, item, address, channel, entry.kind, text, entry.metadata)

    def restate_part(
        self,
        choice: int,
        kind: ItemKind,
        address: Address,
        channel: Channel,
        reasoning_kind: ReasoningKind,
        text: str | None,
        metadata: str | None,
    ) -> None:
        """A terminal list tells a part again: what is missing is made, what is open closes, nothing is appended."""
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.book.usable(address)
        item, one = restated_part(restatement(state), kind, address, channel, reasoning_kind, text)
        if one is None:
            if not text:
                return
            item = item or new_item(state, kind, address)
            one = opened(state, item, channel, reasoning_kind, address.sub)
        if item is None:
            return
        one.restated = True
        learn(state, item, address)
        alone = not item.open
        tell_value(state, one, address.sub, text)
        close_part(state, item, one, metadata, alone=alone)

    # Calls

    def call_opened(
        self,
        choice: int,
        address: Address,
        name: str | None,
        arguments: str | None,
        provider_executed: bool,
        custom: bool,
        metadata: str | None,
    ) -> None:
        """A call is announced. `arguments`: what the opening carries already, a snapshot."""
        state = self._item_choice(choice)
        if state is None:
            return
        book = state.book
        address, name = book.usable(address), name if name and not name.isspace() else None
        item = book.by_ids("call", address)
        if item is None:
            bound = book.at("call", address.index)
            if bound is not None and bound.open and not bound.announced and bound.call is not None:
                item = bound
        again = item is not None and item.announced
        call = None if item is None else item.call
        if name is None and (call is None or not call.name):
            state.shared.out.touch("no_name")
        if item is None or call is None or (again and is_another(call, address, name)):
            item = new_call(state, address, custom=custom, provider_executed=provider_executed)
        elif again and is_closed(item) and item.first is None:
            earlier, item = item, new_item(state, "call", address)
            shadow(state, item, earlier, address, custom=custom, provider_executed=provider_executed)
        else:
            other = book.learn(item, address)
            note_ids(state, item, address, None if again else other)  # announced again says it
            if again and item.first is None:
                fork_item(state, item, address)
            book.bind(item, address)
            state.bind(call, address.index)
            if again and item.first is None:
                say_again(state, item, address)
        item.announced = True
        call = item.call
        if call is not None:
            describe(state, call, custom=custom, provider_executed=provider_executed, metadata=metadata)
            name_call(state, call, name)
            hold(state, item, arguments, address.index)

    def call_text(self, choice: int, address: Address, text: str, name: str | None, metadata: str | None) -> None:
        """A piece of a call's arguments."""
        state = self._item_choice(choice)
        if state is None:
            return
        item = addressed_call(state, address, text or name)
        if item is not None and item.call is not None:
            describe(state, item.call, custom=False, provider_executed=False, metadata=metadata)
            name_call(state, item.call, name)
            add_arguments(state, item, text, address.index)

    def call_value(self, choice: int, address: Address, arguments: str | None) -> None:
        """The whole arguments of a call, said with authority; it is not closed by that."""
        state = self._item_choice(choice)
        if state is None:
            return
        item = addressed_call(state, address, arguments)
        if item is not None:
            tell_arguments(state, item, arguments)

    def call_paused(self, choice: int, address: Address) -> None:
        """No more pieces of a call's arguments are announced; its close is still to come."""
        state = self._item_choice(choice)
        if state is None:
            return
        item = state.book.find("call", state.book.usable(address), "delta")
        if item is not None and item.call is not None:
            state.shared.out.closed.add(item.call.part)

    def call_closed(
        self,
        choice: int,
        address: Address,
        name: str | None,
        arguments: str | None,
        provider_executed: bool,
        custom: bool,
        metadata: str | None,
        *,
        refused: bool = False,
    ) -> None:
        """A call is whole; it is created if nobody announced it. `arguments` None: as they were streamed.

        `refused`: the sender says that no tool takes them.
        """
        state = self._item_choice(choice)
        if state is None:
            return
        address, name = state.book.usable(address), name if name and not name.isspace() else None
        item = state.book.closing(address, name)
        call = None if item is None else item.call
        again = call is not None and call.verdict is not None and _by_call_id(item, address) and bool(arguments)
        if (
            item is None
            or call is None
            or (
                item.announced
                and is_another(call, address, name)
                and not is_own_close(item, call, address)
                and not is_close_under_another_id(state.book, item, address, name, arguments)
            )
        ):
            item = new_call(state, address, custom=custom, provider_executed=provider_executed)
            if item.call is not None:
                item.call.unopened = True
        elif again and not says(call, arguments):
            # A whole call in one delta (AI SDK), or another item (Responses): the id is used again.
            item = new_call(state, address, custom=custom, provider_executed=provider_executed)
        else:
            changed = item.announced and is_another(call, address, None) and not again
            learn(state, item, address)
            if changed:
                state.shared.out.diagnose("unstable_id", call.part, address.call_id or "")
            if again:
                say_again(state, item, address)
        item.announced = True
        if refused and item.call is not None:
            item.call.refused = True
        _whole(state, item, name, arguments, provider_executed, custom, metadata)

    def restate_call(
        self,
        choice: int,
        address: Address,
        name: str | None,
        arguments: str | None,
        provider_executed: bool,
        custom: bool,
        metadata: str | None,
    ) -> None:
        """A terminal list tells a call again."""
        state = self._item_choice(choice)
        if state is None:
            return
        address, name = state.book.usable(address), name if name and not name.isspace() else None
        item = restated_call(restatement(state), address, name, arguments)
        if item is None or item.call is None:
            item = new_call(state, address, custom=custom, provider_executed=provider_executed)
        else:
            learn(state, item, address)
        item.restated = item.announced = True
        _whole(state, item, name, arguments, provider_executed, custom, metadata)

    def forget_addresses(self, choice: int) -> None:
        """Ids and indexes may be used again for other items. Texts that are open are over; calls wait for the end."""
        state = self._item_choice(choice)
        if state is not None:
            # Of the steps before only calls are open, which wait.
            for item in state.book.opened_in_step():
                if item.first is not None or item.kind != "call":
                    end_item(state, item, None, None)
            state.book.forget()
            state.step = state.shared.parts


def _whole(
    state: Choice,
    item: Item,
    name: str | None,
    arguments: str | None,
    provider_executed: bool,
    custom: bool,
    metadata: str | None,
) -> None:
    """The wire told the item's call as a whole."""
    call = item.call
    if call is None:
        return
    if call.verdict is None:
        describe(state, call, custom=custom, provider_executed=provider_executed, metadata=metadata)
        rename_call(state, item, name)
    tell_arguments(state, item, arguments)
    end_item(state, item, None, None)


def _is_over(item: Item, address: Address) -> bool:
    """A thought came to the index of one that is closed. No id says that it is the same, so it is another one."""
    return item.kind == "reasoning" and not item.open and item.item_id is None and address.item_id is None


def _by_call_id(item: Item | None, address: Address) -> bool:
    """What led to the item is the id of its call: the address names no item, or another one that shares it."""
    return item is not None and (
        address.item_id is None
        or (address.call_id is not None and address.item_id not in (item.item_id, address.call_id))
    )
