"""Import pyarrow (extra `bulk`) when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from streamweld.errors import MissingExtra

__all__ = ["load_pyarrow"]


def load_pyarrow() -> Any:
    """Import pyarrow with its Parquet module and return it.

    Raises:
        MissingExtra: if pyarrow is not installed.
    """
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ModuleNotFoundError:
        raise MissingExtra("bulk", "pyarrow") from None
