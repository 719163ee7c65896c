"""The shared data files: loaded, frozen, and consistent with each other and with the classes that they describe."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import get_args

import pytest
from streamweld import errors, events
from streamweld._spec import CODES, DIALECTS, EVENTS, LIMITS, PLAIN_EVENTS
from streamweld.events import DiagnosticCode

from tests.support.places import REPOSITORY


def test_limits() -> None:
    assert LIMITS["max_event_bytes"] == 16 << 20
    assert all(value is None or value > 0 for value in LIMITS.values())


@pytest.mark.parametrize("name", CODES)
def test_code(name: str) -> None:
    code = CODES[name]
    assert code.name == name
    assert code.severity in {"info", "warning", "error"}
    assert code.text
    if code.raises is not None:
        assert issubclass(getattr(errors, code.raises), errors.StreamError)
    for base in ("strict", "standard", "salvage"):
        action = code.action(base)
        assert action in {"raise", "diagnose"} or (action == "skip" and code.skippable)
        assert action != "raise" or code.raises is not None  # an action that raises needs a class
    if not code.actions:
        assert code.action("strict") == ("diagnose" if code.severity == "info" else "raise")
        assert code.action("standard") == code.action("salvage") == "diagnose"


def test_the_type_of_codes_names_each() -> None:
    assert get_args(DiagnosticCode) == tuple(CODES)


def test_every_event_class_is_there() -> None:
    assert {name for name in EVENTS if hasattr(events, name)} == set(EVENTS)
    assert set(EVENTS) > PLAIN_EVENTS


def test_fields() -> None:
    part, call_id, item_id, name = EVENTS["ToolCallStarted"]
    assert (part.name, part.type, part.nullable, part.required) == ("part", "int", False, True)
    assert (call_id.name, call_id.nullable, call_id.required, call_id.default) == ("call_id", True, False, None)
    assert (item_id.type, name.type, name.nullable, name.default) == ("str", "str", False, "")
    defaults = {field.name: field.default for field in EVENTS["ToolCall"] if not field.required}
    assert defaults["provider_executed"] is False
    assert defaults["aliases"] == ()


def test_nothing_can_be_changed() -> None:
    for table in (LIMITS, CODES, EVENTS, DIALECTS, DIALECTS["chat"], CODES["malformed_json"].actions):
        assert isinstance(table, MappingProxyType)
    assert isinstance(DIALECTS["detect"], tuple)
    with pytest.raises(AttributeError):
        CODES["shape"].text = ""  # type: ignore[misc]


@pytest.mark.parametrize("place", ["python/streamweld/_pure", "rust/core/src"])
def test_every_reason_to_rewrite_is_explained(place: str) -> None:
    """The reasons in both backends are the values of `detail` that are explained for `rewritten`."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / place).rglob("*.[pr][ys]"))
    reasons = set(re.findall(r'\btouch\("(\w+)"\)|\bdiagnose\(\s*"rewritten",\s*detail="(\w+)"', code))
    explained = CODES["rewritten"].details
    assert {one or other for one, other in reasons} <= set(explained)
    assert [name for name in explained if f'"{name}"' not in code] == []
