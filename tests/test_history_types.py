"""Payloads against the official typed models of OpenAI and Anthropic (the extra `bench`), and Gemini's where it is.

The models know less than the servers take back: what a server said that its own package has no parameter for is left
out here by name.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from streamweld.history import HistoryPolicy, convert

from tests.generate_history import DIALECTS, Maker, told

if TYPE_CHECKING:
    from collections.abc import Iterator

pydantic = pytest.importorskip("pydantic", reason="the typed models come with the extra bench")
openai = pytest.importorskip("openai", reason="the typed models come with the extra bench")
anthropic = pytest.importorskip("anthropic", reason="the typed models come with the extra bench")

KEEP = HistoryPolicy(on_unfixable="keep")


@cache
def model(target: str) -> Any:
    """What one message of the target must be."""
    if target == "openai-chat":
        from openai.types.chat import ChatCompletionMessageParam as Param
    elif target == "responses":
        from openai.types.responses import ResponseInputItemParam as Param
    else:
        from anthropic.types.beta import BetaMessageParam as Param
    return pydantic.TypeAdapter(Param)


def payloads(target: str, *, broken: bool) -> Iterator[tuple[int, str, Any]]:
    for seed in range(60):
        script = Maker(seed, broken=broken).script(1 + seed % 6)
        for dialect in DIALECTS if script else ():
            yield seed, dialect, convert(told(script, dialect), source=dialect, target=target, policy=KEEP).payload


@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
def test_what_is_written_for_gemini(broken: bool) -> None:
    types = pytest.importorskip("google.genai.types", reason="google-genai is in no extra")
    for seed, dialect, payload in payloads("gemini", broken=broken):
        for content in payload["contents"]:
            assert types.Content.model_validate(content), (seed, dialect, content)


MEMBERS = {"openai-chat": "messages", "responses": "input", "anthropic": "messages"}


@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
@pytest.mark.parametrize("target", list(MEMBERS))
def test_what_is_written_is_what_the_models_say(target: str, broken: bool) -> None:
    seen = 0
    for seed, dialect, made in payloads(target, broken=broken):
        for message in made[MEMBERS[target]]:
            faults = unfit(model(target), with_details(message))
            assert not faults, (seed, dialect, message, faults)
            seen += 1
    assert seen > 500


def with_details(message: Any) -> Any:
    """OpenAI's own examples leave out `detail` of an image, which its package has as required."""
    if isinstance(message, list):
        return [with_details(inner) for inner in message]
    if isinstance(message, dict):
        inner = {name: with_details(value) for name, value in message.items()}
        return {"detail": "auto", **inner} if inner.get("type") == "input_image" else inner
    return message


def unfit(adapter: Any, message: Any) -> list[str]:
    """Why a message is none of the model; iterators that pydantic makes of lists are read to their end."""
    try:
        consumed(adapter.validate_python(message))
    except pydantic.ValidationError as fault:
        return [f"{error['loc']}: {error['msg']}" for error in fault.errors()]
    return []


def consumed(value: Any) -> None:
    if isinstance(value, dict):
        for inner in value.values():
            consumed(inner)
    elif hasattr(value, "__iter__") and not isinstance(value, str | bytes):
        for inner in value:
            consumed(inner)
