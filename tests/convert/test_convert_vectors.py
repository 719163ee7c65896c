"""Every conversion vector, compared byte for byte: with both backends, fed at once, byte by byte, and split in two at
any place.
"""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
import streamweld as sw
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter
from streamweld._pure.encode.common.losses import LOSSES
from streamweld._spec import DIALECTS, load_conversions

from tests.conftest import FULL
from tests.support.backends import using
from tests.support.harness import bytewise, policy_of
from tests.support.vector_files import chunks_of, is_broken, label, load

VECTORS = load("convert")
SHARE = 13  # test one in this many splits, unless all are tried
# Vectors of content that OpenAI has its own types for.
TYPED = ("logprobs_", "page_within_", "cited_", "search", "failed_search", "image", "transcript_")


def compact(value: Any) -> str:
    made = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return made.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def filled(value: Any, resource: dict[str, Any]) -> Any:
    """Return the body with `$resource` filled in."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if "$resource" in members:
            changed = members["$resource"]
            assert changed.keys() <= resource.keys()
            return {**resource, **filled(changed, resource)}
        return {key: filled(member, resource) for key, member in members.items()}
    if isinstance(value, list):
        return [filled(member, resource) for member in cast("list[Any]", value)]
    return value


def expected(vector: dict[str, Any]) -> list[str]:
    frames = []
    for frame in vector["expect"]["frames"]:
        if frame == "[DONE]":
            frames.append("data: [DONE]")
            continue
        name, body = frame
        text = body if isinstance(body, str) else compact(filled(body, vector.get("resource", {})))
        frames.append(f"data: {text}" if name is None else f"event: {name}\ndata: {text}")
    return frames


def convert(vector: dict[str, Any], pieces: list[bytes]) -> tuple[bytes, list[tuple[str, int]], str | None]:
    options = {"seed": "vec", **policy_of(vector.get("options", {}))}
    converter = sw.StreamConverter(source=vector["source"], target=vector["target"], **options)
    made = b"".join([converter.feed(piece) for piece in pieces])
    made += converter.close(broken=True) if is_broken(vector) else converter.close()
    assert converter.close() == b""
    losses = [(d.detail, d.event_ordinal) for d in converter.diagnostics if d.code == "not_carried"]
    return made, losses, None if converter.error is None else type(converter.error).__name__


@pytest.mark.parametrize("vector", VECTORS, ids=label)
def test_whole(backend: str, vector: dict[str, Any]) -> None:
    with using(backend):
        made, losses, error = convert(vector, [b"".join(chunks_of(vector))])
    assert made.decode().split("\n\n")[:-1] == expected(vector)
    assert [loss for loss, _ in losses] == vector["expect"]["losses"]
    ordinals = [ordinal for _, ordinal in losses]
    assert ordinals == vector["expect"].get("ordinals", ordinals)
    assert error == vector["expect"]["error"]


@pytest.mark.parametrize("vector", VECTORS, ids=label)
def test_any_pieces(backend: str, vector: dict[str, Any]) -> None:
    body = b"".join(chunks_of(vector))
    with using(backend):
        whole = convert(vector, [body])
        assert convert(vector, chunks_of(vector)) == whole
        assert convert(vector, bytewise(body)) == whole
        for place in range(1, len(body), 1 if FULL and backend == "native" else SHARE):
            assert convert(vector, [body[:place], body[place:]]) == whole, place


@pytest.mark.parametrize(
    "vector",
    [v for v in VECTORS if v["name"].startswith(TYPED) and v["target"] in ("chat", "responses")],
    ids=label,
)
def test_openai_has_a_type_for_every_event(vector: dict[str, Any]) -> None:
    any_event = TypeAdapter[Any](ChatCompletionChunk if vector["target"] == "chat" else ResponseStreamEvent)
    bodies = [frame[1] for frame in vector["expect"]["frames"] if frame != "[DONE]"]
    # The response object is the one of OpenResponses, which differs from OpenAI's in its defaults.
    for body in [body for body in bodies if "response" not in body]:
        any_event.validate_python(body)


def test_every_loss_is_listed_and_some_vector_has_it() -> None:
    rows = {row["id"]: frozenset(row["targets"]) for row in load_conversions()["losses"]}
    assert rows.keys() == LOSSES
    output_text = {(loss, vector["target"]) for vector in VECTORS for loss in vector["expect"]["losses"]}
    assert {(loss, target) for loss, target in output_text if target not in rows[loss]} == set()
    assert {loss for loss, _ in output_text} == LOSSES
    shown = {(loss, target) for loss, targets in rows.items() for target in targets & {"chat", "responses", "gemini"}}
    assert shown <= output_text


def test_every_provider_item_is_a_loss_of_its_own() -> None:
    rows = {row["id"]: frozenset(row["targets"]) for row in load_conversions()["losses"]}
    for name in rows["unknown"]:
        for kind in DIALECTS[name].get("provider_items", ()):
            assert rows[kind] >= rows["unknown"] - {name}
