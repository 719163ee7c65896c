"""`Writer`: reuse unchanged source objects, keep members of the target's dialect, and record all other members as
losses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._json import pair_escapes
from streamweld.history.chat_reasoning import DETAILS, REASONING_ITEMS
from streamweld.history.model import (
    MISSING,
    Media,
    NestedPath,
    Opaque,
    SharedMember,
    Text,
    arguments_object,
    json_text,
    pointer,
    repeats_keys,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld.history.context import Context
    from streamweld.history.model import Call, Origin, Part, Reasoning, Result, Turn

__all__ = ["Writer", "result_content"]

_NO_MEMBER: Final = "the target does not have this member"


class Writer:
    """Writes one history in one dialect.

    Attributes:
        rewrites_all: whether no source object can be reused and the model has a field for every member. This condition
            is checked once per history, not for every block.
        approvals: whether the history has approvals of calls.
    """

    def __init__(self, context: Context, turns: list[Turn]) -> None:
        self.context = context
        self.dialect: str = context.family
        found = context.survey(turns)
        self.approvals: bool = found.approvals
        self.rewrites_all: bool = found.bare and context.family not in found.dialects
        self._written_origins: set[int] = set()  # id() of origins whose members have been written or recorded as losses
        self._lost: set[int] = set()
        self._recorded: set[str] | None = None

    def reusable_message(self, parts: Sequence[Part], origin: Origin | None = None) -> Any:
        """Return the source message of these parts, or None if a part of the message is missing or was changed."""
        if self.rewrites_all:
            return None
        if not parts:
            empty = origin is not None and origin.dialect == self.dialect and origin.count == 0
            return origin.raw if empty and origin is not None else None
        first = parts[0].origin
        if first is None or first.dialect != self.dialect or len(parts) != first.count or first.stale:
            return None
        for at, part in enumerate(parts):
            if part.touched or part.origin is not first or part.at != at:
                return None
        return first.raw

    def results_and_user(self, turns: list[Turn], at: int) -> tuple[Sequence[Part], int]:
        """Return the results of a turn, with the user content after them if both belong in one message.

        The two belong in one message if they came from one message, or if the target requires it. Also return the index
        of the next turn.
        """
        parts = turns[at].parts
        at += 1
        if at == len(turns) or not self._joins(parts, turns[at]):
            return parts, at
        both = list(parts)
        while at < len(turns) and self._joins(both, turns[at]):
            both += turns[at].parts
            at += 1
        return both, at

    def _joins(self, parts: Sequence[Part], after: Turn) -> bool:
        if after.role == "assistant" or after.role not in ("user", "tool"):
            return False
        shared = bool(after.parts) and after.parts[0].origin is not None and after.parts[0].origin is parts[-1].origin
        return shared or self.context.fact("alternation") == "merge"

    def reusable_block(self, part: Part) -> Any:
        """Return the block that this part was read from, or None if the part was changed."""
        if self.rewrites_all:
            return None
        own = part.origin is not None and part.origin.dialect == self.dialect and not part.touched
        return part.raw if own else None

    def own(self, part: Part) -> bool:
        """Return whether the part was read from this dialect."""
        return part.origin is not None and part.origin.dialect == self.dialect

    def extra_members(self, part: Part) -> dict[str, Any]:
        """If the block was read from this dialect, return its members for which the model has no field.

        Members of other dialects are returned only if the target also has them. All other members are recorded as
        losses.
        """
        if not part.extra:
            return {}
        mine = self.own(part)
        own = {
            str(name): value
            for name, value in part.extra.items()
            if isinstance(name, SharedMember) or (mine and not isinstance(name, NestedPath))
        }
        if id(part) not in self._lost:
            self._lost.add(id(part))
            why = (
                "streamweld rewrote the block, and the new block cannot contain this member"
                if self.own(part)
                else _NO_MEMBER
            )
            left = {name: value for name, value in part.extra.items() if name not in own}
            self.context.lose_members(left, part.path, why)
        return own

    def lose_extra_members(self, part: Part) -> None:
        """Record the extra members of a block as losses, because only its text can be written."""
        if part.extra:
            self.context.lose_members(part.extra, part.path, "only the text of this part can be written")

    def message_members(self, turn: Turn, parts: Sequence[Part]) -> Mapping[str, Any]:
        """Return the members of the turn's messages for which the model has no field.

        The members of each message are returned only once.

        If several messages have the same member, the last value is used.
        """
        if self.rewrites_all:
            return turn.marks
        out: dict[str, Any] = {}
        origins = _origins(turn, parts)
        for origin in origins[1:]:
            if origin.dialect == self.dialect and pointer(origin.path) not in self._merged():
                self.context.edit("roles_merged", origin.path, "merged into the preceding message")
        for origin in origins:
            if id(origin) in self._written_origins:
                continue
            self._written_origins.add(id(origin))
            if not origin.extra:
                continue
            own = origin.dialect == self.dialect
            kept = {name: value for name, value in origin.extra.items() if own and not isinstance(name, NestedPath)}
            left = {name: value for name, value in origin.extra.items() if name not in kept or name in out}
            self.context.lose_members(
                left,
                origin.path,
                "streamweld rewrote the message, and the new message cannot contain this member" if own else _NO_MEMBER,
            )
            out = {**kept, **out}
        return {**out, **turn.marks} if turn.marks else out

    def _merged(self) -> set[str]:
        """Return the paths of messages that an earlier pass recorded as merged."""
        if self._recorded is None:
            self._recorded = {edit.path for edit in self.context.edits if edit.rule == "roles_merged"}
        return self._recorded

    def arguments_object(self, call: Call) -> dict[str, Any] | None:
        """Return the arguments as an object, or None if they are not a JSON object.

        Records a loss for repeated keys, and an edit for lone surrogates that are written as escapes.
        """
        value, text = arguments_object(call), call.arguments
        # Most argument texts have exactly one colon per key. Only argument texts with more colons have to be checked
        # for repeated keys.
        if value and text is not None and text.count(":") != len(value) and repeats_keys(text, value):
            why = "the target's arguments are an object, which keeps only the last value of a repeated key"
            self.context.lose("arguments", call.path, why, call.arguments)
        if value and text is not None and pair_escapes(text) != text:
            what = "replaced a lone surrogate (half of a UTF-16 pair)"
            self.context.edit("text_surrogate", call.path, what, text)
        return value

    def lose_proof(self, part: Reasoning, *written: str) -> None:
        """Record the signature, the encrypted content, and the id in a Chat message, of reasoning as losses, unless
        they are written. The id of a Responses item has no meaning for another server.
        """
        item_id = part.item_id if part.member in (DETAILS, REASONING_ITEMS) else None
        for name, value in (("signature", part.signature), ("encrypted", part.encrypted), ("item_id", item_id)):
            if value and name not in written:
                self.context.lose(name, part.path, "the target has no member for it in reasoning of this form", value)

    def lose_part(self, part: Part) -> None:
        """Record the loss of a part that the target does not allow in this message."""
        self.context.lose(
            type(part).__name__.lower(), part.path, "the target does not allow this part in this message", part.raw
        )


def _origins(turn: Turn, parts: Sequence[Part]) -> list[Origin]:
    found: dict[int, Origin] = {}
    last: Origin | None = None
    for part in parts:
        if part.origin is not last and part.origin is not None:
            last = part.origin
            found[id(last)] = last
    if turn.origin is not None and not found:
        return [turn.origin]
    return list(found.values())


def result_content(result: Result) -> str | list[Text | Media | Opaque]:
    """Return the content of a result, for dialects whose results cannot be JSON values.

    The content is a string if the result is a JSON value or plain text; otherwise, it is the list of parts.
    """
    if result.value is not MISSING:
        return json_text(result.value, result.path) if not isinstance(result.value, str) else result.value
    parts = result.parts
    if not parts:
        return ""
    only = parts[0]
    if len(parts) == 1 and isinstance(only, Text) and not only.extra:
        return only.text
    return list(parts)
