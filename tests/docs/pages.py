"""The pages of the documentation as data: their code blocks, in order, and the expected output of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w-]*)[^\n]*\n"
    r"(?P<code>.*?)^(?P=indent)(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
GATEWAY = re.compile(r"<!-- gateway: ([\w-]+) -->")


@dataclass
class Block:
    """One fenced block. `expected`: the text block that follows it, or None if there is none. `gateway`: the response
    selected by the last `<!-- gateway: NAME -->` comment before the block, or None.
    """

    line: int
    language: str
    code: str
    expected: str | None
    gateway: str | None


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page. The output of a block is the `text` block after it, possibly with prose in
    between."""
    found: list[Block] = []
    matches = list(BLOCK.finditer(text))
    for place, match in enumerate(matches):
        following = matches[place + 1] if place + 1 < len(matches) else None
        expected = dedented(following) if following is not None and following["language"] == "text" else None
        selected = GATEWAY.findall(text[: match.start()])
        found.append(
            Block(
                line=text[: match.start()].count("\n") + 1,
                language=match["language"],
                code=dedented(match),
                expected=expected,
                gateway=selected[-1] if selected else None,
            )
        )
    return found


def dedented(match: re.Match[str]) -> str:
    return re.sub(rf"^{match['indent']}", "", match["code"], flags=re.MULTILINE)


# `rules.md` is generated and contains no code. The recipes in `bulk.md` need engines of more than 1 GB, so tests/bulk
# runs them in their own environments.
NOT_RUN = {DOCS / "rules.md", DOCS / "bulk.md"}


def written() -> list[Path]:
    """Return README and every page whose blocks run here."""
    return [ROOT / "README.md", *sorted(set(DOCS.rglob("*.md")) - NOT_RUN)]


def matches(pattern: str, output: str) -> bool:
    """Return True if the output matches the expected output. `…` in a line matches any text; on a line by itself, it
    matches any lines.
    """
    lines = [line.rstrip() for line in pattern.strip("\n").split("\n")]
    shown = "".join(
        "(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*") + " *\n" for line in lines
    )
    return re.fullmatch(shown, output.strip("\n") + "\n") is not None
