"""Runs the command line in its own process, for the suites that read its output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

EVIL = "\x1b]52;c;eA==\x07\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}\x9b1m[bold]\N{ZERO WIDTH JOINER}"  # changes a terminal


def streamweld(backend: str, *args: str | os.PathLike[str], stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "streamweld", *args],
        input=stdin,
        capture_output=True,
        env=os.environ | {"STREAMWELD_BACKEND": backend, "PYTHONUTF8": "1", "COLUMNS": "200"},
        timeout=120,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def in_lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]
