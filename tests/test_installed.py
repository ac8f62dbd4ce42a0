"""Hints to install an extra: from where this Reverie came."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.paths.installed import pip_install

PACKAGE = Path(reverie.__file__).parent


def hint(lib: Path, source: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What an installation in `lib` says that pip got from there."""
    lib.mkdir()
    (lib / "reverie").symlink_to(PACKAGE)
    about = lib / "reverie-9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: reverie\nVersion: 9\n")
    if source is not None:
        (about / "RECORD").write_text(f"{about.name}/direct_url.json,,\n")
        (about / "direct_url.json").write_text(source if isinstance(source, str) else json.dumps(source))
    monkeypatch.setenv("PYTHONPATH", str(lib))
    code = "from reverie.paths.installed import pip_install; print(pip_install('server'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    return shlex.split(done.stdout)


def test_an_installation_says_where_it_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "a b" / "reverie-9-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"")
    git = {"url": "https://example.org/r.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
    cases: list[tuple[Any, str]] = [
        (None, "reverie[server]"),  # from an index
        ({"url": wheel.as_uri(), "archive_info": {}}, f"reverie[server] @ {wheel.as_uri()}"),
        ({"url": "file:///gone/x.whl", "archive_info": {}}, "reverie[server]"),
        ({"url": tmp_path.as_uri(), "dir_info": {}}, f"reverie[server] @ {tmp_path.as_uri()}"),
        (git, "reverie[server] @ git+https://example.org/r.git@abc"),
        ("[1]", "reverie[server]"),
        ("{", "reverie[server]"),
    ]
    for number, (source, wanted) in enumerate(cases):
        words = hint(tmp_path / f"lib{number}", source, monkeypatch)
        assert words[-1] == wanted and sys.executable in words


def test_a_checkout_names_itself() -> None:
    assert shlex.split(pip_install("otel"))[-2:] == ["-e", f"{PACKAGE.parents[1]}[otel]"]


def test_no_hint_is_written_by_hand() -> None:
    """An index may not have this package."""
    by_hand = re.compile(r"pip install ['\"]?reverie")
    assert [str(path) for path in PACKAGE.rglob("*.py") if by_hand.search(path.read_text())] == []
    pages = [*PACKAGE.parents[1].glob("docs/**/*.md"), PACKAGE.parents[1] / "README.md"]
    assert [str(path) for path in pages if by_hand.search(path.read_text())] == []
