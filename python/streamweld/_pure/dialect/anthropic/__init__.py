"""Decodes Anthropic Messages streams, and complete `type: message` bodies, into wire deltas.

Handles the events of a stream in order, and the members of a message. The module `blocks` decodes the content blocks.
The assembler determines which call a fragment belongs to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.anomalies import Anomalies
from streamweld._pure.dialect.anthropic.blocks import Block, BlockReader
from streamweld._pure.dialect.anthropic.fields import (
    CLIENTS,
    EVENT_FIELDS,
    EVENTS,
    MESSAGE_DELTA_FIELDS,
    MESSAGE_FIELDS,
    READ_NAMES,
    SPEC,
    is_read,
    type_of,
)
from streamweld._pure.dialect.upstream_error import (
    ErrorFields,
    is_bare,
    is_blank_error,
    is_notice,
    is_problem,
    is_stated,
    read_error,
    reports_failure,
    reports_success,
    text_error,
)
from streamweld._pure.dialect.usage_counts import counts_of, read_counts
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.members import as_object, leftovers
from streamweld._pure.model.unmodelled import Members, OtherEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.json.members import Raw
    from streamweld._pure.json.scanner import Path, Payload
    from streamweld._pure.model.output import Output
    from streamweld._pure.model.unmodelled import MembersOf

COUNTS = counts_of(SPEC["usage"])
_NAMED = EVENTS - {"message"}  # event names that can replace a missing type; an unnamed event is called `message`
_NOTES = frozenset({"ping", "message_stop"})
_TAIL = frozenset({"content_block_delta", "message_delta", "message_stop", "error"})


class AnthropicDecoder:
    """Decodes the payloads of one stream, which always has a single choice."""

    __slots__ = (
        "_assembler",
        "_blocks",
        "_id",
        "_out",
        "_reason",
        "_started",
        "_streamed",
        "_reported_at_start",
        "ended",
    )

    def __init__(self, config: Mapping[str, Any], assembler: Assembler, out: Output) -> None:
        limits: Mapping[str, int | None] = config["limits"]
        self._assembler = assembler
        self._out = out
        self._blocks = BlockReader(assembler, out, limits["max_tool_index"])
        self._id: str | None = None
        self._started = False
        self._streamed = False  # a block was streamed, so a complete message only repeats the blocks
        self._reason = False  # the finish reason has been emitted
        self._reported_at_start = ""  # the stop reason in `message_start`, used if no other stop reason arrives
        self.ended = False

    @staticmethod
    def is_body(value: object) -> bool:
        """Return whether a payload outside an event stream is a complete message, or an error in place of one."""
        if not is_object(value):
            return False
        if type_of(value) in ("message", "error") or _reports_error(value):
            return True
        return not is_blank_error(value.get("error"))

    @staticmethod
    def may_be_json_line(value: object) -> bool:  # noqa: ARG004
        """Return False, because a body contains one complete message, so no further document can follow."""
        return False

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
        """Return whether a document that follows a broken document is an event with usable data or an error."""
        return is_object(value) and (type_of(value) in _TAIL or value.get("error") is not None)

    @staticmethod
    def is_without_output(value: object) -> bool:
        """Return whether the event has a type that never has content.

        An event without content is not an anomaly, even after the end of the stream.
        """
        return is_object(value) and type_of(value) in _NOTES

    def decode(self, payload: Payload, event: str, *, recovered: bool = False) -> None:
        """Decode a JSON payload. `recovered`: whether the payload follows a broken document."""
        value = payload.value
        if not is_object(value):
            if event == "error":
                notes = Anomalies(self._out, self._assembler, payload, (), is_read)
                self._error(read_error(payload, (), value), payload.text, notes)
            else:
                self._other_event(payload, None if event == "message" else event)
            return
        notes = Anomalies(self._out, self._assembler, payload, (), is_read)
        kind = type_of(value) or (event if event in _NAMED else "")
        if (
            kind == "error"
            or event == "error"
            or (kind not in EVENTS and is_stated(value.get("error")))
            or (
                kind not in EVENTS
                and not is_notice(event)
                and (not is_blank_error(value.get("error")) or _reports_error(value))
            )
        ):
            error = value.get("error")
            if event != "error":  # clients raise only if the event's name is `error`
                self._name("error", is_good=type_of(value) == "error" and is_object(error))
            found = read_error(payload, (), value) if error is None else read_error(payload, ("error",), error)
            self._error(found, payload.text, notes)
            return
        if kind in READ_NAMES and not (event in READ_NAMES and type_of(value)):
            self._name(kind, is_good=bool(type_of(value)))  # clients would ignore the event under its present name
        if not recovered or kind in _TAIL:
            self._event(kind, payload, value, event, notes, recovered=recovered)
        notes.report()

    def marker(self) -> None:
        """Handle `[DONE]`, which some gateways send. The marker ends the message only after a stop reason."""
        if self._reason or self._reported_at_start:
            self._out.mark_misread("done_marker")  # clients wait for `message_stop`
            self._done()

    def text(self, text: str) -> None:
        """Report a payload that is not JSON as an upstream error."""
        self._error(text_error(text), text, None)

    def flush(self) -> None:
        """Emit the held blocks and the `compaction` block before the stream closes."""
        self._blocks.finish()
        if not self._reason and not self._blocks.ends_with_answer:
            # The latest block is not an answer, so the provider was still running a tool. The response is therefore
            # truncated, even if the policy accepts a missing terminal marker.
            self._assembler.cut()

    def _name(self, name: str, *, is_good: bool) -> None:
        """Rename an event to the name by which clients recognize it.

        If the event's data does not have the form that clients expect, mark the event for rewriting instead.
        """
        if is_good:
            self._out.rename(name)
        else:
            self._out.mark_misread("event_name")

    def _check(self, name: str, value: Mapping[str, Any]) -> None:
        """Mark the event for repair if an object of the type `name` lacks members that clients need."""
        if not CLIENTS.suit(name, value):
            self._out.leave_out("member_type")

    def _event(
        self, kind: str, payload: Payload, value: dict[str, Any], event: str, notes: Anomalies, *, recovered: bool
    ) -> None:
        name = None if event == "message" else event
        match kind:
            case "content_block_delta":
                self._check(kind, value)
                delta = notes.an_object(value, (), "delta")
                text = value.get("delta")
                if isinstance(text, str) and not recovered:
                    self._begin()
                    self._blocks.bare_delta(text, self._blocks.index(payload, value))
                if delta is not None:
                    self._begin()
                    extra = leftovers(payload, (), value, EVENT_FIELDS)
                    block = Block(payload, delta, ("delta",), notes, name, extra)
                    if not self._blocks.delta(block, self._blocks.index(payload, value), recovered=recovered):
                        self._unknown(payload, name)
            case "content_block_start":
                inner = notes.an_object(value, (), "content_block")
                if inner is None:
                    self._out.mark_misread("not_opened")  # clients expect a block at this index
                else:
                    self._begin()
                    self._streamed = True
                    extra = leftovers(payload, (), value, EVENT_FIELDS)
                    block = Block(payload, inner, ("content_block",), notes, name, extra)
                    self._blocks.start(block, self._blocks.index(payload, value))
            case "content_block_stop":
                self._blocks.stop(self._blocks.index(payload, value), leftovers(payload, (), value, EVENT_FIELDS))
            case "message_delta":
                self._message_delta(payload, value, notes)
            case "message_start":
                self._check(kind, value)
                message = notes.an_object(value, (), "message")
                self._message_start(payload, message or {}, leftovers(payload, (), value, EVENT_FIELDS), name, notes)
            case "message_stop":
                self._begin()
                self._blocks.end()
                extra = leftovers(payload, (), value, EVENT_FIELDS)
                self._out.keep(Members("stop", extra))
                self._leave(extra)
                notes.report()
                self._done()
            case "message":
                self._whole_message(payload, value, name, notes)
            case "ping":
                pass
            case _:
                self._other_event(payload, name)

    # The message

    def _begin(self) -> None:
        """Start the message if there was no `message_start`, so that even a message without output is closed."""
        if not self._started:
            self._out.miss_opening()  # without `message_start`, clients have no message or raise
            self._start({}, None, None)

    def _start(self, extra: Raw, identity: str | None, model: str | None) -> None:
        self._started = True
        self._id = identity
        self._assembler.started(identity, model, None, as_object(extra))
        self._assembler.complete_start(identity, model, None)  # content may have started the message
        self._assembler.text(0, "", None)

    def _message_start(
        self, payload: Payload, message: dict[str, Any], extra: Raw, event: str | None, notes: Anomalies
    ) -> None:
        """Handle `message_start`. The first `message_start` starts the message, even if content arrived before it.

        A later `message_start` with another id restarts the response: the gateway has retried the request with another
        upstream, and the output of the first attempt is dropped (`stream_restarted`). Clients do not expect a restart:
        anthropic-python joins both attempts, and @anthropic-ai/sdk raises. Nothing is dropped if the first message
        already has a stop reason, if one of its calls is final and may already be running, or if the new id is missing
        or the same. The new blocks then belong to the first message (`message_repeated`), except blocks that repeat
        earlier blocks.
        """
        path = ("message",)
        identity = notes.clean(notes.a_text(message, path, "id")) or None
        adopts = self._started and self._id is None and not self._reason
        if adopts:
            # Content arrived before this event. The event is treated as the start of the current message, because that
            # message has no id yet.
            self._out.mark_misread("late_start")  # clients start over at a `message_start`
            self._id = identity
            self._blocks.start_late()
        elif self._started:
            if self._reason or identity is None or identity == self._id or self._assembler.has_reported_call(0):
                # Do not restart: the message is repeated, or the client may already have executed calls of the earlier
                # message.
                self._out.diagnose("message_repeated", detail=identity or "")
                self._assembler.complete_start(identity, message.get("model"), None)
                if identity is not None and identity == self._id:
                    self._blocks.repeat()
                    self._assembler.message_repeated(0)
                return
            self._assembler.restart(0)
            self._blocks.begin()
            self._id = identity
        self._check("message", message)
        own = leftovers(payload, path, message, MESSAGE_FIELDS)
        self._keep("message", own, "start_usage", payload, path, message)
        extra |= own
        if not self._started or adopts:
            self._start(extra, identity, notes.clean(notes.a_text(message, path, "model")) or None)
        else:
            self._leave(extra)
        reason = notes.a_text(message, path, "stop_reason")
        self._reported_at_start = notes.clean(reason) if reason.strip() else ""
        blocks = self._content(payload, message, path, event, notes)
        if blocks:
            self._out.mark_misread(
                "content_at_start"
            )  # clients would keep these blocks in addition to the streamed ones
        self._blocks.hold(blocks)
        self._usage(payload, message, path, notes, "start_usage")

    def _content(
        self, payload: Payload, message: Mapping[str, Any], path: Path, event: str | None, notes: Anomalies
    ) -> list[Block]:
        content = message.get("content")
        if not is_array(content):
            if content is not None:
                notes.shape((*path, "content"))
            return []
        blocks: list[Block] = []
        for position, item in enumerate(content):
            here = (*path, "content", position)
            if is_object(item):
                blocks.append(Block(payload, item, here, notes, event, {}))
            elif item is not None:
                notes.shape(here)
        return blocks

    def _message_delta(self, payload: Payload, value: dict[str, Any], notes: Anomalies) -> None:
        self._begin()
        self._blocks.end()
        self._check("message_delta", value)
        delta = notes.an_object(value, (), "delta")
        extra = leftovers(payload, (), value, EVENT_FIELDS)
        self._keep("end", extra, "end_usage", payload, (), value)
        if delta is not None:
            own = leftovers(payload, ("delta",), delta, MESSAGE_DELTA_FIELDS)
            self._keep("delta", own, "end_usage", payload, ("delta",), delta)
            # Some gateways put the usage next to the `stop_reason`.
            self._usage(payload, delta, ("delta",), notes)
            self._check("end", delta)
            extra = extra | own
        self._leave(extra)
        self._usage(payload, value, (), notes, "end_usage")
        usage = value.get("usage")
        if not (is_object(usage) and "output_tokens" in usage):
            notes.mark_misread("no_usage")  # clients take the token count from `message_delta`
        is_finished = delta is not None and self._finish(delta, ("delta",), notes)
        if not is_finished and self._finish(value, (), notes):
            notes.mark_misread("other_member")  # clients look only in `delta`

    def _whole_message(self, payload: Payload, message: dict[str, Any], event: str | None, notes: Anomalies) -> None:
        """Decode a complete message, which replaces or repeats the streamed message."""
        self._out.mark_misread("not_streamed")  # clients do not support a complete message as an event
        extra = leftovers(payload, (), message, MESSAGE_FIELDS)
        self._keep("message", extra, "start_usage", payload, (), message)
        if not self._started:
            identity = notes.clean(notes.a_text(message, (), "id")) or None
            self._start(extra, identity, notes.clean(notes.a_text(message, (), "model")) or None)
        else:
            self._leave(extra)
        for index, block in enumerate(self._content(payload, message, (), event, notes)):
            if self._streamed:
                self._blocks.restate(block, index)
            else:
                self._blocks.whole_block(block, index)
        self._usage(payload, message, (), notes)
        self._finish(message, (), notes)
        notes.report()
        self._done()

    def _usage(
        self, payload: Payload, holder: Mapping[str, Any], path: Path, notes: Anomalies, checked: str = ""
    ) -> None:
        """Merge a usage object. Usage objects are cumulative, so a missing count keeps its earlier value.

        `checked`: the key in `client_members` whose requirements the object must meet.
        """
        usage = notes.an_object(holder, path, "usage")
        if usage is not None:
            self._check(checked, usage)
            self._assembler.merge_usage(read_counts(usage, payload.raw(*path, "usage"), COUNTS))

    def _keep(
        self, of: MembersOf, extra: Raw, usage_of: MembersOf, payload: Payload, path: Path, holder: Mapping[str, Any]
    ) -> None:
        """Record the unknown members of an object, and all members of its usage, for the repair stage."""
        self._out.keep(Members(of, extra))
        usage = holder.get("usage")
        if is_object(usage):
            self._out.keep(Members(usage_of, leftovers(payload, (*path, "usage"), usage, frozenset())))

    def _finish(self, holder: Mapping[str, Any], path: Path, notes: Anomalies) -> bool:
        """Emit the stop reason in an object. Return False if the object has no stop reason."""
        reason = notes.a_text(holder, path, "stop_reason")
        if not reason.strip():
            return False
        self._blocks.finish()
        self._reason = True
        self._assembler.finish(0, notes.clean(reason))
        return True

    def _leave(self, extra: Raw) -> None:
        metadata = as_object(extra)
        if metadata is not None:
            self._assembler.choice_metadata(0, metadata)

    # The end of the message

    def _done(self) -> None:
        self._blocks.finish()
        if self._reported_at_start and not self._reason:
            self._out.mark_misread("reason_at_start")  # clients take the stop reason from `message_delta`
            self._assembler.finish(0, self._reported_at_start)
        self._assembler.done()
        self.ended = True

    def _error(self, error: ErrorFields, text: str, notes: Anomalies | None) -> None:
        self.flush()
        if notes is not None:
            error = error.cleaned(notes.clean)
            notes.report()
        self._assembler.upstream_error(error.code, error.kind, error.message, text.encode())

    def _other_event(self, payload: Payload, event: str | None) -> None:
        self._out.keep(OtherEvent(event, payload.text))
        self._unknown(payload, event)

    def _unknown(self, payload: Payload, event: str | None) -> None:
        self._assembler.unknown(event, payload.text.encode())


def _reports_error(value: Mapping[str, Any]) -> bool:
    """Return whether the value reports an error without an `error` member.

    The value reports an error if it has a message with a code or a type, or has another known error shape.
    """
    if type_of(value) in EVENTS:
        return False
    if is_problem(value):
        return True
    if is_notice(type_of(value)):
        return False
    if not type_of(value) and reports_failure(value):
        return True
    if not isinstance(value.get("message"), str) or reports_success(value):
        return False
    return value.get("code") is not None or value.get("type") is not None
