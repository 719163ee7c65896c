"""Entry point of `streamweld` and `python -m streamweld`.

If the `cli` extra is not installed, the command reports how to install it.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command and exit the process with one of the exit codes in `streamweld.cli.console`."""
    missing = [name for name in ("click", "rich") if find_spec(name) is None]
    if missing:
        print(
            f"streamweld: the command line needs {' and '.join(missing)}: pip install 'streamweld[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2)
    from streamweld.cli import run

    run()


if __name__ == "__main__":
    main()
