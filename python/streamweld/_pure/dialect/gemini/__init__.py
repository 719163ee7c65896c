"""Decodes chunks from streamGenerateContent, and complete GenerateContentResponse bodies, into wire deltas.

The members of a chunk are decoded in the order in which they take effect. The module `candidate` decodes the
candidates. Gemini has no terminal marker, so this module determines when the response is complete (see the explanation
in `_spec/dialects.json`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.anomalies import Anomalies
from streamweld._pure.dialect.gemini.candidate import Candidate, other_members
from streamweld._pure.dialect.gemini.proto_names import in_json_names
from streamweld._pure.dialect.gemini.spec_tables import (
    ENVELOPE_FIELDS,
    a_reason,
    a_word,
    is_read,
    is_reason,
    read_usage,
    seconds,
)
from streamweld._pure.dialect.upstream_error import (
    ErrorFields,
    is_bare,
    is_blank_error,
    read_error,
    reports_failure,
    reports_success,
    text_error,
)
from streamweld._pure.json.kinds import integer, is_array, is_object
from streamweld._pure.json.members import Raw, as_object, leftovers, may_remember
from streamweld._pure.json.scanner import parse
from streamweld._pure.model.unmodelled import ChunkMembers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.output import Output

# Members of a chunk that the encoder writes itself.
_WRITTEN = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId", "error"})
_USED = frozenset({"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"})
_PROTO_USED = frozenset({"candidates", "prompt_feedback", "usage_metadata", "model_version", "response_id"})
_CANDIDATE_CAP = 2**31 - 1  # maximum index of a candidate


class GeminiDecoder:
    """Decodes the payloads of one stream."""

    __slots__ = ("_assembler", "_candidates", "_lowest", "_max", "_members", "_out", "_started", "_unfinished", "ended")

    def __init__(self, config: Mapping[str, Any], assembler: Assembler, out: Output) -> None:
        limits: Mapping[str, int | None] = config["limits"]
        self._assembler = assembler
        self._out = out
        self._max = limits["max_choices"]
        self._candidates: dict[int, Candidate] = {}
        self._lowest: int | None = None  # the lowest index of any candidate that has arrived
        self._unfinished: list[Candidate] = []  # candidates; finished candidates are removed from the end
        self._members: Raw = {}  # unknown members of earlier chunks
        self._started = False
        self.ended = False

    @staticmethod
    def is_body(value: object) -> bool:
        """Return whether a payload outside an event stream is a complete response body, or an error in place of one."""
        return is_object(value) and (_ends(value) or _has_error(value, used=_is_chunk(value)) or _reports_error(value))

    @staticmethod
    def may_be_json_line(value: object) -> bool:
        """Return whether a document that looks like a complete body could also be the last chunk of a JSON Lines
        stream.

        Early Gemini models put a finish reason into every chunk.
        """
        return is_object(value) and not _has_error(value, used=_is_chunk(value)) and not _reports_error(value)

    @staticmethod
    def is_error_body(value: object) -> bool:
        """Return whether the body of a response reports an error.

        Called for a body that is not an event stream and matches no dialect.
        """
        if not is_object(value):
            return False
        return _reports_error(value) or is_bare(value)

    @staticmethod
    def has_usable_data(value: object) -> bool:
        """Return whether a document that follows a broken document is a chunk or an error."""
        return is_object(value) and (_is_chunk(value) or value.get("error") is not None)

    @staticmethod
    def is_without_output(value: object) -> bool:
        """Return whether the value is a chunk that has no candidates, no feedback, and no error."""
        if not is_object(value) or not _is_chunk(value):
            return False
        return not (value.get("candidates") or _feedback(value)) and is_blank_error(value.get("error"))

    def decode(self, payload: Payload, event: str, *, recovered: bool = False) -> None:
        """Decode a JSON payload, which is a chunk or a list of chunks."""
        value = payload.value
        if is_array(value) and value and all(is_object(item) for item in value):
            for position, item in enumerate(value):
                self._document(payload, item, (position,), event, recovered=recovered)
        elif is_object(value):
            self._document(payload, value, (), event, recovered=recovered)
        elif event == "error":
            notes = Anomalies(self._out, self._assembler, payload, (), is_read)
            self._error(read_error(payload, (), value), payload.text, notes)
        else:
            self._unknown(payload.text, event)

    def marker(self) -> None:
        """Handle `[DONE]`, which some gateways send.

        The marker ends the stream only if every candidate has a finish reason.
        """
        while self._unfinished and self._unfinished[-1].reason is not None:
            self._unfinished.pop()
        if self._candidates and not self._unfinished:
            self._finish()
            self._assembler.done()
            self.ended = True

    def text(self, text: str) -> None:
        """Report a payload that is not JSON as an upstream error."""
        self._error(text_error(text), text, None)

    def flush(self) -> None:
        """Emit the finish reasons at the end of the input, because they can change until then.

        The end of the stream is valid if every candidate has a finish reason and no content followed that reason.
        """
        self._finish()
        if not any(candidate.ran_on for candidate in self._candidates.values()):
            self._assembler.mark_valid_end()

    def _document(self, payload: Payload, value: dict[str, Any], path: Path, event: str, *, recovered: bool) -> None:
        sent = _raw(payload, path)
        renamed = in_json_names(sent)
        if renamed is not None:
            has_overflow = payload.overflow
            payload, path = parse(renamed), ()
            payload.overflow, value = has_overflow, payload.value
        chunk, chunk_path = _unwrapped(value, path)
        used = not _USED.isdisjoint(chunk)
        if used and renamed is not None:
            self._out.mark_misread("other_member")  # clients look only for the JSON names
        if used and chunk is not value:
            self._out.mark_misread("envelope")  # clients look for the members at the top level
        first = value["error"] if next(iter(value), None) == "error" else None
        if used and is_object(first) and is_blank_error(first):
            self._out.mark_misread("empty_error")  # google-genai raises if `error` is the first member
        if used and event != "message":
            self._out.mark_misread("other_lines")  # google-genai parses an event line as part of the JSON text
        notes = Anomalies(self._out, self._assembler, payload, chunk_path, is_read)
        error = _find_error(payload, chunk, chunk_path, event, used=used)
        if error is None and chunk is not value:
            error = _find_error(payload, value, path, event, used=used)
        if used:
            self._chunk(payload, chunk, chunk_path, notes, recovered=recovered)
        elif error is None:
            self._unknown(sent, event)
        if error is not None:
            self._error(error, sent, notes)

    def _chunk(
        self, payload: Payload, chunk: Mapping[str, Any], path: Path, notes: Anomalies, *, recovered: bool
    ) -> None:
        changed = {} if recovered else self._changed(leftovers(payload, path, chunk, ENVELOPE_FIELDS))
        if not self._started:
            self._start(chunk, path, changed, notes, recovered=recovered)
            changed = {}
        elif self._assembler.lacks_start:
            created = chunk.get("createTime")
            self._assembler.complete_start(
                None if recovered else chunk.get("responseId"),
                chunk.get("modelVersion"),
                seconds(created) if isinstance(created, str) else None,
            )
        kept: list[tuple[int, Raw]] = []
        candidates = chunk.get("candidates")
        if is_array(candidates):
            for position, item in enumerate(candidates):
                here = (*path, "candidates", position)
                if is_object(item):
                    candidate = self._candidate(item, here, position, notes)
                    candidate.read(payload, item, here, notes, recovered=recovered)
                    if candidate.members:
                        kept.append((candidate.index, candidate.members))
                else:
                    notes.shape(here)
        elif candidates is not None:
            notes.shape((*path, "candidates"))
        if self._out.on_unmodelled is not None and not recovered:
            self._out.keep(ChunkMembers(tuple(kept), other_members(payload, chunk, path, _WRITTEN)))
        self._feedback(payload, chunk, path, changed, notes)
        metadata = as_object(changed)
        if metadata is not None:
            self._assembler.choice_metadata(self._lowest or 0, metadata)
        usage = notes.an_object(chunk, path, "usageMetadata")
        if usage is not None:
            self._assembler.usage(read_usage(usage, payload.raw(*path, "usageMetadata")))
        notes.report()

    def _start(self, chunk: Mapping[str, Any], path: Path, changed: Raw, notes: Anomalies, *, recovered: bool) -> None:
        """Emit the start event of the response, using the first chunk.

        If the chunk follows a broken document, the id is omitted, because it may be the id of another response.
        """
        self._started = True
        created = chunk.get("createTime")
        self._assembler.started(
            None if recovered else a_word(chunk, path, "responseId", notes),
            a_word(chunk, path, "modelVersion", notes),
            seconds(created) if isinstance(created, str) else None,
            as_object(changed),
        )

    def _changed(self, members: Raw) -> Raw:
        """Return the unknown members that are new or have changed. Most chunks repeat the unknown members of earlier
        chunks.
        """
        known = self._members
        fresh = {key: raw for key, raw in members.items() if known.get(key) != raw}
        for key, raw in fresh.items():
            if may_remember(known, key, raw):
                known[key] = raw
        return fresh

    def _candidate(self, item: Mapping[str, Any], path: Path, position: int, notes: Anomalies) -> Candidate:
        """Return the state of the candidate to which an element of `candidates` belongs.

        If the index of the element is missing or invalid, its position in the list is used instead.
        """
        sent = item.get("index")
        index = integer(sent)
        if index is None or not 0 <= index <= _CANDIDATE_CAP:
            if sent is not None:
                notes.shape((*path, "index"))
            index = position
        return self._known(index)

    def _known(self, index: int) -> Candidate:
        known = self._candidates.get(index)
        if known is None:
            if self._max is not None and len(self._candidates) >= self._max:
                raise self._out.limit("max_choices", self._max)
            known = self._candidates[index] = Candidate(index, self._assembler, self._out)
            self._unfinished.append(known)
            self._lowest = index if self._lowest is None else min(index, self._lowest)
        return known

    def _feedback(self, payload: Payload, chunk: Mapping[str, Any], path: Path, changed: Raw, notes: Anomalies) -> None:
        """Handle `promptFeedback`, which becomes metadata.

        A blocked prompt has no candidates, so its `blockReason` becomes the finish reason of candidate 0.
        """
        feedback = notes.an_object(chunk, path, "promptFeedback")
        if feedback is None:
            return
        changed["promptFeedback"] = payload.raw(*path, "promptFeedback") or "{}"
        reason = a_reason(feedback, (*path, "promptFeedback"), "blockReason", notes)
        if reason is not None and not self._candidates:
            self._known(0).take(reason)

    # The end of the stream

    def _finish(self) -> None:
        for index in sorted(self._candidates):
            self._candidates[index].finish()

    def _error(self, error: ErrorFields, text: str, notes: Anomalies | None) -> None:
        self._finish()
        if notes is not None:
            error = error.cleaned(notes.clean)
            notes.report()
        self._assembler.upstream_error(error.code, error.kind, error.message, text.encode())

    def _unknown(self, text: str, event: str) -> None:
        self._assembler.unknown(None if event == "message" else event, text.encode())


def _raw(payload: Payload, path: Path) -> str:
    """Return the text of a document, which is the complete payload or one element of a list."""
    return (payload.raw(*path) or "null") if path else payload.text


def _ends(value: Mapping[str, Any]) -> bool:
    """Return whether the chunk ends the response: every candidate has a finish reason or, without any candidates, the
    feedback contains a block reason.

    Outside an event stream, any other chunk is one of several documents, one per line.
    """
    candidates = value.get("candidates")
    if is_array(candidates) and candidates:
        return all(is_object(item) and is_reason(_either(item, "finishReason", "finish_reason")) for item in candidates)
    feedback = _feedback(value)
    return is_object(feedback) and is_reason(_either(feedback, "blockReason", "block_reason"))


def _is_chunk(value: Mapping[str, Any]) -> bool:
    """Return whether the value has a member that identifies a chunk, under its JSON name or proto name."""
    return not _USED.isdisjoint(value) or not _PROTO_USED.isdisjoint(value)


def _feedback(value: Mapping[str, Any]) -> object:
    return _either(value, "promptFeedback", "prompt_feedback")


def _either(value: Mapping[str, Any], json_name: str, proto_name: str) -> object:
    found: object = value.get(json_name)
    return value.get(proto_name) if found is None else found


def _unwrapped(value: dict[str, Any], path: Path) -> tuple[Mapping[str, Any], Path]:
    """Return the chunk in the envelope `{"response": {...}}`, and its path.

    If there is no envelope, return the value itself.
    """
    inner = value.get("response")
    if _USED.isdisjoint(value) and is_object(inner) and not _USED.isdisjoint(inner):
        return inner, (*path, "response")
    return value, path


def _find_error(
    payload: Payload, value: Mapping[str, Any], path: Path, event: str, *, used: bool
) -> ErrorFields | None:
    """Return the error in a payload object, or None. `used`: whether the object is a chunk."""
    holder: object = value.get("error")
    if _has_error(value, used=used):
        path = (*path, "error")
    elif not used and (event == "error" or _reports_error(value)):
        holder = value
    else:
        return None
    return read_error(payload, path, holder)


def _has_error(value: Mapping[str, Any], *, used: bool) -> bool:
    """Return whether the object has an `error` member. A blank value is ignored in a chunk (`used`)."""
    error = value.get("error")
    return error is not None and not (used and is_blank_error(error))


def _reports_error(value: Mapping[str, Any]) -> bool:
    """Return whether the value reports an error without an `error` member.

    The value reports an error if it has a message with a code, a status, or a type that ends in `error`, or has another
    known error shape.
    """
    if _is_chunk(value):
        return False
    if reports_failure(value):
        return True
    if not isinstance(value.get("message"), str) or reports_success(value):
        return False
    kind = value.get("type")
    is_named_error = isinstance(kind, str) and kind.endswith("error")
    return is_named_error or value.get("code") is not None or value.get("status") is not None
