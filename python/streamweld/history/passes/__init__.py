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

ORDER: Final[tuple[Callable[[list[Turn], Context], list[Turn]], ...]] = (
    carriers.run,
    system.run,
    hosted_items.run,
    surrogates.run,
    approvals.run,
    missing_ids.run,
    server_tools.run,
    arguments.run,
    names.run,
    pairing.run,
    reasoning.run,
    reasoning_items.run,
    ids.run,
    signatures.run,
    signatures.run_texts,
    content.run,
    items.run,
    order.run,
    text_embedding.run,
    roles.run,
    reasoning.run_field,
)


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Run all passes, and return turns that the target accepts."""
    for one in ORDER:
        made = one(turns, context)
        # A pass may return a new list of the same turns. Keeping the old list keeps its survey, too.
        if made is not turns and not (len(made) == len(turns) and all(map(is_, made, turns))):
            turns = made
    return turns
