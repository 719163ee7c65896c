"""No pattern takes more than linear time, whatever the text: beginnings of error pages, and names of models."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import streamweld as sw
from streamweld._messages import HEAD_BYTES, input_hint, is_markup
from streamweld.errors import StreamError
from streamweld.requests.tables import model_facts, reasons_by_default

from tests.support.backends import using
from tests.support.load.linear import assert_linear_work

if TYPE_CHECKING:
    from collections.abc import Callable

COMMENT = b"<!---->"
FILLED = HEAD_BYTES // len(COMMENT)  # the number of comments in the bytes that are examined
PAGES = {
    "comments": COMMENT * FILLED,
    "comments with blanks": b"<!-- -->  " * (HEAD_BYTES // 10),
    "an unclosed comment after comments": COMMENT * (FILLED - 1) + b"<!--",
    "unclosed comments": b"<!-- " * 2000,
    "spaces": b" " * 10_000,
    "line ends": b"\n" * 10_000,
    "a doctype and spaces": b"<!doctype" + b" " * 10_000,
}
FIRST = b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n'


@pytest.mark.timeout(60)  # with 73 comments and a pattern that tries each split, no test ends
@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_comments_is_read_at_once(name: str, backend: str) -> None:
    page = PAGES[name]
    with using(backend):
        with pytest.raises(StreamError):
            sw.parse(page)
        if name != "line ends":
            with pytest.raises(sw.SpliceError):
                sw.splice(FIRST, page)
        else:  # blank lines lose nothing
            assert sw.splice(FIRST, page) == FIRST
        assert sw.convert(page, target="anthropic").startswith(b"event: error\n")


@pytest.mark.parametrize(
    ("body", "markup"),
    [
        (COMMENT * 60 + b"<html>", True),
        (b"<!-- a -->\n<!-- <html> --> \t<!DOCTYPE  html>", True),
        (b"<!-- a > -- > --> <body>", True),
        (b"<!-- a --> text <!-- --> <html>", False),
        (b"<!-- <html>", False),
        (COMMENT * 60, False),
    ],
)
def test_a_page_after_comments(body: bytes, markup: bool) -> None:
    assert is_markup(body) is markup
    assert ("HTML" in input_hint(body)) is markup


WORDS: dict[str, Callable[[str], object]] = {
    "claude-": lambda model: model_facts("anthropic", model),
    "claude-a-": lambda model: model_facts("anthropic", model),
    "gemini-": lambda model: model_facts("gemini", model),
    "/o1-chat": reasons_by_default,
    "/o1": lambda model: reasons_by_default(model + "-chat"),
    "/": reasons_by_default,
}


@pytest.mark.parametrize("word", WORDS)
def test_long_model_names(word: str) -> None:
    assert_linear_work(lambda count: partial(WORDS[word], word * count), 4000)


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("o1", True),
        ("openai/o3-mini", True),
        ("team-chat/gpt-5", True),
        ("x.codex-mini", True),
        ("o1-chat", False),
        ("o1/gpt-5-chat-latest", False),
        ("grok-4-fast-non-reasoning", False),
        ("gpt-4o", False),
    ],
)
def test_models_that_reason_by_default(model: str, reasons: bool) -> None:
    assert reasons_by_default(model) is reasons
