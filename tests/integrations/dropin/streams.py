"""The streams of `vectors/dropin`, as bytes. This module needs only the standard library, because other environments
import it, too.
"""

from __future__ import annotations

import json
from typing import Any

from tests.integrations.dropin.server import Answer
from tests.support.places import VECTORS

HERE = VECTORS / "dropin"
APIS = ("chat", "responses", "messages")


def cells(api: str) -> list[dict[str, Any]]:
    """Return the vectors of one API."""
    found: list[dict[str, Any]] = json.loads((HERE / f"{api}.json").read_text("utf-8"))["tests"]
    return found


def frame_bytes(frame: list[Any]) -> bytes:
    event, data = frame
    if event == "raw":
        return str(data).encode()
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


def body_of(cell: dict[str, Any]) -> bytes:
    return b"".join(frame_bytes(frame) for frame in cell["frames"])


def answers() -> dict[str, Answer]:
    """Return every cell as `chat-a`, `responses-c` ..., one piece per frame."""
    return {
        f"{api}-{cell['name']}": Answer([frame_bytes(frame) for frame in cell["frames"]], end=cell.get("end", "clean"))
        for api in APIS
        for cell in cells(api)
    }
