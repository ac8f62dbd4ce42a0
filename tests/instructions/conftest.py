"""A home, a repository and an empty /etc for each test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reverie.instructions import Instructions, load_instructions
from reverie.paths import Places
from reverie.settings import load_settings

Load = Callable[..., Instructions]


def git(where: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=where, capture_output=True, check=True)


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture
def user_home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / ".reverie").mkdir(parents=True)
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "work" / "repo"
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    return folder


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    (tmp_path / "etc" / "reverie").mkdir(parents=True)
    return tmp_path / "etc"


@pytest.fixture
def load(user_home: Path, repo: Path, etc: Path) -> Load:
    def loaded(cwd: Path = repo, window: int = 200_000, **instructions: object) -> Instructions:
        overrides = {f"instructions.{key}": value for key, value in instructions.items()}
        settings = load_settings(cwd, env={"HOME": str(user_home)}, overrides=overrides, managed_dir=etc / "reverie")
        places = Places.of(cwd, settings)
        return load_instructions(places, settings, managed_dir=etc / "reverie", window=window)

    return loaded


def texts(found: Instructions) -> list[str]:
    return [file.text for file in found.files]
