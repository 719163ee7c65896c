"""Compare two streams side by side: facts, findings, result and calls. Differences are marked."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from streamweld.report.markup import cut, inline, pre, table
from streamweld.report.sections import facts_of

if TYPE_CHECKING:
    from streamweld.report.facts import Facts

__all__ = ["comparison"]

_TEXT: Final = 20_000
_CALLS: Final = 50


def comparison(a: Facts, b: Facts) -> str:
    """Return the section that compares two streams."""
    left, right = facts_of(a), facts_of(b)
    rows = [_row(name, left.get(name, ""), right.get(name, "")) for name in dict.fromkeys([*left, *right])]
    codes = [{found.code for found in facts.findings} for facts in (a, b)]
    rows += [
        _row("findings only here", *[", ".join(sorted(one - other)) for one, other in (codes, codes[::-1])]),
        _row("findings in both", *[", ".join(sorted(codes[0] & codes[1]))] * 2),
    ]
    columns = ("", a.recorded.name, b.recorded.name)
    calls = [[_call(call) for choice in facts.response.choices for call in choice.tool_calls] for facts in (a, b)]
    pairs = [_row(str(number), *pair) for number, pair in enumerate(zip_longest(*calls, fillvalue=""))][:_CALLS]
    texts = [(a, _text(a, b, "removed")), (b, _text(b, a, "added"))]
    parts = [
        '<section aria-labelledby="diff"><h2 id="diff">Comparison</h2>',
        table(columns, rows),
        "<h3>Tool calls</h3>",
        table(columns, pairs) if pairs else "<p>Neither stream has a tool call.</p>",
        '<h3>Text</h3><div class="pair">',
        *[f'<div><p class="dim">{inline(facts.recorded.name)}</p>{text}</div>' for facts, text in texts],
        "</div></section>",
    ]
    return "\n".join(parts)


def _row(name: str, a: str, b: str) -> str:
    differs = "" if a == b or name == "findings in both" else ' class="differs"'
    head = f'<th scope="row">{inline(name)}</th>'
    return f"<tr{differs}>{head}<td>{inline(a)}</td><td>{inline(b)}</td></tr>"


def _call(call: object) -> str:
    fields = [str(getattr(call, name)) for name in ("name", "state", "arguments")]
    return cut(" ".join(fields), 1_000)


def _text(one: Facts, other: Facts, kind: str) -> str:
    """Return the text of one stream, in which words that are not in the other stream are marked."""
    mine, theirs = _words(one), _words(other)
    out: list[str] = []
    for tag, start, end, _, _ in SequenceMatcher(None, mine, theirs, autojunk=len(mine) > 2_000).get_opcodes():
        text = pre("".join(mine[start:end]))
        out.append(text if tag == "equal" or not text else f'<span class="{kind}">{text}</span>')
    return f"<pre>{''.join(out) or '(no text)'}</pre>"


def _words(facts: Facts) -> list[str]:
    return re.findall(r"\s+|[^\s]+", cut(facts.response.text, _TEXT))
