"""Applies a content list to the streamed parts of its item, one listed part after the other, as planned by
`listed_parts`.

Events are emitted in the order of the list, so that a client receives the parts in the order of the item:

1  A listed part adds its annotations and metadata to the streamed part that it matches. A listed part that matches no
   streamed part opens a new part.
2  The last listed part that matches a streamed part corrects the text of that part and closes it.
3  At the end of the list, the streamed parts that are not in the list become empty, in the order in which they opened.
   These parts close with the item. Step 3 comes last, because a later listed part may still match such a streamed part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.part.item_text import annotate, close_part, put_metadata, report_conflict, set_value
from streamweld._pure.assemble.resolve.by_address import opened
from streamweld._pure.assemble.resolve.listed_parts import KEPT, Plan, StreamedPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.item import Item, ItemPart
    from streamweld._pure.model.delta import ListedPart

__all__ = ["TextList"]


class TextList:
    """The streamed parts of one kind in an item, and the plan for the listed parts of this kind."""

    __slots__ = ("_item", "_parts", "_plan", "_to_come")

    def __init__(self, item: Item, entry: ListedPart, texts: Sequence[str], *, again: bool) -> None:
        """Plan how the listed parts are applied to the streamed parts. `entry`: one of the listed parts; `texts`: the
        texts of all listed parts. `again`: the list is a terminal list.
        """
        self._item = item
        self._parts = item.parts_of(entry.channel, entry.kind)
        if not again and item.ended:
            # The item ended before and was continued. This list may contain only the parts since then.
            recent = item.parts_of(entry.channel, entry.kind, first=item.ended)
            if recent and "".join([one.part.text() for one in recent]) == "".join(texts):
                self._parts = recent
        streamed = [
            StreamedPart(
                one.part.text() if one.snapshot is None else one.snapshot,
                not one.part.open,
                one.labels.state != "one",
                bool(one.earlier),
            )
            for one in self._parts
        ]
        self._plan = Plan(streamed, texts)
        # For each streamed part, the number of listed parts that have not been applied to it yet.
        self._to_come = [0] * len(self._parts)
        for assignment in self._plan.assignments:
            if isinstance(assignment, int):
                self._to_come[assignment] += 1

    def apply_entry(self, choice: Choice, number: int, entry: ListedPart, text: str, *, again: bool) -> None:
        """Apply the listed part with this number. The listed parts must be applied in order. `again`: the list is a
        terminal list.
        """
        assignment = self._plan.assignments[number]
        if assignment == "unassigned":
            return
        if assignment == "new":
            one = opened(choice, self._item, entry.channel, entry.kind, entry.address.sub)
        else:
            one = self._parts[assignment]
        one.restated = one.restated or again
        if entry.annotations is not None:
            _attach(choice, one, entry.annotations)
        if assignment == "new":
            set_value(choice, one, text)
        else:
            self._to_come[assignment] -= 1
            if self._to_come[assignment]:
                if one.part.open:
                    put_metadata(choice, one, entry.metadata)
                return
            self._correct(choice, assignment)
        close_part(choice, self._item, one, entry.metadata, alone=not self._item.open)

    def end(self, choice: Choice) -> None:
        """Ends the list: corrects the streamed parts that the list does not contain."""
        for position in range(len(self._parts)):
            self._correct(choice, position)

    def _correct(self, choice: Choice, position: int) -> None:
        """Corrects the text of a streamed part as planned, unless this was already done."""
        one, update = self._parts[position], self._plan.updates[position]
        self._plan.updates[position] = KEPT
        if update.kind == "text":
            set_value(choice, one, update.text)
        elif update.kind == "contradicted":
            report_conflict(choice, one)
        elif update.kind == "left":
            report_conflict(choice, one)
            set_value(choice, one, "")


def _attach(choice: Choice, one: ItemPart, annotations: str) -> None:
    if one.part.open:
        annotate(choice, one, annotations, None, None)
    elif not one.late_reported:
        one.late_reported = True
        choice.shared.out.diagnose("late_delta", one.part.part)
