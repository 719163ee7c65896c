"""Compressed bodies: slices, the capped ratio, and incomplete bodies. Also, bodies are split into single events."""

from __future__ import annotations

import gzip
import time
import tracemalloc
import zlib
from typing import TYPE_CHECKING

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamweld.errors import LimitExceeded
from streamweld.integrations import _inflate
from streamweld.integrations._body import _events
from streamweld.integrations._inflate import FREE_BYTES, SLICE, BrokenBodyError, Inflater, is_installed, is_readable

if TYPE_CHECKING:
    from collections.abc import Callable

MEBI = 1_048_576


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZIP", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": (" br", lambda data: brotli.compress(data, quality=5)),
}
TEXT = b"".join(b'data: {"n":%d}\n\n' % n for n in range(20_000))


def inflated(encoding: str, *pieces: bytes) -> bytes:
    inflater = Inflater(encoding)
    out = b"".join([b"".join(inflater.feed(piece)) for piece in pieces])
    inflater.end()
    return out


@pytest.mark.parametrize("name", PACKED)
def test_every_encoding_in_pieces_of_any_size(name: str) -> None:
    encoding, pack = PACKED[name]
    body = pack(TEXT)
    assert is_installed(encoding)
    assert is_readable(encoding) == (name != "br")
    assert inflated(encoding, body) == TEXT
    assert inflated(encoding, *[body[at : at + 7] for at in range(0, len(body), 7)]) == TEXT
    assert inflated(encoding, *[bytes((byte,)) for byte in pack(b"short")]) == b"short"
    assert inflated(encoding) == b""


@pytest.mark.parametrize("name", PACKED)
def test_a_body_that_ends_early_is_not_complete(name: str) -> None:
    encoding, pack = PACKED[name]
    body = pack(b"some text")
    for end in range(1, len(body)):
        inflater = Inflater(encoding)
        for _ in inflater.feed(body[:end]):
            pass
        assert not inflater.is_complete
        with pytest.raises(BrokenBodyError, match="ends before it is complete"):
            inflater.end()


@pytest.mark.parametrize("name", PACKED)
def test_what_is_not_of_the_encoding(name: str) -> None:
    encoding, pack = PACKED[name]
    for body in (b"\xff" * 50, pack(TEXT) + b"\xff" * 50):
        inflater = Inflater(encoding)
        pieces: list[bytes] = []
        with pytest.raises(BrokenBodyError, match="is malformed"):
            pieces.extend(inflater.feed(body))  # `extend` keeps the output before the exception
        out = b"".join(pieces)
        if name == "br" and len(body) > 50:  # brotli decoders return nothing for input that contains a fault
            assert TEXT.startswith(out)
            assert len(out) > len(TEXT) // 2
        else:
            assert out == (TEXT if len(body) > 50 else b"")


def test_members_one_after_another() -> None:
    assert inflated("gzip", gzip.compress(b"a") + gzip.compress(b"") + gzip.compress(b"b")) == b"ab"
    many = gzip.compress(b"", mtime=0) * (MEBI // 20)
    began = time.process_time()
    assert inflated("gzip", many) == b""
    assert time.process_time() - began < 5  # copying the rest for each member would take minutes


@pytest.mark.parametrize("name", PACKED)
def test_a_bomb_is_given_up_and_is_never_in_memory(name: str) -> None:
    encoding, pack = PACKED[name]
    bomb = pack(bytes(64 * MEBI))
    sizes: list[int] = []
    tracemalloc.start()
    with pytest.raises(LimitExceeded) as caught:
        sizes.extend(map(len, Inflater(encoding, 200).feed(bomb)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (caught.value.limit_name, caught.value.limit) == ("max_inflate_ratio", 200)
    assert max(sizes) <= SLICE
    assert FREE_BYTES - SLICE <= sum(sizes) <= FREE_BYTES
    assert peak < MEBI


def test_a_body_below_the_ratio_is_read_to_its_end() -> None:
    block = (b": " + bytes(range(33, 126)) * 7 + b"\n").ljust(MEBI, b"x")
    body = gzip.compress(block * 20, 1)
    assert len(block * 20) / len(body) > 100
    assert sum(len(piece) for piece in Inflater("gzip", 300).feed(body)) == 20 * MEBI


def test_without_a_package_that_can_bound_it_an_encoding_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        """The interface of brotli before 1.2."""

        class Decompressor:
            def process(self, data: bytes) -> bytes:
                return data

    for module, expected in ((Old, False), (None, False), (brotli, True)):
        monkeypatch.setattr(_inflate, "_first", lambda *_, module=module: module)
        _inflate._brotli.cache_clear()
        assert is_installed("br") is expected
    monkeypatch.undo()
    _inflate._brotli.cache_clear()
    assert not is_installed("compress")


LINES = st.sampled_from([b"data: {}", b": x", b"event: y", b'{"a":1}', b"", b" z", b"abc"])


@given(st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=12), st.integers(0, 40))
def test_events_are_cut_apart(lines: list[tuple[bytes, bytes]], begin: int) -> None:
    """The concatenated units equal the body, and no unit contains two events, except that the first may begin inside a
    line.
    """
    body = b"".join([line + end for line, end in lines])[begin:]
    units = list(_events(body))
    assert b"".join(units) == body
    for unit in units[1:]:
        within = [line for line in unit.splitlines() if line]
        assert not any(line.startswith(b"{") for line in within[:-1])
        event, _, _ = unit.replace(b"\r\n", b"\n").replace(b"\r", b"\n").partition(b"\n\n")
        assert unit.rstrip(b"\r\n").count(b"\n\n") == 0
        assert event
