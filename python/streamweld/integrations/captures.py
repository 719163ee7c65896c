"""Find recorded response bodies in files: plain bodies, JSON Lines, Parquet, Arrow IPC, HAR, and captured HTTP traffic.

    for capture in captures("traffic.har"):
        if capture.error is None:
            print(capture.row, streamweld.parse(capture.body).text)

A file or row that cannot be read becomes a `Capture` with an `error`, and reading continues if possible. Parquet and
Arrow IPC need pyarrow (extra `bulk`), which is imported only when such a file is read. Only one body is in memory at a
time, except that HAR files and captured traffic are read completely.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false
# (JSON and flows come from other programs, so the types of their members are checked at run time)

from __future__ import annotations

import base64
import binascii
import gzip
import json
import re
import zlib
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._messages import is_scan_result, rows_hint
from streamweld.errors import StreamweldError
from streamweld.integrations._pyarrow import load_pyarrow
from streamweld.testing.recording import MARK, parse_recording

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

__all__ = ["Capture", "CaptureError", "captures", "find"]

COLUMN: Final = "body"
_HEAD: Final = 4096
_BATCH: Final = 64  # maximum number of Parquet rows in memory at a time
_RATIO: Final = 200  # the same value as the limit `max_inflate_ratio`
_HTTP: Final = re.compile(rb"(?:HTTP/1\.[01] [0-9]{3}|[A-Z]{3,10} \S+ HTTP/1\.[01]\r?\n)")
_FLOW: Final = re.compile(rb"[0-9]{1,12}:[0-9]{1,12}:[a-z]")
_DEPTH: Final = 64
# Content types that a model's response can have.
_STREAMS: Final = ("text/event-stream", "application/x-ndjson", "application/jsonl", "application/json")


class CaptureError(StreamweldError):
    """A file, or a row in it, cannot be read.

    Attributes:
        path: the file.
        row: the 0-based number of the row; None if the whole file cannot be read.
        rule: `unreadable`, `corrupt_file`, `corrupt_row`, `missing_column`, `wrong_type` or `unsupported_encoding`.
        problem: a description of the problem.
    """

    def __init__(self, path: str, row: int | None, rule: str, problem: str) -> None:
        self.path = path
        self.row = row
        self.rule = rule
        self.problem = problem
        super().__init__(f"{path}{'' if row is None else f', row {row}'}: {problem} [{rule}]")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.row, self.rule, self.problem)


@dataclass(frozen=True, slots=True)
class Capture:
    """One recorded body, or the reason why it could not be read. `row` is the body's number in the file."""

    path: str
    row: int
    body: bytes | None
    error: CaptureError | None = None


def find(paths: Iterable[str], *, recursive: bool = False) -> Iterator[str]:
    """Expand directories and glob patterns into files. The files of each directory or pattern are sorted.

    Args:
        paths: files, directories, and patterns such as `logs/*.sse`; `**` in a pattern matches any number of folders.
        recursive: whether to descend into the folders of a directory. Hidden files and folders are skipped.

    Returns:
        The files. A path that does not exist is returned unchanged; the problem is reported when it is opened.
    """
    for path in paths:
        folder = Path(path)
        if folder.is_dir():
            inside = folder.rglob("*") if recursive else folder.iterdir()
            shown = [one for one in inside if not any(part.startswith(".") for part in one.relative_to(folder).parts)]
            yield from sorted(str(one) for one in shown if one.is_file())
        elif has_magic(path) and not folder.exists():
            yield from sorted(one for one in glob(path, recursive=True) if Path(one).is_file()) or [path]  # noqa: PTH207
        else:
            yield path


