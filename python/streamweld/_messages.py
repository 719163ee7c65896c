"""Sentences for people: what a diagnostic code means, and where it is explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._spec import CODES

if TYPE_CHECKING:
    from streamweld import Diagnostic

__all__ = ["code_sentence", "diagnostic_help_url", "diagnostic_message", "help_url"]

RULES_PAGE: Final = "https://github.com/streamweld/streamweld/blob/main/docs/rules.md"


def code_sentence(code: str, detail: str) -> str:
    """The sentence of a diagnostic code, with the detail behind a colon.

    Args:
        code: a code of `_spec/diagnostics.json`; an unknown one is its own sentence.
        detail: what depends on the stream; may be empty.
    """
    text = CODES[code].text if code in CODES else code
    return f"{text.rstrip('.')}: {detail}" if detail else text


def help_url(code: str) -> str:
    """The address of the section that explains a diagnostic code."""
    return f"{RULES_PAGE}#{code}"


def diagnostic_message(diagnostic: Diagnostic) -> str:
    return code_sentence(diagnostic.code, diagnostic.detail)


def diagnostic_help_url(diagnostic: Diagnostic) -> str:
    return help_url(diagnostic.code)
