"""Rules for the AI SDK's UI message stream (v1): the requirements of its reducer and of its chunk schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from streamweld.check.lifecycle import Lifecycle, missing, string
from streamweld.check.violation import facts

if TYPE_CHECKING:
    from streamweld.check.violation import Report

__all__ = ["Ui"]


class Ui(Lifecycle):
    """Checks `start`, steps, parts, `finish` and `[DONE]`."""

    dialect: ClassVar[str] = "ai-sdk-ui"

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._facts = facts("ai-sdk-ui")
        self._first = True
        self._starts = 0
        self._step = False
        self._open: set[tuple[str, str]] = set()  # (text or reasoning, id) of this step
        self._streaming: set[str] = set()  # ids of calls whose input is being streamed
        self._calls: set[str] = set()
        self._available: set[str] = set()
        self._approvals: set[str] = set()
        self._ended = False  # a finish or abort chunk was received
        self._error = False
        self._done = False

    def event(self, value: dict[str, Any], name: str, identifier: str) -> None:
        del identifier
        if self._done:
            self.once("after_done")
            return
        if name != "message":
            self.once("event_line", name)
        kind = string(value, "type")
        if kind is None:
            self.record("type_missing")
            return
        if self._first:
            self._first = False
            if kind not in ("start", "error", "abort"):
                self.record("start_missing", kind)
        if self._ended and kind not in ("message-metadata", "error"):
            self.once("after_finish", kind)
        required = ("data",) if kind.startswith("data-") else self._facts["required"].get(kind)
        if required is None:
            self.record("type_unknown", kind)
            return
        lacking = missing(value, required)
        if lacking:
            self.record("fields", f"{kind}: {lacking}")
        wrong = [
            member
            for member, wanted in (("id", str), ("transient", bool), ("toolCallId", str), ("errorText", str))
            if member in value and not isinstance(value[member], wanted)
        ]
        if wrong:
            self.record("fields", f"{kind}: the type of {', '.join(wrong)}")
        family, _, step = kind.rpartition("-")
        if family in ("text", "reasoning"):
            self._block(family, step, string(value, "id") or "")
        elif kind.startswith("tool-"):
            self._tool(kind, value)
        else:
            self._message(kind)

    def marker(self) -> None:
        if self._done:
            self.once("after_done", "[DONE]")
        self._done = True

    def end(self) -> None:
        if not self._ended and not self._error:
            self.record("finish_missing")
        self._unended()
        if not self._done:
            self.record("done_missing")

    def _message(self, kind: str) -> None:
        if kind == "start":
            self._starts += 1
            if self._starts > 1:
                self.record("start_repeated")
        elif kind == "start-step":
            if self._step:
                self.record("step", "start-step in an open step")
            self._step = True
        elif kind == "finish-step":
            if not self._step:
                self.record("step", "finish-step without start-step")
            self._step = False
            self._unended()
        elif kind == "reset-step":
            self._open.clear()
        elif kind in ("finish", "abort"):
            self._ended = True
            if kind == "finish":
                self._unended()
                if self._step:
                    self.record("step", "finish in an open step")
            self._open.clear()
        elif kind == "error":
            self._error = True

    def _unended(self) -> None:
        if not self._error and not (self._ended and not self._open):
            for family, identifier in sorted(self._open):
                self.record("unended", f"{family} {identifier}")
        self._open.clear()

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

    def _tool(self, kind: str, value: dict[str, Any]) -> None:
        identifier = string(value, "toolCallId") or ""
        if kind == "tool-input-start":
            if identifier in self._streaming:
                self.record("input_repeated", identifier)
            self._register_call(identifier)
            self._streaming.add(identifier)
        elif kind == "tool-input-delta":
            if identifier not in self._streaming:
                self.record("input_delta_unknown", identifier)
        elif kind in ("tool-input-available", "tool-input-error"):
            if identifier in self._available:
                self.record("input_repeated", identifier)
            self._register_call(identifier)
            self._available.add(identifier)
            self._streaming.discard(identifier)
        elif kind == "tool-approval-response":
            if string(value, "approvalId") not in self._approvals:
                self.record("approval_unknown", repr(value.get("approvalId")))
        else:
            if identifier not in self._calls:
                self.record("output_unknown", f"{kind}: {identifier}")
            if kind == "tool-approval-request":
                approval = string(value, "approvalId") or ""
                if approval in self._approvals:
                    self.record("approval_repeated", approval)
                else:
                    self._approvals.add(approval)
                    self.remember(approval)

    def _register_call(self, identifier: str) -> None:
        if identifier not in self._calls:
            self._calls.add(identifier)
            self.remember(identifier)
