"""Decodes one choice of a Chat chunk: its content, its calls, a complete message, and the finish reason, in this order.

The unknown members of a chunk are attached as metadata to the first event that the chunk causes, unless that event is a
call event. Call events contain only the metadata of their call. If a chunk causes only call events, its metadata is
added to the last event of the choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from streamweld._pure.assemble.part.object_merge import Growth
from streamweld._pure.assemble.rule_context import byte_length
from streamweld._pure.dialect.chat.calls import (
    NO_CALLS,
    TOOL_USE_LISTS,
    call_content,
    call_members,
    calls_member,
    continues_tool_use,
    is_repeated,
    is_tool_use,
    main_calls,
    ordered,
    read_calls,
)
from streamweld._pure.dialect.chat.content import File, Signature, Text, Unread, image_files, read_content
from streamweld._pure.dialect.chat.error import read_choice_error
from streamweld._pure.dialect.chat.metadata import CHOICE_FIELDS, DELTA_FIELDS, TOOL_USE_FIELDS, PendingMetadata
from streamweld._pure.dialect.chat.readers import OTHER_ROLES, RUNS_CALLS, Readers, is_content
from streamweld._pure.dialect.chat.reasoning import MEMBERS as REASONING_MEMBERS
from streamweld._pure.dialect.chat.reasoning import ReasoningReader, SoFar, SplitPairs, ThinkingBlocks, whole_reasoning
from streamweld._pure.dialect.chat.side_calls import SideCalls
from streamweld._pure.dialect.chat.usage import read_usage_member
from streamweld._pure.dialect.think_tags import NOTHING, ThinkSplitter, split_whole
from streamweld._pure.dialect.upstream_error import is_blank_error
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.members import as_object, leftovers
from streamweld._pure.model.finish_words import meaning
from streamweld._pure.model.unmodelled import ChoiceEnd, ChoiceMembers, ReasoningFacts
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.dialect.chat.calls import CallReader
    from streamweld._pure.dialect.chat.content import Piece
    from streamweld._pure.dialect.chat.reasoning import Block, Thought
    from streamweld._pure.dialect.think_tags import Carrier
    from streamweld._pure.dialect.upstream_error import ErrorFields
    from streamweld._pure.json.members import Raw
    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.delta import Fragment
    from streamweld._pure.model.output import Output
    from streamweld.events import ReasoningKind


ABSENT_REASONS = frozenset(DIALECTS["chat"]["absent_reasons"])
_BESIDE_TEXT = CHOICE_FIELDS - {"text"}  # known members of a choice with a delta or message
# Members of a choice that are not kept, either because an event contains them, or because clients would read them as
# content or calls if repair wrote them next to an empty delta.
_NOT_KEPT = frozenset({"text", "content", "tool_calls", "toolCalls", "tool_call", "function_call"})
# Lists of a delta that are kept unchanged.
_OWN_LISTS = ("annotations", "images")
_ATTACHMENTS = frozenset({"annotations", "refusal", "images", "audio"})


# How `function_call` relates to `tool_calls` in one choice. `unknown`: no `function_call` has contained a name yet.
# `repeated`: `function_call` repeats a call in `tool_calls`; if both were decoded, the call would run twice. `own`:
# `function_call` is a separate call.
LegacyForm: TypeAlias = Literal["unknown", "repeated", "own"]


@dataclass(slots=True)
class Chunk:
    """The members and properties of a chunk that affect how its choices are decoded."""

    payload: Payload
    path: Path
    value: Mapping[str, Any]
    notes: Anomalies
    changed_fields: Raw  # metadata of the chunk that has not been attached to any event
    recovered: bool  # the chunk follows a broken document; only text, finish reasons, usage, and errors are used
    outer_calls: frozenset[str]  # members of the chunk itself that contain calls of the current choice


@dataclass(slots=True, frozen=True)
class Tools:
    """Objects and options that all choices of a stream share."""

    assembler: Assembler
    out: Output
    calls: CallReader
    inline_reasoning: bool
    drop_restated: bool


class MessageDeltas:
    """The accumulated text and reasoning of a choice that streams `message` instead of `delta`."""

    __slots__ = ("reasoning", "reported", "text")

    def __init__(self) -> None:
        self.text = SoFar(1)
        self.reasoning = SoFar(1)
        self.reported = False  # whether the diagnostic for repeated text has been emitted


@dataclass(slots=True, frozen=True)
class _Outside:
    """Members of a choice that are read as if they were in its delta or message, if that delta or message contains no
    content or calls.
    """

    choice: Mapping[str, Any]
    path: Path
    members: frozenset[str]


@dataclass(slots=True, frozen=True)
class _Others:
    """The names of the members that contain calls, for each place in a payload."""

    delta: frozenset[str]
    message: frozenset[str]
    choice: frozenset[str]
    chunk: frozenset[str]

    def has_several(self) -> bool:
        """Return whether a payload has calls in more than one place or member."""
        places = (self.delta, self.message, self.choice, self.chunk)
        return bool(self.message) or sum(map(bool, places)) > 1 or any(len(names) > 1 for names in places)


class ChoiceReader:
    """The decoder's state for one choice."""

    __slots__ = (
        "_assembler",
        "_attached",
        "_audio",
        "_audio_size",
        "_blocks",
        "_kept_members",
        "_legacy_form",
        "_messages",
        "_reasoning",
        "_reasoning_fields",
        "_split_pairs",
        "_repetition_reported",
        "_has_text",
        "_side_calls",
        "_think",
        "_tools",
        "_uses_tool",
        "index",
        "readers",
    )

    def __init__(self, index: int, tools: Tools) -> None:
        self.index = index
        self._tools = tools
        self._assembler = tools.assembler
        self._audio: list[str] = []
        self._audio_size = 0
        self._attached = False  # files or annotations arrived in deltas, so a complete message only repeats them
        self._repetition_reported = False
        self._reasoning_fields: tuple[str, ...] = ()  # members that contained the last reasoning; used only by repair
        self._split_pairs = SplitPairs()  # used only by repair
        self._side_calls = SideCalls(index, tools.assembler)
        self._kept_members = False  # the last chunk had unknown members; used only by repair
        self.readers = Readers()
        self._begin()

    def _begin(self) -> None:
        self._reasoning = ReasoningReader()
        self._blocks = ThinkingBlocks()
        self._think = (
            ThinkSplitter(self.index, self._assembler, self._tools.out.diagnose)
            if self._tools.inline_reasoning
            else None
        )
        self._has_text = False
        self._legacy_form: LegacyForm = "unknown"
        self._uses_tool = False  # whether a delta contained a `tool_use` call
        self._messages: MessageDeltas | None = None  # set if the choice streams `message` instead of `delta`

    def read(self, chunk: Chunk, item: dict[str, Any], path: Path, *, new_id: bool) -> ErrorFields | None:
        """Decode one choice of a chunk. Return the error in the choice, or None."""
        payload, notes = chunk.payload, chunk.notes
        sent = item.get("delta")
        text = sent if isinstance(sent, str) else ""
        delta = None if isinstance(sent, str) else notes.an_object(item, path, "delta")
        message = notes.an_object(item, path, "message")
        reason = _finish_reason(item, path, notes)
        notes.report()
        if text:
            notes.report_read_shape((*path, "delta"))
        is_typed = chunk.value.get("object", "chat.completion.chunk") == "chat.completion.chunk"
        if delta is not None or isinstance(sent, str):
            self.readers.begin(self._tools.out, self.index, delta or {}, is_typed=is_typed)
        legacy = is_legacy(item)
        outer = call_members(item)
        modelled = (CHOICE_FIELDS if legacy else _BESIDE_TEXT) | outer
        inner, inner_message = call_members(delta or {}), call_members(message or {})
        # Calls in all places: in the delta, in the message, on the choice, and on the chunk.
        others: _Others | None = _Others(inner, inner_message, outer, chunk.outer_calls)
        if inner or inner_message:
            outer = chunk.outer_calls = frozenset()
        has_outer_calls = bool(outer or chunk.outer_calls)
        has_content = legacy or message is not None or bool((delta or {}).get("content") or text)
        if not has_content and is_content(item.get("content")):
            outer |= {"content"}
        pending_metadata = PendingMetadata(chunk.changed_fields, leftovers(payload, path, item, modelled | outer))
        if delta and delta.get("role") in OTHER_ROLES:
            notes.shape((*path, "delta", "role"))
            notes.mark_misread("other_role")  # clients add the content to the answer
            notes.report()
            # Some gateways run tools themselves and stream the results, or send the prompt back. Tool results and
            # prompts are not part of the answer. Only the assistant calls tools, so a delta with calls has the wrong
            # role, unless a `tool_call_id` shows that the delta contains the result of a call.
            if not inner or delta.get("tool_call_id"):
                delta, outer, has_outer_calls = {}, frozenset[str](), False
                chunk.outer_calls = frozenset()
                others = None
        error = read_choice_error(payload, item, path)
        if error is None:  # if repair writes an error, the error contains the whole payload
            self._keep_members(payload, pending_metadata.members, delta, (*path, "delta"), finishes=reason is not None)
        keeps = error is None and self._kept_members
        if keeps and sent is None and is_typed and not legacy:
            # Repair rewrites the chunk with the recorded members, because the chunk has no delta. The new delta also
            # contains the role.
            self.readers.begin(self._tools.out, self.index, {}, is_typed=True)
        if legacy:
            self._content(chunk, item["text"], (*path, "text"), pending_metadata, restates=reason is not None)
            notes.report()
        if text:
            # Some gateways send the text itself as the value of `delta`, instead of an object.
            self._content(chunk, text, path, pending_metadata, restates=reason is not None)
            notes.report()
        if delta:
            self.readers.delta(delta, notes, is_typed=is_typed)
            if new_id and self._has_text and isinstance(delta.get("role"), str):
                self._assembler.restart(self.index)
                self._side_calls.clear()
                self._begin()
            restates = reason is not None or has_outer_calls
            self._delta(chunk, delta, (*path, "delta"), pending_metadata, final=restates)
        is_read = False
        if (
            message
            and sent is None
            and not chunk.recovered
            and self._continues(chunk, message, final=reason is not None)
        ):
            is_read = True
            self._delta(chunk, message, (*path, "message"), pending_metadata, final=False)
            self._outer(chunk, _Outside(item, path, outer), pending_metadata, final=reason is not None)
        elif message and not chunk.recovered and _is_whole(chunk, item, path, final=reason is not None):
            if delta is None and not isinstance(sent, str):
                pending_metadata.members |= leftovers(payload, (*path, "message"), message, DELTA_FIELDS)
            elif self._is_new(message):
                notes.mark_misread("not_streamed")  # clients read only deltas
            is_read = True
            here = (*path, "message")
            self._message(chunk, message, here, pending_metadata, _Outside(item, path, outer))
        else:
            self._outer(chunk, _Outside(item, path, outer), pending_metadata, final=reason is not None)
        if others is not None and not chunk.recovered and others.has_several():
            self._compare_others(chunk, item, path, others, reads_message=is_read)
        left = as_object(pending_metadata.members)
        has_lists = delta is not None and any(_is_own_list(delta.get(name)) for name in _OWN_LISTS)
        finishes = reason is not None
        has_audio = delta is not None and delta.get("audio") is not None
        if (left is not None or has_lists or has_audio or (finishes and chunk.changed_fields)) and error is None:
            self._tools.out.keep(ChoiceEnd(self.index, finishes))
        if left is not None:
            self._assembler.choice_metadata(self.index, left)
        read_usage_member(payload, item, path, notes, self._assembler)
        if reason is not None:
            if self._think is not None:
                self._think.flush()
            reason = notes.clean(reason)
            notes.report()
            self._side_calls.settle(self._tools.out)
            self.readers.end(self._tools.out, runs=meaning("chat", reason) in RUNS_CALLS)
            self._assembler.finish(self.index, reason)
        return error

    def _keep_members(
        self, payload: Payload, members: Raw, delta: Mapping[str, Any] | None, path: Path, *, finishes: bool
    ) -> None:
        """Record the unknown members of the choice and its delta for the repair stage."""
        out = self._tools.out
        if out.on_unmodelled is None:
            return
        own = {name: raw for name, raw in members.items() if name not in _NOT_KEPT}
        unknown = leftovers(payload, path, delta, self._modelled(delta)) if delta else {}
        values = delta or {}
        unknown = {name: raw for name, raw in unknown.items() if not _is_call_list(name, values[name])}
        # Events contain most of the content of these lists, but not all of it.
        lists = {name: payload.raw(*path, name) or "[]" for name in _OWN_LISTS if _is_own_list(values.get(name))}
        # Audio is reported only at the end of the choice.
        audio = {"audio": payload.raw(*path, "audio") or "null"} if values.get("audio") is not None else {}
        in_delta = unknown | lists | audio
        if own or in_delta or self._kept_members:
            out.keep(ChoiceMembers(self.index, own, in_delta, finishes))
        self._kept_members = bool(own or in_delta)

    def _modelled(self, delta: Mapping[str, Any]) -> frozenset[str]:
        """Return the names of the members of a delta that are decoded."""
        modelled: frozenset[str] = DELTA_FIELDS | {calls_member(delta)}
        uses_tool = is_tool_use(delta) or (self._uses_tool and continues_tool_use(delta))
        return modelled | TOOL_USE_FIELDS if uses_tool else modelled

    def read_outer_calls(self, chunk: Chunk) -> None:
        """Decode the calls that the chunk contains outside `choices`. This method is called for choice 0 if the chunk
        does not list this choice.
        """
        chunk.notes.report()
        others = _Others(frozenset(), frozenset(), frozenset(), chunk.outer_calls)
        fragments = self._outer_fragments(chunk, _Outside({}, chunk.path, frozenset()))
        chunk.notes.report()
        self._emit_calls(fragments)
        if others.has_several():
            self._compare_others(chunk, {}, chunk.path, others, reads_message=False)

    def _outer(
        self,
        chunk: Chunk,
        outside: _Outside,
        pending_metadata: PendingMetadata,
        *,
        final: bool,
    ) -> None:
        """Decode text and calls that the gateway sent on the choice or the chunk instead of in the delta."""
        notes, item, members = chunk.notes, outside.choice, outside.members
        if "content" in members:
            notes.mark_misread("other_member")  # clients look only in the delta
            restates = final or bool(members - {"content"} or chunk.outer_calls)
            here = (*outside.path, "content")
            self._content(chunk, item.get("content"), here, pending_metadata, restates=restates)
        notes.report()
        if not chunk.recovered:
            fragments = self._outer_fragments(chunk, outside)
            notes.report()
            self._emit_calls(fragments)

    def _outer_fragments(self, chunk: Chunk, outside: _Outside) -> list[Fragment]:
        """Return the calls on the choice. If there are none, return the calls on the chunk that belong to the
        choice.
        """
        holder, path = outside.choice, outside.path
        names = outside.members - {"content"}
        if not names:
            holder, path, names = chunk.value, chunk.path, chunk.outer_calls
        if not names:
            return []
        chunk.notes.mark_misread("other_member")  # clients look only in the delta
        calls = {name: holder[name] for name in main_calls(names)}
        return self._fragments(chunk.payload, calls, path, chunk.notes, streams=True)

    def _compare_others(
        self, chunk: Chunk, choice: Mapping[str, Any], path: Path, others: _Others, *, reads_message: bool
    ) -> None:
        """Store the calls that a payload contains in unusual places, unless they repeat the calls in the usual
        place.
        """
        notes = chunk.notes.apart()
        delta, message = choice.get("delta"), choice.get("message")
        delta, message = delta if is_object(delta) else {}, message if is_object(message) else {}
        is_inner = bool(others.delta or others.message)
        is_outer = is_inner or bool(others.choice)
        sources = (
            (delta, (*path, "delta"), others.delta, read_calls(delta)),
            (message, (*path, "message"), others.message, read_calls(message) if reads_message else NO_CALLS),
            (choice, path, others.choice, NO_CALLS if is_inner else main_calls(others.choice)),
            (chunk.value, chunk.path, others.chunk, NO_CALLS if is_outer else main_calls(others.chunk)),
        )
        used: list[Fragment] = []
        left: list[Fragment] = []
        for holder, here, names, main in sources:
            used += self._tools.calls.plain_calls(chunk.payload, holder, here, ordered(names & main), notes)
            left += self._tools.calls.plain_calls(chunk.payload, holder, here, ordered(names - main), notes)
        known = {call_content(fragment) for fragment in used}
        for fragment in left:
            if call_content(fragment) not in known:
                self._side_calls.add(fragment)

    def _continues(self, chunk: Chunk, message: Mapping[str, Any], *, final: bool) -> bool:
        """Return whether `message` must be decoded as a delta.

        Four kinds of message are not decoded as deltas: a complete body, a message after streamed deltas, a first
        message that ends the choice, and a last message that repeats the whole text.
        """
        if chunk.value.get("object") == "chat.completion":
            return False
        if self._messages is None:
            if final or self._has_text:
                return False
            self._messages = MessageDeltas()
        content = message.get("content")
        return not (final and isinstance(content, str) and self._messages.text.repeated_by(content))

    def _is_new(self, message: dict[str, Any]) -> bool:
        """Return whether a message contains calls that were not streamed, or the first content of the choice."""
        calls = message.get("tool_calls")
        count = len(calls) if is_array(calls) else 1 if calls or message.get("function_call") else 0
        return not self.readers.has_calls(count) or (bool(message.get("content")) and not self._has_text)

    def flush(self) -> None:
        """Emit the text that the `<think>` splitter holds back, and the collected audio. This method is called before
        the stream closes.
        """
        if self._think is not None:
            self._think.end()
        self._side_calls.settle(self._tools.out)
        if self._audio:
            self._assembler.hold(Growth(self._audio_size, len(self._audio)).released())
            self._assembler.choice_metadata(self.index, f'{{"audio":[{",".join(self._audio)}]}}')
            self._audio.clear()
            self._audio_size = 0

    def _delta(
        self, chunk: Chunk, delta: dict[str, Any], path: Path, pending_metadata: PendingMetadata, *, final: bool
    ) -> None:
        payload, notes = chunk.payload, chunk.notes
        uses_tool = is_tool_use(delta) or (self._uses_tool and continues_tool_use(delta))
        if not DELTA_FIELDS.issuperset(delta):
            pending_metadata.members |= leftovers(payload, path, delta, self._modelled(delta))
        calls, legacy = delta.get(calls_member(delta)), delta.get("function_call")
        restates = bool(final or calls or legacy)
        if not chunk.recovered:
            thinks = not REASONING_MEMBERS.isdisjoint(delta)
            thought = self._reasoning.read(payload, delta, path, pending_metadata.members, notes) if thinks else None
            if thought is not None and self._messages is not None:
                text = thought.text or "".join([block.text for block in thought.blocks])
                blocks = tuple([replace(block, text="") for block in thought.blocks])
                thought = replace(thought, text=self._unseen(self._messages.reasoning, text), blocks=blocks)
            notes.report()
            if thought is not None:
                self._think_of(thought, pending_metadata, restates=restates)
        is_thought = _is_thought(delta)
        if is_thought and delta.get("content"):
            notes.mark_misread("other_member")  # clients add the thought to the answer
        here = (*path, "content")
        self._content(chunk, delta.get("content"), here, pending_metadata, restates=restates, is_thought=is_thought)
        if chunk.recovered:
            notes.report()
            return
        if not _ATTACHMENTS.isdisjoint(delta):
            self._attachments(payload, delta, path, notes, pending_metadata)
        notes.report()
        if calls is None and legacy is None and not uses_tool and not _has_list(delta):
            return
        fragments = self._fragments(payload, delta, path, notes, streams=True)
        if not fragments:
            fragments = self._tools.calls.tool_uses(payload, delta, path, notes, is_call=uses_tool)
            self._uses_tool = self._uses_tool or bool(fragments)
        notes.report()
        self._emit_calls(fragments)

    def _emit_calls(self, fragments: list[Fragment]) -> None:
        if fragments:
            self._has_text = True
            if self._think is not None:
                self._think.flush()
            for fragment in fragments:
                self._assembler.call(self.index, fragment)

    def _content(
        self,
        chunk: Chunk,
        content: object,
        path: Path,
        pending_metadata: PendingMetadata,
        *,
        restates: bool,
        is_thought: bool = False,
    ) -> None:
        """Emit the content of a delta.

        `restates`: whether the delta ends the choice or contains a call. Such a delta may repeat the whole text of the
        choice (AM9). `is_thought`: whether the delta has a flag that marks its text as reasoning.
        """
        pieces: list[Piece] = read_content(chunk.payload, content, path, chunk.notes)
        if self._messages is not None:
            pieces = [self._unseen_piece(piece, self._messages) for piece in pieces]
        if chunk.recovered:
            pieces = [piece for piece in pieces if isinstance(piece, Text) and piece.kind == "text" and not is_thought]
        if is_thought:
            pieces = [_as_reasoning(piece) for piece in pieces]
        if pieces and not (restates and self._restated(pieces)):
            for piece in pieces:
                if not isinstance(piece, Text) or piece.text:
                    self._piece(piece, pending_metadata)

    def _unseen_piece(self, piece: Piece, messages: MessageDeltas) -> Piece:
        if not isinstance(piece, Text) or piece.kind != "text":
            return piece
        return Text("text", self._unseen(messages.text, piece.text))

    def _unseen(self, so_far: SoFar, text: str) -> str:
        """Return the new text in a streamed `message`. Some gateways send the accumulated text in each `message`."""
        new, again = so_far.new_in(text) if text else ("", False)
        if again:
            self._tools.out.mark_misread("text_again")  # clients would append the repetition
        if again and self._messages is not None and not self._messages.reported:
            self._messages.reported = True
            self._tools.out.diagnose("ambiguous_cumulative", detail="repeated")
        return new

    def _think_of(self, thought: Thought, pending_metadata: Carrier, *, restates: bool) -> None:
        details = thought.details
        blocks, rest, again = self._blocks.divide(thought, lambda: self._assembler.open_reasoning(self.index))
        text = "".join([block.text for block in blocks]) + rest
        drops = restates and self._tools.drop_restated and bool(text)
        if drops and self._assembler.restates(self.index, "reasoning", text):
            self._tools.out.mark_misread("text_again")  # clients would append the repetition
            blocks, rest, text = [replace(block, text="") for block in blocks], "", ""
            again = True
        if thought.doubt:
            self._tools.out.diagnose("ambiguous_cumulative", detail=thought.doubt)
        self._keep_reasoning(thought, has_text=bool(text))
        if text:
            self._has_text = True
            if self._think is not None:
                self._think.field(text)
        for block in blocks:
            self._end_block(block, pending_metadata)
        if rest:
            kind: ReasoningKind = "thinking" if thought.blocks else "raw"
            self._assembler.reasoning(self.index, kind, rest, pending_metadata.take())
        if details is not None:
            self._assembler.reasoning_attributes(self.index, details.signature, details.encrypted, details.raw)
        if thought.signature:
            self._assembler.reasoning_attributes(self.index, thought.signature, None, None)
        if (thought.repeated or again) and not self._repetition_reported:
            # Report repeated reasoning only once, because a gateway that repeats reasoning repeats it in every chunk.
            self._repetition_reported = True
            self._tools.out.diagnose("reasoning_repeated")

    def _end_block(self, block: Block, pending_metadata: Carrier) -> None:
        """Emit the remaining text of a reasoning block, and its signature or encrypted content."""
        if block.text:
            self._assembler.reasoning(self.index, "thinking", block.text, pending_metadata.take())
        self._assembler.end_reasoning(self.index, block.signature, block.encrypted)

    def _keep_reasoning(self, thought: Thought, *, has_text: bool) -> None:
        """Record which members contained the reasoning of a delta. The repair stage uses this record."""
        out = self._tools.out
        if out.on_unmodelled is None:
            return
        changes = has_text and thought.fields != self._reasoning_fields
        if changes:
            self._reasoning_fields = thought.fields
        details = None
        sealed = thought.details is not None and (thought.details.signature or thought.details.encrypted)
        if thought.details is not None and (sealed or not thought.again):  # clients would append the repeated text
            details, is_filled = self._split_pairs.joined(thought.details)
            has_text = has_text and is_filled  # no event follows if only half of a character has arrived
        if changes or details is not None:
            out.keep(ReasoningFacts(self.index, thought.fields if changes else None, details, has_text))

    def _message(
        self,
        chunk: Chunk,
        message: dict[str, Any],
        path: Path,
        pending_metadata: PendingMetadata,
        outside: _Outside,
    ) -> None:
        """Compare a complete message with the streamed content, and emit the content that was not streamed.

        `outside`: the calls next to the message, which are used if the message contains no calls.
        """
        payload, notes = chunk.payload, chunk.notes
        if self._think is not None:
            self._think.flush()
        thought = whole_reasoning(payload, message, path, pending_metadata.members, notes)
        pieces = read_content(payload, message.get("content"), (*path, "content"), notes)
        text = _joined(pieces, "text")
        blocks, rest, _ = self._blocks.divide(thought, str)
        reasoning = "".join([block.text for block in blocks]) + rest or _joined(pieces, "reasoning")
        if self._tools.inline_reasoning and text:
            inline, text = split_whole(notes.clean(text))
            reasoning = reasoning or inline
        if _is_thought(message):
            reasoning, text = reasoning or text, ""
        refusal = notes.a_text(message, path, "refusal") or _joined(pieces, "refusal")
        fragments = self._fragments(payload, message, path, notes, streams=False)
        if not fragments and _has_list(message):
            fragments = self._tools.calls.tool_uses(payload, message, path, notes, is_call=False)
        fragments = fragments or self._outer_fragments(chunk, outside)
        notes.report()
        streamed = self._has_text
        if not streamed:
            self._keep_reasoning(thought, has_text=bool(reasoning))
        self._has_text = True
        for block in blocks:
            if streamed:
                self._assembler.reasoning_attributes(self.index, block.signature, block.encrypted, None)
            else:
                self._end_block(block, NOTHING)
        # Emit the attributes of the reasoning first, because `message` opens and closes the parts.
        details = thought.details
        if details is not None:
            self._assembler.reasoning_attributes(self.index, details.signature, details.encrypted, details.raw)
        signatures = [piece.text for piece in pieces if isinstance(piece, Signature)]
        for signature in (thought.signature, *signatures):
            if signature:
                self._assembler.reasoning_attributes(self.index, signature, None, None)
        attached = self._attached
        if not attached:
            self._annotations(payload, message, path, notes)
        self._assembler.message(self.index, text or None, reasoning or None, refusal or None, fragments)
        for piece in pieces:
            if not isinstance(piece, (Text, Signature)) and not (attached and isinstance(piece, File)):
                self._piece(piece, NOTHING)
        if not attached:
            self._images(payload, message, path, notes)
        self._add_audio(payload, message, path)
        notes.report()

    def _fragments(
        self, payload: Payload, holder: Mapping[str, Any], path: Path, notes: Anomalies, *, streams: bool
    ) -> list[Fragment]:
        """Return the call fragments in a delta or a message.

        The fragment in `function_call` comes last. This fragment is omitted if it repeats a call in `tool_calls`.

        `streams`: whether `holder` is a delta. The `function_call` of a delta may repeat a call from an earlier delta.
        """
        fragments: list[Fragment] = []
        member = calls_member(holder)
        calls, legacy = holder.get(member), holder.get("function_call")
        if member != "tool_calls":
            notes.mark_misread("other_member")
        if calls is not None:
            fragments = self._tools.calls.tool_calls(payload, calls, (*path, member), notes)
        if legacy is not None:
            for fragment in self._tools.calls.function_call(payload, legacy, (*path, "function_call"), notes):
                if fragment.name is not None and self._legacy_form != "own":
                    before = self._legacy_form
                    repeats = is_repeated(fragment, fragments) or (
                        streams and self._assembler.mirrors_call(self.index, fragment)
                    )
                    self._legacy_form = "repeated" if repeats else "own"
                    if self._legacy_form == "repeated" and before == "unknown":
                        self._tools.out.diagnose("announced_again", detail="function_call")
                if self._legacy_form == "repeated":
                    notes.mark_misread("call_in_both_forms")
                    if streams:
                        self._side_calls.add_legacy(fragment, fragments)
                else:
                    fragments.append(fragment)
        return fragments

    def _piece(self, piece: Piece, pending_metadata: Carrier) -> None:
        if isinstance(piece, Unread):
            self._assembler.unknown(None, piece.raw.encode())
            return
        if isinstance(piece, Signature):
            self._assembler.reasoning_attributes(self.index, piece.text, None, None)
            return
        self._has_text = True
        if isinstance(piece, File):
            self._attached = True
            self._assembler.file(self.index, piece.media_type, piece.data, piece.url, piece.metadata)
        elif piece.kind == "reasoning":
            self._assembler.reasoning(self.index, "raw", piece.text, pending_metadata.take())
        elif piece.kind == "refusal":
            self._assembler.refusal(self.index, piece.text, pending_metadata.take())
        elif self._think is not None:
            self._think.feed(piece.text, pending_metadata)
        else:
            self._assembler.text(self.index, piece.text, pending_metadata.take())

    def _restated(self, pieces: list[Piece]) -> bool:
        """Return whether the content repeats the choice's whole text and the policy drops such a repetition (AM9)."""
        piece = pieces[0]
        if not self._tools.drop_restated or len(pieces) != 1 or not isinstance(piece, Text) or piece.kind != "text":
            return False
        if not self._assembler.restates(self.index, "text", piece.text):
            return False
        self._tools.out.diagnose("content_restated")
        return True

    def _attachments(
        self, payload: Payload, delta: Mapping[str, Any], path: Path, notes: Anomalies, pending_metadata: Carrier
    ) -> None:
        self._annotations(payload, delta, path, notes)
        refusal = notes.a_text(delta, path, "refusal")
        if refusal:
            self._piece(Text("refusal", refusal), pending_metadata)
        self._images(payload, delta, path, notes)
        self._add_audio(payload, delta, path)

    def _annotations(self, payload: Payload, holder: Mapping[str, Any], path: Path, notes: Anomalies) -> None:
        annotations = holder.get("annotations")
        if is_array(annotations):
            if annotations:
                self._attached = True
                self._assembler.annotations(self.index, payload.raw(*path, "annotations") or "[]")
        elif annotations is not None:
            notes.shape((*path, "annotations"))

    def _images(self, payload: Payload, holder: Mapping[str, Any], path: Path, notes: Anomalies) -> None:
        if holder.get("images") is not None:
            for image in image_files(payload, holder["images"], (*path, "images"), notes):
                self._piece(image, NOTHING)

    def _add_audio(self, payload: Payload, holder: Mapping[str, Any], path: Path) -> None:
        """Store a piece of audio. At the end of the stream, all pieces are attached to the last event of the choice."""
        if holder.get("audio") is None:
            return
        audio = payload.raw(*path, "audio") or "null"
        size = byte_length(audio)
        self._assembler.hold(Growth(size, 1))
        self._audio_size += size
        self._audio.append(audio)


