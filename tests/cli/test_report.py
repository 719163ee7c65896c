"""`streamweld report` and `streamweld.report.render`: the contents of a page, its size, its safety."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from streamweld import report
from streamweld.cli import main
from streamweld.cli.sample import ARGUMENTS, CALL_ID, sample
from streamweld.errors import UsageError
from streamweld.report import Recorded
from streamweld.report.changes import changed_pairs, compact
from streamweld.report.facts import describe

from tests.support.servers.wire import call, chunk, end, text

if TYPE_CHECKING:
    from pathlib import Path

BODY = sample()
CLEAN = b'data: {"type":"start"}\n\ndata: {"type":"text-start","id":"0"}\n\n'
CLEAN += (
    b'data: {"type":"text-delta","id":"0","delta":"Hi"}\n\ndata: {"type":"text-end","id":"0"}\n\n'
    b'data: {"type":"finish"}\n\ndata: [DONE]\n\n'
)


class Page(HTMLParser):
    """The tags, ids, links and texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def ids(self) -> list[str]:
        return [attrs["id"] or "" for _, attrs in self.tags if "id" in attrs]

    @property
    def inner_links(self) -> set[str]:
        links = [attrs.get("href") or "" for tag, attrs in self.tags if tag == "a"]
        return {link[1:] for link in links if link.startswith("#")}

    @property
    def text(self) -> str:
        return "".join(self.words)


def render(*bodies: bytes, **options: Any) -> Page:
    recorded = [Recorded(f"{number}.sse", f"g{number}", body) for number, body in enumerate(bodies)]
    return Page(report.render(recorded, **options))


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["report", *map(str, args)])


def test_one_stream() -> None:
    page = render(BODY)
    for reported in (
        "deepseek/deepseek-chat-v3.1",
        "tool_calls (sent: stop)",
        "input 412, output 268, total 680",
        f"run-sandbox {CALL_ID}: complete, 229 pieces",
        "Arguments that were already received were sent again; the copy was dropped.",
        "byte 95,313, line 519, event 253",
        "byte 7,027, line 55, event 24",
        "Before and after repair: 233 events differ",
    ):
        assert reported in page.text, reported
    pieces = [attrs for tag, attrs in page.tags if tag == "span" and attrs.get("class") == "piece"]
    assert len(pieces) == 229
    # The arguments are shown once as pieces and once as the result; escapes in the JSON text are kept as sent.
    assert page.text.count(ARGUMENTS) == 2


def test_every_link_inside_of_a_page_leads_somewhere() -> None:
    several = (BODY, CLEAN, BODY[:60_000])
    for page in (render(BODY), render(*several), render(*[BODY] * 20), render(BODY, CLEAN, diff=True)):
        assert len(page.ids) == len(set(page.ids))
        assert page.inner_links - set(page.ids) == set()
        assert len(page.inner_links) > 5


def test_the_policy_allows_the_style_sheet_and_nothing_else() -> None:
    html = report.render([Recorded("a", "", BODY)])
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    assert f'content="{policy}"' in html
    page = Page(html)
    assert {tag for tag, _ in page.tags} & {"script", "iframe", "object", "embed", "img", "form", "base"} == set()
    assert [attrs for _, attrs in page.tags if "style" in attrs or any(name.startswith("on") for name in attrs)] == []
    assert [attrs["href"] for tag, attrs in page.tags if tag == "link"] == ["data:,"]


EVIL = '"><script>alert(1)</script><a href="javascript:x">\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}{{body}}'


def test_text_of_a_stream_is_never_markup() -> None:
    body = text(EVIL) + call(0, EVIL, EVIL, json.dumps({EVIL: EVIL})) + f"{EVIL}\n\n".encode() + end(EVIL)
    honest = text("a") + call(0, "a", "a", '{"a":"a"}') + b"a\n\n" + end("a")
    names = [Recorded(EVIL, EVIL, body), Recorded(f"{EVIL}2", EVIL, body)]
    html = report.render(names, diff=True)
    page = Page(html)
    plain = Page(report.render([Recorded("a", "a", honest), Recorded("b", "a", honest)], diff=True))
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in plain.tags} | {"mark", "br"}
    links = [attrs["href"] or "" for tag, attrs in page.tags if tag == "a"]
    assert all(link.startswith(("#", "https://github.com/streamweld/")) for link in links)
    assert [char for char in html if not char.isprintable() and char != "\n"] == []
    assert "<script>alert(1)</script>" in page.text
    assert "{{body}}" in page.text


def test_a_page_of_60_000_events_is_at_most_1_mb() -> None:
    calls = b"".join(
        call(number, f"call_{number}", "f", "") + call(number, None, None, '"<&' * 5) * 1_000 for number in range(30)
    )
    body = text('<&"w ') * 30_000 + calls + end()
    times = tuple((at, at / 1e6) for at in range(0, len(body), 500))
    assert body.count(b"\n\n") > 60_000
    html = report.render([Recorded("a", "a", body, times)], policy="salvage")
    assert 100_000 < len(html.encode()) <= 1_000_000
    assert "events are not shown" in html


