"""Handle a second signal: end the process without waiting."""

from __future__ import annotations

import logging
import os

__all__ = ["end_at_once"]


def end_at_once(number: int, _: object = None) -> None:
    """End the process with the exit code of the signal. Use as a signal handler."""
    logging.shutdown()
    os._exit(128 + number)
