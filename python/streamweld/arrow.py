"""Parse columns of recorded streams: both the input and the output are Arrow data.

    import pyarrow.parquet as pq
    import streamweld.arrow

    calls = streamweld.arrow.parse(pq.read_table("captures.parquet"), keep=("request_id",), threads=4)

`parse` returns one row per body, `events` one row per event. The input is any object with the Arrow PyCapsule
interface: a table, record batch, column or reader from pyarrow, Polars, DuckDB, Daft, pandas and others. pyarrow is not
required. Parsing releases the interpreter lock, and does not create a Python object per row.

Needs the native backend. `docs/bulk.md` documents the schema, and has recipes for Spark, Ray, Daft, DuckDB and Polars.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

from streamweld._backend import backend
from streamweld._extension import extension
from streamweld._messages import choice_message, hinted
from streamweld.errors import UsageError
from streamweld.options import DIALECTS, Limits, to_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld._native import ArrowSchema
    from streamweld.options import Base, Dialect, Policy

__all__ = ["COLUMNS", "ArrowArray", "ArrowStream", "events", "events_schema", "parse", "schema", "spark_ddl"]

COLUMNS: Final = (
    "dialect",
    "completeness",
    "finish_reason",
    "text",
    "reasoning",
    "tool_calls",
    "usage",
    "diagnostics",
    "error",
)
"""The columns that `parse` returns by default."""

_LIMITS: Final = Limits()
_MAX_THREADS: Final = 256


class ArrowArray(Protocol):
    """An array, column or record batch from any Arrow library."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """Export the data; see the Arrow PyCapsule interface."""
        ...


class ArrowStream(Protocol):
    """A table or reader from any Arrow library."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Export the data; see the Arrow PyCapsule interface."""
        ...


@hinted(column="body")
def parse(
    data: ArrowArray | ArrowStream,
    *,
    body: str = "body",
    keep: Sequence[str] = (),
    dialect: Dialect = "auto",
    policy: Base | Policy = "salvage",
    columns: Sequence[str] = COLUMNS,
    threads: int = 1,
    limits: Limits = _LIMITS,
) -> Any:
    """Parse a column of bodies into a table of responses, one row per body, in the same order.

    A body that cannot be read does not raise an exception. The row of such a body contains what was read before the
    fault, and its column `error` describes the fault. A null body becomes a row of nulls.

    Args:
        data: an object with the Arrow PyCapsule interface. If it is a single column, that column contains the bodies.
        body: the column of bodies: binary or UTF-8 in any Arrow layout, optionally dictionary-encoded.
        keep: columns of the input to copy to the output, where they come first.
        dialect: the wire format of all bodies; `auto` detects the format of each body.
        policy: as for `streamweld.parse`. The default reports truncated streams and errors from the gateway as data.
        columns: the columns to return. The default is `COLUMNS`; others are `response_id`, `model`, `created`,
            `raw_finish_reason`, `choices`, `refusal`, `server_tool_calls` and `diagnostics_dropped`.
        threads: the number of threads that read one batch, 1 to 256.
        limits: the limits for each body. A body that exceeds a limit becomes a row with an `error`.

    Returns:
        A pyarrow object of the same kind if `data` is one. Otherwise, an object with the PyCapsule interface, which
        `polars.DataFrame`, DuckDB, `pyarrow.table` and others accept. If the input is a stream of batches, such as a
        `pyarrow.RecordBatchReader`, each batch is read only when the caller needs the next part of the result.

    Raises:
        UsageError: if a column is missing or has the wrong type, if an option is invalid, if the Arrow data is
            corrupt, or if the native backend is not in use.
    """
    return _read(
        data,
        columns=_names("columns", columns),
        body=body,
        keep=keep,
        dialect=dialect,
        policy=policy,
        threads=threads,
        limits=limits,
    )


