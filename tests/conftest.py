"""Fixtures every test shares: a home of its own, no keys, and a watch over every request's prefix."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import is_hypothesis_test, settings

from tests import outside, warm, workers
from tests.counts import SOAK, count
from tests.prefix_breaks import prefix_breaks

outside.leave_agent()

# The suite tries the same examples every time, however slow the machine; the soak looks for new ones.
settings.register_profile("suite", deadline=None, derandomize=not SOAK, max_examples=count(25, 1_000))
settings.load_profile("suite")

_MEMORY = Path("/dev/shm")
_INTEGRATION = Path(__file__).parent / "integration"
_USUAL = "not evals and not integration"


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.default_int_handler(number, frame)


def pytest_configure(config: pytest.Config) -> None:
    """Files of the suite are in memory if there is room: a disk takes a fifth of all time. The soak uses the disk."""
    # Where nobody handles Ctrl-C, `asyncio.run` does, and makes a text of the whole result of every test for nothing.
    signal.signal(signal.SIGINT, _interrupt)
    has_memory = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 2 * 2**30
    if has_memory and not SOAK and "TMPDIR" not in os.environ:
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None
    if config.getoption("numprocesses", None):
        warm.share()
        workers.fork(config, _files(config))


def _files(config: pytest.Config) -> Iterator[Path]:
    """The files with the tests of this run."""
    for given in config.args:
        path = config.invocation_params.dir / given.partition("::")[0]
        for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path]:
            if file.is_file() and not (_INTEGRATION in file.parents and _leaves_out_integration(config)):
                yield file


def _leaves_out_integration(config: pytest.Config) -> bool:
    return config.getoption("markexpr") == _USUAL and not any("integration" in path for path in config.args)


def pytest_sessionfinish(exitstatus: int) -> None:
    outside.tell(int(exitstatus))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A usual run does not import tests with programs of others: it would leave all of them out."""
    return True if collection_path == _INTEGRATION and _leaves_out_integration(config) else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Every property test belongs to the soak, where it tries more examples."""
    if is_hypothesis_test(getattr(item, "obj", None)):
        item.add_marker(pytest.mark.soak)


def pytest_collection_finish() -> None:
    """What collection made stays to the end. Without this the collector looks at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says what a run leaves out, so that nobody takes it for everything."""
    if config.getoption("markexpr") == _USUAL:
        terminalreporter.write_line(
            "Left out: tests with programs and models of others (`make integration`), measurements (`make evals`)."
        )


_UNSET = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_BETAS",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "XDG_RUNTIME_DIR",
    "NO_COLOR",
)


_NUMBERS = itertools.count()


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for what a test needs beside its own `tmp_path`, gone when the test ends.

    `mktemp` reads the names of all folders that are there each time: with thousands of tests that is most of the work.
    """
    folder = tmp_path_factory.getbasetemp() / "scratch" / str(next(_NUMBERS))
    folder.mkdir(parents=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def own_home(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing a test does touches the user's files, and nothing of the user's changes a test."""
    home = scratch / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("REVERIE_HOME", str(home / ".reverie"))
    for name in _UNSET:
        monkeypatch.delenv(name, raising=False)
    # What a layer does when its model fails is seen only if nobody stands in; tests of the stand-in switch it on.
    monkeypatch.setenv("REVERIE_BACKGROUND_FALLBACK", "0")
    return home


@pytest.fixture(autouse=True)
def prefix_watch(request: pytest.FixtureRequest, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Every request that any session of any test sends, in this process or another, extends the one before it.

    A layer announces a break in the request itself. A test that breaks the prefix otherwise says so and why:
    `@pytest.mark.breaks_prefix("reason")`.
    """
    log = scratch / "requests.jsonl"
    monkeypatch.setenv("REVERIE_REQUEST_LOG", str(log))
    yield log
    declared = request.node.get_closest_marker("breaks_prefix")
    breaks = prefix_breaks(log) if log.exists() else []
    if declared is None:
        assert not breaks, "\n".join(map(str, breaks))
    else:
        assert declared.args and declared.args[0], "a declared break says why"
        assert breaks, "this test declares a break of the prefix, and there was none"
