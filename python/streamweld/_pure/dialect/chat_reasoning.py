"""Reads the reasoning of a delta or a message: four fields that gateways use, often two at once, some cumulative.

Knows the fields and their order; gives text that is new, and what must stay reachable. Knows no parts and no events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.chat_kinds import is_array, is_object
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.dialect.chat_metadata import Raw
    from streamweld._pure.dialect.chat_notes import Notes
    from streamweld._pure.json_door import Path, Payload

FIELDS: tuple[str, ...] = DIALECTS["chat"]["reasoning_fields"]
MEMBERS = frozenset((*FIELDS, "reasoning_details"))

# From here on a text that begins with all of the text so far is that text again; "a" before "and" is real.
_CUMULATIVE_FROM = 4
_MAX_INDEXES = 64


class _SoFar:
    """The text so far of one channel; joined only when it could be repeated, so growing it stays linear."""

    __slots__ = ("length", "_pieces")

    def __init__(self) -> None:
        self.length = 0
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        self.length += len(text)
        self._pieces.append(text)

    def repeated_by(self, text: str) -> bool:
        if not _CUMULATIVE_FROM <= self.length <= len(text):
            return False
        whole = "".join(self._pieces)
        self._pieces = [whole]
        return text.startswith(whole)


class ReasoningReader:
    """The reasoning fields of one choice."""

    __slots__ = ("_details", "_plain", "_said_repeated")

    def __init__(self) -> None:
        self._plain = _SoFar()
        self._details: dict[int, _SoFar] = {}
        self._said_repeated = False

    def read(self, payload: Payload, delta: Mapping[str, Any], path: Path, extra: Raw, notes: Notes) -> str:
        """The new reasoning text; a second field with another text goes to `extra`."""
        text = self._field(payload, delta, path, extra, notes)
        details = delta.get("reasoning_details")
        if details is None:
            return text
        entries = _entries(details, (*path, "reasoning_details"), notes)
        if text:
            # The same text in other clothes (R2).
            if any(_entry_text(entry) for entry in entries):
                self._repeated(notes)
            return text
        return "".join([self._novel(entry) for entry in entries])

    def _field(self, payload: Payload, delta: Mapping[str, Any], path: Path, extra: Raw, notes: Notes) -> str:
        chosen = ""
        for field in FIELDS:
            text = delta.get(field)
            if not text:
                if text is not None and text != "":
                    notes.shape((*path, field))
            elif not isinstance(text, str):
                notes.shape((*path, field))
            elif not chosen:
                chosen = text
            elif text != chosen:
                extra[field] = payload.raw(*path, field) or "null"
            else:
                self._repeated(notes)
        if chosen:
            self._plain.add(chosen)
        return chosen

    def _repeated(self, notes: Notes) -> None:
        """Said once a choice: a gateway that does it does it in every chunk."""
        if not self._said_repeated:
            self._said_repeated = True
            notes.say("reasoning_repeated")

    def _novel(self, entry: Mapping[str, Any]) -> str:
        """What an entry of `reasoning_details` adds: all of it, or what follows the text so far (R3, R4)."""
        text = _entry_text(entry)
        if not text:
            return ""
        index = entry.get("index")
        key = index if type(index) is int else 0
        so_far = self._details.get(key)
        if so_far is not None:
            new = text[so_far.length :] if so_far.repeated_by(text) else text
            so_far.add(new)
            return new
        # The first entry may repeat what came in a plain field.
        if len(self._details) < _MAX_INDEXES:
            so_far = self._details[key] = _SoFar()
            so_far.add(text)
        return text[self._plain.length :] if self._plain.repeated_by(text) else text


def whole_reasoning(message: Mapping[str, Any]) -> str:
    """The reasoning of a full message: the first field that has any."""
    for field in FIELDS:
        text: object = message.get(field)
        if text and isinstance(text, str):
            return text
    details: object = message.get("reasoning_details")
    entries = details if is_array(details) else [details]
    return "".join([_entry_text(entry) for entry in entries if is_object(entry)])


def details_attributes(details: object) -> tuple[str | None, str | None]:
    """Signature and encrypted content, the last of each."""
    signature: str | None = None
    encrypted: str | None = None
    for entry in details if is_array(details) else [details]:
        if not is_object(entry):
            continue
        found = entry.get("signature")
        if found and isinstance(found, str):
            signature = found
        found = entry.get("data")
        if found and isinstance(found, str):
            encrypted = found
    return signature, encrypted


def _entries(details: object, path: Path, notes: Notes) -> list[dict[str, Any]]:
    if is_object(details):
        return [details]
    if not is_array(details):
        notes.shape(path)
        return []
    entries: list[dict[str, Any]] = []
    for position, entry in enumerate(details):
        if is_object(entry):
            entries.append(entry)
        elif entry is not None:
            notes.shape((*path, position))
    return entries


def _entry_text(entry: Mapping[str, Any]) -> str:
    for key in ("text", "summary"):
        text = entry.get(key)
        if text and isinstance(text, str):
            return text
    return ""