def captures(path: str, *, column: str | None = None, start: int = 0) -> Iterator[Capture]:
    """Yield the recorded bodies of one file, in order.

    The format is detected from the content: streamweld recordings, Parquet, Arrow IPC, HAR, an HTTP/1.1 exchange as
    written by a proxy or `curl -i`, and mitmproxy flows. A file named `.jsonl` or `.ndjson` has one row per line if
    `column` is given or its first line is an object with the member `body`. Any other file is one body. `.gz` files are
    decompressed.

    Args:
        path: the file.
        column: the column, or the member of each line, that contains the body; `a.b` is member `b` of member `a`.
        start: the number of the first row to return.

    Returns:
        The captures from `start` on. Invalid content never raises an exception; it is reported in the capture.

    Raises:
        MissingExtra: if the file is Parquet or Arrow IPC and pyarrow is not installed.
    """
    row = start
    try:
        for capture in _captures(path, column, start):
            row = capture.row + 1
            yield capture
    except OSError as error:
        yield _failed(path, row, "unreadable", error.strerror or str(error), whole=row == 0)
    except (EOFError, zlib.error) as error:
        yield _failed(path, row, "corrupt_file", str(error))


def _failed(path: str, row: int, rule: str, problem: str, *, whole: bool = False) -> Capture:
    return Capture(path, row, None, CaptureError(path, None if whole else row, rule, problem))


def _captures(path: str, column: str | None, start: int) -> Iterator[Capture]:
    with _opened(path) as file:
        head = file.read(_HEAD)
        file.seek(0)
        name = path.removesuffix(".gz").lower()
        if head.startswith((b"PAR1", b"ARROW1")) or name.endswith((".parquet", ".arrow", ".feather")):
            rows = _table_rows(path, file, head, column or COLUMN)
        elif column is None and is_scan_result(head):
            problem = f"this is {rows_hint(head)}"
            rows = iter([_failed(path, 0, "wrong_type", problem, whole=True)])
        elif name.endswith(".har"):
            rows = _har_rows(path, file.read())
        elif name.endswith((".jsonl", ".ndjson")) and (column is not None or _has_bodies(head)):
            rows = _line_rows(path, file, column or COLUMN)
        elif head.startswith(MARK):
            rows = iter([_recorded(path, file.read())])
        elif _HTTP.match(head):
            rows = _http_rows(path, file.read())
        elif _FLOW.match(head):
            rows = _flow_rows(path, file.read())
        else:
            rows = iter([Capture(path, 0, file.read())]) if start == 0 else iter(())
        for capture in rows:
            if capture.row >= start:
                yield capture


def _recorded(path: str, data: bytes) -> Capture:
    """Return the body that a file in streamweld's recording format contains."""
    try:
        return Capture(path, 0, parse_recording(data.decode("utf-8")).body)
    except ValueError as error:
        return _failed(path, 0, "corrupt_file", str(error), whole=True)


def _opened(path: str) -> BinaryIO:
    if path.endswith(".gz"):
        return cast("BinaryIO", gzip.open(path, "rb"))
    return Path(path).open("rb")


