"""Select the backend that parses the bytes, `native` (the Rust extension) or `pure` (Python), and load its classes.

`STREAMWELD_BACKEND` selects it once, at import: `auto` (native if it is installed), `native` (fails if it is not
installed) or `pure`. Only this module and `sse` use both backends.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast

from streamweld._extension import NAME, extension
from streamweld.errors import UsageError

if TYPE_CHECKING:
    from types import ModuleType

    from streamweld.errors import StreamError
    from streamweld.events import Diagnostic, Event
    from streamweld.response import Choice, Fold

__all__ = [
    "VARIABLE",
    "Backend",
    "Converter",
    "Parser",
    "Repairer",
    "backend",
    "load",
    "load_converter",
    "load_repairer",
]

Backend: TypeAlias = Literal["native", "pure"]
VARIABLE: Final = "STREAMWELD_BACKEND"


class Parser(Protocol):
    """Interface of the parsers in both backends: bytes in, events out, without clocks or sockets."""

    def __init__(self, dialect: str, config: dict[str, Any]) -> None: ...
    @property
    def dialect(self) -> str | None: ...
    @property
    def diagnostics(self) -> list[Diagnostic]: ...
    def feed(self, data: bytes | bytearray | memoryview, /) -> list[Event]: ...
    def feed_silent(self, data: bytes | bytearray | memoryview, /) -> None: ...
    def close(self, broken: bool = False) -> list[Event]: ...
    def close_silent(self, broken: bool = False) -> None: ...
    def snapshot(self) -> tuple[list[Event], str, int]: ...
    def fold(self, choice: type[Choice], /) -> Fold | None:
        """Return the members of `response`, or None if `Response` must compute them from `snapshot()`."""

    def shown_arguments(self, part: int, /) -> str | None: ...


class Converter(Protocol):
    """Interface of the converters: bytes in, bytes out, without clocks, sockets or randomness."""

    error: StreamError | None

    def __init__(self, source: str, target: str, config: dict[str, Any], options: dict[str, Any]) -> None: ...
    @property
    def dialect(self) -> str | None: ...
    @property
    def diagnostics(self) -> list[Diagnostic]: ...
    def feed(self, data: bytes | bytearray | memoryview, /) -> bytes: ...
    def close(self, broken: bool = False) -> bytes: ...
    def exceed(self, name: str) -> bytes: ...
    def snapshot(self) -> tuple[list[Event], str, int]: ...
    def fold(self, choice: type[Choice], /) -> Fold | None:
        """Return the members of `response`, or None if `Response` must compute them from `snapshot()`."""


class DetectingConverter(Converter, Protocol):
    """A converter between two dialects, which stores the input until the dialect is detected."""

    @property
    def tool_ids(self) -> list[tuple[str, str]]: ...
    def store(self, piece: bytes, /) -> None:
        """Store the next input, which does not complete a payload."""

    def feed_stored(self, piece: bytes, /) -> bytes:
        """Read the stored input that was not read yet, and `piece`, which completes a payload."""
        ...

    def overflow(self, piece: bytes, /) -> bytes:
        """End the input because `piece`, which does not complete a payload, exceeds the limit on stored bytes."""
        ...

    def take_stored(self) -> list[bytes]:
        """Return the whole input, to repair it, after a call was refused because the source is in the target dialect.

        The converter must not be used again.
        """
        ...


class Repairer(Converter, Protocol):
    """Interface of the repairers: converters that report whether they changed the stream."""

    repaired: bool

    @property
    def is_over(self) -> bool: ...


@cache
def load(name: Backend) -> type[Parser]:
    """Return the parser class of one backend. Both backends may be loaded in one process.

    Raises:
        UsageError: if `native` is requested and the extension is not installed.
    """
    if name == "native":
        return cast("type[Parser]", _native().Parser)
    from streamweld._pure.pipeline.parser import Parser as PureParser

    return PureParser


def load_converter(name: Backend) -> type[DetectingConverter]:
    """Return the converter class of one backend. Both backends may be loaded in one process.

    Raises:
        UsageError: if `native` is requested and the extension is not installed.
    """
    if name == "native":
        return cast("type[DetectingConverter]", _native().Converter)
    from streamweld._pure.encode.converter import Converter as PureConverter

    return PureConverter


def load_repairer(name: Backend) -> type[Repairer]:
    """Return the repairer class of one backend.

    A repairer is used instead of a converter if source and target are the same dialect.

    Raises:
        UsageError: if `native` is requested and the extension is not installed.
    """
    if name == "native":
        return cast("type[Repairer]", _native().Repairer)
    from streamweld._pure.repair.repairer import Repairer as PureRepairer

    return PureRepairer


def _native() -> ModuleType:
    module = extension()
    if module is None:
        raise UsageError(f"{NAME} is not installed: this is a pure-Python installation of streamweld")
    return module


def _choose(wanted: str) -> Backend:
    if wanted == "auto":
        return "pure" if extension() is None else "native"
    if wanted == "native":
        if extension() is None:
            raise UsageError(f"{VARIABLE}=native, but {NAME} is not installed")
        return "native"
    if wanted == "pure":
        return "pure"
    raise UsageError(f"{VARIABLE}={wanted!r}: it must be auto, native or pure")


def _starts_command() -> bool:
    """Return whether the process was started as `streamweld ...` or `python -m streamweld ...`.

    Both commands import the package before the code of the command line.
    """
    start = sys.argv[0] if sys.argv else ""
    if start == "-m":
        return not {"streamweld", "-mstreamweld"}.isdisjoint(sys.orig_argv)
    return os.path.basename(start).removesuffix(".exe") == "streamweld"  # noqa: PTH119 (pathlib is slow to import)


def _chosen() -> Backend:
    try:
        return _choose(os.environ.get(VARIABLE) or "auto")
    except UsageError as error:
        if not _starts_command():
            raise
        sys.stderr.write(f"streamweld: {error}\n")
        raise SystemExit(2) from None


backend: Final = _chosen()
