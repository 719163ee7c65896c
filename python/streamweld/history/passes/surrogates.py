"""Replace lone surrogates in texts: they have no UTF-8 form, so clients fail on them, or servers reject the JSON.

Clients produce them by cutting a text inside of a character ("no low surrogate in string"). Signed reasoning stays as
it is: its text belongs to the signature.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from streamweld.history.model import Call, Reasoning, Result, Text, changed, with_parts

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["run"]

_LONE: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with texts that can be encoded."""
    out: list[Turn] = []
    altered = False
    for turn in turns:
        parts: list[Part] | None = None
        for at, part in enumerate(turn.parts):
            fields = _fields(part)
            if fields:
                context.edit("text_surrogate", part.path, "replaced half of a character", _removed(part, fields))
                parts = list(turn.parts) if parts is None else parts
                parts[at] = changed(part, **fields)
        altered = altered or parts is not None
        out.append(turn if parts is None else with_parts(turn, parts))
    return out if altered else turns


def _fields(part: Part) -> dict[str, Any]:
    """Return the fields that change."""
    if isinstance(part, Text):
        return {} if _is_sound(part.text) else {"text": _mended(part.text)}
    if isinstance(part, Call):
        text = part.arguments
        return {} if text is None or _is_sound(text) else {"arguments": _mended(text)}
    if isinstance(part, Reasoning):
        if part.signature or part.encrypted or all(map(_is_sound, part.segments)):
            return {}
        return {"segments": tuple(map(_mended, part.segments))}
    if isinstance(part, Result):
        if isinstance(part.value, str) and not _is_sound(part.value):
            return {"value": _mended(part.value)}
        if any(isinstance(inner, Text) and not _is_sound(inner.text) for inner in part.parts):
            return {"parts": tuple([_mended_part(inner) for inner in part.parts])}
    return {}


def _mended_part(part: Any) -> Any:
    return changed(part, text=_mended(part.text)) if isinstance(part, Text) and not _is_sound(part.text) else part


def _is_sound(text: str) -> bool:
    return text.isascii() or _LONE.search(text) is None


def _mended(text: str) -> str:
    return _LONE.sub(_REPLACEMENT, text)


def _removed(part: Part, fields: dict[str, Any]) -> Any:
    return part.raw if "parts" in fields else getattr(part, next(iter(fields)))
