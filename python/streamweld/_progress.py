"""What is known of a stream while its events or its converted bytes are taken.

Layer 6. It knows that there is a reader with a response; no parser, no converter, no source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from streamweld.events import Diagnostic
    from streamweld.response import Response

__all__ = ["Progress"]


class _Reader(Protocol):
    @property
    def response(self) -> Response: ...
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]: ...
    @property
    def dialect(self) -> str | None: ...


_R = TypeVar("_R", bound=_Reader)


class Progress(Generic[_R]):
    """What such an iterator has beside its items."""

    __slots__ = ()
    _reader: _R

    @property
    def response(self) -> Response:
        """Everything that was read so far, as a new immutable value."""
        return self._reader.response

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every repair, anomaly and loss so far, in order."""
        return self._reader.diagnostics

    @property
    def dialect(self) -> str | None:
        """The wire format of the source; None until the first payload has shown it."""
        return self._reader.dialect
