"""`streamweld proxy`: run a server in front of one gateway. The proxy itself is in `streamweld.integrations.proxy`."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, cast, get_args

import click

from streamweld._spec import Base
from streamweld.cli.console import UNREADABLE
from streamweld.cli.names import DialectChoice
from streamweld.cli.settings import CONFIG, option
from streamweld.integrations.otel import exports_spans
from streamweld.integrations.proxy import ProxyConfig, logs, serve
from streamweld.integrations.proxy.access import LOGGER
from streamweld.integrations.proxy.config import PROXY_DIALECTS
from streamweld.integrations.proxy.logs import FORMATS, LEVELS
from streamweld.integrations.proxy.signals import end_at_once
from streamweld.options import TextCalls

if TYPE_CHECKING:
    from streamweld.integrations.proxy.config import ProxyDialect
    from streamweld.integrations.proxy.logs import Format, Level

__all__ = ["proxy"]


class _Port(click.IntRange):
    name = "port number"


@click.command(short_help="Serve a proxy for one gateway that repairs and converts streams.")
@CONFIG
@option(
    "--upstream", required=True, metavar="URL", help="The address of the gateway. The proxy contacts no other server."
)
@option(
    "--upstream-dialect",
    "--to",
    "to",
    type=DialectChoice(PROXY_DIALECTS),
    help="The dialect of the gateway. Requests in another of these dialects are converted to the gateway's dialect, "
    "and the responses are converted back. Without this option, nothing is converted. --to is a short form of it.",
)
@option(
    "--policy",
    type=click.Choice(get_args(Base)),
    default="standard",
    show_default=True,
    help="What to do about a fault: strict ends the stream with an error at every repair, salvage continues.",
)
@option(
    "--text-calls",
    type=click.Choice(get_args(TextCalls)),
    default=None,
    show_default="off",
    help="What to do with tool calls that a model wrote into its text; see docs/guides/text-calls.md first.",
)
@option(
    "--text-call-families",
    multiple=True,
    metavar="NAME",
    help="Recognize only this form of text calls; docs/guides/text-calls.md lists them by model. May be repeated. "
    "Needs --text-calls.",
)
@option(
    "--gateway",
    metavar="NAME",
    help="The gateway's profile, from the list that `streamweld history profiles` prints. Requests are converted to "
    "what the gateway accepts, even if they are already in the gateway's dialect. Needs --upstream-dialect.",
)
@option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. An address that other machines can reach needs --token.",
)
@option(
    "--port",
    type=_Port(0, 65_535),
    default=8787,
    show_default=True,
    help="The port to listen on; 0 selects a free one.",
)
@option(
    "--token",
    help="A token that clients must send, as their API key or as x-streamweld-token. Set the token in the environment, "
    "where other users of the machine cannot see it.",
)
@option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="A host name that clients may use, in addition to localhost and the address of --host; may be repeated.",
)
@option(
    "--allow-origin",
    "allow_origins",
    multiple=True,
    metavar="ORIGIN",
    help="The origin of web pages that may use the proxy, such as http://localhost:3000; may be repeated. Other "
    "origins are rejected.",
)
@option(
    "--grace",
    type=click.IntRange(0),
    default=300,
    show_default=True,
    help="Seconds that open streams have after SIGTERM or SIGINT before they end with an error. A second signal ends "
    "these streams at once.",
)
@option(
    "--connect-timeout",
    type=float,
    default=ProxyConfig.connect_timeout,
    show_default=True,
    help="Seconds to connect to the gateway.",
)
@option(
    "--idle-timeout",
    type=float,
    default=ProxyConfig.idle_timeout,
    show_default=True,
    help="Seconds that the gateway may be silent.",
)
@option(
    "--event-timeout",
    type=float,
    default=ProxyConfig.event_timeout,
    show_default=True,
    help="Seconds without an event after which a stream ends, even if the gateway sends other bytes.",
)
@option(
    "--client-timeout",
    type=float,
    default=ProxyConfig.client_timeout,
    show_default=True,
    help="Seconds that a client may stall before it is dropped.",
)
@option(
    "--max-body-bytes",
    type=int,
    default=ProxyConfig.max_body_bytes,
    show_default=True,
    help="Maximum size of a request, and of a response that is not streamed.",
)
@option(
    "--max-stream-bytes",
    type=int,
    default=ProxyConfig.max_stream_bytes,
    show_default=True,
    help="Maximum size of a streamed response, after decompression.",
)
@option(
    "--record",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Record each stream of the gateway in this folder: its bytes and their arrival times, without credentials.",
)
@option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="The format of the log on standard error: one line of text or one JSON object for each request.",
)
@option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    help="The lowest level of records to log: debug adds each diagnostic, which may contain model output; warning "
    "omits the lines for requests.",
)
@option(
    "--otel",
    is_flag=True,
    help="Create a span for each request (extra `otel`). An SDK exports the spans: opentelemetry-instrument "
    "streamweld proxy …",
)
def proxy(
    upstream: str,
    to: str | None,
    policy: str,
    text_calls: str | None,
    text_call_families: tuple[str, ...],
    gateway: str | None,
    host: str,
    port: int,
    token: str | None,
    allow_hosts: tuple[str, ...],
    allow_origins: tuple[str, ...],
    grace: int,
    connect_timeout: float,
    idle_timeout: float,
    event_timeout: float,
    client_timeout: float,
    max_body_bytes: int,
    max_stream_bytes: int,
    record: str | None,
    log_format: Format,
    log_level: Level,
    otel: bool,
) -> None:
    """Repair the streams of the gateway at URL for clients of any official SDK.

    Set the base URL of the clients to the address of this server. The clients' credentials are passed to the gateway,
    and are neither stored nor logged. /metrics provides counters for Prometheus, /healthz reports that the server is
    running, and the access log is written to standard error.

    Each option can also be set by an environment variable or in the --config file. The command line takes precedence
    over the environment, and the environment over the file. This command requires the extra `proxy`: pip install
    'streamweld[cli,proxy]'.
    """
    config = ProxyConfig(
        upstream,
        to=cast("ProxyDialect | None", to),
        policy=cast("Base", policy),
        text_calls=cast("TextCalls | None", text_calls),
        text_call_families=text_call_families,
        gateway=gateway,
        connect_timeout=connect_timeout,
        idle_timeout=idle_timeout,
        event_timeout=event_timeout,
        client_timeout=client_timeout,
        max_body_bytes=max_body_bytes,
        max_stream_bytes=max_stream_bytes,
        record=record,
        tracing=otel,
        token=token,
        allow_hosts=allow_hosts,
        allow_origins=allow_origins,
    )
    logs.configure(log_format, log_level)

    def ready(address: str) -> None:
        if otel and not exports_spans():
            LOGGER.warning(
                "--otel: no OpenTelemetry SDK is set up, so no span is exported; start the proxy with "
                "opentelemetry-instrument"
            )
        if log_format == "json":
            LOGGER.info("listening", extra={"facts": {"address": address, "upstream": upstream}})
        else:
            click.echo(f"streamweld: {address} -> {upstream}", err=True)

    signal.signal(signal.SIGTERM, _end)
    try:
        serve(config, host, port, grace=grace, ready=ready)
    except OSError as error:
        click.echo(f"streamweld: {host}:{port}: {error.strerror or error}", err=True)
        sys.exit(UNREADABLE)
    except KeyboardInterrupt:  # the server raises this signal again after it has stopped
        _end(signal.SIGINT, None)


def _end(number: int, _: object) -> None:
    """Exit normally after SIGINT or SIGTERM, so that exit handlers run (for example, to send spans).

    Exit handlers may take a long time, so another signal ends the process immediately. After the server has stopped, it
    raises the first signal again, and this handler is called.
    """
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end_at_once)
    sys.exit(128 + number)
