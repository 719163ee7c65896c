"""Decompress bodies in slices, because the complete output of a small compressed chunk may not fit in memory.

gzip and deflate are always available. `br` and `zstd` are available if a package that can limit its output is
installed.
"""

from __future__ import annotations

import sys
import zlib
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from streamweld.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "FREE_BYTES",
    "SLICE",
    "BrokenBodyError",
    "Inflater",
    "check_ratio",
    "coding_of",
    "is_installed",
    "is_plain",
    "is_readable",
    "slices",
]

SLICE: Final = 65_536
"""The maximum number of bytes returned at once."""

FREE_BYTES: Final = 16 * 1_048_576
"""`Limits.max_inflate_ratio` is not enforced until a body has inflated to this many bytes."""

# Number of input bytes that are decompressed in one step. The number is small, because decoders copy their unused
# input, and a body may consist of many small members (compressed streams in sequence).
_WINDOW: Final = 4096
_GZIP: Final = frozenset({"gzip", "x-gzip"})
_PLAIN: Final = frozenset({"", "identity"})
_BUILT_IN: Final = _GZIP | _PLAIN | {"deflate"}
_CODINGS: Final = _GZIP | {"deflate", "br", "zstd"}
# RFC 9659, section 3: every decoder of this content coding must support windows of 8 MiB.
_ZSTD_WINDOW_LOG: Final = 23


class BrokenBodyError(Exception):
    """The body is malformed or incomplete, but the HTTP client does not report this as an error."""


def coding_of(header: str) -> str:
    """Return the encodings in a `content-encoding` that a client would decode. Unknown names are ignored.

    >>> coding_of("GZIP"), coding_of("utf-8, br"), coding_of("none"), coding_of("gzip, br")
    ('gzip', 'br', '', 'gzip, br')
    """
    words = [word for part in header.split(",") if (word := _word(part)) in _CODINGS]
    return ", ".join(words)


def is_plain(encoding: str) -> bool:
    """Return True if a `content-encoding` does not change the body."""
    return _word(encoding) in _PLAIN


def is_readable(encoding: str) -> bool:
    """Return True if `Inflater` supports this `content-encoding` without additional packages."""
    return _word(encoding) in _BUILT_IN


def is_installed(encoding: str) -> bool:
    """Return True if `Inflater` can decode this `content-encoding` with the installed packages."""
    word = _word(encoding)
    return word in _BUILT_IN or (word == "br" and _brotli() is not None) or (word == "zstd" and _zstd() is not None)


def slices(data: bytes | bytearray | memoryview, size: int = SLICE) -> Iterator[bytes]:
    """Yield the data in slices of at most `size` bytes. Data that fits in one slice is not copied.

    >>> list(slices(b"abcde", 2))
    [b'ab', b'cd', b'e']
    """
    return iter((bytes(data),)) if len(data) <= size else _slices(data, size)


def _slices(data: bytes | bytearray | memoryview, size: int) -> Iterator[bytes]:
    with memoryview(data) as view:
        for at in range(0, len(view), size):
            yield bytes(view[at : at + size])


def check_ratio(packed: int, plain: int, max_ratio: int | None) -> None:
    """Raise LimitExceeded if the ratio of decompressed to compressed bytes exceeds the limit."""
    if max_ratio is not None and plain > max(FREE_BYTES, max_ratio * packed):
        raise LimitExceeded(limit_name="max_inflate_ratio", limit=max_ratio, observed=max_ratio + 1)


