"""Packaging: lock files in sync, no private mirror, pinned workflows."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.support.places import REPOSITORY

ROOT = REPOSITORY
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

Requirement = tuple[str, frozenset[str], str]


def requirement(text: str, extra: str) -> Requirement:
    found = re.fullmatch(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?(.*)", text)
    assert found is not None, text
    return found[1].lower(), frozenset(filter(None, found[2].split(","))), extra


def group(name: str) -> set[Requirement]:
    """Return the requirements of a dependency group, with those of the groups that it includes."""
    found: set[Requirement] = set()
    for row in PROJECT["dependency-groups"][name]:
        found |= {requirement(row, "")} if isinstance(row, str) else group(row["include-group"])
    return found


def test_developers_tools_are_groups_and_not_extras() -> None:
    assert set(PROJECT["project"]["optional-dependencies"]) == {"aiohttp", "bulk", "cli", "otel", "proxy"}
    assert {"bench", "docs", "lint", "test"} <= set(PROJECT["dependency-groups"])


def test_the_metadata_names_every_format() -> None:
    formats = ("Chat Completions", "Responses", "Anthropic Messages", "Gemini", "AI SDK stream parts", "AI SDK UI")
    assert [name for name in formats if name not in PROJECT["project"]["description"]] == []
    assert {"Documentation", "Repository", "Issues", "Changelog"} <= set(PROJECT["project"]["urls"])


def test_uv_lock_is_in_step_with_pyproject() -> None:
    """The test compares the files, because the suites run without uv; `uv lock` updates uv.lock."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))
    (ours,) = (package for package in lock["package"] if package["name"] == PROJECT["project"]["name"])

    def locked(row: dict[str, str], extra: str) -> Requirement:
        return row["name"], frozenset(filter(None, row.get("specifier", "").split(","))), extra

    extras = set()
    for row in ours["metadata"]["requires-dist"]:
        extra = re.search(r"extra == '([\w-]+)'", row.get("marker", ""))
        extras.add(locked(row, extra[1] if extra else ""))
    wanted = {requirement(text, "") for text in PROJECT["project"]["dependencies"]}
    for name, rows in PROJECT["project"]["optional-dependencies"].items():
        wanted |= {requirement(text, name) for text in rows}
    assert extras == wanted

    groups = {name: {locked(row, "") for row in rows} for name, rows in ours["metadata"]["requires-dev"].items()}
    assert groups == {name: group(name) for name in PROJECT["dependency-groups"]}
    assert lock["requires-python"] == PROJECT["project"]["requires-python"]


@pytest.mark.parametrize("name", ["uv.lock", "Cargo.lock"])
def test_locks_name_no_private_mirror(name: str) -> None:
    """Lock files use one public registry. They do not contain an address, port, credentials or one-word host of a
    private network.
    """
    text = (ROOT / name).read_text("utf-8")
    assert len(set(re.findall(r'registry ?[=+] ?"?(https?://[^"]+)"', text))) == 1
    hosts = set(re.findall(r"\w+://([^/\"]+)/", text))
    odd = [
        host for host in hosts if not re.fullmatch(r"[a-z]+(\.[a-z]+)+", host) or host.endswith((".local", ".internal"))
    ]
    assert odd == []


def test_the_lock_of_the_javascript_clients_names_no_mirror_and_is_in_step() -> None:
    wanted = json.loads((ROOT / "tests" / "node" / "package.json").read_text("utf-8"))["dependencies"]
    packages = json.loads((ROOT / "tests" / "node" / "package-lock.json").read_text("utf-8"))["packages"]
    assert packages.pop("")["dependencies"] == wanted
    assert len(packages) > len(wanted)
    for name, package in packages.items():
        assert package["integrity"].startswith("sha512-"), name
        assert package.get("resolved", "https://registry.npmjs.org/").startswith("https://registry.npmjs.org/"), name
    for name, version in wanted.items():
        assert packages[f"node_modules/{name}"]["version"] == version


def test_a_plain_install_needs_orjson_and_nothing_else() -> None:
    assert [requirement(text, "")[0] for text in PROJECT["project"]["dependencies"]] == ["orjson"]


def test_there_is_one_version_number() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    for member in ("core", "py"):
        manifest = tomllib.loads((ROOT / "rust" / member / "Cargo.toml").read_text("utf-8"))
        assert manifest["package"]["version"] == {"workspace": True}
    assert re.fullmatch(r"\d+\.\d+\.\d+", workspace["version"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_pinned_and_start_without_rights(path: Path) -> None:
    text = path.read_text("utf-8")
    used = re.findall(r"^ *-? *uses: (.*)$", text, re.MULTILINE)
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []
    assert "\npermissions: {}\n" in text
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
