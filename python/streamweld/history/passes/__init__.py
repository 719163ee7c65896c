"""The order of the passes. Each has one job and leaves alone what its constraint does not speak of.

Roles come before everything that pairs, ids after pairing, what is text after ids; who speaks when is settled last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld.history.passes import (
    arguments,
    content,
    ids,
    items,
    names,
    order,
    pairing,
    reasoning,
    reasoning_items,
    roles,
    server_tools,
    signatures,
    system,
    text_embedding,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld.history.context import Context
    from streamweld.history.model import Turn

__all__ = ["ORDER", "run"]

ORDER: Final[tuple[Callable[[list[Turn], Context], list[Turn]], ...]] = (
    system.run,
    server_tools.run,
    arguments.run,
    names.run,
    pairing.run,
    reasoning.run,
    reasoning_items.run,
    ids.run,
    signatures.run,
    content.run,
    items.run,
    order.run,
    text_embedding.run,
    roles.run,
)


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """The turns as the target takes them."""
    for one in ORDER:
        turns = one(turns, context)
    return turns
