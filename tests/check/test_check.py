"""The linter: vectors at every split, its table of rules, a broken converter, and violations in recorded streams."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld import errors
from streamweld.check import DIALECTS, Checker, Place
from streamweld.check.violation import MOST_OF_A_RULE, facts, rules

from tests.support import corpus
from tests.support.generate.noise import random_pieces
from tests.support.vector_files import chunks_of, label, load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamweld import Violation

VECTORS = load("check")
LARGE = 1 << 20  # vectors of this many bytes are not fed byte by byte
CHECK = Path(sw.__file__).parent / "check"
# Folders of the recordings -> dialect.
FOLDERS = {"aisdk-parts": "ai-sdk-parts", "aisdk-ui": "ai-sdk-ui"} | {d: d for d in DIALECTS[1:5]}
REVIEWED = Path(__file__).parent / "corpus_violations.json"
# Violations that come from wrapping bare JSON into data lines, not from the provider.
WRAPPING = {"chat.done_missing", "responses.event_missing", "responses.done_missing", "anthropic.event_missing"}


def rows(found: Iterable[Violation]) -> list[list[Any]]:
    return [[v.rule, v.where.event_ordinal, v.where.byte_offset] for v in found]


def in_pieces(pieces: Iterable[bytes], dialect: Any) -> list[Violation]:
    checker = Checker(dialect)
    found = [violation for piece in pieces for violation in checker.feed(piece)]
    found += checker.close()
    assert checker.close() == []
    return sorted(found, key=lambda violation: violation.where)


# Vectors


@pytest.mark.parametrize("vector", VECTORS, ids=label)
def test_vector(vector: dict[str, Any]) -> None:
    chunks, dialect = chunks_of(vector), vector["dialect"]
    whole = b"".join(chunks)
    found = sw.check(whole, dialect)
    assert rows(found) == vector["violations"]
    assert in_pieces(chunks, dialect) == found
    if len(whole) < LARGE:
        assert in_pieces((whole[at : at + 1] for at in range(len(whole))), dialect) == found
        rng = random.Random(vector["name"])
        assert in_pieces(random_pieces(rng, whole), dialect) == found
        assert sw.check(bytearray(whole), dialect) == sw.check(memoryview(whole), dialect) == found


def test_there_are_enough_of_them() -> None:
    clean = Counter(v["dialect"] for v in VECTORS if not v["violations"])
    broken = [v for v in VECTORS if v["violations"]]
    assert len(broken) >= 150
    assert {dialect: count for dialect, count in clean.items() if count >= 2}.keys() == set(DIALECTS[1:])


def test_every_rule_has_a_vector() -> None:
    seen = {rule for vector in VECTORS for rule, _, _ in vector["violations"]}
    assert seen == set(rules())


def test_auto_finds_the_dialect_of_clean_streams() -> None:
    for vector in VECTORS:
        if not vector["violations"]:
            checker = Checker()
            found = checker.feed(b"".join(chunks_of(vector))) + checker.close()
            assert checker.dialect == vector["dialect"], vector["name"]
            assert found == []


def test_the_converter_that_announces_a_call_twice() -> None:
    """A gateway's converter writes two items for one call id, and an item_id that equals the call id. Both faults are
    reported.
    """
    (vector,) = [v for v in VECTORS if v["name"] == "converter-announces-a-call-twice"]
    found = sw.check(b"".join(chunks_of(vector)))
    twice = [v for v in found if v.rule == "responses.call_id_repeated"]
    crossed = [v for v in found if v.rule == "responses.item_id_is_call_id"]
    assert [v.message for v in twice] == ["two items have the same call id: call_1: items fc_A and fc_B"]
    assert len(crossed) == 4
    assert {v.severity for v in twice + crossed} == {"error"}
    assert all(v.source.startswith("OpenResponses") for v in twice + crossed)


# The table


def test_the_table() -> None:
    families = {"framing", *DIALECTS[1:]}
    for name, rule in rules().items():
        family, _, short = name.partition(".")
        assert family in families
        assert re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]*", short)
        assert rule.severity in {"info", "warning", "error"}
        assert rule.basis in {"text", "reader", "reading"}
        assert rule.text
        assert ", " in rule.source  # the source consists of a document and a section
    assert len({(rule.id.partition(".")[0], rule.text) for rule in rules().values()}) == len(rules())


@pytest.mark.parametrize("dialect", ["framing", *DIALECTS[1:]])
def test_code_and_table_name_the_same_rules(dialect: str) -> None:
    stem = dialect.replace("-", "_")
    names = [f"{stem}*.py"] if dialect != "framing" else ["*.py"]
    code = "".join(path.read_text("utf-8") for name in names for path in CHECK.glob(name))
    wanted = {name.partition(".")[2] for name in rules() if name.startswith(f"{dialect}.")}
    if dialect == "framing":
        shown = set(re.findall(r'"framing\.(\w+)"', code))
    else:
        shown = {word for word in wanted if re.search(rf'"(?:{dialect}\.)?{word}"', code)}
        shown |= {f"{member}_changes" for member in ("id", "model", "created", "responseId", "modelVersion")} & wanted
        literal = set(re.findall(r'(?:say|once)\(\s*"([a-zA-Z_]+)"', code))
        assert literal <= wanted
    assert shown == wanted


def test_the_facts_are_words() -> None:
    for dialect in DIALECTS[1:]:
        assert facts(dialect)
    assert len(facts("responses")["response"]) == 31
    official = {name for name in facts("responses")["required"] if not name.startswith("response.reasoning_text")}
    assert len(official) == 24


# The public interface


def test_a_violation() -> None:
    body = b'data: {"type":"start"}\n\ndata: {"type":"finish"}\n\n'
    (violation,) = sw.check(body)
    assert violation.where == Place(byte_offset=len(body), event_ordinal=2)
    assert violation.to_dict() == {
        "rule": "ai-sdk-ui.done_missing",
        "severity": "error",
        "byte_offset": len(body),
        "event_ordinal": 2,
        "message": "the stream does not end with [DONE]",
        "source": "AI SDK documentation, Stream protocols, Data stream protocol",
        "breaks_client": [],
    }
    assert json.loads(json.dumps(violation.to_dict())) == violation.to_dict()
    assert hash(violation) == hash(violation)
    with pytest.raises(AttributeError):
        violation.rule = "x"  # type: ignore[misc]


def test_messages_are_safe_to_print() -> None:
    (violation,) = [
        v for v in sw.check(b'data: {"type":"\\u001b[31m\\u202e"}\n\n', "ai-sdk-ui") if "type_unk" in v.rule
    ]
    assert violation.message.isprintable()


@pytest.mark.parametrize("body", ["data: {}\n\n", None, 7, ["x"], memoryview(bytes(8))[::2]])
def test_a_body_that_is_no_bytes(body: Any) -> None:
    with pytest.raises(TypeError):
        sw.check(body)


def test_a_dialect_that_does_not_exist() -> None:
    with pytest.raises(errors.UsageError, match="klingon"):
        sw.check(b"", "klingon")  # type: ignore[arg-type]


def test_a_dialect_that_is_not_known() -> None:
    with pytest.raises(errors.UnknownDialect) as caught:
        sw.check(b': x\n\ndata: {"contentBlockStart":{}}\n\n')
    assert caught.value.seen == ("contentBlockStart",)
    assert (caught.value.byte_offset, caught.value.event_ordinal) == (5, 0)
    with pytest.raises(errors.UnknownDialect):
        Checker().feed(b'data: {"a":1}\n\n' * 100)


def test_broken_bytes_are_never_an_exception() -> None:
    assert [v.rule for v in sw.check(b"")] == ["framing.no_events"]
    assert [v.rule for v in sw.check(b"\xff\xfe\0")] == [
        "framing.bad_utf8",
        "framing.outside_data",
        "framing.no_events",
    ]
    assert next(v.rule for v in sw.check(b"data: {\n\n", "gemini")) == "framing.bad_json"
    for digits in (4_299, 5_000, 20_000):
        payload = b'data: {"choices":[],"id":%s,"created":%s,"x":"%s"}\n\n'
        sw.check(b"".join(payload % (first, b"9" * digits, b"1" * digits) for first in (b"1", b"9" * digits)), "chat")
    rng = random.Random(7)
    letters = [
        b"data: ",
        b"event: ",
        b"id: \0",
        b"\n",
        b"\r\n",
        b"\n\n",
        b"{",
        b"}",
        b'"type":',
        b'"a"',
        b"[DONE]",
        b"\xff",
    ]
    for dialect in DIALECTS[1:]:
        for _ in range(200):
            sw.check(b"".join(rng.choices(letters, k=40)), dialect)  # type: ignore[arg-type]


@pytest.mark.parametrize("dialect", DIALECTS[1:])
def test_members_of_any_type(dialect: Any) -> None:
    """Each member of each vector's payloads is replaced with a value of another type. The checker reports violations
    and does not raise.
    """
    rng = random.Random(dialect)
    strange = [None, True, -1, 1.5, "", "x", [], [None], [{}], {}, {"a": [1]}, 2**70, "\ud800"]

    def damaged(value: Any) -> Any:
        if rng.random() < 0.08:
            return rng.choice(strange)
        if isinstance(value, dict):
            return {
                key: member if key == "type" and rng.random() < 0.9 else damaged(member)
                for key, member in value.items()
            }
        return [damaged(member) for member in value] if isinstance(value, list) else value

    for vector in VECTORS:
        body = b"".join(chunks_of(vector))
        if vector["dialect"] != dialect or len(body) > LARGE:
            continue
        for _ in range(10):
            made = b""
            for line in body.split(b"\n"):
                try:
                    made += b"data: " + json.dumps(damaged(json.loads(line.removeprefix(b"data: ")))).encode() + b"\n\n"
                except ValueError:
                    made += line + b"\n\n" if line.startswith(b"data: [DONE]") else line + b"\n" if line else b""
            sw.check(made, dialect)


def test_a_checker_that_is_closed() -> None:
    checker = Checker("chat")
    checker.close()
    with pytest.raises(errors.UsageError):
        checker.feed(b"")


def test_one_rule_does_not_fill_the_list() -> None:
    checker = Checker("chat")
    found = checker.feed(b"data: {\n\n" * 1000) + checker.close()
    assert Counter(v.rule for v in found)["framing.bad_json"] == MOST_OF_A_RULE
    assert checker.dropped == 1000 - MOST_OF_A_RULE


def test_many_parts_that_were_closed_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long valid streams do not reach the limit that protects against hostile streams."""
    monkeypatch.setattr(import_module("streamweld.check.lifecycle"), "MOST_KEPT", 10_000)
    body = b"".join(b'data: {"type":"text-%s","id":"0"}\n\n' % kind for kind in (b"start", b"end"))
    checker = Checker("ai-sdk-ui")
    rules_of = [v.rule for v in checker.feed(b'data: {"type":"start"}\n\n' + body * 1000)]
    assert rules_of == []
    calls = b"".join(b'data: {"type":"tool-input-start","toolCallId":"%d","toolName":"f"}\n\n' % n for n in range(50))
    assert [v.rule for v in checker.feed(calls) + checker.close()] == ["framing.too_much"]


