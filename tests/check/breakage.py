"""Measures how the listed clients handle violations of each rule of `streamweld check`, with the smallest streams.

    python -m tests.check.breakage --write

Each client of the dialect reads the stream from a loopback server; its result is compared with that of `StreamParser`.
The outcomes are kept in `breakage.json` (streams that did not change are not read again) and written to
`_spec/rules.json` as `breaks_client`. If no vector violates only the rule, the vector that violates the fewest other
rules is used; a client that these other rules break by themselves is not counted.

`--corpus` writes the violations of these rules that remain in recorded streams after repair to `left_over.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamweld as sw
from streamweld.check.violation import facts, rules

from tests.support import corpus
from tests.support.clients.compare import NODE_AI, NODE_SDK, WORDS, differences, finish_of, is_success
from tests.support.clients.expected import from_reading
from tests.support.clients.node_side import HOME, Node
from tests.support.clients.python import Clients
from tests.support.servers.loopback import Loopback
from tests.support.vector_files import chunks_of, load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.clients.expected import Expected
    from tests.support.corpus import Recording

RECORD = Path(__file__).with_name("breakage.json")
LEFT_OVER = Path(__file__).with_name("left_over.json")
RULES = Path(sw.__file__).parent / "_spec" / "rules.json"
ABOUT = (
    "What clients made of the smallest stream that breaks a rule, by rule and client; written by `python -m"
    " tests.check.breakage --write`. vector: the stream. others: further rules that it breaks. body: the digest of its"
    " bytes. readers: reader -> what it read otherwise than StreamParser (an empty list: nothing)."
)
ABOUT_LEFT_OVER = (
    "Recorded streams that still break a rule with breaks_client after repair; written by `python -m"
    " tests.check.breakage --corpus`. readers: reader -> what it reads otherwise than StreamParser; to be mended."
    " Without any, the rule is wider than what the clients need: all of them read this stream as StreamParser does."
)
LARGE = 1 << 16
MEMBER = '  "breaks_client": {\n'
# The readers that the clients themselves provide, without the loops that applications write around `create`.
PYTHON = {
    "chat": ("openai chat.completions.stream",),
    "responses": ("openai responses.stream",),
    "anthropic": ("anthropic messages.stream",),
    "gemini": ("google-genai generate_content_stream",),
}
# Reader -> the client's name in the rules, and the package whose version is reported.
CLIENTS = {
    "openai chat.completions.stream": ("openai-python", "openai"),
    "openai responses.stream": ("openai-python", "openai"),
    "anthropic messages.stream": ("anthropic-python", "anthropic"),
    "google-genai generate_content_stream": ("google-genai", "google-genai"),
    "openai-node chat.completions.stream": ("openai-node", "openai"),
    "openai-node responses.stream": ("openai-node", "openai"),
    "@anthropic-ai/sdk messages.stream": ("@anthropic-ai/sdk", "@anthropic-ai/sdk"),
    "@ai-sdk/openai chat": ("@ai-sdk/openai", "@ai-sdk/openai"),
    "@ai-sdk/openai responses": ("@ai-sdk/openai", "@ai-sdk/openai"),
    "@ai-sdk/openai-compatible": ("@ai-sdk/openai-compatible", "@ai-sdk/openai-compatible"),
    "@ai-sdk/open-responses": ("@ai-sdk/open-responses", "@ai-sdk/open-responses"),
    "@ai-sdk/anthropic": ("@ai-sdk/anthropic", "@ai-sdk/anthropic"),
    "@ai-sdk/google": ("@ai-sdk/google", "@ai-sdk/google"),
    "@ai-sdk/gateway": ("@ai-sdk/gateway", "@ai-sdk/gateway"),
    "streamText over our parts": ("ai", "ai"),
    "useChat": ("ai", "ai"),
    "readUIMessageStream": ("ai", "ai"),
}
PYTHON_READERS = frozenset(name for names in PYTHON.values() for name in names)


def version(reader: str) -> str:
    """Return the installed version of a reader's client."""
    package = CLIENTS[reader][1]
    if reader in PYTHON_READERS:
        return metadata.version(package)
    found = json.loads((HOME / "node_modules" / package / "package.json").read_text("utf-8"))
    return str(found["version"])


def readers_of(dialect: str) -> tuple[str, ...]:
    return (*PYTHON.get(dialect, ()), *NODE_SDK.get(dialect, ()), *NODE_AI[dialect])


