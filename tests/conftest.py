"""Fixtures and settings that all suites share: the backends, the corpus, the counts, the summary."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.backends import BACKENDS
from tests.support.clients import node_side
from tests.support.clients.node_side import node, node_process
from tests.support.corpus import RAN
from tests.support.cuts import TRIED

__all__ = ["node", "node_process"]

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

NIGHTLY = os.environ.get("STREAMWELD_NIGHTLY") == "1"
FULL = NIGHTLY or os.environ.get("STREAMWELD_FULL") == "1"

# The `backend` fixture is a constant string, so sharing it between the examples of a test function is safe.
CHECKS_OFF = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
# Examples are the same in every run, so that a result depends only on the commit. `--hypothesis-profile search` looks
# for new examples.
for name, count, fixed in (("sample", 100, True), ("full", 2000, True), ("search", 2000, False)):
    settings.register_profile(
        name, max_examples=count, deadline=None, derandomize=fixed, print_blob=True, suppress_health_check=CHECKS_OFF
    )
settings.load_profile("full" if FULL else "sample")

_tested: set[str] = set()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-native", action="store_true", help="leave the native backend out (it is not built)")


def backends(config: pytest.Config) -> list[str]:
    return [name for name in BACKENDS if name != "native" or not config.getoption("--no-native")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", backends(metafunc.config), indirect=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    """The backend. Each test that requests this fixture runs once per backend. If the extension is missing, the test
    fails; it is not skipped.
    """
    name = str(request.param)
    if name == "native" and importlib.util.find_spec("streamweld._native") is None:
        pytest.fail("the extension is not built (make build); --no-native leaves it out", pytrace=False)
    _tested.add(name)
    return name


def pytest_configure() -> None:
    """Restore the interrupt handler, because a background shell may ignore interrupts, which commands that tests start
    would inherit.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Freeze the collected tests, so that garbage collection does not traverse tens of thousands of them each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def full() -> bool:
    """True if slow suites run their full counts (STREAMWELD_FULL=1, `make test-all`)."""
    return FULL


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report from a pytest-xdist worker which tests it ran."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output.update(tested=sorted(_tested), ran=sorted(RAN), node=sorted(node_side.RAN), cuts=dict(TRIED))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})
    _tested.update(output.get("tested", ()))
    RAN.update(output.get("ran", ()))
    node_side.RAN.update(output.get("node", ()))
    TRIED.update(output.get("cuts", {}))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    terminalreporter.write_line(f"backends tested: {', '.join(sorted(_tested)) or 'none'}")
    terminalreporter.write_line(f"corpus streams run: {len(RAN)}")
    terminalreporter.write_line(f"node tests run: {len(node_side.RAN)}")
    if TRIED:
        outcomes = ", ".join(f"{TRIED[name]} {name}" for name in ("reported", "equal", "undecidable", "silent"))
        terminalreporter.write_line(f"cuts tried: {TRIED.total()} ({outcomes})")
