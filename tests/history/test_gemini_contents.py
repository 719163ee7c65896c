"""The forms of `contents` and `system_instruction` that google-genai accepts. Its own transformers are the judge."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import _transformers as google
from google.genai import types
from streamweld import history, requests
from streamweld.errors import HistoryError

KEEP = history.HistoryPolicy(on_unfixable="keep")
IMAGE: Any = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
CALL: Any = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2lnbmVk"}
RESULT: Any = {"functionResponse": {"name": "f", "response": {"a": 1}}}
SAID: Any = {"role": "model", "parts": [{"text": "m"}]}

CONTENTS: Any = {
    "a text and a part": ["look", IMAGE],
    "texts": ["a", "b"],
    "parts": [{"text": "a"}, IMAGE],
    "a part": {"text": "a"},
    "a content": {"role": "user", "parts": [{"text": "a"}]},
    "a list of parts": [[{"text": "a"}, IMAGE]],
    "calls and results": ["q", CALL, RESULT, "thanks"],
    "contents, parts and lists": [{"role": "user", "parts": [{"text": "a"}]}, "b", [IMAGE, "c"], SAID, "d"],
    "a file": [{"fileUri": "https://example.com/y.png", "mimeType": "image/png"}, "x"],
    "objects": [types.Part(text="a"), "b"],
    "an object": types.Part(text="a"),
    "a content object": types.Content(role="user", parts=[types.Part(text="z")]),
    "a list of objects": [[types.Part(text="a"), types.Part(text="b")]],
    "subclasses": [types.UserContent(parts=["a"]), types.ModelContent(parts=["b"]), "c"],
}


def dumped(content: Any) -> Any:
    return types.Content.model_validate(content).model_dump(exclude_none=True, by_alias=True, mode="json")


@pytest.mark.parametrize("name", CONTENTS)
def test_contents_are_grouped_as_the_sdk_groups_them(name: str) -> None:
    given = CONTENTS[name]
    expected = [dumped(content) for content in google.t_contents(given)]
    for made in (
        history.convert({"contents": given}, source="gemini", target="gemini", policy=KEEP),
        history.convert({"contents": given}, target="gemini", policy=KEEP),
        requests.convert({"contents": given}, target="gemini"),
    ):
        assert [dumped(content) for content in made.payload["contents"]] == expected
        assert made.losses == ()


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("target", ["openai-chat", "anthropic", "responses"])
def test_grouped_contents_are_converted_as_contents(name: str, target: Any) -> None:
    grouped = {"contents": [dumped(content) for content in google.t_contents(CONTENTS[name])]}
    expected = requests.convert(grouped, source="gemini", target=target)
    made = requests.convert({"contents": CONTENTS[name]}, source="gemini", target=target)
    assert json.dumps(made.payload) == json.dumps(expected.payload)
    assert [loss.feature for loss in made.losses] == [loss.feature for loss in expected.losses]


def test_a_list_of_contents_is_not_touched() -> None:
    given: Any = {"contents": [{"role": "user", "parts": [{"text": "a"}]}, SAID, {"parts": [{"text": "b"}]}]}
    assert history.convert(given, target="gemini").payload is given


def test_paths_are_those_of_the_caller() -> None:
    given: Any = {"contents": ["q", [{"text": "a"}, {"codeExecutionResult": {"output": "o"}}], SAID, {"foo": 1}]}
    done = requests.convert(given, source="gemini", target="openai-chat", policy=KEEP)
    assert [loss.path for loss in done.losses] == ["/contents/1/1", "/contents/3"]
    edits = [edit.path for edit in requests.convert(given, target="gemini", policy=KEEP).edits]
    assert edits == ["/contents/0", "/contents/1/0", "/contents/3"]
    with pytest.raises(HistoryError) as caught:
        history.convert(["q", {"functionResponse": {"name": 5}}], source="gemini", target="openai-chat")
    assert caught.value.path.startswith("/1")


@pytest.mark.parametrize(
    ("system", "texts"),
    [
        ("be brief", ["be brief"]),
        ({"text": "be brief"}, ["be brief"]),
        (["a", "b"], ["a", "b"]),
        ([{"text": "a"}, "b"], ["a", "b"]),
        (types.Part(text="a"), ["a"]),
        (types.Content(parts=[types.Part(text="a")]), ["a"]),
        ({"parts": [{"text": "a"}]}, ["a"]),
    ],
)
def test_system_instructions(system: Any, texts: list[str]) -> None:
    judge = google.t_content(system)
    assert [part.text for part in judge.parts or ()] == texts
    for request in ({"contents": "q", "config": {"system_instruction": system}}, {"systemInstruction": system}):
        done = requests.convert({"contents": "q", **request}, source="gemini", target="anthropic")
        found = done.payload["system"]
        assert ([found] if isinstance(found, str) else [block["text"] for block in found]) == texts
        assert done.losses == ()
    same = requests.convert({"contents": "q", "systemInstruction": system}, source="gemini", target="gemini")
    assert [part["text"] for part in same.payload["systemInstruction"]["parts"]] == texts
    again = requests.convert(same.payload, source="gemini", target="gemini")
    assert again.payload is same.payload
