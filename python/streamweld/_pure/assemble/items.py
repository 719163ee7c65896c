"""The assembler's methods for parts and calls that the stream opens and closes explicitly, as in every dialect except
Chat.

An item is the unit that the wire format addresses: a Responses output item, an Anthropic content block, or an AI SDK
block. An item contains one call, or any number of text-like parts. `Assembler` inherits these methods; each handles one
kind of wire delta. `item_index` finds the item for an address, `item_text` changes parts, `item_call` changes calls,
`reannounced` handles calls that are announced twice, and `terminal_items` handles terminal lists.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from streamweld._pure.assemble.item_lists import grouped
from streamweld._pure.assemble.late_text import (
    add_late_text,
    continue_part,
    end_late_text,
    end_late_texts,
    is_late,
)
from streamweld._pure.assemble.part import call_events
from streamweld._pure.assemble.part.item_call import (
    add_arguments,
    describe,
    hold,
    is_same_or_empty,
    name_call,
    note_ids,
    set_whole_arguments,
)
from streamweld._pure.assemble.part.item_end import end_item
from streamweld._pure.assemble.part.item_shared_id import resolve_shared_id, share_id
from streamweld._pure.assemble.part.item_text import (
    add_after_repetition,
    add_joined_text,
    add_text,
    annotate,
    close_part,
    end_part,
    find_part,
    find_whole,
    is_repetition,
    open_part,
    put_metadata,
    repeat_item,
    repeat_open_part,
    repeat_part,
    report_late_part,
    set_whole_text,
)
from streamweld._pure.assemble.part.reannounced import (
    begin_reannounced,
    is_another,
    is_close_under_another_id,
    is_closed,
    is_own_close,
    rename_call,
    report_reannounced,
)
from streamweld._pure.assemble.resolve.by_address import (
    addressed_call,
    diverged,
    end_repetition,
    end_shorter_repetition,
    fill,
    item_of_opening,
    known_item,
    learn,
    new_call,
    new_item,
    opened,
    report_late,
    restatement,
    split_shorter_repetition,
)
from streamweld._pure.assemble.resolve.terminal_items import restated_call, restated_part
from streamweld._pure.json.scanner import replace_lone_surrogates
from streamweld._pure.model.delta import CallEnding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.item import Item
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.model.delta import Address, ItemKind, ListedPart
    from streamweld.events import ReasoningKind

__all__ = ["ItemSurface"]


class ItemSurface:
    """The assembler's methods for items and their parts and calls. `metadata` is always the text of a JSON object."""

    __slots__ = ()

    @abstractmethod
    def _item_choice(self, choice: int) -> Choice | None:
        """Return the choice, or None if the choice or the stream has ended. A delta for a choice that has ended is
        reported as late.
        """

    # Text, reasoning, refusals

    def item_opened(self, choice: int, kind: ItemKind, address: Address) -> None:
        """Open an item whose opening event contains no part."""
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.item_index.usable(address)
        item = state.item_index.by_ids(kind, address)
        if item is None:
            bound = state.item_index.at(kind, address.index)
            item = bound if bound is not None and bound.open and not bound.announced else None
            if bound is not None:
                end_late_texts(state, bound)
            if bound is not None and address.item_id is None and repeat_item(bound):
                item = bound  # the stream may replay an item without ids
        if item is None:
            item = new_item(state, kind, address)
        else:
            learn(state, item, address)
        state.item_index.bind(item, address)
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
        """Open a part, unless it is open already. `text`: the text in the opening event, a snapshot that deltas may
        repeat.
        """
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.item_index.usable(address)
        item = state.item_index.repeated_at(kind, address)
        one = None if item is None else find_part(item, channel, reasoning_kind, address.sub)
        if item is not None and one is not None:
            one = end_late_text(state, item, one, None)
        if item is not None and one is not None and repeat_part(item, one, address.index, text):
            return
        item = state.item_index.take_begun_again(kind, address)
        one = None if item is None else find_part(item, channel, reasoning_kind, address.sub)
        if one is not None and repeat_open_part(state, one, text):
            return
        item = item_of_opening(state, kind, address)
        one = find_part(item, channel, reasoning_kind, address.sub)
        one = None if one is None else end_late_text(state, item, one, None)
        if one is not None and one.part.open and one.sub == address.sub:
            put_metadata(state, one, metadata)  # the part was announced twice, or its deltas arrived first
            return
        if one is not None and one.sub == address.sub and repeat_part(item, one, address.index, text):
            return
        fill(state, item)
        if one is not None and one.sub == address.sub:
            continue_part(state, item, one, address.sub, text, metadata)  # the part was closed too early
            return
        if not item.open:
            state.item_index.reopen(item)
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
        """Append a piece of text to a part. Open the part if it does not exist."""
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.item_index.usable(address)
        item = state.item_index.find(kind, address, "delta")
        one = None if item is None else find_part(item, channel, reasoning_kind, address.sub)
        if item is not None and one is None and _is_over(item, address):
            item = None
        if item is None and not text:
            return
        if item is None and not state.shared.ids_optional:
            state.shared.out.mark_misread("not_opened")  # the opening event is missing
        item = known_item(state, kind, address, item)
        if one is None and not text:
            return
        if one is None and not item.open:
            report_late(state, item)
            state.item_index.reopen(item)
        if one is not None and one.repeated is None and is_late(one, address.sub):
            if text:
                add_late_text(state, item, one, text, address.sub, metadata)
            return
        if one is not None and one.repeated is not None:
            text = one.joiner.push(text)
            if add_after_repetition(state, item, one, text, address.sub, metadata):
                return
            if is_repetition(state, one, text):
                return
            item, one = diverged(state, item, one, address)
            add_joined_text(state, item, one, text, address.sub, metadata)
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
        """Replace the streamed text of a part with its complete text. Does not close the part."""
        state = self._item_choice(choice)
        if state is None or not text:
            return
        address = state.item_index.usable(address)
        item = known_item(state, kind, address, state.item_index.find(kind, address, "delta"))
        one = find_whole(item, channel, reasoning_kind, address.sub, text)
        one = None if one is None else end_late_text(state, item, one, text)
        if one is not None and one.repeated is not None:
            if one.part.text() == replace_lone_surrogates(text):
                report_late_part(state, one)
                return
            item, one = diverged(state, item, one, address)
        one = one or opened(state, item, channel, reasoning_kind, address.sub)
        set_whole_text(state, one, address.sub, text)
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
        """Add annotations, a signature, encrypted content and metadata to a part. Open the part if it does not exist.
        `annotations` is the text of a JSON array.
        """
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.item_index.usable(address)
        item = known_item(state, kind, address, state.item_index.find(kind, address, "delta"))
        one = find_part(item, channel, None, address.sub)
        if one is None:
            reason: ReasoningKind = "raw" if channel != "reasoning" else "summary" if item.opened_bare else "thinking"
            one = opened(state, item, channel, reason, address.sub)
        if one.part.open and item.open:
            annotate(state, one, annotations, signature, encrypted_content)
            put_metadata(state, one, metadata)
        elif not one.late_reported:
            one.late_reported = True
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
        """Close a part, and first create it if it does not exist. If `text` is missing, the streamed text is final."""
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.item_index.usable(address)
        item = state.item_index.find(kind, address, "close")
        if item is None and not text:
            return
        item = known_item(state, kind, address, item)
        one = find_whole(item, channel, reasoning_kind, address.sub, text)
        if one is None and not text:
            return
        one = None if one is None else end_late_text(state, item, one, text)
        repeats = one is not None and one.repeated is not None and bool(text)
        if one is not None and repeats and one.part.text() != replace_lone_surrogates(text or ""):
            item, one = diverged(state, item, one, address)
        one = one or opened(state, item, channel, reasoning_kind, address.sub)
        # An item with its own opening event, or with numbered parts, also has its own closing event.
        alone = not item.open or (not item.opened_bare and address.sub is None)
        set_whole_text(state, one, address.sub, text)
        close_part(state, item, one, metadata, alone=alone)
        if alone and not item.has_open_part:
            state.item_index.close(item)

    def item_closed(
        self,
        choice: int,
        kind: ItemKind | None,
        address: Address,
        encrypted_content: str | None,
        metadata: str | None,
    ) -> None:
        """Close an item with all of its parts or its call. If `kind` is missing, close the open item at the address,
        whatever its kind is.
        """
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.item_index.usable(address)
        if kind is None:
            item = state.item_index.whatever_at(address)
        else:
            item = state.item_index.find(kind, address, "close")
        if item is None:
            if kind is None:
                end_shorter_repetition(state, address)
            if kind != "reasoning" or (address.item_id is None and not encrypted_content):
                return
            item = new_item(state, kind, address)
        learn(state, item, address)
        if resolve_shared_id(state, item):
            item = state.item_index.at("call", address.index) or item
        if not item.open:
            end_late_texts(state, item)
        if not item.open:
            if kind is not None and item.item_id is None and item.repeats:
                end_repetition(state, item, address)
            return
        item = split_shorter_repetition(state, item, address)
        if item.kind == "call" and item.call is not None:
            describe(state, item.call, custom=False, provider_executed=False, metadata=metadata)
        end_item(state, item, encrypted_content, metadata)
        if kind is None and address.index is not None:
            # Deltas of another type may have opened an item of another kind for the same block.
            for other in state.item_index.open_at(address.index):
                end_item(state, other, None, None)

    def message_repeated(self, choice: int) -> None:
        """Record that the message began again, so the blocks that follow may repeat earlier blocks at the same
        index.
        """
        state = self._item_choice(choice)
        if state is not None:
            state.item_index.begin_again()

    def parts_listed(self, choice: int, entries: Sequence[ListedPart], *, again: bool) -> None:
        """Apply a list that contains all parts of an item with their complete text.

        `again`: true if the list is in a terminal event, which only repeats earlier content.
        """
        state = self._item_choice(choice)
        if state is None:
            return
        texts = [replace_lone_surrogates(entry.text or "") for entry in entries]
        groups, group_of = grouped(state, entries, texts, again=again)
        for entry, text, group in zip(entries, texts, group_of, strict=True):
            number, group.next_entry = group.next_entry, group.next_entry + 1
            if group.list is not None:
                group.list.apply_entry(state, number, entry, text, again=again)
            elif again:
                self._restate_alone(choice, entry, text)
        for group in groups:
            if group.list is not None:
                group.list.end(state)

    def _restate_alone(self, choice: int, entry: ListedPart, text: str) -> None:
        """Apply one part of a terminal list on its own, because no streamed item was found for the list."""
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
        """Apply one part of a terminal list. If the listed part repeats a streamed part, close the streamed part;
        otherwise, create a new part.
        """
        state = self._item_choice(choice)
        if state is None:
            return
        address = state.item_index.usable(address)
        item, one = restated_part(restatement(state), kind, address, channel, reasoning_kind, text)
        if one is None:
            if not text:
                return
            item = item or new_item(state, kind, address)
            one = opened(state, item, channel, reasoning_kind, address.sub)
        if item is None:
            return
        one = end_late_text(state, item, one, text)
        one.restated = True
        learn(state, item, address)
        alone = not item.open
        set_whole_text(state, one, address.sub, text)
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
        """Open a call. `arguments`: the arguments in the opening event, a snapshot that deltas may repeat."""
        state = self._item_choice(choice)
        if state is None:
            return
        item_index = state.item_index
        address, name = item_index.usable(address), name if name and not name.isspace() else None
        item = item_index.by_ids("call", address)
        if item is None:
            bound = item_index.at("call", address.index)
            if bound is not None and bound.open and not bound.announced and bound.call is not None:
                item = bound
        again = item is not None and item.announced
        call = None if item is None else item.call
        if name is None and (call is None or not call.name):
            state.shared.out.mark_misread("no_name")
        if item is None or call is None or (again and is_another(call, address, name)):
            item = new_call(state, address, custom=custom, provider_executed=provider_executed)
        elif again and is_closed(item) and item.first is None:
            earlier, item = item, new_item(state, "call", address)
            begin_reannounced(state, item, earlier, address, custom=custom, provider_executed=provider_executed)
        else:
            other = item_index.learn(item, address)
            note_ids(state, item, address, None if again else other)  # a repetition may have another id
            if again and item.first is None:
                share_id(state, item, address)
            item_index.bind(item, address)
            state.bind(call, address.index)
            if again and item.first is None:
                report_reannounced(state, item, address)
        item.announced = True
        call = item.call
        if item_index.take_begun_again("call", address) is item and call is not None and not call.empty:
            item.repeated_arguments = 0
        if call is not None:
            describe(state, call, custom=custom, provider_executed=provider_executed, metadata=metadata)
            name_call(state, call, name)
            hold(state, item, arguments, address.index)

    def call_text(self, choice: int, address: Address, text: str, name: str | None, metadata: str | None) -> None:
        """Append a piece of argument text to a call. Create the call if no event opened it."""
        state = self._item_choice(choice)
        if state is None:
            return
        item = addressed_call(state, address, text or name)
        if item is not None and item.call is not None:
            describe(state, item.call, custom=False, provider_executed=False, metadata=metadata)
            name_call(state, item.call, name)
            add_arguments(state, item, text, address.index)

    def call_progress(self, choice: int, address: Address, metadata: str | None) -> bool:
        """Emit a delta with metadata but without argument text for an open call.

        Return False if no event can be emitted: no open call has this address, or the call has no name yet.
        """
        state = self._item_choice(choice)
        if state is None:
            return True
        item = state.item_index.find("call", state.item_index.usable(address), "delta")
        call = None if item is None or not item.open else item.call
        return call is not None and call_events.progress(state, call, metadata)

    def call_value(self, choice: int, address: Address, arguments: str | None) -> None:
        """Replace the streamed arguments of a call with its complete arguments. Does not close the call."""
        state = self._item_choice(choice)
        if state is None:
            return
        item = addressed_call(state, address, arguments)
        if item is not None:
            set_whole_arguments(state, item, arguments)

    def call_paused(self, choice: int, address: Address) -> None:
        """Record that a call will receive no more argument text, even though its closing event has not arrived."""
        state = self._item_choice(choice)
        if state is None:
            return
        item = state.item_index.find("call", state.item_index.usable(address), "delta")
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
        ending: CallEnding = CallEnding.WHOLE,
        refused: bool = False,
    ) -> None:
        """Close a call, and first create it if it does not exist.

        If `arguments` is missing, the streamed arguments are final. `ending`: how complete the call is, according to
        the event. `refused`: the sender reported that the tool does not accept the arguments.
        """
        state = self._item_choice(choice)
        if state is None:
            return
        address, name = state.item_index.usable(address), name if name and not name.isspace() else None
        item = state.item_index.closing(address, name)
        call = None if item is None else item.call
        again = call is not None and call.outcome is not None and _by_call_id(item, address) and bool(arguments)
        if (
            item is None
            or call is None
            or (
                item.announced
                and is_another(call, address, name)
                and not is_own_close(item, call, address)
                and not is_close_under_another_id(state.item_index, item, address, name, arguments)
            )
        ):
            item = new_call(state, address, custom=custom, provider_executed=provider_executed)
            if item.call is not None:
                item.call.unopened = True
        elif again and not is_same_or_empty(call, arguments):
            # Different arguments mean a new call that reuses the id. The AI SDK sends the new call in a single delta;
            # Responses sends it as another item.
            item = new_call(state, address, custom=custom, provider_executed=provider_executed)
        else:
            changed = item.announced and is_another(call, address, None) and not again
            learn(state, item, address)
            if changed:
                state.shared.out.diagnose("unstable_id", call.part, address.call_id or "")
            if again:
                report_reannounced(state, item, address)
        item.announced = True
        if refused and item.call is not None:
            item.call.refused = True
        _whole(state, item, name, arguments, provider_executed, custom, metadata, ending)

    def restate_call(
        self,
        choice: int,
        address: Address,
        name: str | None,
        arguments: str | None,
        provider_executed: bool,
        custom: bool,
        metadata: str | None,
        *,
        ending: CallEnding = CallEnding.WHOLE,
    ) -> None:
        """Apply a call in a terminal list. If the listed call repeats a streamed call, complete and close the streamed
        call; otherwise, create a new call.
        """
        state = self._item_choice(choice)
        if state is None:
            return
        address, name = state.item_index.usable(address), name if name and not name.isspace() else None
        item = restated_call(restatement(state), address, name, arguments)
        if item is None or item.call is None:
            item = new_call(state, address, custom=custom, provider_executed=provider_executed)
        else:
            learn(state, item, address)
        item.restated = item.announced = True
        _whole(state, item, name, arguments, provider_executed, custom, metadata, ending)

    def forget_addresses(self, choice: int) -> None:
        """End a step, after which ids and indexes may be reused for other items.

        Close the open text parts; open calls stay open until the choice ends.
        """
        state = self._item_choice(choice)
        if state is not None:
            # Items of earlier steps that are still open are calls, which stay open until the choice ends.
            for item in state.item_index.take_late():
                end_late_texts(state, item)
            for item in state.item_index.opened_in_step():
                if item.first is not None or item.kind != "call":
                    end_item(state, item, None, None)
            state.item_index.forget()
            state.step = state.shared.parts


