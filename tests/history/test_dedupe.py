"""Report 004: reasoning items of a replayed stream, deduplicated per message and across messages.

The cases "per message" and "across messages" are the tests of the code that the report changes, with their original
names.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from streamweld.errors import UsageError
from streamweld.history.dedupe import dedupe_reasoning

if TYPE_CHECKING:
    from streamweld.history.edits import Edit

STEP = {"type": "step-start"}


def text(said: str = "answer", item: str | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "text", "text": said}
    return made if item is None else made | {"providerMetadata": {"openai": {"itemId": item}}}


def thought(said: str, item: str | None = None, provider: str = "openai", **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "reasoning", "text": said}
    if item is not None:
        made["providerMetadata"] = {provider: {"itemId": item, **more}}
    return made


def ui(*parts: dict[str, Any], role: str = "assistant", name: str = "m") -> dict[str, Any]:
    return {"id": name, "role": role, "parts": list(parts)}


def model(*parts: dict[str, Any], role: str = "assistant") -> dict[str, Any]:
    """Return the message as a ModelMessage."""
    made = []
    for part in parts:
        options = part.get("providerMetadata")
        plain = {name: value for name, value in part.items() if name != "providerMetadata"}
        made.append(plain if options is None else plain | {"providerOptions": options})
    return {"role": role, "content": made}


USER = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}


def deduped(messages: list[Any], **options: Any) -> list[Any]:
    """Return the result. Check that the input is unchanged, and that a second pass does not find anything."""
    before = copy.deepcopy(messages)
    edits: list[Edit] = []
    result = dedupe_reasoning(messages, on_edit=edits.append, **options)
    assert messages == before
    assert (result is messages) == (not edits)
    assert all(edit.why and edit.path for edit in edits)
    assert dedupe_reasoning(result, **options) is result
    return result


def as_models(messages: list[Any]) -> list[Any]:
    return [model(*[p for p in m["parts"] if p["type"] != "step-start"], role=m["role"]) for m in messages]


class TestDedupeMessageReasoning:
    """Within one message: a repeated id and text."""

    def test_returns_the_same_message_when_there_are_no_reasoning_parts(self) -> None:
        messages = [ui(text("hello"))]
        assert deduped(messages) is messages

    def test_returns_the_same_message_when_reasoning_parts_have_no_item_id(self) -> None:
        messages = [ui(thought("thinking..."), thought("more thinking..."))]
        assert deduped(messages) is messages

    def test_returns_the_same_message_when_all_item_ids_differ(self) -> None:
        messages = [ui(thought("1", "rs_abc"), thought("2", "rs_def"))]
        assert deduped(messages) is messages

    def test_keeps_several_summaries_of_one_item(self) -> None:
        messages = [ui(thought("summary part 0", "rs_abc"), thought("summary part 1", "rs_abc"), text())]
        assert deduped(messages) is messages
        assert len(messages[0]["parts"]) == 3

    def test_removes_a_repeated_reasoning_part(self) -> None:
        messages = [ui(STEP, thought("x", "rs_abc"), text(), thought("x", "rs_abc"))]
        assert deduped(messages) == [ui(STEP, thought("x", "rs_abc"), text())]

    def test_removes_several_repeats(self) -> None:
        a, b = thought("A", "rs_abc"), thought("B", "rs_def")
        assert deduped([ui(a, b, a, b, text())]) == [ui(a, b, text())]

    def test_keeps_identical_text_parts(self) -> None:
        t, said = thought("t", "rs_abc"), text("T1")
        assert deduped([ui(STEP, t, said, t, said)]) == [ui(STEP, t, said, said)]

    def test_azure(self) -> None:
        t = thought("t", "rs_abc", "azure")
        assert deduped([ui(t, t, text())]) == [ui(t, text())]

    def test_does_not_change_the_original(self) -> None:
        messages = [ui(thought("t", "rs_abc"), thought("t", "rs_abc"))]
        assert deduped(messages) == [ui(thought("t", "rs_abc"))]
        assert len(messages[0]["parts"]) == 2


class TestDedupeCrossMessageReasoning:
    """Across messages: duplicates that a replay creates."""

    def test_returns_the_same_list_when_there_is_no_reasoning(self) -> None:
        messages = [USER, ui(text())]
        assert deduped(messages) is messages

    def test_removes_a_blank_replay(self) -> None:
        first = ui(thought("thinking about it", "rs_abc"), text())
        assert deduped([USER, first, ui(STEP, thought("", "rs_abc"))]) == [USER, first]

    def test_keeps_messages_with_new_ids(self) -> None:
        messages = [USER, ui(thought("a", "rs_abc"), text()), ui(thought("b", "rs_def"), text())]
        assert deduped(messages) is messages

    def test_strips_a_blank_part_of_a_mixed_message(self) -> None:
        first = ui(thought("real thought", "rs_abc"), text())
        second = ui(thought("", "rs_abc"), thought("new thought", "rs_def"), text())
        assert deduped([USER, first, second]) == [USER, first, ui(thought("new thought", "rs_def"), text())]

    def test_keeps_further_summaries_of_an_item(self) -> None:
        first = ui(thought("summary part 0", "rs_abc"), text())
        messages = [USER, first, ui(thought("summary part 1", "rs_abc"), text())]
        assert deduped(messages) is messages
        assert len(messages[2]["parts"]) == 2

    def test_removes_a_message_that_is_left_empty(self) -> None:
        first = ui(thought("t", "rs_abc"), text())
        assert deduped([USER, first, ui(thought("", "rs_abc"))]) == [USER, first]

    def test_azure(self) -> None:
        first = ui(thought("t", "rs_abc", "azure"), text())
        assert deduped([USER, first, ui(thought("", "rs_abc", "azure"))]) == [USER, first]

    def test_does_not_change_the_original(self) -> None:
        messages = [USER, ui(thought("t", "rs_abc"), text()), ui(STEP, thought("", "rs_abc"), text("x"))]
        result = deduped(messages)
        assert result is not messages
        assert result[1] is messages[1]
        assert len(messages[2]["parts"]) == 3

    def test_keeps_a_message_of_reasoning_without_ids(self) -> None:
        messages = [USER, ui(thought("some thought"))]
        assert deduped(messages) is messages


class TestBeyondTheReport:
    """Cases that the report's own tests do not cover."""

    FIRST: ClassVar = ui(thought("same text", "rs_abc"), text())

    def test_the_same_text_under_a_seen_id_alone_goes_with_its_message(self) -> None:
        assert deduped([USER, self.FIRST, ui(thought("same text", "rs_abc"))]) == [USER, self.FIRST]

    def test_the_same_text_beside_other_parts_goes_and_the_rest_stays(self) -> None:
        second = ui(thought("same text", "rs_abc"), text("more"))
        assert deduped([USER, self.FIRST, second]) == [USER, self.FIRST, ui(text("more"))]

    def test_a_blank_repeat_beside_new_reasoning_is_stripped(self) -> None:
        second = ui(thought("", "rs_abc"), thought("", "rs_def"))
        assert deduped([USER, self.FIRST, second]) == [USER, self.FIRST, ui(thought("", "rs_def"))]

    def test_blank_first_and_text_later_keeps_the_text(self) -> None:
        later = ui(thought("text", "rs_abc"))
        assert deduped([ui(thought("", "rs_abc")), later]) == [later]
        first = ui(thought("", "rs_abc"), text())
        assert deduped([first, later]) == [ui(text()), later]
        assert deduped([first, ui(thought("", "rs_abc")), later]) == [ui(text()), later]

    def test_an_openai_object_without_an_item_does_not_hide_azure(self) -> None:
        part = {"type": "reasoning", "text": "t", "providerMetadata": {"openai": {}, "azure": {"itemId": "rs_abc"}}}
        assert deduped([ui(part, text()), ui(part)]) == [ui(part, text())]

    def test_an_empty_id_is_none(self) -> None:
        messages = [ui(thought("", ""), text()), ui(thought("", ""), thought("", ""))]
        assert deduped(messages) is messages

    def test_new_text_under_a_seen_id_keeps_its_message(self) -> None:
        messages = [USER, self.FIRST, ui(thought("new text", "rs_abc"))]
        assert deduped(messages) is messages

    def test_reasoning_without_an_id_keeps_its_message(self) -> None:
        second = ui(thought("", "rs_abc"), thought("mine"))
        assert deduped([USER, self.FIRST, second]) == [USER, self.FIRST, ui(thought("mine"))]

    def test_a_message_of_tools_is_not_one_of_reasoning_only(self) -> None:
        tool = {"type": "tool-f", "toolCallId": "c", "state": "output-available", "input": {}, "output": 1}
        assert deduped([USER, self.FIRST, ui(thought("", "rs_abc"), tool)]) == [USER, self.FIRST, ui(tool)]

    def test_messages_of_others_are_kept_and_count(self) -> None:
        other = ui(thought("same text", "rs_abc"), role="user")
        messages = [self.FIRST, other]
        assert deduped(messages) is messages
        assert deduped([other, self.FIRST]) == [other, ui(text())]

    def test_encrypted_content_that_only_the_repeat_had_stays(self) -> None:
        first = ui(thought("t", "rs_abc"), text())
        second = ui(thought("", "rs_abc", reasoningEncryptedContent="gAAA"))
        assert deduped([first, second]) == [ui(thought("t", "rs_abc", reasoningEncryptedContent="gAAA"), text())]
        assert "reasoningEncryptedContent" not in first["parts"][0]["providerMetadata"]["openai"]

    def test_encrypted_content_of_the_first_stays(self) -> None:
        first = ui(thought("t", "rs_abc", reasoningEncryptedContent="gAAA"), text())
        assert deduped([first, ui(thought("", "rs_abc", reasoningEncryptedContent="gBBB"))]) == [first]

    def test_texts_and_steps_of_their_own_are_left_alone(self) -> None:
        messages = [USER, self.FIRST, ui(STEP), ui()]
        assert deduped(messages) is messages

    def test_edits_say_what_went_where_and_why(self) -> None:
        edits: list[Edit] = []
        second = ui(STEP, thought("", "rs_abc"))
        dedupe_reasoning({"messages": [USER, self.FIRST, second]}, on_edit=edits.append)
        assert [(edit.rule, edit.path) for edit in edits] == [
            ("item_repeated", "/messages/2/parts/1"),
            ("item_message_dropped", "/messages/2"),
        ]
        assert edits[0].removed is second["parts"][1]
        assert edits[1].removed is second
        assert "pull/804" in edits[0].why

    def test_a_payload_and_a_tuple_stay_what_they_are(self) -> None:
        payload = {"model": "m", "messages": [self.FIRST, ui(thought("", "rs_abc"))]}
        assert dedupe_reasoning(payload) == {"model": "m", "messages": [self.FIRST]}
        clean = {"input": [{"type": "message", "role": "user", "content": "hi"}]}
        assert dedupe_reasoning(clean) is clean
        assert dedupe_reasoning({"input": "hi"}) == {"input": "hi"}
        assert dedupe_reasoning((self.FIRST, ui(thought("", "rs_abc")))) == (self.FIRST,)

    def test_items_are_three(self) -> None:
        with pytest.raises(UsageError, match="rs, fc, msg"):
            dedupe_reasoning([], items=("reasoning",))
        with pytest.raises(UsageError):
            dedupe_reasoning([], items="rs")


