"""One choice of a chat stream: what a delta, a full message and a finish reason say, in the order in which it counts.

Knows every member of a choice. Knows no chunk-level member but the metadata that the first event carries along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.chat_content import File, Text, image_files, read_content
from streamweld._pure.dialect.chat_error import read_choice_error
from streamweld._pure.dialect.chat_kinds import is_array
from streamweld._pure.dialect.chat_metadata import CHOICE_FIELDS, DELTA_FIELDS, Carry, as_object, leftovers
from streamweld._pure.dialect.chat_reasoning import MEMBERS as REASONING_MEMBERS
from streamweld._pure.dialect.chat_reasoning import ReasoningReader, details_attributes, whole_reasoning
from streamweld._pure.dialect.think import ThinkSplitter, no_metadata, split_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.delta import Fragment
    from streamweld._pure.dialect.chat_calls import CallReader
    from streamweld._pure.dialect.chat_content import Piece
    from streamweld._pure.dialect.chat_error import ErrorFields
    from streamweld._pure.dialect.chat_metadata import Raw
    from streamweld._pure.dialect.chat_notes import Notes
    from streamweld._pure.dialect.think import Take
    from streamweld._pure.json_door import Path, Payload
    from streamweld._pure.out import Out


@dataclass(slots=True)
class Chunk:
    """One chunk object under way."""

    payload: Payload
    path: Path
    value: Mapping[str, Any]
    notes: Notes
    news: Raw  # chunk-level members that no event has carried yet
    recovered: bool  # from behind a broken document: only text, finish, usage and errors count


@dataclass(slots=True, frozen=True)
class Tools:
    """What every choice of a stream works with."""

    assembler: Assembler
    out: Out
    calls: CallReader
    inline_reasoning: bool
    drop_restated: bool
    max_text: int | None


class ChoiceReader:
    """What the decoder remembers of one choice."""

    __slots__ = ("_assembler", "_audio", "_audio_size", "_reasoning", "_spoke", "_think", "_tools", "index")

    def __init__(self, index: int, tools: Tools) -> None:
        self.index = index
        self._tools = tools
        self._assembler = tools.assembler
        self._audio: list[str] = []
        self._audio_size = 0
        self._begin()

    def _begin(self) -> None:
        self._reasoning = ReasoningReader()
        self._think = (
            ThinkSplitter(self.index, self._assembler, self._tools.out.diagnose)
            if self._tools.inline_reasoning
            else None
        )
        self._spoke = False

    def read(self, chunk: Chunk, item: dict[str, Any], path: Path, *, new_id: bool) -> ErrorFields | None:
        """One entry of a chunk's `choices`; gives back the error that stands in it."""
        notes = chunk.notes
        delta = notes.an_object(item, path, "delta")
        message = notes.an_object(item, path, "message")
        reason = _finish_reason(item, path, notes)
        carry = Carry(chunk.news, {} if chunk.recovered else leftovers(chunk.payload, path, item, CHOICE_FIELDS))
        if delta:
            if new_id and self._spoke and delta.get("role") is not None:
                self._assembler.restart(self.index)
                self._begin()
            self._delta(chunk, delta, (*path, "delta"), carry, final=reason is not None)
        if message and not chunk.recovered and _is_whole(chunk, item, path, final=reason is not None):
            self._message(chunk, message, (*path, "message"), carry)
        left = as_object(carry.members)
        if left is not None:
            self._assembler.choice_metadata(self.index, left)
        if reason is not None:
            if self._think is not None:
                self._think.flush()
            self._assembler.finish(self.index, notes.clean(reason))
        return read_choice_error(chunk.payload, item, path)

    def flush(self) -> None:
        """The stream is about to close: hand over what was held back."""
        if self._think is not None:
            self._think.end()
        if self._audio:
            self._assembler.choice_metadata(self.index, f'{{"audio":[{",".join(self._audio)}]}}')
            self._audio.clear()

    def _delta(self, chunk: Chunk, delta: dict[str, Any], path: Path, carry: Carry, *, final: bool) -> None:
        payload, notes = chunk.payload, chunk.notes
        content = delta.get("content")
        if chunk.recovered:
            if content and isinstance(content, str):
                self._text(content, no_metadata)
            return
        extra = carry.members
        if not DELTA_FIELDS.issuperset(delta):
            extra |= leftovers(payload, path, delta, DELTA_FIELDS)
        reasoning = ""
        if not REASONING_MEMBERS.isdisjoint(delta):
            reasoning = self._reasoning.read(payload, delta, path, extra, notes)
        pieces: list[Piece] = []
        if isinstance(content, str):
            if content:
                pieces.append(Text("text", content))
        elif content is not None:
            pieces = read_content(payload, content, (*path, "content"), extra, notes)
        fragments = self._fragments(payload, delta, path, notes)
        if pieces and (final or fragments) and self._restated(pieces):
            pieces.clear()
        if reasoning:
            self._spoke = True
            if self._think is not None:
                self._think.field(reasoning)
            self._assembler.reasoning(self.index, "raw", reasoning, carry.take())
        self._details(payload, delta, path)
        for piece in pieces:
            self._piece(piece, carry.take)
        self._attachments(payload, delta, path, notes, carry.take)
        refusal = notes.a_text(delta, path, "refusal")
        if refusal:
            self._spoke = True
            self._assembler.refusal(self.index, refusal, carry.take())
        if fragments:
            self._spoke = True
            if self._think is not None:
                self._think.flush()
            for fragment in fragments:
                self._assembler.call(self.index, fragment)

    def _message(self, chunk: Chunk, message: dict[str, Any], path: Path, carry: Carry) -> None:
        """A full message: reconciled with what was streamed, never appended."""
        payload, notes = chunk.payload, chunk.notes
        extra = carry.members
        extra |= leftovers(payload, path, message, DELTA_FIELDS)
        if self._think is not None:
            self._think.end()
        content = message.get("content")
        pieces: list[Piece] = []
        if isinstance(content, str):
            pieces.append(Text("text", content))
        elif content is not None:
            pieces = read_content(payload, content, (*path, "content"), extra, notes)
        text = _joined(pieces, "text")
        reasoning = whole_reasoning(message) or _joined(pieces, "reasoning")
        if self._tools.inline_reasoning and text:
            inline, text = split_whole(text)
            reasoning = reasoning or inline
        refusal = notes.a_text(message, path, "refusal") or _joined(pieces, "refusal")
        self._spoke = True
        fragments = self._fragments(payload, message, path, notes)
        self._assembler.message(self.index, text or None, reasoning or None, refusal or None, fragments)
        self._details(payload, message, path)
        for piece in pieces:
            if isinstance(piece, File):
                self._piece(piece, no_metadata)
        self._attachments(payload, message, path, notes, no_metadata)

    def _fragments(self, payload: Payload, holder: Mapping[str, Any], path: Path, notes: Notes) -> list[Fragment]:
        fragments: list[Fragment] = []
        calls, legacy = holder.get("tool_calls"), holder.get("function_call")
        if calls is not None:
            fragments = self._tools.calls.tool_calls(payload, calls, (*path, "tool_calls"), notes)
        if legacy is not None:
            fragments += self._tools.calls.function_call(payload, legacy, (*path, "function_call"), notes)
        return fragments

    def _piece(self, piece: Piece, take: Take) -> None:
        self._spoke = True
        if isinstance(piece, File):
            own = piece.metadata
            self._assembler.file(self.index, piece.media_type, piece.data, piece.url, take() if own is None else own)
        elif piece.kind == "text":
            self._text(piece.text, take)
        elif piece.kind == "reasoning":
            self._assembler.reasoning(self.index, "raw", piece.text, take())
        else:
            self._assembler.refusal(self.index, piece.text, take())

    def _text(self, text: str, take: Take) -> None:
        """A piece of content; metadata is taken only if an event comes of it."""
        self._spoke = True
        if self._think is not None:
            self._think.feed(text, take)
        else:
            self._assembler.text(self.index, text, take())

    def _restated(self, pieces: list[Piece]) -> bool:
        """AM9: the closing chunk says all of the text again."""
        piece = pieces[0]
        if not self._tools.drop_restated or len(pieces) != 1 or not isinstance(piece, Text) or piece.kind != "text":
            return False
        if not self._assembler.restates(self.index, piece.text):
            return False
        self._tools.out.diagnose("content_restated")
        return True

    def _details(self, payload: Payload, holder: Mapping[str, Any], path: Path) -> None:
        """Signatures and encrypted reasoning, and every entry as sent."""
        details = holder.get("reasoning_details")
        raw = payload.raw(*path, "reasoning_details") if details else None
        if raw is None or raw[0] not in "[{":
            return
        signature, encrypted = details_attributes(details)
        self._assembler.reasoning_attributes(self.index, signature, encrypted, raw if raw[0] == "[" else f"[{raw}]")

    def _attachments(self, payload: Payload, holder: Mapping[str, Any], path: Path, notes: Notes, take: Take) -> None:
        annotations = holder.get("annotations")
        if is_array(annotations):
            if annotations:
                self._assembler.annotations(self.index, payload.raw(*path, "annotations") or "[]")
        elif annotations is not None:
            notes.shape((*path, "annotations"))
        images = holder.get("images")
        if images is not None:
            for image in image_files(payload, images, (*path, "images"), notes):
                self._piece(image, take)
        if holder.get("audio") is not None:
            self._hear(payload.raw(*path, "audio") or "null")

    def _hear(self, audio: str) -> None:
        """Audio comes in pieces; all of them go to the choice's last event."""
        limit = self._tools.max_text
        self._audio_size += len(audio.encode())
        if limit is not None and self._audio_size > limit:
            raise self._tools.out.limit("max_text_bytes", limit)
        self._audio.append(audio)


def _finish_reason(item: Mapping[str, Any], path: Path, notes: Notes) -> str | None:
    """The reason in either spelling; a blank one says nothing."""
    for key in ("finish_reason", "finishReason"):
        reason = notes.a_text(item, path, key)
        if reason.strip():
            return reason
    return None


def _is_whole(chunk: Chunk, item: Mapping[str, Any], path: Path, *, final: bool) -> bool:
    """Whether a `message` is the whole message: some gateways mirror every delta, or all deltas so far, in it."""
    if item.get("delta") is None or chunk.value.get("object") == "chat.completion":
        return True
    return final and chunk.payload.raw(*path, "message") != chunk.payload.raw(*path, "delta")


def _joined(pieces: list[Piece], kind: str) -> str:
    return "".join([piece.text for piece in pieces if isinstance(piece, Text) and piece.kind == kind])
