"""The place of every file of Reverie. No other module joins these paths, so a place can move in one line.

Transcripts depend on the working directory, memory on the repository. Only `make_private` creates anything.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.errors import SettingsError, StorageError, UserError
from reverie.paths.repo import find_repo
from reverie.quick import dataclass

if TYPE_CHECKING:
    from reverie.settings import Settings

FOLDER_MODE = 0o700
SLUG_LENGTH = 200
SOCKET_BYTES = 103
"""The longest path of a Unix socket everywhere: macOS allows 104 bytes with the closing NUL, Linux 108."""

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]")


def user_home(env: Mapping[str, str]) -> Path:
    """Returns the folder that `~` means: `HOME`, else the one in the user database of the system."""
    home = Path(env.get("HOME", ""))
    if home.is_absolute():
        return home
    import pwd

    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        raise SettingsError("environment HOME: not set, and this user has no home folder; set HOME.") from None


def reverie_home(env: Mapping[str, str]) -> Path:
    """Returns Reverie's home: `REVERIE_HOME` (absolute or `~/…`), else `~/.reverie`."""
    given = env.get("REVERIE_HOME", "")
    if not given:
        return user_home(env) / ".reverie"
    path = user_home(env) / given[2:] if given == "~" or given.startswith("~/") else Path(given)
    if not path.is_absolute():
        raise SettingsError(f"environment REVERIE_HOME: {given!r} is not an absolute path; give one, or ~/….")
    return Path(os.path.normpath(path))


def slug(path: Path) -> str:
    """Returns the folder name for `path`: ASCII letters and digits stay, others become `-`; long names get a hash."""
    name = replace_signs(path)
    return name if len(name) <= SLUG_LENGTH else f"{name[:SLUG_LENGTH]}-{_digest(str(path))}"


def replace_signs(path: Path) -> str:
    """Returns the path with `-` in place of everything but ASCII letters and digits, of any length."""
    return _NOT_ALPHANUMERIC.sub(lambda found: "--" if found[0] > "\uffff" else "-", str(path))


def hooks_folder(home: Path) -> Path:
    """Returns the folder with what sessions of other agents were told."""
    return home / "hooks"


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(os.fsencode(text)).hexdigest()[:16]


def daemon_socket(home: Path) -> Path:
    """Returns where the service behind the hooks listens. It depends only on the home: hooks run in any environment."""
    path = home / "run" / "daemon.sock"
    if len(os.fsencode(path)) <= SOCKET_BYTES:
        return path
    return Path("/tmp") / f"reverie-{os.getuid()}" / f"{_digest(f'{home}//daemon')}.sock"


def daemon_lock(home: Path) -> Path:
    """Returns the file whose lock says which process serves the hooks of this home."""
    return home / "run" / "daemon.lock"


def check_name(name: str, what: str) -> str:
    """Returns `name` if it is a safe file name; else raises a `UserError` that says what it was for."""
    if not _SAFE.fullmatch(name):
        raise UserError(
            f"{name[:80]!r} is not a {what}: at most 128 letters, digits, `-`, `_` and `.`, a letter or digit first."
        )
    return name


def check_session_id(session_id: str) -> str:
    """Returns the id if it is valid; else raises a `UserError`, because ids become parts of paths."""
    return check_name(session_id, "session id")