class TestModelMessages:
    def test_as_ui_messages(self) -> None:
        first = ui(thought("t", "rs_abc"), text())
        messages = as_models([USER, first, ui(STEP, thought("", "rs_abc"))])
        assert deduped(messages) == messages[:2]
        messages = as_models([USER, first, ui(thought("new", "rs_abc"), text())])
        assert deduped(messages) is messages
        plain = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        assert deduped(plain) is plain

    def test_a_repeated_call_takes_its_result_with_it(self) -> None:
        call = {"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {}}
        call |= {"providerOptions": {"openai": {"itemId": "fc_1"}}}
        result = {"type": "tool-result", "toolCallId": "c", "toolName": "f", "output": {"type": "text", "value": "1"}}
        said, answer = model(thought("t", "rs_abc"), call), {"role": "tool", "content": [result]}
        messages = [said, answer, model(thought("", "rs_abc"), call), answer]
        assert deduped(messages) == [said, answer, model(call), answer]
        assert deduped(messages, items=("rs", "fc", "msg")) == [said, answer]
        # The only result belongs to the call that stays.
        assert deduped([said, model(call), answer], items=("fc",)) == [said, answer]


class TestResponsesItems:
    USER: ClassVar = {"type": "message", "role": "user", "content": "hi"}
    ANSWER: ClassVar = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "A"}],
    }
    CALL: ClassVar = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
    OUTPUT: ClassVar = {"type": "function_call_output", "call_id": "c", "output": "1"}

    @staticmethod
    def item(*summaries: str, item_id: str | None = "rs_abc", **more: Any) -> dict[str, Any]:
        summary = [{"type": "summary_text", "text": said} for said in summaries]
        return {"type": "reasoning", "id": item_id, "summary": summary, **more}

    def test_blank_and_identical_repeats_go(self) -> None:
        first = self.item("t")
        assert deduped([self.USER, first, self.ANSWER, self.item(), self.item("t"), self.item("")]) == [
            self.USER,
            first,
            self.ANSWER,
        ]

    def test_further_summaries_stay(self) -> None:
        messages = [self.item("0"), self.ANSWER, self.item("1"), self.item("0", "1")]
        assert deduped(messages) is messages

    def test_blank_first_and_text_later_keeps_the_text_and_the_cipher(self) -> None:
        later = self.item("t")
        result = deduped([self.item(encrypted_content="gAAA"), self.ANSWER, later])
        assert result == [self.ANSWER, later | {"encrypted_content": "gAAA"}]

    def test_items_without_an_id_stay(self) -> None:
        messages = [self.item("t", item_id=None), self.item("t", item_id=None), self.item("t", item_id="")]
        assert deduped(messages) is messages

    def test_calls_and_messages_only_when_asked(self) -> None:
        messages = [self.CALL, self.OUTPUT, self.ANSWER, self.CALL, self.OUTPUT, self.ANSWER]
        assert deduped(messages) is messages
        assert deduped(messages, items=("rs", "fc")) == [self.CALL, self.OUTPUT, self.ANSWER, self.ANSWER]
        assert deduped(messages, items=("msg",)) == [self.CALL, self.OUTPUT, self.ANSWER, self.CALL, self.OUTPUT]

    def test_another_call_under_the_same_id_stays(self) -> None:
        messages = [self.CALL, self.OUTPUT, self.CALL | {"call_id": "d"}, self.OUTPUT | {"call_id": "d"}]
        assert deduped(messages, items=("fc",)) is messages


def test_texts_of_a_replay() -> None:
    first = ui(text("a", "msg_1"), text("b", "msg_1"))
    assert deduped([first, ui(text("a", "msg_1"), text("c", "msg_1"))], items=("msg",)) == [
        first,
        ui(text("c", "msg_1")),
    ]


def test_a_long_history_costs_what_it_is_long() -> None:
    messages = [ui(thought(f"t{n}", f"rs_{n % 5000}"), text()) for n in range(20_000)]
    assert dedupe_reasoning(messages) is messages
