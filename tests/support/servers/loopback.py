"""A real HTTP server on the loopback interface that responds to every POST with one of the given bodies.

The first `k<number>` of the path selects the body, which is sent in the given pieces, one HTTP chunk each. The server
does not depend on dialects, and ignores the content of requests.
"""

from __future__ import annotations

import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = re.compile(r"\bk\d+\b")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        found = KEY.search(self.path)
        assert found is not None, self.path
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in self.server.bodies[found.group()]:
            if piece:  # an empty chunk would end the body
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    bodies: dict[str, list[bytes]]

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that has read enough may disconnect
            super().handle_error(request, client_address)


class Loopback:
    """A server that runs until `close`."""

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.bodies = {}
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        self._count = 0
        self.origin = f"http://127.0.0.1:{self._server.server_port}"

    def put(self, pieces: list[bytes]) -> str:
        """Store a body, and return the key by which it is served until `drop`."""
        self._count += 1
        self._server.bodies[f"k{self._count}"] = pieces
        return f"k{self._count}"

    def drop(self, key: str) -> None:
        del self._server.bodies[key]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


@pytest.fixture(scope="session")
def loopback() -> Iterator[Loopback]:
    """The server of this session (one per worker)."""
    server = Loopback()
    yield server
    server.close()
