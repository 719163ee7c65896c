"""What a history holds, found in one walk: by it a pass knows that it has nothing to do, without a walk of its own.

It knows the neutral model, no constraint and no pass. What it says is sure: `plain`, `paired` and `trailing` are true
only where nobody could object; anything unusual makes them false, and the pass looks for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld.history.model import MISSING, Call, Opaque, Reasoning, Result, Text

if TYPE_CHECKING:
    from streamweld.history.model import Origin, Turn

__all__ = ["Survey"]


class Survey:
    """The findings.

    Attributes:
        turns: the very list that was walked.
        calls: every call, in order.
        results: every result, in order.
        instructed: a turn is one of system or developer.
        joined: two turns in a row are of one side.
        reasoned: there is reasoning.
        opaque: there is what only one dialect can say.
        dialects: those that anything was read from.
        bare: the model has a word for every member of every message and block.
        plain: every turn has parts, and what stands in them is reasoning, calls, texts that say something and are no
            refusals, and results of such texts or of a value that says something.
        paired: every call has an id of its own; behind every turn with calls stand its results, in the same order and
            with nothing else; there are no other results.
        trailing: nothing but calls stands behind a call of its turn.
    """

    __slots__ = (
        *("turns", "calls", "results", "instructed", "joined", "reasoned", "opaque"),
        *("dialects", "bare", "plain", "paired", "trailing"),
    )
    turns: list[Turn]
    calls: list[Call]
    results: list[Result]
    instructed: bool
    joined: bool
    reasoned: bool
    opaque: bool
    dialects: set[str]
    bare: bool
    plain: bool
    paired: bool
    trailing: bool

    def __init__(self, turns: list[Turn]) -> None:
        self.turns = turns
        calls: list[Call] = []
        results: list[Result] = []
        instructed = joined = reasoned = opaque = False
        bare = plain = paired = trailing = True
        dialects: set[str] = set()
        seen: Origin | None = None  # the last one looked at
        before = ""  # the role of the turn before
        asked: list[str] = []  # the ids of the calls in it
        for turn in turns:
            role, parts = turn.role, turn.parts
            called, told = len(calls), len(results)
            if role == before:
                joined = True
            elif role not in ("user", "assistant", "tool"):
                instructed = True
            before = role
            if not parts:
                plain = False
            origin = turn.origin
            if origin is not seen and origin is not None:
                dialects.add(origin.dialect)
                bare = bare and not origin.extra
                seen = origin
            for part in parts:
                origin = part.origin
                if origin is not seen and origin is not None:
                    dialects.add(origin.dialect)
                    bare = bare and not origin.extra
                    seen = origin
                if part.extra:
                    bare = False
                if type(part) is Text:
                    text = part.text
                    if not text or part.refusal or text.isspace():
                        plain = False
                elif type(part) is Call:
                    calls.append(part)
                    continue
                elif type(part) is Result:
                    results.append(part)
                    for inner in part.parts:
                        if type(inner) is not Text or not inner.text or inner.refusal or inner.text.isspace():
                            plain = False
                        if inner.extra:
                            bare = False
                        if inner.origin is not None:
                            dialects.add(inner.origin.dialect)
                    if part.value is MISSING:
                        plain = plain and bool(part.parts)
                    elif part.parts or part.value == "":
                        plain = False
                elif type(part) is Reasoning:
                    reasoned = True
                else:
                    plain = False
                    opaque = opaque or type(part) is Opaque
                if len(calls) > called:
                    trailing = False
            if asked:
                answered = [part.call_id for part in results[told:]]
                paired = paired and answered == asked and len(parts) == len(answered) and role == "tool"
            elif len(results) > told:
                paired = False
            asked = []
            if len(calls) > called:
                asked = [part.call_id for part in calls[called:]]
                paired = paired and role == "assistant" and len(results) == told
        ids = {part.call_id for part in calls}
        self.calls, self.results, self.dialects = calls, results, dialects
        self.instructed, self.joined, self.reasoned, self.opaque = instructed, joined, reasoned, opaque
        self.paired = paired and not asked and len(ids) == len(calls) and "" not in ids
        self.bare, self.plain, self.trailing = bare, plain, trailing

    def stands_for(self, turns: list[Turn]) -> None:
        """Another list of which all of this is as true."""
        self.turns = turns
