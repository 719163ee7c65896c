"""Every constraint of a profile affects a conversion: without it, at least one vector gives another result.

Constraints without an effect are listed below, with the reason. The checker's side is tested in `test_check`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from streamweld.errors import StreamweldError
from streamweld.history import profiles

from tests.history.jsonable import dumps
from tests.history.test_check import without
from tests.history.test_vectors import converted, vectors

# Constraints that only the checker uses, because no conversion violates them, or because no edit can fix a violation
# (`on_unfixable`).
ONLY_FOR_THE_JUDGE = {
    *("roles", "role_order", "last_role", "min_items", "user_required", "call_reference", "tools_required"),
    *("text_types_also", "system.instructions", "blank_beside_reasoning", "reasoning.roles", "result_value"),
    *("function_results", "server_pairs"),
    *("role_order.system", "role_order.user", "role_order.assistant", "role_order.tool", "text_types_also.assistant"),
}
# Constraints whose edits are made whether or not a profile requires them.
ALWAYS_DONE = {
    "results.single",  # if a call has two results, one is chosen wherever calls are paired
    "results.first",  # results are a separate turn before the user's turn
    "tool_id.min",
    "tool_name.min",  # the default of a form is 1
    "item_id.unique",  # the default is true
    "tool_id.keep",  # only `unique` makes a converter rename ids, and it is absent
    "text_embedding.join",  # the default is two line breaks
}
# Constraints that need a response of a known model, an option, or tools; see test_answers, the vectors with `store`,
# and tests/requests.
ELSEWHERE = {"reasoning.same_model", "reasoning.item_ids", "tool_types"}


def outcome(vector: dict[str, Any], profile: profiles.Profile) -> str:
    try:
        made = converted({**vector, "gateway": profile}, copy.deepcopy(vector["messages"]))
    except (StreamweldError, KeyError) as error:
        return repr(error)
    shown = [[entry.to_dict() for entry in entries] for entries in (made.edits, made.losses)]
    return dumps([made.payload, shown], sort_keys=True)


def test_every_constraint_does_something() -> None:
    every, done = set(), set()
    for param in vectors():
        vector: Any = param.values[0]
        profile = profiles.resolve(vector.get("gateway"), vector["target"])
        before = outcome(vector, profile)
        for name, value in profile.constraints.items():
            for member in [None, *value] if isinstance(value, Mapping) else [None]:
                label = name if member is None else f"{name}.{member}"
                every.add(label)
                other = replace(profile, constraints=without(profile.constraints, name, member))
                if label not in done and outcome(vector, other) != before:
                    done.add(label)
    idle = ONLY_FOR_THE_JUDGE | ALWAYS_DONE | ELSEWHERE
    assert sorted(every - done - idle) == []
    assert sorted(idle & done) == []