def _as_body(path: str, row: int, column: str, value: object) -> Capture:
    if value is None:
        return Capture(path, row, None)
    if isinstance(value, str):
        return Capture(path, row, value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return Capture(path, row, value)
    return _failed(path, row, "wrong_type", f"{column!r} is of type {type(value).__name__}, not text or bytes")


# --- JSON Lines


def _has_bodies(head: bytes) -> bool:
    line, end, _ = head.lstrip().partition(b"\n")
    if not end:
        # The first line is longer than the bytes read so far, so search the text for the member.
        return re.match(rb'\{(?:.*,)?\s*"body"\s*:', line, re.DOTALL) is not None
    try:
        first: object = json.loads(line)
    except ValueError:
        return False
    return isinstance(first, dict) and COLUMN in first


def _line_rows(path: str, file: BinaryIO, column: str) -> Iterator[Capture]:
    row = -1
    for line in file:
        if not line.strip():
            continue
        row += 1
        try:
            value: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield _failed(path, row, "corrupt_row", f"the line is not JSON: {error}")
            continue
        problem = None
        for member in [column] if isinstance(value, dict) and column in value else column.split("."):
            if not isinstance(value, dict) or member not in value:
                problem = f"there is no member {column!r}"
                break
            value = cast("dict[str, Any]", value)[member]
        yield _as_body(path, row, column, value) if problem is None else _failed(path, row, "missing_column", problem)


# --- Parquet and Arrow IPC


def _table_rows(path: str, file: BinaryIO, head: bytes, column: str) -> Iterator[Capture]:
    pa = load_pyarrow()
    row = 0
    try:
        if head.startswith(b"ARROW1"):
            reader = pa.ipc.open_file(file)
            schema = reader.schema
            batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
        else:
            table = pa.parquet.ParquetFile(file, pre_buffer=False)
            schema = table.schema_arrow
            batches = table.iter_batches(_BATCH, columns=[column]) if column in schema.names else iter(())
        if column not in schema.names:
            problem = f"there is no column {column!r}; the columns are {', '.join(schema.names)}"
            yield _failed(path, 0, "missing_column", problem, whole=True)
            return
        kind = schema.field(column).type
        value_type = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not any(is_kind(value_type) for is_kind in _body_types(pa)):
            yield _failed(path, 0, "wrong_type", f"column {column!r} is of type {kind}, not text or bytes", whole=True)
            return
        for batch in batches:
            for value in batch.column(column):
                yield _as_body(path, row, column, value.as_py())
                row += 1
    except (pa.ArrowException, OSError) as error:
        yield _failed(path, row, "corrupt_file", str(error).splitlines()[0], whole=row == 0)


def _body_types(pa: Any) -> list[Any]:
    names = ("binary", "large_binary", "binary_view", "fixed_size_binary", "string", "large_string", "string_view")
    return [getattr(pa.types, f"is_{name}") for name in names]


# --- HAR


def _har_rows(path: str, data: bytes) -> Iterator[Capture]:
    try:
        entries: Any = json.loads(data)["log"]["entries"]
        listed = list(entries)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        yield _failed(path, 0, "corrupt_file", f"the file is not a HAR archive: {error}", whole=True)
        return
    for row, entry in enumerate(listed):
        try:
            content = entry["response"]["content"]
            method = entry["request"]["method"]
            text: object = content.get("text")
        except (KeyError, TypeError, AttributeError) as error:
            yield _failed(path, row, "corrupt_row", f"the entry is incomplete: {error!r}")
            continue
        if not _is_answer(str(content.get("mimeType", "")), is_post=method == "POST") or text is None:
            continue
        if content.get("encoding") == "base64" and isinstance(text, str):
            try:
                text = base64.b64decode(text, validate=True)
            except binascii.Error as error:
                yield _failed(path, row, "corrupt_row", f"the body is not base64: {error}")
                continue
        yield _as_body(path, row, "text", text)


def _is_answer(content_type: str, *, is_post: bool = True) -> bool:
    """Return True if the body may be a model's response. Plain JSON is accepted only in the response to a POST."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind in (_STREAMS if is_post else _STREAMS[:-1])


# --- HTTP/1.1 as written by a proxy


def _http_rows(path: str, data: bytes) -> Iterator[Capture]:
    """Yield the bodies of the responses in a sequence of HTTP requests and responses."""
    at = row = 0
    while at < len(data):
        if not _HTTP.match(data, at):
            yield _failed(path, row, "corrupt_file", f"no HTTP message starts at byte {at}")
            return
        end = re.compile(rb"\r?\n\r?\n").search(data, at)
        if end is None:
            yield _failed(path, row, "corrupt_file", f"the header fields at byte {at} do not end")
            return
        lines = data[at : end.start()].decode("latin-1").splitlines()
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        is_response = data.startswith(b"HTTP/", at)
        body, at = _framed(data, end.end(), fields, is_response=is_response)
        if is_response and _is_answer(fields.get("content-type", "")):
            yield _decoded(path, row, body, fields.get("content-encoding", ""))
            row += 1
        while data.startswith((b"\r\n", b"\n"), at):
            at += 1


def _framed(data: bytes, start: int, fields: dict[str, str], *, is_response: bool) -> tuple[bytes, int]:
    """Return the body that starts at `start`, and the offset of its end.

    If the body is truncated, the available part is returned.
    """
    if "chunked" in fields.get("transfer-encoding", "").lower():
        return _dechunked(data, start)
    length = fields.get("content-length", "")
    if length.isascii() and length.isdigit():
        end = start + int(length)
        return data[start:end], min(end, len(data))
    return (data[start:], len(data)) if is_response else (b"", start)


def _dechunked(data: bytes, at: int) -> tuple[bytes, int]:
    pieces: list[bytes] = []
    start = at
    while (end := data.find(b"\n", at)) >= 0:
        size = data[at:end].partition(b";")[0].strip()
        try:
            length = int(size, 16)
        except ValueError:
            if pieces:
                break
            return data[start:], len(data)  # the proxy decoded the chunks but did not remove the header
        at = end + 1
        if length == 0:
            trailer = re.compile(rb"(?:[^\r\n]+\r?\n)*\r?\n?").match(data, at)
            return b"".join(pieces), at if trailer is None else trailer.end()
        pieces.append(data[at : at + length])
        at += length
        at += 2 if data.startswith(b"\r\n", at) else 1
    return b"".join(pieces), len(data)


def _decoded(path: str, row: int, body: bytes, encoding: str) -> Capture:
    """Decode the content encoding of a body."""
    coding = encoding.strip().lower()
    if coding in ("", "identity"):
        return Capture(path, row, body)
    if coding not in ("gzip", "x-gzip", "deflate"):
        problem = f"the body is encoded with {coding!r}; record with `accept-encoding: identity`"
        return _failed(path, row, "unsupported_encoding", problem)
    inflate = zlib.decompressobj(47)  # gzip or zlib, detected from the header
    try:
        plain = inflate.decompress(body, max(len(body), 1) * _RATIO)
    except zlib.error as error:
        return _failed(path, row, "corrupt_row", f"the body is not {coding}: {error}")
    if inflate.unconsumed_tail:
        return _failed(path, row, "corrupt_row", f"the body inflates to more than {_RATIO} times its size")
    return Capture(path, row, plain)


# --- mitmproxy flows: https://docs.mitmproxy.org/stable/, a sequence of tnetstrings


def _flow_rows(path: str, data: bytes) -> Iterator[Capture]:
    at = row = 0
    while at < len(data):
        try:
            flow, at = _tnetstring(data, at, len(data), 0)
        except (ValueError, IndexError) as error:
            yield _failed(path, row, "corrupt_file", f"no flow can be read at byte {at}: {error}")
            return
        response: Any = flow.get("response") if isinstance(flow, dict) else None
        if isinstance(response, dict):
            fields = {
                bytes(name).decode("latin-1").lower(): bytes(value).decode("latin-1")
                for name, value in response.get("headers") or ()
            }
            body = response.get("content")
            if isinstance(body, bytes) and _is_answer(fields.get("content-type", "")):
                yield _decoded(path, row, body, fields.get("content-encoding", ""))
        row += 1


def _tnetstring(data: bytes, at: int, end: int, depth: int) -> tuple[Any, int]:
    colon = data.index(b":", at, min(at + 13, end))
    start = colon + 1
    stop = start + int(data[at:colon])
    if stop >= end or depth > _DEPTH:
        raise ValueError("a value is longer than its container")
    kind = data[stop : stop + 1]
    if kind == b",":
        return data[start:stop], stop + 1
    if kind in b"}]":
        values: list[Any] = []
        while start < stop:
            value, start = _tnetstring(data, start, stop, depth + 1)
            values.append(value)
        if kind == b"]":
            return values, stop + 1
        names = [name.decode() if isinstance(name, bytes) else str(name) for name in values[::2]]
        return dict(zip(names, values[1::2], strict=True)), stop + 1
    text = data[start:stop].decode()
    scalars: dict[bytes, Any] = {
        b";": str,
        b"#": int,
        b"^": float,
        b"!": lambda word: word == "true",
        b"~": lambda _: None,
    }
    if kind not in scalars:
        raise ValueError(f"{kind!r} is not the type of a value")
    return scalars[kind](text), stop + 1
