"""A checkout of the team's git remote, separate from the memory: fetched, filled by the sync, published. Each round
starts from the remote's state and puts our changes on top; a push that lost a race is repeated. Git runs without
prompts, hooks and signatures."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from reverie.errors import StorageError, UserError
from reverie.paths.programs import users_program
from reverie.runtime.bounded import bounded
from reverie.settings.sections import TeamSettings
from reverie.storage.atomic import make_private_dir, storage_error

_LOST_RACE = re.compile(r"rejected|non-fast-forward|fetch first|cannot lock ref|stale info", re.IGNORECASE)
_CREDENTIALS = re.compile(r"://[^/@\s]+@")
_OWN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY")
_SAFE = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.symlinks=false"),
    *("-c", "core.autocrlf=false"),
    *("-c", "commit.gpgSign=false"),
    *("-c", "gc.auto=0"),
    *("-c", "protocol.ext.allow=never"),
)


class TeamCheckout:
    """One remote. `folder` holds its files after `fetch`."""

    def __init__(self, given: TeamSettings, folder: Path, env: Mapping[str, str]) -> None:
        if not given.remote or given.remote.startswith("-"):
            raise UserError("`team.sharing` is git, but `team.remote` is not the address of a repository; set one.")
        if not re.fullmatch(r"[A-Za-z0-9][\w./-]*", given.branch) or ".." in given.branch:
            raise UserError(f"`team.branch` is {given.branch!r}, which is not the name of a branch; correct it.")
        self.folder = folder
        self._given = given
        kept = {name: value for name, value in env.items() if name not in _OWN}
        self._env = {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes", **kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}

    def fetch(self) -> bool:
        """Makes `folder` equal to the remote. False: the branch does not exist yet, so the folder is empty."""
        branch = self._given.branch
        if not (self.folder / ".git").is_dir():
            make_private_dir(self.folder)
            self._git("init", "-q")
        listed = self._git("ls-remote", "--heads", "--", self._given.remote, f"refs/heads/{branch}")
        if listed.strip():
            self._git("fetch", "-q", "--no-tags", "--", self._given.remote, f"refs/heads/{branch}")
            self._git("checkout", "-q", "-f", "-B", branch, "FETCH_HEAD")
            self._git("clean", "-q", "-ffdx")
        else:
            self._start_again(branch)
        return bool(listed.strip())

    def publish(self) -> bool:
        """Sends the changes in `folder`. False: somebody was faster; fetch and try again."""
        self._git("add", "-A", "--force")
        if not self._git("status", "--porcelain").strip():
            return True
        self._git(*self._identity(), "commit", "-q", "-m", "Share memories")
        done = self._run("push", "-q", "--", self._given.remote, f"HEAD:refs/heads/{self._given.branch}")
        if done.returncode and _LOST_RACE.search(done.stderr):
            return False
        self._checked("push", done)
        return True

    def stored(self) -> str:
        """All versions in the local clone as one text, to search it; empty if there is no clone."""
        if not (self.folder / ".git").is_dir():
            return ""
        return self._git("cat-file", "--batch", "--batch-all-objects")

    @property
    def address(self) -> str:
        """The remote, without credentials."""
        return _CREDENTIALS.sub("://", self._given.remote or "")

    def _start_again(self, branch: str) -> None:
        try:
            shutil.rmtree(self.folder)
        except OSError as error:
            raise storage_error(error, self.folder, "clear") from error
        make_private_dir(self.folder)
        self._git("init", "-q")
        self._git("symbolic-ref", "HEAD", f"refs/heads/{branch}")

    def _identity(self) -> tuple[str, ...]:
        """A name to commit under if the user has set none."""
        if self._run("config", "user.email").returncode == 0:
            return ()
        return ("-c", "user.name=Reverie", "-c", "user.email=reverie@localhost")

    def _git(self, *words: str) -> str:
        return self._checked(
            next(word for word in words if not word.startswith("-") and "=" not in word), self._run(*words)
        )

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        git = users_program("git", self.folder)
        if git is None:
            raise UserError("The team's memory is shared by git, and git is not installed; install it.")
        try:
            return subprocess.run(
                bounded([git, *_SAFE, *words]),
                cwd=self.folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=self._given.timeout_s,
                check=False,
            )
        except OSError as error:
            raise storage_error(error, self.folder, "work in") from error
        except subprocess.TimeoutExpired:
            raise StorageError(
                f"The team's git remote did not answer within {self._given.timeout_s:g} s; the next sync tries again."
            ) from None

    def _checked(self, command: str, done: subprocess.CompletedProcess[str]) -> str:
        if done.returncode == 0:
            return done.stdout
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        said = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "")
        said = _CREDENTIALS.sub("://", said) or f"it ended with status {done.returncode}"
        raise StorageError(f"The team's memory could not be synced: git {command}: {said}")
