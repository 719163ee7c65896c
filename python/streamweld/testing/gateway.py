"""An HTTP server on the loopback interface that replays recordings and reproduces the faults of gateways.

    with BrokenGateway([OPERATORS["index_is_a_string"](stream)]) as gateway:
        client = openai.OpenAI(base_url=gateway.url + "/v1", api_key="none")

The server responds to each request with the next stream, and stops at the end of the `with` block.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from streamweld._messages import choice_message
from streamweld.errors import UsageError
from streamweld.testing.recording import Piece, Recording
from streamweld.testing.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

__all__ = ["BrokenGateway", "Reply", "Request", "Script"]

Source: TypeAlias = "Reply | Stream | Recording | bytes"
How: TypeAlias = Literal["complete", "cut", "reset", "stall"]
_ENDS: Final[tuple[str, ...]] = get_args(How)
# Invalid values of `end`, each with the valid values that the caller may have meant.
_CALLED: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("ok", "done", "normal", "end"), ("complete",)),
    **dict.fromkeys(("truncated", "truncate", "close", "closed", "failed", "broken"), ("cut",)),
    **dict.fromkeys(("rst", "abort"), ("reset",)),
    **dict.fromkeys(("silence", "silent", "hang", "timeout", "idle"), ("stall",)),
}


@dataclass(frozen=True)
class Request:
    """A request that the gateway received."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as a JSON value: the messages, tools and options that the client sent.

        Raises:
            ValueError: if the body is not JSON.
        """
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """The gateway's response to a request.

    Attributes:
        pieces: the body. Each piece is sent separately, at its own time.
        status: the status of the response.
        content_type: the content type of the response.
        end: how the body ends. `complete`: the body ends normally. `cut`: the connection is closed after the pieces,
            without the end of the body. `reset`: the connection is reset. `stall`: no more bytes are sent until the
            client disconnects or the gateway is closed.

    Raises:
        UsageError: if `end` is not one of these values.
    """

    pieces: tuple[Piece, ...]
    status: int = 200
    content_type: str = "text/event-stream"
    end: How = "complete"

    def __post_init__(self) -> None:
        if self.end not in _ENDS:
            raise UsageError(choice_message("end", self.end, _ENDS, informal=_CALLED))

    @classmethod
    def of(cls, given: Source, *, speed: float | None = None, end: How | None = None) -> Reply:
        """Return a reply from a stream, a recording, or a body.

        Args:
            given: the source of the reply.
            speed: the replay speed of a recording: 1 is as recorded, 10 is ten times as fast. None sends everything
                without waiting.
            end: how the body ends; None ends it as recorded.

        Raises:
            TypeError: if `given` is anything else, such as None from an operator that does not apply.
        """
        _check(given, "the reply")
        if isinstance(given, Reply):
            return given
        if isinstance(given, bytes):
            return cls((Piece(0.0, given),), end=end or "complete")
        recording = Recording.of(given) if isinstance(given, Stream) else given
        pieces = tuple(Piece(piece.at / speed if speed else 0.0, piece.data) for piece in recording.pieces)
        ended: How = "cut" if recording.end == "failed" else "complete"
        return cls(pieces, recording.status, recording.content_type, end or ended)


def _check(given: object, name: str) -> None:
    """Raise a TypeError if the value cannot be a reply. `name` is the name of the value in the message."""
    if isinstance(given, Reply | Stream | Recording | bytes):
        return
    if given is None:
        raise TypeError(f"{name} is None: an operator returns None if it does not apply to the stream")
    kind = type(given).__name__
    accepted = "pass a stream of `build`, a Recording, a Reply, or the bytes of a body"
    if isinstance(given, str | os.PathLike):
        accepted = "pass read_recording(file) for a recording, or the bytes of a body: Path(file).read_bytes()"
    raise TypeError(f"{name} is of type {kind}: {accepted}")


Script: TypeAlias = (
    "Sequence[Reply | Stream | Recording | bytes] | Callable[[Request], Reply | Stream | Recording | bytes]"
)


class BrokenGateway:
    """A server that sends the replies in a script, from its creation until `close()`.

    Args:
        script: the replies, in order; the last one is repeated. A function that returns a reply for a request can be
            given instead. If the function raises an exception or does not return a reply, the client gets status 500,
            and `close` raises the exception.
        speed: the replay speed of recordings; None replays without waiting.

    Raises:
        TypeError: if `script` is a single reply, or contains anything except replies.
        ValueError: if `script` is empty.

    Attributes:
        requests: the requests received so far.
    """

    def __init__(self, script: Script, *, speed: float | None = None) -> None:
        if isinstance(cast("object", script), Reply | Stream | Recording | bytes):
            raise TypeError("script must be a list of replies: write BrokenGateway([reply])")
        if not callable(script) and not script:
            raise ValueError("script must contain at least one reply")
        if not callable(script):
            for number, given in enumerate(script):
                _check(given, f"script[{number}]")
        self._failure: Exception | None = None  # the first exception of the script's function
        self._script = script
        self._speed = speed
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self.requests: list[Request] = []
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address, without a path: `http://127.0.0.1:…`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop serving, and end stalled replies.

        Raises:
            Exception: the first exception that the script's function raised, or a TypeError if it did not return a
                reply. Further calls do not raise the exception again.
        """
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reply_to(self, request: Request) -> Reply:
        """Return the next reply of the script."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
        if callable(self._script):
            try:
                given = self._script(request)
                _check(given, "what the script's function returned")
            except Exception as error:  # noqa: BLE001 (of the user's function; `close` raises it)
                with self._lock:
                    self._failure = self._failure or error
                message = f"the script's function failed: {type(error).__name__}: {error}"
                return Reply((Piece(0.0, message.encode("utf-8", "replace")),), 500, "text/plain; charset=utf-8")
            return Reply.of(given, speed=self._speed)
        return Reply.of(self._script[min(number, len(self._script) - 1)], speed=self._speed)

    def wait(self, seconds: float | None) -> bool:
        """Wait for this time, and return whether the gateway was closed in the meantime."""
        return self._closed.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connection errors, because clients may disconnect at any time."""


def _handler(gateway: BrokenGateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length)
            self._answer(Request(self.command, self.path, dict(self.headers.items()), body))

        do_GET = do_POST  # noqa: N815 (a name of http.server)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (a name of http.server)
            """Do not log requests, because tests do not need the log."""

        def _answer(self, request: Request) -> None:
            reply = gateway.reply_to(request)
            self.send_response(reply.status)
            self.send_header("content-type", reply.content_type)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            began = time.monotonic()
            for piece in reply.pieces:
                left = piece.at - (time.monotonic() - began)
                if left > 0 and gateway.wait(left):
                    return
                if piece.data:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece.data), piece.data))
                    self.wfile.flush()
            match reply.end:
                case "complete":
                    self.wfile.write(b"0\r\n\r\n")
                    return
                case "reset":
                    linger = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                case "stall":
                    gateway.wait(None)
                case "cut":
                    pass
            self.close_connection = True

        def finish(self) -> None:
            super().finish()
            if self.close_connection:
                self.connection.close()

    return Handler
