"""Verify at use: what a memory names in the repository and is not there any more, and what cannot be said."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.memory.references import RepoNames, named_files, named_symbols
from reverie.tools.ripgrep import find_ripgrep


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "loader.py").write_text("class OrderLoader:\n    def load_all(self): ...\n")
    return tmp_path


def test_files_and_symbols_that_are_gone_are_named(repo: Path) -> None:
    text = "`src/loader.py` has `OrderLoader.load_all()`; it was `src/old.py` with `fetch_all()` and `OrderFetcher`."
    assert RepoNames(repo, find_ripgrep).find_missing(text) == ("src/old.py", "fetch_all", "OrderFetcher")


def test_words_are_not_symbols(repo: Path) -> None:
    text = "Use `git rebase`, `true`, `main`, https://x.example/y_z, plain snake_case and `--no-verify`."
    assert RepoNames(repo, find_ripgrep).find_missing(text) == ()
    assert named_symbols("`snake_case` `camelCase` `PascalCase` `call_me()` `word` `UPPER` `a.b.call()`") == (
        "snake_case",
        "camelCase",
        "PascalCase",
        "call_me",
        "a.b.call",
    )


def test_where_it_cannot_look_it_says_nothing(repo: Path) -> None:
    assert RepoNames(repo, lambda: repo / "no-such-program").find_missing("`OrderFetcher`") == ()


def test_a_file_that_comes_back_is_not_gone(repo: Path) -> None:
    names = RepoNames(repo, find_ripgrep)
    assert names.find_missing("`src/old.py`") == ("src/old.py",)
    (repo / "src" / "old.py").write_text("")
    assert names.find_missing("`src/old.py`") == ()


def test_many_names_are_not_all_listed(repo: Path) -> None:
    text = " ".join(f"`src/gone_{n}.py`" for n in range(30))
    assert len(RepoNames(repo, find_ripgrep).find_missing(text)) == 8


def test_a_path_counts_without_backticks(repo: Path) -> None:
    text = "The loader is in src/loader.py (before: src/old.py:12, then lib/fetch.ts). CI is .github/workflows/ci.yml."
    missing = RepoNames(repo, find_ripgrep).find_missing(text)
    assert missing == ("src/old.py", "lib/fetch.ts", ".github/workflows/ci.yml")


def test_what_only_looks_like_a_path_does_not_count() -> None:
    text = (
        "Node.js and/or TCP/IP, v1.2/1.3, https://x.example/a/b.html, git.example/o/r/x.py, /etc/nginx/nginx.conf, "
        "~/notes/a.md, $HOME/run.sh, [the other memory](team/project_x.md), ../up/x.py, me@host:dir/x.py"
    )
    assert named_files(text) == ()
