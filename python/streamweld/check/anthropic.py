"""Rules for Anthropic Messages streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from streamweld._pure.model.finish_words import is_alias
from streamweld.check.lifecycle import Json, Lifecycle, array, count, missing, object_, string
from streamweld.check.violation import Place, facts

if TYPE_CHECKING:
    from streamweld.check.violation import Report

__all__ = ["Anthropic"]


class _Block:
    __slots__ = ("index", "input", "kind", "prefilled")

    def __init__(self, index: int, kind: str) -> None:
        self.index = index
        self.kind = kind
        self.input = Json()
        self.prefilled = False


class Anthropic(Lifecycle):
    """Checks `message_start`, content blocks in sequence, `message_delta` and `message_stop`."""

    dialect: ClassVar[str] = "anthropic"

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._facts = facts("anthropic")
        self._begun = False
        self._block: _Block | None = None
        self._next = 0
        self._ids: set[str] = set()
        self._client_calls = False
        self._cut_input: tuple[str, Place] | None = None
        self._delta = False  # a message_delta was received
        self._stop_reason: str | None = None
        self._output_tokens = 0
        self._stopped = False
        self._error = False

    def event(self, value: dict[str, Any], name: str, identifier: str) -> None:
        del identifier
        kind = string(value, "type")
        if kind is None:
            self.record("type_missing")
            return
        if name == "message":
            self.once("event_missing", kind)
        elif name != kind:
            self.record("event_differs", f"event: {name}, type {kind}")
        if kind == "ping":
            return
        if kind == "error":
            self._error = True
            if missing(object_(value, "error") or {}, ("type", "message")):
                self.record("error_fields")
            return
        if kind not in self._facts["required"]:
            self.once("event_unknown", kind)
            return
        lacking = missing(value, self._facts["required"][kind])
        if lacking:
            self.record("event_fields", f"{kind}: {lacking}")
        if self._stopped:
            self.once("after_message_stop", kind)
            return
        if kind == "message_start":
            self._start(value)
            return
        if not self._begun:
            self._begun = True
            self.record("message_start_missing", kind)
        handler = {
            "content_block_start": self._block_start,
            "content_block_delta": self._block_delta,
            "content_block_stop": self._block_stop,
            "message_delta": self._message_delta,
        }.get(kind)
        if handler is not None:
            handler(value)
        else:
            self._message_stop()

    def marker(self) -> None:
        self.once("done_marker")

    def end(self) -> None:
        if not self._stopped and not self._error:
            self.record("message_stop_missing")
            self._unstopped()

    def _start(self, value: dict[str, Any]) -> None:
        if self._begun:
            self.record("message_start_repeated")
            return
        self._begun = True
        message = object_(value, "message") or {}
        lacking = missing(message, self._facts["message"])
        if lacking:
            self.record("message_fields", lacking)
        if array(message, "content"):
            self.record("content_not_empty")
        usage = object_(message, "usage") or {}
        if "usage" in message and missing(usage, ("input_tokens", "output_tokens")):
            self.record("usage_missing", missing(usage, ("input_tokens", "output_tokens")))

    def _block_start(self, value: dict[str, Any]) -> None:
        index = count(value, "index")
        if self._block is not None:
            self.record("block_open", f"block {index} while block {self._block.index} is open")
        if index is None or index != self._next:
            self.record("index", f"{value.get('index')!r}, but the next index is {self._next}")
        if self._delta:
            self.record("after_message_delta", f"block {index}")
        block = object_(value, "content_block") or {}
        kind = string(block, "type") or ""
        self._next = (self._next if index is None else index) + 1
        self._block = _Block(self._next - 1, kind)
        lacking = missing(block, self._facts["blocks"].get(kind, ("type",)))
        if lacking:
            self.record("block_fields", f"{kind or 'block'}: {lacking}")
        if kind in self._facts["calls"]:
            self._client_calls = self._client_calls or kind == "tool_use"
            identifier = string(block, "id")
            if identifier in self._ids:
                self.record("tool_id_repeated", identifier)
            elif identifier:
                self._ids.add(identifier)
                self.remember(identifier)
            self._block.prefilled = bool(block.get("input"))

    def _block_delta(self, value: dict[str, Any]) -> None:
        index = count(value, "index")
        block = self._block
        if block is None or index != block.index:
            self.record("delta_unknown", f"block {value.get('index')!r}")
            return
        delta = object_(value, "delta") or {}
        kind = string(delta, "type")
        fitting = self._facts["deltas"].get(block.kind)
        if kind is None or (fitting is not None and kind not in fitting):
            self.record("delta_type", f"{kind} in a block of type {block.kind}")
        elif kind == "input_json_delta":
            piece = string(delta, "partial_json")
            if piece is None:
                self.record("event_fields", "input_json_delta: partial_json")
            else:
                if block.prefilled and piece:
                    block.prefilled = False
                    self.record("input_twice", f"block {index}")
                block.input.add(piece)

    def _block_stop(self, value: dict[str, Any]) -> None:
        index = count(value, "index")
        block = self._block
        if block is None or index != block.index:
            self.record("stop_unknown", f"block {value.get('index')!r}")
            return
        self._block = None
        fault = block.input.fault() if block.input.length else ""
        if fault:
            if self._cut_input is not None:
                self.report.record("anthropic.input_not_object", *self._cut_input)
            # Report invalid arguments only after the stop reason is known. Truncated arguments are not a violation if
            # the stop reason is a token limit.
            self._cut_input = (f"block {index}: {fault}", self.report.position)

    def _unstopped(self) -> None:
        if self._block is not None:
            self.record("block_unstopped", f"block {self._block.index}")
            self._block = None

    def _message_delta(self, value: dict[str, Any]) -> None:
        self._unstopped()
        self._delta = True
        delta = object_(value, "delta") or {}
        self._stop_reason = string(delta, "stop_reason") or self._stop_reason
        usage = object_(value, "usage") or {}
        tokens = count(usage, "output_tokens")
        if tokens is None:
            if "usage" in value:
                self.record("usage_missing", "output_tokens")
        elif tokens < self._output_tokens:
            self.record("usage_decreases", f"{self._output_tokens}, then {tokens}")
        self._output_tokens = max(self._output_tokens, tokens or 0)

    def _message_stop(self) -> None:
        self._unstopped()
        self._stopped = True
        if self._cut_input is not None:
            if self._stop_reason not in self._facts["cuts"]:
                self.report.record("anthropic.input_not_object", *self._cut_input)
            self._cut_input = None
        reason = self._stop_reason
        if not self._delta:
            self.record("message_delta_missing")
        elif reason is None:
            self.record("stop_reason_missing")
        elif reason not in self._facts["stop_reasons"]:
            self.record("stop_reason_alias" if is_alias("anthropic", reason) else "stop_reason_unknown", reason)
        elif reason == "tool_use" and not self._client_calls:
            self.record("stop_reason_contradicts", "tool_use without a tool_use block")
        elif reason in ("end_turn", "stop_sequence") and self._client_calls:
            self.record("stop_reason_contradicts", f"{reason} after a tool_use block")
