"""Fixtures and settings that all suites share: the backends, the corpus, the counts, what the summary says."""

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

# The backend fixture is a name: that one test function sees it for all its examples does no harm.
CHECKS_OFF = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
# A verdict is one on the commit, not on the day: examples are the same in every run. `--hypothesis-profile search`
# looks for new ones.
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
    """Each test that asks for it runs once a backend. A missing extension is a failure, never a skip."""
    name = str(request.param)
    if name == "native" and importlib.util.find_spec("streamweld._native") is None:
        pytest.fail("the extension is not built (make build); --no-native leaves it out", pytrace=False)
    _tested.add(name)
    return name


def pytest_configure() -> None:
    """What a shell runs in the background may ignore interrupts, and so would the commands that tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Tens of thousands of collected tests stay for the whole run: no collection need walk them each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def full() -> bool:
    """True where slow suites run their full counts (STREAMWELD_FULL=1, `make test-all`)."""
    return FULL


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist tells what it ran."""
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
