"""No truncation is silent: it raises an error, or the response equals that of the complete stream.

This is tested for every dialect, with `strict` and `standard`, with a clean and a broken end of the input, in the
parser, in every conversion and in repair. The run prints the counts. Full counts (STREAMWELD_FULL=1): every recorded
stream up to 16 KiB at every block end and at 60 other positions, with the native backend (in the converters, a share of
them); a sample with the pure backend.
"""

from __future__ import annotations

from collections import Counter
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld.errors import StreamError

from tests.conftest import NIGHTLY
from tests.support.backends import using
from tests.support.corpus import absent, all_recordings
from tests.support.cuts import POLICIES, UNDECIDABLE, Quiet, Uncut, facts_of, judge, options_of, places_in, record
from tests.support.harness import policy_of, read
from tests.support.parallel import spread
from tests.support.sample import one_of
from tests.support.vector_files import DIALECTS, chunks_of, is_broken, label, streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld.events import ToolCall

    from tests.support.corpus import Recording

LONGEST = 16 * 1024
SUCCESS = ("stop", "tool_calls")
# Losses of a complete call. The complete stream could pass through unchanged, while a truncated one is rewritten.
LEFT_OUT = {"cut_call", "invalid_call"}
TARGETS = ("same", *DIALECTS)
recorded = pytest.mark.skipif(absent() is not None, reason=absent() or "")

Job = tuple[str, str, "int | None"]  # backend, name of a stream, number of positions (None: all)
Found = tuple[Counter[str], "list[str]"]
Source = tuple[bytes, dict[str, Any]]  # body and options


@cache
def sources() -> dict[str, Callable[[], Source]]:
    """Return recorded streams and vectors that end with their dialect's terminal marker."""
    found: dict[str, Callable[[], Source]] = {}
    for recording in all_recordings():
        if recording.size <= LONGEST:
            found[f"{recording.folder}/{recording.name}"] = partial(recorded_source, recording)
    for vector in streams():
        if "policy" not in vector["options"] and not is_broken(vector) and vector["expect"].get("error") is None:
            body = b"".join(chunks_of(vector))
            if 0 < len(body) <= LONGEST:
                found[f"vector:{label(vector)}"] = partial(lambda *source: source, body, vector["options"])
    return found


def recorded_source(recording: Recording) -> Source:
    return recording.body, {"dialect": recording.dialect}


def try_parser(job: Job) -> Found:
    backend, name, count = job
    body, options = sources()[name]()
    whole = read(backend, [body], options)
    uncut = Uncut(name, facts_of(whole.response), whole.error is not None)
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    for place in places_in(body, name, count):
        for policy in POLICIES:
            for broken in (False, True):
                cut = read(backend, [body[:place]], options_of(options, policy), broken=broken)
                quiet = Quiet(facts_of(cut.response), cut.response.completeness, frozenset(cut.codes))
                outcome, words = judge(uncut, cut.error, quiet)
                if broken and cut.error is None and quiet.completeness != "complete":
                    outcome, words = "silent", f"{quiet.completeness} although the transport failed"
                outcomes[outcome] += 1
                if words is not None:
                    wrong.append(f"{backend} {name} cut at {place} of {len(body)}, {policy}, {broken=}: {words}")
    return outcomes, wrong


def convert(body: bytes, options: dict[str, Any], target: Any, *, broken: bool) -> tuple[bytes, sw.StreamConverter]:
    requested = {key: value for key, value in options.items() if key not in ("dialect", "seed", "content_type")}
    converter = sw.StreamConverter(source=options["dialect"], target=target, seed="cut", **policy_of(requested))
    made = converter.feed(body)
    return made + converter.close(broken=broken), converter


