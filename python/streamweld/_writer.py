"""The step of the loop that takes from a source, where a converter is what the pieces go to.

Layer 6. Knows when nothing more is wanted of a source; knows no bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._step import Step

if TYPE_CHECKING:
    from streamweld.convert import StreamConverter

__all__ = ["Writer"]


class Writer(Step[bytes]):
    """The step of a converter: its bytes. After an ending nothing more is taken from the source."""

    __slots__ = ("_raises", "converter")

    def __init__(self, converter: StreamConverter, *, raises: bool) -> None:
        super().__init__()
        self.converter = converter
        self._raises = raises

    def step(self, chunk: bytes | bytearray | memoryview) -> bytes:
        given = self.converter.feed(chunk)
        self._look()
        return given

    def end(self, *, broken: bool = False) -> bytes:
        given = self.converter.close(broken=broken)
        self._look()
        return given

    def _look(self) -> None:
        error = self.converter.error
        if error is not None:
            self.over = self._raises or self.converter.is_over
            if self._raises:
                self.fault = error
