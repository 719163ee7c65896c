"""Names of commands and options: aliases, help in one imperative line, shell completion."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from streamweld.cli import main
from streamweld.cli.sample import sample

from tests.support.servers.command import streamweld

if TYPE_CHECKING:
    from pathlib import Path

VERBS = {"Check", "Convert", "Explain", "List", "Measure", "Parse", "Print", "Read", "Remove", "Serve", "Show", "Write"}


def commands(group: click.Group, path: str = "") -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name, command in group.commands.items():
        found[f"{path}{name}"] = command
        if isinstance(command, click.Group):
            found |= commands(command, f"{path}{name} ")
    return found


@pytest.mark.parametrize("name", sorted(commands(main)))
def test_the_help_of_a_command_is_one_imperative_line(name: str) -> None:
    line = commands(main)[name].get_short_help_str(120)
    assert line.split(",")[0].split()[0] in VERBS, line
    assert line.endswith(".")
    assert not line.endswith("...")
    assert (commands(main)[name].help or "").split(",")[0].split()[0] in VERBS | {"Replay", "Repair", "Time"}


def test_stream_and_history_conversion_share_their_names(tmp_path: Path) -> None:
    file = tmp_path / "a.sse"
    file.write_bytes(sample())
    made = [
        streamweld("auto", "convert", to, "responses", source, "chat", "--seed", "a", file).stdout
        for to, source in (("--to", "--from"), ("--target", "--source"))
    ]
    assert made[0] == made[1]
    assert made[0].startswith("event: response.created\n")
    turns = json.dumps([{"role": "user", "content": "hi"}]).encode()
    for command in ("convert", "check"):
        shown = [
            streamweld("auto", "history", command, to, "anthropic", "--json", "-", stdin=turns).stdout
            for to in ("--to", "--target")
        ]
        assert shown[0] == shown[1] != ""
    for command in (["convert"], ["history", "convert"], ["history", "check"]):
        shown_help = streamweld("auto", *command, "--help").stdout
        assert "--to " in shown_help
        assert "--target" not in shown_help


def test_convert_writes_to_a_file(tmp_path: Path) -> None:
    source, target = tmp_path / "a.sse", tmp_path / "b.sse"
    source.write_bytes(sample())
    shown = streamweld("auto", "convert", "--to", "anthropic", "--seed", "a", source)
    done = streamweld("auto", "convert", "--to", "anthropic", "--seed", "a", "-o", target, source)
    assert (done.stdout, done.returncode) == ("", shown.returncode)
    assert target.read_bytes().decode() == shown.stdout
    missing = streamweld("auto", "convert", "--to", "same", "-o", tmp_path / "c.sse", tmp_path / "missing")
    assert missing.returncode == 3
    assert not (tmp_path / "c.sse").exists()
    unwritable = streamweld("auto", "convert", "--to", "same", "-o", tmp_path / "no" / "c.sse", source)
    assert unwritable.returncode == 3
    assert unwritable.stderr.startswith("streamweld: the output cannot be written: ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_one_of_the_shell(shell: str) -> None:
    script = streamweld("auto", "completion", shell).stdout
    assert "_STREAMWELD_COMPLETE" in script
    program = shutil.which(shell)
    if program is not None:
        done = subprocess.run([program, "-n"], input=script.encode(), capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["insp"], "inspect"),
        (["explain", "args_repl"], "args_replay_dropped"),
        (["check", "--select", "chat.role_r"], "chat.role_repeated"),
        (["inspect", "--output-format", "sa"], "sarif"),
    ],
)
def test_completion(words: list[str], expected: str) -> None:
    requested = {
        "_STREAMWELD_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["streamweld", *words]),
        "COMP_CWORD": str(len(words)),
    }
    code = "from streamweld.cli import main; main(prog_name='streamweld')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | requested, capture_output=True, text=True, check=False
    )
    assert f"plain,{expected}" in done.stdout.splitlines()


def test_explain_of_rules_and_errors() -> None:
    shown = streamweld("auto", "explain", "chat.role_repeated", "limit_max_event_bytes", "not_an_event_stream")
    assert shown.returncode == 0
    for reported in (
        "docs/rules.md#chat.role_repeated",
        "docs/concepts/limits.md",
        "docs/rules.md#not_an_event_stream",
    ):
        assert reported in shown.stdout
