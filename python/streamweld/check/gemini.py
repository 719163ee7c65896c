"""Rules for Gemini `streamGenerateContent` chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from streamweld._pure.model.finish_words import is_alias
from streamweld.check.lifecycle import Lifecycle, array, count, missing, object_, string
from streamweld.check.violation import facts

if TYPE_CHECKING:
    from streamweld.check.violation import Report

__all__ = ["Gemini"]


class Gemini(Lifecycle):
    """Checks chunks with `candidates[].content.parts[]`.

    A stream must end with a `finishReason`, followed by the end of the body.
    """

    dialect: ClassVar[str] = "gemini"

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._facts = facts("gemini")
        self._finished: dict[int, str | None] = {}  # the finish reason of each candidate so far
        self._same: dict[str, str] = {}
        self._tokens: dict[str, int] = {}
        self._ids: set[str] = set()
        self._over = False  # the response was blocked or failed, so no further content is expected
        self._usage = False

    def event(self, value: dict[str, Any], name: str, identifier: str) -> None:
        del name, identifier  # this dialect has no event names or event ids
        if "candidates" not in value:
            value = object_(value, "response") or value  # Code Assist wraps each chunk in `response`
        if "error" in value:
            self._over = True
            self.record("error_payload")
            return
        feedback = object_(value, "promptFeedback")
        if feedback is not None and feedback.get("blockReason"):
            self._over = True
        if not any(member in value for member in self._facts["chunk"]):
            self.record("no_candidates")
        for member in ("responseId", "modelVersion"):
            found = string(value, member)
            if found and self._same.setdefault(member, found) != found:
                self.once(f"{member}_changes", f"{self._same[member]} and {found}")
        usage = object_(value, "usageMetadata")
        if usage is not None:
            self._usage_of(usage)
        indices: set[int] = set()
        for entry in array(value, "candidates") or ():
            if isinstance(entry, dict):
                candidate = cast("dict[str, Any]", entry)
                index = 0 if "index" not in candidate else count(candidate, "index")
                if index is None:
                    self.record("index", repr(candidate["index"]))
                    continue
                if index in indices:
                    self.record("index", f"{index} twice in one chunk")
                indices.add(index)
                self._candidate(index, candidate)
            else:
                self.record("index", "a candidate that is not an object")

    def marker(self) -> None:
        self.once("done_marker")

    def end(self) -> None:
        if self._over:
            return
        if not self._finished:
            self.record("finish_missing", "no candidate")
        for index, reason in sorted(self._finished.items()):
            if reason is None:
                self.record("finish_missing", f"candidate {index}")
        if not self._usage:
            self.record("usage_missing")

    def _usage_of(self, usage: dict[str, Any]) -> None:
        self._usage = True
        for member in self._facts["growing"]:
            found = count(usage, member)
            if found is None:
                if member in usage:
                    self.record("usage_type", f"{member}: {usage[member]!r}")
                continue
            before = self._tokens.get(member, 0)
            if found < before:
                self.record("usage_decreases", f"{member}: {before}, then {found}")
            self._tokens[member] = max(found, before)

    def _candidate(self, index: int, candidate: dict[str, Any]) -> None:
        if index not in self._finished:
            self._finished[index] = None
            self.remember()
        content = object_(candidate, "content") or {}
        role = content.get("role")
        if role not in (None, "", "model"):
            self.once("role", repr(role))
        before = self._finished[index]
        parts = array(content, "parts") or ()
        if before is not None and any(_has_content(part) for part in parts):
            self.once("after_finish", f"candidate {index}, after {before}")
        for part in parts:
            if isinstance(part, dict):
                self._part(cast("dict[str, Any]", part))
            else:
                self.record("part_empty", "a part that is not an object")
        reason = string(candidate, "finishReason")
        if reason and reason != "FINISH_REASON_UNSPECIFIED":
            if before is not None:
                self.once("finish_repeated", f"candidate {index}: {before}, then {reason}")
            elif reason not in self._facts["finish"]:
                self.record("finish_alias" if is_alias("gemini", reason) else "finish_unknown", reason)
            self._finished[index] = reason

    def _part(self, part: dict[str, Any]) -> None:
        kinds = [kind for kind in self._facts["parts"] if kind in part]
        if not kinds and "thoughtSignature" not in part:
            self.record("part_empty", ", ".join(part)[:80])
        elif len(kinds) > 1:
            self.record("part_union", ", ".join(kinds))
        call = part.get("functionCall")
        if call is not None:
            self._call(cast("dict[str, Any]", call) if isinstance(call, dict) else {"args": call})

    def _call(self, call: dict[str, Any]) -> None:
        streamed = any(member in call for member in ("partialArgs", "willContinue")) or not call
        args = call.get("args")
        if args is not None and not isinstance(args, dict):
            self.record("args_not_object", type(args).__name__)
        if missing(call, ("name",)) and not streamed:
            self.record("call_name_missing")
        identifier = string(call, "id")
        if identifier and not streamed:
            if identifier in self._ids:
                self.record("call_id_repeated", identifier)
            else:
                self._ids.add(identifier)
                self.remember(identifier)


def _has_content(part: object) -> bool:
    """Return True if a part has content.

    Empty text counts as content if it comes with a finish reason or a signature.
    """
    if not isinstance(part, dict):
        return False
    members = cast("dict[str, Any]", part)
    return any(kind != "thoughtSignature" and kind != "thought" and content != "" for kind, content in members.items())