class Bench:
    """All clients, connected to one server."""

    def __init__(self, server: Loopback, python: Clients, node: Node) -> None:
        self._server = server
        self._python = python
        self._node = node

    def held(self, dialect: str, body: bytes, tools: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return reader -> its result."""
        key = self._server.put([body])
        url = f"{self._server.origin}/{key}"
        with warnings.catch_warnings(action="ignore"):  # pytest turns warnings into errors, unlike applications
            held = {name: self._python.read(name, key) for name in PYTHON.get(dialect, ())}
        if dialect in NODE_SDK:
            held |= self._node.ask("sdk.read", url=url, clients=NODE_SDK[dialect])
        held |= self._node.ask("ai.read", url=url, clients=NODE_AI[dialect], tools=sorted(set(tools)))
        self._server.drop(key)
        return {reader: completed(reader, record) for reader, record in held.items()}

    def judge(self, dialect: Any, body: bytes) -> dict[str, list[str]]:
        """Return reader -> how its result differs from that of `StreamParser`, one phrase for each kind of
        difference."""
        parser = sw.StreamParser(dialect=dialect)
        fault: sw.StreamError | None = None
        try:
            parser.feed(body)
            parser.close()
        except sw.StreamError as error:
            fault = error
        response = parser.response
        names = [call.name for call in (*response.tool_calls, *response.server_tool_calls) if call.name]
        held = self.held(dialect, body, names)
        if fault is not None or response.completeness == "truncated" or response.finish_reason in (None, "error"):
            return {reader: [FALSE_SUCCESS] if is_success(record) else [] for reader, record in held.items()}
        expected = from_reading(dialect, response)
        # A client is not expected to have the ids that StreamParser generated.
        calls = tuple(c if f'"{c.id}"'.encode() in body else c._replace(id=None) for c in expected.calls)
        expected = replace(expected, calls=calls)
        raw = response.choices[0].raw_finish_reason
        return {reader: sorted(kinds(reader, expected, record, dialect, raw)) for reader, record in held.items()}


def completed(reader: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return the record with all members, including those of calls without an id and of list positions that were never
    filled.
    """
    calls = [{"id": None, **(call or {"name": None, "arguments": ""})} for call in record["calls"]]
    for call in calls:
        if reader in ("anthropic messages.stream", "@anthropic-ai/sdk messages.stream"):
            call["arguments"] = call["arguments"] or "{}"  # the first delta is empty; the client's input is {}
        elif reader == "google-genai generate_content_stream":
            call["input"] = {} if call["input"] is None else call["input"]
    return {"finish": None, **record, "calls": calls}


def kinds(reader: str, expected: Expected, record: dict[str, Any], dialect: str, raw: str | None) -> set[str]:
    """Return the differences, by kind."""
    found: set[str] = set()
    for row in differences(reader, expected, record, source=dialect, target=dialect, losses=frozenset()):
        if not (dialect == "gemini" and row.startswith("ids ")):  # this API sends calls without ids
            found.add(phrase(row))
    documented = facts(dialect).get("finish", facts(dialect).get("stop_reasons", ()))
    got = finish_of(record)
    if raw is None or got == WORDS.get(raw, "unfinished") or (got == "other" and raw in documented):
        found.discard(PHRASES["finish"])  # no finish reason was sent, or the client returns the one that was sent
    if record["usage"] is not None:
        found.discard(PHRASES["no"])  # the client returns the calls with the names that were sent
    return found


FALSE_SUCCESS = "reads a stream that failed as a success"
PHRASES = {
    "text": "reads another text",
    "refusal": "reads another refusal",
    "reasoning": "reads another reasoning text",
    "finish": "reads another finish reason",
    "usage": "reads other token counts",
    "no": "reads no token counts",
    "ran": "runs other tool calls",
}


def phrase(difference: str) -> str:
    """Return the description of a difference, without the values of the vector."""
    first, _, rest = difference.partition(" ")
    if first == "raised":
        name = rest.partition("'name': '")[2].partition("'")[0]
        return f"raises {name}"
    return PHRASES.get(first, "reads other tool calls")


def chosen() -> dict[str, tuple[dict[str, Any], list[str]]]:
    """Return rule -> the vector that violates it (with the fewest other rules, then the fewest bytes), and those other
    rules.
    """
    rows: dict[str, tuple[int, int, dict[str, Any], list[str]]] = {}
    for vector in load("check"):
        broken = {rule for rule, _, _ in vector["violations"]}
        body = b"".join(chunks_of(vector))
        for rule in broken:
            row = (len(broken) - 1, len(body), vector, sorted(broken - {rule}))
            if vector["dialect"] != "auto" and len(body) < LARGE and (rule not in rows or row[:2] < rows[rule][:2]):
                rows[rule] = row
    return {rule: (vector, others) for rule, (_, _, vector, others) in sorted(rows.items())}


def label(vector: dict[str, Any]) -> str:
    return f"{vector['file']}/{vector['name']}"


def observe(kept: dict[str, Any], bench: Bench, only: Iterable[str] | None = None) -> dict[str, Any]:
    """Return rule -> its row of `breakage.json`; a row of `kept` is reused if its stream and clients did not change."""
    made: dict[str, Any] = {}
    for rule, (vector, others) in chosen().items():
        if only is not None and rule not in only:
            continue
        body = b"".join(chunks_of(vector))
        row: dict[str, Any] = {
            "vector": label(vector),
            "others": others,
            "body": hashlib.sha256(body).hexdigest()[:16],
            "versions": {reader: version(reader) for reader in readers_of(vector["dialect"])},
        }
        old = kept.get(rule, {})
        same = all(old.get(name) == value for name, value in row.items())
        made[rule] = {**row, "readers": old["readers"] if same else bench.judge(vector["dialect"], body)}
    return made


def is_charged(rule: str, row: dict[str, Any], reader: str, record: dict[str, Any]) -> bool:
    """Return True if this rule causes a reader's result, and not another rule that the stream violates."""
    severities = ("info", "warning", "error")
    for other in row["others"]:
        if not record[other]["others"] and record[other]["readers"].get(reader):
            return False
        if severities.index(rules()[other].severity) > severities.index(rules()[rule].severity):
            return False
    return True


def breaks_client(record: dict[str, Any]) -> dict[str, dict[str, dict[str, str]]]:
    """Return rule -> client -> its version and the outcome: the member of `_spec/rules.json`."""
    made: dict[str, dict[str, dict[str, str]]] = {}
    for rule, row in sorted(record.items()):
        clients: dict[str, set[str]] = {}
        for reader, found in row["readers"].items():
            if found and is_charged(rule, row, reader, record):
                clients.setdefault(reader, set()).update(found)
        rows: dict[str, dict[str, str]] = {}
        for reader, found in clients.items():
            before = rows.get(CLIENTS[reader][0], {}).get("effect")
            effect = ", ".join(sorted(found))
            if before is not None and before != effect:
                effect = ", ".join(sorted({*before.split(", "), *found}))
            rows[CLIENTS[reader][0]] = {"version": row["versions"][reader], "effect": effect}
        if rows:
            made[rule] = rows
    return made


def in_rules(text: str, made: dict[str, Any]) -> str:
    """Return the text of `_spec/rules.json` with this member as its last one, one rule per line."""
    head = text[: text.index(MEMBER)] if MEMBER in text else text.rstrip().removesuffix("}").rstrip() + ",\n"
    rows = ",\n".join(f"    {json.dumps(rule)}: {json.dumps(row, ensure_ascii=False)}" for rule, row in made.items())
    return f"{head}{MEMBER}{rows}\n  }}\n}}\n"


def repaired(recording: Recording) -> tuple[bytes, list[str]] | None:
    """Return a recorded stream after repair, and its violations that break a client; None if it ends in an error."""
    dialect: Any = recording.dialect
    converter = sw.StreamConverter(source=dialect, target="same", seed="r")
    body = converter.feed(recording.body) + converter.close()
    if converter.error is not None:
        return None
    broken = {violation.rule for violation in sw.check(body, dialect)}
    return body, sorted(rule for rule in broken if rules()[rule].breaks_client)


def left_over(bench: Bench, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return recorded stream -> the violations that remain after repair: the rules, and the readers with a different
    result.
    """
    made: dict[str, Any] = {}
    for recording in corpus.all_recordings():
        name = f"{recording.folder}/{recording.name}"
        found = repaired(recording) if names is None or name in names else None
        if found is not None and found[1]:
            readers = bench.judge(recording.dialect, found[0])
            made[name] = {"rules": found[1], "readers": {reader: what for reader, what in readers.items() if what}}
    return made


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.check.breakage", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write breakage.json and _spec/rules.json")
    parser.add_argument("--all", action="store_true", help="read every stream again, also those that did not change")
    parser.add_argument("--corpus", action="store_true", help="write left_over.json: recorded streams after repair")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # pydantic warns about values that gateways send instead of strings
    server = Loopback()
    python, node = Clients(server.origin), Node("node")
    bench = Bench(server, python, node)
    try:
        if options.corpus:
            made = left_over(bench)
            LEFT_OVER.write_text(json.dumps({"about": ABOUT_LEFT_OVER, "streams": made}, indent=1) + "\n", "utf-8")
            misread = sum(bool(row["readers"]) for row in made.values())
            print(f"{len(made)} streams break a rule that breaks a client, {misread} are misread")
            return 0
        return compare(bench, write=options.write, everything=options.all)
    finally:
        node.close()
        python.close()
        server.close()


def compare(bench: Bench, *, write: bool, everything: bool) -> int:
    """Print the differences from `breakage.json`, or write the file."""
    kept = json.loads(RECORD.read_text("utf-8"))["rules"] if RECORD.exists() else {}
    record = observe({} if everything else kept, bench)
    changed = sorted(rule for rule in record.keys() | kept.keys() if record.get(rule) != kept.get(rule))
    if write:
        RECORD.write_text(json.dumps({"about": ABOUT, "rules": record}, indent=1) + "\n", "utf-8")
        RULES.write_text(in_rules(RULES.read_text("utf-8"), breaks_client(record)), "utf-8")
    for rule in changed:
        print(rule, {reader: found for reader, found in record.get(rule, {"readers": {}})["readers"].items() if found})
    print(f"{len(record)} rules, {len(breaks_client(record))} break a client, {len(changed)} changed")
    return 1 if changed and not write else 0


if __name__ == "__main__":
    sys.exit(main())
