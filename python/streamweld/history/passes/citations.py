"""Remove citations without the proof that the target requires. Constraint: `citation_proofs`.

Anthropic's citations of web pages contain an `encrypted_index`, which only its server can create. Web citations in a
stream that was converted to Messages therefore have an empty index (docs/guides/convert.md).
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any

from streamweld.history.citations import CITED
from streamweld.history.model import Text, changed, members_of, with_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["run"]


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns without citations whose proof is missing or empty."""
    found = context.survey(turns)
    proofs = context.facts("citation_proofs")
    if not found.beyond or context.family not in found.dialects:
        return turns
    out: list[Turn] = []
    for turn in turns:
        parts = [_proven(part, proofs, context) for part in turn.parts]
        out.append(turn if all(map(is_, parts, turn.parts)) else with_parts(turn, parts))
    if all(map(is_, out, turns)):
        return turns
    found.adopt(out, found.calls, found.results)  # only members of texts have changed
    return out


def _proven(part: Part, proofs: Mapping[str, Any], context: Context) -> Part:
    """Return the part without citations that have no proof. `proofs`: type of a citation -> the member with its
    proof.
    """
    cited: Any = part.extra.get(CITED) if isinstance(part, Text) and part.extra else None
    if cited.__class__ is not list or part.origin is None or part.origin.dialect != context.family:
        return part
    kept = [one for one in cited if not _lacks_proof(members_of(one), proofs)]
    if len(kept) == len(cited):
        return part
    gone = [one for one in cited if _lacks_proof(members_of(one), proofs)]
    context.edit("member_refused", part.path, "dropped citations without the proof that the target requires", gone)
    others = {name: value for name, value in part.extra.items() if name != CITED}
    return changed(part, extra={**others, CITED: kept} if kept else others)


def _lacks_proof(citation: Mapping[str, Any], proofs: Mapping[str, Any]) -> bool:
    proof = proofs.get(str(citation.get("type")))
    return proof is not None and not citation.get(proof)
