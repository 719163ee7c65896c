"""The access log: one line an exchange, `key=value`, without credentials, queries or payloads (R:G5, R:G9)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from streamweld._show import printable

if TYPE_CHECKING:
    from streamweld.integrations.proxy.exchange import Exchange

__all__ = ["LOGGER", "log", "told"]

LOGGER: Final = logging.getLogger("streamweld.proxy")
_PATH: Final = 200
_METHOD: Final = 20


def log(done: Exchange) -> None:
    """Write the line of an exchange that is over."""
    if LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info("%s", told(done))


def told(done: Exchange) -> str:
    """The line. Method and path are the client's: they are cut, their control characters are escapes, blanks too."""
    words = {
        "method": printable(done.method, _METHOD).replace(" ", "%20"),
        "path": printable(done.path, _PATH).replace(" ", "%20"),
        "status": done.status,
        "mode": done.mode,
        "dialect": done.dialect,
        "upstream": done.upstream_dialect if done.upstream_dialect != done.dialect else None,
        "outcome": done.outcome,
        "fault": done.fault,
        "events": done.events if done.stream else None,
        "in": done.bytes_in,
        "out": done.bytes_out,
        "first": None if done.first_byte is None else f"{done.first_byte:.3f}",
        "seconds": f"{done.seconds:.3f}",
        "diagnostics": ",".join([f"{code}:{times}" for code, times in sorted(done.diagnostics.items())]) or None,
        "dropped": ",".join(done.dropped) or None,
    }
    return " ".join([f"{name}={value}" for name, value in words.items() if value is not None])
