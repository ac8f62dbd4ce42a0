"""A view of a repository for git commands that only print: its objects and refs, but none of its configuration.

A view is a temporary git directory: links to the repository's data, copies of HEAD and the index, and a configuration
of our own with the harmless keys of the user and the repository. So nothing that a repository or a user configured can
run (filters, drivers, hooks, monitors, pagers, helpers, transports), and git writes nothing into the repository.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from reverie.paths.programs import make_bare_environment, system_program, users_program
from reverie.paths.repo import Repo, find_repo
from reverie.permissions.rules import NotReadOnly
from reverie.quick import dataclass
from reverie.regular_files import read_head
from reverie.runtime.bounded import bounded, explain_limit

ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_DIR": "/dev/null",  # each command names its view; without one there is no repository
    }
)
"""For all commands; git finds neither a configuration nor a repository by itself."""
_OWN = """[core]
\tbare = false
\tfsmonitor = false
\thooksPath = /dev/null
[protocol]
\tallow = never
[log]
\tshowSignature = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[diff]
\tignoreSubmodules = dirty
"""
# The harmless keys. Everything else is left out: a list of dangerous keys would never be complete.
_HARMLESS = re.compile(
    r"core\.(repositoryformatversion|filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|safecrlf|quotepath"
    r"|abbrev|sparsecheckout|sparsecheckoutcone|checkstat|trustctime|protecthfs|protectntfs)"
    r"|extensions\.(objectformat|refstorage)"
    r"|remote\..*\.(url|pushurl|fetch)|branch\..*\.(remote|merge|pushremote)|url\..*\.(insteadof|pushinsteadof)"
    r"|(user|author|committer)\.(name|email)|init\.defaultbranch|(branch|tag)\.sort"
    r"|status\.(short|branch|showuntrackedfiles|relativepaths|showstash|aheadbehind|renames|renamelimit)"
    r"|log\.(date|decorate|abbrevcommit|follow|showroot)"
    r"|diff\.(algorithm|renames|renamelimit|context|mnemonicprefix|noprefix|indentheuristic|interhunkcontext)"
    r"|blame\.(showemail|date|showroot|blankboundary)|i18n\.(commitencoding|logoutputencoding)",
    re.DOTALL,
)
_USERS_OWN = re.compile(r"core\.excludesfile")
_FILTER = re.compile(r"filter\.(.*)\.(?:clean|process)", re.DOTALL)
_CREDENTIALS = re.compile(r"://(?:[^/@\s]*:[^/@\s]+|[^/@\s]{20,})@")
_SKIPPED = re.compile(r"config(\.worktree)?|hooks|commondir|gitdir|HEAD|index.*|sharedindex\..*|.*\.lock|modules|lfs")
_MOST_ENTRIES = 2_000
_MOST_INDEX = 500_000_000
_SECONDS = 5.0
# The command itself ends with the same error, and shows nothing.
_NOTHING_THERE = (b"unknown revision or path", b"bad revision", b"does not have any commits")


@dataclass(frozen=True, slots=True)
class GitView:
    """A view in `folder`, for commands in the checkout `repo.checkout`."""

    folder: Path
    repo: Repo
    keys: Mapping[str, str]
    filters: frozenset[str]
    """The names of the user's filters, which do not run here."""

    @property
    def variables(self) -> dict[str, str]:
        return {"GIT_DIR": str(self.folder), "GIT_WORK_TREE": str(self.repo.checkout)}

    @property
    def shows_credentials(self) -> bool:
        return any(
            _CREDENTIALS.search(value) for key, value in self.keys.items() if key.startswith(("remote.", "url."))
        )

    def ask(self, arguments: list[str], cwd: Path, given: str = "") -> bytes:
        """Runs git in the view; raises `NotReadOnly` if it fails or takes too long."""
        return _run_git(arguments, cwd, self.variables, given)


def find_git() -> Path | None:
    return system_program("git") or users_program("git")


def find_checkout(cwd: Path) -> Repo | None:
    """Returns the repository of a folder, or None. Raises `NotReadOnly` where git would find another one."""
    repo = find_repo(cwd)
    for folder in (Path(os.path.realpath(cwd)), *Path(os.path.realpath(cwd)).parents):
        if folder == repo.checkout and repo.git_dir is not None:
            break
        if (folder / "HEAD").exists() and (folder / "refs").is_dir():
            raise NotReadOnly(f"{folder} is a repository without a checkout")
    return repo if repo.git_dir is not None else None


