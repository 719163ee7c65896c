"""Diagnostics told one by one, as a stream is read. It knows a converter by what it has kept, and no bytes."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, TypeAlias

from streamweld.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld.convert import StreamConverter
    from streamweld.events import Diagnostic

    OnDiagnostic: TypeAlias = Callable[[Diagnostic], object]

__all__ = ["OnDiagnostic", "Teller", "callback"]


def callback(on_diagnostic: OnDiagnostic | None) -> OnDiagnostic | None:
    """The callback as it was given, if it can be one.

    Raises:
        UsageError: for what cannot be called, or would have to be awaited: nobody would.
    """
    if on_diagnostic is None:
        return None
    if not callable(on_diagnostic):
        raise UsageError(f"on_diagnostic={on_diagnostic!r}: it must be a function of one Diagnostic, or None")
    if iscoroutinefunction(on_diagnostic) or iscoroutinefunction(type(on_diagnostic).__call__):
        raise UsageError(f"on_diagnostic={on_diagnostic!r}: it is called, not awaited; it cannot be asynchronous")
    return on_diagnostic


class Teller:
    """Calls back for each diagnostic that a converter has recorded since the last time.

    Those behind `Limits.max_diagnostics` are counted by the converter, and not told.
    """

    __slots__ = ("_converter", "_tell", "_told")

    def __init__(self, converter: StreamConverter, tell: OnDiagnostic | None) -> None:
        self._converter = converter
        self._tell = tell
        self._told = 0

    def __call__(self) -> None:
        """To be called behind every `feed` and `close`. What the callback raises comes through."""
        if self._tell is None:
            return
        found = self._converter.diagnostics
        while self._told < len(found):
            self._told += 1
            self._tell(found[self._told - 1])