class Inflater:
    """Decompresses one body.

    Args:
        encoding: the value of `content-encoding`; `is_installed` must return True for it.
        max_ratio: as in `Limits.max_inflate_ratio`; None disables the limit.
    """

    __slots__ = ("_decoder", "_head", "_in", "_max_ratio", "_new", "_out", "_word")

    def __init__(self, encoding: str, max_ratio: int | None = None) -> None:
        self._max_ratio = max_ratio
        self._word = _word(encoding)
        self._head = b""  # beginning of a deflate body, kept until its format is known (with or without a zlib header)
        self._decoder: _Decoder | None = None
        self._new: Callable[[], _Decoder] = _decoder_of(self._word)
        self._in = self._out = 0

    @property
    def is_complete(self) -> bool:
        """Return True if the body may end here. An empty body is complete."""
        return not self._head and (self._decoder is None or self._decoder.is_done)

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Yield the decompressed bytes of `data`, at most `SLICE` bytes at a time. Slices may be empty.

        Raises:
            BrokenBodyError: if the data does not conform to the encoding.
            LimitExceeded: if the body inflates to more than `max_ratio` times its size.
        """
        return slices(data) if self._word in _PLAIN else self._unpacked(data)

    def end(self) -> None:
        """End the body. Raises BrokenBodyError if the body is incomplete."""
        if not self.is_complete:
            raise BrokenBodyError(f"the {self._word} body ends before it is complete")

    def _unpacked(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        for window in slices(data, _WINDOW):
            self._in += len(window)
            yield from self._inflated(window)

    def _inflated(self, rest: bytes) -> Iterator[bytes]:
        if self._decoder is None and self._word == "deflate":
            rest, self._head = self._head + rest, b""
            if len(rest) < _WRAPPER:
                self._head = rest
                return
            if not _is_wrapped(rest):
                # RFC 9110, section 8.4.1.2: some servers send deflate data without the zlib header.
                self._new = lambda: _Zlib(-zlib.MAX_WBITS)
        while True:
            if self._decoder is None or (self._decoder.is_done and rest):  # a compressed body may have several members
                self._decoder = self._new()
            decoder = self._decoder
            try:
                out = decoder.inflate(rest)
            except decoder.errors as error:
                raise BrokenBodyError(f"the {self._word} body is malformed: {error}") from None
            self._out += len(out)
            check_ratio(self._in, self._out, self._max_ratio)
            yield out
            rest = decoder.unused
            if not (decoder.has_more or rest):
                return


# --- One class for each compression format


class _Decoder(Protocol):
    errors: tuple[type[Exception], ...]
    has_more: bool
    """True if more output is available without further input."""

    @property
    def is_done(self) -> bool: ...
    @property
    def unused(self) -> bytes:
        """Return the input after the end of the compressed stream."""
        ...

    def inflate(self, data: bytes) -> bytes:
        """Return at most `SLICE` bytes of output."""
        ...


class _Zlib:
    errors: tuple[type[Exception], ...] = (zlib.error,)

    def __init__(self, wbits: int) -> None:
        self._state = zlib.decompressobj(wbits)
        self._fault: zlib.error | None = None
        self.has_more = False

    @property
    def is_done(self) -> bool:
        return self._state.eof

    @property
    def unused(self) -> bytes:
        return self._state.unused_data

    def inflate(self, data: bytes) -> bytes:
        if self._fault is not None:
            raise self._fault
        data = self._state.unconsumed_tail + data
        before = self._state.copy()
        try:
            out = self._state.decompress(data, SLICE)
        except zlib.error as fault:
            # When zlib finds an error, it discards the output of the bytes before the error, so `_up_to_fault` decodes
            # those bytes again.
            self._fault = fault
            self.has_more = True
            return _up_to_fault(before, data)
        self.has_more = not self._state.eof and len(out) == SLICE
        return out


def _up_to_fault(state: zlib._Decompress, data: bytes) -> bytes:  # pyright: ignore[reportPrivateUsage] (its only name)
    made: list[bytes] = []
    with suppress(zlib.error):
        for byte in data:
            made.append(state.decompress(bytes((byte,))))  # noqa: PERF401 (keeps output before the fault)
    return b"".join(made)


class _Brotli:
    unused = b""  # input after the end is reported as an error

    def __init__(self, module: Any) -> None:
        self._state = module.Decompressor()
        self.errors: tuple[type[Exception], ...] = (module.error,)
        self.has_more = False

    @property
    def is_done(self) -> bool:
        finished: bool = self._state.is_finished()
        return finished

    def inflate(self, data: bytes) -> bytes:
        # The brotli decoder may return up to three times as many bytes as the limit allows.
        out: bytes = self._state.process(data, output_buffer_limit=SLICE // 4)
        # Output may remain even if `can_accept_more_data` is true, so non-empty output means that there may be more.
        self.has_more = not self.is_done and (bool(out) or not self._state.can_accept_more_data())
        return out


class _Zstd:
    """Decodes zstd with `compression.zstd` or `backports.zstd`."""

    def __init__(self, module: Any) -> None:
        options = {module.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
        self._state = module.ZstdDecompressor(options=options)
        self.errors: tuple[type[Exception], ...] = (module.ZstdError,)
        self.has_more = False

    @property
    def is_done(self) -> bool:
        done: bool = self._state.eof
        return done

    @property
    def unused(self) -> bytes:
        rest: bytes = self._state.unused_data
        return rest

    def inflate(self, data: bytes) -> bytes:
        out: bytes = self._state.decompress(data, SLICE)
        self.has_more = not (self._state.eof or self._state.needs_input)
        return out


_WRAPPER: Final = 2  # bytes of the zlib header


def _is_wrapped(head: bytes) -> bool:
    """Return True if deflate data starts with the zlib header of RFC 1950."""
    return head[0] & 15 == zlib.DEFLATED and (head[0] << 8 | head[1]) % 31 == 0


def _word(encoding: str) -> str:
    return encoding.strip().lower()


def _decoder_of(word: str) -> Callable[[], _Decoder]:
    match word:
        case "br":
            return lambda: _Brotli(_brotli())
        case "zstd":
            return lambda: _Zstd(_zstd())
        case _:
            wbits = zlib.MAX_WBITS | 16 if word in _GZIP else zlib.MAX_WBITS
            return lambda: _Zlib(wbits)


@cache
def _brotli() -> Any:
    """Import brotli or brotlicffi.

    Returns None if neither is installed, or if the installed release (before 1.2) cannot limit its output.
    """
    module = _first("brotlicffi", "brotli")
    try:
        module.Decompressor().process(b"", output_buffer_limit=1)
    except (AttributeError, TypeError):
        return None
    return module


@cache
def _zstd() -> Any:
    return _first("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def _first(*names: str) -> Any:
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None
