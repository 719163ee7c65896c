"""Prints the machine and the versions with every bench run."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

PACKAGES = ("streamweld", "openai", "httpx", "httpx-sse", "msgspec", "orjson", "litellm", "martian-linguafranca")


def machine() -> str:
    versions = ", ".join(f"{name} {found}" for name in PACKAGES if (found := _version(name)) is not None)
    return f"{platform.python_implementation()} {platform.python_version()} on {platform.machine()}; {versions}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def pytest_report_header() -> str:
    return machine()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the benchmarks that are closest to real traffic first."""
    items.sort(key=lambda item: item.path.name != "test_recorded.py")
