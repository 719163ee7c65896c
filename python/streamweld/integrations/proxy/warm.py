"""Preload modules that the first requests would otherwise import: those of backends and converters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from streamweld.convert import StreamConverter
from streamweld.integrations.proxy import routes
from streamweld.integrations.proxy.config import SPEAKS
from streamweld.integrations.proxy.prepare import prepared
from streamweld.integrations.proxy.whole import converted

if TYPE_CHECKING:
    from streamweld.integrations.proxy.config import ProxyConfig, Speaks

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
    """Convert a small request and a small answer of each kind that a proxy with this configuration may have to
    convert."""
    said: dict[str, bytes] = {"chat": _CHAT}
    for dialect in SPEAKS[1:]:
        converter = StreamConverter(source="chat", target=cast("Speaks", dialect))
        said[dialect] = converter.feed(_CHAT) + converter.close()
    for dialect in SPEAKS:
        repairer = StreamConverter(source=cast("Speaks", dialect), target="same")
        repairer.feed(said[dialect])
        repairer.close()
        prepared(_ASK[dialect], dialect, routes.path_of(dialect, "m", stream=False)[0], "", config)
        if config.to is not None and dialect != config.to:
            target = cast("Speaks", dialect)
            converted(StreamConverter(source=config.to, target=target), said[config.to], dialect)
