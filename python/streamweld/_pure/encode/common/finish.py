"""Determines how a response ends: with the target's word for the finish reason, or with an error for the target's
client.

`_spec/conversions.json` contains the words and messages, and the encoders decide where to write them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from streamweld._spec import DIALECTS, load_conversions
from streamweld.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld.errors import StreamError
    from streamweld.events import Finished

__all__ = ["CUT", "Completeness", "Ending", "Fault", "fault_of", "finish_is_lost", "finish_word", "own_word"]
__all__ += ["SUCCESS", "ending_fault", "sent_word"]

Completeness: TypeAlias = Literal["complete", "assumed", "truncated"]

_FACTS = load_conversions()
CUT: Final = "TruncatedStream"
# After these finish reasons, clients run even calls without arguments.
SUCCESS: Final = frozenset({"stop", "tool_calls"})
# Targets whose clients reject unknown finish reasons.
_CLOSED: Final = frozenset({"ai-sdk-parts", "ai-sdk-ui"})


@dataclass(frozen=True, slots=True)
class Fault:
    """An error for the client, created from an exception class in `streamweld.errors` or from a reason why a conversion
    fails. The message contains data of the payload only if the upstream sent the error.
    """

    name: str
    message: str
    type: str
    code: str
    sent: str | None = None
    """The error as the upstream sent it, if the error is written in another form and the message does not contain the
    whole error.
    """

    def keep_sent(self, payload: bytes) -> Fault:
        """Store the payload that contained the upstream error, unless the payload is identical to the message."""
        text = payload.decode("utf-8", "replace")
        return replace(self, sent=text if text and text != self.message else None)

    @property
    def sent_type(self) -> str | None:
        """Error type that the upstream sent, or None."""
        return None if self.type == _FACTS["error_type"] else self.type

    @property
    def is_cut(self) -> bool:
        """True if the only error is that the input ended too early.

        Some targets have a separate ending for a response that is only truncated.
        """
        return self.name == CUT


@dataclass(frozen=True, slots=True)
class Ending:
    """How the source ended. An error or an incomplete response is never written as a success."""

    completeness: Completeness
    fault: Fault | None


def fault_of(name: str, message: str = "", kind: str | None = None, code: str | None = None) -> Fault:
    """Create the error for an entry of `faults` in `_spec/conversions.json`: the name of an exception class, or of a
    reason why a conversion fails.

    If the upstream sent an error, `message`, `kind`, and `code` are those of that error.
    """
    known: Sequence[str] = _FACTS["faults"].get(name) or _FACTS["faults"]["StreamError"]
    return Fault(name, message or known[1], kind or _FACTS["error_type"], code or known[0])


def ending_fault(fault: StreamError) -> Fault:
    """Return the error that the client receives for this exception."""
    if isinstance(fault, UpstreamError):
        return fault_of("UpstreamError", fault.message, fault.kind, fault.code)
    return fault_of(type(fault).__name__)


def finish_word(target: str, reason: str) -> str | None:
    """Return the target's word for a normalized reason, or None if the target can only end as incomplete."""
    word: str | None = _FACTS["finish"][target][reason]
    return word


def sent_word(target: str, finished: Finished) -> str | None:
    """Return the source's own finish word if the target can write it, otherwise None."""
    raw = finished.raw_reason
    kept = raw in _FACTS["finish_own"].get(target, ()) or finished.finish_reason in _FACTS["finish_raw"].get(target, ())
    return raw if kept else None


def own_word(dialect: str, finished: Finished) -> str | None:
    """Return the finish reason exactly as sent, if the source has the same dialect and the reason still fits the
    response. An unknown reason is kept if clients accept any reason.
    """
    raw = finished.raw_reason
    unknown = None if dialect in _CLOSED else "other"
    means = None if raw is None else DIALECTS[dialect]["finish"].get(raw, unknown)
    return raw if means in (finished.finish_reason, "natural") and _is_accepted(dialect, raw) else None


def _is_accepted(dialect: str, word: str | None) -> bool:
    """Return False if clients of the dialect reject a finish chunk with this word."""
    accepted = DIALECTS[dialect].get("client_members", {}).get("finish", {}).get("finishReason", "")
    return not accepted or word in accepted.removeprefix("=").removesuffix("?").split(",")


def finish_is_lost(target: str, reason: str) -> bool:
    """Return True if the target's word is less specific than the reason."""
    return reason in _FACTS["finish_lost"][target]
