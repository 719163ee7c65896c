"""Sign the first call of each step if the target requires it, move signatures to the place where the target reads them,
and drop text signatures that the target cannot represent.

Constraints: `reasoning.dummy_signature`, `members`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.chat_reasoning import EXTRA_CONTENT, is_in_place, text_signature_member
from streamweld.history.model import Call, Text, changed, members_of, with_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["reads_extra_content", "run", "run_places", "run_texts"]

_SIGNED: Final = (Call, Text)  # parts that can have a signature, besides reasoning
_SIGNED_TEXTS: Final = frozenset({"gemini", "ai-sdk-model", "ai-sdk-ui"})  # dialects that can sign text


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with a signature, or a placeholder for a missing one, on the first call of each step.

    Steps of earlier turns are included. If only the current turn were signed, messages that were already sent would
    change in the next turn.
    """
    dummy = context.facts("reasoning").get("dummy_signature")
    if dummy is None:
        return turns
    found = context.survey(turns)
    out: list[Turn] = []
    new: dict[int, Call] = {}  # id() of a call -> its replacement
    for turn in turns:
        at, call = _first_call(turn.parts)
        if call is None or call.signature or call.extra.get("thoughtSignature"):
            out.append(turn)
            continue
        context.edit(
            "signature_dummy", call.path, f"added the documented placeholder signature to the call of {call.name!r}"
        )
        signed = new[id(call)] = changed(call, signature=dummy)
        out.append(with_parts(turn, (*turn.parts[:at], signed, *turn.parts[at + 1 :])))
    found.adopt(out, [new.get(id(call), call) for call in found.calls])
    return out


def run_places(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with the signatures of calls and texts in `extra_content`, at the path that Google reads."""
    found = context.survey(turns)
    if context.family not in found.dialects or found.common:
        return turns
    return [_placed(turn, context) for turn in turns]


def reads_extra_content(constraints: Mapping[str, Any]) -> bool:
    """Return whether the target reads signatures from `extra_content`."""
    return EXTRA_CONTENT in members_of(constraints.get("members")).get("call", ())


def _placed(turn: Turn, context: Context) -> Turn:
    parts: list[Part] = []
    altered = False
    for part in turn.parts:
        if isinstance(part, _SIGNED) and part.signature and part.origin and part.origin.dialect == context.family:
            holder = members_of(part.raw if isinstance(part, Call) else part.origin.raw)
            if EXTRA_CONTENT in holder and not is_in_place(holder, EXTRA_CONTENT):
                context.edit("signature_moved", part.path, "moved the signature to extra_content.google")
                part, altered = changed(part), True
        parts.append(part)
    return with_parts(turn, parts) if altered else turn


def run_texts(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns without signatures on texts if the target cannot represent them."""
    if context.family in _SIGNED_TEXTS:
        return turns
    listed = context.facts("members").get("assistant", (EXTRA_CONTENT,))
    if context.family == "openai-chat" and text_signature_member("", listed):
        return turns  # `write.chat` records the signatures for which a message has no place
    return [_unsigned(turn, context) for turn in turns]


def _unsigned(turn: Turn, context: Context) -> Turn:
    if not any(isinstance(part, Text) and part.signature for part in turn.parts):
        return turn
    parts: list[Part] = []
    for part in turn.parts:
        if isinstance(part, Text) and part.signature:
            why = "the target has no member for the signature of a text part"
            context.lose("signature", part.path, why, part.signature)
            parts.append(changed(part, signature=None))
        else:
            parts.append(part)
    return with_parts(turn, parts)


def _first_call(parts: Sequence[Part]) -> tuple[int, Call | None]:
    for at, part in enumerate(parts):
        if isinstance(part, Call):
            return at, part
    return 0, None
