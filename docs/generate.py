"""Generate the documentation pages that come from data: rules, events, the command line, gateways, the changelog.

    python docs/generate.py            write the generated pages that are checked in
    python docs/generate.py --check    exit with 1 if one of them is out of date

The sources are `python/streamweld/_spec/*.json`, the vectors in `tests/vectors/`, and the definitions of the events and
the command line. The bytes before and after a repair come from running streamweld on a vector. The site's hooks
(`docs/site/hooks.py`) add the pages to the build.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT / "docs") not in sys.path:
    sys.path.insert(0, str(ROOT / "docs"))

import api_summary  # noqa: E402 (found through the path above)

VECTORS = ROOT / "tests" / "vectors"
SPEC = ROOT / "python" / "streamweld" / "_spec"
REPOSITORY = "https://github.com/streamweld/streamweld"
DIALECTS = ("chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui")
BASE_POLICIES = ("strict", "standard", "salvage")
LONGEST_EXAMPLE = 60  # lines
WIDEST_EXAMPLE = 600  # characters of a line
MOST_LINKS = 12
MOST_CHANGED = 3  # lines of each side in a short diff
NARROW = 240  # characters of a line in a short diff
MOST_COMPARED = 60  # lines
TEXT_CALLS = "text_calls/wire"  # a folder of vectors: Chat Completions streams

# The documents that `_spec/rules.json` cites by name.
DOCUMENTS = {
    "whatwg": "https://html.spec.whatwg.org/multipage/server-sent-events.html",
    "json": "https://www.rfc-editor.org/rfc/rfc8259",
    "openai-chat": "https://platform.openai.com/docs/api-reference/chat-streaming",
    "openai-python": "https://github.com/openai/openai-python",
    "openresponses": "https://www.openresponses.org/specification",
    "openresponses-schema": "https://www.openresponses.org/specification",
    "openresponses-suite": "https://www.openresponses.org/compliance",
    "anthropic": "https://platform.claude.com/docs/en/build-with-claude/streaming",
    "anthropic-api": "https://platform.claude.com/docs/en/api/messages",
    "anthropic-python": "https://github.com/anthropics/anthropic-sdk-python",
    "gemini": "https://ai.google.dev/api/generate-content",
    "google-errors": "https://cloud.google.com/apis/design/errors",
    "ai-provider": "https://github.com/vercel/ai/tree/main/packages/provider",
    "ai-streamtext": "https://github.com/vercel/ai/tree/main/packages/ai/src/generate-text",
    "ai-ui": "https://github.com/vercel/ai/blob/main/packages/ai/src/ui-message-stream/ui-message-chunks.ts",
    "ai-ui-docs": "https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol",
    "ai-reducer": "https://github.com/vercel/ai/blob/main/packages/ai/src/ui/process-ui-message-stream.ts",
}
# The names by which the other tables and the vectors cite documents.
NAMED_DOCUMENTS = {
    "Anthropic, Messages API reference": DOCUMENTS["anthropic-api"],
    "AI SDK specification": DOCUMENTS["ai-provider"],
    "OpenAI API reference, Chat Completions": "https://platform.openai.com/docs/api-reference/chat",
    "OpenAI API reference, Responses": "https://platform.openai.com/docs/api-reference/responses",
    "OpenResponses": DOCUMENTS["openresponses"],
    "litellm, prompt_templates": "https://github.com/BerriAI/litellm",
    "mistral-common": "https://github.com/mistralai/mistral-common",
    "openai-python": DOCUMENTS["openai-python"],
    "pydantic-ai": "https://github.com/pydantic/pydantic-ai",
    "vercel/ai": "https://github.com/vercel/ai",
}
# The documents for diagnostics that are based on a standard.
STANDARDS = {
    "invalid_utf8": "whatwg",
    "unterminated_event": "whatwg",
    "stray_payload": "whatwg",
    "lines_joined": "whatwg",
    "json_lines": "whatwg",
    "duplicate_key": "json",
    "numeric_overflow": "json",
    "lone_surrogate": "json",
    "malformed_json": "json",
    "upstream_error": "openai-chat",
    "no_terminal_marker": "openai-chat",
    "finish_unknown": "openai-chat",
    "finish_missing": "openai-chat",
    "finish_repeated": "openai-chat",
    "finish_contradicts": "openai-chat",
    "content_restated": "openai-chat",
    "array_body": "gemini",
    "message_repeated": "anthropic",
    "block_left_open": "anthropic",
    "sequence_replayed": "openresponses",
    "sequence_untrusted": "openresponses",
}


@cache
def spec(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((SPEC / f"{name}.json").read_text("utf-8"))
    return data


# ---- vectors --------------------------------------------------------------------------------------------------------


@dataclass
class Vector:
    """One test case in a vector file."""

    folder: str
    file: str
    test: dict[str, Any]
    body: bytes = b""

    @property
    def place(self) -> str:
        return f"`tests/vectors/{self.folder}/{self.file}`, `{self.test['name']}`"

    @property
    def why(self) -> str:
        return str(self.test.get("why", ""))

    @property
    def size(self) -> int:
        return len(self.body) or len(json.dumps(self.test))


@dataclass
class Found:
    """The vectors that demonstrate one code.

    The best example is short, has no options, and links to a public report.
    """

    vectors: list[Vector] = field(default_factory=list)

    @property
    def example(self) -> Vector:
        def order(vector: Vector) -> tuple[bool, bool, int, str, str]:
            special = bool(vector.test.get("options"))
            return not references(vector.why), special, vector.size, vector.folder, vector.test["name"]

        return min(self.vectors, key=order)

    def links(self) -> list[str]:
        seen: dict[str, None] = {}
        for vector in self.vectors:
            seen.update(dict.fromkeys(references(vector.why)))
        return list(seen)


def joined(piece: Any) -> bytes:
    """The bytes for one entry of `chunks` (tests/vectors/README.md, section Bytes)."""
    if isinstance(piece, str):
        return piece.encode("utf-8", "surrogatepass")
    if isinstance(piece, list):
        return b"".join(joined(part) for part in piece)
    if "hex" in piece:
        return bytes.fromhex(piece["hex"])
    text: str = piece["text"]
    return text.encode() * int(piece["times"])


def vectors(folder: str) -> list[Vector]:
    return [
        Vector(folder, path.name, test, joined(test.get("chunks", [])))
        for path in sorted((VECTORS / folder).glob("*.json"))
        for test in json.loads(path.read_text("utf-8"))["tests"]
    ]


ISSUE = r"\b[\w.-]+/[\w.-]+[#!]\d+\b"  # `owner/name#1` is an issue there, `owner/name!1` a pull request
ADDRESS = r"https?://[^\s;,)]+"


def link(found: str) -> str:
    """One address, issue, or document name as a Markdown link."""
    if found in NAMED_DOCUMENTS:
        return f"[{escaped(found)}]({NAMED_DOCUMENTS[found]})"
    if found.startswith("http"):
        return f"<{found}>"
    repository, kind, number = re.split("([#!])", found)
    place = "issues" if kind == "#" else "pull"
    return f"[{repository}#{number}](https://github.com/{repository}/{place}/{number})"


def references(why: str) -> list[str]:
    """The public links in a vector's `why`."""
    return [link(match[0].rstrip(".")) for match in re.finditer(f"{ADDRESS}|{ISSUE}", why)]


