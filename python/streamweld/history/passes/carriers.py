"""Restore another provider's reasoning and signatures from the carriers that a stream conversion wrote.

`StreamConverter(carry_reasoning=True)` and the proxy write carriers (`encode/common/carrier`). A client sends carriers
back as signatures of its own API. This pass replaces carriers with the original reasoning before any other pass
examines the history.
"""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import orjson

from streamweld.history.chat_reasoning import DETAILS
from streamweld.history.model import EMPTY, Call, Origin, Reasoning, Text, changed, members_of, with_parts
from streamweld.history.read.chat_reasoning import read_reasoning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["run"]

_BEGINNING: Final = "eyJzdHJlYW13ZWxkIjox"  # {"streamweld":1
_STANDARD: Final = str.maketrans("-_", "+/")  # google-genai writes bytes in the URL-safe alphabet
_FAMILIES: Final = {"chat": "openai-chat"}
_ISSUERS: Final = {"responses": "openai", "anthropic": "anthropic", "gemini": "google"}
_UNREADABLE: Final = "streamweld"  # issuer of a carrier that was modified; no target accepts it
_KINDS: Final = ("summary", "raw", "thinking", "redacted")


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with the reasoning and signatures from their carriers."""
    return [_restored(turn, context) if turn.role == "assistant" and _has_carrier(turn) else turn for turn in turns]


def _has_carrier(turn: Turn) -> bool:
    return any(isinstance(part, Reasoning) and _carrier(part) is not None for part in turn.parts)


def _restored(turn: Turn, context: Context) -> Turn:
    parts: list[Part] = []
    signatures: dict[str, str] = {}
    signed_texts: list[_SignedText] = []
    copies = _Copies()
    for part in turn.parts:
        carrier = _carrier(part) if isinstance(part, Reasoning) else None
        if carrier is None:
            copies.see(len(parts), part)
            parts.append(part)
            continue
        context.edit("reasoning_carrier", part.path, "restored the data that streamweld stored in this reasoning part")
        held = _opened(carrier)
        call_id = held.get("call_id")
        if isinstance(call_id, str):
            signatures[call_id] = _text(held, "signature")
            continue
        if isinstance(held.get("start"), int) and isinstance(held.get("end"), int):
            signed_texts.append(_SignedText(held["start"], held["end"], _text(held, "signature"), part))
            continue
        reasoning = _reasoning(cast("Reasoning", part), held, context)
        copies.replace("".join([one.text for one in reasoning]))
        parts += reasoning
    copies.finish()
    kept = [
        changed(part, signature=signatures[part.call_id])
        if isinstance(part, Call) and signatures.get(part.call_id)
        else part
        for n, part in enumerate(parts)
        if n not in copies.found
    ]
    return with_parts(turn, _with_signatures(kept, signed_texts, context) if signed_texts else kept)


class _SignedText(NamedTuple):
    """A signature, and the position of the signed text among all texts of the turn, in characters."""

    start: int
    end: int
    signature: str
    carrier: Part


def _with_signatures(parts: list[Part], signed: list[_SignedText], context: Context) -> list[Part]:
    """Return the parts with these signatures on their texts.

    A text is split at the end of each signed text, because Gemini must receive each signature with exactly the text
    that it signed. If the client shortened the signed text, the signature is lost.
    """
    waiting = sorted(signed, key=lambda one: (one.start, one.end))
    out: list[Part] = []
    start = 0  # position of the current part
    for part in parts:
        if not isinstance(part, Text) or part.refusal:
            out.append(part)
            continue
        at, end = start, start + len(part.text)
        while waiting and at <= waiting[0].start and waiting[0].end <= end and waiting[0].start < end:
            one = waiting.pop(0)
            if one.start > at:
                out.append(_piece(part, at - start, one.start - start, None))
            out.append(_piece(part, one.start - start, one.end - start, one.signature))
            at = one.end
        if at == start:
            out.append(part)
        elif at < end:
            out.append(_piece(part, at - start, len(part.text), None))
        start = end
    for one in waiting:
        if one.start == one.end:  # empty text with only a signature, which Gemini sends last
            out.append(Text(path=one.carrier.path, origin=one.carrier.origin, signature=one.signature, touched=True))
        else:
            why = "the message no longer contains the text that this signature belongs to"
            context.lose("signature", one.carrier.path, why, one.signature)
    return out


def _piece(part: Text, start: int, end: int, signature: str | None) -> Text:
    """Return a part with these characters of the text. The first piece keeps the members in `extra`."""
    extra = EMPTY if start else part.extra
    return changed(part, text=part.text[start:end], signature=signature, extra=extra)


def _carrier(part: Reasoning) -> str | None:
    for text in (part.signature, part.encrypted):
        if text is not None and text.startswith(_BEGINNING):
            return text
    return None


def _opened(carrier: str) -> Mapping[str, Any]:
    try:
        return members_of(orjson.loads(b64decode(carrier.translate(_STANDARD), validate=True)))
    except ValueError:
        return {}


def _reasoning(part: Reasoning, held: Mapping[str, Any], context: Context) -> list[Reasoning]:
    """Return the reasoning in the carrier.

    If the carrier was modified, return the part with an issuer that no target accepts.
    """
    dialect = _text(held, "from")
    origin = part.origin if part.origin is not None else Origin(dialect, part.path, held)
    metadata = members_of(held.get("metadata"))
    if dialect == "chat" and isinstance(metadata.get(DETAILS), list):
        made = read_reasoning({DETAILS: metadata[DETAILS]}, origin, part.path, None).parts
        return [one for one in made if isinstance(one, Reasoning)]
    text, kind = _text(held, "text"), _text(held, "kind")
    return [
        changed(
            part,
            segments=(text,) if text else (),
            kind=kind if kind in _KINDS else part.kind,
            item_id=_text(held, "item_id") or None,
            signature=_text(held, "signature") or None,
            encrypted=_text(held, "encrypted_content") or None,
            issuer=_issuer(dialect, context),
            assumed=False,
            member=None,
        )
        if dialect
        else changed(part, issuer=_UNREADABLE, assumed=False)
    ]


def _issuer(dialect: str, context: Context) -> str | None:
    """Return the issuer.

    If the reasoning comes from the target's own dialect, the target is assumed to be its issuer.
    """
    usual = _ISSUERS.get(dialect)
    issuers: Any = context.facts("reasoning").get("issuers") or ()
    same = _FAMILIES.get(dialect, dialect) == context.family
    return issuers[0] if same and issuers and usual not in issuers else usual


def _text(held: Mapping[str, Any], name: str) -> str:
    found = held.get(name)
    return found if isinstance(found, str) else ""


def _squeezed(text: str) -> str:
    return "".join(text.split())


class _Copies:
    """Finds the plain reasoning parts of a turn that repeat the text of a carrier.

    Such parts are only copies for display.

    Attributes:
        found: the indexes of these parts.
    """

    def __init__(self) -> None:
        self.found: set[int] = set()
        self._shown: list[tuple[int, str]] = []  # plain reasoning that has not been matched to a carrier yet
        self._unmatched = ""

    def see(self, place: int, part: Part) -> None:
        """Record a part that is not a carrier."""
        if isinstance(part, Reasoning) and not part.signature and not part.encrypted:
            self._shown.append((place, _squeezed(part.text)))

    def replace(self, text: str) -> None:
        """Find the parts directly before a carrier, if their joined text equals the carrier's text."""
        wanted = rest = _squeezed(text)
        for at in range(len(self._shown) - 1, -1, -1):
            if not rest or not rest.endswith(self._shown[at][1]):
                break
            rest = rest[: len(rest) - len(self._shown[at][1])]
            if not rest:
                self.found |= {place for place, _ in self._shown[at:]}
                del self._shown[at:]
                return
        self._unmatched += wanted

    def finish(self) -> None:
        """Match the remaining parts if their joined text equals the joined text of all unmatched carriers in the
        turn.
        """
        if self._unmatched and "".join([text for _, text in self._shown]) == self._unmatched:
            self.found |= {place for place, _ in self._shown}
