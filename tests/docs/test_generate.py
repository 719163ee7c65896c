"""The generated pages: up to date, complete, and consistent with the vectors."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest
from streamweld import Policy, StreamParser
from streamweld._spec import CODES, load_numbered_rules, load_rules

from tests.docs.pages import DOCS, ROOT

if TYPE_CHECKING:
    from types import ModuleType


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    found = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["generate"] = module  # its dataclasses look up their module by name
    found.loader.exec_module(module)
    return module


def test_the_pages_that_are_checked_in_are_up_to_date(generate: ModuleType) -> None:
    made = generate.checked_in()
    assert {path: (DOCS / path).read_text("utf-8") for path in made} == made, "run `make docs-generate`"


def test_reference_pages_list_their_members_for_readers_of_the_repository(generate: ModuleType) -> None:
    pages = [path for path in (DOCS / "reference").glob("*.md") if "\n::: " in path.read_text("utf-8")]
    assert len(pages) >= 10
    for path in pages:
        text = path.read_text("utf-8")
        assert text.count("<!-- members: ") == 1, path.name
        assert "<!-- members" not in generate.api_summary.without_summary(text)
    parsing = (DOCS / "reference" / "parsing.md").read_text("utf-8")
    assert "\n| `streamweld.parse(body)` | " in parsing
    assert "\n| `StreamParser.feed(data)` | " in parsing
    errors = (DOCS / "reference" / "errors.md").read_text("utf-8")
    assert "\n| `streamweld.errors.TruncatedStream` | The stream ended too early. |" in errors


def test_links_between_pages_work_in_the_repository() -> None:
    """README, `explain` and `help_url` link to the repository, which contains only files that are checked in."""
    missing = [
        f"{page.relative_to(DOCS)}: {link}"
        for page in DOCS.rglob("*.md")
        for link in re.findall(r"\]\(([^)#:\s]+\.md)(?:#[^)]*)?\)", page.read_text("utf-8"))
        if not (page.parent / link).exists()
    ]
    assert missing == []


def test_every_code_and_rule_has_an_anchor_and_a_page(generate: ModuleType) -> None:
    text = (DOCS / "rules.md").read_text("utf-8")
    rules = [f"{family}.{name}" for family, table in load_rules()["rules"].items() for name in table]
    assert [code for code in CODES if f"\n### {code}\n" not in text] == []
    assert [rule for rule in rules if f'<a id="{rule}"></a>' not in text] == []
    assert [name for name in [*CODES, *rules] if f"rules/{name}.md" not in generate.pages()] == []
    numbers = ["R1", "R2", "R3", *[f"AM{number}" for number in range(1, 13)]]
    assert [number for number in numbers if f"\n### {number}\n" not in text] == []
    assert [f"A{number}" for number in range(1, 9) if f'<a id="a{number}"></a>' not in text] == []


def test_every_switch_of_policy_is_among_the_ambiguities() -> None:
    """The first value that a paragraph describes is the default."""
    text = "\n".join(load_numbered_rules()["ambiguities"]["rules"].values())
    first = dict(re.findall(r"`Policy\((\w+)=…\)`.*? With `(\w+)`,", text, re.DOTALL))
    others = {"base", "actions", "inline_reasoning", "close_calls_at", "missing_terminal", "empty_call_without_reason"}
    switches = {option.name: str(option.default) for option in fields(Policy) if option.name not in others}
    assert first == {name: default for name, default in switches.items() if not name.startswith("text_call")}


def test_every_rule_of_the_checker_has_bytes(generate: ModuleType) -> None:
    without = [
        rule for rule in generate.check_rules() if "**Bytes before**" not in generate.pages()[f"rules/{rule}.md"]
    ]
    assert without == []


def test_every_diagnostic_has_bytes_that_show_it(generate: ModuleType) -> None:
    """The example is the vector that the page names, and reading it reports the code."""
    without = [code for code, found in generate.diagnosed().items() if not found.vectors]
    assert without == []
    vector = generate.diagnosed()["args_doubled"].example
    parser = StreamParser(dialect=vector.folder, **generate.parser_options(vector.test.get("options", {})))
    parser.feed(vector.body)
    parser.close()
    assert "args_doubled" in {note.code for note in parser.diagnostics}


def test_most_diagnostics_have_public_evidence(generate: ModuleType) -> None:
    without = [code for code in CODES if "## Evidence" not in generate.pages()[f"rules/{code}.md"]]
    assert len(without) <= 14, without


@pytest.mark.parametrize(
    ("why", "links"),
    [
        (
            "seen in a/b#1 and a/b!2",
            ["[a/b#1](https://github.com/a/b/issues/1)", "[a/b#2](https://github.com/a/b/pull/2)"],
        ),
        ("https://example.com/x. More", ["<https://example.com/x>"]),
        ("report 001", []),
    ],
)
def test_links_are_taken_from_a_vectors_why(generate: ModuleType, why: str, links: list[str]) -> None:
    assert generate.references(why) == links


def test_the_pages_of_events_show_every_field(generate: ModuleType) -> None:
    text = generate.events_page()
    assert "## ToolCall\n" in text
    assert "| `reason` | str or `None` | `None` |" in text
    assert "| `custom` | bool | `False` |" in text


def test_contributing_names_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = set(re.findall(r"`make ([a-z-]+)", (DOCS / "contributing.md").read_text("utf-8")))
    assert {name for name in named if not re.search(rf"^[\w -]*\b{name}\b[\w -]*:", makefile, re.MULTILINE)} == set()


def test_the_page_of_a_rule_names_the_clients_that_it_breaks(generate: ModuleType) -> None:
    page = generate.check_page(generate.check_rules()["chat.call_index"])
    assert "\n## Clients\n" in page
    assert re.search(r"^\| openai-python \| [\d.]+ \| raises TypeError \|$", page, re.MULTILINE)
    assert "## Clients" not in generate.check_page(generate.check_rules()["chat.object"])


def test_code_in_generated_text_is_not_escaped() -> None:
    pages = {page.name: page.read_text("utf-8") for page in DOCS.rglob("*.md")}
    generated = {name: text for name, text in pages.items() if "Generated by docs/generate.py" in text}
    assert {"rules.md", "cli.md", "losses.md"} <= generated.keys()
    assert [name for name, text in generated.items() if r"\`" in text] == []


def test_names_in_the_reference_work_as_written() -> None:
    """A function may hide its module: `streamweld.check` is the function, so `streamweld.check.Checker` fails."""
    checked = 0
    for path in (DOCS / "reference").glob("*.md"):
        for written in re.findall(r"^\| `((?:from )?streamweld\.[\w. ]+)", path.read_text("utf-8"), re.MULTILINE):
            checked += 1
            if written.startswith("from "):
                exec(written)
                continue
            first, *names = written.split(".")
            value: object = importlib.import_module(first)
            for number, name in enumerate(names, 1):
                if not hasattr(value, name):
                    importlib.import_module(".".join([first, *names[:number]]))
                value = getattr(value, name)
            assert value is not None, written
    assert checked > 100