def open_view(repo: Repo, folder: Path) -> GitView:
    """Builds the view in a new folder; raises `NotReadOnly` if that is not possible."""
    git_dir = repo.git_dir
    assert git_dir is not None
    folder.mkdir()
    try:
        common = _find_common(git_dir)
        _link_all(git_dir, folder, but={"refs", "logs"} if common != git_dir else set())
        if common != git_dir:
            _link_all(common, folder, but={"logs"})
            _link_logs(git_dir, common, folder)
        _copy_head(git_dir, folder)
        for name in ("index", *(path.name for path in git_dir.glob("sharedindex.*"))):
            _copy_data(git_dir / name, folder / name)
        users = _read_users()
        keys = {key: value for key, value in users.items() if _HARMLESS.fullmatch(key) or _USERS_OWN.fullmatch(key)}
        found = _read_file(common / "config")
        if found.get("extensions.worktreeconfig", "").lower() in ("true", "1", "yes", "on", ""):
            found |= _read_file(git_dir / "config.worktree")
        keys |= {key: value for key, value in found.items() if _HARMLESS.fullmatch(key)}
        lines = [_format_key(key, value) for key, value in keys.items()]
        (folder / "config").write_text("".join(lines) + _OWN, "utf-8", "surrogateescape")
    except OSError as error:
        raise NotReadOnly(f"the repository cannot be read: {error.strerror}") from error
    filters = frozenset(found[1] for key in users if (found := _FILTER.fullmatch(key)))
    return GitView(folder, repo, keys, filters)


def _find_common(git_dir: Path) -> Path:
    """Returns the directory that all worktrees share; for an ordinary repository the git directory itself."""
    file = git_dir / "commondir"
    if not file.is_file():
        return git_dir
    return Path(os.path.realpath(git_dir / os.fsdecode(read_head(file, 4_096)).strip()))


def _link_all(source: Path, folder: Path, but: set[str]) -> None:
    for number, entry in enumerate(os.scandir(source)):
        if number > _MOST_ENTRIES:
            raise NotReadOnly("the git directory has too many files")
        target = folder / entry.name
        if entry.name not in but and not _SKIPPED.fullmatch(entry.name) and not os.path.lexists(target):
            target.symlink_to(entry.path)


def _link_logs(git_dir: Path, common: Path, folder: Path) -> None:
    logs = folder / "logs"
    logs.mkdir()
    (logs / "HEAD").symlink_to(git_dir / "logs" / "HEAD")
    (logs / "refs").symlink_to(common / "logs" / "refs")


def _copy_head(git_dir: Path, folder: Path) -> None:
    head = git_dir / "HEAD"
    if head.is_symlink():
        (folder / "HEAD").symlink_to(head.readlink())
    else:
        (folder / "HEAD").write_bytes(read_head(head, 4_096))


def _copy_data(source: Path, target: Path) -> None:
    """Copies with the time of the last change: git compares it with the times of files."""
    try:
        status = source.stat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_INDEX:
        raise NotReadOnly(f"{source.name} of the repository is not an ordinary file")
    shutil.copyfile(source, target)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _read_users() -> dict[str, str]:
    """The configuration of the system and the user, with what it includes."""
    free = {name: "" for name in ENVIRONMENT if name.startswith("GIT_CONFIG") or name == "GIT_DIR"}
    listed = _run_git(["config", "--list", "-z", "--show-scope"], Path("/"), free).decode("utf-8", "surrogateescape")
    fields = listed.split("\0")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    return _split_entries(entry for scope, entry in pairs if scope in ("system", "global"))


def _read_file(path: Path) -> dict[str, str]:
    """One file, without what it includes: a repository must not choose what is read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise NotReadOnly(f"{path} is not an ordinary file")
    except FileNotFoundError:
        return {}
    listed = _run_git(["config", "--file", str(path), "--no-includes", "--list", "-z"], Path("/"), {})
    return _split_entries(listed.decode("utf-8", "surrogateescape").split("\0"))


def _split_entries(entries: Iterable[str]) -> dict[str, str]:
    """Keys with their last value. A key without a value is true."""
    found: dict[str, str] = {}
    for entry in filter(None, entries):
        key, line_break, value = entry.partition("\n")
        found[key] = value if line_break else "true"
    return found


def _format_key(key: str, value: str) -> str:
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    quoted = middle.replace("\\", "\\\\").replace('"', '\\"')
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    subsection = f' "{quoted}"' if middle else ""
    return f'[{section}{subsection}]\n\t{name} = "{escaped}"\n'


def _run_git(arguments: list[str], cwd: Path, variables: Mapping[str, str], given: str = "") -> bytes:
    """`variables` come on top of the bare environment and `ENVIRONMENT`; an empty one is left out."""
    git = find_git()
    if git is None:
        raise NotReadOnly("git is not installed")
    merged = {**make_bare_environment(), **ENVIRONMENT, **variables}
    env = {name: value for name, value in merged.items() if value or name not in variables}
    try:
        done = subprocess.run(
            bounded([git, *arguments]),
            cwd=cwd,
            env=env,
            input=given.encode("utf-8", "surrogateescape"),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError) as error:
        raise NotReadOnly(f"git cannot be asked: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise NotReadOnly("git takes too long to say which files it would show") from error
    if done.returncode:
        if any(one in done.stderr for one in _NOTHING_THERE):
            return b""
        why = explain_limit(done.returncode, done.stderr.decode("utf-8", "replace"))
        raise NotReadOnly(f"git does not say which files it would show{why and ': '}{why}".removesuffix("."))
    return done.stdout