def test_a_folder_that_does_not_fit_is_cut_and_says_so() -> None:
    page = render(*[BODY] * 60)
    assert re.search(r"\d+ streams are only in the tables: the page is full\.", page.text)
    assert page.inner_links - set(page.ids) == set()


def test_gateways_and_codes() -> None:
    streams = [Recorded("1", "deepseek", BODY), Recorded("2", "deepseek", BODY), Recorded("3", "openai", CLEAN)]
    page = report.render(streams)
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', page)
    counts = {code: re.findall(r'<td class="n">(\d*)</td>', cells) for code, cells in rows}
    assert counts["streams"] == ["2", "1", "3"]
    assert counts["args_replay_dropped"] == ["2", "", "2"]


def test_times_of_a_recording(tmp_path: Path) -> None:
    """Ten pieces at intervals of 10 ms from 0.5 s on, with a pause of one second before the last piece."""
    step = len(BODY) // 9
    pieces = [BODY[at : at + step] for at in range(0, len(BODY), step)]
    at = [0.5 + 0.01 * number for number in range(len(pieces))]
    at[-1] = at[-2] + 1.0
    lines: list[dict[str, Any]] = [{"streamweld_recording": 1, "status": 200}]
    lines += [{"at": when, "text": piece.decode()} for when, piece in zip(at, pieces, strict=True)]
    lines[1] = {"at": 0.5, "base64": base64.b64encode(pieces[0]).decode()}
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in [*lines, {"at": 2.0, "end": "complete"}]), "utf-8")
    recorded = report.read(file, "a.jsonl", "")
    assert recorded.body == BODY
    timing = describe(recorded).timing
    assert timing is not None
    assert (round(timing.total, 6), timing.first) == (round(at[-1], 6), 0.5)
    assert {name: round(gap, 6) for name, gap in timing.gaps.items()} == {
        "p50": 0.01,
        "p90": 1.0 if len(pieces) <= 10 else 0.01,
        "p99": 1.0,
        "max": 1.0,
    }
    done = run(file, "-o", tmp_path / "r.html")
    assert done.exit_code == 0, done.output
    page = Page((tmp_path / "r.html").read_text("utf-8"))
    assert "time to first token" in page.text
    assert "max 1000.0 ms" in page.text
    assert [attrs.get("aria-label") for tag, attrs in page.tags if tag == "svg"] == [
        "3 parts over bytes",
        "3 parts over recorded time",
    ]


def test_repairs_are_shown_with_what_was_sent() -> None:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    unnumbered = chunk({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}, **head)
    facts = describe(Recorded("a", "", unnumbered + chunk({}, "tool_calls", **head) + b"data: [DONE]\n\n"))
    # Two events become four: the role, the head of the call, its arguments and the finish reason.
    assert facts.repair_count == len(facts.repairs) == 4
    assert [repair.start for repair in facts.repairs[:2]] == [0, len(unnumbered)]
    assert [bool(repair.before) for repair in facts.repairs] == [True, True, False, False]
    assert b'"tool_calls":[{"id":"c"' in facts.repairs[0].before
    assert b'"tool_calls":[{"index":0,"id":"c"' in facts.repairs[1].after
    assert b'"arguments":"{}"' in facts.repairs[2].after
    clean = describe(Recorded("a", "", CLEAN))
    assert (clean.repair_count, clean.repairs, clean.codes) == (0, [], [])
    assert "The stream passes through repair byte for byte." in render(CLEAN).text


def test_repairs_are_counted_by_gateway() -> None:
    html = report.render([Recorded("0", "a", BODY), Recorded("1", "a", BODY), Recorded("2", "b", CLEAN)])
    assert "Streams that repair changes, by gateway" in html
    row = '<th scope="row">rewritten(header_again)</th><td class="n">2</td><td class="n"></td><td class="n">2</td>'
    assert row in html
    assert "<p>Reasons: rewritten(header_again), args_replay_dropped</p>" in html


def test_what_is_no_stream_is_reported_as_that() -> None:
    assert "the body is an HTML page" in render(b"<html>502</html>").text
    assert "unknown" in render(b"").text
    assert "truncated" in render(text("a")).text


def test_a_comparison() -> None:
    one = text("the quick fox") + chunk({}, "stop") + b"data: [DONE]\n\n"
    other = text("the slow fox") + chunk({}, "length") + b"data: [DONE]\n\n"
    page = Page(report.render([Recorded("a.sse", "", one), Recorded("b.sse", "", other)], diff=True))
    html = report.render([Recorded("a.sse", "", one), Recorded("b.sse", "", other)], diff=True)
    assert 'the <span class="removed">quick</span> fox' in html
    assert 'the <span class="added">slow</span> fox' in html
    assert '<tr class="differs"><th scope="row">finish reason</th><td>stop</td><td>length</td></tr>' in html
    assert "Neither stream has a tool call." in page.text
    with pytest.raises(UsageError, match="a comparison takes two streams"):
        report.render([Recorded("a", "", one)], diff=True)


