"""The options of `streamweld proxy`: each part of a proxy's configuration has one, with the same default."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from typing import Any

import pytest
from streamweld.integrations.proxy import ProxyConfig

from tests.support.servers.command import streamweld

UPSTREAM = "http://gateway.example/v1"
# What the command would serve, as JSON: an address, seconds of grace, and a configuration.
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
    "gateway": "anthropic",
    "max_body_bytes": 11,
    "max_stream_bytes": 12,
    "connect_timeout": 1.5,
    "idle_timeout": 2.5,
    "event_timeout": 3.5,
    "client_timeout": 4.5,
    "tracing": True,
    "token": "s3cret",
    "allow_hosts": ["llm.example", "*.example.com"],
    "allow_origins": ["http://localhost:3000"],
}
REPEATED = {"allow_hosts": "--allow-host", "allow_origins": "--allow-origin"}


def told(*args: str) -> Any:
    command = [sys.executable, "-c", TOLD, "proxy", "--upstream", UPSTREAM, *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_part_of_the_configuration_has_an_option() -> None:
    args = ["--host", "::1", "--port", "9", "--grace", "7", "--otel"]
    for name, value in OTHERS.items():
        if name in REPEATED:
            args += [word for each in value for word in (REPEATED[name], each)]
        elif name not in ("upstream", "tracing"):
            args += [f"--{name.replace('_', '-')}", str(value)]
    assert told(*args) == ["::1", 9, 7, OTHERS]
    assert {part.name for part in dataclasses.fields(ProxyConfig)} == OTHERS.keys()


def test_what_is_not_given_is_as_in_python() -> None:
    assert told() == [
        "127.0.0.1",
        8787,
        300,
        {**dataclasses.asdict(ProxyConfig(UPSTREAM)), "allow_hosts": [], "allow_origins": []},
    ]


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
    found = re.search(rf"{option} FLOAT (.*?)\[default: (.*?)\]", said)
    assert found is not None, said
    assert found[1].startswith("Seconds ")
    assert found[2] == default


@pytest.mark.parametrize("option", ["--connect-timeout", "--idle-timeout", "--event-timeout", "--client-timeout"])
@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_a_time_that_is_none_is_an_error_of_usage(option: str, seconds: str) -> None:
    done = streamweld("native", "proxy", "--upstream", UPSTREAM, option, seconds)
    assert done.returncode == 2
    assert f"{option[2:].replace('-', '_')}=" in done.stderr
