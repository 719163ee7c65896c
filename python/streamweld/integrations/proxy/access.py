"""The access log: one line per exchange, `key=value`, without credentials, queries or payloads."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._show import printable

if TYPE_CHECKING:
    from streamweld.integrations.proxy.exchange import Exchange

__all__ = ["LOGGER", "facts_of", "log", "sent"]

LOGGER: Final = logging.getLogger("streamweld.proxy")
_PATH: Final = 200
_METHOD: Final = 20
_NAME: Final = 200


def log(done: Exchange) -> None:
    """Write the log line of a finished exchange."""
    if LOGGER.isEnabledFor(logging.INFO):
        facts = facts_of(done)
        LOGGER.info("%s", sent(facts), extra={"facts": {**facts, "message": "request"}})


def facts_of(done: Exchange) -> dict[str, Any]:
    """Return the facts for the log, omitting absent ones.

    Method, path, model and request id are untrusted, so they are shortened, and control characters and blanks are
    escaped.
    """
    facts: dict[str, Any] = {
        "method": _given(done.method, _METHOD),
        "path": _given(done.path, _PATH),
        "status": done.status,
        "mode": done.mode,
        "dialect": done.dialect,
        "upstream": done.upstream_dialect if done.upstream_dialect != done.dialect else None,
        "model": None if done.model is None else _given(done.model, _NAME),
        "request_id": None if done.request_id is None else _given(done.request_id, _NAME),
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


def sent(facts: dict[str, Any]) -> str:
    """Format the facts as one line of text."""
    return " ".join([f"{name}={_word(value)}" for name, value in facts.items()])


def _given(text: str, most: int) -> str:
    return printable(text, most).replace(" ", "%20")


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
