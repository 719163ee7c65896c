"""Rules for Chat Completions chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from streamweld._pure.dialect.chat.readers import has_wrong_kind
from streamweld._pure.model.finish_words import is_alias
from streamweld.check.lifecycle import TRUNCATED, Json, Lifecycle, array, count, missing, object_, string
from streamweld.check.violation import Place, facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.check.violation import Report

__all__ = ["Chat"]

_SAME: Final = ("id", "model", "created")


class _Call:
    __slots__ = ("arguments", "custom", "id", "name", "position")

    def __init__(self, position: Place, *, custom: bool) -> None:
        self.position = position
        self.custom = custom  # True if the call's input is free-form text
        self.id: str | None = None
        self.name: str | None = None
        self.arguments = Json()


class _Choice:
    __slots__ = ("called", "calls", "finish", "role", "started")

    def __init__(self) -> None:
        self.started = False
        self.role: str | None = None
        self.finish: str | None = None
        self.called = False  # True after a tool call or a legacy function_call
        self.calls: dict[int, _Call] = {}


class Chat(Lifecycle):
    """Checks chunks with `choices[].delta`, and the final `[DONE]`."""

    dialect: ClassVar[str] = "chat"

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._facts = facts("chat")
        self._same: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}
        self._ids: set[tuple[int, str]] = set()
        self._usage = False
        self._error = False
        self._done = False

    def event(self, value: dict[str, Any], name: str, identifier: str) -> None:
        del name, identifier  # this dialect has no event names or event ids
        if self._done:
            self.once("after_done")
            return
        if value.get("error") is not None or value.get("object") == "error":
            self._error = True
            self.record("error_payload")
            if "choices" not in value:
                return
        choices = array(value, "choices")
        if choices is None:
            self.record("no_choices")
            return
        self._check_envelope(value)
        self._usage_of(value, choices)
        for entry in choices:
            index = count(cast("dict[str, Any]", entry), "index") if isinstance(entry, dict) else None
            if index is None:
                self.record("choice_index")
            else:
                self._choice(index, cast("dict[str, Any]", entry))

    def marker(self) -> None:
        if self._done:
            self.once("after_done", "[DONE]")
        self._done = True

    def end(self) -> None:
        for index, choice in sorted(self._choices.items()):
            self._end_choice(index, choice)
        if not self._done and not self._error:
            self.record("done_missing")

    def _check_envelope(self, value: dict[str, Any]) -> None:
        lacking = missing(value, self._facts["required"])
        if lacking:
            self.once("envelope", lacking)
        if has_wrong_kind(value):
            self.once("wrong_kind")
        kind = value.get("object")
        if "object" not in value and _has_content(value):
            self.once("object_missing")
        elif kind != "chat.completion.chunk":
            self.once("object", repr(kind))
        for member in _SAME:
            found = value.get(member)
            if found in (None, "", 0):
                continue
            if self._same.setdefault(member, found) != found:
                self.once(f"{member}_changes", f"{self._same[member]} and {found}")

    def _usage_of(self, value: dict[str, Any], choices: list[Any]) -> None:
        usage = object_(value, "usage")
        if usage is None:
            if self._usage and choices:
                self.once("usage_not_last")
            return
        if choices:
            self.once("usage_with_choices")
        if self._usage:
            self.once("usage_repeated")
        self._usage = True
        lacking = missing(usage, self._facts["usage"])
        if lacking:
            self.once("usage_fields", lacking)

    def _choice(self, index: int, entry: dict[str, Any]) -> None:
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = _Choice()
            self.remember()
        delta = object_(entry, "delta")
        if delta is None:
            self.once("delta_missing")
            delta = {}
        role = string(delta, "role")
        if not choice.started:
            choice.started = True
            if not role:
                self.record("role_missing", f"choice {index}")
        elif role and choice.role:
            self.once("role_repeated", f"choice {index}")
        choice.role = choice.role or role
        calls = delta.get("tool_calls")
        if choice.finish is not None and (calls or any(delta.get(member) for member in self._facts["content"])):
            self.record("after_finish", f"choice {index}")
        choice.called = choice.called or bool(calls or delta.get("function_call"))
        if isinstance(calls, list):
            for call in cast("list[object]", calls):
                self._call(index, choice, cast("dict[str, Any]", call) if isinstance(call, dict) else {})
        self._finish(index, choice, entry)

    def _finish(self, index: int, choice: _Choice, entry: dict[str, Any]) -> None:
        reason = entry.get("finish_reason")
        if reason is None:
            return
        if choice.finish is not None:
            if choice.finish == reason:
                self.once("finish_repeated", f"choice {index}: {reason}")
            else:
                self.record("finish_differs", f"choice {index}: {choice.finish}, then {reason}")
            return
        choice.finish = str(reason)
        if reason not in self._facts["finish"]:
            self.record("finish_alias" if is_alias("chat", choice.finish) else "finish_unknown", repr(reason))
        called = choice.called
        if reason in ("tool_calls", "function_call") and not called:
            self.record("finish_without_calls", f"choice {index}")
        elif reason == "stop" and called:
            self.record("finish_hides_calls", f"choice {index}")

    def _call(self, choice_index: int, choice: _Choice, entry: dict[str, Any]) -> None:
        index = count(entry, "index")
        if index is None:
            self.record("call_index", f"choice {choice_index}: {entry.get('index')!r}")
            return
        where = f"choice {choice_index}, call {index}"
        function = object_(entry, "function") or object_(entry, "custom") or {}
        identifier, name = string(entry, "id"), string(function, "name")
        call = choice.calls.get(index)
        if call is None:
            if index != len(choice.calls):
                self.record("call_index_order", f"{where} after {len(choice.calls)} others")
            call = choice.calls[index] = _Call(self.report.position, custom="custom" in entry)
            self._head(where, (choice_index, identifier or ""), name)
            call.id, call.name = identifier, name
            self.remember(identifier, name)
        else:
            if identifier and call.id and identifier != call.id:
                self.record("call_id_differs", f"{where}: {call.id}, then {identifier}")
            elif identifier or name:
                self.once("call_head_repeated", f"{where}: {identifier or ''} {name or ''}".rstrip())
            call.id, call.name = call.id or identifier, call.name or name
        arguments = function.get("arguments", function.get("input"))
        if isinstance(arguments, str):
            if not call.custom:
                call.arguments.add(arguments)
        elif arguments is not None:
            self.record("arguments_type", f"{where}: {type(arguments).__name__}")

    def _head(self, where: str, identifier: tuple[int, str], name: str | None) -> None:
        """Check the first fragment of a tool call."""
        lacking = [word for word, there in (("id", identifier[1]), ("function.name", name)) if not there]
        if lacking:
            self.record("call_head_missing", f"{where}: {', '.join(lacking)}")
        if identifier[1]:
            if identifier in self._ids:
                self.record("call_id_repeated", f"{where}: {identifier[1]}")
            self._ids.add(identifier)

    def _end_choice(self, index: int, choice: _Choice) -> None:
        if choice.finish is None and not self._error:
            self.record("finish_missing", f"choice {index}")
        cut = choice.finish not in ("tool_calls", "stop")
        for number, call in sorted(choice.calls.items()):
            if call.custom:
                continue
            fault = call.arguments.fault()
            where = f"choice {index}, call {number}"
            if call.arguments.length == 0:
                if not cut:
                    self.report.record("chat.arguments_empty", where, call.position)
            elif fault and not (cut and fault == TRUNCATED):
                self.report.record("chat.arguments_not_object", f"{where}: {fault}", call.position)


def _has_content(chunk: Mapping[str, Any]) -> bool:
    """Return whether a chunk has token counts, or a choice with a nonempty delta or a finish reason.

    Choices of the legacy Completions API have `text` instead of a delta, and their chunks have a different object type.
    """
    entries = cast("list[Any]", array(chunk, "choices") or [])
    choices: list[dict[str, Any]] = [entry for entry in entries if isinstance(entry, dict)]
    if chunk.get("usage"):
        return not any("text" in choice for choice in choices)
    return any(choice.get("delta") or (choice.get("finish_reason") and "text" not in choice) for choice in choices)
