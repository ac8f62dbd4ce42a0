"""A home, a repository and an empty managed folder for each test; nothing of the machine's own settings leaks in."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reverie.paths import find_repo
from reverie.settings import Settings, load_settings
from reverie.storage.trust_file import trust

Load = Callable[..., Settings]


def git(where: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *words], cwd=where, capture_output=True, text=True, check=True)
    return done.stdout


def trust_all(settings: Settings, cwd: Path) -> None:
    """What `reverie trust --yes` does."""
    parts = [part for part in settings.parts if part.can_be_trusted]
    trust(settings.places.home, parts, find_repo(cwd).checkout)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / ".reverie"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / ".reverie").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    return folder


@pytest.fixture
def managed(tmp_path: Path) -> Path:
    folder = tmp_path / "managed"
    folder.mkdir()
    return folder


@pytest.fixture
def load(home: Path, repo: Path, managed: Path) -> Load:
    def loaded(
        env: Mapping[str, str] | None = None, overrides: Mapping[str, object] | None = None, cwd: Path = repo
    ) -> Settings:
        full = {"HOME": str(home.parent), **(env or {})}
        return load_settings(cwd, env=full, overrides=overrides, managed_dir=managed)

    return loaded
