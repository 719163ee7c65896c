"""Decodes Chat Completions chunks, and complete `chat.completion` bodies, into wire deltas.

The members of a chunk take effect in this order: the choices, the usage, the error. The assembler determines which call
a fragment belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.anomalies import Anomalies
from streamweld._pure.dialect.chat.anomalies import is_read
from streamweld._pure.dialect.chat.calls import CallReader, call_members, is_numbered
from streamweld._pure.dialect.chat.choice import ChoiceReader, Chunk, Tools, is_completion
from streamweld._pure.dialect.chat.error import (
    find_error,
    has_error,
    holds_chunk,
    is_error_body,
    reports_error,
    value_error,
)
from streamweld._pure.dialect.chat.metadata import CHUNK_FIELDS, ChunkMembers
from streamweld._pure.dialect.chat.readers import check_chunk, has_counts, lacks_object
from streamweld._pure.dialect.chat.usage import read_usage_member
from streamweld._pure.dialect.upstream_error import ErrorFields, is_blank_error, text_error
from streamweld._pure.json.kinds import integer, is_array, is_object
from streamweld._pure.json.members import as_object, leftovers
from streamweld._pure.model.unmodelled import ChunkFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.output import Output

_USED = frozenset({"choices", "usage", "error"})
_ENVELOPE_FIELDS = CHUNK_FIELDS | {"data"}
_CHOICE_CAP = 2**31 - 1  # maximum choice index if the limit is disabled


class ChatDecoder:
    """Decodes the payloads of one stream."""

    def __init__(self, config: Mapping[str, Any], assembler: Assembler, out: Output) -> None:
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
        )
        self._restarts: bool = switches["restart_on_new_stream_id"]
        self._merges: bool = switches["merge_choices"]
        self._max_choices = limits["max_choices"]
        self._choices: dict[int, ChoiceReader] = {}
        self._lowest: int | None = None  # the lowest index of any choice that has arrived
        self._merged: dict[int, ChoiceReader] = {}
        self._members = ChunkMembers()
        self._started = False
        self._counted_before = 0  # ordinal of the payload after the last one with token counts that clients read
        self._kept: tuple[list[tuple[str, str]], bool] = ([], False)  # most recent record for the repair stage
        self._chunk_id: str | None = None
        self.ended = False

    @staticmethod
    def is_body(value: object) -> bool:
        """Return whether a payload outside an event stream is a complete response body, or an error in place of one."""
        if not is_object(value):
            return False
        if value.get("object") in ("chat.completion", "error") or is_error_body(value):
            return True
        choices = value.get("choices")
        if not is_array(choices):
            return has_error(value)
        if any(is_object(item) and "message" in item and item.get("delta") is None for item in choices):
            return True
        return is_completion(value)

    @staticmethod
    def may_be_json_line(value: object) -> bool:
        """Return whether a document that looks like a complete legacy completion could also be the last chunk of a JSON
        Lines stream.
        """
        return is_object(value) and is_completion(value)

    @staticmethod
    def is_error_body(value: object) -> bool:
        """Return whether the body of a response reports an error.

        Called for a body that is not an event stream and matches no dialect.
        """
        return is_object(value) and is_error_body(value)

    @staticmethod
    def reports_error(value: object) -> bool:
        """Return whether an object reports an error, even if more documents follow."""
        return is_object(value) and reports_error(value)

    @staticmethod
    def has_usable_data(value: object) -> bool:
        """Return whether a document that follows a broken document is a chunk or an error."""
        return is_object(value) and (
            not _USED.isdisjoint(value) or holds_chunk(value.get("data")) or reports_error(value)
        )

    @staticmethod
    def is_without_output(value: object) -> bool:
        """Return whether the value is a chunk with an empty list of choices, no calls, and no error."""
        if not is_object(value) or value.get("choices") != [] or call_members(value):
            return False
        return is_blank_error(value.get("error")) and value.get("object") != "error" and not reports_error(value)

    def decode(self, payload: Payload, event: str, *, recovered: bool = False) -> None:
        """Decode a JSON payload. `recovered`: whether the payload follows a broken document."""
        value = payload.value
        path: Path = ()
        if is_array(value) and value and is_object(value[0]) and "error" in value[0]:
            # Some gateways send an error object in an array.
            value, path = value[0], (0,)
        if not is_object(value):
            self._no_object(payload, event)
            return
        chunk, chunk_path = _unwrapped(value, path)
        notes = Anomalies(self._out, self._assembler, payload, chunk_path, is_read)
        error = find_error(payload, value, path, event)
        if error is None and chunk is not value:
            error = find_error(payload, chunk, chunk_path, event)
        outer = call_members(chunk)
        if "choices" in chunk or "usage" in chunk or outer:
            if chunk is not value:
                notes.mark_misread("envelope")  # clients look for `choices` at the top level
            if error is None and "error" in chunk and is_blank_error(chunk["error"]):
                notes.mark_misread("empty_error")  # @ai-sdk/openai-compatible raises for any value, even null
            changed_fields = self._members.changed_fields(payload, chunk_path, chunk, CHUNK_FIELDS | outer)
            if chunk is not value:
                changed_fields = self._members.changed_fields(payload, path, value, _ENVELOPE_FIELDS) | changed_fields
            within = self._chunk(Chunk(payload, chunk_path, chunk, notes, changed_fields, recovered, outer))
            error = error or within
        elif error is None:
            self._unknown(payload, event)
        if error is not None:
            self._error(error, payload.text, notes)

    def marker(self) -> None:
        """Handle `[DONE]`, which ends every stream of this dialect."""
        self.flush()
        for choice in self._choices.values():
            choice.readers.end(self._out, runs=False)
        self._check_counts()
        self._assembler.done()
        self.ended = True

    def end_input(self) -> None:
        """Check the token counts if the input ends without `[DONE]`, which repair adds."""
        if self._assembler.states_end:
            self._check_counts()

    def _check_counts(self) -> None:
        """Let repair write the token counts again if clients do not read them from the last chunk. openai-python uses
        only the last chunk.
        """
        if self._assembler.has_counts and self._counted_before != self._out.ordinal:
            self._out.recount()

    def text(self, text: str) -> None:
        """Report a payload that is not JSON as an upstream error."""
        self._error(text_error(text), text, None)

    def flush(self) -> None:
        """Emit the text and audio that each choice holds back. This method is called before the stream closes."""
        for choice in self._choices.values():
            choice.flush()

    def _no_object(self, payload: Payload, event: str) -> None:
        if event == "error":
            notes = Anomalies(self._out, self._assembler, payload, (), is_read)
            self._error(value_error(payload), payload.text, notes)
        else:
            self._unknown(payload, event)

    def _error(self, error: ErrorFields, text: str, notes: Anomalies | None) -> None:
        self.flush()
        if notes is not None:
            error = error.cleaned(notes.clean)
            notes.report()
        self._assembler.upstream_error(error.code, error.kind, error.message, text.encode())

    def _unknown(self, payload: Payload, event: str) -> None:
        self._out.leave_out("no_choices")  # openai-node and the AI SDK raise
        self._assembler.unknown(None if event == "message" else event, payload.text.encode())

    def _chunk(self, chunk: Chunk) -> ErrorFields | None:
        value, path, notes = chunk.value, chunk.path, chunk.notes
        if self._out.on_unmodelled is not None:
            self._keep(chunk)
        if not self._started:
            self._start(chunk)
        elif self._assembler.lacks_start:
            created = value.get("created")
            self._assembler.complete_start(
                None if chunk.recovered else value.get("id"),
                value.get("model"),
                None if isinstance(created, str) else integer(created),
            )
        new_id = self._restarts and not chunk.recovered and self._id_changed(value)
        choices = value.get("choices")
        error: ErrorFields | None = None
        check_chunk(value, notes)
        if has_counts(value.get("usage")):
            self._counted_before = self._out.ordinal + 1
        self._out.untyped |= lacks_object(value)
        outer: frozenset[str] = chunk.outer_calls
        chunk.outer_calls = frozenset()
        if is_array(choices) or (is_object(choices) and choices):
            for choice_position, (step, item) in enumerate(_listed(choices)):
                here = (*path, "choices", *step)
                if is_object(item):
                    if outer and _sent_index(item, choice_position) == 0:
                        outer, chunk.outer_calls = frozenset(), outer
                    within = self._choice(item, here, choice_position, notes).read(chunk, item, here, new_id=new_id)
                    chunk.outer_calls = frozenset()
                    error = error or within
                else:
                    notes.shape(here)
        elif choices is not None:
            notes.shape((*path, "choices"))
        if outer and not chunk.recovered:
            chunk.outer_calls = outer
            self._choice({"index": 0}, path, 0, notes).read_outer_calls(chunk)
        notes.report()
        left = as_object(chunk.changed_fields)
        if left is not None:
            self._assembler.choice_metadata(self._lowest or 0, left)
        groq = value.get("x_groq")
        if is_object(groq):
            read_usage_member(chunk.payload, groq, (*path, "x_groq"), notes, self._assembler)
        read_usage_member(chunk.payload, value, path, notes, self._assembler)
        return error

    def _keep(self, chunk: Chunk) -> None:
        """Record the unknown members of a chunk for the repair stage.

        Also record whether the chunk has choices, a finish reason, or usage.
        """
        choices = chunk.value.get("choices")
        listed = [choice for _, choice in _listed(choices) if is_object(choice)]
        groq = chunk.value.get("x_groq")
        finishes = any(choice.get("finish_reason", choice.get("finishReason")) is not None for choice in listed)
        counts = any(bool(holder.get("usage")) for holder in (chunk.value, groq, *listed) if is_object(holder))
        members = leftovers(chunk.payload, chunk.path, chunk.value, CHUNK_FIELDS | call_members(chunk.value))
        kept = list(members.items()), bool(_listed(choices))
        if finishes or counts or kept != self._kept:
            self._kept = kept
            self._out.keep(ChunkFacts(members, kept[1], finishes, counts))

    def _start(self, chunk: Chunk) -> None:
        """Emit the start event of the response, using the first chunk.

        If the chunk follows a broken document, the id is omitted, because it may be the id of another response.
        """
        self._started = True
        value, clean = chunk.value, chunk.notes.clean
        identity, model = value.get("id"), value.get("model")
        created = value.get("created")
        self._assembler.started(
            clean(identity) if isinstance(identity, str) and identity and not chunk.recovered else None,
            clean(model) if isinstance(model, str) and model else None,
            None if isinstance(created, str) else integer(created),
            as_object(chunk.changed_fields),
        )
        chunk.changed_fields.clear()

    def _id_changed(self, value: Mapping[str, Any]) -> bool:
        """Return whether the chunk has an id that differs from the id of the previous chunk (AM10)."""
        identity = value.get("id")
        if not isinstance(identity, str) or not identity:
            return False
        changed = self._chunk_id is not None and identity != self._chunk_id
        self._chunk_id = identity
        return changed

    def _choice(self, item: Mapping[str, Any], path: Path, choice_position: int, notes: Anomalies) -> ChoiceReader:
        """Return the state of the choice to which an element of `choices` belongs.

        If the index of the element is missing or invalid, its position in the list is used instead.
        """
        sent = item.get("index")
        index = _sent_index(item, None)
        if index is None:
            if sent is not None:
                notes.shape((*path, "index"))
            notes.mark_misread("no_index")  # clients store choices by index
            index = choice_position
        known = self._choices.get(index)
        if known is not None:
            return known
        if self._merges and self._choices:
            return self._merge(index)
        limit = self._max_choices
        if limit is not None and len(self._choices) >= limit:
            raise self._out.limit("max_choices", limit)
        known = self._choices[index] = ChoiceReader(index, self._tools)
        self._lowest = index if self._lowest is None else min(index, self._lowest)
        # Open the choice now, so that it is closed even if it has no output.
        self._assembler.text(index, "", None)
        return known

    def _merge(self, index: int) -> ChoiceReader:
        """Return the first choice. Report, once per index, that another choice is merged into the first choice
        (AM11).
        """
        first = next(iter(self._choices.values()))
        self._out.mark_misread("choice_merged")
        limit = self._max_choices
        if index not in self._merged and (limit is None or len(self._merged) < limit):
            self._merged[index] = first
            self._out.diagnose("choices_merged", detail=str(index))
        return first


def _sent_index(item: Mapping[str, Any], default: int | None) -> int | None:
    """Return the index in an element of `choices`, or `default` if the index is missing or invalid."""
    index = integer(item.get("index"))
    return default if index is None or not 0 <= index <= _CHOICE_CAP else index


def _listed(choices: object) -> list[tuple[Path, Any]]:
    """Return the choices of a chunk, each with its path inside `choices`.

    Some gateways send a single choice without a list, or an object whose keys are numbers.
    """
    if is_array(choices):
        return [((position,), item) for position, item in enumerate(choices)]
    if not is_object(choices) or not choices:
        return []
    return [((key,), item) for key, item in choices.items()] if is_numbered(choices) else [((), choices)]


def _unwrapped(value: dict[str, Any], path: Path) -> tuple[Mapping[str, Any], Path]:
    """Return the chunk in the envelope `{"data": {"choices": …}}`, and its path.

    If there is no envelope, return the value itself.
    """
    inner = value.get("data")
    if not {"choices", "usage"} & value.keys() and is_object(inner) and {"choices", "usage"} & inner.keys():
        return inner, (*path, "data")
    return value, path
