"""The recipes of `docs/bulk.md` on the real engines: `python -m tests.bulk.engines ENGINE ROWS`.

This runs in its own environment, `engines`. Each engine reads the same Parquet files, in which one row in a thousand
cannot be read, and its rows are compared with those of one local call and with the hand-written expected rows. Spark
has a master and two workers, Ray has two nodes; one worker or node is killed while it works. The program prints one
JSON object.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import streamweld.arrow

from tests.bulk.bodies import bodies, facts, truth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILES = 8
ROOT = Path(__file__).resolve().parent.parent.parent
PATHS = os.pathsep.join([str(ROOT / "python"), str(ROOT)])


def write(folder: Path, rows: int) -> None:
    """Write the rows to several files with several row groups each."""
    share = -(-rows // FILES)
    for number in range(FILES):
        start = number * share
        count = min(share, rows - start)
        table = pa.table({"id": range(start, start + count), "body": pa.array(bodies(count, start), pa.binary())})
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=max(1, share // 4))


def local(folder: Path) -> pa.Table:
    """Return the rows of all files from one call on this machine."""
    return streamweld.arrow.parse(pq.read_table(folder), keep=["id"], threads=2)


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows in order, as values, because engines differ in the widths of their types."""
    return sorted(table.to_pylist(), key=lambda row: row["id"])


def wait(what: str, done: Callable[[], Any], seconds: float = 90) -> Any:
    end = time.monotonic() + seconds
    while not (found := done()):
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.05)
    return found


def polars(folder: Path, _: Path) -> pa.Table:
    import polars as pl

    schema = pl.DataFrame(streamweld.arrow.parse(pl.DataFrame(schema={"id": pl.Int64, "body": pl.Binary}), keep=["id"]))
    calls = (
        pl.scan_parquet(folder / "*.parquet")
        .map_batches(
            lambda frame: pl.DataFrame(streamweld.arrow.parse(frame, keep=["id"])),
            schema=schema.schema,
            streamable=True,
        )
        .collect(engine="streaming")
    )
    return calls.to_arrow()


def duckdb(folder: Path, _: Path) -> pa.Table:
    import duckdb as engine

    source = engine.connect()
    bodies = source.sql(f"select id, body from '{folder}/*.parquet'").to_arrow_reader(1000)
    calls = streamweld.arrow.parse(bodies, keep=["id"])  # noqa: F841 (DuckDB finds it by its name)
    made = engine.connect().sql("select * from calls").to_arrow_table()
    # "All calls with their arguments", as SQL.
    names = (
        engine.connect()
        .execute("select call.name, count(*) from (select unnest(tool_calls) as call from made) group by 1 order by 1")
        .fetchall()
    )
    assert [name for name, _ in names] == ["add", "look", "now"], names
    return made


def daft(folder: Path, _: Path) -> pa.Table:
    import daft as engine

    row = pa.struct(list(pa.schema(streamweld.arrow.schema())))

    @engine.func.batch(return_dtype=engine.DataType.from_arrow_type(row))
    def responses(body: engine.Series) -> pa.Array:
        calls = streamweld.arrow.parse(body.to_arrow())
        return calls.to_struct_array()

    frame = engine.read_parquet(str(folder / "*.parquet"))
    made = frame.select(engine.col("id"), responses(engine.col("body")).alias("response")).to_arrow()
    response = made["response"].combine_chunks()
    fields = [response.field(number) for number in range(response.type.num_fields)]
    names = [response.type.field(number).name for number in range(response.type.num_fields)]
    return pa.table([made["id"].combine_chunks(), *fields], ["id", *names])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a daemon that this program started, together with its process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def spark(folder: Path, scratch: Path) -> pa.Table:
    import pyspark
    from pyspark.sql import SparkSession
    from streamweld.integrations import spark as streamweld_spark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYTHONPATH": PATHS,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    os.environ.update(environment)
    port = _free_port()
    master = f"spark://127.0.0.1:{port}"
    logs = scratch / "logs"
    logs.mkdir()

    def daemon(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (logs / name).open("wb") as log:
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]]
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    with ExitStack() as stack:
        first = daemon("master", "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        stack.callback(_stop, first)
        wait("Spark's master", lambda: b"I have been elected" in (logs / "master").read_bytes())
        workers = []
        for number in range(2):
            where = ("--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(scratch / f"worker-{number}"))
            worker = daemon(f"worker-{number}", "worker.Worker", *where, "--cores", "1", "--memory", "900m", master)
            stack.callback(_stop, worker)
            workers.append(worker)
        for number in range(2):
            name = f"worker-{number}"
            wait(f"Spark's {name}", lambda name=name: b"Successfully registered" in (logs / name).read_bytes())
        session = (
            SparkSession.builder.master(master)
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.executor.memory", "512m")
            .config("spark.executor.cores", "1")
            .config("spark.executorEnv.PYTHONPATH", PATHS)
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
            .config("spark.sql.files.maxPartitionBytes", "64k")
            .config("spark.sql.execution.arrow.maxBytesPerBatch", "33554432")
            .getOrCreate()
        )
        stack.callback(session.stop)
        captures = session.read.parquet(str(folder))
        calls = streamweld_spark.parse(captures, keep=["id"])
        assert [field.name for field in calls.schema.fields] == ["id", *streamweld.arrow.COLUMNS]
        marks = scratch / "marks"
        marks.mkdir()
        killed = threading.Thread(target=_kill_when_working, args=(marks, workers))
        killed.start()
        slowed = captures.select("id", "body").mapInArrow(
            Slowed(str(marks), streamweld_spark.responses(keep=["id"])), calls.schema
        )
        made = slowed.toArrow()
        assert (marks / "killed").exists(), "the job ended before a worker was killed"
        killed.join()
        # Run the ready-made function on the rest of the cluster.
        assert calls.where("error is not null").count() == made.filter(pa.compute.is_valid(made["error"])).num_rows
        return made


class Slowed:
    """Records the process that is working, and works slowly until a worker has been killed."""

    def __init__(self, marks: str, inner: Callable[[Any], Iterator[Any]]) -> None:
        self.marks = Path(marks)
        self.inner = inner

    def __call__(self, batches: Any) -> Iterator[Any]:
        for batch in batches:
            (self.marks / f"working-{os.getpid()}").touch()
            if not (self.marks / "killed").exists():
                time.sleep(0.3)
            yield from self.inner([batch])


def _parents(pid: int) -> Iterator[int]:
    while pid > 1:
        yield pid
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])


