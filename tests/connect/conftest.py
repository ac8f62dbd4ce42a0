"""`reverie connect` in this process, with a home, a Claude Code and a Codex of its own."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reverie.cli.app import commands
from reverie.errors import ReverieError


@dataclass
class Machine:
    """The folders of one user. Calling it runs a command there."""

    user: Path
    work: Path

    @property
    def home(self) -> Path:
        return self.user / ".reverie"

    @property
    def settings(self) -> Path:
        return self.user / ".claude" / "settings.json"

    @property
    def local(self) -> Path:
        return self.work / ".claude" / "settings.local.json"

    @property
    def hooks(self) -> Path:
        return self.user / ".codex" / "hooks.json"

    def __call__(self, *args: str, code: int = 0) -> str:
        """What is printed, or the sentence of the error."""
        done = CliRunner().invoke(commands, args, standalone_mode=False)
        if isinstance(done.exception, ReverieError):
            assert done.exception.exit_code == code, done.exception
            return done.output + str(done.exception)
        assert done.exception is None, repr(done.exception)
        assert (done.return_value or 0) == code, done.output
        return done.output

    def connect(self, *args: str, code: int = 0) -> str:
        return self("connect", *(args or ("claude-code",)), "--yes", code=code)

    def status(self) -> dict[str, Any]:
        done = CliRunner().invoke(commands, ["connect", "--status", "--json"], standalone_mode=False)
        return json.loads(done.stdout)

    def write(self, path: Path, content: str | bytes, mode: int = 0o640) -> bytes:
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(data)
        path.chmod(mode)
        return data

    def snapshot(self) -> dict[str, tuple[int, bytes | str]]:
        """Every file of the user outside Reverie's home: its mode, and its bytes or where it leads."""
        found: dict[str, tuple[int, bytes | str]] = {}
        for folder in (self.user, self.work):
            for path in folder.rglob("*"):
                if not path.is_relative_to(self.home):
                    content = (
                        str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
                    )
                    found[str(path)] = (path.lstat().st_mode, content)
        return found


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    user, work = tmp_path / "the user's", tmp_path / "work"
    user.mkdir()
    work.mkdir()
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("REVERIE_HOME", str(user / ".reverie"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.chdir(work)
    return Machine(user, work)
