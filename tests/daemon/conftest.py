"""A home with a service that has stand-in handlers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.daemon.client import stop_daemon
from tests.daemon.services import start_service, wait_until_it_answers
from tests.waiting import LIMIT_S


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a service that answers, for all tests of a module."""
    home = tmp_path_factory.mktemp("served")
    service = start_service(home)
    wait_until_it_answers(home)
    yield home
    stop_daemon(home)
    service.wait(LIMIT_S)
