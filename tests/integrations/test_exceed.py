"""`StreamConverter.exceed`: a limit that only the caller can measure ends the stream like every other limit."""

from __future__ import annotations

from typing import Any

import pytest
import streamweld as sw

from tests.support.backends import using
from tests.support.failing import MARKERS, TIDY, WHOLE

TARGETS = ("chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui", "same")
RATIO = "max_inflate_ratio"


def exceeded(source: str, target: str, body: bytes, **options: Any) -> tuple[bytes, sw.StreamConverter]:
    converter = sw.StreamConverter(source=source, target=target, seed="s", **options)  # type: ignore[arg-type]
    out = converter.feed(body) + converter.exceed(RATIO)
    assert converter.exceed(RATIO) == converter.close() == b""
    return out, converter


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", TIDY)
def test_it_is_an_honest_ending_with_the_limit_as_error(backend: str, source: str, target: str) -> None:
    body = TIDY[source]
    with using(backend):
        out, converter = exceeded(source, target, body[: body.rindex(b"\n\n", 0, -2) + 2], limits=sw.Limits())
    error = converter.error
    assert isinstance(error, sw.LimitExceeded)
    assert (error.limit_name, error.limit, error.observed, error.rule) == (RATIO, 200, 201, f"limit_{RATIO}")
    assert error.byte_offset == len(body[: body.rindex(b"\n\n", 0, -2) + 2])
    assert error.partial is not None
    assert error.partial.completeness == "truncated"
    written = source if target == "same" else target
    assert MARKERS.get(written, b"no marker") not in out
    with pytest.raises((sw.UpstreamError, sw.TruncatedStream)):
        sw.parse(out, dialect=written)  # type: ignore[arg-type]


@pytest.mark.parametrize("target", ["chat", "anthropic", "same"])
def test_both_backends_write_the_same(target: str) -> None:
    outs = []
    for backend in ("native", "pure"):
        with using(backend):
            outs.append([exceeded("chat", target, TIDY["chat"][:end])[0] for end in range(0, len(TIDY["chat"]), 7)])
    assert outs[0] == outs[1]


def test_without_a_dialect_there_is_nothing_to_write(backend: str) -> None:
    with using(backend):
        out, converter = exceeded("auto", "same", b": hello\n\n")
    assert out == b": hello\n\n"
    assert isinstance(converter.error, sw.LimitExceeded)


def test_behind_a_whole_answer_nothing_is_written(backend: str) -> None:
    with using(backend):
        out, _ = exceeded("chat", "same", WHOLE["chat"])
    assert out == WHOLE["chat"]


def test_a_cap_that_does_not_exist(backend: str) -> None:
    with using(backend):
        converter = sw.StreamConverter(source="chat", target="same")
        with pytest.raises(sw.UsageError, match="max_nothing"):
            converter.exceed("max_nothing")


def test_it_is_raised_if_that_is_wanted(backend: str) -> None:
    with using(backend):
        converter = sw.StreamConverter(
            source="chat", target="same", raise_on_error=True, limits=sw.Limits(max_inflate_ratio=7)
        )
        assert b'"code":"limit_exceeded"' in converter.feed(TIDY["chat"]) + converter.exceed(RATIO)
        with pytest.raises(sw.LimitExceeded) as caught:
            converter.close()
    assert caught.value.limit == 7