@dataclass(frozen=True, slots=True)
class Places:
    """The places for one working directory. Create it with `Places.of(cwd, settings)`."""

    home: Path
    cwd: Path
    root: Path  # the canonical git root, shared by all worktrees; else the working directory
    checkout: Path  # the top of the worktree that `cwd` is in; else the working directory
    runtime: Path | None = None
    remote_memory: Path | None = None

    @classmethod
    def of(cls, cwd: Path, settings: Settings) -> Places:
        repo = find_repo(cwd)
        return cls(
            home=settings.places.home,
            cwd=Path(os.path.realpath(cwd)),
            root=repo.root,
            checkout=repo.checkout,
            runtime=settings.places.runtime,
            remote_memory=settings.remote.memory_directory,
        )

    def project_folders(self) -> list[Path]:
        """Returns the folders from the top of the checkout down to the working directory."""
        above = [self.cwd, *self.cwd.parents]
        inside = [folder for folder in above if folder == self.checkout or self.checkout in folder.parents]
        return list(reversed(inside or [self.cwd]))

    # Sessions, by the working directory.

    @property
    def projects(self) -> Path:
        return self.home / "projects"

    @property
    def project(self) -> Path:
        """Transcripts of this working directory, and one folder per session."""
        return self.projects / slug(self.cwd)

    def transcript(self, session_id: str) -> Path:
        return self.project / f"{check_session_id(session_id)}.jsonl"

    def session(self, session_id: str) -> Path:
        """The files of a session next to its transcript."""
        return self.project / check_session_id(session_id)

    def tool_results(self, session_id: str) -> Path:
        return self.session(session_id) / "tool-results"

    def session_notes(self, session_id: str) -> Path:
        return self.session(session_id) / "session-memory" / "summary.md"

    def agent_transcript(self, session_id: str, agent_id: str) -> Path:
        return self.session(session_id) / "subagents" / f"agent-{check_name(agent_id, 'agent id')}.jsonl"

    def socket(self, session_id: str) -> Path:
        """Where a live session listens. It depends only on the home, so every process finds it, and is short."""
        name = _digest(f"{self.home}/{check_session_id(session_id)}") + ".sock"
        folders = [self.home / "run", Path("/tmp") / f"reverie-{os.getuid()}"]
        if self.runtime is not None:
            folders.insert(1, self.runtime / "reverie")
        for folder in folders[:-1]:
            if len(os.fsencode(folder / name)) <= SOCKET_BYTES:
                return folder / name
        return folders[-1] / name

    # The home.

    def below_home(self, path: Path) -> Path:
        """Returns `path` relative to the home if it is inside, so that the home can move; else the whole path."""
        return path.relative_to(self.home) if path.is_relative_to(self.home) else path

    @property
    def flags_file(self) -> Path:
        return self.home / "flags.toml"

    @property
    def background_log(self) -> Path:
        return self.home / "logs" / "background.jsonl"

    @property
    def day_books(self) -> Path:
        """The cost of background work, one file per day; derived from the transcripts."""
        return self.home / "ledger"

    def heartbeat(self, writer: str) -> Path:
        """The state of a background writer: its last success, and why it did not run."""
        return self.home / "heartbeats" / f"{check_name(writer, 'background writer')}.json"

    @property
    def extracted(self) -> Path:
        """How far `reverie extract` has come, one small file per transcript."""
        return self.home / "extracted"

    @property
    def followed(self) -> Path:
        """Which folders of recorded sessions are followed, and how far each of their files is copied."""
        return self.home / "followed"

    @property
    def chat_history(self) -> Path:
        return self.home / "history" / slug(self.root)

    @property
    def notes_config(self) -> Path:
        """The user's template and prompt for session notes."""
        return self.home / "session-memory" / "config"

    def search_index(self, memory: Path) -> Path:
        """The derived index of a memory directory; it may be deleted at any time."""
        return self.home / "indexes" / f"{_digest(str(self.below_home(memory)))}.sqlite"

    @property
    def session_figures(self) -> Path:
        """Rounds, tokens and cost of all sessions for the web view; it may be deleted at any time."""
        return self.home / "indexes" / "web-sessions.json"

    @property
    def models(self) -> Path:
        """Weights and similar files that were added by hand."""
        return self.home / "models"

    def team(self, team: str) -> Path:
        """The files that the processes of a team share: members, leases and inboxes."""
        return self.home / "teams" / check_name(team, "team name")

    def inbox(self, team: str, agent: str) -> Path:
        return self.team(team) / "inboxes" / f"{check_name(agent, 'agent name')}.json"

    def session_inbox(self, session_id: str) -> Path:
        """The inbox of messages that arrive over a session's socket."""
        return self.session(session_id) / "letters.json"

    # Memory, by the repository.

    @property
    def default_memory(self) -> Path:
        """The memory directory if nobody has chosen another; `memory_place` decides."""
        return (self.remote_memory or self.home) / "projects" / slug(self.root) / "memory"

    def team_sync(self, memory: Path) -> Path:
        """What a memory directory and its team had in common at the last sync."""
        older = self.home / "team-sync" / slug(memory)  # named by the whole path, before the home could be moved
        return older if older.is_dir() else self.home / "team-sync" / slug(self.below_home(memory))

    @property
    def purged_record(self) -> Path:
        """Digests of purged texts, so that they do not come back."""
        return self.home / "team-sync" / "purged.json"

    def agent_memory_user(self, kind: str) -> Path:
        return self.home / "agent-memory" / _agent_type(kind)

    def agent_memory_project(self, kind: str) -> Path:
        return self.root / ".reverie" / "agent-memory" / _agent_type(kind)

    def agent_memory_local(self, kind: str) -> Path:
        if self.remote_memory is not None:
            return self.remote_memory / "projects" / slug(self.root) / "agent-memory-local" / _agent_type(kind)
        return self.root / ".reverie" / "agent-memory-local" / _agent_type(kind)


def _agent_type(kind: str) -> str:
    return check_name(kind.replace(":", "-"), "agent type")


def make_private(folder: Path) -> Path:
    """Makes `folder` and its missing parents for this user only; raises `StorageError` if it is not ours."""
    try:
        for missing in reversed([folder, *folder.parents]):
            if not missing.exists():
                missing.mkdir(mode=FOLDER_MODE, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise StorageError(
            f"{folder}: cannot be made: {error.strerror}; check the disk and its permissions."
        ) from error
    if not stat.S_ISDIR(found.st_mode):
        raise StorageError(f"{folder}: is not a folder; move it out of the way.")
    if found.st_uid not in (os.getuid(), 0):
        raise StorageError(f"{folder}: belongs to another user; remove it or choose another REVERIE_HOME.")
    return folder
