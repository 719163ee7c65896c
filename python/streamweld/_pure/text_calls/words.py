"""Finds what changes the meaning of text: reasoning, quoting elements, sections, messages, backticks, and list items.

All literals come from the settings (`_spec/text_calls.json`).
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from streamweld._pure.text_calls.quotes import NAME_CHAR, QuotingMarks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamweld._pure.text_calls.families import Settings

__all__ = ["Closer", "Kind", "Words", "words_of"]

_FLAGS: Final = re.IGNORECASE | re.ASCII
_RUNS: Final = "`+|~{3,}"
_BLANK: Final = " \t\r"  # white space within a line
_NAME_END: Final = r"(?=[ \t\r/>]|$)"


class Kind(Enum):
    """What a closing literal ends."""

    REASONING = "reasoning"
    ELEMENT = "element"
    SECTION = "section"
    MESSAGE = "message"


class Closer:
    """What ends reasoning, a quoting element, a section or a message."""

    __slots__ = ("kind", "literal", "longest", "opener", "pattern", "prefixes")

    def __init__(self, kind: Kind, opener: str, literal: str) -> None:
        self.kind = kind
        self.opener = opener
        self.literal = literal
        pattern = re.escape(literal)
        prefixes = _prefixes([literal])
        if kind is Kind.ELEMENT:  # white space may precede the `>` of a closing tag; elements of the same name nest
            pattern = f"{re.escape(literal[:-1])}[{_BLANK}]*>|{re.escape(opener)}{_NAME_END}"
            prefixes |= _prefixes([opener + " "])
        elif kind is Kind.MESSAGE:  # the character after the closer determines whether it is quoted
            # A closer may end in a role, which must not be the beginning of a longer name.
            end = f"(?!{NAME_CHAR})" if re.fullmatch(NAME_CHAR, literal[-1]) else ""
            pattern = f"{_RUNS}|{pattern}{end}"
            prefixes |= {literal}
        self.pattern = re.compile(pattern, _FLAGS)
        self.prefixes = prefixes
        self.longest = max(map(len, prefixes), default=0)

    def nests(self, found: str) -> bool:
        """Return True if a match of the pattern opens another element, instead of ending one."""
        return self.kind is Kind.ELEMENT and found == self.opener


class Words:
    """Literals that change the meaning of text, and the marks of list items and table rows."""

    __slots__ = (
        "_beginnings",
        "_longest",
        "_prefixes",
        "_table_marks",
        "list_item",
        "marks",
        "numbered",
        "openers",
        "quotation",
        "quoting",
        "reasoning",
        "roles",
        "row_starts",
    )

    def __init__(self, settings: Settings) -> None:
        closers = [
            *[Closer(Kind.REASONING, opener.lower(), closer.lower()) for opener, closer in settings.reasoning_tags],
            *[Closer(Kind.ELEMENT, f"<{name.lower()}", f"</{name.lower()}>") for name in settings.quoting],
            *[Closer(Kind.SECTION, opener.lower(), closer.lower()) for opener, closer in settings.sections],
            *[Closer(Kind.MESSAGE, opener.lower(), closer.lower()) for opener, _, closer in settings.messages],
        ]
        self.openers = {closer.opener: closer for closer in closers}
        self.reasoning = {closer.literal: closer for closer in closers if closer.kind is Kind.REASONING}
        # The role of the model, for each opener that it may follow.
        roles = {opener.lower(): role.lower() for opener, role, _ in settings.messages if role is not None}
        names = [closer.opener for closer in closers if closer.kind is Kind.ELEMENT]
        # The rests of closers that share their first characters with the end of the opener. HTML reads `<!-->` and
        # `<!--->` as complete comments: https://html.spec.whatwg.org/multipage/parsing.html#comment-start-state
        ends = {closer.opener: _shared(closer) for closer in closers if closer.kind is Kind.SECTION}
        whole = self.openers.keys() - roles.keys() - set(names) | self.reasoning.keys()
        parts = [(word, re.escape(word) + _not_before(ends.get(word, []))) for word in whole]
        parts += [(name, re.escape(name) + _NAME_END) for name in names]
        parts += [
            (opener, rf"{re.escape(opener)}(?!{re.escape(role)}(?!{NAME_CHAR}))") for opener, role in roles.items()
        ]
        tags = "|".join([pattern for _, pattern in sorted(parts, key=lambda part: (-len(part[0]), part[0]))])
        self._table_marks = frozenset(settings.table_marks)
        rows = _any_of(settings.table_marks)
        self.marks = re.compile(rf"{_RUNS}|(?<!<)(?:{rows})(?!>)|{tags}", _FLAGS)
        named = [opener + role for opener, role in roles.items()]
        words = [*whole, *[name + " " for name in names], *[word + " " for word in named]]
        words += [opener + end for opener, shared in ends.items() for end in shared]
        self._prefixes = _prefixes(words)
        self._longest = max(len(word) for word in words)
        self._beginnings = _prefixes(self.openers)
        # Every opener with the beginning of the model's role, or with the whole role.
        self.roles = frozenset(opener + role[:end] for opener, role in roles.items() for end in range(len(role) + 1))
        self.quoting = QuotingMarks(settings)
        items = [
            _any_of(settings.list_marks),
            r"[0-9]+[.)]",
            r"[A-Za-z][.)]",
            r"[ivxIVX]{2,4}[.)]",
            r"\([0-9A-Za-z]{1,3}\)",
        ]
        item = f"(?:{'|'.join(items)})"
        self.list_item = re.compile(rf"{item}(?:[{_BLANK}]|$)")
        # The beginning of a line that quotes: `>`, which list markers and the box of a task may precede.
        self.quotation = re.compile(rf"(?:{item}[{_BLANK}]+(?:\[[ xX]\][{_BLANK}]+)?)*>")
        self.numbered = re.compile(rf"[0-9]+(?:[.):\t→]|{rows}|[ \r]{{2}})")
        self.row_starts = tuple(settings.table_marks)

    def pattern(self, closer: Closer | None) -> re.Pattern[str]:
        """Return what to search for. `closer`: the end of the open reasoning, element, section, or message."""
        return self.marks if closer is None else closer.pattern

    def is_row_mark(self, mark: str) -> bool:
        return mark in self._table_marks

    def beginning(self, text: str, closer: Closer | None) -> str:
        """Return the text if it is the beginning of an opener that counts here; otherwise an empty string."""
        beginnings = self._beginnings if closer is None else _prefixes([closer.opener])
        is_searched = closer is None or closer.kind is Kind.ELEMENT
        return text if is_searched and text.lower() in beginnings else ""

    def opens(self, found: str, closer: Closer | None) -> bool:
        """Return True if a match of the pattern is an opener."""
        return found in self.openers if closer is None else closer.nests(found)

    def settled(self, text: str, at: int, closer: Closer | None) -> int:
        """Return the offset from which the rest of the text may be the beginning of a literal, a run, or `|>`. Return
        the text's length if no end of the text may be one.
        """
        prefixes, longest = (self._prefixes, self._longest) if closer is None else (closer.prefixes, closer.longest)
        if closer is not None and closer.kind is Kind.ELEMENT:
            start = len(text.rstrip(_BLANK)) - len(closer.literal) + 1
            if start >= at and text[start:].rstrip(_BLANK).lower() == closer.literal[:-1]:
                return start
        for position in range(max(at, len(text) - longest), len(text)):
            if text[position:].lower() in prefixes:
                return position
        if closer is None and text[-1:] in self._table_marks:
            return max(at, len(text) - 1)
        if closer is None or closer.kind is Kind.MESSAGE:
            return max(at, len(text.rstrip("`~")))
        return len(text)


def _shared(closer: Closer) -> list[str]:
    """Return what is left of the closer after each of its beginnings that is also an end of the opener."""
    opener, literal = closer.opener, closer.literal
    return [literal[size:] for size in range(1, len(literal)) if opener.endswith(literal[:size])]


def _not_before(words: Iterable[str]) -> str:
    return "".join([f"(?!{re.escape(word)})" for word in words])


def _any_of(marks: Iterable[str]) -> str:
    return "|".join([re.escape(mark) for mark in marks])


def _prefixes(words: Iterable[str]) -> frozenset[str]:
    """Return the proper prefixes of words."""
    return frozenset(word[:end] for word in words for end in range(1, len(word)))


@lru_cache(maxsize=16)
def words_of(settings: Settings) -> Words:
    return Words(settings)
