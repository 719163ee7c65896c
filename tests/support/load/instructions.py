"""Counts the instructions that a piece of code executes, with Valgrind. Unlike time, the count depends neither on other
processes nor on caches, and hardly varies from run to run.

`Counter` starts a process under Cachegrind, which imports the package once and forks for each count.
"""

from __future__ import annotations

import gc
import os
import pickle
import re
import shutil
import subprocess
import sys
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tests.support.places import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

VALGRIND = shutil.which("valgrind")
_TOTAL = re.compile(r"I\s+refs:\s+([\d,]+)")


class Counter:
    """Counts instructions while it is open, as a context manager. The process starts with the first count."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory()

    @cached_property
    def _server(self) -> subprocess.Popen[str]:
        command = [str(VALGRIND), "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
        command += [f"--log-file={self._folder.name}/%p", sys.executable, "-m", __name__]
        return subprocess.Popen(
            command, cwd=REPOSITORY, env={**os.environ, "PYTHONHASHSEED": "0"}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "_server" in self.__dict__:
            self._server.communicate()
        self._folder.cleanup()

    def count(self, work: Callable[[], object], *, after: Callable[[], object] | None = None) -> int:
        """Return the number of instructions that `work()` executes. Both functions must be picklable.

        `after` runs first, in the process that forks, so that what is loaded once per process is not counted.
        """
        path = Path(self._folder.name, "work")
        path.write_bytes(pickle.dumps((after, work)))
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{path}\n")
        self._server.stdin.flush()
        idle, busy = [self._total(pid) for pid in self._server.stdout.readline().split()]
        return busy - idle

    def _total(self, pid: str) -> int:
        found = _TOTAL.search(Path(self._folder.name, pid).read_text(encoding="utf-8"))
        assert found is not None
        return int(found[1].replace(",", ""))


def _run_in_child(work: Callable[[], object]) -> int:
    """Run the work in a fork, and return its process id. Its total includes the instructions before the fork."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    return pid


def main() -> None:
    gc.disable()  # when it runs depends on the whole process
    for line in sys.stdin:
        after, work = pickle.loads(Path(line.strip()).read_bytes())
        if after is not None:
            after()
        print(_run_in_child(lambda: None), _run_in_child(work), flush=True)


if __name__ == "__main__":
    main()
