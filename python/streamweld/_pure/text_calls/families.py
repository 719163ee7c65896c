"""Parses the families that a policy enables from the config, into typed fields."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Family", "Markers", "Settings", "load_settings"]

Tier = Literal["token", "tag", "markerless"]
_NEVER: Final = re.compile(r"(?!)")


class Family:
    """One form in which models write calls. `data` contains the members that its shape requires."""

    __slots__ = (
        "data",
        "following_markers",
        "maybe_close",
        "name",
        "openers",
        "allows_consecutive_blocks",
        "shape",
        "tier",
        "unread",
    )

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.name: str = data["family"]
        self.tier: Tier = data["tier"]
        self.shape: str = data["shape"]
        self.openers: list[str] = list(data["open"])
        self.unread: int = data.get("unread", 0)
        self.maybe_close: str = data.get("maybe_close", "")  # optional closing literal
        # Another block of this markerless family may directly follow.
        self.allows_consecutive_blocks: bool = data.get("several", False)
        # Markers that may follow a block; None: the markers of all families.
        self.following_markers: Markers | None = None
        self.data = data


class Markers:
    """Literals that begin a block, and the proper prefixes of these literals."""

    __slots__ = ("find", "firsts", "literals", "longest", "prefixes")

    def __init__(self, literals: Iterable[str]) -> None:
        words = sorted(set(literals), key=lambda word: (-len(word), word))
        self.literals = tuple(words)
        self.find = re.compile("|".join([re.escape(word) for word in words])) if words else _NEVER
        self.prefixes = frozenset(word[:end] for word in words for end in range(1, len(word)))
        self.longest = max((len(word) for word in words), default=0)
        firsts = sorted({word[0] for word in words})
        self.firsts = re.compile("[" + re.escape("".join(firsts)) + "]") if words else _NEVER

    def held(self, text: str, at: int) -> int:
        """Return the start of the longest suffix of `text[at:]` that is the beginning of a marker, but not a complete
        marker.

        Returns the text's length if there is no such suffix.
        """
        for match in self.firsts.finditer(text, max(at, len(text) - self.longest + 1)):
            if text[match.start() :] in self.prefixes:
                return match.start()
        return len(text)


class Settings:
    """A policy's settings for tool calls in text."""

    __slots__ = (
        "after",
        "apostrophes",
        "brackets",
        "by_marker",
        "emphasis",
        "fresh",
        "line_ends",
        "list_marks",
        "markers",
        "messages",
        "mode",
        "nesting",
        "next_turn",
        "parentheses",
        "quotation_marks",
        "quoting",
        "reasoning",
        "reasoning_tags",
        "sections",
        "table_marks",
        "token_prefixes",
        "trailing",
    )

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.mode: Literal["report", "promote"] = raw["mode"]
        self.after: Literal["end", "anywhere"] = raw["after"]
        self.reasoning: bool = raw["reasoning"]
        self.by_marker: dict[str, list[Family]] = {}
        families = [Family(data) for data in raw["families"]]
        for family in families:
            for opener in family.openers:
                self.by_marker.setdefault(opener, []).append(family)
        silent = {
            opener for opener, opened in self.by_marker.items() if all(family.tier == "markerless" for family in opened)
        }
        self.markers = Markers([opener for opener in self.by_marker if opener not in silent])
        # The markers that are searched for only until other text has been read.
        self.fresh = Markers(self.by_marker) if silent else self.markers
        # A marker that begins inside one of these markers does not open a block.
        loud = [opener for opener in self.by_marker if opener not in silent]
        for family in families:
            if family.allows_consecutive_blocks and not silent.isdisjoint(family.openers):
                family.following_markers = Markers([*loud, *family.openers])
        self.nesting = frozenset(one for one in loud for other in loud if other in one[1:])
        # The beginnings of markers that may follow prose, and of markers in which another marker begins.
        self.token_prefixes = Markers(
            one for one in loud if one in self.nesting or any(family.tier == "token" for family in self.by_marker[one])
        ).prefixes
        self.next_turn = frozenset[str](raw["next_turn"])
        self.trailing = Markers([*raw["end_of_turn"], *self.next_turn])
        self.reasoning_tags = _pairs(raw["reasoning_tags"])
        # Characters after which a marker that begins a line may come. The end of reasoning also begins a line.
        self.line_ends = frozenset(["\n", *(closer[-1] for _, closer in self.reasoning_tags)])
        self.messages: list[tuple[str, str | None, str]] = [
            (opener, role, closer) for opener, role, closer in raw["messages"]
        ]
        self.quoting: list[str] = list(raw["quoting"])
        self.sections = _pairs(raw["sections"])
        self.quotation_marks = _pairs(raw["quotation_marks"])
        self.parentheses = _pairs(raw["parentheses"])
        self.apostrophes: list[str] = list(raw["apostrophes"])
        self.emphasis: list[str] = list(raw["emphasis"])
        self.brackets: list[str] = list(raw["brackets"])
        self.list_marks: list[str] = list(raw["list_marks"])
        self.table_marks: list[str] = list(raw["table_marks"])


def _pairs(raw: Iterable[Iterable[str]]) -> list[tuple[str, str]]:
    return [(opener, closer) for opener, closer in raw]


@lru_cache(maxsize=16)
def load_settings(text: str) -> Settings:
    """Return the settings of a policy. All streams with the same policy share the settings."""
    return Settings(json.loads(text))
