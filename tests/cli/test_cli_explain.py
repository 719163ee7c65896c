"""`streamweld explain`: every code and rule has a sentence; for unknown ones, similar names are suggested."""

from __future__ import annotations

import json

from streamweld._spec import CODES
from streamweld.check.violation import rules
from streamweld.cli.findings import ERRORS

from tests.support.servers.command import in_lines, streamweld


def test_a_code() -> None:
    done = streamweld("pure", "explain", "args_restart")
    assert done.returncode == 0
    assert "The arguments started again from the beginning" in done.stdout
    assert "raises ToolCallConflict" in done.stdout
    assert "#args_restart" in done.stdout


def test_a_rule_of_the_checker() -> None:
    done = streamweld("pure", "explain", "anthropic.message_start_missing")
    assert done.returncode == 0
    assert "the first event is not message_start" in done.stdout
    assert "source: Anthropic documentation" in done.stdout
    assert "\nbreaks anthropic-python " in done.stdout


def test_everything_is_listed() -> None:
    lines = in_lines(streamweld("pure", "explain", "--json").stdout)
    assert [line["code"] for line in lines] == [*CODES, *rules(), *ERRORS]
    assert all(line["message"] for line in lines)
    (row,) = [line for line in lines if line["code"] == "chat.call_index"]
    assert row["breaks_client"][0].keys() == {"client", "version", "effect"}


def test_an_unknown_code_is_named_with_what_is_near() -> None:
    done = streamweld("pure", "explain", "args_restar", "truncated", "--json")
    assert done.returncode == 2
    assert "unknown code 'args_restar'; did you mean args_restart" in done.stderr
    assert json.loads(done.stdout)["code"] == "truncated"
