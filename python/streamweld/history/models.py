"""Extract the version from a model name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["claude_version", "gemini_generation", "is_claude_from"]

# Matches `claude-opus-4-6`, `claude-opus-4-20250514` (version 4), `us.anthropic.claude-opus-4-6-v1`, and
# `claude-sonnet-4.5`.
_CLAUDE: Final = re.compile(r"claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")

_GEMINI: Final = re.compile(r"gemini-(\d{1,2})(?!\d)")


def claude_version(model: str | None) -> tuple[int, int] | None:
    """Return the version of a Claude model from version 4 on, or None for older models and other vendors' models.

    >>> claude_version("us.anthropic.claude-opus-4-6-v1"), claude_version("claude-sonnet-4-20250514")
    ((4, 6), (4, 0))
    """
    found = None if model is None else _CLAUDE.search(model)
    return None if found is None else (int(found[1]), int(found[2] or 0))


def is_claude_from(model: str | None, version: Sequence[int] | None) -> bool:
    """Return whether the model is a Claude model of this version or a newer one. False without a version."""
    found = claude_version(model)
    return version is not None and found is not None and found >= tuple(version)


def gemini_generation(model: str | None) -> int | None:
    """Return the generation of a Gemini model, or None for other models.

    >>> gemini_generation("models/gemini-3-pro-preview")
    3
    """
    found = None if model is None else _GEMINI.search(model)
    return None if found is None else int(found[1])
