"""Preload the modules of backends and converters, so that the first requests do not have to import them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from streamweld.convert import StreamConverter
from streamweld.integrations.proxy import routes
from streamweld.integrations.proxy.config import PROXY_DIALECTS
from streamweld.integrations.proxy.prepare import prepared
from streamweld.integrations.proxy.unstreamed import converted

if TYPE_CHECKING:
    from streamweld.integrations.proxy.config import ProxyConfig, ProxyDialect

__all__ = ["warm_up"]

_MESSAGES: Final = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"?"}]}'
_ASK: Final = {
    "chat": _MESSAGES,
    "anthropic": _MESSAGES,
    "responses": b'{"model":"m","input":"?"}',
    "gemini": b'{"contents":[{"role":"user","parts":[{"text":"?"}]}]}',
}
_TEXT: Final = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%b]}\n\n'
_CHAT: Final = (
    _TEXT % b'{"index":0,"delta":{"role":"assistant","content":"a"}}'
    + _TEXT % b'{"index":0,"delta":{},"finish_reason":"stop"}'
    + b"data: [DONE]\n\n"
)


def warm_up(config: ProxyConfig) -> None:
    """Convert a small request and a small response of each kind that a proxy with this configuration may need."""
    given_value: dict[str, bytes] = {"chat": _CHAT}
    for dialect in PROXY_DIALECTS[1:]:
        converter = StreamConverter(source="chat", target=cast("ProxyDialect", dialect))
        given_value[dialect] = converter.feed(_CHAT) + converter.close()
    for dialect in PROXY_DIALECTS:
        repairer = StreamConverter(source=cast("ProxyDialect", dialect), target="same")
        repairer.feed(given_value[dialect])
        repairer.close()
        prepared(_ASK[dialect], dialect, routes.path_of(dialect, "m", stream=False)[0], "", config)
        if config.to is not None and dialect != config.to:
            target = cast("ProxyDialect", dialect)
            converted(StreamConverter(source=config.to, target=target), given_value[config.to], dialect)
