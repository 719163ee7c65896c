"""`streamweld scan`: read many recorded streams into one table."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections import Counter, deque
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from streamweld._messages import choice_message
from streamweld._show import printable
from streamweld.arrow import COLUMNS
from streamweld.cli.console import FINDINGS, FINE, UNREADABLE, console, count_streams, print_files, table
from streamweld.cli.findings import exit_zero_option, fail_on_option, fails
from streamweld.cli.names import DialectChoice
from streamweld.cli.scan_rows import ALL_COLUMNS, REPAIRS, findings, rows_of, severities
from streamweld.errors import UsageError
from streamweld.integrations.bulk_files import FORMATS, check, format_of, join, write_part
from streamweld.integrations.captures import captures, find
from streamweld.options import DIALECTS, Base

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamweld._spec import Severity
    from streamweld.integrations.bulk_files import Format
    from streamweld.integrations.captures import Capture
    from streamweld.options import Dialect

__all__ = ["scan"]

_CHUNK_BYTES: Final = 4 << 20
_CHUNK_ROWS: Final = 256
_PART_BYTES: Final = 64 << 20
_PART_ROWS: Final = 4_096
_LISTED: Final = 200  # maximum number of rows with findings in the table
_STEP: Final = 0.5  # seconds between two updates of the progress line
_COUNTS: Final = ("rows", "bytes", "with_findings", "failing", "unreadable", "repaired")
# Rules for input that cannot be read, as opposed to faults in a stream: the rules of `CaptureError`, and those for
# bodies in an unknown dialect.
_UNREADABLE: Final = frozenset(
    [
        *("unreadable", "corrupt_file", "corrupt_row", "missing_column", "wrong_type", "unsupported_encoding"),
        *("unknown_dialect", "not_an_event_stream"),
    ]
)


@dataclass(frozen=True, slots=True)
class Task:
    """The input and options of a scan. A scan can only be resumed with the same task."""

    files: list[str]
    column: str | None
    dialect: Dialect
    policy: Base
    findings_only: bool
    columns: tuple[str, ...] = COLUMNS
    fail_on: Severity = "warning"

    def to_dict(self) -> dict[str, Any]:
        return {
            "version": 3,
            "files": self.files,
            "column": self.column,
            "dialect": self.dialect,
            "policy": self.policy,
            "findings_only": self.findings_only,
            "columns": list(self.columns),
            "fail_on": self.fail_on,
        }


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """The position at which a scan continues: the number of the file, and the number of the row in that file."""

    file: int = 0
    row: int = 0


@dataclass(slots=True)
class Totals:
    """Counts of everything read so far. This object has a fixed size, whatever the number of rows."""

    rows: int = 0
    bytes: int = 0
    with_findings: int = 0
    failing: int = 0
    unreadable: int = 0
    repaired: int | None = None  # None if the column `repairs` was not computed
    dialects: Counter[str] = field(default_factory=Counter[str])
    codes: Counter[str] = field(default_factory=Counter[str])

    def add(self, row: dict[str, Any], fail_on: Severity) -> list[str]:
        codes = findings(row)
        self.rows += 1
        self.bytes += row["bytes"] or 0
        self.with_findings += bool(codes)
        self.failing += fails(severities(row), fail_on)
        self.unreadable += row["error"] is not None and row["error"]["rule"] in _UNREADABLE
        self.dialects[row["dialect"] or "unknown"] += 1
        self.codes.update(codes)
        if row[REPAIRS] is not None:
            self.repaired = (self.repaired or 0) + bool(row[REPAIRS])
        return codes

    @property
    def summary(self) -> str:
        counts = count_streams(self.rows, self.rows - self.with_findings, self.unreadable, "unreadable")
        return counts if self.repaired is None else f"{counts}, {self.repaired} that `repair` changes"

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _COUNTS} | {
            "dialects": dict(self.dialects),
            "codes": dict(self.codes),
        }

    @classmethod
    def of(cls, data: dict[str, Any]) -> Totals:
        counts = {name: data[name] for name in _COUNTS}
        return cls(**counts, dialects=Counter(data["dialects"]), codes=Counter(data["codes"]))


@dataclass(frozen=True, slots=True)
class Chunk:
    """The captures that one job reads, and the position at which the next job starts."""

    captures: list[Capture]
    after: ScanPosition


def _chunks(task: Task, start: ScanPosition) -> Iterator[Chunk]:
    held: list[Capture] = []
    size = 0
    after = start
    for number in range(start.file, len(task.files)):
        first = start.row if number == start.file else 0
        for capture in captures(task.files[number], column=task.column, start=first):
            held.append(capture)
            size += len(capture.body or b"")
            after = ScanPosition(number, capture.row + 1)
            if size >= _CHUNK_BYTES or len(held) >= _CHUNK_ROWS:
                yield Chunk(held, after)
                held, size = [], 0
        after = ScanPosition(number + 1)
    yield Chunk(held, after)


def _read(task: Task, start: ScanPosition, jobs: int) -> Iterator[tuple[list[dict[str, Any]], ScanPosition]]:
    """Yield the rows in input order; at most two chunks per job are in memory."""
    read = partial(rows_of, dialect=task.dialect, policy=task.policy, repairs=REPAIRS in task.columns)
    chunks = _chunks(task, start)
    if jobs == 1:
        for chunk in chunks:
            yield read(chunk.captures), chunk.after
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = deque((pool.submit(read, chunk.captures), chunk.after) for chunk in islice(chunks, 2 * jobs))
        while waiting:
            future, after = waiting.popleft()
            rows = future.result()
            waiting.extend((pool.submit(read, chunk.captures), chunk.after) for chunk in islice(chunks, 1))
            yield rows, after


class Parts:
    """The unfinished output: a folder of parts next to the output file, and a journal that lists the complete parts."""

    def __init__(self, output: Path, kind: Format, task: Task) -> None:
        self.output = output
        self.kind: Format = kind
        self.folder: Path = output.with_name(output.name + ".parts")
        self.task = task
        self.count: int = 0
        self.rows: list[dict[str, Any]] = []
        self.size: int = 0

    def begin(self, *, resume: bool) -> tuple[ScanPosition, Totals]:
        """Start a scan, or resume it after the last complete part.

        Raises:
            UsageError: if an earlier scan was interrupted and `resume` is false, or if the earlier scan had a different
                task.
        """
        journal = self.folder / "journal.jsonl"
        if not self.folder.exists():
            if resume and not self.output.exists():
                click.echo(f"streamweld: {self.output}: nothing to resume, starting", err=True)
            self.folder.mkdir(parents=True)
            journal.write_text(json.dumps(self.task.to_dict()) + "\n", "ascii")
            return ScanPosition(), Totals()
        if not resume:
            raise UsageError(f"{self.folder} is left over from an interrupted scan; pass --resume, or remove it")
        try:
            first, *lines = journal.read_text("ascii").splitlines()
            before = json.loads(first)
            parts = [json.loads(line) for line in lines if line.endswith("}}")]
        except (OSError, ValueError):
            raise UsageError(f"{journal} cannot be read; remove {self.folder} and start again") from None
        if before != self.task.to_dict():
            raise UsageError(f"{self.folder} belongs to a scan of other files or with other options; remove it")
        if not parts:
            return ScanPosition(), Totals()
        self.count = len(parts)
        last = parts[-1]
        return ScanPosition(last["file"], last["row"]), Totals.of(last["totals"])

    def add(self, rows: list[dict[str, Any]], after: ScanPosition, totals: Totals) -> None:
        self.rows += rows
        self.size += sum(row["bytes"] or 0 for row in rows)
        if self.size >= _PART_BYTES or len(self.rows) >= _PART_ROWS:
            self.flush(after, totals)

    def flush(self, after: ScanPosition, totals: Totals) -> None:
        """Complete a part and add it to the journal. The journal lists only complete parts."""
        write_part(self._part(self.count), self.rows, self.kind, self.task.columns)
        line = {"part": self.count, "file": after.file, "row": after.row, "totals": totals.to_dict()}
        with (self.folder / "journal.jsonl").open("a", encoding="ascii") as journal:
            journal.write(json.dumps(line) + "\n")
            journal.flush()
            os.fsync(journal.fileno())
        self.count += 1
        self.rows = []
        self.size = 0

    def finish(self, after: ScanPosition, totals: Totals) -> None:
        """Merge the parts into the output, and remove the parts."""
        if self.rows or self.count == 0:
            self.flush(after, totals)
        join((self._part(number) for number in range(self.count)), self.output, self.kind, self.task.columns)
        shutil.rmtree(self.folder)

    def _part(self, number: int) -> Path:
        return self.folder / f"{number:06}.{self.kind}"


class Progress:
    """The progress line on standard error: the rate, and the remaining time, estimated from the file sizes."""

    def __init__(self, task: Task, start: ScanPosition, totals: Totals, *, shown: bool) -> None:
        self.shown = shown
        self.streams: int = totals.rows  # number of streams read by an earlier run
        self.files: int = len(task.files)
        self.sizes: list[int] = [_size(path) for path in task.files] if shown else []
        self.before: int = sum(self.sizes[: start.file])
        self.began: float = time.monotonic()
        self.next: float = self.began

    def show(self, after: ScanPosition, totals: Totals, *, last: bool = False) -> None:
        now = time.monotonic()
        if not self.shown or (now < self.next and not last):
            return
        self.next = now + _STEP
        done = sum(self.sizes[: after.file])
        seconds = max(now - self.began, 1e-6)
        rate = (done - self.before) / seconds
        streams = (totals.rows - self.streams) / seconds
        whole = sum(self.sizes)
        left = _duration((whole - done) / rate) if rate else "unknown time"
        line = (
            f"{after.file:,} of {self.files:,} files, {totals.rows:,} streams, {streams:,.0f} a second, "
            f"{rate / 1e6:,.1f} MB/s, {left} left, {totals.with_findings:,} with findings"
        )
        end = "\n" if last or not sys.stderr.isatty() else ""
        click.echo(f"{chr(13) + chr(27) + '[K' if sys.stderr.isatty() else ''}{line}{end}", err=True, nl=False)


def _size(path: str) -> int:
    with suppress(OSError):
        return Path(path).stat().st_size
    return 0


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _listed(paths: tuple[str, ...], files_from: str | None, recursive: bool) -> list[str]:
    files = list(find(paths, recursive=recursive))
    if files_from is not None:
        text = sys.stdin.read() if files_from == "-" else Path(files_from).read_text("utf-8", "surrogateescape")
        files += [line for line in text.splitlines() if line]
    if not files:
        folders = [path for path in paths if Path(path).is_dir()]
        if folders and not recursive and next(find(folders, recursive=True), None) is not None:
            only = "contains only directories; pass --recursive to read the files in them"
            raise UsageError(f"{', '.join(folders)}: {only}")
        raise UsageError("there is nothing to scan: name files, directories or patterns, or pass --files-from")
    return files


@click.command(short_help="Read many recorded streams into one table.")
@click.argument("paths", nargs=-1, metavar="PATH…")
@click.option("--files-from", metavar="FILE", help="Read further paths from FILE, one per line; - is standard input.")
@click.option(
    "--column", metavar="NAME", help="Column, or member of each line, that contains the body.  [default: body]"
)
@click.option("--recursive", is_flag=True, help="Descend into directories.")
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Number of worker processes.")
@click.option("-o", "--output", metavar="FILE", help="Write a .parquet, .arrow or .jsonl file instead of a table.")
@click.option(
    "--format", "kind", type=click.Choice(FORMATS), help="Output format; by default derived from the file name."
)
@click.option("--findings-only", is_flag=True, help="Only rows with a diagnostic of severity warning or error.")
@click.option(
    "--columns",
    metavar="NAME,…",
    help=f"The columns to write, after path, row and bytes: {', '.join(ALL_COLUMNS)}.  [default: the first nine]",
)
@fail_on_option("finding")
@exit_zero_option()
@click.option("--resume", is_flag=True, help="Resume an interrupted scan to the same output.")
@click.option("--progress/--no-progress", default=None, help="Show rate and remaining time.  [default: on a terminal]")
@click.option(
    "--policy",
    type=click.Choice(get_args(Base)),
    default="salvage",
    show_default=True,
    help="What to do about a fault; salvage reports the fault and continues.",
)
@click.option("--dialect", type=DialectChoice(DIALECTS), default="auto", show_default=True, help="The wire format.")
def scan(
    paths: tuple[str, ...],
    files_from: str | None,
    column: str | None,
    recursive: bool,
    jobs: int,
    output: str | None,
    kind: Format | None,
    findings_only: bool,
    columns: str | None,
    fail_on: Severity,
    exit_zero: bool,
    resume: bool,
    progress: bool | None,
    policy: Base,
    dialect: Dialect,
) -> None:
    """Read recorded streams from files, directories and patterns into one table, one row per stream.

    A file contains one body. These formats can contain many: JSON Lines, Parquet and Arrow IPC (--column names the
    member or column with the body), HAR archives, HTTP messages recorded by a proxy, and mitmproxy flows. Files that
    end in .gz are decompressed. Parquet and Arrow require the extra `bulk`.

    A file or row that cannot be read, or is not in a known dialect, becomes a row with an error and is reported on
    standard error.

    A repair counts as a finding only if a diagnostic with severity warning or error reports it. The column `repairs`
    lists every reason why `repair` changes a stream under --policy, for example `--columns dialect,repairs`.

    Exit codes: 0 no findings, 1 findings (a diagnostic with severity warning or error), 2 usage error, 3 a file or row
    could not be read. --fail-on sets the lowest severity for exit code 1.
    """
    if output is None and (resume or kind is not None or columns is not None):
        raise UsageError("--resume, --format and --columns need --output")
    chosen = COLUMNS if columns is None else _columns(columns)
    task = Task(_listed(paths, files_from, recursive), column, dialect, policy, findings_only, chosen, fail_on)
    shown = sys.stderr.isatty() if progress is None else progress
    if output is None:
        totals = _to_table(task, jobs, shown)
    else:
        kind = kind or format_of(output)
        check(kind, chosen)
        totals = _to_file(task, jobs, shown, Parts(Path(output), kind, task), resume=resume)
        click.echo(totals.summary, err=True)
    sys.exit(UNREADABLE if totals.unreadable else FINDINGS if totals.failing and not exit_zero else FINE)


def _columns(written: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in written.split(",") if name.strip()))
    for name in names:
        if name not in ALL_COLUMNS:
            raise UsageError(choice_message("--columns", name, ALL_COLUMNS))
    return names


def _run(
    task: Task,
    jobs: int,
    start: ScanPosition,
    totals: Totals,
    shown: bool,
    keep: Callable[[list[dict[str, Any]], ScanPosition], None],
) -> ScanPosition:
    """Read all rows starting at `start`, and pass the selected rows to `keep`."""
    meter = Progress(task, start, totals, shown=shown)
    after = start
    for rows, after in _read(task, start, jobs):
        wanted: list[dict[str, Any]] = []
        for row in rows:
            codes = totals.add(row, task.fail_on)
            error = row["error"]
            if error is not None and error["rule"] in _UNREADABLE:
                message = error["message"]
                if not message.startswith(row["path"]):
                    message = f"{row['path']}, row {row['row']}: {message}"
                click.echo(f"streamweld: {printable(message)}", err=True)
            if codes or not task.findings_only:
                wanted.append(row)
        keep(wanted, after)
        meter.show(after, totals)
    meter.show(after, totals, last=True)
    return after


def _to_file(task: Task, jobs: int, shown: bool, parts: Parts, *, resume: bool) -> Totals:
    start, totals = parts.begin(resume=resume)
    try:
        after = _run(task, jobs, start, totals, shown, lambda rows, after: parts.add(rows, after, totals))
    except KeyboardInterrupt:
        click.echo(f"streamweld: interrupted; continue with --resume, or remove {parts.folder}", err=True)
        raise
    parts.finish(after, totals)
    return totals


def _to_table(task: Task, jobs: int, shown: bool) -> Totals:
    totals = Totals()
    listed: list[tuple[str, ...]] = []

    def keep(rows: list[dict[str, Any]], _: ScanPosition) -> None:
        for row in rows:
            codes = findings(row)
            if codes and len(listed) < _LISTED:
                location = f"{row['path']}:{row['row']}" if row["row"] else row["path"]
                listed.append((location, row["dialect"] or "unknown", row["completeness"] or "", ", ".join(codes)))

    _run(task, jobs, ScanPosition(), totals, shown, keep)
    out = console()
    if listed:
        rows = table("file", "dialect", "completeness", "findings")
        for line in listed:
            rows.add_row(*[printable(cell) for cell in line])
        print_files(out, rows)
        if totals.with_findings > len(listed):
            out.print(f"and {totals.with_findings - len(listed)} more with findings; --output lists all")
    dialects = table("streams", "dialect", right=("streams",))
    for name, count in totals.dialects.most_common():
        dialects.add_row(str(count), name)
    out.print(dialects)
    out.print(totals.summary)
    for code, count in totals.codes.most_common():
        out.print(f"{count:6}  {code}")
    return totals
