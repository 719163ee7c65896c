"""Stores the items from a source in the same dialect that are written as they were sent, and writes their JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from streamweld._json import loads_raw
from streamweld._pure.encode.common.writer import quoted, spliced
from streamweld._pure.json.scanner import ordered_members, replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.json.members import Raw

__all__ = ["Copied", "CopiedItems", "Name", "object_members", "status_of", "with_status", "with_values"]

# Identifies an item by its type and its id, or by its call id if it has no id, or by its index if it has neither.
Name: TypeAlias = tuple[Literal["id", "call", "index"], str, str | int]


@dataclass(slots=True)
class Copied:
    """An item that is written as it was sent."""

    index: int
    kind: str
    identity: str  # the id that clients received, which the encoder mints if the item was sent without one
    json: str | None = None  # the item as it was last sent; None if it exceeds the limit
    is_done: bool = False


class CopiedItems:
    """The items of one response that are written as they were sent."""

    __slots__ = ("all", "by_name")

    def __init__(self) -> None:
        self.all: list[Copied] = []
        self.by_name: dict[Name, Copied] = {}

    def listed(self) -> dict[int, str]:
        """Return the JSON of each stored item, by index. An item that has not ended gets the status `incomplete`."""
        return {
            item.index: spliced(item.json) if item.is_done else with_status(item.json, '"incomplete"')
            for item in self.all
            if item.json is not None
        }

    def lack_any(self) -> bool:
        """Return True if an item is missing in the output because it exceeded the limit."""
        return any(item.json is None for item in self.all)


def object_members(text: str) -> Raw:
    """Return the members of an object, with names that can be encoded as UTF-8. A repeated name has its first position
    and its last value.
    """
    return {replace_lone_surrogates(name): raw for name, raw in ordered_members(text).items()}


def with_values(text: str, values: Mapping[str, str], *, without: str | None = None) -> str:
    """Return an object as it was sent, without whitespace between its tokens, and with this JSON in place of the values
    of its own members. Missing members are added: a type becomes the first member, others follow the sent members.
    The member `without` is left out.
    """
    sent = object_members(text)
    if "type" in values:
        sent = {"type": "", **sent}
    written = {name: values[name] if name in values else spliced(raw) for name, raw in sent.items() if name != without}
    return "{" + ",".join([f"{quoted(name)}:{raw}" for name, raw in {**written, **values}.items()]) + "}"


def with_status(item: str, status: str) -> str:
    """Return an item as it was sent, with another status if it has a status."""
    return with_values(item, {} if status_of(item) is None else {"status": status})


def status_of(item: str) -> str | None:
    """Return the status of an item, or None if it has none."""
    raw = object_members(item).get("status", "")
    return replace_lone_surrogates(loads_raw(raw)) if raw.startswith('"') else None
