"""Chat Completions chunks, and whole `chat.completion` bodies, to wire deltas.

Knows the members of a chunk beside its choices, and in which order everything counts: the choices, then usage, then the
error. Knows no parts, no identity of calls and no framing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.delta import Usage
from streamweld._pure.dialect.chat_calls import CallReader
from streamweld._pure.dialect.chat_choice import ChoiceReader, Chunk, Tools
from streamweld._pure.dialect.chat_error import ErrorFields, find_error, text_error
from streamweld._pure.dialect.chat_kinds import is_array, is_object
from streamweld._pure.dialect.chat_metadata import CHUNK_FIELDS, ChunkMembers, as_object, leftovers
from streamweld._pure.dialect.chat_notes import Notes
from streamweld._pure.dialect.chat_usage import read_usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.json_door import Path, Payload
    from streamweld._pure.out import Out

_CHOICE_CAP = 2**31 - 1  # where the limit is off: what a choice index can be at all


class ChatDecoder:
    """One stream's decoder."""

    def __init__(self, config: Mapping[str, Any], assembler: Assembler, out: Out) -> None:
        switches: Mapping[str, Any] = config["switches"]
        limits: Mapping[str, int | None] = config["limits"]
        self._assembler = assembler
        self._out = out
        self._tools = Tools(
            assembler=assembler,
            out=out,
            calls=CallReader(limits["max_tool_index"]),
            inline_reasoning=config["inline_reasoning"],
            drop_restated=switches["drop_restated_content"],
            max_text=limits["max_text_bytes"],
        )
        self._restarts: bool = switches["restart_on_new_stream_id"]
        self._merges: bool = switches["merge_choices"]
        self._max_choices = limits["max_choices"]
        self._choices: dict[int, ChoiceReader] = {}
        self._merged: dict[int, ChoiceReader] = {}
        self._members = ChunkMembers()
        self._started = False
        self._chunk_id: str | None = None

    @staticmethod
    def is_body(value: object) -> bool:
        """Whether a payload outside of any event is a whole answer, or the error in its place."""
        if not is_object(value):
            return False
        if value.get("object") in ("chat.completion", "error"):
            return True
        choices = value.get("choices")
        if not is_array(choices):
            return value.get("error") is not None
        return any(is_object(item) and "message" in item and item.get("delta") is None for item in choices)

    def decode(self, payload: Payload, raw: bytes, event: str, *, recovered: bool = False) -> None:
        """One payload that is JSON."""
        value = payload.value
        path: Path = ()
        if is_array(value) and value and is_object(value[0]) and "error" in value[0]:
            # Some gateways wrap a lone error object into an array.
            value, path = value[0], (0,)
        if not is_object(value):
            self._no_object(payload, raw, event)
            return
        chunk, chunk_path = _unwrapped(value, path)
        notes = Notes(self._out, payload, chunk_path)
        error = find_error(payload, value, path, event)
        if error is None and chunk is not value:
            error = find_error(payload, chunk, chunk_path, event)
        if "choices" in chunk or "usage" in chunk:
            news = {} if recovered else self._members.news(leftovers(payload, chunk_path, chunk, CHUNK_FIELDS))
            within = self._chunk(Chunk(payload, chunk_path, chunk, notes, news, recovered))
            error = error or within
        elif error is None:
            self._unknown(event, raw)
            return
        if notes.misshapen:
            self._unknown(event, raw)
        if error is not None:
            self._error(error, raw, notes)

    def text(self, text: str, raw: bytes) -> None:
        """A payload that is no JSON at all: an error in plain words."""
        self._error(text_error(text), raw, None)

    def flush(self) -> None:
        """The stream is about to close: hand over what was held back."""
        for choice in self._choices.values():
            choice.flush()

    def _no_object(self, payload: Payload, raw: bytes, event: str) -> None:
        notes = Notes(self._out, payload, ())
        if event == "error":
            value = payload.value
            self._error(text_error(value if isinstance(value, str) else payload.text), raw, notes)
            return
        notes.shape(())
        self._unknown(event, raw)

    def _error(self, error: ErrorFields, raw: bytes, notes: Notes | None) -> None:
        self.flush()
        if notes is not None:
            error = error.cleaned(notes.clean)
        self._assembler.upstream_error(error.code, error.kind, error.message, raw)

    def _unknown(self, event: str, raw: bytes) -> None:
        self._assembler.unknown(None if event == "message" else event, raw)

    def _chunk(self, chunk: Chunk) -> ErrorFields | None:
        value, path, notes = chunk.value, chunk.path, chunk.notes
        if not self._started:
            self._start(chunk)
        new_id = self._restarts and not chunk.recovered and self._id_changed(value)
        choices = value.get("choices")
        error: ErrorFields | None = None
        usages: list[Path] = []
        if is_array(choices):
            for position, item in enumerate(choices):
                here = (*path, "choices", position)
                if is_object(item):
                    within = self._choice(item, here, notes).read(chunk, item, here, new_id=new_id)
                    error = error or within
                    if item.get("usage") is not None:
                        usages.append((*here, "usage"))
                elif item is not None:
                    notes.shape(here)
        elif choices is not None:
            notes.shape((*path, "choices"))
        left = as_object(chunk.news)
        if left is not None:
            self._assembler.choice_metadata(min(self._choices, default=0), left)
        groq = value.get("x_groq")
        if is_object(groq) and groq.get("usage") is not None:
            usages.append((*path, "x_groq", "usage"))
        if value.get("usage") is not None:
            usages.append((*path, "usage"))
        if usages:
            self._usage(chunk.payload, usages, notes)
        return error

    def _start(self, chunk: Chunk) -> None:
        """The first chunk: what the response calls itself. A recovered one may not say so."""
        self._started = True
        value, clean = chunk.value, chunk.notes.clean
        identity, model, created = value.get("id"), value.get("model"), value.get("created")
        if type(created) is float and created.is_integer():
            created = int(created)
        self._assembler.started(
            clean(identity) if isinstance(identity, str) and identity and not chunk.recovered else None,
            clean(model) if isinstance(model, str) and model else None,
            created if type(created) is int and -(2**63) <= created < 2**63 else None,
            as_object(chunk.news),
        )
        chunk.news.clear()

    def _id_changed(self, value: Mapping[str, Any]) -> bool:
        """Whether this chunk belongs to another stream than the one before (AM10)."""
        identity = value.get("id")
        if not isinstance(identity, str) or not identity:
            return False
        changed = self._chunk_id is not None and identity != self._chunk_id
        self._chunk_id = identity
        return changed

    def _usage(self, payload: Payload, places: list[Path], notes: Notes) -> None:
        """The last object of the chunk that says something; placeholders say nothing."""
        for place in reversed(places):
            value = payload.value
            for step in place:
                value = value[step]
            if not is_object(value):
                notes.shape(place)
                continue
            numbers = read_usage(value)
            if numbers is not None:
                self._assembler.usage(Usage(**numbers, raw=payload.raw(*place)))
                return

    def _choice(self, item: Mapping[str, Any], path: Path, notes: Notes) -> ChoiceReader:
        """The choice that an entry speaks of; a missing index is 0 (E4), and so is one that cannot be an index."""
        index = item.get("index")
        if type(index) is float and index.is_integer():
            index = int(index)
        if index is None:
            index = 0
        elif type(index) is not int or not 0 <= index <= _CHOICE_CAP:
            notes.shape((*path, "index"))
            index = 0
        known = self._choices.get(index)
        if known is not None:
            return known
        if self._merges and self._choices:
            return self._merge(index, notes)
        limit = self._max_choices
        if limit is not None and (index >= limit or len(self._choices) >= limit):
            raise self._out.limit("max_choices", limit)
        known = self._choices[index] = ChoiceReader(index, self._tools)
        return known

    def _merge(self, index: int, notes: Notes) -> ChoiceReader:
        """AM11: the request had one choice, so every other index is the first one."""
        first = next(iter(self._choices.values()))
        limit = self._max_choices
        if index not in self._merged and (limit is None or len(self._merged) < limit):
            self._merged[index] = first
            notes.say("choices_merged", str(index))
        return first


def _unwrapped(value: dict[str, Any], path: Path) -> tuple[Mapping[str, Any], Path]:
    """The chunk itself, where a relay put it into an envelope (E17)."""
    inner = value.get("data")
    if "choices" not in value and is_object(inner) and "choices" in inner:
        return inner, (*path, "data")
    return value, path