def test_the_file_that_the_user_did_not_name_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.sse").write_bytes(CLEAN)
    done = run("a.sse")
    assert (done.exit_code, done.output) == (0, "streamweld: wrote report.html\n")
    assert (tmp_path / "report.html").stat().st_size > 1_000


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "rec" / "deepseek").mkdir(parents=True)
    (tmp_path / "rec" / "deepseek" / "a.sse").write_bytes(BODY)
    (tmp_path / "rec" / "b.sse").write_bytes(CLEAN)
    (tmp_path / "rec" / ".hidden").write_bytes(b"x")
    out = tmp_path / "r.html"
    done = run(tmp_path / "rec", "-o", out)
    assert (done.exit_code, done.output) == (0, "")
    page = Page(out.read_text("utf-8"))
    assert "Report: 2 streams" in page.text
    assert "deepseek/a.sse" in page.text
    assert run("--diff", tmp_path / "rec" / "b.sse", tmp_path / "rec" / "b.sse", "-o", out).exit_code == 0
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"streamweld_recording": 1}\n{"at": 0, "base64": "!"}\n', "utf-8")
    done = run(bad, tmp_path / "missing", tmp_path / "rec" / "b.sse", "-o", out)
    assert done.exit_code == 3
    assert "bad.jsonl: line 2: a piece needs `at`, and `text` or `base64`" in done.output
    assert "missing: No such file or directory" in done.output
    assert "b.sse" in out.read_text("utf-8")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert isinstance(run(empty, "-o", out).exception, UsageError)
    assert isinstance(run("--diff", tmp_path / "rec" / "b.sse", "-o", out).exception, UsageError)


def test_a_comparison_has_a_title_and_no_table_by_gateway(tmp_path: Path) -> None:
    for name in ("one.sse", "two.sse"):
        (tmp_path / name).write_bytes(BODY)
    read = [report.read(tmp_path / name) for name in ("one.sse", "two.sse")]
    assert [(one.name, one.gateway) for one in read] == [
        (str(tmp_path / name), tmp_path.name) for name in ("one.sse", "two.sse")
    ]
    page = report.render(read, diff=True)
    assert f"<title>Comparison: {read[0].name} and {read[1].name}</title>" in page
    assert "by gateway" not in page
    assert "by gateway" in report.render(read)
    assert "<title>Before &amp; after</title>" in report.render(read, diff=True, title="Before & after")


SPACED = b'data: {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [%s]}\n\n'


def test_only_the_events_whose_content_differs_are_counted_and_their_difference_is_marked() -> None:
    """The repairer writes JSON without spaces. The third event repeats the id before a long text."""
    padding = b"x" * 3_000
    role = b'{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}'
    first = (
        b'{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "type": "function",'
        b' "function": {"name": "f", "arguments": ""}}]}, "finish_reason": null}'
    )
    again = (
        b'{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c",'
        b' "function": {"arguments": "{\\"a\\":\\"%s\\"}"}}]}, "finish_reason": null}' % padding
    )
    last = b'{"index": 0, "delta": {}, "finish_reason": "tool_calls"}'
    body = b"".join(SPACED % choice for choice in (role, first, again, last)) + b"data: [DONE]\n\n"
    facts = describe(Recorded("a", "", body))
    assert facts.reasons == ["rewritten(header_again)"]
    assert [one.start for one in facts.repairs] == [len(SPACED % role + SPACED % first)]
    assert facts.repair_count == 1
    html = report.render([Recorded("a", "", body)])
    assert "Before and after repair: 1 event differs" in html
    assert "<mark>id&quot;:&quot;c&quot;,&quot;</mark>function" in html
    (table,) = re.findall(r'<pre class="removed">.*?</table>', html, re.DOTALL)
    assert "xxx" in table
    assert len(table) < 1_000


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'data: {"a": [1, "b c"]}\r\n\r\n', b'data:{"a":[1,"b c"]}\n\n'),
        (b'{"a": 1}\n', b'{ "a":1 }\n'),
        (b"event: x\ndata: {}\n\n", b"event:x\ndata:{ }\n\n"),
    ],
)
def test_spaces_are_not_content(one: bytes, other: bytes) -> None:
    assert compact(one) == compact(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'data: {"a":"b c"}\n\n', b'data: {"a":"bc"}\n\n'),
        (b'data: {"a":"\\" b"}\n\n', b'data: {"a":"\\"b"}\n\n'),
        (b"data: a b\n\n", b"data: ab\n\n"),
        (b'data: {"a": "b c\n\n', b'data: {"a": "bc\n\n'),
    ],
)
def test_spaces_in_text_are_content(one: bytes, other: bytes) -> None:
    assert compact(one) != compact(other)


def test_events_are_paired_in_linear_time() -> None:
    many = [b"%d" % number for number in range(20_000)]
    other = [b"%d" % -number for number in range(1, 20_002)]
    assert sum(1 for _ in changed_pairs(many, other)) == 20_001
    assert list(changed_pairs(many, many)) == []
    assert list(changed_pairs([b"a", b"b", b"d"], [b"a", b"c", b"d", b"e"])) == [(1, 1, 1), (3, None, 3)]
