"""The sandbox of one project: what a command may see and write in each profile, and what its attempts mean."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from reverie.paths.programs import make_bare_environment, system_program
from reverie.permissions.obeyed_links import find_project
from reverie.permissions.rules import Profile
from reverie.permissions.sandbox.client import SandboxedCommand
from reverie.permissions.sandbox.history import holds_content, holds_secrets, object_stores, tracked_folders
from reverie.permissions.sandbox.names import HOME_DEPTH, MovedSecrets, NamedFiles, system_secrets
from reverie.permissions.sandbox.order import Attempt, Limits, SandboxOrder, SandboxReport, SandboxView
from reverie.permissions.sandbox.probe import SandboxLayers, helper_for
from reverie.runtime.agent_above import mark_environment
from reverie.runtime.bounded import bounded

_GIT_OBEYED = ("hooks", "config", "config.worktree", "commondir", "info", "modules", "worktrees")


def _half_of_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


class Sandbox:
    """Starts commands of one project. It keeps the names of files between commands."""

    def __init__(
        self, cwd: Path, layers: SandboxLayers, limits: Limits | None = None, *, private: Iterable[Path] = ()
    ) -> None:
        self.layers = layers
        self._private = frozenset(os.path.realpath(path) for path in private)
        self.project = find_project(cwd)
        self._limits = limits or Limits(memory=min(Limits().memory, _half_of_memory()))
        self._top = str(self.project)
        self._home = os.path.realpath(Path.home())
        self._names = NamedFiles(self._top)
        self._moved = MovedSecrets(self._top)
        self._at_home = NamedFiles(self._home, HOME_DEPTH, self._is_elsewhere)

    @property
    def can_work(self) -> bool:
        """Whether a command may write in the project alone: never if the home of the user is a part of it."""
        return self.layers.can_work and not f"{self._home}/".startswith(f"{self._top.rstrip('/')}/")

    def holds_secrets(self) -> bool:
        """Whether a file of the project has the name of a secret. Raises TooManyNames."""
        return bool(self._names.find()[0])

    def history_holds_secrets(self) -> bool:
        """Whether a commit names a secret: then commands do not see the objects of git."""
        return holds_secrets(self.project)

    def _is_elsewhere(self, path: str) -> bool:
        return path == self._top

    def make_view(self, profile: Profile, shown: Iterable[Path] = ()) -> SandboxView:
        """What a command of this profile sees; `shown`: folders that it sees inside hidden ones.

        Raises TooManyNames if the project cannot be looked through.
        """
        secrets, obeyed = self._names.find()
        exempt = tracked_folders(self.project, (path for path in secrets if os.path.isdir(path)))
        if exempt - self._names.exempt:
            self._names = NamedFiles(self._top, exempt=exempt)
            secrets, obeyed = self._names.find()
        at_home = self._secrets_at_home()
        hidden = secrets | self._moved.find(secrets, at_home, self._names.reads) | at_home
        hidden |= system_secrets() | self._private
        repositories = [self.project, *(Path(path).parent for path in obeyed if path.endswith("/.git"))]
        for place in dict.fromkeys(repositories):
            if holds_secrets(place) or holds_content(place, secrets):
                hidden |= object_stores(place)
        if any(f"{self._top}/".startswith(f"{path}/") for path in hidden):
            hidden = reveal(hidden, self._top)
        seen = tuple(os.path.realpath(path) for path in shown)
        view = SandboxView(self.layers.landlock, tuple(sorted(hidden)), shown=seen)
        if profile is Profile.READ_ONLY:
            return view
        return replace(view, writable=(self._top,), fixed=tuple(sorted(self._fixed(profile, obeyed))))

    def _secrets_at_home(self) -> frozenset[str]:
        if f"{self._home}/".startswith(f"{self._top}/"):
            return frozenset()
        return self._at_home.find()[0]

    def _fixed(self, profile: Profile, obeyed: Iterable[str]) -> set[str]:
        repository = f"{self._top}/.git"
        fixed = {path for path in obeyed if path != repository and not path.startswith(f"{repository}/")}
        # A link cannot be fixed; what it leads to can.
        fixed |= {os.path.realpath(path) for path in (*fixed, repository) if os.path.islink(path)}
        fixed = {path for path in fixed if path.startswith(f"{self._top}/")}
        if profile is Profile.WORKSPACE or os.path.isfile(repository):
            return fixed | {repository}
        return fixed | {f"{repository}/{name}" for name in _GIT_OBEYED}

    def obeyed_files(self) -> dict[str, tuple[int, int, int]]:
        """The files that a program obeys later, with what changes when they do: to compare before and after."""
        states = dict[str, tuple[int, int, int]]()
        paths = set(self._names.find()[1]) - {f"{self._top}/.git"}
        for name in _GIT_OBEYED:
            paths.add(f"{self._top}/.git/{name}")
            with suppress(OSError):
                paths.update(entry.path for entry in os.scandir(f"{self._top}/.git/{name}"))
        for path in paths:
            try:
                status = os.stat(path, follow_symlinks=False)
            except OSError:
                continue
            states[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
        return states

    async def start(self, command: str, cwd: Path, view: SandboxView, output: int) -> SandboxedCommand:
        """Starts a shell command. Raises SandboxFailed if the sandbox cannot be started."""
        words = (
            str(system_program("bash") or "/bin/sh"),
            *(("--noprofile", "--norc") if system_program("bash") else ()),
        )
        order = SandboxOrder((*words, "-c", command), os.path.realpath(cwd), self._environment(), view, self._limits)
        return await helper_for(self.layers).start(order, output)

    def _environment(self) -> dict[str, str]:
        """The user's name, home and programs, and nothing else of his environment; no program of the project."""
        entries = [entry for entry in os.get_exec_path() if entry.startswith("/")]
        outside = [entry for entry in entries if not f"{os.path.realpath(entry)}/".startswith(f"{self._top}/")]
        bare = make_bare_environment()
        return {
            **mark_environment(bare),
            "PATH": os.pathsep.join(dict.fromkeys([*outside, *bare["PATH"].split(os.pathsep)])),
            "PAGER": "cat",
            "GIT_PAGER": "cat",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def serious(self, report: SandboxReport) -> tuple[Attempt, ...]:
        """The attempts that make the result unreliable: all of them if the command failed, else those that matter.

        A command that succeeds although it could not write a file that git ignores (a cache) has done its work.
        """
        if report.status != 0:
            return report.attempts
        writes = [attempt.target for attempt in report.attempts if attempt.kind == "write"]
        ignored = self._ignored(writes) if writes else frozenset[str]()
        return tuple(
            attempt for attempt in report.attempts if attempt.kind != "socket" and attempt.target not in ignored
        )

    def _ignored(self, paths: list[str]) -> frozenset[str]:
        git = system_program("git")
        inside = [path for path in paths if path.startswith(f"{self._top}/")]
        if git is None or not inside:
            return frozenset()
        try:
            done = subprocess.run(
                bounded([git, "-c", "core.fsmonitor=false", "check-ignore", "-z", "--stdin"]),
                input="\0".join(inside).encode("utf-8", "surrogateescape"),
                capture_output=True,
                timeout=10,
                check=False,
                cwd=self._top,
                env=make_bare_environment(),
            )
        except (OSError, subprocess.SubprocessError):
            return frozenset()
        return frozenset(filter(None, os.fsdecode(done.stdout).split("\0")))

    def profile_for(self, attempts: Iterable[Attempt]) -> Profile:
        """The smallest profile in which these attempts would succeed."""
        wanted = Profile.WORKSPACE
        repository = f"{self._top}/.git"
        secrets, obeyed = self._names.find()
        for attempt in attempts:
            path = attempt.target
            if attempt.kind != "write" or not self.can_work or not path.startswith(f"{self._top}/"):
                return Profile.FREE
            if path == repository or path.startswith(f"{repository}/"):
                # git writes `config.lock`, and then gives it the name `config`
                if path.removeprefix(f"{repository}/").partition("/")[0].removesuffix(".lock") in _GIT_OBEYED:
                    return Profile.FREE
                wanted = Profile.REPOSITORY
            elif any(path == name or path.startswith(f"{name}/") for name in secrets | obeyed):
                return Profile.FREE
        return wanted


def reveal(hidden: Iterable[str], shown: str) -> set[str]:
    """Hides the siblings on the way to `shown` instead of the folder above it that was hidden."""
    revealed = set[str]()
    for path in hidden:
        if shown != path and not shown.startswith(f"{path}/"):
            revealed.add(path)
            continue
        folder = path
        for name in [part for part in shown.removeprefix(path).split("/") if part]:
            try:
                revealed.update(entry.path for entry in os.scandir(folder) if entry.name != name)
            except OSError:
                break
            folder = f"{folder}/{name}"
    return revealed
