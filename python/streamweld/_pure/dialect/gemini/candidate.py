"""Decodes one candidate of a Gemini stream: its parts in order, its sources, its metadata, and its finish reason.

Parts have no address on the wire. Consecutive text parts of the same kind are joined into one part, which ends at a
part of another kind or at a thought signature.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.gemini.calls import CallReader
from streamweld._pure.dialect.gemini.sources import SourceReader
from streamweld._pure.dialect.gemini.spec_tables import CANDIDATE_FIELDS, CONTENT_FIELDS, PART_FIELDS, a_reason
from streamweld._pure.dialect.gemini.tools import KINDS, read_tool
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.members import Raw, as_object, leftovers
from streamweld._pure.model.delta import Address
from streamweld._pure.model.finish_words import is_alias, meaning
from streamweld._pure.model.unmodelled import CandidatePart

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.assemble.part.text import Channel
    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.delta import ItemKind
    from streamweld._pure.model.output import Output

_SIGNATURE = "thoughtSignature"
_WRITTEN = frozenset({"content", "finishReason", "index"})  # members of a candidate that the encoder writes itself
_EMPTY = frozenset({"{}", "[]", "null"})
_CUT = frozenset({"length", "content_filter", "error"})


class Candidate:
    """Decodes the elements of `candidates` that belong to one candidate."""

    __slots__ = (
        "_assembler",
        "_calls",
        "_open",
        "_out",
        "_part_count",
        "_sources",
        "_finish_reported",
        "index",
        "members",
        "ran_on",
        "reason",
    )

    def __init__(self, index: int, assembler: Assembler, out: Output) -> None:
        self.index = index
        self._assembler = assembler
        self._out = out
        self._calls = CallReader(index, assembler, out)
        self._sources = SourceReader(index, assembler)
        self._part_count = 0  # number of parts that have arrived
        self._open: tuple[ItemKind, Address] | None = None  # kind and address of the open text part
        self._finish_reported = False
        self.members: Raw = {}  # members of the last element that no event contains
        self.reason: str | None = None
        self.ran_on = False  # text or another part arrived after a finish reason
        # Open the choice now, so that it is closed even if it has no output.
        assembler.text(index, "", None)

    def read(self, payload: Payload, value: dict[str, Any], path: Path, notes: Anomalies, *, recovered: bool) -> None:
        """Decode one element of a chunk's `candidates`. `recovered`: whether the chunk follows a broken document."""
        reason = a_reason(value, path, "finishReason", notes)
        self._calls.failed = self._calls.failed or (reason is not None and meaning("gemini", reason) == "error")
        content = notes.an_object(value, path, "content")
        extra = leftovers(payload, path, value, CANDIDATE_FIELDS)
        carry: Raw = {}
        if value.get("logprobsResult") is not None:
            # Log probabilities describe the tokens in this chunk, so they are attached to the event that contains these
            # tokens.
            carry["logprobsResult"] = payload.raw(*path, "logprobsResult") or "null"
        if self._out.on_unmodelled is not None:
            self.members = other_members(payload, value, path, _WRITTEN)
        if content is not None:
            self._content(payload, content, (*path, "content"), carry, notes, recovered=recovered)
            of_content = leftovers(payload, (*path, "content"), content, CONTENT_FIELDS)
            if of_content:
                self.members["content"] = as_object(of_content) or "{}"
            extra |= of_content
        if not recovered:
            self._sources.read(payload, value, path, notes)
        metadata = as_object({key: raw for key, raw in (carry | extra).items() if raw not in _EMPTY})
        if metadata is not None:
            self._assembler.choice_metadata(self.index, metadata)
        if reason is not None:
            self.take(reason)

    def take(self, reason: str) -> None:
        """Store a finish reason.

        The last reason is used, unless only an earlier reason means that the response was truncated, filtered, or
        failed.
        """
        if self.reason is not None and reason != self.reason:
            self._out.diagnose("finish_repeated", detail=reason)
            if meaning("gemini", self.reason) in _CUT and meaning("gemini", reason) not in _CUT:
                return
        if is_alias("gemini", reason):
            self._out.mark_misread("finish_alias")  # the assembler receives the reason only at the end of the input
        self.reason = reason

    def finish(self) -> None:
        """Close the open text part and emit the finish reason, unless there is none or it has already been emitted.

        A finish reason that means success also ends the open calls.
        """
        if self._finish_reported:
            return
        self._finish_reported = True
        if self.reason is not None:
            if meaning("gemini", self.reason) == "natural":
                self._calls.finish()
            else:
                self._calls.end_waiting()
            self._close()
            self._assembler.finish(self.index, self.reason)

    def _content(
        self,
        payload: Payload,
        content: dict[str, Any],
        path: Path,
        carry: Raw,
        notes: Anomalies,
        *,
        recovered: bool,
    ) -> None:
        parts = content.get("parts")
        path = (*path, "parts")
        if not is_array(parts) and not is_object(parts):
            if parts is not None:
                notes.shape(path)
            return
        if is_object(parts):
            notes.mark_misread("no_list")  # clients expect a list of parts
        # Some gateways send a single part without a list.
        listed = enumerate(parts) if is_array(parts) else [(None, parts)]
        for position, part in listed:
            here = path if position is None else (*path, position)
            if is_object(part):
                self._part(payload, part, here, carry, notes, recovered=recovered)
            elif part is not None:
                notes.shape(here)

    def _part(
        self, payload: Payload, part: dict[str, Any], path: Path, carry: Raw, notes: Anomalies, *, recovered: bool
    ) -> None:
        extra = leftovers(payload, path, part, PART_FIELDS)
        kinds = [key for key in part if (key in KINDS or key == "functionCall") and part[key] is not None]
        if not kinds and extra and part.get("text") is None and not recovered:
            self._keep(payload, path)
            return
        if (not kinds or part.get("text")) and not (recovered and _is_thought(part)):
            self._text(part, path, extra if not kinds else {}, carry, notes)
        if recovered or not kinds:
            return
        if part.get("text"):
            notes.mark_misread("other_member")  # @ai-sdk/google reads only one value of a part
        self.ran_on = self.ran_on or self.reason is not None
        self._close()
        if part.get(_SIGNATURE) is not None:
            extra[_SIGNATURE] = payload.raw(*path, _SIGNATURE) or "null"
        if _is_thought(part):
            extra["thought"] = "true"
        is_kept = False
        for kind in kinds:
            if kind == "functionCall":
                self._calls.read(payload, part, path, self._next_position(), extra, notes)
            else:
                self._calls.finish()
                if not is_kept:
                    self._keep_part(payload, part, path)
                    is_kept = True
                read_tool(
                    self._assembler, self.index, self._next_position(), kind, payload, part, path, dict(extra), notes
                )

    def _keep_part(self, payload: Payload, part: Mapping[str, Any], path: Path) -> None:
        """Pass on, for repair, the members of a part for which the encoder writes no part of its own."""
        if self._out.on_unmodelled is not None:
            own = {"functionCall", "text"} if part.get("text") else {"functionCall"}
            members = {name: raw for name, raw in payload.members(*path).items() if name not in own}
            self._out.keep(CandidatePart(self.index, as_object(members) or "{}"))

    def _keep(self, payload: Payload, path: Path) -> None:
        """Emit a part of an unknown kind unchanged. A client must send the signature back in a later turn."""
        self._close()
        self._calls.finish()
        self._out.keep(CandidatePart(self.index, payload.raw(*path) or "null"))
        self._assembler.kept_unknown(self.index, None, (payload.raw(*path) or "null").encode())

    # Text

    def _text(self, part: Mapping[str, Any], path: Path, extra: Raw, carry: Raw, notes: Anomalies) -> None:
        text = notes.a_text(part, path, "text")
        signature = notes.clean(notes.a_text(part, path, _SIGNATURE))
        if not text and not signature and not extra:
            return
        kind: ItemKind = "reasoning" if _is_thought(part) else "message"
        if text:
            self.ran_on = self.ran_on or self.reason is not None
        if self._open is None or self._open[0] != kind:
            self._close()
            self._calls.finish()
            self._open = kind, Address(index=self._next_position())
            if not text:
                self._opened(kind, self._open[1])
        address = self._open[1]
        if text:
            self._assembler.part_text(self.index, kind, address, _channel(kind), "summary", text, as_object(carry))
            carry.clear()
        if kind == "reasoning":
            if signature or extra:
                self._assembler.part_attributes(
                    self.index, kind, address, "reasoning", None, signature or None, None, as_object(extra)
                )
        elif signature or extra:
            if signature:
                extra[_SIGNATURE] = json.dumps(signature, ensure_ascii=False)
            self._assembler.part_attributes(self.index, kind, address, "text", None, None, None, as_object(extra))
        if signature:
            # The signature covers only the text before it, so that text must not be joined with later text in the next
            # turn.
            self._close()

    def _opened(self, kind: ItemKind, address: Address) -> None:
        """Open a part that has only a signature and no text, because clients must send the signature back in a later
        turn.
        """
        self._assembler.part_opened(self.index, kind, address, _channel(kind), "summary", None, None)

    def _close(self) -> None:
        if self._open is not None:
            kind, address = self._open
            self._open = None
            self._assembler.item_closed(self.index, kind, address, None, None)

    def _next_position(self) -> int:
        position = self._part_count
        self._part_count = position + 1
        return position


def other_members(payload: Payload, value: Mapping[str, Any], path: Path, written: AbstractSet[str]) -> Raw:
    """Return the members that are not in `written` and have a value that is not empty."""
    members = payload.members(*path)
    return {name: raw for name, raw in members.items() if name not in written and value[name]}


def _is_thought(part: Mapping[str, Any]) -> bool:
    """Return whether a part is a thought. Some gateways send the flag as text, and google-genai converts this text."""
    flag = part.get("thought")
    return flag is True or (isinstance(flag, str) and flag.lower() == "true")


def _channel(kind: ItemKind) -> Channel:
    return "reasoning" if kind == "reasoning" else "text"
