"""A git work tree for one agent, made from the last commit. It is removed if nothing changed and kept otherwise.

Work trees are in the home. It never touches the index, the branches or the files of the user's checkout.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from reverie.errors import ReverieError, UserError
from reverie.paths import make_private
from reverie.paths.programs import users_program
from reverie.paths.repo import Repo, find_repo
from reverie.quick import dataclass
from reverie.runtime.bounded import bounded

_SECONDS = 60.0
_NOTHING_RUNS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""The repository may come from a stranger: git runs none of its hooks."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """A work tree at `path` on `branch`, as of commit `base`."""

    path: Path
    branch: str
    repo: Path
    base: str
    env: Mapping[str, str]

    @classmethod
    async def make(cls, name: str, cwd: Path, folder: Path, env: Mapping[str, str]) -> Worktree:
        """Makes a work tree for the repository around `cwd`. Raises UserError without a repository or a commit."""
        found = check_repo(cwd)
        try:
            base = (await _git(found.checkout, env, "rev-parse", "--verify", "HEAD^{commit}")).strip()
        except ReverieError:
            raise UserError(
                f"{found.checkout} has no commit yet, so a work tree is not possible: commit something."
            ) from None
        make_private(folder)
        number = 1
        while True:
            own = name if number == 1 else f"{name}-{number}"
            path, branch = folder / own, f"reverie/{own}"
            if not os.path.lexists(path) and not await _has_branch(found.checkout, env, branch):
                break
            number += 1
        await _git(found.checkout, env, "worktree", "add", "--quiet", "-b", branch, str(path), base)
        return cls(path, branch, found.checkout, base, env)

    async def leave(self) -> str:
        """Removes the work tree if nothing changed; else it stays, and the returned text says where."""
        try:
            changed = await _git(self.path, self.env, "status", "--porcelain", "--ignore-submodules=none")
            head = (await _git(self.path, self.env, "rev-parse", "HEAD")).strip()
            if not changed.strip() and head == self.base:
                await _git(self.repo, self.env, "worktree", "remove", str(self.path))
                await _git(self.repo, self.env, "branch", "--quiet", "-D", self.branch)
                return ""
        except ReverieError as error:
            return f"Its work tree {self.path} (branch {self.branch}) was not removed: {error}"
        what = "has changes that are not committed" if changed.strip() else "has its own commits"
        return f"Its work tree {what} and is kept: {self.path}, branch {self.branch}."


def check_repo(cwd: Path) -> Repo:
    """Returns the repository around `cwd`; raises UserError if there is none."""
    found = find_repo(cwd)
    if found.git_dir is None:
        raise UserError(f"{cwd} is not in a git repository, so a work tree is not possible: leave isolation out.")
    return found


async def _has_branch(repo: Path, env: Mapping[str, str], branch: str) -> bool:
    listed = await _git(repo, env, "branch", "--list", "--format=%(refname:short)", branch)
    return bool(listed.strip())


async def _git(cwd: Path, env: Mapping[str, str], *words: str) -> str:
    """Runs git and returns its output. Raises ReverieError with git's own words if it fails."""
    own = {key: value for key, value in env.items() if not key.startswith("GIT_")} | {"LC_ALL": "C"}
    git = users_program("git", cwd)
    if git is None:
        raise ReverieError("git cannot be run: it is not installed")
    command = bounded([git, *_NOTHING_RUNS, *words])
    run = partial(subprocess.run, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, errors="replace")
    try:
        done = await asyncio.to_thread(run, command, cwd=cwd, env=own, encoding="utf-8")
    except OSError as error:
        raise ReverieError(f"git cannot be run: {error.strerror or error}") from error
    except subprocess.TimeoutExpired:
        raise ReverieError(f"git {words[0]} took longer than {_SECONDS:.0f} s") from None
    if done.returncode:
        reason = " ".join(done.stderr.split())[:300]
        raise ReverieError(f"git {words[0]} failed: {reason or f'exit code {done.returncode}'}")
    return done.stdout
