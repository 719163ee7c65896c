"""Add the member `object` to a Chat chunk whose bytes otherwise pass through unchanged."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["with_chunk_type"]

_MEMBER: Final = b'"object":"chat.completion.chunk",'
_PAYLOAD: Final = re.compile(rb"(?:^|(?<=[\r\n]))(?:\xef\xbb\xbf)?data[^{\r\n]*\{")


def with_chunk_type(block: bytes) -> bytes:
    """Return the block with the member inserted after the opening brace of its payload, which is an object with
    other members.
    """
    payload = _PAYLOAD.search(block)
    at = 0 if payload is None else payload.end()
    return block[:at] + (_MEMBER if at else b"") + block[at:]
