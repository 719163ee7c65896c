"""Idle connections of the proxy: which side closes first. A POST that is sent while the other side closes the
connection is lost, and is not sent again.
"""

from __future__ import annotations

import http.client
import json
import time
from urllib.parse import urlsplit

from tests.integrations.dropin.server import Answer, Gateway
from tests.proxy.test_proxy import CHAT, command
from tests.support.servers.wire import DONE, chunk, text

# uvicorn and Node close idle connections after 5 seconds, so an upstream may do so, but the proxy must not.
IDLE = 6.0


def test_what_was_idle_is_no_more_used_upstream_and_still_open_downstream() -> None:
    gateway = Gateway({"v1": Answer([text("Hi"), chunk({}, "stop"), DONE])})
    with gateway, command("--upstream", gateway.url("v1")) as (_, url, _):
        connection = http.client.HTTPConnection(urlsplit(url).netloc)
        connection.connect()
        connection.auto_open = 0  # one connection, or an error
        reused = []
        for idle in (0, 0, IDLE):
            time.sleep(idle)
            connection.request("POST", "/v1/chat/completions", json.dumps(CHAT), {"content-type": "application/json"})
            answer = connection.getresponse()
            assert answer.status == 200
            assert answer.read().endswith(DONE)
            reused.append(gateway.connections)
        connection.close()
    assert reused == [1, 1, 2]
