"""Prints the machine and the versions with every bench run."""

from __future__ import annotations

import platform
from importlib.metadata import version

PACKAGES = ("streamweld", "openai", "httpx", "httpx-sse", "msgspec", "orjson")


def machine() -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"{platform.python_implementation()} {platform.python_version()} on {platform.machine()}; {versions}"


def pytest_report_header() -> str:
    return machine()
