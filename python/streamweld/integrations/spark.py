"""Parse columns of recorded streams in Spark. Requires PySpark 4 and pyarrow on the driver and the workers.

    from streamweld.integrations import spark

    calls = spark.parse(captures, keep=("request_id",))      # DataFrame in, DataFrame out
    calls.write.parquet("calls")

`parse` calls `DataFrame.mapInArrow` with `responses` and the schema from `streamweld.arrow`. To call `mapInArrow`
yourself:

    captures.select("request_id", "body").mapInArrow(
        spark.responses(keep=("request_id",)), "request_id string, " + streamweld.arrow.spark_ddl()
    )

Bodies can be long, and Spark makes batches of 10,000 rows by default. Set `spark.sql.execution.arrow.maxBytesPerBatch`,
for example to `33554432`, or reduce `spark.sql.execution.arrow.maxRecordsPerBatch`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from streamweld.arrow import COLUMNS, schema, spark_ddl
from streamweld.arrow import parse as parse_batch
from streamweld.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Unpack

    from streamweld.options import Base, Dialect, Limits, Policy

__all__ = ["BulkOptions", "parse", "responses"]


class BulkOptions(TypedDict, total=False):
    """The keyword arguments of `streamweld.arrow.parse`."""

    body: str
    keep: Sequence[str]
    dialect: Dialect
    policy: Base | Policy
    columns: Sequence[str]
    threads: int
    limits: Limits


def responses(**options: Unpack[BulkOptions]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function for `DataFrame.mapInArrow` that applies `streamweld.arrow.parse` to each batch.

    Args:
        **options: the options of `streamweld.arrow.parse`. The batches must contain the columns given as `body` and
            `keep`.

    Raises:
        UsageError: if a column of the output does not exist, or if the native backend is not in use.
    """
    schema(options.get("columns", COLUMNS))
    return partial(_responses, options)


def _responses(options: BulkOptions, batches: Iterable[Any]) -> Iterator[Any]:
    """Parse the batches on a worker. The schema is sent without metadata, because Spark compares only the fields of the
    schema.
    """
    for batch in batches:
        yield parse_batch(batch, **options).replace_schema_metadata(None)


def parse(frame: Any, **options: Unpack[BulkOptions]) -> Any:
    """Apply `streamweld.arrow.parse` to a Spark DataFrame.

    Args:
        frame: a `pyspark.sql.DataFrame` with a column of bodies, binary or string.
        **options: the options of `streamweld.arrow.parse`.

    Returns:
        A `pyspark.sql.DataFrame` with one row for each row of `frame`: the kept columns, then those of the responses.

    Raises:
        UsageError: if a column does not exist in `frame`, or for the same reasons as `responses`.
    """
    keep = list(options.get("keep", ()))
    body = options.get("body", "body")
    known = list(frame.columns)
    for name in (body, *keep):
        if name not in known:
            raise UsageError(f"the DataFrame has no column {name!r}; its columns are {', '.join(known)}")
    selected = frame.select(*[f"`{name}`" for name in dict.fromkeys((*keep, body))])
    types = {field.name: field.dataType.simpleString() for field in selected.schema.fields}
    kept = [f"`{name}` {types[name]}" for name in keep]
    made = spark_ddl(options.get("columns", COLUMNS))
    return selected.mapInArrow(responses(**options), ", ".join([*kept, *filter(None, [made])]))
