"""The passes that make a history acceptable to the target, in the order in which they run.

Each pass enforces one group of constraints. Roles are handled before pairing, ids after pairing, and text after ids.
The order of roles is fixed last.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Final

from streamweld.history.passes import (
    approvals,
    arguments,
    carriers,
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
    from collections.abc import Callable

    from streamweld.history.context import Context
    from streamweld.history.model import Turn

__all__ = ["ORDER", "run"]

# The passes in their order, each with a property of the survey. If the property is false, the pass has nothing to do.
# None: the pass checks this itself.
ORDER: Final[tuple[tuple[Callable[[list[Turn], Context], list[Turn]], str | None], ...]] = (
    (carriers.run, "reasoned"),
    (system.run, "instructed"),
    (hosted_items.run, None),
    (surrogates.run, None),
    (approvals.run, "approvals"),
    (missing_ids.run, None),
    (server_tools.run, "opaque"),
    (arguments.run, None),
    (names.run, None),
    (pairing.run, None),
    (reasoning.run, "reasoned"),
    (reasoning_items.run, None),
    (ids.run, None),
    (signatures.run, "calls"),
    (signatures.run_texts, "signed_texts"),
    (content.run, None),
    (items.run, None),
    (order.run, "calls"),
    (text_embedding.run, None),
    (roles.run, None),
    (reasoning.run_field, None),
)


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Run all passes, and return turns that the target accepts."""
    found = context.survey(turns)
    for one, needs in ORDER:
        if needs is not None and not getattr(found, needs):
            continue
        made = one(turns, context)
        # A pass may return a new list of the same turns. The old list is kept then, because its survey is still valid.
        if made is not turns and not (len(made) == len(turns) and all(map(is_, made, turns))):
            turns = made
            found = context.survey(turns)
    return turns