def linked(text: str) -> str:
    """Text from the data as Markdown: addresses, issues and document names become links, and the rest is escaped."""
    out, last = [], 0
    for match in re.finditer("|".join([ADDRESS, ISSUE, *map(re.escape, NAMED_DOCUMENTS)]), text):
        found = match[0].rstrip(".")
        out += [escaped(text[last : match.start()]), link(found)]
        last = match.start() + len(found)
    return "".join([*out, escaped(text[last:])])


def escaped(text: str) -> str:
    """The text without Markdown syntax, except code spans. In a table, a `|` also ends the cell inside a code span."""
    parts = re.split(r"(`[^`]+`)", text)
    parts[::2] = [re.sub(r"([\\`*_\[\]|<>])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [part.replace("|", r"\|") for part in parts[1::2]]
    return "".join(parts)


def sentence(text: str) -> str:
    """The text of a rule as a sentence. A name at its start, such as `item_id` or `toolCall`, keeps its spelling."""
    text = text.strip()
    if not re.match(r"\w*(?:\\?_|[A-Z])", text):
        text = text[:1].upper() + text[1:]
    return text + ("" if text.endswith((".", "?", "!")) else ".")


def shown(body: bytes) -> str:
    """Bytes as a code block: valid UTF-8 as text, anything else with escapes. Long bodies are truncated."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = body.decode("latin-1").encode("unicode_escape").decode().replace("\\n", "\n")
    text = "".join(char if char in "\n\t" or char.isprintable() else f"\\x{ord(char):02x}" for char in text)
    lines = text.rstrip("\n").split("\n")
    kept = [line if len(line) <= WIDEST_EXAMPLE else line[:WIDEST_EXAMPLE] + " …" for line in lines[:LONGEST_EXAMPLE]]
    if len(lines) > LONGEST_EXAMPLE:
        kept.append(f"… ({len(lines) - LONGEST_EXAMPLE} more lines)")
    return "````text\n" + "\n".join(kept) + "\n````"


def shown_json(value: Any) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    lines = text.split("\n")
    if len(lines) > 2 * LONGEST_EXAMPLE:
        return "````text\n" + "\n".join(lines[: 2 * LONGEST_EXAMPLE]) + "\n… (cut)\n````"
    return f"````json\n{text}\n````"


# ---- running streamweld ---------------------------------------------------------------------------------------------


def parser_options(options: dict[str, Any]) -> dict[str, Any]:
    """A vector's options as keyword arguments of `StreamParser`."""
    import streamweld as sw

    out = dict(options)
    if isinstance(out.get("policy"), dict):
        policy = dict(out["policy"])
        out["policy"] = sw.Policy(policy.pop("base", "standard"), **policy)
    if isinstance(out.get("limits"), dict):
        out["limits"] = sw.Limits(**out["limits"])
    return out


@cache
def diagnosed() -> dict[str, Found]:
    """Map each diagnostic code to the vectors in which it occurs, found by running all vectors of whole streams."""
    import streamweld as sw

    found = {code: Found() for code in spec("diagnostics")["codes"]}
    for folder in (*DIALECTS, TEXT_CALLS):
        for vector in vectors(folder):
            if len(vector.body) > 20_000:
                continue
            dialect = "chat" if folder == TEXT_CALLS else folder
            parser = sw.StreamParser(**{"dialect": dialect} | parser_options(vector.test.get("options", {})))
            try:
                parser.feed(vector.body)
                parser.close(broken=vector.test.get("end") == "broken")
            except sw.StreamError as fault:
                if fault.rule in found:
                    found[fault.rule].vectors.append(vector)
            for code in {note.code for note in parser.diagnostics}:
                if vector not in found[code].vectors:
                    found[code].vectors.append(vector)
    for folder, code in (("repair", "rewritten"), ("convert", "not_carried")):
        for vector in vectors(folder):
            if len(vector.body) < 20_000 and any(note.code == code for note in converted(vector)[1].diagnostics):
                found[code].vectors.append(vector)
    return found


def converted(vector: Vector) -> tuple[bytes, Any]:
    """The output for one vector, in its target dialect or, without one, repaired in its own dialect."""
    import streamweld as sw

    options = parser_options(vector.test.get("options", {}))
    options.pop("dialect", None)
    options.setdefault("seed", "docs")
    source = vector.test.get("source") or vector.test.get("dialect")
    if source is None:
        source = vector.folder if vector.folder in DIALECTS else "auto"
    converter = sw.StreamConverter(source=source, target=vector.test.get("target", "same"), **options)
    out = converter.feed(vector.body) + converter.close(broken=vector.test.get("end") == "broken")
    return out, converter


# ---- pages of rules -------------------------------------------------------------------------------------------------


def evidence(links: list[str], extra: list[str] | None = None) -> list[str]:
    every = [*(extra or []), *[link for link in links if link not in (extra or [])]]
    lines = [f"- {link}" for link in every[:MOST_LINKS]]
    if len(every) > MOST_LINKS:
        lines.append(f"- and {len(every) - MOST_LINKS} more in the vectors")
    return lines


def standard(code: str) -> list[str]:
    """The document on which a diagnostic code is based, if any."""
    if code not in STANDARDS:
        return []
    key = STANDARDS[code]
    return [f"[{spec('rules')['sources'][key]}]({DOCUMENTS[key]})"]


OUTPUT_CODES = ("rewritten", "not_carried")  # a repair or conversion emits this code about its own output


def effect(name: str, code: dict[str, Any]) -> str:
    """Describe what `repair` does when this code is reported."""
    if name in OUTPUT_CODES:
        return "A repair or conversion emits this diagnostic about the output that it writes."
    if name == "finish_contradicts":
        return (
            "`repair` does not change a finish reason because of this diagnostic alone. If `repair` rewrites the "
            "choice because of another diagnostic, it writes the corrected finish reason."
        )
    return {
        "payload": "`repair` omits the payload that caused the diagnostic.",
        "stream": "`repair` rewrites the stream, starting with the event that caused the diagnostic.",
        None: "`repair` does not change a stream because of this diagnostic alone: clients read the stream correctly, "
        "or a change would not help them.",
    }[code.get("mends")]


def advice(code: dict[str, Any]) -> str:
    """Describe what a user can do when this code is reported."""
    return str(spec("diagnostics")["advice"][code["advice"]])


def action(code: dict[str, Any], base: str) -> str:
    default = "raise" if base == "strict" and code["severity"] != "info" else "diagnose"
    return str(code.get("actions", {}).get(base, default))


def actions(code: dict[str, Any]) -> str:
    """Describe what each base policy does when this code is reported."""
    phrases = {
        "raise": f"raises `{code.get('raises')}`",
        "diagnose": "records the diagnostic and continues",
        "skip": "records the diagnostic and skips the payload",
    }
    policies: dict[str, list[str]] = {}
    for base in BASE_POLICIES:
        policies.setdefault(action(code, base), []).append(f"`{base}`")
    if len(policies) == 1:
        return f"Every policy {phrases[next(iter(policies))]}."
    clauses = [
        f"the policy {names[0]} {phrases[each]}"
        if len(names) == 1
        else f"the policies {' and '.join(names)} {plural(phrases[each])}"
        for each, names in policies.items()
    ]
    return sentence(", and ".join(clauses))


def plural(phrase: str) -> str:
    """The verbs of a phrase in the plural."""
    return re.sub(r"\b(raise|record|continue|skip)s\b", r"\1", phrase)


def code_page(name: str, code: dict[str, Any]) -> str:
    found = diagnosed()[name]
    lines = [
        f"# {name}",
        "",
        f"**{sentence(escaped(code['text']))}**",
        "",
        "| property | value |",
        "|---|---|",
        f"| Kind | diagnostic, severity {code['severity']} |",
        f"| Action | {', '.join(f'`{base}`: {action(code, base)}' for base in BASE_POLICIES)} |",
    ]
    if "raises" in code:
        lines.append(f"| Exception, if the action is `raise` | [`{code['raises']}`](../reference/errors.md) |")
    if code.get("detail"):
        lines.append(f"| `detail` | {sentence(escaped(code['detail']))} |")
    lines += [
        f"| Repair in flight | {effect(name, code)} |",
        f"| What to do | {advice(code)} |",
        "",
        f'Change the action with `Policy(actions={{"{name}": "raise"}})`; see [Policies](../concepts/policies.md).',
        "",
    ]
    if "details" in code:
        lines += ["## Values of `detail`", "", *detail_values(code)]
    if found.vectors:
        example = found.example
        lines += ["## Why", "", sentence(linked(example.why)), "", "## Example", "", f"Vector: {example.place}.", ""]
        lines += before_and_after(example)
    links = evidence(found.links(), standard(name))
    if links:
        lines += ["", "## Evidence", "", *links]
    return "\n".join([*lines, ""])


def detail_values(code: dict[str, Any]) -> list[str]:
    """A table of the values of `detail`, if the code has a fixed set of them."""
    rows = [f"| `{value}` | {escaped(meaning)} |" for value, meaning in code.get("details", {}).items()]
    return ["| `detail` | meaning |", "|---|---|", *rows, ""] if rows else []


def changed_lines(name: str, vector: Vector) -> list[str]:
    """A short diff of the lines that a repair or conversion changes, or the line of the diagnostic if none changes."""
    out, converter = converted(vector)
    before, after = text_lines(vector.body), text_lines(out)
    target = vector.test.get("target", "same")
    options = {key: value for key, value in (vector.test.get("options") or {}).items() if key != "seed"}
    under = f" with the options `{json.dumps(options)}`" if options else ""
    if before == after:
        places = [note.byte_offset for note in converter.diagnostics if note.code == name]
        at = vector.body.count(b"\n", 0, places[0]) if places else 0
        kept = [line for line in before[at:] if line][:1] or before[:1]
        intro = f"`repair` does not change the stream of the test vector{under}. The diagnostic refers to this line."
        return [intro, "", "```text", *map(narrow, kept), "```", ""]
    how = "repair" if target == "same" else f"conversion to `{target}`"
    removed: list[str] = []
    added: list[str] = []
    for line in difflib.ndiff(before, after) if max(len(before), len(after)) < MOST_COMPARED else ():
        if line[2:].strip():
            {"-": removed, "+": added}.get(line[0], []).append(line)
    if not (removed or added):
        removed, added = ["- " + line for line in before if line], ["+ " + line for line in after if line]
    rows = [*short_list(removed, "-"), *short_list(added, "+")]
    report = reported_as(name, converter.diagnostics)
    intro = f"{report}The diff shows the lines of the test vector before (`-`) and after (`+`) the {how}{under}."
    return [intro, "", "```diff", *rows, "```", ""]


def reported_as(name: str, diagnostics: list[Any]) -> str:
    """A sentence with the codes that report the repair, if `name` is not one of them."""
    codes = spec("diagnostics")["codes"]
    if name in OUTPUT_CODES or codes[name].get("mends"):
        return ""
    causes = {
        f"[`{note.code}`](#{note.code})" + (f" (`{note.detail}`)" if note.code == "rewritten" else "")
        for note in diagnostics
        if note.code == "rewritten" or codes[note.code].get("mends")
    }
    if not causes:
        return ""
    *others, last = sorted(causes)
    reasons = f"{', '.join(others)} and {last}" if others else last
    return f"In the test vector, `repair` changes the stream because of {reasons}. "


def short_list(lines: list[str], sign: str) -> list[str]:
    more = len(lines) - MOST_CHANGED
    return [*map(narrow, lines[:MOST_CHANGED]), *([f"{sign} … ({more} more)"] if more > 0 else [])]


def narrow(line: str) -> str:
    return line if len(line) <= NARROW else line[:NARROW] + " …"


def text_lines(body: bytes) -> list[str]:
    return shown(body).split("\n")[1:-1] if body else []


def before_and_after(vector: Vector) -> list[str]:
    options = vector.test.get("options") or {}
    lines = [f"Options: `{json.dumps(options)}`.", ""] if options else []
    out, converter = converted(vector)
    lines += ["**Bytes before**", "", shown(vector.body), ""]
    target = vector.test.get("target", "same")
    if target != "same":
        title = f"Bytes after conversion to `{target}`"
    elif out == vector.body:
        return [*lines, "**Bytes after repair**: unchanged.", "", *noted(converter)]
    else:
        title = "Bytes after repair"
    lines += [f"**{title}**", "", shown(out) if out else "(nothing)", ""]
    return [*lines, *noted(converter)]


def columns(note: Any) -> str:
    place = f"{note.byte_offset} | {note.event_ordinal}"
    return f"| {place} | {note.severity} | `{note.code}` | {escaped(note.detail[:120])} |"


def noted(converter: Any) -> list[str]:
    """A table of the diagnostics and the error of a conversion."""
    rows = [columns(note) for note in converter.diagnostics]
    lines = ["| byte | event | severity | code | detail |", "|--:|--:|---|---|---|", *rows, ""] if rows else []
    if converter.error is not None:
        lines += [f"Error: `{type(converter.error).__name__}`, {escaped(str(converter.error)[:200])}.", ""]
    return lines


@dataclass(frozen=True)
class CheckRule:
    """One rule of `streamweld.check`."""

    id: str
    severity: str
    basis: str
    document: str
    section: str
    text: str

    @property
    def source(self) -> str:
        if self.document not in DOCUMENTS:
            return f"{escaped(self.section)} (streamweld's own rule)"
        return f"[{spec('rules')['sources'][self.document]}]({DOCUMENTS[self.document]}), {escaped(self.section)}"


BASES = {
    "text": "the document says so",
    "reader": "official readers of the dialect need it",
    "reading": "a stricter reading of the document, or common practice",
}


@cache
def check_rules() -> dict[str, CheckRule]:
    return {
        f"{family}.{name}": CheckRule(f"{family}.{name}", *row)
        for family, rules in spec("rules")["rules"].items()
        for name, row in rules.items()
    }


@cache
def violating() -> dict[str, Found]:
    found = {rule: Found() for rule in check_rules()}
    for vector in vectors("check"):
        for rule in {violation[0] for violation in vector.test["violations"]}:
            found[rule].vectors.append(vector)
    return found


def check_page(rule: CheckRule) -> str:
    found = violating()[rule.id]
    lines = [
        f"# {rule.id}",
        "",
        f"**{sentence(escaped(rule.text))}**",
        "",
        "| property | value |",
        "|---|---|",
        f"| Kind | rule of [`streamweld check`](../guides/lint-a-gateway.md), severity {rule.severity} |",
        f"| Source | {rule.source} |",
        f"| Basis | {BASES[rule.basis]} |",
        "",
    ]
    if rule.id in spec("rules")["breaks_client"]:
        lines += ["## Clients", "", "These clients misread or reject a stream that breaks this rule:", ""]
        lines += ["| client | version | what it does |", "|---|---|---|"]
        for client, row in spec("rules")["breaks_client"][rule.id].items():
            lines.append(f"| {client} | {row['version']} | {row['effect']} |")
        lines.append("")
    if not found.vectors:
        return "\n".join(lines)
    example = found.example
    lines += ["## Why", "", sentence(linked(example.why)), "", "## Example", "", f"Vector: {example.place}.", ""]
    lines += ["| rule | event | byte |", "|---|--:|--:|"]
    lines += [f"| `{name}` | {ordinal} | {offset} |" for name, ordinal, offset in example.test["violations"]]
    return "\n".join([*lines, "", *before_and_after(example), ""])


def history_page(kind: str, name: str, rule: dict[str, str]) -> str:
    is_edit = kind == "history"
    what = "edit of `streamweld.history.convert`" if is_edit else "check of `streamweld.history.check`"
    lines = [
        f"# {kind}.{name}",
        "",
        f"**{sentence(escaped(rule['text']))}**",
        "",
        "| property | value |",
        "|---|---|",
        f"| Kind | {what}, severity {rule['severity']} |",
        f"| Source | {linked(rule['source'])} |",
        "",
    ]
    found = history_found()[f"{kind}.{name}"]
    if not found.vectors:
        return "\n".join(lines)
    example = found.example
    given = {key: example.test[key] for key in ("source", "target", "gateway", "policy") if key in example.test}
    lines += ["## Why", "", sentence(linked(example.why)), "", "## Example", "", f"Vector: {example.place}.", ""]
    lines += [", ".join(f"`{key}={value!r}`" for key, value in given.items()) + ".", "", "**Before**", ""]
    lines += [shown_json(example.test["messages"]), ""]
    if is_edit:
        lines += ["**After**", "", shown_json(example.test["payload"]), ""]
    else:
        lines += ["| rule | path |", "|---|---|"]
        lines += [f"| `{rule}` | `{path or '/'}` |" for rule, path in example.test["violations"]] + [""]
    return "\n".join(lines)


@cache
def history_found() -> dict[str, Found]:
    table = spec("history_rules")
    found = {f"history.{name}": Found() for name in table["edits"]}
    found |= {f"history_check.{name}": Found() for name in table["checks"]}
    for folder, kind, key in (("history", "history", "edits"), ("history_check", "history_check", "violations")):
        for vector in vectors(folder):
            for name in {row[0] for row in vector.test.get(key, [])}:
                if f"{kind}.{name}" in found:
                    found[f"{kind}.{name}"].vectors.append(vector)
    return found


def request_page(name: str, rule: dict[str, str]) -> str:
    lines = [
        f"# requests.{name}",
        "",
        f"**{sentence(escaped(rule['text']))}**",
        "",
        "| property | value |",
        "|---|---|",
        f"| Kind | rule of `streamweld.requests`, severity {rule['severity']} |",
        f"| Source | {linked(rule['source'])} |",
        "",
    ]
    found = Found([v for v in vectors("requests") if name in {row[0] for row in v.test.get("edits", [])}])
    if not found.vectors:
        return "\n".join(lines)
    example = found.example
    given = {key: example.test[key] for key in ("source", "target", "gateway") if key in example.test}
    lines += ["## Why", "", sentence(linked(example.why)), "", "## Example", "", f"Vector: {example.place}.", ""]
    lines += [", ".join(f"`{key}={value!r}`" for key, value in given.items()) + ".", "", "**Before**", ""]
    lines += [shown_json(example.test["request"]), "", "**After** (all but the messages)", ""]
    return "\n".join([*lines, shown_json(example.test["options"]), ""])


# ---- the overview ---------------------------------------------------------------------------------------------------

MEASURED = ("guides/testing-agents.md", "guides/testing-clients.md", "guides/testing-node-clients.md")
GENERATED = "<!-- Generated by docs/generate.py from python/streamweld and tests/vectors. Do not edit. -->\n"
INTRODUCTION = f"""# Codes and rules

{GENERATED}
This page lists every code and rule of streamweld, with the cause and the evidence for each.

- [Diagnostics](#diagnostics) are the repairs and anomalies in `Response.diagnostics` and `streamweld inspect`.
- [Errors](#errors) are the values of `rule` on exceptions that have no diagnostic.
- [Ambiguities](#ambiguities) are bytes that allow two readings, each with its `Policy` switch.
- [Identity rules](#identity-rules) and [argument rules](#argument-rules) combine fragments into tool calls.
- [Rules of `streamweld check`](#rules-of-streamweld-check) are the dialect rules that a gateway can break.
- [History edits](#history-edits) are the changes that a conversion makes to a history.
- [History checks](#history-checks) and [request rules](#request-rules) are the constraints of the target APIs.

streamweld attempts a repair only if reading the unchanged bytes would break a call or lose content.
"""


def client_effects(rule: str) -> list[str]:
    """Return what clients do with streams that break a rule of `check`, as `clients: effect`."""
    effects: dict[str, list[str]] = {}
    for client, row in spec("rules")["breaks_client"].get(rule, {}).items():
        effects.setdefault(row["effect"], []).append(client)
    return [f"{', '.join(clients)}: {effect}" for effect, clients in effects.items()]


CHECK_INTRODUCTION = f"""\
The tables list each rule with its source, and with the clients that were observed to misread or reject a stream that
breaks the rule. In the column "clients", "reads other tool calls" means that the client returns calls that differ from
the calls in the stream.

What to do about a broken rule depends on its row:

- The row lists clients. {spec("rules")["advice"]["broken"]}
- The row lists no clients. {spec("rules")["advice"]["unbroken"]}
- The row lists no clients, and the severity is info. {spec("rules")["advice"]["info"]}"""


def overview(*, site: bool) -> str:
    """`docs/rules.md`. `site`: whether to link to the page of each code, which exists only on the built site."""

    def named(page: str, text: str | None = None) -> str:
        label = f"`{text or page}`"
        return f"[{label}](rules/{page}.md)" if site else label

    lines = [INTRODUCTION, "## Diagnostics", ""]
    for name, code in spec("diagnostics")["codes"].items():
        found = diagnosed()[name]
        lines += [f"### {name}", "", sentence(escaped(code["text"])), ""]
        lines.append(f"- The severity is {code['severity']}. {actions(code)}")
        if code.get("detail"):
            lines.append(f"- `detail` contains {escaped(code['detail'])}.")
        lines += [f"- {effect(name, code)}", f"- What to do: {advice(code)}"]
        links = [*standard(name), *[link for link in found.links() if link not in standard(name)]]
        if links:
            lines.append(f"- Evidence: {', '.join(links[:3])}.")
        if found.vectors:
            lines.append(f"- Vector: {found.example.place}.")
        if site:
            lines.append(f"- [The whole stream before and after](rules/{name}.md)")
        lines += ["", *detail_values(code)]
        if found.vectors:
            lines += changed_lines(name, found.example)
    lines += error_rules()
    lines += numbered_rules()
    lines += ["## Rules of `streamweld check`", "", CHECK_INTRODUCTION, ""]
    for family in spec("rules")["rules"]:
        lines += [
            f"### Rules of {family}",
            "",
            "| rule | severity | text | clients | source |",
            "|---|---|---|---|---|",
        ]
        for rule in check_rules().values():
            if rule.id.split(".")[0] == family:
                lines.append(
                    f'| <a id="{rule.id}"></a>{named(rule.id)} | {rule.severity} | {sentence(escaped(rule.text))} '
                    f"| {escaped('; '.join(client_effects(rule.id)))} | {rule.source} |"
                )
        lines.append("")
    table = spec("history_rules")
    for title, kind, rules in (
        ("History edits", "history", table["edits"]),
        ("History checks", "history_check", table["checks"]),
        ("Request rules", "requests", spec("requests")["rules"]),
    ):
        lines += [f"## {title}", "", "| rule | severity | text | source |", "|---|---|---|---|"]
        lines += [
            f'| <a id="{kind}.{name}"></a>{named(f"{kind}.{name}", name)} | {rule["severity"]} '
            f"| {sentence(escaped(rule['text']))} | {linked(rule['source'])} |"
            for name, rule in rules.items()
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def error_rules() -> list[str]:
    """The rules of errors that are not diagnostic codes, as a section for the overview."""
    lines = [
        "## Errors",
        "",
        "This table lists the values of `rule` of a `StreamError` that are not diagnostic codes. The `rule` of a",
        "`LimitExceeded` is `limit_` followed by the name of the limit; see [Limits](concepts/limits.md).",
        "",
        "| rule | exception | text | what to do |",
        "|---|---|---|---|",
    ]
    for name, rule in spec("errors")["rules"].items():
        row = f"`{name}` | `{rule['raises']}` | {sentence(escaped(rule['text']))} | {rule['advice']}"
        lines.append(f'| <a id="{name}"></a>{row} |')
    return [*lines, ""]


def numbered_rules() -> list[str]:
    """The ambiguities, identity rules and argument rules, as sections for the overview."""

    def rows(rules: dict[str, list[str]]) -> list[str]:
        return [f'| <a id="{name.lower()}"></a>{name} | {" | ".join(row)} |' for name, row in rules.items()]

    table = spec("numbered_rules")
    ambiguities, identity, arguments = table["ambiguities"], table["identity"], table["arguments"]
    lines = ["## Ambiguities", "", ambiguities["intro"], ""]
    for name, text in ambiguities["rules"].items():
        lines += [f"### {name}", "", text, ""]
    lines += ["## Identity rules", "", identity["intro"], ""]
    for name, group in identity["groups"].items():
        lines += [f"### {name}", "", group["text"], "", "| rule | condition | result |", "|---|---|---|"]
        lines += [*rows(group["rules"]), ""]
    lines += ["## Argument rules", "", arguments["intro"], "", "| rule | condition | action |", "|---|---|---|"]
    return [*lines, *rows(arguments["rules"]), ""]


# ---- events, command line, gateways, losses -------------------------------------------------------------------------


def events_page() -> str:
    from streamweld import _events

    table = spec("events")
    lines = [
        "# Events and fields",
        "",
        "This page lists every event class in `streamweld.events`, with its fields in the order of the constructor.",
        "Each event has the attribute `.type`, which is the class name in snake case, and the method `.to_dict()`.",
        "[Events](../concepts/events.md) explains their order.",
        "",
    ]
    for name, fields in table["events"].items():
        cls = getattr(_events, name)
        lines += [f"## {name}", "", f"`type`: `{cls.type}`", "", markdown(cls.__doc__ or ""), ""]
        lines += ["| field | type | default |", "|---|---|---|"]
        common = [] if name in table["plain"] else ["choice: int=0", "provider_metadata: object?"]
        for declared in [*fields, *common]:
            field_name, _, kind = declared.partition(": ")
            kind, has_default, default = kind.partition("=")
            if kind.endswith("?"):
                lines.append(f"| `{field_name}` | {kind[:-1]} or `None` | `None` |")
            else:
                value = f"`{default or repr('')}`" if has_default else "required"
                lines.append(f"| `{field_name}` | {kind} | {value.replace('false', 'False')} |")
        for attribute in ("parsed", "dispatchable", "normalized", "message", "help_url"):
            member = cls.__dict__.get(attribute)
            if callable(member) or isinstance(member, property):
                call = "()" if callable(member) else ""
                lines += ["", f"**`.{attribute}{call}`**: {markdown(member.__doc__ or '').split(chr(10) * 2)[0]}"]
        lines.append("")
    return "\n".join(lines)


def markdown(docstring: str) -> str:
    """A docstring as Markdown, dedented and without its Args and Raises sections."""
    text = re.split(r"\n\s*(?:Args|Raises|Returns):\n", docstring)[0]
    return "\n".join(line.strip() for line in text.strip().split("\n"))


def cli_page() -> str:
    import click
    from streamweld.cli import main

    lines = [
        "# Command line",
        "",
        "Install it with `pip install 'streamweld[cli]'`; `streamweld proxy` also needs the `proxy` extra.",
        "",
        "## Exit codes",
        "",
        "The exit code is 0 after success, 1 if there are findings, 2 after a usage error, and 3 if a file could not",
        "be read or written. If several exit codes apply, the command exits with the highest one. `--fail-on` sets the",
        "lowest severity of a finding that causes exit code 1, and `--exit-zero` turns exit code 1 into 0.",
        "",
        "| command | 1 | 3 | `--fail-on` | `--exit-zero` |",
        "|---|---|---|---|---|",
    ]
    exit_codes: list[str] = []

    def describe(command: click.Command, path: str, level: int) -> None:
        context = click.Context(command, info_name=path, terminal_width=100, max_content_width=100)
        lines.extend([f"{'#' * level} {path}", ""])
        lines.extend(["```text", command.get_usage(context), "```", ""])
        exit_codes.extend(exit_row(command, path))
        lines.extend([help_text(command.help or ""), ""])
        rows = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
        if rows and level > 1:
            lines.extend(["| option | meaning |", "|---|---|"])
            for option in rows:
                record = option.get_help_record(context)
                if record is not None:
                    lines.append(f"| `{record[0]}` | {escaped(record[1])} |")
            lines.append("")
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                if child is not None and not child.hidden:
                    describe(child, f"{path} {name}", min(level + 1, 4))

    head = len(lines)
    describe(main, "streamweld", 2)
    return "\n".join([*lines[:head], *exit_codes, "", *lines[head:]])


def help_text(text: str) -> str:
    """The help of a command as Markdown. A paragraph that Click must not wrap (marked with `\\b`) becomes a block."""
    paragraphs = []
    for paragraph in re.split(r"\n{2,}", text.strip()):
        plain = re.sub(r"(?m)^ +", "", paragraph)
        kept = plain.startswith("\b\n")
        paragraphs.append(f"```text\n{plain[2:]}\n```" if kept else escaped(plain))
    return "\n\n".join(paragraphs)


def exit_row(command: Any, path: str) -> list[str]:
    """The row of a command in the table of exit codes, taken from the paragraph about them in the command's help."""
    found = re.search(r"Exit codes: (.*?)\.(?:\s|$)", re.sub(r"\s+", " ", command.help or ""))
    if found is None or path == "streamweld":
        return []
    meanings = dict(re.findall(r"(\d) (.*?)(?=, \d |$)", found[1]))
    names = {name for option in command.params for name in option.opts} | {
        name for child in getattr(command, "commands", {}).values() for option in child.params for name in option.opts
    }
    marks = ["yes" if option in names else "" for option in ("--fail-on", "--exit-zero")]
    return [f"| `{path}` | {meanings.get('1', '')} | {meanings.get('3', '')} | {' | '.join(marks)} |"]


def losses_page(*, site: bool) -> str:
    diagnostic = "../rules/not_carried.md" if site else "../rules.md#not_carried"
    lines = [
        "# Conversion losses",
        "",
        "If the target dialect of a conversion cannot represent some content, the conversion emits the diagnostic",
        f"[`not_carried`]({diagnostic}) once per kind of content. Its `detail` is the id of a loss in this table.",
        "",
        "| id | feature | targets | reason |",
        "|---|---|---|---|",
    ]
    for loss in spec("conversions")["losses"]:
        targets = ", ".join(f"`{target}`" for target in loss["targets"])
        lines.append(f"| `{loss['id']}` | {escaped(loss['feature'])} | {targets} | {escaped(loss['reason'])} |")
    return "\n".join([*lines, ""])


def gateways_page() -> str:
    lines = [
        "# Gateway profiles",
        "",
        "This page lists the values of `gateway=` in `streamweld.history` and `streamweld.requests`.",
        "A profile lists the constraints that one gateway places on request histories, with the source of each",
        "constraint. A name without a date selects the newest profile with that name.",
        "",
    ]
    for profile in spec("gateways")["profiles"]:
        name = f"{profile['name']}@{profile['date']}"
        lines += [f"## {name}", ""]
        for target, entry in profile["targets"].items():
            constraints = entry.get("constraints") or {}
            intro = f"These constraints apply to the target `{target}`." if constraints else f"Target `{target}`."
            if entry.get("like"):
                change = "apply with these differences" if constraints else "apply without changes"
                intro = f"For the target `{target}`, the constraints of the profile `{entry['like']}` {change}."
            lines += [intro, ""]
            if constraints:
                lines += ["| constraint | value | source |", "|---|---|---|"]
            for constraint, row in constraints.items():
                if row is None:
                    lines.append(f"| `{constraint}` | not constrained | |")
                    continue
                value = json.dumps(row[0], ensure_ascii=False)
                lines.append(f"| `{constraint}` | `{value}` | {linked(row[1])} |")
            lines.append("")
    return "\n".join(lines)


def operators_page() -> str:
    from streamweld.testing import OPERATORS

    lines = [
        "# Operators",
        "",
        "Each operator of `streamweld.testing.OPERATORS` breaks a conformant stream in one way that was observed in",
        "real gateways. [Test with broken gateways](../guides/testing.md) shows how to use them. `effect` is what",
        "changes for a correct reader: `nothing`, the `calls`, their `ids` or their `order`, the `texts`, the `finish`",
        "reason, or the end of the stream (`truncated`, `error`, `assumed`). If an operator is marked as not certain,",
        "the broken bytes allow more than one result.",
        "",
        "| operator | what it does | dialects | aspect | effect |",
        "|---|---|---|---|---|",
    ]
    for name, one in sorted(OPERATORS.items()):
        dialects = "all" if len(one.dialects) == len(DIALECTS) else ", ".join(f"`{each}`" for each in one.dialects)
        effect = one.effect + ("" if one.certain else " (not certain)")
        lines.append(f"| `{name}` | {in_table(one.about)} | {dialects} | {one.aspect} | {effect} |")
    return "\n".join([*lines, ""])


def in_table(text: str) -> str:
    return text.replace("|", "\\|")


def measured_page(path: str) -> str:
    """Update the description of each operator in a guide. The measured results in its tables do not change."""
    from streamweld.testing import OPERATORS

    def described(row: re.Match[str]) -> str:
        one = OPERATORS.get(row[1])
        return f"| `{row[1]}` | {in_table(one.about)} | " if one else row[0]

    text = (ROOT / "docs" / path).read_text("utf-8")
    return re.sub(r"^\| `(\w+)` \| ((?:[^|\n]|(?<=\\)\|)*) \| ", described, text, flags=re.MULTILINE)


def changelog_page() -> str:
    return (ROOT / "CHANGELOG.md").read_text("utf-8")


# ---- llms.txt -------------------------------------------------------------------------------------------------------


def llms_txt(nav: Any, site_url: str) -> str:
    """https://llmstxt.org: a title, a summary, and one link for each page in the navigation."""
    made = pages()

    def summary(path: str) -> str:
        source = ROOT / "docs" / path
        text = made[path] if path in made else source.read_text("utf-8")
        for block in re.sub(r"<!--.*?-->|^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE).split("\n\n"):
            if block.strip() and not block.lstrip().startswith(("#", "|", "<", "-", ":", "!")):
                return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(block.split())).split(". ")[0].rstrip(".:")
        return ""

    def url(path: str) -> str:
        return site_url + re.sub(r"(?:^|(?<=/))index\.md$|\.md$", lambda m: "" if "index" in m[0] else "/", path)

    lines = [
        "# streamweld",
        "",
        "> A Python library that parses, repairs and converts LLM streams: Chat Completions, Responses, Anthropic",
        "> Messages, Gemini, and the two streams of the AI SDK.",
        "",
    ]

    def listed(entries: list[Any], title: str) -> None:
        lines.extend([f"## {title}", ""])
        for entry in entries:
            ((name, path),) = entry.items() if isinstance(entry, dict) else ((title, entry),)
            lines.append(f"- [{name}]({url(path)}): {summary(path)}")
        lines.append("")

    listed([entry for entry in nav if isinstance(next(iter(entry.values())), str)], "Start")
    for entry in nav:
        ((name, target),) = entry.items()
        if isinstance(target, list):
            listed(target, name)
    return "\n".join(lines)


# ---- all of it ------------------------------------------------------------------------------------------------------


@cache
def pages() -> dict[str, str]:
    """Map the path below `docs/` of every generated page of the site to its text."""
    out = {
        "rules.md": overview(site=True),
        "changelog.md": changelog_page(),
        "reference/events.md": events_page(),
        "reference/cli.md": cli_page(),
        "reference/losses.md": losses_page(site=True),
        "reference/gateways.md": gateways_page(),
        "reference/operators.md": operators_page(),
    }
    for name, code in spec("diagnostics")["codes"].items():
        out[f"rules/{name}.md"] = code_page(name, code)
    for rule in check_rules().values():
        out[f"rules/{rule.id}.md"] = check_page(rule)
    table = spec("history_rules")
    for kind, key in (("history", "edits"), ("history_check", "checks")):
        for name, entry in table[key].items():
            out[f"rules/{kind}.{name}.md"] = history_page(kind, name, entry)
    for name, entry in spec("requests")["rules"].items():
        out[f"rules/requests.{name}.md"] = request_page(name, entry)
    return out


def checked_in() -> dict[str, str]:
    """Map the path below `docs/` of each generated page that is also in the repository to its text."""
    same = ("reference/events.md", "reference/cli.md", "reference/gateways.md", "reference/operators.md")
    kept = {"rules.md": overview(site=False), "reference/losses.md": losses_page(site=False)}
    out = kept | {path: pages()[path] for path in same}
    marked = {path: text if GENERATED in text else mark(text) for path, text in out.items()}
    return marked | {path: measured_page(path) for path in MEASURED} | api_summary.pages()


def mark(text: str) -> str:
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{GENERATED}{rest}"


def main() -> int:
    arguments = argparse.ArgumentParser(description="Write the generated pages that are checked in.")
    arguments.add_argument("--check", action="store_true", help="only report whether the pages are up to date")
    check = arguments.parse_args().check
    stale: list[str] = []
    for name, text in checked_in().items():
        path = ROOT / "docs" / name
        if not check:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            stale.append(f"docs/{name}")
    if stale:
        sys.stderr.write(f"{', '.join(stale)}: out of date; run `make docs-generate`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "python"))
    sys.exit(main())
