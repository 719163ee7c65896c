"""Payloads validated with the vendors' own types and validators: OpenAI, Anthropic, Google, Mistral.

The packages' models lack some values that the servers accept. Values that a server sent but for which its own package
has no parameter are listed and excluded here.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import pydantic
import pytest
from streamweld.history import HistoryPolicy, check, convert, profiles

from tests.conftest import FULL
from tests.history.test_corpus import answers, history
from tests.support.corpus import FOLDERS, absent
from tests.support.generate.history import DIALECTS, Maker, payload_of

if TYPE_CHECKING:
    from collections.abc import Iterator

KEEP = HistoryPolicy(on_unfixable="keep")
SEEDS = range(200 if FULL else 60)
BROKEN = pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])


@cache
def model(target: str) -> Any:
    """Return the model of one message of the target."""
    if target == "openai-chat":
        from openai.types.chat import ChatCompletionMessageParam as Param
    elif target == "responses":
        from openai.types.responses import ResponseInputItemParam as Param
    elif target == "anthropic":
        from anthropic.types.beta import BetaMessageParam as Param
    else:
        from google.genai.types import Content as Param
    return pydantic.TypeAdapter(Param)


def payloads(target: str, *, broken: bool, gateway: Any = None) -> Iterator[tuple[int, str, Any]]:
    for seed in SEEDS:
        script = Maker(seed, broken=broken).script(1 + seed % 6)
        for dialect in DIALECTS if script else ():
            given = payload_of(script, dialect)
            made = convert(given, source=dialect, target=target, gateway=gateway, policy=KEEP)
            yield seed, dialect, made.payload


MEMBERS = {"openai-chat": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents"}


@BROKEN
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
    """Add `detail` to images: OpenAI's own examples omit it, but its package requires it."""
    if isinstance(message, list):
        return [with_details(inner) for inner in message]
    if isinstance(message, dict):
        inner = {name: with_details(value) for name, value in message.items()}
        return {"detail": "auto", **inner} if inner.get("type") == "input_image" else inner
    return message


def unfit(adapter: Any, message: Any) -> list[str]:
    """Return why a message does not match the model.

    Iterators that pydantic creates from lists are read to their end.
    """
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


# Values that a server sent but for which its own package (or OpenAI's, for another server) has no parameter, and values
# specific to the recorded history (the outputs of two tools).
BEYOND = {
    ("image_generation_call", "xai"),  # its item has no id
    ("web_search_call", "openai"),  # its source is not a URL
    ("message", "xai__ai-xai-x-search-tool.sse"),  # its citation has no position in the text
    ("apply_patch_call_output", "openai"),
    ("tool_search_output", "openai"),
    ("model", "google-gemini__prism-stream-with-tools-1.sse"),  # its signature is not base64
}


def as_replayed(item: Any) -> Any:
    """Add the members that OpenAI's package requires in an assistant message with blocks, but its server does not: the
    id, the status and the annotations. The server's only message about such blocks is "Supported values are:
    'output_text' and 'refusal'" (rust-genai 119, openai-python 3544).
    """
    if item.get("type") != "message" or item["role"] != "assistant" or isinstance(item["content"], str):
        return item
    blocks = [{"annotations": [], **block} if block["type"] == "output_text" else block for block in item["content"]]
    return {"id": "msg_1", "status": "completed", **item, "content": blocks}


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
@pytest.mark.parametrize("target", list(MEMBERS))
@pytest.mark.parametrize("folder", FOLDERS)
def test_recorded_answers_are_what_the_models_say(folder: str, target: str) -> None:
    seen = 0
    for name, response in answers(folder):
        messages, source = history(response, target)
        made = convert(messages, source=source, target=target)
        for message in made.payload[MEMBERS[target]]:
            kind = message.get("type") or message["role"]
            if (kind, name.partition("__")[0]) in BEYOND or (kind, name) in BEYOND:
                continue
            faults = unfit(model(target), as_replayed(with_details(message)))
            assert not faults, (name, message, faults)
            seen += 1
    assert seen > 2 * len(answers(folder))


@cache
def mistral(tokenizer: str) -> Any:
    """Validate a complete request with the validator that Mistral's own servers and vLLM use first."""
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
    from mistral_common.tokens.tokenizers.base import TokenizerVersion

    validator = get_validator(TokenizerVersion(tokenizer), ValidationMode.serving)

    def validate(messages: list[Any]) -> None:
        validator.validate_request(ChatCompletionRequest(model="m", messages=messages))

    return validate


def with_texts(messages: list[Any]) -> list[Any]:
    """Replace the thinking chunks of the hosted API with their text, as the package requires."""
    out = copy.deepcopy(messages)
    for message in out:
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block["type"] == "thinking":
                assert all(chunk["type"] == "text" for chunk in block["thinking"])
                block["thinking"] = "".join(chunk["text"] for chunk in block["thinking"])
    return out


@BROKEN
@pytest.mark.parametrize("tokenizer", ["v3", "v7", "v11", "v13", "v15"])
def test_what_is_written_passes_the_validator_of_mistral(tokenizer: str, broken: bool) -> None:
    profile = profiles.load("mistral", "mistral").with_options(tokenizer=tokenizer)
    seen = 0
    for seed, dialect, payload in payloads("mistral", broken=broken, gateway=profile):
        if any(message["role"] != "system" for message in payload["messages"]):
            mistral(tokenizer)(with_texts(payload["messages"]))
            seen += 1
        else:  # there is no user message, which no edit can fix
            assert {found.rule for found in check(payload, target="mistral", gateway=profile)}, (seed, dialect)
    assert seen > 5 * len(SEEDS)


@pytest.mark.parametrize("tokenizer", ["v3", "v15"])
def test_the_validator_of_mistral_tells_right_from_wrong(tokenizer: str) -> None:
    from mistral_common.exceptions import MistralCommonException

    requested = {"role": "user", "content": "hi"}
    mistral(tokenizer)([requested])
    call = {"id": "null", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    unanswered = {"role": "assistant", "tool_calls": [call]}
    for wrong in ([], [requested, {"role": "assistant", "content": "x"}], [requested, unanswered, requested]):
        with pytest.raises(MistralCommonException):
            mistral(tokenizer)(wrong)


@BROKEN
def test_what_is_written_for_vllm_is_what_it_validates(broken: bool) -> None:
    """vLLM accepts exactly the items for which openai-python has a parameter, so no members are added here."""
    seen = 0
    for seed, dialect, made in payloads("responses", broken=broken, gateway="vllm-responses"):
        for item in made["input"]:
            faults = unfit(model("responses"), with_details(item))
            assert not faults, (seed, dialect, item, faults)
            seen += 1
    assert seen > 500
