"""Serializes payloads that contain bytes, such as those for boto3: bytes become base64 text, as on the wire."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

__all__ = ["dumps", "marked"]


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is not JSON")


def dumps(value: Any, **options: Any) -> str:
    """Return the value as JSON text."""
    return json.dumps(value, default=_text, **options)


def marked(value: Any) -> Any:
    """Return the value with bytes as `{"$bytes": base64}`, as in the vectors."""
    if isinstance(value, bytes):
        return {"$bytes": b64encode(value).decode()}
    if isinstance(value, dict):
        return {name: marked(inner) for name, inner in value.items()}
    return [marked(inner) for inner in value] if isinstance(value, list) else value
