"""The pytest plugin: a fixture that starts misbehaving gateways.

    def test_agent(broken_gateway):
        gateway = broken_gateway([OPERATORS["index_is_a_string"](stream)])

The gateways stop at the end of the test.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamweld.testing.gateway import BrokenGateway

__all__ = ["broken_gateway"]


@pytest.fixture
def broken_gateway() -> Iterator[Callable[..., BrokenGateway]]:
    """Return a function that starts a `BrokenGateway` with a script. All gateways are closed after the test."""
    from streamweld.testing.gateway import BrokenGateway  # imported only in tests that use the fixture

    with ExitStack() as stack:

        def start(script: object, *, speed: float | None = None) -> BrokenGateway:
            return stack.enter_context(BrokenGateway(script, speed=speed))  # type: ignore[arg-type]

        yield start
