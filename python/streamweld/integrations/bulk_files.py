"""Write scanned rows as Parquet, Arrow IPC or JSON Lines, in parts that are merged at the end.

Parquet and Arrow IPC need pyarrow (extra `bulk`), which is imported only when such a file is written. Each row is in
memory only until the part that contains it has been written.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamweld.arrow import COLUMNS, schema
from streamweld.errors import UsageError
from streamweld.integrations._pyarrow import load_pyarrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["FORMATS", "Format", "check", "format_of", "join", "write_part"]

Format: TypeAlias = Literal["parquet", "ipc", "jsonl"]
FORMATS: Final[tuple[Format, ...]] = ("parquet", "ipc", "jsonl")
_PLACE: Final = ("path", "row", "bytes")
_SUFFIXES: Final[Mapping[str, Format]] = {
    ".parquet": "parquet",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".feather": "ipc",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}


def format_of(path: str) -> Format:
    """Return the output format for a file name.

    Raises:
        UsageError: if the name does not have a known suffix.
    """
    found = _SUFFIXES.get(Path(path).suffix.lower())
    if found is None:
        raise UsageError(f"{path}: the output must end in {', '.join(_SUFFIXES)}")
    return found


def check(kind: Format, columns: Sequence[str] = COLUMNS) -> None:
    """Check that the format can be written in this environment, before any input is read.

    Raises:
        MissingExtra: if the format needs pyarrow, and it is not installed.
        UsageError: if the format needs the native backend and the pure backend is in use.
    """
    if kind != "jsonl":
        _schema(load_pyarrow(), columns)


def _schema(pyarrow: Any, columns: Sequence[str]) -> Any:
    place = [("path", pyarrow.string()), ("row", pyarrow.int64()), ("bytes", pyarrow.int64())]
    own = {"repairs": pyarrow.field("repairs", pyarrow.list_(pyarrow.string()))}
    made = pyarrow.schema(schema([name for name in columns if name not in own]))
    fields = [own[name] if name in own else made.field(name) for name in columns]
    return pyarrow.schema([*place, *fields], metadata=made.metadata)


def write_part(path: Path, rows: Sequence[Mapping[str, Any]], kind: Format, columns: Sequence[str] = COLUMNS) -> None:
    """Write these columns of the rows to a new file, which is renamed into place when it is complete."""
    partial = path.with_suffix(".partial")
    if kind == "jsonl":
        with partial.open("w", encoding="ascii") as file:
            kept = (*_PLACE, *columns)
            file.writelines([json.dumps({name: row[name] for name in kept}) + "\n" for row in rows])
    else:
        pyarrow = load_pyarrow()
        table = pyarrow.Table.from_pylist(list(rows), schema=_schema(pyarrow, columns))
        with pyarrow.OSFile(str(partial), "wb") as file, _writer(pyarrow, file, table.schema, kind) as writer:
            writer.write_table(table)
    partial.replace(path)


def join(parts: Iterable[Path], path: Path, kind: Format, columns: Sequence[str] = COLUMNS) -> None:
    """Merge the parts into one file, which is renamed into place when it is complete."""
    partial = path.with_name(path.name + ".partial")
    try:
        if kind == "jsonl":
            with partial.open("wb") as file:
                for part in parts:
                    with part.open("rb") as source:
                        while piece := source.read(1 << 20):
                            file.write(piece)
        else:
            pyarrow = load_pyarrow()
            schema = _schema(pyarrow, columns)
            with pyarrow.OSFile(str(partial), "wb") as file, _writer(pyarrow, file, schema, kind) as writer:
                for part in parts:
                    for table in _tables(pyarrow, part, kind):
                        writer.write_table(table)
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def _writer(pyarrow: Any, file: Any, schema: Any, kind: Format) -> Any:
    if kind == "parquet":
        return pyarrow.parquet.ParquetWriter(file, schema, compression="zstd")
    return pyarrow.ipc.new_file(file, schema)


def _tables(pyarrow: Any, part: Path, kind: Format) -> Iterable[Any]:
    if kind == "parquet":
        with pyarrow.parquet.ParquetFile(part) as source:
            for number in range(source.num_row_groups):
                yield source.read_row_group(number)
        return
    with pyarrow.OSFile(str(part)) as source:
        yield pyarrow.ipc.open_file(source).read_all()
