"""The options of `streamweld proxy`: each field of a proxy's configuration has an option with the same default."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import re
import subprocess
import sys
import time
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from streamweld.integrations.proxy import ProxyConfig, logs

from tests.proxy.test_proxy import command
from tests.support.servers.command import streamweld
from tests.support.servers.proxying import GOOD
from tests.support.servers.upstream import Upstream, sse, until

UPSTREAM = "http://gateway.example/v1"
# Prints, as JSON, the arguments with which the command would serve: an address, seconds of grace, and a configuration.
TOLD = """
import dataclasses, importlib, json
from streamweld.__main__ import main

module = importlib.import_module("streamweld.cli.proxy")
module.serve = lambda config, *address, grace, ready: print(json.dumps([*address, grace, dataclasses.asdict(config)]))
main()
"""
OTHERS: dict[str, Any] = {
    "upstream": UPSTREAM,
    "to": "anthropic",
    "policy": "strict",
    "text_calls": "report",
    "text_call_families": ["hermes", "qwen3_coder"],
    "gateway": "anthropic",
    "max_body_bytes": 11,
    "max_stream_bytes": 12,
    "record": "recordings",
    "connect_timeout": 1.5,
    "idle_timeout": 2.5,
    "event_timeout": 3.5,
    "client_timeout": 4.5,
    "tracing": True,
    "token": "s3cret",
    "allow_hosts": ["llm.example", "*.example.com"],
    "allow_origins": ["http://localhost:3000"],
}
REPEATED = {
    "text_call_families": "--text-call-families",
    "allow_hosts": "--allow-host",
    "allow_origins": "--allow-origin",
}


def told(*args: str, **environment: str) -> Any:
    command = [sys.executable, "-c", TOLD, "proxy", *args]
    env = {name: value for name, value in os.environ.items() if not name.startswith("STREAMWELD_PROXY_")}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=env | {"PYTHONUTF8": "1"} | environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def flags() -> dict[str, str]:
    """Return the options of the command except `--config`, `--log-format` and `--help`, with their values from
    `OTHERS`."""
    made = {"host": "::1", "port": "9", "grace": "7", "otel": "true"}
    for name, value in OTHERS.items():
        if name in REPEATED:
            made[REPEATED[name].removeprefix("--")] = " ".join(value)
        elif name != "tracing":
            made[name.replace("_", "-")] = str(value)
    return made


def variable(flag: str) -> str:
    return "STREAMWELD_PROXY_" + flag.replace("-", "_").upper()


def test_every_part_of_the_configuration_has_an_option() -> None:
    args: list[str] = []
    for flag, value in flags().items():
        repeated = f"--{flag}" in REPEATED.values()
        for each in value.split() if repeated else [value]:
            args += [f"--{flag}"] if flag == "otel" else [f"--{flag}", each]
    assert told(*args) == ["::1", 9, 7, OTHERS]
    assert {part.name for part in dataclasses.fields(ProxyConfig)} == OTHERS.keys()


def test_every_option_has_an_environment_variable() -> None:
    environment = {variable(flag): value for flag, value in flags().items()}
    assert told(**environment) == ["::1", 9, 7, OTHERS]
    help_ = streamweld("native", "proxy", "--help").stdout
    shown = set(re.findall(r"STREAMWELD_PROXY_[A-Z_]+", help_))
    assert shown == environment.keys() | {
        f"STREAMWELD_PROXY_{name}" for name in ("CONFIG", "LOG_FORMAT", "LOG_LEVEL", "UPSTREAM_DIALECT")
    }


def toml(path: Path, **more: object) -> str:
    """Write a file with every option."""
    lines: list[str] = []
    for flag, value in flags().items():
        name = flag.replace("-", "_")
        if f"--{flag}" in REPEATED.values():
            lines.append(f"{flag} = {json.dumps(value.split())}")
        elif flag == "otel" or flag in ("port", "grace") or isinstance(OTHERS.get(name), int | float):
            lines.append(f"{flag} = {value}")
        else:
            lines.append(f"{flag} = {json.dumps(value)}")
    lines += [f"{name} = {json.dumps(value)}" for name, value in more.items()]
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def test_every_option_can_be_set_in_a_file(tmp_path: Path) -> None:
    path = toml(tmp_path / "proxy.toml")
    assert told("--config", path) == told(STREAMWELD_PROXY_CONFIG=path) == ["::1", 9, 7, OTHERS]


def test_the_command_line_precedes_the_environment_which_precedes_the_file(tmp_path: Path) -> None:
    path = toml(tmp_path / "proxy.toml")
    environment = {"STREAMWELD_PROXY_PORT": "10", "STREAMWELD_PROXY_GRACE": "8"}
    host, port, grace, config = told("--config", path, "--grace", "9", "--allow-host", "a.example", **environment)
    assert (host, port, grace) == ("::1", 10, 9)
    assert config == OTHERS | {"allow_hosts": ["a.example"]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("upstrean = 'http://x'", "'upstrean' is not an option. Options: upstream, upstream-dialect, policy"),
        ("idle_timeout = 3", "'idle_timeout' is not an option"),
        ("config = 'other.toml'", "'config' is not an option"),
        ("[proxy]\nport = 1", "'proxy' is not an option"),
        ("port = '1'", "port must be a whole number"),
        ("grace = 1.5", "grace must be a whole number"),
        ("idle-timeout = true", "idle-timeout must be a number"),
        ("otel = 1", "otel must be true or false"),
        ("allow-host = 'a'", "allow-host must be an array of strings"),
        ("text-call-families = 'hermes'", "text-call-families must be an array of strings"),
        ("text-calls = 'report'\ntext-call-families = ['qwen']", "did you mean 'hermes' or 'qwen3_coder'?"),
        ("text-call-families = ['hermes']", "text_call_families has no effect while text_calls is off"),
        ("token = 7", "token must be a string"),
        ("to = 'grpc'", "'grpc': it must be one of"),
        ("log-level = 'loud'", "'loud' is not one of"),
        ("log_format = 'json'", "did you mean log-format?"),
        ("port = 70000", "70000 is not in the range"),
        ("port = ", "is not valid TOML"),
    ],
)
def test_a_file_that_cannot_be_is_an_error_of_usage(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "proxy.toml"
    path.write_text(text, "utf-8")
    done = streamweld("native", "proxy", "--upstream", UPSTREAM, "--config", path)
    assert done.returncode == 2
    assert said in done.stderr


def test_wrong_values_are_named_in_words() -> None:
    done = streamweld("native", "proxy", "--upstream", UPSTREAM, "--port", "abc")
    assert "'abc' is not a valid port number" in done.stderr
    converted = streamweld("native", "convert", "--to", "gpt", "-", stdin=b"")
    assert "Invalid value for '--to': 'gpt': it must be one of" in converted.stderr
    assert "did you mean chat or responses?" in converted.stderr


def test_a_file_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    done = streamweld("native", "proxy", "--upstream", UPSTREAM, "--config", tmp_path / "none.toml")
    assert done.returncode == 3
    assert "none.toml: No such file or directory" in done.stderr


DOCS = Path(__file__).resolve().parents[2] / "docs" / "proxy"


def test_the_files_of_the_documentation_have_options_that_exist() -> None:
    text = (DOCS / "proxy.toml").read_text("utf-8")
    told_of = set(re.findall(r"^(?:# )?([a-z-]+) = ", text, re.MULTILINE))
    assert told_of == (flags().keys() - {"to"}) | {"log-format", "log-level", "upstream-dialect"}
    values = tomllib.loads(text)
    assert values.pop("upstream") == "https://gateway.example/v1"
    assert values.keys() == told_of - {"upstream", "upstream-dialect", "text-calls", "gateway", "token", "record"}
    defaults = told("--upstream", "https://gateway.example/v1")
    assert told("--config", str(DOCS / "proxy.toml")) == defaults
    known = {variable(flag) for flag in (*told_of, "config")}
    for name in ("Dockerfile", "streamweld-proxy.service"):
        used = set(re.findall(r"STREAMWELD_PROXY_[A-Z_]+", (DOCS / name).read_text("utf-8")))
        assert used
        assert used <= known


def test_what_is_not_given_is_as_in_python() -> None:
    assert told("--upstream", UPSTREAM) == [
        "127.0.0.1",
        8787,
        300,
        {**dataclasses.asdict(ProxyConfig(UPSTREAM)), "allow_hosts": [], "allow_origins": [], "text_call_families": []},
    ]


def test_the_log_as_json() -> None:
    upstream = Upstream(sse(*GOOD))
    with (
        upstream.serving(),
        command("--upstream", upstream.url, "--to", "chat", "--log-format", "json", ready="listening") as (
            process,
            _,
            lines,
        ),
    ):
        url = json.loads(lines[0])["address"]
        body: dict[str, Any] = {
            "model": "m",
            "max_tokens": 9,
            "top_k": 1,
            "messages": [{"role": "user", "content": "?"}],
        }
        httpx2.post(f"{url}/v1/messages", json=body | {"stream": True}, headers={"x-api-key": "s3cret"})
        httpx2.get(f"{url}/a%20b%0Ac")
        until(lambda: len(lines) == 3)
        process.terminate()
        process.wait(20)
    started, first, second = [json.loads(line) for line in lines[:3]]
    for record in (started, first, second):
        assert (record.pop("level"), record.pop("logger")) == ("info", "streamweld.proxy")
        assert abs(datetime.fromisoformat(record.pop("time")).timestamp() - time.time()) < 60
    assert started == {"message": "listening", "address": url, "upstream": upstream.url}
    assert isinstance(first.pop("seconds"), float)
    assert isinstance(first.pop("first"), float)
    assert first.pop("in") == len(b"".join(GOOD))
    assert first.pop("out") > 0
    assert first.pop("events") > 0
    expected = {"message": "request", "method": "POST", "path": "/v1/messages", "status": 200, "mode": "convert"}
    expected |= {"dialect": "anthropic", "upstream": "chat", "model": "m", "outcome": "complete", "dropped": ["top_k"]}
    assert {name: value for name, value in first.items() if name != "diagnostics"} == expected
    assert (second["message"], second["status"]) == ("request", 400)
    assert "s3cret" not in "".join(lines)


def test_a_record_with_an_exception_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logs.formatter("json"))
    record = logging.LogRecord("uvicorn.error", logging.ERROR, __file__, 1, "a %s", ("line\nbreak",), None)
    try:
        raise LookupError("no")
    except LookupError:
        record.exc_info = sys.exc_info()
    handler.emit(record)
    (line,) = capsys.readouterr().err.splitlines()
    told_ = json.loads(line)
    assert (told_["level"], told_["logger"], told_["message"]) == ("error", "uvicorn.error", "a line\nbreak")
    assert told_["exception"].startswith("Traceback")
    assert told_["exception"].endswith("LookupError: no")


@pytest.mark.parametrize(
    ("option", "default"),
    [
        ("--connect-timeout", "10.0"),
        ("--idle-timeout", "300.0"),
        ("--event-timeout", "600.0"),
        ("--client-timeout", "60.0"),
    ],
)
def test_timeouts_are_told_with_unit_and_default(option: str, default: str) -> None:
    said = " ".join(streamweld("native", "proxy", "--help").stdout.split())
    found = re.search(rf"{option} FLOAT (.*?)\[env var: \w+; default: (.*?)\]", said)
    assert found is not None, said
    assert found[1].startswith("Seconds ")
    assert found[2] == default


@pytest.mark.parametrize("option", ["--connect-timeout", "--idle-timeout", "--event-timeout", "--client-timeout"])
@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_a_time_that_is_none_is_an_error_of_usage(option: str, seconds: str) -> None:
    done = streamweld("native", "proxy", "--upstream", UPSTREAM, option, seconds)
    assert done.returncode == 2
    assert f"{option[2:].replace('-', '_')}=" in done.stderr


def test_an_unknown_variable_is_reported_with_the_one_that_was_meant() -> None:
    environment = os.environ | {"STREAMWELD_PROXY_IDLE_TIMEUOT": "5", "STREAMWELD_PROXY_SERVICE_HOST": "10.0.0.1"}
    asked = [sys.executable, "-m", "streamweld", "proxy"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False, env=environment)
    hint = "; did you mean STREAMWELD_PROXY_IDLE_TIMEOUT?"
    assert f"streamweld: the environment variable STREAMWELD_PROXY_IDLE_TIMEUOT is ignored{hint}\n" in done.stderr
    assert "STREAMWELD_PROXY_SERVICE_HOST is ignored" in done.stderr
    assert "Missing option '--upstream'" in done.stderr
