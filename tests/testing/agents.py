"""Compares how agent frameworks read broken streams, one for each operator, without and with streamweld.

    python -m tests.testing.agents --python .venv/recipes/bin/python --page docs/guides/testing-agents.md

The streams are served by a loopback gateway. openai-agents, pydantic-ai and LangChain run in their own environment
(`STREAMWELD_FULL=1 make environments`), with `repair()` around their client. The AI SDK runs in Node.js (`make
node-modules`), without streamweld and through `streamweld proxy`. The page is generated, and must not be edited by
hand.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import warnings
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamweld.testing import OPERATORS, BrokenGateway, Call, Reply, build, operators_for

from tests.testing.judges import PARTS, Held, Row, is_right, value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from streamweld.testing import Stream
    from streamweld.testing.gateway import Request

ROOT = Path(__file__).parents[2]
DIALECTS = ("chat", "responses", "anthropic")
SUCCESS = ("stop", "tool_calls", "tool_call", "tool-calls", "tool_use", "end_turn", "completed")


# The frameworks. Each reads the stream of one model. This part runs in their environment.


def client_of(dialect: str, url: str, *, repaired: bool) -> Any:
    if dialect == "anthropic":
        import anthropic
        from streamweld.integrations.anthropic import repair as repair_anthropic

        other = anthropic.AsyncAnthropic(api_key="none", base_url=url, max_retries=0, timeout=10)
        return repair_anthropic(other) if repaired else other
    import openai
    from streamweld.integrations.openai import repair as repair_openai

    one = openai.AsyncOpenAI(api_key="none", base_url=url + "/v1", max_retries=0, timeout=10)
    return repair_openai(one) if repaired else one


async def langchain(dialect: str, model: str, url: str, held: Held, _: list[str], *, repaired: bool) -> None:
    if dialect == "anthropic":
        from langchain_anthropic import ChatAnthropic
        from streamweld.integrations.anthropic import repair as repair_anthropic

        chat: Any = ChatAnthropic(model=model, api_key="none", base_url=url, max_retries=0)
        chat = repair_anthropic(chat) if repaired else chat
    else:
        from langchain_openai import ChatOpenAI
        from streamweld.integrations.openai import repair as repair_openai

        way = dialect == "responses"
        chat = ChatOpenAI(model=model, api_key="none", base_url=url + "/v1", max_retries=0, use_responses_api=way)
        chat = repair_openai(chat) if repaired else chat
    whole: Any = None
    async for chunk in chat.astream("hi"):
        whole = chunk if whole is None else whole + chunk
    blocks = whole.content if isinstance(whole.content, list) else [whole.content]
    texts = [block if isinstance(block, str) else block.get("text", "") for block in blocks]
    held.text = "".join(texts)
    held.calls = [(call["name"], call["args"]) for call in whole.tool_calls]
    facts = whole.response_metadata
    held.success = any(facts.get(name) in SUCCESS for name in ("finish_reason", "stop_reason", "status"))


async def pydantic_ai(dialect: str, model: str, url: str, held: Held, _: list[str], *, repaired: bool) -> None:
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest, TextPart

    client = client_of(dialect, url, repaired=repaired)
    if dialect == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        chosen: Any = AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))
    else:
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        kind: Any = OpenAIChatModel if dialect == "chat" else OpenAIResponsesModel
        chosen = kind(model, provider=OpenAIProvider(openai_client=client))
    async with client, model_request_stream(chosen, [ModelRequest.user_text_prompt("hi")]) as stream:
        async for _ in stream:
            pass
        response = stream.get() if callable(getattr(stream, "get", None)) else stream.response
    held.text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    held.calls = [(part.tool_name, value(part.args)) for part in response.tool_calls]
    held.success = response.finish_reason in SUCCESS


async def openai_agents(dialect: str, model: str, url: str, held: Held, names: list[str], *, repaired: bool) -> None:
    import agents

    agents.set_tracing_disabled(True)

    def tool(name: str) -> Any:
        async def run(_: Any, arguments: str) -> str:
            held.calls.append((name, value(arguments)))
            return "done"

        schema = {"type": "object", "properties": {}}
        return agents.FunctionTool(name, "Any tool.", schema, run, strict_json_schema=False)

    client = client_of(dialect, url, repaired=repaired)
    kind: Any = agents.OpenAIChatCompletionsModel if dialect == "chat" else agents.OpenAIResponsesModel
    agent = agents.Agent(
        name="a",
        model=kind(model, openai_client=client),
        tools=[tool(name) for name in names],
        tool_use_behavior="stop_on_first_tool",
    )
    async with client:
        result = agents.Runner.run_streamed(agent, "hi", max_turns=1)
        async for _ in result.stream_events():
            pass
    texts = [agents.ItemHelpers.text_message_output(i) for i in result.new_items if i.type == "message_output_item"]
    held.text = "".join(texts)
    held.success = True  # without a finish reason, the absence of an exception counts as success


FRAMEWORKS: dict[str, tuple[Callable[..., Awaitable[None]], tuple[str, ...], str]] = {
    "openai-agents": (openai_agents, ("chat", "responses"), "openai-agents"),
    "pydantic-ai": (pydantic_ai, DIALECTS, "pydantic-ai-slim"),
    "LangChain": (langchain, DIALECTS, "langchain-openai"),
}
AI_SDK = "AI SDK"


async def read_all(name: str, dialect: str, url: str, tools: list[list[str]], *, repaired: bool) -> list[Held]:
    read, found = FRAMEWORKS[name][0], []
    for number, names in enumerate(tools):
        held = Held()
        try:
            await asyncio.wait_for(read(dialect, f"m-{number}", url, held, names, repaired=repaired), 20)
        except Exception as error:  # noqa: BLE001 (the exception is compared)
            held.error, held.success = type(error).__name__, False
        found.append(held)
    return found


# Serves the streams and starts the readers.


def streams_of(dialect: Any) -> list[Stream]:
    """Return one stream for each operator. Its meaning must be unambiguous without an option of streamweld."""
    built = build(dialect, PARTS[0], seed=1)
    made = [operator(built, 1) for operator in operators_for(dialect) if operator.certain]
    return [stream for stream in made if stream is not None and not stream.options]


@contextmanager
def serving(streams: list[Stream]) -> Iterator[str]:
    def answer(request: Request) -> Reply:
        return Reply.of(streams[int(json.loads(request.body)["model"].removeprefix("m-"))])

    with BrokenGateway(answer) as gateway:
        yield gateway.url


@contextmanager
def proxied(url: str) -> Iterator[str]:
    command = [sys.executable, "-m", "streamweld", "proxy", "--upstream", url, "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=_environment())
    try:
        assert process.stderr is not None
        address = process.stderr.readline().split()[1]
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _environment() -> dict[str, str]:
    quiet = {"OPENAI_API_KEY": "none", "DO_NOT_TRACK": "1", "LANGSMITH_TRACING": "false"}
    return {**os.environ, **quiet, "PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{ROOT}"}


def child(command: list[str]) -> Any:
    done = subprocess.run(command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-4000:])
    return json.loads(done.stdout.strip().rpartition("\n")[2])  # not splitlines(): texts contain other line separators


def judged(name: str, dialect: str, streams: list[Stream], python: str) -> dict[str, Row]:
    """Return, for each operator, how one framework reads the stream of one dialect that the operator broke."""
    rows: dict[str, Row] = defaultdict(Row)
    right: dict[bool, list[bool]] = {}
    declared = [part.name for part in PARTS[0] if isinstance(part, Call)]
    tools = json.dumps([[*dict.fromkeys(declared + [c.name for c in stream.expected.calls])] for stream in streams])
    with serving(streams) as url:
        for repaired in (False, True):
            if name == AI_SDK:
                with proxied(url) as proxy:
                    script = ["node", "tests/testing/agents.mjs", dialect, proxy if repaired else url]
                    read = child([*script, tools])
            else:
                options = ["--read", name, dialect, url, tools, *(["--repaired"] if repaired else [])]
                read = child([python, "-m", "tests.testing.agents", *options])
            held = [
                Held(one["text"], [(n, value(a)) for n, a in one["calls"]], one["success"], one["error"])
                for one in read
            ]
            right[repaired] = [is_right(one, stream.expected) for one, stream in zip(held, streams, strict=True)]
            for one, stream, fine in zip(held, streams, right[repaired], strict=True):
                if repaired and not fine:
                    print(f"{name} {dialect} {stream.operators}: {one}", file=sys.stderr)
    for stream, plain, behind in zip(streams, right[False], right[True], strict=True):
        if name == "openai-agents" and _is_unreported(stream):
            continue
        row = rows[stream.operators[0]]
        row.streams, row.without, row.behind = 1, int(plain), int(behind)
    return rows


def _is_unreported(stream: Stream) -> bool:
    """Return True for a complete stream with an unsuccessful finish reason, because openai-agents does not expose
    finish reasons.
    """
    expected = stream.expected
    return expected.ending not in ("truncated", "error") and expected.finish not in ("stop", "tool_calls")


def page(found: dict[tuple[str, str], dict[str, Row]], versions: dict[str, str]) -> str:
    """Return the page of the documentation."""
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [
        "# What breaks in agent frameworks",
        "",
        "<!-- Written by `python -m tests.testing.agents --page`. Do not edit. -->",
        "",
        "Each operator of [`streamweld.testing`](testing.md) breaks one conformant stream in one way. The stream has a",
        "text and two calls. Agent frameworks read the broken streams from a loopback server:",
        f"{shown}.",
        "The Python frameworks use [`repair()`](clients.md) around their client, and the AI SDK uses",
        "[`streamweld proxy`](proxy.md). A framework is right if it returns the expected text and calls. After a",
        "truncated stream, or a stream that ends in an error, a framework is right if it raises an exception or does",
        "not report success.",
        "",
        "In the tables, **fixed** means that a framework is wrong without streamweld and right with streamweld.",
        "*Wrong with streamweld* means that a framework is right without streamweld and wrong with streamweld, and",
        "the column *made wrong* counts such results.",
        "",
        "| framework | dialect | operators | right without streamweld | right with streamweld | made wrong |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for (name, dialect), rows in found.items():
        without, behind = sum(row.without for row in rows.values()), sum(row.behind for row in rows.values())
        worse = sum(row.without > row.behind for row in rows.values())
        lines.append(f"| {name} | `{dialect}` | {len(rows)} | {without} | {behind} | {worse} |")
    for dialect in DIALECTS:
        names = [name for name, other in found if other == dialect]
        heads = [f" {name} |" for name in names]
        lines += [
            "",
            f"## {dialect}",
            "",
            f"| operator | what it does |{''.join(heads)}",
            "|---|---|" + "---|" * len(names),
        ]
        for operator in sorted({operator for name in names for operator in found[name, dialect]}):
            cells = [_cell(found[name, dialect].get(operator)) for name in names]
            if set(cells) - {"right", ""}:
                lines.append(f"| `{operator}` | {OPERATORS[operator].about} | {' | '.join(cells)} |")
        lines += ["", "All other operators are read correctly by each of them, without and with streamweld."]
    return "\n".join(lines) + "\n"


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    words = {(1, 1): "right", (0, 1): "**fixed**", (0, 0): "wrong", (1, 0): "wrong with streamweld"}
    return words[row.without, row.behind]


def versions(python: str) -> dict[str, str]:
    """Return the versions of the frameworks in their environments."""
    requested = {name: package for name, (_, _, package) in FRAMEWORKS.items()}
    found = f"{{n: m.version(p) for n, p in {requested!r}.items()}}"
    code = f"import importlib.metadata as m, json; print(json.dumps({found}))"
    package = json.loads((ROOT / "tests/node/package.json").read_text("utf-8"))
    return child([python, "-c", code]) | {AI_SDK: package["dependencies"]["ai"]}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.testing.agents", description=__doc__)
    parser.add_argument("--python", default=str(ROOT / ".venv/recipes/bin/python"), help="of the frameworks")
    parser.add_argument("--page", type=Path, help="write the page of the documentation to this file")
    parser.add_argument("--read", nargs=4, metavar=("NAME", "DIALECT", "URL", "TOOLS"), help=argparse.SUPPRESS)
    parser.add_argument("--repaired", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.read is not None:
        name, dialect, url, tools = chosen.read
        held = asyncio.run(read_all(name, dialect, url, json.loads(tools), repaired=chosen.repaired))
        print(json.dumps([asdict(one) for one in held]))
        return
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for dialect in DIALECTS:
        streams = streams_of(dialect)
        for name in [*[name for name, (_, dialects, _) in FRAMEWORKS.items() if dialect in dialects], AI_SDK]:
            found[name, dialect] = judged(name, dialect, streams, chosen.python)
    text = page(found, versions(chosen.python))
    if chosen.page is not None:
        chosen.page.write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
