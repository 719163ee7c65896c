"""JSON values of native events are built once, when they are first read, and equal those of the pure backend."""

from __future__ import annotations

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from streamweld import _json, events
from streamweld._backend import load
from streamweld._extension import extension
from streamweld.options import to_config

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(extension() is None, reason="the pure backend builds values at once")

LOGPROBS = b'{"content":[{"token":"Hi","logprob":-0.5}]}'
BODY = (
    b'data: {"id":"c1","model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":"Hi"},'
    b'"logprobs":' + LOGPROBS + b"}]}\n\n"
    b'data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":"!"},"logprobs":' + LOGPROBS + b"}]}\n\n"
    b'data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}\n\n'
    b"data: [DONE]\n\n"
)
WITH_VALUES = ("response_started", "text_delta", "usage")


def read(backend: Any = "native") -> dict[str, Any]:
    """Return the events of the body, by type."""
    parser = load(backend)("chat", to_config())
    return {event.type: event for event in [*parser.feed(BODY), *parser.close()]}


def value_of(event: Any) -> Any:
    return event.raw if event.type == "usage" else event.provider_metadata


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the JSON texts that are parsed."""
    texts: list[str] = []
    original: Callable[[str], Any] = _json._fast or json.loads

    def spy(text: str) -> Any:
        texts.append(text)
        return original(text)

    monkeypatch.setattr(_json, "_fast", spy)
    return texts


def test_nothing_is_built_before_it_is_read(loaded: list[str]) -> None:
    found = read()
    assert loaded == []
    assert found["text_delta"].text == "!"
    assert found["usage"].input_tokens == 3
    assert loaded == []


def test_a_value_is_built_once(loaded: list[str]) -> None:
    for name in WITH_VALUES:
        event = read()[name]
        value = value_of(event)
        assert value_of(event) is value
        value["mark"] = 1
        assert value_of(event)["mark"] == 1
    assert len(loaded) == len(WITH_VALUES)


def test_values_equal_those_of_the_pure_backend() -> None:
    native, pure = read(), read("pure")
    assert value_of(native["text_delta"]) == {"logprobs": {"content": [{"token": "Hi", "logprob": -0.5}]}}
    assert value_of(native["usage"]) == {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    assert value_of(native["response_started"])["system_fingerprint"] == "fp_1"
    assert native == pure
    assert [event.to_dict() for event in read().values()] == [event.to_dict() for event in pure.values()]
    assert [repr(event) for event in read().values()] == [repr(event) for event in pure.values()]


@pytest.mark.parametrize("name", WITH_VALUES)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda event: pickle.loads(pickle.dumps(event))])
def test_an_unread_event_can_be_copied(name: str, copied: Callable[[Any], Any]) -> None:
    event = read()[name]
    twin = copied(event)
    assert twin == event
    assert value_of(twin) == value_of(read("pure")[name])


@pytest.mark.parametrize("name", WITH_VALUES)
def test_threads_that_read_at_once_get_one_object(name: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        for _ in range(50):
            event = read()[name]
            first, *others = pool.map(value_of, [event] * 4)
            assert all(other is first for other in others)


def test_what_a_constructor_is_given_is_kept() -> None:
    metadata = {"a": 1}
    for event in (events.TextDelta(0, "x", 0, metadata), events.TextStarted(0, None, 0, metadata)):
        assert event.provider_metadata is metadata
    assert events.TextDelta(0, "x").provider_metadata is None
    assert events.TextDone(0, "x").annotations == ()
    with pytest.raises(TypeError):
        events.TextDone(0, "x", ["not a tuple"])  # type: ignore[arg-type]
