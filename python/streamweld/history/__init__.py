"""Request histories: one neutral model, a reader and a writer for each API, gateways as data.

    conversion = streamweld.history.convert(messages, target="anthropic")
    client.messages.create(model=…, max_tokens=…, **conversion.payload)
    for edit in conversion.edits:
        print(edit.path, edit.what, edit.why)

`convert` gives a history that the target accepts, mended where it was broken, with every change, every loss and the map
of tool call ids. `HistoryPolicy` says how to mend. `check` lists what a history does against the rules of its target,
and `dedupe_reasoning` takes out what a replayed stream said twice.
"""

from streamweld._words import Source, Target
from streamweld.history.check import HistoryViolation, check
from streamweld.history.context import HistoryPolicy
from streamweld.history.conversion import convert
from streamweld.history.dedupe import dedupe_reasoning
from streamweld.history.edits import Conversion, Edit, IdMap, Loss
from streamweld.history.profiles import Profile

__all__ = [
    "Conversion",
    "Edit",
    "HistoryPolicy",
    "HistoryViolation",
    "IdMap",
    "Loss",
    "Profile",
    "Source",
    "Target",
    "check",
    "convert",
    "dedupe_reasoning",
]
