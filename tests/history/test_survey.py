"""With the survey, passes skip their walks. The result is the same as without the survey's information."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from streamweld.history import Conversion, HistoryPolicy, context, convert, profiles
from streamweld.history.dialects import CONTAINERS
from streamweld.history.survey import Survey

from tests.support.generate.history import DIALECTS, Maker, payload_of

if TYPE_CHECKING:
    from streamweld.history.model import Turn

KEEP = HistoryPolicy(on_unfixable="keep")
ROUTES = [(target, name) for name in profiles.names() for target in profiles.load(name).targets]


class Nothing(Survey):
    """A survey without information, so that every pass and every writer does its own search."""

    def __init__(self, turns: list[Turn]) -> None:
        super().__init__(turns)
        self.paired = self.plain = self.trailing = self.bare = False
        self.instructed = self.joined = self.opaque = True  # `reasoned` is a fact that callers rely on
        self.dialects = set(CONTAINERS)


def outcome(made: Conversion) -> list[Any]:
    return [made.payload, made.edits, made.losses, made.ids.calls()]


@pytest.mark.parametrize(("target", "gateway"), ROUTES)
@pytest.mark.parametrize("broken", [False, True], ids=["sound", "broken"])
def test_the_outcome_is_the_same_without_it(
    target: str, gateway: str, broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(24):
        maker = Maker(seed, broken=broken)
        script = maker.script(1 + seed % 6)
        dialect = DIALECTS[seed % len(DIALECTS)]
        if not script:
            continue
        given = payload_of(script, dialect)
        spared = convert(given, source=dialect, target=target, gateway=gateway, policy=KEEP)
        with monkeypatch.context() as patch:
            patch.setattr(context, "Survey", Nothing)
            walked = convert(given, source=dialect, target=target, gateway=gateway, policy=KEEP)
        assert outcome(spared) == outcome(walked)
