"""Reads token counts from a chunk, a choice, or an extension member such as `x_groq`.

`_spec/dialects.json` lists the names of the counts. If there are several usage objects, the caller selects the one to
use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.usage_counts import counts_of, read_counts
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.scanner import Path, Payload

COUNTS = counts_of(DIALECTS["chat"]["usage"])


def read_usage_member(
    payload: Payload, holder: Mapping[str, Any], path: Path, notes: Anomalies, assembler: Assembler
) -> None:
    """Emit the `usage` member of `holder`, unless the member is absent or null.

    A value that is not an object is reported as an anomaly.
    """
    usage = notes.an_object(holder, path, "usage")
    if usage is not None:
        assembler.usage(read_counts(usage, payload.raw(*path, "usage"), COUNTS))
    notes.report()
