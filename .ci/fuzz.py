"""Builds the fuzz targets in `rust/fuzz` and runs them, first on the corpora and then on new inputs.

usage: fuzz.py run [--seconds N | --inputs N] [--sanitizer address] [--jobs N] [TARGET]...
       fuzz.py keep [TARGET]...

`--seconds` limits the time. Runs with a time limit use a new seed each time, and start from the inputs that earlier
runs found. `--inputs` limits the number of inputs. Runs with this limit use a fixed seed and only the committed
corpora, so that builds do not fail by chance.

The targets are plain cargo-fuzz targets (`cargo +nightly fuzz run json` works), but this script builds them with the
coverage flags of stable Rust, so that no other toolchain is needed. Each target starts from three sets of inputs: those
in `rust/fuzz/corpus/TARGET.json`, which `keep` writes; those in `regressions.json`, which once made a target fail; and
the test vectors in `tests/vectors/`. New inputs go to `rust/fuzz/target/found/TARGET`; an input that fails goes to
`rust/fuzz/artifacts/TARGET`.

`--sanitizer address` also instruments memory accesses. This option needs RUSTC_BOOTSTRAP=1, which the script sets. The
script needs only the standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "rust" / "fuzz"
VECTORS = ROOT / "tests" / "vectors"
TARGETS = tuple(sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs")))
DIALECTS = ("chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui")
LONGEST = 8192
MOST_KEPT = 10_000  # maximum total size of each committed corpus in bytes; the smallest inputs are kept
# The flags that `cargo fuzz` passes to rustc.
COVERAGE = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Ccodegen-units=1",
    "--cfg=fuzzing",
)


def build(targets: list[str], sanitizer: str | None) -> Path:
    """Build the targets; return the folder that contains the programs."""
    host = re.search(r"^host: (\S+)$", output("rustc", "-vV"), re.MULTILINE)
    if host is None:
        raise SystemExit("fuzz: rustc -vV names no host")
    flags, environment = list(COVERAGE), dict(os.environ)
    place = FUZZ / "target"
    if sanitizer:
        flags.append(f"-Zsanitizer={sanitizer}")
        environment["RUSTC_BOOTSTRAP"] = "1"
        place /= sanitizer
    environment |= {"RUSTFLAGS": " ".join(flags), "CARGO_TARGET_DIR": str(place)}
    cargo = ["cargo", "build", "--locked", "--quiet", "--release", "--manifest-path", str(FUZZ / "Cargo.toml")]
    # With --target, cargo does not apply RUSTFLAGS to build scripts, so they are not instrumented.
    subprocess.run(
        [*cargo, "--target", host[1], *(word for target in targets for word in ("--bin", target))],
        check=True,
        env=environment,
    )
    return place / host[1] / "release"


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def chunk_bytes(chunk: Any) -> bytes:
    """Return the bytes of one element of `chunks`, as described in vectors/README.md."""
    if isinstance(chunk, str):
        return chunk.encode()
    if isinstance(chunk, list):
        return b"".join(chunk_bytes(part) for part in chunk)
    if "hex" in chunk:
        return bytes.fromhex(chunk["hex"])
    return bytes(chunk["text"].encode() * chunk["times"])


def bodies(folder: str) -> list[bytes]:
    found = []
    for path in sorted((VECTORS / folder).glob("*.json")):
        for vector in json.loads(path.read_text(encoding="utf-8"))["tests"]:
            if folder == "json":
                found.append(chunk_bytes(vector["input"]))
            elif "chunks" in vector:
                found.append(b"".join(chunk_bytes(chunk) for chunk in vector["chunks"]))
    return [body for body in found if len(body) <= LONGEST // 2]


def seeds(target: str) -> list[bytes]:
    """Return inputs created from the test vectors. Each input consists of options, read sizes, and a body."""
    name = target.replace("_", "-")
    if target == "assembler":
        return [bytes([0, 2, 0, 40]) + bytes((7 * n * k + 13 * k) % 256 for k in range(24)) for n in range(24)]
    if target in ("framer", "json"):
        folders = [("sse" if target == "framer" else "json", 0)]
    elif name in DIALECTS:
        folders = [(name, 0)]
    else:
        folders = [(dialect, number << 5) for number, dialect in enumerate(DIALECTS)]
    if target == "converter":  # convert each source to the next target in the list
        folders = [(dialect, (number + 1) % 6 << 5) for number, dialect in enumerate(DIALECTS)]
    reads = (b"", b"\x00", b"\x07\x30", b"\x80\x02\x11")
    inputs = []
    for folder, options in folders:
        for number, body in enumerate(bodies(folder)):
            sizes = reads[number % len(reads)]
            inputs.append(bytes([options | number % 3, len(sizes)]) + sizes + body)
    return inputs


def corpus(target: str) -> Path:
    return FUZZ / "corpus" / f"{target}.json"


def kept(target: str) -> list[bytes]:
    """Return the inputs that `keep` selected. The file stores each byte of an input as one character."""
    path = corpus(target)
    return [text.encode("latin-1") for text in json.loads(path.read_text("utf-8"))] if path.is_file() else []


def regressions(target: str) -> list[bytes]:
    """Return the inputs that once made this target fail."""
    found = json.loads(corpus("regressions").read_text("utf-8"))
    return [text.encode("latin-1") for text in found.get(target, ())]


def lay_out(target: str, folder: Path) -> int:
    """Write the seeds and kept inputs of a target into a folder; return the number of files."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [*seeds(target), *kept(target), *regressions(target)]
    for number, data in enumerate(inputs):
        (folder / f"{number:05}").write_bytes(data)
    return len(inputs)


