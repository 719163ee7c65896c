"""Convert a conversation history for another LLM API, and fix what that API would reject.

    conversion = streamweld.history.convert(messages, target="anthropic")
    client.messages.create(model=…, max_tokens=…, **conversion.payload)
    for edit in conversion.edits:
        print(edit.path, edit.what, edit.why)

`convert` returns a history that the target accepts, and records every change, every loss and every renamed tool call
id. `HistoryPolicy` selects how broken histories are repaired. `check` lists the rules of a target API that a history
breaks. `dedupe_reasoning` removes items that a replayed stream added a second time.
"""

from streamweld._literals import Source, Target
from streamweld.history.check import HistoryViolation, check
from streamweld.history.conversion import convert
from streamweld.history.dedupe import dedupe_reasoning
from streamweld.history.edits import Conversion, Edit, IdMap, Loss
from streamweld.history.policy import HistoryPolicy
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
