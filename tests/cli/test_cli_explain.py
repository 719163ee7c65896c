"""`streamweld explain`: every code and rule has a sentence, and for an unknown code, similar names are suggested."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import streamweld as sw
from streamweld._literals import DIALECTS
from streamweld._spec import CODES
from streamweld.check.violation import rules
from streamweld.cli.findings import ERRORS

from tests.docs.pages import DOCS
from tests.support.servers.command import in_lines, streamweld

PACKAGE = Path(sw.__file__).parent


def test_a_code() -> None:
    done = streamweld("pure", "explain", "args_restart")
    assert done.returncode == 0
    assert "The arguments started again from the beginning" in done.stdout
    assert "raises ToolCallConflict" in done.stdout
    assert "#args_restart" in done.stdout


@pytest.mark.parametrize("name", ["rewritten(header_again)", "header_again"])
def test_the_reason_of_a_rewrite(name: str) -> None:
    done = streamweld("pure", "explain", name)
    assert done.returncode == 0
    assert done.stdout.startswith(
        "rewritten(header_again) (reason that a diagnostic reports, info)\nThe id or name of a "
    )
    assert done.stdout.endswith("/docs/rules.md#rewritten\n")


@pytest.mark.parametrize("name", ["not_carried(usage_detail)", "usage_detail"])
def test_a_conversion_loss(name: str) -> None:
    done = streamweld("pure", "explain", name)
    assert done.returncode == 0
    assert done.stdout.startswith("not_carried(usage_detail) (conversion loss, info)\n")
    assert re.search(r"^https://.*/docs/reference/losses\.md$", done.stdout, re.MULTILINE)


def test_pages_are_named_by_url() -> None:
    shown = streamweld("pure", "explain", "not_carried").stdout
    assert "https://github.com/streamweld/streamweld/blob/main/docs/reference/losses.md" in shown
    assert not re.search(r"(?<!/)docs/", streamweld("pure", "explain", *CODES).stdout)


def test_a_rule_of_the_checker() -> None:
    done = streamweld("pure", "explain", "anthropic.message_start_missing")
    assert done.returncode == 0
    assert "the first event is not message_start" in done.stdout
    assert "source: Anthropic documentation" in done.stdout
    assert "\nbreaks anthropic-python " in done.stdout


def test_everything_is_listed() -> None:
    lines = in_lines(streamweld("pure", "explain", "--json").stdout)
    codes = [line["code"] for line in lines]
    assert [code for code in codes if code in {*CODES, *rules(), *ERRORS}] == [*CODES, *rules(), *ERRORS]
    assert all(line["message"] for line in lines)
    assert all(line["advice"] for line in lines if line["kind"] == "diagnostic")
    (row,) = [line for line in lines if line["code"] == "chat.call_index"]
    assert row["breaks_client"][0].keys() == {"client", "version", "effect"}


BASE_RULES = {"stream", "framing", "assembly", "limit"}  # of classes that are raised only with another rule


def test_the_rule_of_every_error_is_explained_with_advice() -> None:
    """The rules are read from the source: `rule="…"`, `_rule = "…"` and faults of the pure backend."""
    pattern = re.compile(r"""rule(?:=| = )"(\w+)"|fault\(\s*"[A-Z]\w+",\s*"(\w+)\"""")
    others = {"check", "history", "requests"}  # other tests cover the rules of these packages
    files = [path for path in PACKAGE.rglob("*.py") if others.isdisjoint(path.relative_to(PACKAGE).parts)]
    used = {next(filter(None, found)) for path in files for found in pattern.findall(path.read_text("utf-8"))}
    assert {"truncated", "unknown_dialect", "splice_gap", "internal"} <= used
    rows = {row["code"]: row for row in in_lines(streamweld("pure", "explain", "--json").stdout)}
    assert used - BASE_RULES <= rows.keys()
    assert all(row["advice"] and row["raises"] for row in rows.values() if row["kind"] == "error")


def test_the_rules_that_guides_name_are_explained() -> None:
    guide = (DOCS / "guides" / "resume.md").read_text("utf-8")
    assert set(re.findall(r"`(splice_\w+)`", guide)) <= {*ERRORS}


def test_an_unknown_dialect_is_explained_with_what_to_do() -> None:
    shown = streamweld("pure", "explain", "unknown_dialect").stdout
    assert f"(supported: {', '.join(DIALECTS)})." in shown
    assert re.search(r"^what to do: .*Bedrock.*Cohere.*Assistants", shown, re.MULTILINE)
    assert "raise the limit with `Limits(max_parts=…)`" in streamweld("pure", "explain", "limit_max_parts").stdout


def test_an_unknown_code_is_named_with_what_is_near() -> None:
    done = streamweld("pure", "explain", "args_restar", "truncated", "--json")
    assert done.returncode == 2
    assert "unknown code 'args_restar'; did you mean args_restart" in done.stderr
    assert json.loads(done.stdout)["code"] == "truncated"
    done = streamweld("pure", "explain", "qqq")
    assert "unknown code 'qqq'; `streamweld explain` alone explains all codes" in done.stderr


def test_every_code_of_the_page_of_rules_is_explained() -> None:
    """According to the page, it lists every code. `explain` explains each code and links to its section."""
    page = (DOCS / "rules.md").read_text("utf-8")
    anchors = {*re.findall(r'<a id="([^"]+)"></a>', page), *re.findall(r"^### (\w+)$", page, re.MULTILINE)}
    explained = {line["code"]: line["help_url"] for line in in_lines(streamweld("pure", "explain", "--json").stdout)}
    assert {anchor.lower() for anchor in anchors} <= {code.lower() for code in explained}
    linked = {url.partition("#")[2] for url in explained.values() if "rules.md#" in url}
    assert linked <= anchors | {anchor.lower() for anchor in anchors}


@pytest.mark.parametrize(
    ("name", "codes", "text"),
    [
        ("tool_id", ["history.tool_id"], "does not accept this form of tool call id"),
        ("call_unanswered", ["history.call_unanswered", "history_check.call_unanswered"], "Every tool call must have"),
        ("requests.option_bounds", ["requests.option_bounds"], "outside the range"),
        ("R1", ["R1"], "R1a: The call is not complete: the fragment belongs to that call"),
        ("r1b", ["R1b"], "The fragment has an id that was seen before. The header names another tool"),
        ("AM4", ["AM4"], "Policy(dup_id_empty_header=…)"),
        ("a8", ["A8"], "treat the fragment as an overflow; the identity rules decide"),
    ],
)
def test_rules_of_histories_and_numbered_rules(name: str, codes: list[str], text: str) -> None:
    done = streamweld("pure", "explain", name, "--json")
    rows = in_lines(done.stdout)
    assert (done.returncode, [row["code"] for row in rows]) == (0, codes)
    assert text in rows[0]["message"]
    shown = streamweld("pure", "explain", name)
    assert text in shown.stdout
    assert rows[0]["help_url"] in shown.stdout


def test_each_value_of_detail_and_what_to_do() -> None:
    done = streamweld("pure", "explain", "rewritten", "args_replay_dropped", "null_payload")
    assert "  header_again: " in done.stdout
    assert (
        "what to do: Your program needs no change; the result is correct. Report the fault to the gateway"
        in done.stdout
    )
    assert "raises None" not in done.stdout
