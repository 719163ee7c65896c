"""Rules for AI SDK stream parts, as LanguageModelV2 to V4 define them and as `streamText` emits them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from streamweld._pure.model.finish_words import is_alias
from streamweld.check.lifecycle import Json, Lifecycle, Text, array, missing, object_, string
from streamweld.check.violation import facts

if TYPE_CHECKING:
    from streamweld.check.violation import Report

__all__ = ["Parts"]


class _Input:
    __slots__ = ("ended", "name", "text")

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = Text()
        self.ended = False


class Parts(Lifecycle):
    """Checks `stream-start`, parts sent as start, delta and end, complete tool calls, and `finish`."""

    dialect: ClassVar[str] = "ai-sdk-parts"

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._facts = facts("ai-sdk-parts")
        self._consumer: bool | None = None  # whether `streamText` emitted these parts; None until the first part
        self._started = False
        self._open: set[tuple[str, str]] = set()  # (text or reasoning, id)
        self._inputs: dict[str, _Input] = {}
        self._unended: dict[str, _Input] = {}  # inputs without an end so far
        self._uncalled: dict[str, None] = {}  # ids of inputs that have no tool-call yet
        self._calls: set[str] = set()
        self._client_calls = False
        self._error = False
        self._finished = False

    def event(self, value: dict[str, Any], name: str, identifier: str) -> None:
        del name, identifier
        kind = string(value, "type")
        if kind is None:
            self.record("type_missing")
            return
        if self._consumer is None:
            self._consumer = kind in self._facts["consumer"]
        if kind not in self._facts["required"] and kind not in self._facts["consumer"]:
            self.once("type_unknown", kind)
            return
        if self._finished:
            self.once("after_finish", kind)
            return
        if not self._consumer:
            self._first(kind)
        lacking = missing(value, self._facts["required"].get(kind, ()))
        if self._consumer or "text" in value:
            lacking = lacking if lacking != "delta" else ""
        if lacking:
            self.record("fields", f"{kind}: {lacking}")
        family, _, step = kind.rpartition("-")
        if family in ("text", "reasoning"):
            self._block(family, step, string(value, "id") or "")
        elif family == "tool-input":
            self._input(step, value)
        elif kind == "tool-call":
            self._call(value)
        elif kind in ("tool-result", "tool-error"):
            if string(value, "toolCallId") not in self._calls:
                self.record("result_unknown", repr(value.get("toolCallId")))
        elif kind == "error":
            self._error = True
        elif kind in ("finish", "finish-step"):
            self._finish(kind, value)

    def marker(self) -> None:
        """Accept `[DONE]`, which gateways send at the end although the specification does not define it."""
        if not self._finished:
            self.once("marker_before_finish")

    def end(self) -> None:
        if not self._finished and not self._error:
            self.record("finish_missing")

    def _first(self, kind: str) -> None:
        if kind == "stream-start":
            if self._started:
                self.record("start_repeated")
        elif not self._started and kind not in ("raw", "error"):
            self.record("start_missing", kind)
        elif not self._started:
            return
        self._started = True

    def _block(self, family: str, step: str, identifier: str) -> None:
        key = (family, identifier)
        if step == "start":
            if key in self._open:
                self.record("open_twice", f"{family} {identifier}")
            else:
                self._open.add(key)
                self.remember(identifier)
        elif key not in self._open:
            self.record("delta_unknown" if step == "delta" else "end_unknown", f"{family} {identifier}")
        elif step == "end":
            self._open.discard(key)
            self.forget(identifier)

    def _input(self, step: str, value: dict[str, Any]) -> None:
        identifier = string(value, "id") or ""
        entry = self._inputs.get(identifier)
        if step == "start":
            if entry is not None or identifier in self._calls:
                self.record("input_repeated", identifier)
            if entry is None:
                self.remember(identifier)
            self._inputs[identifier] = self._unended[identifier] = _Input(string(value, "toolName") or "")
            if identifier not in self._calls:
                self._uncalled[identifier] = None
        elif entry is None or entry.ended:
            self.record("delta_unknown" if step == "delta" else "end_unknown", f"tool-input {identifier}")
        elif step == "delta":
            entry.text.add(string(value, "delta") or "")
        else:
            entry.ended = True
            self._unended.pop(identifier, None)

    def _call(self, value: dict[str, Any]) -> None:
        identifier = string(value, "toolCallId") or ""
        if identifier in self._calls:
            self.record("call_repeated", identifier)
        else:
            self._calls.add(identifier)
            self.remember(identifier)
            self._uncalled.pop(identifier, None)
        self._client_calls = self._client_calls or not value.get("providerExecuted")
        given = value.get("input")
        entry = self._inputs.get(identifier)
        if entry is not None:
            if not entry.ended:
                entry.ended = True
                self._unended.pop(identifier, None)
                self.record("call_before_end", identifier)
            if entry.name and entry.name != value.get("toolName"):
                self.record("call_name_differs", f"{entry.name}, then {value.get('toolName')}")
            if isinstance(given, str) and not entry.text.is_(given) and not (entry.text.length == 0 and given == "{}"):
                self.record("call_input_differs", identifier)
        if self._consumer or "input" not in value:
            return
        if not isinstance(given, str):
            self.record("call_input_type", f"{identifier}: {type(given).__name__}")
            return
        text = Json()
        text.add(given)
        if text.fault():
            self.record("call_input_json", f"{identifier}: {text.fault()}")

    def _finish(self, kind: str, value: dict[str, Any]) -> None:
        """Check the end of a model's response. In a stream that `streamText` emits, every step has such an end."""
        for family, identifier in sorted(self._open):
            self.record("unended", f"{family} {identifier}")
        self._open.clear()
        for identifier, entry in self._unended.items():
            entry.ended = True
            self.record("unended", f"tool-input {identifier}")
        self._unended.clear()
        if kind == "finish":
            self._finished = True
        reason = value.get("finishReason")
        unified = reason if isinstance(reason, str) else (object_(value, "finishReason") or {}).get("unified")
        if unified == "tool-calls":
            if self._uncalled:
                self.record("call_missing", ", ".join(islice(self._uncalled, 4)))
            if not self._client_calls and not self._inputs:
                self.record("finish_without_calls")
        elif unified is not None and unified not in self._facts["finish"]:
            alias = isinstance(unified, str) and is_alias("ai-sdk-parts", unified)
            self.record("finish_alias" if alias else "finish_unknown", repr(unified))
        elif unified is None and "finishReason" in value:
            self.record("fields", f"{kind}: finishReason.unified")
        if array(value, "usage") is not None or isinstance(value.get("usage"), str | int):
            self.record("fields", f"{kind}: usage is not an object")