def _kill_when_working(marks: Path, workers: list[subprocess.Popen[bytes]]) -> None:
    """Kill the first worker with a Python process that is working on a batch, together with its executor."""

    def working() -> subprocess.Popen[bytes] | None:
        for mark in marks.glob("working-*"):
            try:
                above = set(_parents(int(mark.name.removeprefix("working-"))))
            except FileNotFoundError:
                continue
            for worker in workers:
                if worker.pid in above:
                    return worker
        return None

    victim = wait("a batch in a worker", working)
    os.killpg(victim.pid, signal.SIGKILL)
    victim.wait()
    (marks / "killed").touch()


def ray(folder: Path, scratch: Path) -> pa.Table:
    import ray as engine
    from ray.cluster_utils import Cluster
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    os.environ["PYTHONPATH"] = PATHS
    marks = scratch / "marks"
    marks.mkdir()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 200_000_000})
    second = cluster.add_node(num_cpus=1, object_store_memory=200_000_000)
    try:
        engine.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        nodes = {node["NodeID"] for node in engine.nodes() if node["Alive"]}
        assert len(nodes) == 2
        engine.data.DataContext.get_current().enable_progress_bars = False

        def responses(batch: pa.Table) -> pa.Table:
            node = engine.get_runtime_context().get_node_id()
            (marks / f"working-{node}").touch()
            wait("the loss of the second node", (marks / "killed").exists, 180)
            return streamweld.arrow.parse(batch, keep=["id"])

        def kill() -> None:
            wait("a batch on the second node", (marks / f"working-{second.node_id}").exists, 150)
            cluster.remove_node(second, allow_graceful=False)
            (marks / "killed").touch()

        killer = threading.Thread(target=kill)
        killer.start()
        captures = engine.data.read_parquet(str(folder), override_num_blocks=24)
        calls = captures.map_batches(
            responses,
            batch_format="pyarrow",
            zero_copy_batch=True,
            batch_size=100,
            # Run on the second node until it is lost, because Ray may otherwise give every batch to the first node.
            scheduling_strategy=NodeAffinitySchedulingStrategy(second.node_id, soft=True),
        )
        out = scratch / "calls"
        calls.write_parquet(str(out))
        assert (marks / "killed").exists(), "the job ended before its second node was killed"
        killer.join()
        wait("the loss of the node", lambda: [node["Alive"] for node in engine.nodes()].count(True) == 1)
        return pq.read_table(out)
    finally:
        engine.shutdown()
        cluster.shutdown()


ENGINES: dict[str, Callable[[Path, Path], pa.Table]] = {
    "polars": polars,
    "duckdb": duckdb,
    "daft": daft,
    "spark": spark,
    "ray": ray,
}


def main() -> None:
    name, rows = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="streamweld-bulk-") as made:
        folder, scratch = Path(made, "captures"), Path(made, "scratch")
        folder.mkdir()
        scratch.mkdir()
        write(folder, rows)
        start = time.monotonic()
        found = plain(ENGINES[name](folder, scratch))
        seconds = time.monotonic() - start
        expected = plain(local(folder))
        wrong = [row["id"] for row in found if facts(row) != truth(row["id"])]
        print(
            json.dumps(
                {
                    "engine": name,
                    "rows": len(found),
                    "bad": sum(row["error"] is not None for row in found),
                    "wrong": wrong[:10],
                    "equal": found == expected,
                    "seconds": round(seconds, 1),
                }
            )
        )


if __name__ == "__main__":
    main()
