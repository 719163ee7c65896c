"""Converts log probabilities of text tokens between Chat and Responses, which use the same form in different places.

Chat puts log probabilities in the choice (`logprobs.content`). Responses puts log probabilities in the text events and
in the part (`logprobs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamweld._pure.encode.common.writer import compact_json
from streamweld._pure.json.kinds import is_array, is_object

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Logprobs", "read_logprobs"]


@dataclass(frozen=True, slots=True)
class Logprobs:
    """Log probabilities in an event's metadata.

    `tokens` contains the tokens as JSON, separated by commas. `others` is True if the metadata contains other members.
    """

    tokens: str
    others: bool


def read_logprobs(source: str | None, target: str, metadata: Mapping[str, Any] | None) -> Logprobs | None:
    """Return the log probabilities in the metadata of a text event from `source`, in the form that `target` requires.

    Returns None if there are no log probabilities, or if a list item lacks a token or a probability.
    """
    found: Any = None if metadata is None else metadata.get("logprobs")
    others = metadata is not None and len(metadata) > 1
    if (source, target) == ("chat", "responses"):
        if not is_object(found):
            return None
        others = others or any(name != "content" and value is not None for name, value in found.items())
        found = found.get("content")
    elif source == target == "responses":
        return Logprobs(",".join(map(compact_json, found)), others) if is_array(found) and found else None
    elif (source, target) != ("responses", "chat"):
        return None
    if not is_array(found) or not found:
        return None
    unknown: list[int] | None = None if target == "chat" else []  # only Chat accepts null
    tokens: list[str] = []
    for entry in found:
        token = _token(entry, unknown)
        if token is None:
            return None
        listed: object = entry.get("top_logprobs")
        top = [_token(other, unknown) for other in listed] if is_array(listed) else []
        if None in top:
            return None
        tokens.append(compact_json({**token, "top_logprobs": top}))
    return Logprobs(",".join(tokens), others)


def _token(entry: Any, unknown: Any) -> dict[str, Any] | None:
    """Return the members that every token has, or None if the entry lacks a token or a probability.

    `unknown` is the value to use if `bytes` is missing.
    """
    if not is_object(entry):
        return None
    token, chance = entry.get("token"), entry.get("logprob")
    if not isinstance(token, str) or not isinstance(chance, int | float) or isinstance(chance, bool):
        return None
    known = entry.get("bytes")
    return {"token": token, "logprob": chance, "bytes": unknown if known is None else known}
