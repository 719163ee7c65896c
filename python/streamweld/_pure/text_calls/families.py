"""The families that a policy turned on, as typed fields; read once per stream from the config."""

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
    """One form of text call. `data` holds what its shape reads."""

    __slots__ = ("data", "maybe_close", "name", "openers", "shape", "tier", "unread")

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.name: str = data["family"]
        self.tier: Tier = data["tier"]
        self.shape: str = data["shape"]
        self.openers: list[str] = list(data["open"])
        self.unread: int = data.get("unread", 0)
        self.maybe_close: str = data.get("maybe_close", "")  # a closer that may be missing
        self.data = data


class Markers:
    """The literals that may begin a block, and what may be the beginning of one."""

    __slots__ = ("find", "firsts", "longest", "prefixes")

    def __init__(self, literals: Iterable[str]) -> None:
        words = sorted(set(literals), key=lambda word: (-len(word), word))
        self.find = re.compile("|".join([re.escape(word) for word in words])) if words else _NEVER
        self.prefixes = frozenset(word[:end] for word in words for end in range(1, len(word)))
        self.longest = max((len(word) for word in words), default=0)
        firsts = sorted({word[0] for word in words})
        self.firsts = re.compile("[" + re.escape("".join(firsts)) + "]") if words else _NEVER

    def held(self, text: str, at: int) -> int:
        """Where the longest end of `text[at:]` begins that is a proper prefix of a marker; else its length."""
        for match in self.firsts.finditer(text, max(at, len(text) - self.longest + 1)):
            if text[match.start() :] in self.prefixes:
                return match.start()
        return len(text)


class Settings:
    """What the stage was made with."""

    __slots__ = (
        "after",
        "by_marker",
        "fresh",
        "markers",
        "mode",
        "nesting",
        "quoting",
        "reasoning",
        "reasoning_tags",
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
        self.fresh = Markers(self.by_marker) if silent else self.markers  # while nothing was said yet
        # A marker inside of one of these opens nothing, wherever that stands.
        loud = [opener for opener in self.by_marker if opener not in silent]
        self.nesting = frozenset(one for one in loud for other in loud if other in one[1:])
        self.trailing = Markers(raw["end_of_turn"])
        self.reasoning_tags: list[tuple[str, str]] = [(opener, closer) for opener, closer in raw["reasoning_tags"]]
        self.quoting: list[str] = list(raw["quoting"])


@lru_cache(maxsize=16)
def load_settings(text: str) -> Settings:
    """The settings of a policy; the same for all of its streams."""
    return Settings(json.loads(text))
