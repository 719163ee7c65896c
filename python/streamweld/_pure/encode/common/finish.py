"""How an answer ended: the target's word for a reason, and what its reader is told about a fault.

Knows the tables of `_spec/conversions.json`; how an ending is written is each encoder's own.
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
__all__ += ["sent_word", "told"]

Completeness: TypeAlias = Literal["complete", "assumed", "truncated"]

_FACTS = load_conversions()
CUT: Final = "TruncatedStream"
_CLOSED: Final = frozenset({"ai-sdk-parts", "ai-sdk-ui"})  # readers refuse a reason that is not on their list


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong: an exception class of `streamweld.errors`, or one of our own endings. No payload is in it."""

    name: str
    message: str
    type: str
    code: str
    sent: str | None = None
    """What the upstream sent, where that is not written in its own form and the message does not hold all of it."""

    def keep_sent(self, payload: bytes) -> Fault:
        """With the payload in which the upstream sent the error."""
        text = payload.decode("utf-8", "replace")
        return replace(self, sent=text if text and text != self.message else None)

    @property
    def sent_type(self) -> str | None:
        """What the upstream calls this kind of error, if it said so."""
        return None if self.type == _FACTS["error_type"] else self.type

    @property
    def is_cut(self) -> bool:
        """The input ended early, and nothing else is wrong: an ending of its own where the target has one."""
        return self.name == CUT


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of the source. A fault, or an answer that is not whole, is never written as a success."""

    completeness: Completeness
    fault: Fault | None


def fault_of(name: str, message: str = "", kind: str | None = None, code: str | None = None) -> Fault:
    """The fault as a reader is told it; `message`, `kind` and `code` are the upstream's own, if it sent an error."""
    known: Sequence[str] = _FACTS["faults"].get(name) or _FACTS["faults"]["StreamError"]
    return Fault(name, message or known[1], kind or _FACTS["error_type"], code or known[0])


def told(fault: StreamError) -> Fault:
    """What a reader is told of an exception."""
    if isinstance(fault, UpstreamError):
        return fault_of("UpstreamError", fault.message, fault.kind, fault.code)
    return fault_of(type(fault).__name__)


def finish_word(target: str, reason: str) -> str | None:
    """The target's word; None where it has none but its unfinished ending."""
    word: str | None = _FACTS["finish"][target][reason]
    return word


def sent_word(target: str, finished: Finished) -> str | None:
    """The word of any source that the target writes as it is: it says why the answer is not whole."""
    raw = finished.raw_reason
    kept = raw in _FACTS["finish_own"].get(target, ()) or finished.finish_reason in _FACTS["finish_raw"].get(target, ())
    return raw if kept else None


def own_word(dialect: str, finished: Finished) -> str | None:
    """The reason as a source of the same dialect sent it, if it still holds beside what the answer came to."""
    raw = finished.raw_reason
    unknown = None if dialect in _CLOSED else "other"
    means = None if raw is None else DIALECTS[dialect]["finish"].get(raw, unknown)
    return raw if means in (finished.finish_reason, "natural") else None


def finish_is_lost(target: str, reason: str) -> bool:
    """The word says less than the reason."""
    return reason in _FACTS["finish_lost"][target]
