"""`Survey`: properties of a history, collected by examining every turn once.

These properties let a pass return at once if it has nothing to change.

`plain`, `paired`, `trailing` and `ascii` are true only if the survey can prove the property. For unusual content, these
properties are false, and the passes check the history themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.chat_members import COMMON
from streamweld.history.model import (
    MISSING,
    ApprovalRequest,
    ApprovalResponse,
    Call,
    Opaque,
    Reasoning,
    Result,
    Text,
)

if TYPE_CHECKING:
    from streamweld.history.model import Origin, Turn

__all__ = ["Survey"]

_SIDES: Final = frozenset({"user", "assistant", "tool"})


class Survey:
    """Properties of a list of turns.

    Attributes:
        turns: the list that was examined.
        calls: every call, in order.
        results: every result, in order.
        instructed: whether the history has a system or developer turn.
        joined: whether two consecutive turns have the same role.
        reasoned: whether the history has reasoning.
        signed_texts: whether any text has a signature.
        opaque: whether the history has content that only one dialect can represent, including in results.
        approvals: whether the history has approvals of calls.
        dialects: the dialects from which the parts were read.
        bare: whether the model has a field for every member of every message and block.
        beyond: all turns with a member for which the model has no field, or with opaque content, in order.
        common: whether every message is a Chat Completions message with only common members (`chat_members`).
        plain: every turn has parts and does not end with reasoning; all parts are reasoning, calls, non-blank texts
            that are not refusals, or results that consist of such texts or of a non-empty value.
        paired: every call has a unique id; every turn with calls is followed by exactly its results, in the same order;
            there are no other results.
        trailing: within each turn, a call is followed only by other calls.
        ascii: every part is an ASCII text, a call, or a result that consists of ASCII texts or of a value; arguments
            given as text are ASCII.
        values: the arguments and results that are JSON values, not texts.
    """

    __slots__ = (
        *("turns", "calls", "results", "instructed", "joined", "reasoned", "signed_texts", "opaque", "approvals"),
        *("dialects", "bare", "beyond", "common", "plain", "paired", "trailing", "ascii", "values"),
    )
    turns: list[Turn]
    calls: list[Call]
    results: list[Result]
    instructed: bool
    joined: bool
    reasoned: bool
    signed_texts: bool
    opaque: bool
    approvals: bool
    dialects: set[str]
    bare: bool
    beyond: list[Turn]
    common: bool
    plain: bool
    paired: bool
    trailing: bool
    ascii: bool
    values: list[Any]

    def __init__(self, turns: list[Turn]) -> None:
        calls: list[Call] = []
        results: list[Result] = []
        values: list[Any] = []
        beyond: list[Turn] = []
        instructed = joined = reasoned = signed_texts = opaque = approvals = False
        bare = common = plain = paired = trailing = ascii_only = True
        dialects: set[str] = set()
        seen: Origin | None = None  # origin of the previous part
        has_more = False  # whether the previous part's message has a member for which the model has no field
        dialect = ""  # dialect of the previous part's origin
        before = ""  # role of the previous turn
        call_ids: list[str] | None = None  # ids of the calls in the previous turn
        for turn in turns:
            role, parts = turn.role, turn.parts
            new_call_ids: list[str] | None = None  # ids of the calls in this turn
            answers: list[str] | None = None  # ids of the results in this turn
            if role == before:
                joined = True
            elif role not in _SIDES:
                instructed = True
            before = role
            if not parts or type(parts[-1]) is Reasoning:
                plain = False
            origin = turn.origin
            if origin is not seen and origin is not None:
                if origin.dialect != dialect:
                    dialect = origin.dialect
                    dialects.add(dialect)
                has_more = False
                if origin.extra is not COMMON:
                    common = False
                    if origin.extra:
                        bare, has_more = False, True
                seen = origin
            is_beyond = has_more and (origin is not None or (bool(parts) and parts[0].origin is seen))
            for part in parts:
                origin = part.origin
                if origin is not seen and origin is not None:
                    if origin.dialect != dialect:
                        dialect = origin.dialect
                        dialects.add(dialect)
                    has_more = False
                    if origin.extra is not COMMON:
                        common = False
                        if origin.extra:
                            bare, has_more, is_beyond = False, True, True
                    seen = origin
                if part.extra:
                    bare, is_beyond = False, True
                if new_call_ids is not None and type(part) is not Call:
                    trailing = False
                if type(part) is Text:
                    text = part.text
                    if not text or part.refusal or text.isspace():
                        plain = False
                    if not text.isascii():
                        ascii_only = False
                    if part.signature is not None:
                        signed_texts = True
                elif type(part) is Call:
                    calls.append(part)
                    arguments = part.arguments
                    if arguments is None:
                        values.append(part.input)
                    elif not arguments.isascii():
                        ascii_only = False
                    if new_call_ids is None:
                        new_call_ids = [part.call_id]
                    else:
                        new_call_ids.append(part.call_id)
                elif type(part) is Result:
                    results.append(part)
                    if answers is None:
                        answers = [part.call_id]
                    else:
                        answers.append(part.call_id)
                    for inner in part.parts:
                        if type(inner) is Text:
                            text = inner.text
                            if not text or inner.refusal or text.isspace():
                                plain = False
                            if not text.isascii():
                                ascii_only = False
                        else:
                            plain = ascii_only = False
                            opaque = opaque or type(inner) is Opaque
                        if inner.extra:
                            bare, is_beyond = False, True
                        if inner.origin is not None:
                            dialects.add(inner.origin.dialect)
                    if part.value is MISSING:
                        if not part.parts:
                            plain = False
                    else:
                        values.append(part.value)
                        if part.parts or part.value == "":
                            plain = False
                elif type(part) is Reasoning:
                    reasoned, ascii_only = True, False
                else:
                    plain = ascii_only = False
                    if type(part) is Opaque:
                        opaque = is_beyond = True
                    approvals = approvals or type(part) is ApprovalRequest or type(part) is ApprovalResponse
            if is_beyond:
                beyond.append(turn)
            if answers != call_ids or (answers is not None and (role != "tool" or len(answers) != len(parts))):
                paired = False
            if new_call_ids is not None and role != "assistant":
                paired = False
            call_ids = new_call_ids
        ids = {part.call_id for part in calls}
        self.turns, self.calls, self.results, self.dialects = turns, calls, results, dialects
        self.instructed, self.joined, self.reasoned, self.opaque = instructed, joined, reasoned, opaque
        self.approvals, self.signed_texts, self.values = approvals, signed_texts, values
        self.paired = paired and call_ids is None and len(ids) == len(calls) and "" not in ids
        self.beyond = beyond
        self.bare, self.common, self.plain, self.trailing, self.ascii = bare, common, plain, trailing, ascii_only

    def adopt(self, turns: list[Turn], calls: list[Call] | None = None, results: list[Result] | None = None) -> None:
        """Reuse this survey for another list of turns, without examining that list.

        The other list must have the same properties, except that reasoning and extra members may have been removed. In
        that case, `reasoned`, `plain`, `ascii`, `trailing`, `bare`, `common` and `dialects` may be out of date, which
        can only cause passes to examine more parts than necessary. `beyond` keeps the turns of the examined list.

        `calls`, `results`: the calls and results in the other list, if they are different objects.
        """
        self.turns = turns
        if calls is not None:
            self.calls = calls
        if results is not None:
            self.results = results
