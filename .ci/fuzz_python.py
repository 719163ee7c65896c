"""Fuzzes the Python entry points with atheris. Each input is passed to both backends, in the same chunks.

usage: fuzz_python.py [--seconds N | --inputs N]

For any input, parsing, converting, repairing, checking and framing must raise only StreamError, and the native backend
must give the same events, diagnostics, error and output bytes as the pure backend. Inputs have the same layout as in
`rust/fuzz`. The first run creates `.venv/fuzz` from `.ci/locks/fuzz.txt`. `--inputs` limits the number of inputs. Runs
with this limit use a fixed seed and only the committed corpora, so that builds do not fail by chance. Requires the
extension (`make build`).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv" / "fuzz"
FOUND = ROOT / "rust" / "fuzz" / "target" / "found" / "python"
ARTIFACTS = ROOT / "rust" / "fuzz" / "artifacts" / "python"
DIALECTS = ("chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui")
POLICIES = ("standard", "strict", "salvage", "standard")


def provide(lock: Path) -> Path:
    """Return the interpreter of an environment that contains exactly the lock file's packages."""
    python, stamp = HOME / "bin" / "python", HOME / "made"
    wanted = lock.read_text(encoding="utf-8")
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        venv.create(HOME, clear=True, with_pip=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--require-hashes", "--requirement", lock], check=True
        )
        stamp.write_text(wanted, encoding="utf-8")
    return python


def drive(seconds: int, inputs: int | None) -> int:
    """Run the fuzzer in its environment for a number of seconds or inputs; print how many inputs it tried."""
    sys.path.insert(0, str(ROOT / ".ci"))
    from fuzz import lay_out

    given = ROOT / "rust" / "fuzz" / "target" / "seeds" / "python"
    found, extent = FOUND, [f"-max_total_time={seconds}"]
    if inputs:
        found, extent = FOUND.parent.parent / "found_by_inputs" / "python", [f"-runs={inputs}", "-seed=1"]
        shutil.rmtree(found, ignore_errors=True)
    for folder in (found, ARTIFACTS):
        folder.mkdir(parents=True, exist_ok=True)
    lay_out("detect", given)
    if inputs or seconds < 60:  # replaying all seeds takes a minute
        for number, path in enumerate(sorted(given.iterdir())):
            if number % 25:
                path.unlink()
    done = subprocess.run(
        [provide(ROOT / ".ci" / "locks" / "fuzz.txt"), __file__, "--inside", found, given, *extent,
         "-max_len=4096", "-timeout=10", "-rss_limit_mb=1024", f"-artifact_prefix={ARTIFACTS}/"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True,
        errors="replace", check=False,
    )  # fmt: skip
    executed = re.findall(r"^(?:#|Done )(\d+)", done.stdout + done.stderr, re.MULTILINE)
    if done.returncode or not executed:
        print(done.stdout[-4000:] + done.stderr[-4000:])
        return 1
    print(f"{executed[-1]} executions of 5 entry points in both backends, 0 failed")
    return 0


def one_input(data: bytes) -> None:
    """Pass one input to every entry point."""
    import streamweld as sw
    from streamweld.check import Checker
    from streamweld.errors import StreamError

    # Modules that store the selected backend. `sys.modules` is used instead of an attribute, because
    # `streamweld.convert` is a function.
    choosers = [sys.modules[f"streamweld.{name}"] for name in ("_backend", "stream", "convert")]
    options, count = data[0] if data else 0, (data[1] & 15) if len(data) > 1 else 0
    sizes, body = data[2 : 2 + count] or b"\xff", data[2 + count :]
    pieces, at = [], 0
    while at < len(body):
        size = sizes[len(pieces) % len(sizes)] + 1
        pieces.append(body[at : at + size])
        at += size
    dialect: Any = DIALECTS[options >> 5] if options >> 5 < len(DIALECTS) else "auto"
    policy: Any = POLICIES[options & 3]
    target: Any = DIALECTS[(options >> 2) % len(DIALECTS)]
    facts = []
    for backend in ("native", "pure"):
        for module in choosers:
            module.backend = backend  # type: ignore[attr-defined]
        parser = sw.StreamParser(dialect=dialect, policy=policy, seed="f")
        events: list[Any] = []
        error = None
        try:
            for piece in pieces:
                events += parser.feed(piece)
            events += parser.close()
        except StreamError as exc:
            events += exc.events
            error = str(exc)
        written = []
        for to in ("same", target):
            if to == dialect:
                continue
            converter = sw.StreamConverter(source=dialect, target=to, policy=policy, seed="f")
            try:
                written.append(b"".join(map(converter.feed, pieces)) + converter.close())
            except sw.UsageError:
                written.append(b"the source is the target")
            written.append(str(converter.error).encode())
        reader = sw.sse.FrameReader()
        try:
            frames: Any = [reader.feed(piece) for piece in pieces]
        except StreamError as exc:
            frames = str(exc)
        facts.append((events, error, list(parser.diagnostics), parser.response, written, frames))
    names = ("events", "error", "diagnostics", "response", "written", "frames")
    for name, native, pure in zip(names, *facts, strict=True):
        if native != pure:
            raise AssertionError(f"{name} differ\n  native {native!r}\n  pure   {pure!r}")
    if dialect != "auto":
        checker = Checker(dialect)
        for piece in pieces:
            checker.feed(piece)
        checker.close()


def main() -> int:
    if "--inside" in sys.argv:
        sys.argv.remove("--inside")
        import atheris

        with atheris.instrument_imports(include=["streamweld"]):
            import streamweld
            import streamweld.check
            import streamweld.sse  # noqa: F401

            # The backends are imported on first use, which can take longer than the time limit for one input.
            one_input(b"\0data: {}\n\n")

        atheris.Setup(sys.argv, one_input)
        atheris.Fuzz()
    parser = argparse.ArgumentParser(prog="fuzz_python.py", description=__doc__.splitlines()[0] if __doc__ else None)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=int, default=5)
    length.add_argument("--inputs", type=int)
    options = parser.parse_args()
    return drive(options.seconds, options.inputs)


if __name__ == "__main__":
    sys.exit(main())