def try_conversion(job: tuple[str, str, int | None, str]) -> Found:
    backend, name, count, target = job
    body, options = sources()[name]()
    dialect: Any = options["dialect"] if target == "same" else target
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    with using(backend):
        made, whole = convert(body, options, target, broken=False)
        uncut = Uncut(name, facts_of(whole.response), whole.error is not None)
        written = read_as(parse(made, dialect)[0])
        for place in places_in(body, f"{name} {target}", count):
            for policy in POLICIES:
                for broken in (False, True):
                    requested = {**options, "policy": policy}
                    out, cut = convert(body[:place], requested, target, broken=broken)
                    codes = frozenset(d.code for d in cut.diagnostics)
                    quiet = Quiet(facts_of(cut.response), cut.response.completeness, codes)
                    outcome, words = judge(uncut, cut.error, quiet)
                    lost = frozenset(d.detail for d in cut.diagnostics if d.code == "not_carried")
                    words = words or wrong_in_output(out, dialect, outcome, written, lost)
                    outcomes[outcome if words is None else "silent"] += 1
                    if words is not None:
                        at = f"{place} of {len(body)}, {policy}, {broken=}"
                        wrong.append(f"{backend} {name} to {target} cut at {at}: {words}")
    return outcomes, wrong


def parse(out: bytes, dialect: Any) -> tuple[sw.Response, StreamError | None]:
    parser = sw.StreamParser(dialect=dialect, seed="cut")
    try:
        parser.feed(out)
        parser.close()
    except StreamError as error:
        return parser.response, error
    return parser.response, None


def wrong_in_output(out: bytes, dialect: Any, outcome: str, written: list[Any], lost: frozenset[str]) -> str | None:
    """Describe what a reader of the output would miss. A dropped call is reported as a loss (`LEFT_OUT`)."""
    response, error = parse(out, dialect)
    if outcome == "reported":
        ends_well = error is None and response.error is None and response.finish_reason in SUCCESS
        if ends_well and read_as(response) != written:  # equal if the end was written before the truncation
            return f"reported, but the output reads as {response.finish_reason}: {read_as(response)}"
        return None
    found = read_as(response)
    if LEFT_OUT & lost:  # everything except the calls must be equal
        found, written = [row[:-1] for row in found], [row[:-1] for row in written]
    if outcome == "equal" and error is None and found != written:
        return f"the output reads as {read_as(response)} instead of {written}"
    return None


def read_as(response: sw.Response) -> list[Any]:
    """Return the data that a client of the target acts on. Empty arguments may be written as {}, and objects may be
    formatted differently.
    """
    return [
        (
            choice.index,
            choice.text,
            choice.reasoning,
            choice.refusal,
            sorted(
                [(call.call_id, call.name, value_of(call), call.dispatchable) for call in choice.tool_calls], key=repr
            ),
        )
        for choice in response.choices
    ]


def value_of(call: ToolCall) -> Any:
    """Return the arguments of a call that may be run, as a JSON value."""
    if not call.dispatchable:
        return None
    return call.arguments if call.custom else call.parsed


def run(jobs: list[Any], job: Any, *, full: bool) -> Counter[str]:
    found = spread(job, jobs, alone=not full)
    total = record(outcomes for outcomes, _ in found)
    assert [words for _, wrong in found for words in wrong][:5] == []
    assert total["silent"] == 0
    return total


def sampled(share: int) -> list[str]:
    """Return names of streams: one in `share`, regardless of the other names, and all listed ones."""
    names = list(sources())
    return sorted({*one_of(share, names), *(UNDECIDABLE.keys() & set(names))})


@recorded
@pytest.mark.timeout(2400)
def test_parser(backend: str, full: bool) -> None:
    native = backend == "native"
    names = sampled(1 if native else 4 if full else 20)
    jobs = [(backend, name, ((None if NIGHTLY else 12) if native else 3) if full else 1) for name in names]
    assert run(jobs, try_parser, full=full)["reported"] > len(jobs)


@recorded
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("target", TARGETS)
def test_converter(backend: str, full: bool, target: str) -> None:
    native = backend == "native"
    names = sampled((6 if NIGHTLY else 12 if full else 20) if native else (40 if NIGHTLY else 80 if full else 200))
    jobs = [(backend, name, ((12 if NIGHTLY else 4) if native else 3) if full else 1, target) for name in names]
    assert run(jobs, try_conversion, full=full)["reported"] > len(jobs)


@recorded
def test_the_list_names_what_there_is_and_why() -> None:
    assert set(UNDECIDABLE) <= set(sources())
    assert all(row["why"] for rows in UNDECIDABLE.values() for row in rows)
    outcomes = {name: try_parser(("pure", name, None))[0]["undecidable"] for name in UNDECIDABLE}
    assert [name for name, count in outcomes.items() if not count] == []
