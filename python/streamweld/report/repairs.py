"""Find out how `repair` changes one stream, by running the converter that repairs streams in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._messages import code_label
from streamweld._spec import CODES
from streamweld.convert import StreamConverter
from streamweld.errors import UpstreamError

if TYPE_CHECKING:
    from streamweld.options import Base, Dialect

__all__ = ["RepairCheck", "repair_reasons", "repairs_of"]


def repair_reasons(converter: StreamConverter) -> list[str]:
    """Return why a repairing converter changed its stream, each reason once; empty if it changed nothing.

    A reason is a diagnostic code whose repair changes bytes, with the detail in parentheses if the code has a fixed set
    of details: `index_missing`, `rewritten(event_name)`. The last reason is the rule of the error that ended the
    stream, unless the gateway sent the error itself.
    """
    if not converter.repaired:
        return []
    found = [one for one in converter.diagnostics if one.code == "rewritten" or CODES[one.code].mends is not None]
    reasons = [code_label(one.code, one.detail) for one in found]
    error = converter.error
    if error is not None and not isinstance(error, UpstreamError) and all(one.code != error.rule for one in found):
        reasons.append(error.rule)
    return list(dict.fromkeys(reasons))


class RepairCheck:
    """Repairs a stream that arrives in chunks, and records whether and why its bytes change."""

    __slots__ = ("_converter",)

    def __init__(self, policy: Base, dialect: Dialect) -> None:
        self._converter = StreamConverter(source=dialect, target="same", policy=policy, seed="repairs")

    def feed(self, piece: bytes) -> None:
        """Feed the next chunk."""
        self._converter.feed(piece)

    def close(self) -> None:
        """End the stream."""
        self._converter.close()

    @property
    def changed(self) -> bool:
        """Whether the bytes change."""
        return self._converter.repaired

    @property
    def reasons(self) -> list[str]:
        """The reasons as `repair_reasons` returns them."""
        return repair_reasons(self._converter)


def repairs_of(body: bytes, policy: Base, dialect: Dialect) -> list[str]:
    """Return the reasons why `repair` changes a complete body; empty if it passes the body through unchanged."""
    check = RepairCheck(policy, dialect)
    check.feed(body)
    check.close()
    return check.reasons