def _is_thought(holder: Mapping[str, Any]) -> bool:
    """Return whether a delta or message has the flag by which Gemini's Chat endpoint marks text as a thought."""
    value: object = holder
    for name in ("extra_content", "google", "thought"):
        value = value.get(name) if is_object(value) else None
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _as_reasoning(piece: Piece) -> Piece:
    return Text("reasoning", piece.text) if isinstance(piece, Text) and piece.kind == "text" else piece


def _is_own_list(value: object) -> bool:
    return is_array(value) and bool(value)


def _is_call_list(name: str, value: object) -> bool:
    """Return whether a member of a delta is a list from which calls are read."""
    return name in TOOL_USE_LISTS and is_array(value)


def _has_list(holder: Mapping[str, Any]) -> bool:
    return any(is_array(holder.get(key)) for key in TOOL_USE_LISTS)


def is_legacy(item: Mapping[str, Any]) -> bool:
    """Return whether the choice has `text` and neither a delta nor a message, as in legacy Completions."""
    return "text" in item and item.get("delta") is None and item.get("message") is None


def is_completion(value: Mapping[str, Any]) -> bool:
    """Return whether every choice is a legacy Completions choice with a finish reason."""
    choices = value.get("choices")
    if not is_array(choices) or not choices or not is_blank_error(value.get("error")):
        return False
    reasons = [item.get("finish_reason") for item in choices if is_object(item) and is_legacy(item)]
    return len(reasons) == len(choices) and all(isinstance(reason, str) and reason.strip() for reason in reasons)


def _finish_reason(item: Mapping[str, Any], path: Path, notes: Anomalies) -> str | None:
    """Return the finish reason from `finish_reason` or `finishReason`, or None if both are absent, blank, or a word
    such as `null`.
    """
    for key in ("finish_reason", "finishReason"):
        reason = notes.a_text(item, path, key)
        if reason in ABSENT_REASONS:
            notes.mark_misread("finish_word")  # clients treat the word as a finish reason
        elif reason.strip():
            if key != "finish_reason":
                notes.mark_misread("other_member")
            return reason
    return None


def _is_whole(chunk: Chunk, item: Mapping[str, Any], path: Path, *, final: bool) -> bool:
    """Return whether `message` is a complete message.

    Some gateways repeat every delta, or all earlier deltas, in `message`. A repetition is not a complete message.
    """
    if item.get("delta") is None or chunk.value.get("object") == "chat.completion":
        return True
    return final and chunk.payload.raw(*path, "message") != chunk.payload.raw(*path, "delta")


def _joined(pieces: list[Piece], kind: str) -> str:
    return "".join([piece.text for piece in pieces if isinstance(piece, Text) and piece.kind == kind])
