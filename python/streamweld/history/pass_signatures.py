"""Signatures on calls: the first call of each step must carry one, and only its issuer's own.

It knows calls and the constraint `reasoning.dummy_signature`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld.history.model import Call, changed, retold

if TYPE_CHECKING:
    from streamweld.history.model import Turn
    from streamweld.history.work import Work

__all__ = ["run"]


def run(turns: list[Turn], work: Work) -> list[Turn]:
    """The turns with a signature on the first call of each step.

    Every step gets one, not those of the current turn alone: else a later turn would change what was sent before.
    """
    dummy = work.about("reasoning").get("dummy_signature")
    if dummy is None or not work.survey(turns).calls:
        return turns
    out: list[Turn] = []
    for turn in turns:
        at = next((n for n, part in enumerate(turn.parts) if isinstance(part, Call)), None)
        part = None if at is None else turn.parts[at]
        if at is None or not isinstance(part, Call) or part.signature or part.extra.get("thoughtSignature"):
            out.append(turn)
            continue
        work.edit("signature_dummy", part.path, f"put the agreed dummy signature on the call of {part.name!r}")
        out.append(retold(turn, (*turn.parts[:at], changed(part, signature=dummy), *turn.parts[at + 1 :])))
    return out
