"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from typing import TYPE_CHECKING

import pytest
import streamweld
from streamweld import stream

if TYPE_CHECKING:
    from types import ModuleType

MODULES = [
    module.name
    for module in pkgutil.walk_packages(streamweld.__path__, "streamweld.")
    if module.name not in {"streamweld._native", "streamweld.__main__"}
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "backend", backend)
    module: ModuleType = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={}, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_there_are_docstrings_with_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name)))
    assert found >= 5
