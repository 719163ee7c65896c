"""Sentences for people: what a diagnostic code means, and where it is explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._spec import CODES

if TYPE_CHECKING:
    from streamweld import Diagnostic

__all__ = ["RULES_PAGE", "code_sentence", "diagnostic_help_url", "diagnostic_message", "error_help_url", "help_url"]

_DOCS: Final = "https://github.com/streamweld/streamweld/blob/main/docs"
RULES_PAGE: Final = f"{_DOCS}/rules.md"


def code_sentence(code: str, detail: str) -> str:
    """The sentence of a diagnostic code, with the detail behind a colon.

    Args:
        code: a code of `_spec/diagnostics.json`; an unknown one is its own sentence.
        detail: what depends on the stream; may be empty.
    """
    text = CODES[code].text if code in CODES else code
    return f"{text.rstrip('.')}: {detail}" if detail else text


def help_url(code: str) -> str:
    """The address of the section that explains a diagnostic code or a rule of the checker."""
    return f"{RULES_PAGE}#{code}"


def error_help_url(rule: str) -> str:
    """The address of the section that explains the rule of a `StreamError`."""
    if rule in CODES:
        return help_url(rule)
    return f"{_DOCS}/concepts/{'limits.md' if rule.startswith('limit_') else 'policies.md#errors'}"


def diagnostic_message(diagnostic: Diagnostic) -> str:
    return code_sentence(diagnostic.code, diagnostic.detail)


def diagnostic_help_url(diagnostic: Diagnostic) -> str:
    return help_url(diagnostic.code)
