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


def test_names_count_by_their_form_without_backticks(repo: Path) -> None:
    (repo / "src" / "report.rs").write_text("fn format_total() {}\n")
    text = (
        "Deploy steps are in deploy.md and Makefile.win. Dates go through formatDateLegacy(), not "
        "OrderLoader.load_all() (see loader.py, report.rs: format_total()). Also Dates.parse_old(); it was in "
        "old_dates.py, and app.test.ts."
    )
    missing = RepoNames(repo, find_ripgrep).find_missing(text)
    assert missing == (
        *("deploy.md", "Makefile.win", "old_dates.py", "app.test.ts"),
        *("formatDateLegacy", "Dates.parse_old"),
    )


def test_what_only_looks_like_a_name_does_not_count(repo: Path) -> None:
    text = (
        "Node.js and Vue.js 3.2, e.g. v1.2.3 or 10.5.md5, example.com, ASP.NET, a.b@mail.example.py, "
        "https://x.example/a.html?b=c.py, f() and x(), $run(), [the rule](feedback_x.md), {name}.py, *.py, ~a.py, "
        "--config=a.toml, i.e., U.S.A., and/or.py/"
    )
    assert RepoNames(repo, find_ripgrep).find_missing(text) == ()


def test_the_name_of_another_memory_is_no_file_of_the_repository(repo: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    (memory / "feedback_tests.md").touch()
    text = "See feedback_tests.md and feedback_gone.md."
    assert RepoNames(repo / "src", find_ripgrep, memory).find_missing(text) == ("feedback_gone.md",)


def test_many_bare_names_cost_no_more(repo: Path) -> None:
    text = " ".join(f"gone_{n}.py call_{n:04}()" for n in range(5_000))
    assert len(RepoNames(repo, find_ripgrep).find_missing(text)) == 8
    assert len(named_symbols("a_b_" * 100_000 + "()")) == 0
