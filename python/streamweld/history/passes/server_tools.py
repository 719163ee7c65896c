"""Drop results of provider-executed tools if the call is missing. Constraint: `results.matched`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld.history.model import Opaque, members_of, with_parts

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Turn

__all__ = ["run"]


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns without server tool results that lack a call."""
    if not context.facts("results").get("matched"):
        return turns
    seen: set[str] = set()
    out: list[Turn] = []
    for turn in turns:
        gone: set[int] = set()
        for part in turn.parts:
            if not isinstance(part, Opaque):
                continue
            raw = members_of(part.raw)
            if part.kind in ("server_tool_use", "mcp_tool_use") and isinstance(raw.get("id"), str):
                seen.add(raw["id"])
            elif part.kind.endswith("_tool_result") and str(raw.get("tool_use_id")) not in seen:
                gone.add(id(part))
                context.edit(
                    "server_result_unasked", part.path, f"dropped a {part.kind} because its call is missing", part.raw
                )
        if not gone:
            out.append(turn)
        elif len(gone) < len(turn.parts):
            out.append(with_parts(turn, [part for part in turn.parts if id(part) not in gone]))
    return out
