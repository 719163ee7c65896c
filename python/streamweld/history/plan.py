"""The order of the passes. Each has one job and leaves alone what its constraint does not speak of.

Roles come before everything that pairs, ids after pairing, what is text after ids; who speaks when is settled last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld.history import (
    pass_arguments,
    pass_content,
    pass_embed,
    pass_ids,
    pass_items,
    pass_names,
    pass_order,
    pass_pairing,
    pass_reasoning,
    pass_reasoning_items,
    pass_roles,
    pass_server,
    pass_signatures,
    pass_system,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld.history.model import Turn
    from streamweld.history.work import Work

__all__ = ["ORDER", "run"]

ORDER: Final[tuple[Callable[[list[Turn], Work], list[Turn]], ...]] = (
    pass_system.run,
    pass_server.run,
    pass_arguments.run,
    pass_names.run,
    pass_pairing.run,
    pass_reasoning.run,
    pass_reasoning_items.run,
    pass_ids.run,
    pass_signatures.run,
    pass_content.run,
    pass_items.run,
    pass_order.run,
    pass_embed.run,
    pass_roles.run,
)


def run(turns: list[Turn], work: Work) -> list[Turn]:
    """The turns as the target takes them."""
    for one in ORDER:
        turns = one(turns, work)
    return turns
