"""The passes that make a history acceptable to the target, in the order in which they run.

Each pass enforces one group of constraints. Roles are handled before pairing, ids after pairing, and text after ids.
The pass that repairs the order of roles runs last.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamweld.history.model import EMPTY
from streamweld.history.passes import (
    approvals,
    arguments,
    cache_marks,
    carriers,
    citations,
    content,
    hosted_items,
    ids,
    items,
    missing_ids,
    names,
    order,
    pairing,
    reasoning,
    reasoning_items,
    roles,
    server_tools,
    signatures,
    surrogates,
    system,
    text_embedding,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld.history.context import Context
    from streamweld.history.model import Turn

__all__ = ["ORDER", "derived", "plan", "run"]

_Run: TypeAlias = "Callable[[list[Turn], Context], list[Turn]]"


def _has(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a test for whether a target has any of these constraints."""
    return lambda constraints: any(constraints.get(name) for name in names)


def _accepts_reasoning(kind: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda constraints: _reasoning(constraints).get("accept") == kind


def _reasoning(constraints: Mapping[str, Any]) -> Mapping[str, Any]:
    return constraints.get("reasoning") or EMPTY


# The passes in their order, each with a property of the survey and a test of the target's constraints. If either is
# false, the pass has nothing to do. None means that the pass itself decides.
ORDER: Final[tuple[tuple[_Run, str | None, Callable[[Mapping[str, Any]], bool] | None], ...]] = (
    (carriers.run, "reasoned", None),
    (cache_marks.run, None, cache_marks.applies),
    (system.run, "instructed", None),
    (hosted_items.run, None, None),
    (surrogates.run, None, None),
    (approvals.run, "approvals", None),
    (missing_ids.run, None, None),
    (server_tools.run, "opaque", None),
    (arguments.run, None, None),
    (names.run, None, None),
    (pairing.run, None, _has("results")),
    (reasoning.run, "reasoned", None),
    (reasoning_items.run, "reasoned", _accepts_reasoning("items")),
    (ids.run, None, _has("tool_id")),
    (signatures.run, "calls", None),
    (signatures.run_texts, "signed_texts", None),
    (signatures.run_places, None, signatures.reads_extra_content),
    (content.run, None, None),
    (citations.run, None, _has("citation_proofs")),
    (items.run, None, _has(*items.CONSTRAINTS)),
    (order.run, "calls", _has("call_order", "content_or_calls", "calls_together")),
    (text_embedding.run, None, _has("text_embedding")),
    (reasoning.run_followed, "reasoned", lambda constraints: bool(_reasoning(constraints).get("followed"))),
    (roles.run, None, roles.applies),
    (reasoning.run_field, None, _accepts_reasoning("field")),
)


def plan(constraints: Mapping[str, Any]) -> tuple[tuple[_Run, str | None], ...]:
    """Return the passes that may change a history for a target with these constraints. The result depends only on the
    constraints.
    """
    return tuple([(one, needs) for one, needs, applies in ORDER if applies is None or applies(constraints)])


def derived(constraints: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the passes derive from a target's constraints, which is computed only once for each profile."""
    return {
        "passes": plan(constraints),
        "id_form": ids.required_form(constraints),
        "name_form": names.required_form(constraints),
    }


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Run the target's passes (`plan`), and return turns that the target accepts."""
    found = context.survey(turns)
    steps: tuple[tuple[_Run, str | None], ...] = context.constraints["passes"]
    for one, needs in steps:
        if needs is not None and not getattr(found, needs):
            continue
        made = one(turns, context)
        if made is turns:
            continue
        # A pass may return a new list of the same turns, and hand the survey on to that list. In that case, the old
        # list is kept, and its survey is still valid.
        if len(made) == len(turns) and all(map(is_, made, turns)):
            found.adopt(turns)
        else:
            turns = made
            found = context.survey(turns)
    return turns
