"""The limit for memory of commands that run without a question."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie.permissions.rules import Profile
from reverie.runtime.bounded import bounded, explain_limit, most_memory
from reverie.tools.base import ToolContext
from tests.other_users import forked
from tests.permissions.hostile_repositories import clean
from tests.tools.calls import make_context, text, use

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the limit")


def _peak_of(work: Callable[[], Any]) -> tuple[Any, int]:
    """What `work` returns, and the most memory of a process that it started."""

    def run(send: Callable[[Any], None]) -> None:
        found = work()
        send((found, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1_024))

    with forked(run) as (_pid, answer):
        return answer


def _endless(work: Path) -> Path:
    info = work / ".git/objects/info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "alternates").unlink(missing_ok=True)
    (info / "alternates").symlink_to("/dev/zero")
    return work


def _trusting(work: Path) -> ToolContext:
    return make_context(work.parent, profile=Profile.READ_ONLY)


@pytest.mark.parametrize("command", ["git status", "git log --oneline", "git diff", "git show HEAD"])
def test_a_repository_that_never_ends_takes_no_more_than_the_limit(tmp_path: Path, command: str) -> None:
    """Neither what the sandbox asks git about it, nor the command."""
    context = _trusting(_endless(clean(tmp_path / "work")))
    output, peak = _peak_of(lambda: use(context, "Bash", command=command))
    assert output.is_error
    assert peak < 1.2 * most_memory()


def test_a_command_that_the_user_allowed_has_no_limit(tmp_path: Path) -> None:
    context = make_context(tmp_path)
    own = resource.getrlimit(resource.RLIMIT_DATA)[0]
    wanted = "unlimited" if own == resource.RLIM_INFINITY else str(own // 1_024)
    assert text(use(context, "Bash", command="touch made; ulimit -d")) == wanted


def test_the_limit_is_for_everything_that_the_command_starts_and_cannot_be_raised() -> None:
    hungry = "x = bytearray(200_000_000); print(len(x))"
    for words in (
        [sys.executable, "-c", hungry],
        ["/bin/sh", "-c", 'ulimit -d unlimited; exec "$@"', "sh", sys.executable, "-c", hungry],
        [
            sys.executable,
            "-c",
            f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {hungry!r}]))",
        ],
    ):
        assert subprocess.run(bounded(words), capture_output=True).returncode == 0
        small = subprocess.run(bounded(words, 100_000_000), capture_output=True, text=True)
        assert small.returncode and explain_limit(small.returncode, small.stderr)


def test_words_arrive_as_they_are() -> None:
    words = ["/usr/bin/printf", "%s|", "", "a b", "$HOME", "-d", 'q"q', "*", "\n"]
    done = subprocess.run(bounded(words), capture_output=True, text=True)
    assert done.stdout == "|".join(words[2:]) + "|"


@pytest.mark.parametrize(
    "words", [["node", "-e", "1"], ["java", "-version"], ["go", "version"], ["git", "--version"], ["rg", "--version"]]
)
def test_usual_programs_run(words: list[str]) -> None:
    """Some reserve hundreds of gigabytes of addresses."""
    program = shutil.which(words[0], path=f"{os.environ['PATH']}:{Path(sys.executable).parent}")
    if program is None:
        pytest.skip(f"needs {words[0]}")
    assert subprocess.run(bounded([program, *words[1:]]), capture_output=True).returncode == 0


def test_only_what_failed_for_memory_is_explained() -> None:
    assert not explain_limit(0, "out of memory")
    assert not explain_limit(1, "no match")
    assert "without a question" in explain_limit(128, "fatal: Out of memory, realloc failed")