# Recorded streams

recorded = pytest.mark.skipif(corpus.absent() is not None, reason=corpus.absent() or "")


def summary(folder: str) -> dict[str, Any]:
    """Return the violations in the streams of a folder: rule -> number of streams."""
    streams = Counter[str]()
    clean = 0
    for recording in corpus.recordings(folder):
        found = set(sw.check(recording.body, FOLDERS[folder]))  # type: ignore[arg-type]
        broken = {v.rule for v in found} - (WRAPPING if recording.wrapped else set())
        streams.update(broken)
        clean += not any(v.severity != "info" and v.rule in broken for v in found)
    ordered = dict(sorted(streams.items(), key=lambda item: (-item[1], item[0])))
    return {"streams": len(corpus.recordings(folder)), "clean": clean, "violations": ordered}


@recorded
@pytest.mark.parametrize("folder", FOLDERS)
def test_what_recorded_providers_violate(folder: str) -> None:
    reviewed = json.loads(REVIEWED.read_text("utf-8"))
    assert summary(folder) == reviewed["dialects"][FOLDERS[folder]]


@recorded
def test_every_finding_was_looked_at() -> None:
    reviewed = json.loads(REVIEWED.read_text("utf-8"))
    found = {rule for row in reviewed["dialects"].values() for rule in row["violations"]}
    serious = {rule for rule in found if rules()[rule].severity != "info"}
    assert serious <= reviewed["notes"].keys() <= found
    for dialect, row in reviewed["dialects"].items():  # a requirement that most valid streams violate cannot be a rule
        for rule, count in row["violations"].items():
            assert rules()[rule].severity == "info" or count < row["streams"] / 10, (dialect, rule)


@recorded
@pytest.mark.parametrize("folder", [*FOLDERS, "other"])
def test_recorded_streams_in_pieces(folder: str, full: bool) -> None:
    """The dialect is detected, and chunking does not change the result."""
    for number, recording in enumerate(corpus.recordings(folder)):
        if folder != "other" and not full and (number % 4 or recording.size > 20_000):
            continue
        rng = random.Random(recording.name)
        try:
            found = in_pieces(random_pieces(rng, recording.body), "auto")
        except errors.UnknownDialect:
            assert folder == "other", recording.name
        else:
            assert found == sw.check(recording.body, FOLDERS.get(folder, "auto"))  # type: ignore[arg-type]
