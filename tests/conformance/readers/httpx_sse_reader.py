"""httpx-sse: events only."""

from __future__ import annotations

from typing import Any

import httpx_sse
from transport import CLIENT, failed, reader, serve

READER = reader("httpx-sse")


def events_of(reads: list[bytes]) -> list[Any]:
    """Return the events of a body as httpx-sse reads them."""
    serve(reads)
    with httpx_sse.connect_sse(CLIENT, "GET", "http://case") as source:
        return list(source.iter_sse())


def read(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any] | None:
    if case["category"] != "sse":
        return None
    try:
        return {"error": None, "events": [[e.event, e.data, e.id, e.retry] for e in events_of(reads)]}
    except Exception as thrown:
        return {"error": failed(thrown), "events": []}
