"""Instructions an event of text without a marker, `text_calls` off and on: `python -m benches.counted [EXTENSION.so]`.

Times of a busy machine cannot show 3 %, instructions can. A run of itself under `valgrind --tool=callgrind` reads a
stream a few times as a user does: `parser.feed`, one list of events a read, every event looked at. The difference of
two numbers of rounds leaves out the start of Python.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location

from streamweld import _native
from streamweld.options import Limits, Policy, to_config

from benches.shapes.chat import READS, short_text_deltas

FEW, MORE = 2, 7
TOOLS = {"get_weather": {"type": "object", "properties": {"city": {"type": "string"}}}}


def _read(path: str, mode: str, size: str, rounds: int) -> None:
    # Its event classes are not those of `streamweld.events`.
    loader = ExtensionFileLoader("_native", path)
    spec = spec_from_file_location("_native", path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    config = to_config(Policy(text_calls=mode), Limits(), tools=TOOLS)  # type: ignore[arg-type]
    reads = short_text_deltas().reads(READS[size])
    for _ in range(rounds):
        parser = module.Parser("chat", config)
        text = [event.text for read in reads for event in parser.feed(read) if type(event).__name__ == "TextDelta"]
        assert text
        parser.close()


def _count(*args: str) -> int:
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command = [*valgrind, sys.executable, "-m", "benches.counted", *args]
    env = os.environ | {"PYTHONHASHSEED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])


def main(path: str) -> None:
    events = len(short_text_deltas().events)
    for size in ("one event", "16 KiB"):
        off = 0.0
        for mode in ("off", "report", "promote"):
            few, more = (_count(path, mode, size, str(rounds)) for rounds in (FEW, MORE))
            each = (more - few) / (MORE - FEW) / events
            off = off or each
            print(f"reads of {size:9}  {mode:8} {each:8.0f} instructions an event  {each / off:6.3f} x")


if __name__ == "__main__":
    if len(sys.argv) == 5:
        _read(*sys.argv[1:4], int(sys.argv[4]))
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else _native.__file__)
