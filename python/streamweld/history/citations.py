"""Convert citations, and the options of documents and search results, between Anthropic and Bedrock Converse.

Both APIs have the same features with other names: https://platform.claude.com/docs/en/build-with-claude/citations;
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CitationsContentBlock.html,
API_runtime_DocumentBlock.html, API_runtime_SearchResultBlock.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.model import Media, NestedPath, Opaque, SharedMember, Text, copied, members_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld.history.model import Part

__all__ = ["CITATIONS", "CITED", "OPTIONS", "for_anthropic", "for_bedrock", "search_result"]

CITATIONS: Final = NestedPath("citationsContent/citations")
CITED: Final = "citations"
OPTIONS: Final = ("context", "citations")  # members of a document
_ANTHROPIC, _BEDROCK = "anthropic", "bedrock-converse"
# For each location: its type and its members in Anthropic's API, in the order of Bedrock's. A web location is missing,
# because Anthropic's has an encrypted index, which only the server can create.
_LOCATIONS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "documentChar": ("char_location", ("document_index", "start_char_index", "end_char_index")),
    "documentPage": ("page_location", ("document_index", "start_page_number", "end_page_number")),
    "documentChunk": ("content_block_location", ("document_index", "start_block_index", "end_block_index")),
    "searchResultLocation": (
        "search_result_location",
        ("search_result_index", "start_block_index", "end_block_index"),
    ),
}
_INDEXES: Final = {"searchResultLocation": "searchResultIndex"}  # other locations: documentIndex


def for_anthropic(part: Part) -> Part:
    """Return the part with the citations or document options of Converse as members of Anthropic's block."""
    if part.origin is None or part.origin.dialect != _BEDROCK:
        return part
    given = dict(part.extra)
    if isinstance(part, Text) and CITATIONS in given:
        made, left = _split(given.pop(CITATIONS), _to_anthropic)
        given |= ({SharedMember(CITED): made} if made else {}) | ({CITATIONS: left} if left else {})
    elif isinstance(part, Media) and part.kind == "file":
        for name in OPTIONS:
            value = given.get(f"document/{name}")
            if _is_option(name, value):
                del given[f"document/{name}"]
                given[SharedMember(name)] = value
    return part if given == part.extra else copied(part, extra=given)


def for_bedrock(part: Part) -> tuple[Part, dict[str, Any]]:
    """Split off the citations or document options of an Anthropic block that Converse can express.

    Return the part without them, and the corresponding members of the Converse block.
    """
    if part.origin is None or part.origin.dialect != _ANTHROPIC:
        return part, {}
    given = dict(part.extra)
    found: dict[str, Any] = {}
    if isinstance(part, Text) and CITED in given:
        made, left = _split(given.pop(CITED), _to_bedrock)
        found = {CITED: made} if made else {}
        given |= {CITED: left} if left else {}
    elif isinstance(part, Media) and part.kind == "file":
        found = {name: given.pop(name) for name in OPTIONS if _is_option(name, given.get(name))}
    return (part, {}) if not found else (copied(part, extra=given), found)


def search_result(part: Opaque, target: str) -> tuple[Opaque, dict[str, Any]] | None:
    """Return a search result in the format of the other of the two APIs, and its members that the format does not
    have. Return None for other parts and targets.
    """
    raw = members_of(part.raw)
    own, new = ("search_result", "searchResult") if target == _BEDROCK else ("searchResult", "search_result")
    if part.kind != own or part.dialect == target or target not in (_ANTHROPIC, _BEDROCK):
        return None
    given = raw if own == "search_result" else members_of(raw.get(own))
    blocks: Any = given.get("content")
    texts = [members_of(block).get("text") for block in _listed(blocks)]
    if not texts or not all(isinstance(text, str) for text in (*texts, given.get("source"), given.get("title"))):
        return None
    made: dict[str, Any] = {"source": given["source"], "title": given["title"]}
    marks = {"type": "text"} if target == _ANTHROPIC else {}
    made["content"] = [{**marks, "text": text} for text in texts]
    if _is_option("citations", given.get("citations")):
        made["citations"] = given["citations"]
    left = {name: value for name, value in given.items() if name not in made and name != "type" and value is not None}
    made = {"type": new, **made} if target == _ANTHROPIC else {new: made}
    return Opaque(path=part.path, raw=made, kind=new, dialect=target), left


def _is_option(name: str, value: Any) -> bool:
    return isinstance(value, str) if name == "context" else isinstance(members_of(value).get("enabled"), bool)


def _listed(value: Any) -> list[Any]:
    return value if value.__class__ is list else []


def _split(citations: Any, convert: Any) -> tuple[list[Any], list[Any]]:
    """Return the converted citations, and those that cannot be converted."""
    given = _listed(citations) if citations.__class__ is list else [citations]
    pairs = [(convert(members_of(citation)), citation) for citation in given if citation is not None]
    return [made for made, _ in pairs if made is not None], [citation for made, citation in pairs if made is None]


def _to_anthropic(citation: Mapping[str, Any]) -> dict[str, Any] | None:
    for name, value in members_of(citation.get("location")).items():
        if name not in _LOCATIONS:
            continue
        kind, members = _LOCATIONS[name]
        place = members_of(value)
        steps = [place.get(_INDEXES.get(name, "documentIndex")), place.get("start"), place.get("end")]
        sources: Any = citation.get("sourceContent")
        text = "".join([text for source in _listed(sources) if isinstance(text := members_of(source).get("text"), str)])
        if not all(isinstance(step, int) for step in steps):
            return None
        made = {"type": kind, "cited_text": text, **dict(zip(members, steps, strict=True))}
        if name == "searchResultLocation":
            return {**made, "source": citation.get("source") or "", "title": citation.get("title")}
        return {**made, "document_title": citation.get("title")}
    return None


def _to_bedrock(citation: Mapping[str, Any]) -> dict[str, Any] | None:
    for name, (kind, members) in _LOCATIONS.items():
        if citation.get("type") != kind:
            continue
        steps = [citation.get(member) for member in members]
        if not all(isinstance(step, int) for step in steps):
            return None
        place = dict(zip((_INDEXES.get(name, "documentIndex"), "start", "end"), steps, strict=True))
        made: dict[str, Any] = {"location": {name: place}}
        title = citation.get("title", citation.get("document_title"))
        texts = {"title": title, "source": citation.get("source")}
        made |= {member: value for member, value in texts.items() if isinstance(value, str)}
        if isinstance(citation.get("cited_text"), str):
            made["sourceContent"] = [{"text": citation["cited_text"]}]
        return made
    return None
