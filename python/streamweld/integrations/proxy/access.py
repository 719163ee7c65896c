"""The access log: one line per exchange, `key=value`, without credentials, queries or payloads."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._show import printable

if TYPE_CHECKING:
    from streamweld.integrations.proxy.exchange import Exchange

__all__ = ["LOGGER", "facts_of", "log", "told"]

LOGGER: Final = logging.getLogger("streamweld.proxy")
_PATH: Final = 200
_METHOD: Final = 20


def log(done: Exchange) -> None:
    """Write the log line of a finished exchange."""
    if LOGGER.isEnabledFor(logging.INFO):
        facts = facts_of(done)
        LOGGER.info("%s", told(facts), extra={"facts": {**facts, "message": "request"}})


def facts_of(done: Exchange) -> dict[str, Any]:
    """Return the facts for the log, without absent ones.

    Method and path come from the client: they are shortened, and control characters and blanks are escaped.
    """
    facts: dict[str, Any] = {
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
        "first": None if done.first_byte is None else round(done.first_byte, 3),
        "seconds": round(done.seconds, 3),
        "diagnostics": dict(sorted(done.diagnostics.items())) or None,
        "dropped": list(done.dropped) or None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def told(facts: dict[str, Any]) -> str:
    """Format the facts as one line of text."""
    return " ".join([f"{name}={_word(value)}" for name, value in facts.items()])


def _word(value: object) -> str:
    match value:
        case float():
            return f"{value:.3f}"
        case dict():
            return ",".join([f"{code}:{times}" for code, times in cast("dict[str, int]", value).items()])
        case list():
            return ",".join(cast("list[str]", value))
        case _:
            return str(value)
