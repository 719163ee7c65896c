"""The comparison of clients: correct and incorrect clients are detected, and the page is generated from the counts."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest
from streamweld.testing import OPERATORS, Call, Text, build, operators_for

from tests.docs.pages import DOCS
from tests.testing import agents
from tests.testing.judges import PARTS, REFUSALS, Court, Row, page

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAMS = {
    "chat": build("chat", [Text("Let me look."), Call("get_weather", '{"city":"Oslo"}')]),
    "responses": build("responses", [Text("Let me look."), Call("get_weather", '{"city":"Oslo"}')]),
    "anthropic": build("anthropic", [Text("Let me look."), Call("get_weather", '{"city":"Oslo"}')]),
}


@pytest.fixture(scope="module")
def court() -> Iterator[Court]:
    made = Court()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("dialect", "operator", "without"),
    [
        ("chat", "conformant", 1),
        ("responses", "conformant", 1),
        ("anthropic", "conformant", 1),
        ("chat", "tool_calls_is_an_object", 0),
        ("chat", "arguments_sent_again", 0),
        ("anthropic", "no_space_after_data", 1),
        ("anthropic", "overloaded", 1),
        ("chat", "connection_closes", 1),
    ],
)
def test_a_client_is_judged(court: Court, dialect: str, operator: str, without: int) -> None:
    row = Row()
    stream = OPERATORS[operator](STREAMS[dialect])
    assert stream is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        court.judge(stream, row)
    assert (row.streams, row.without, row.behind, row.worse) == (1, without, 1, [])


@pytest.mark.parametrize("operator", [each.name for each in operators_for("chat")])
def test_openai_reads_every_chat_operator_with_strict_tools(court: Court, operator: str) -> None:
    row = Row()
    for parts in PARTS:
        stream = OPERATORS[operator](build("chat", parts))
        if stream is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                court.judge(stream, row)
    assert (row.behind + row.refused, row.worse) == (row.streams, [])
    assert bool(row.refused) == any(operator in refusal["operators"] for refusal in REFUSALS)


def test_a_wrong_truth_is_found(court: Court) -> None:
    row = Row()
    court.judge(STREAMS["chat"].but(text="something else"), row)
    assert (row.streams, row.without, row.behind) == (1, 0, 0)


def test_the_page_has_a_row_for_what_is_not_always_right() -> None:
    rows = {"comments": Row(2, 2, 2), "crlf": Row(4, 1, 4), "cr": Row(4, 4, 3, ["cr: x"])}
    text = page({"chat": rows})
    assert "| `openai chat.completions.stream` | 10 | 7 | 9 | 0 | 1 |" in text
    assert "| `crlf` | Lines end with CR and LF. | 1/4 | 4/4 |" in text
    assert "`comments`" not in text
    assert "Operators not listed, because the client always reads their streams correctly: 1." in text


def test_the_page_of_the_agents_counts_what_is_fixed_and_what_is_made_wrong() -> None:
    fixed, right, wrong = {"comments": Row(1, 0, 1)}, {"comments": Row(1, 1, 1)}, {"crlf": Row(1, 1, 0)}
    text = agents.page({("AI SDK", "chat"): fixed, ("LangChain", "chat"): right | wrong}, {"LangChain": "1.2"})
    assert "LangChain 1.2." in text
    assert "| AI SDK | `chat` | 1 | 0 | 1 | 0 |" in text
    assert "| LangChain | `chat` | 2 | 2 | 1 | 1 |" in text
    assert "| **fixed** | right |" in text
    assert "| `crlf` | Lines end with CR and LF. |  | wrong with streamweld |" in text


def test_the_page_of_the_agents_in_the_documentation_has_all_of_them() -> None:
    written = (DOCS / "guides" / "testing-agents.md").read_text("utf-8")
    for name, (_, dialects, _) in agents.FRAMEWORKS.items():
        for dialect in dialects:
            assert f"\n| {name} | `{dialect}` |" in written
    for dialect in agents.DIALECTS:
        assert f"\n| {agents.AI_SDK} | `{dialect}` |" in written


def test_the_page_of_the_documentation_is_of_this_form() -> None:
    written = (DOCS / "guides" / "testing-clients.md").read_text("utf-8")
    assert written.startswith("# What breaks without repair\n")
    rows = [line for line in written.splitlines() if line.startswith("| `") and "/" in line.split("|")[3]]
    assert len(rows) > 50
    assert {row.split("`")[1] for row in rows} <= {*OPERATORS, "chains"}
