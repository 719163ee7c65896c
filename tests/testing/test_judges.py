"""The judges: that they find a client right and wrong where it is, and the page that is made from their counts."""

from __future__ import annotations

import warnings

import pytest
from streamweld.testing import OPERATORS, Call, Text, build

from tests.docs.pages import DOCS
from tests.testing.judges import Court, Row, page

STREAMS = {
    "chat": build("chat", [Text("Let me look."), Call("get_weather", '{"city":"Oslo"}')]),
    "responses": build("responses", [Text("Let me look."), Call("get_weather", '{"city":"Oslo"}')]),
    "anthropic": build("anthropic", [Text("Let me look."), Call("get_weather", '{"city":"Oslo"}')]),
}


@pytest.mark.parametrize(
    ("dialect", "operator", "without"),
    [
        ("chat", "conformant", 1),
        ("responses", "conformant", 1),
        ("anthropic", "conformant", 1),
        ("chat", "index_is_a_string", 0),
        ("chat", "arguments_sent_again", 0),
        ("anthropic", "no_space_after_data", 1),
        ("anthropic", "overloaded", 1),
        ("chat", "connection_closes", 1),
    ],
)
def test_a_client_is_judged(dialect: str, operator: str, without: int) -> None:
    court, row = Court(), Row()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stream = OPERATORS[operator](STREAMS[dialect])
            assert stream is not None
            court.judge(stream, row)
    finally:
        court.close()
    assert (row.streams, row.without, row.behind, row.worse) == (1, without, 1, [])


def test_a_wrong_truth_is_found() -> None:
    court, row = Court(), Row()
    try:
        court.judge(STREAMS["chat"].but(text="something else"), row)
    finally:
        court.close()
    assert (row.streams, row.without, row.behind) == (1, 0, 0)


def test_the_page_has_a_row_for_what_is_not_always_right() -> None:
    rows = {"comments": Row(2, 2, 2), "crlf": Row(4, 1, 4), "cr": Row(4, 4, 3, ["cr: x"])}
    text = page({"chat": rows})
    assert "| `openai chat.completions.stream` | 10 | 7 | 9 | 1 |" in text
    assert "| `crlf` | Lines end with CR and LF. | 1/4 | 4/4 |" in text
    assert "`comments`" not in text
    assert "1 more operators are read correctly either way." in text


def test_the_page_of_the_documentation_is_of_this_form() -> None:
    written = (DOCS / "guides" / "testing-clients.md").read_text("utf-8")
    assert written.startswith("# What breaks without repair\n")
    assert {
        line.split("`")[1] for line in written.splitlines() if line.startswith("| `") and "/" in line.split("|")[3]
    } <= {
        *OPERATORS,
        "chains",
    }
