"""Generate tool call ids that a target accepts.

The ids are deterministic. Different source ids get different ids, and a second conversion leaves the ids unchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.encode.common.tool_ids import source_tool_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["IdForm", "Minter", "form_of", "leading", "qualified"]

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SURROGATES: Final = "\ud800-\udfff"  # lone surrogates, which cannot be encoded as UTF-8
_TAIL: Final = 10  # number of hash characters at the end of a changed id: 59 bits


@dataclass(frozen=True, slots=True)
class IdForm:
    """The required form of an id.

    `chars`: the allowed characters, written as a character class of a regular expression; None allows every character
    that UTF-8 can encode. `low`, `high`: the allowed lengths. `carriers`: substrings that identify ids with embedded
    provider data. `banned`: ids that are not allowed.
    """

    chars: str | None = None
    low: int = 1
    high: int | None = None
    carriers: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()
    _whole: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_whole", _of_length(self.chars, self.low, self.high))

    def fits(self, text: str) -> bool:
        """Return whether an id may remain unchanged.

        An id with embedded provider data may remain unchanged unless it is banned.
        """
        if text in self.banned:
            return False
        return self._whole.fullmatch(text) is not None or self.carries(text)

    def fit(self, texts: Sequence[str]) -> bool:
        """Return whether all of these ids may stay unchanged."""
        whole, banned = self._whole.fullmatch, self.banned
        odd = [text for text in texts if whole(text) is None or text in banned]
        return all(map(self.fits, odd))

    def carries(self, text: str) -> bool:
        """Return whether the id contains data that its provider must receive back unchanged."""
        return any(mark in text for mark in self.carriers)

    def made(self, text: str, salt: int = 0, whole: str | None = None) -> str:
        """Return an id of this form, built from the allowed characters in the text and a hash.

        The hash covers `whole` if it is given, otherwise `text`; a different `salt` gives a different id.
        """
        digest = int.from_bytes(sha256(f"{whole or text}\0{salt}".encode("utf-8", "surrogatepass")).digest(), "big")
        high = self.high or max(len(text) + 1 + _TAIL, self.low)
        size = min(max(_TAIL, self.low), high)
        tail = ""
        while len(tail) < size:
            digest, digit = divmod(digest, 62)
            tail += _DIGITS[digit]
        room = high - size - 1
        if room < 1 or (self.chars is not None and not _only(self.chars).fullmatch("_")):
            return tail
        stem = _others(self.chars).sub("_", text)
        stem = stem[:room].rstrip("_")
        return f"{stem}_{tail}" if stem else tail


@cache
def _of_length(chars: str | None, low: int, high: int | None) -> re.Pattern[str]:
    """Return a pattern for ids with these characters and lengths."""
    one = f"[^{_SURROGATES}]" if chars is None else f"[{chars}]"
    return re.compile(f"{one}{{{low},{'' if high is None else high}}}", re.DOTALL)


@cache
def _only(chars: str) -> re.Pattern[str]:
    return re.compile(f"[{chars}]*")


@cache
def _others(chars: str | None) -> re.Pattern[str]:
    return re.compile(f"[{_SURROGATES}]" if chars is None else f"[^{chars}]")


def form_of(fact: Mapping[str, Any]) -> IdForm:
    """Return the form that a profile's constraint `tool_id` or `tool_name` requires."""
    get = fact.get
    return _form(get("chars"), get("min", 1), get("max"), tuple(get("carriers", ())), tuple(get("not", ())))


@cache
def _form(chars: str | None, low: int, high: int | None, carriers: tuple[str, ...], banned: tuple[str, ...]) -> IdForm:
    return IdForm(chars, low, high, carriers, banned)


def leading(start: re.Pattern[str] | None) -> str:
    """Return what to put before a name whose first character does not match `start`."""
    return "_" if start is None or start.match("_") is not None else "tool_"


def qualified(namespace: str, name: str) -> str:
    """Return the name of a tool that includes its namespace.

    `functions` is the namespace of tools without one, as is the tool's own name, which OpenAI's tool search sets.

    >>> qualified("mcp__browser", "navigate")
    'mcp__browser__navigate'
    """
    if namespace in ("functions", name):
        return name
    return namespace + name if namespace.endswith("__") else f"{namespace}__{name}"


@dataclass(slots=True, eq=False)
class Minter:
    """Assigns the ids of one history.

    `reserved`: source ids that already conform; no generated id may equal one of them.
    """

    form: IdForm
    reserved: frozenset[str]
    used: set[str] = field(default_factory=set[str])

    def first(self, call_id: str) -> str:
        """Return the target id of the first call with this source id.

        An id that a converter renamed for its client is restored to its original form.
        """
        call_id = self._restored(call_id)
        if self.form.carries(call_id) or (self.form.fits(call_id) and call_id not in self.used):
            self.used.add(call_id)
            return call_id
        return self._made(call_id)

    def _restored(self, call_id: str) -> str:
        old = source_tool_id(call_id)
        is_free = old not in self.used and old not in self.reserved and self.form.fits(old)
        return old if is_free else call_id

    def numbered(self, call_id: str, nth: int) -> str:
        """Return the target id of the n-th call with this source id, for targets that require unique ids."""
        plain = f"{call_id}__{nth}"
        if self.form.fits(plain) and plain not in self.used and plain not in self.reserved:
            self.used.add(plain)
            return plain
        return self._made(plain)

    def nameless(self, sent: str) -> str:
        """Return an id for a call that has none. The id depends on the content of the call, not on its position."""
        return self._made("call", sent)

    def _made(self, text: str, whole: str | None = None) -> str:
        salt = 0
        while True:
            made = self.form.made(text, salt, whole)
            if made not in self.used and made not in self.reserved:
                self.used.add(made)
                return made
            salt += 1
