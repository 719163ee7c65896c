# The extension module, `rust/py`. Its event classes are the twins of those in `_events`, which stand for them here.

from typing import Any, Final, final

from streamweld._events import Diagnostic as Diagnostic
from streamweld._events import Event as _Event
from streamweld._events import File as File
from streamweld._events import Finished as Finished
from streamweld._events import ReasoningDelta as ReasoningDelta
from streamweld._events import ReasoningDone as ReasoningDone
from streamweld._events import ReasoningStarted as ReasoningStarted
from streamweld._events import RefusalDelta as RefusalDelta
from streamweld._events import RefusalDone as RefusalDone
from streamweld._events import RefusalStarted as RefusalStarted
from streamweld._events import ResponseStarted as ResponseStarted
from streamweld._events import Source as Source
from streamweld._events import TextDelta as TextDelta
from streamweld._events import TextDone as TextDone
from streamweld._events import TextStarted as TextStarted
from streamweld._events import ToolCall as ToolCall
from streamweld._events import ToolCallDelta as ToolCallDelta
from streamweld._events import ToolCallReset as ToolCallReset
from streamweld._events import ToolCallRetracted as ToolCallRetracted
from streamweld._events import ToolCallStarted as ToolCallStarted
from streamweld._events import ToolResult as ToolResult
from streamweld._events import Unknown as Unknown
from streamweld._events import UpstreamErrorEvent as UpstreamErrorEvent
from streamweld._events import Usage as Usage
from streamweld._words import Completeness
from streamweld.errors import StreamError
from streamweld.response import Choice

__all__ = [
    "BUILD_INFO",
    "ArrowBatch",
    "ArrowReader",
    "ArrowSchema",
    "ArrowTable",
    "Converter",
    "Diagnostic",
    "File",
    "Finished",
    "Fold",
    "Framer",
    "Parser",
    "ReasoningDelta",
    "ReasoningDone",
    "ReasoningStarted",
    "RefusalDelta",
    "RefusalDone",
    "RefusalStarted",
    "Repairer",
    "ResponseStarted",
    "Source",
    "TextDelta",
    "TextDone",
    "TextStarted",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallReset",
    "ToolCallRetracted",
    "ToolCallStarted",
    "ToolResult",
    "Unknown",
    "UpstreamErrorEvent",
    "Usage",
    "complete_object",
    "describe_arrow",
    "fold_snapshot",
    "read_arrow",
]

BUILD_INFO: Final[str]

@final
class Parser:
    def __new__(cls, dialect: str, config: dict[str, Any]) -> Parser: ...
    @property
    def dialect(self) -> str | None: ...
    @property
    def diagnostics(self) -> list[Diagnostic]: ...
    def feed(self, data: bytes | bytearray | memoryview, /) -> list[_Event]: ...
    def feed_silent(self, data: bytes | bytearray | memoryview, /) -> None: ...
    def close(self, broken: bool = False) -> list[_Event]: ...
    def close_silent(self, broken: bool = False) -> None: ...
    def snapshot(self) -> tuple[list[_Event], str, int]: ...
    def fold(self, choice: type[Choice], /) -> Fold: ...
    def shown_arguments(self, part: int, /) -> str | None: ...

@final
class Fold:
    @property
    def events(self) -> tuple[_Event, ...]: ...
    @property
    def started(self) -> ResponseStarted | None: ...
    @property
    def usage(self) -> Usage | None: ...
    @property
    def error(self) -> UpstreamErrorEvent | None: ...
    @property
    def choices(self) -> tuple[Choice, ...]: ...
    @property
    def first(self) -> Choice: ...
    @property
    def completeness(self) -> Completeness: ...
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]: ...
    @property
    def diagnostics_dropped(self) -> int: ...
    @property
    def ordered(self) -> bool: ...
    @property
    def dialect(self) -> str | None: ...

@final
class Converter:
    def __new__(cls, source: str, target: str, config: dict[str, Any], options: dict[str, Any]) -> Converter: ...
    @property
    def error(self) -> StreamError | None: ...
    @property
    def dialect(self) -> str | None: ...
    @property
    def diagnostics(self) -> list[Diagnostic]: ...
    @property
    def tool_ids(self) -> list[tuple[str, str]]: ...
    def feed(self, data: bytes | bytearray | memoryview, /) -> bytes: ...
    def overflow(self, unread: list[bytes]) -> bytes: ...
    def close(self, broken: bool = False) -> bytes: ...
    def exceed(self, name: str) -> bytes: ...
    def snapshot(self) -> tuple[list[_Event], str, int]: ...

@final
class Repairer:
    def __new__(cls, source: str, target: str, config: dict[str, Any], options: dict[str, Any]) -> Repairer: ...
    @property
    def error(self) -> StreamError | None: ...
    @property
    def repaired(self) -> bool: ...
    @property
    def is_over(self) -> bool: ...
    @property
    def dialect(self) -> str | None: ...
    @property
    def diagnostics(self) -> list[Diagnostic]: ...
    def feed(self, data: bytes | bytearray | memoryview, /) -> bytes: ...
    def close(self, broken: bool = False) -> bytes: ...
    def exceed(self, name: str) -> bytes: ...
    def snapshot(self) -> tuple[list[_Event], str, int]: ...

@final
class Framer:
    def __new__(cls, limits: dict[str, int | None], last_event_id: str = "") -> Framer: ...
    @property
    def last_event_id(self) -> str: ...
    @property
    def reconnection_time(self) -> int | None: ...
    def feed(self, data: bytes | bytearray | memoryview, /) -> list[tuple[str, str, str, int | None]]: ...

@final
class ArrowBatch:
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __len__(self) -> int: ...

@final
class ArrowTable:
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __len__(self) -> int: ...

@final
class ArrowReader:
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

@final
class ArrowSchema:
    @property
    def ddl(self) -> str: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def version(self) -> str: ...
    def __arrow_c_schema__(self) -> Any: ...

def complete_object(text: str, /) -> str | None: ...
def fold_snapshot(
    events: tuple[_Event, ...],
) -> (
    tuple[
        tuple[_Event, ...],
        ResponseStarted | None,
        Usage | None,
        UpstreamErrorEvent | None,
        list[tuple[int, tuple[_Event, ...], Finished | None, dict[int, str] | None]],
    ]
    | None
): ...
def describe_arrow(columns: list[str] | None, /) -> ArrowSchema: ...
def read_arrow(
    data: Any,
    /,
    *,
    columns: list[str] | None,
    body: str,
    keep: list[str],
    dialect: str,
    config: dict[str, Any],
    threads: int,
    lazy: bool,
) -> ArrowBatch | ArrowTable | ArrowReader: ...
