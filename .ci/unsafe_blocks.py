"""Counts the `unsafe` blocks, and fails if one of them lacks a `// SAFETY:` comment or is outside the bindings.

usage: unsafe_blocks.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"\bunsafe\s*\{")
# The comment is above the statement that contains the block.
REASON = re.compile(r"//\s*SAFETY:")
MOST_LINES_ABOVE = 8


def code_of(line: str) -> str:
    """Return a line without its comment."""
    return line.split("//", maxsplit=1)[0]


def main() -> int:
    blocks, problems = 0, []
    for path in sorted((ROOT / "rust").glob("*/src/**/*.rs")):
        name = path.relative_to(ROOT)
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if not BLOCK.search(code_of(line)):
                continue
            blocks += 1
            above = "\n".join(lines[max(0, number - MOST_LINES_ABOVE) : number + 1])
            if not REASON.search(above):
                problems.append(f"{name}:{number + 1}: no reason")
            if name.parts[1] != "py":
                problems.append(f"{name}:{number + 1}: not in the bindings")
    core = (ROOT / "rust" / "core" / "src" / "lib.rs").read_text(encoding="utf-8")
    if "#![forbid(unsafe_code)]" not in core:
        problems.append("rust/core does not forbid unsafe code")
    print("".join(f"{problem}\n" for problem in problems), end="")
    print(f"{blocks} unsafe blocks, {len(problems)} without a reason or out of place; the core forbids them")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