def _whole(
    state: Choice,
    item: Item,
    name: str | None,
    arguments: str | None,
    provider_executed: bool,
    custom: bool,
    metadata: str | None,
    ending: CallEnding,
) -> None:
    """Apply the complete name and arguments of a call, and close its item unless the call is cut off or still in
    progress.
    """
    call = item.call
    if call is None:
        return
    if call.outcome is None:
        describe(state, call, custom=custom, provider_executed=provider_executed, metadata=metadata)
        rename_call(state, item, name)
    set_whole_arguments(state, item, arguments)
    if call.outcome is None:
        call.ending = ending
        if ending is not CallEnding.WHOLE:
            # Leave the call open, because a later event may complete it. If no event completes the call, the
            # end of the response determines the state of the call.
            call.ended = ending is not CallEnding.CUT
            return
    end_item(state, item, None, None)


def _is_over(item: Item, address: Address) -> bool:
    """Return True if the item is closed and neither the item nor the address has an item id.

    A delta at the index of such an item belongs to a new item.
    """
    return not item.open and not item.repeats and item.item_id is None and address.item_id is None


def _by_call_id(item: Item | None, address: Address) -> bool:
    """Return True if only the call id of the address identified the item, because the address has no item id or the
    item id of another item.
    """
    return item is not None and (
        address.item_id is None
        or (address.call_id is not None and address.item_id not in (item.item_id, address.call_id))
    )