def keep(programs: Path, target: str) -> str:
    """Merge new inputs into the kept ones if they reach code that the seeds do not reach."""
    given, found = FUZZ / "target" / "seeds" / target, FUZZ / "target" / "found" / target
    merged = FUZZ / "target" / "merged" / target
    shutil.rmtree(given, ignore_errors=True)
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    found.mkdir(parents=True, exist_ok=True)
    lay_out(target, given)
    others = {*seeds(target), *regressions(target)}
    done = subprocess.run(
        [str(programs / target), "-merge=1", f"-max_len={LONGEST}", str(merged), str(given), str(found)],
        capture_output=True, text=True, errors="replace", check=False, env={**os.environ, "RUST_BACKTRACE": "0"},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"fuzz: merging {target} ended with {done.returncode}\n{done.stderr[-2000:]}")
    every = {path.read_bytes() for path in merged.iterdir()} - others
    chosen, total = [], 0
    for data in sorted(every, key=lambda data: (len(data), data)):
        total += len(data)
        if total > MOST_KEPT:
            break
        chosen.append(json.dumps(data.decode("latin-1")))
    place = corpus(target)
    place.parent.mkdir(exist_ok=True)
    place.write_text("[\n" + ",\n".join(chosen) + "\n]\n", "utf-8")
    return f"{target}: {len(chosen)} inputs kept of {len(every)}, {place.stat().st_size} bytes"


def run(programs: Path, target: str, found: Path, extent: list[str]) -> tuple[str, int, int, str]:
    """Run one target on its seeds and then on new inputs. Return (target, executions, exit status, output).

    New inputs go to the folder `found`; `extent` contains the libFuzzer arguments that limit the run.
    """
    given = FUZZ / "target" / "seeds" / target
    artifacts = FUZZ / "artifacts" / target
    for folder in (found, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    lay_out(target, given)
    done = subprocess.run(
        [
            str(programs / target), str(found), str(given), *extent, f"-max_len={LONGEST}",
            "-timeout=5", "-rss_limit_mb=512", "-print_final_stats=1", f"-artifact_prefix={artifacts}/",
        ],
        capture_output=True, text=True, errors="replace", check=False,
        # To detect use after free, AddressSanitizer does not reuse freed memory at once. By default, it keeps up to 256
        # MB of freed memory, which is half of the limit above.
        env={**os.environ, "RUST_BACKTRACE": "0", "ASAN_OPTIONS": "quarantine_size_mb=64"},
    )  # fmt: skip
    executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    return target, int(executed[1]) if executed else 0, done.returncode, done.stderr


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="fuzz.py", description=__doc__.splitlines()[0] if __doc__ else None)
    actions = parser.add_subparsers(dest="action", required=True)
    runner = actions.add_parser("run", help="build, replay the corpora, search")
    length = runner.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=int, default=5, help="how long each target searches")
    length.add_argument("--inputs", type=int, help="how many inputs each target tries, the same in every run")
    runner.add_argument("--sanitizer", choices=["address"])
    runner.add_argument("--jobs", type=int, default=1, help="targets at a time")
    runner.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    keeper = actions.add_parser("keep", help="merge what was found into the kept corpora")
    keeper.add_argument("targets", nargs="*", metavar="TARGET")
    options = parser.parse_args(arguments)
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    targets = options.targets or list(TARGETS)
    if options.action == "keep":
        programs = build(targets, None)
        for target in targets:
            print(keep(programs, target), flush=True)
        return 0
    programs = build(targets, options.sanitizer)
    found, extent = FUZZ / "target" / "found", [f"-max_total_time={options.seconds}"]
    if options.inputs:
        found, extent = FUZZ / "target" / "found_by_inputs", [f"-runs={options.inputs}", "-seed=1"]
        shutil.rmtree(found, ignore_errors=True)
    failed, total = [], 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for target, executed, status, log in pool.map(lambda name: run(programs, name, found / name, extent), targets):
            total += executed
            print(f"{target:14} {executed:9} executions{'' if status == 0 else f', exit status {status}'}", flush=True)
            if status or not executed:
                failed.append(target)
                print("\n".join(log.splitlines()[-60:]), flush=True)
    print(f"{len(targets)} targets, {total} executions, {len(failed)} failed {' '.join(failed)}".rstrip())
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
