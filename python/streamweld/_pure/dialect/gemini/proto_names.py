"""Renames members from their proto names (`finish_reason`) to their JSON names (`finishReason`).

Protobuf parsers must accept both kinds of names: https://protobuf.dev/programming-guides/json/. Gateways that dump
objects from Google's Python SDK send proto names. Names inside arguments and results are not changed, because they are
defined by a client or a function, not by the API.
"""

from __future__ import annotations

import re
from typing import Final

from streamweld._pure.dialect.gemini.spec_tables import SPEC

__all__ = ["in_json_names"]

_JSON_NAMES: Final[dict[str, str]] = {
    name: name.split("_")[0] + "".join(word.capitalize() for word in name.split("_")[1:])
    for name in SPEC["proto_names"]
}
_HOLDERS: Final = frozenset({"functionCall", "functionResponse", "toolCall", "toolResponse"})
_HELD: Final = frozenset({"args", "response"})  # members with content that the API does not define

_PROTO_KEY = re.compile(r'"([a-z]+_[a-z_]+)"[ \t\r\n]*:')
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]', re.DOTALL)


def in_json_names(text: str) -> str | None:
    """Return the chunk with JSON names, or None if no member has a proto name.

    The chunk must be valid JSON.
    """
    if "_" not in text or not any(found[1] in _JSON_NAMES for found in _PROTO_KEY.finditer(text)):
        return None
    renamed: list[str] = []
    copied = 0  # number of characters of the text that are in `renamed`
    open_: list[str] = []  # open brackets; "h" for the object of a function call or response
    hidden = 0  # number of open brackets inside a value that is not renamed
    key, is_value = "", False
    for found in _TOKEN.finditer(text):
        piece = found[0]
        if hidden:
            hidden += (piece in "{[") - (piece in "}]")
        elif piece == "{" or piece == "[":
            if is_value and key in _HELD and open_[-1] == "h":
                hidden = 1
            else:
                open_.append("h" if is_value and piece == "{" and key in _HOLDERS else piece)
            is_value = False
        elif piece == "}" or piece == "]":
            open_.pop()
            is_value = False
        elif piece == ":" or piece == ",":
            is_value = piece == ":"
        elif not is_value and open_ and open_[-1] != "[":
            key = _JSON_NAMES.get(piece[1:-1], piece[1:-1])
            if len(key) != len(piece) - 2:
                renamed += (text[copied : found.start() + 1], key)
                copied = found.end() - 1
    return "".join(renamed) + text[copied:] if renamed else None