def events(
    data: ArrowArray | ArrowStream,
    *,
    body: str = "body",
    keep: Sequence[str] = (),
    dialect: Dialect = "auto",
    policy: Base | Policy = "salvage",
    threads: int = 1,
    limits: Limits = _LIMITS,
) -> Any:
    """Parse a column of bodies into a table of events, one row per event, in order.

    `row` is the index of the body in the input, `position` is the index of the event in its stream, and `type` is the
    event's type. The other columns are the fields of the event classes. If a body cannot be read, its last row has the
    type `error`, and `code` is the rule that was broken. A null body has no rows.

    Args:
        data: as for `parse`.
        body: as for `parse`.
        keep: columns of the input to copy to the output, where they come first. Each value is repeated for every event
            of its body.
        dialect: as for `parse`.
        policy: as for `parse`.
        threads: as for `parse`.
        limits: as for `parse`.

    Returns:
        As for `parse`.

    Raises:
        UsageError: as for `parse`.
    """
    return _read(
        data, columns=None, body=body, keep=keep, dialect=dialect, policy=policy, threads=threads, limits=limits
    )


def schema(columns: Sequence[str] = COLUMNS) -> ArrowSchema:
    """Describe the columns that `parse` returns.

    Args:
        columns: as for `parse`.

    Returns:
        An object with `names`, `ddl` (the columns in Spark's data definition language), `version`, and
        `__arrow_c_schema__`: `pyarrow.schema(streamweld.arrow.schema())`. `version` changes when the name, type, or
        meaning of a column changes, but not when a nullable column is added. The metadata of the schema also contains
        the version, as `streamweld:schema`.

    Raises:
        UsageError: if a column does not exist, or if the native backend is not in use.
    """
    described: ArrowSchema = _native().describe_arrow(_names("columns", columns))
    return described


def events_schema() -> ArrowSchema:
    """Describe the columns that `events` returns, in the same form as `schema`.

    Raises:
        UsageError: if the native backend is not in use.
    """
    described: ArrowSchema = _native().describe_arrow(None)
    return described


def spark_ddl(columns: Sequence[str] = COLUMNS) -> str:
    """Return the columns of `parse` as a schema string for Spark.

    Args:
        columns: as for `parse`.

    Raises:
        UsageError: if a column does not exist, or if the native backend is not in use.
    """
    return schema(columns).ddl


def _native() -> Any:
    module = extension()
    if module is None:
        raise UsageError(
            "streamweld.arrow needs the native backend, which is not installed: install a wheel for this platform "
            "(pip install --only-binary streamweld --force-reinstall streamweld), or write JSON Lines (streamweld scan "
            "-o FILE.jsonl)"
        )
    if backend != "native":
        raise UsageError(
            "streamweld.arrow needs the native backend, which is installed, but STREAMWELD_BACKEND=pure selects the "
            "other one: unset that variable"
        )
    return module


def _names(option: str, names: Sequence[str]) -> list[str]:
    if isinstance(names, str):
        raise UsageError(f"{option}={names!r}: it must be a sequence of names, such as [{names!r}]")
    listed = list(names)
    for name in listed:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"{option}: {name!r} is not the name of a column")
    return listed


def _read(
    data: Any,
    *,
    columns: list[str] | None,
    body: str,
    keep: Sequence[str],
    dialect: Dialect,
    policy: Base | Policy,
    threads: int,
    limits: Limits,
) -> Any:
    native = _native()
    if dialect not in DIALECTS:
        raise UsageError(choice_message("dialect", dialect, DIALECTS))
    kept = _names("keep", keep)
    for name in kept:
        if kept.count(name) > 1:
            raise UsageError(f"keep: {name!r} is listed twice")
    if columns is not None and not columns and not kept:
        raise UsageError("columns=(): the output would have no column")
    (named,) = _names("body", [body])
    if type(threads) is not int or not 1 <= threads <= _MAX_THREADS:
        raise UsageError(f"threads={threads!r}: it must be a whole number from 1 to {_MAX_THREADS}")
    made = native.read_arrow(
        data,
        columns=columns,
        body=named,
        keep=kept,
        dialect=dialect,
        config=to_config(policy, limits),
        threads=threads,
        lazy=not hasattr(data, "__len__"),
    )
    # If the caller passed a pyarrow object, pyarrow has already been imported.
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None or type(data).__module__.partition(".")[0] != "pyarrow":
        return made
    if isinstance(made, native.ArrowBatch):
        return pyarrow.record_batch(made)
    if isinstance(made, native.ArrowTable):
        return pyarrow.table(made)
    return pyarrow.RecordBatchReader.from_stream(made)
