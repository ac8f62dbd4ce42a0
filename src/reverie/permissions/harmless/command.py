"""Decides whether a command is on the second list, and says how it must run.

`read_harmless` is for the main agent in a trusted folder. A command that passes may run only as `guarded` rewrites it:
with programs by their full path, git in a view, and our own environment. It never runs anything of the project.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field, replace
from itertools import takewhile
from pathlib import Path

from reverie.paths.programs import make_bare_environment, system_program, users_program
from reverie.paths.repo import Repo, find_repo
from reverie.permissions.harmless.git_arguments import GitCall, read_git
from reverie.permissions.harmless.git_view import ENVIRONMENT, GitView, find_checkout, find_git, open_view
from reverie.permissions.harmless.programs import (
    LOOKUPS,
    SHOWN_VARIABLES,
    check_program,
    find_looked_up,
    is_builtin,
    is_known,
)
from reverie.permissions.harmless.versions import find_program, is_version_query
from reverie.permissions.rules import Allow, Ask, NotReadOnly, ReadsSecret, clip
from reverie.permissions.secret_globs import Budget, TooMuch
from reverie.permissions.secret_reads import (
    MOST_NAMES,
    Walk,
    explain_secret,
    find_secret,
    find_secret_word,
)
from reverie.permissions.sensitive import is_sensitive
from reverie.permissions.shell.programs import PROGRAMS, check_command
from reverie.permissions.shell.read_only import read_commands
from reverie.permissions.shell.words import SimpleCommand, Word
from reverie.quick import dataclass
from reverie.regular_files import read_head

_FORCED = {
    "status": "--ignore-submodules=dirty",
    "diff": "--no-ext-diff --no-textconv --ignore-submodules=dirty --submodule=short",
    "log": "--no-ext-diff --no-textconv --submodule=short",
    "show": "--no-ext-diff --no-textconv --submodule=short",
}
_CUTS_OFF_VALUES = frozenset(
    {("cut", "-d=", "-f1"), ("cut", "-d", "=", "-f1"), ("cut", "-d", "=", "-f", "1"), ("cut", "-f1", "-d=")}
    | {("sed", "s/=.*//"), ("sed", "s/=.*$//"), ("awk", "-F=", "{print $1}"), ("awk", "-F", "=", "{print $1}")}
)
_LIST_FILES = frozenset({"ls", "du", "file", "wc", "stat"})
"""Programs without an option that writes: for them a bare `*` is fine, because it runs as `./*`."""
_CONVERTS = frozenset({"status", "diff", "blame", "ls-files"})
_QUIET = {"npm_config_logs_max": "0", "npm_config_update_notifier": "false", "GOTOOLCHAIN": "local"}


@dataclass(frozen=True, slots=True)
class GitPart:
    """One git command: where it runs, in which repository, and the place of its name and subcommand in the text."""

    call: GitCall
    cwd: Path
    repo: Repo | None
    name: tuple[int, int]
    after: int


@dataclass(slots=True)
class Harmless:
    """A command that passed: its text as bytes, the changes to make before it runs, and its git commands."""

    source: bytes
    cwd: Path
    project: Path
    edits: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    gits: list[GitPart] = field(default_factory=list[GitPart])

    def rewrite(self, views: dict[Path, GitView]) -> str:
        """Returns the text to run; each git command gets the view of its repository."""
        edits = list(self.edits)
        git = find_git()
        for part in self.gits:
            view = views.get(part.repo.checkout) if part.repo is not None else None
            given = [f"{name}={shlex.quote(value)}" for name, value in (view.variables if view else {}).items()]
            edits.append((*part.name, " ".join([*given, shlex.quote(str(git or "git"))])))
            if forced := _FORCED.get(part.call.subcommand):
                edits.append((part.after, part.after, f" {forced}"))
        text = self.source
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new.encode("utf-8", "surrogateescape") + text[end:]
        return text.decode()


@contextmanager
def open_views(parts: list[GitPart]) -> Generator[dict[Path, GitView]]:
    """Builds the views of all repositories that git commands use, and removes them at the end."""
    repos = {part.repo.checkout: part.repo for part in parts if part.repo is not None}
    if not repos:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="reverie-git-", ignore_cleanup_errors=True) as folder:
        yield {
            checkout: open_view(repo, Path(folder, str(number)))
            for number, (checkout, repo) in enumerate(repos.items())
        }


def check_harmless(command: str, cwd: Path) -> None:
    """Raises `NotReadOnly` with the first reason against a command; it may run guarded if there is none."""
    harmless = read_harmless(command, cwd)
    doubtful = [part for part in harmless.gits if _needs_a_look(part)]
    with open_views(doubtful) as views:
        for part in doubtful:
            _check_git_secrets(part, views)


def judge_command(command: str, cwd: Path) -> Allow | Ask | None:
    """Allows a harmless command, asks if it would show a secret file, and returns None for all other commands."""
    try:
        check_harmless(command, cwd)
    except ReadsSecret as refusal:
        return Ask(f"{refusal}.")
    except NotReadOnly:
        return None
    return Allow(guarded=True)


@contextmanager
def guarded(command: str, cwd: Path) -> Generator[tuple[str, dict[str, str]]]:
    """Yields the text and the environment with which a harmless command runs. Raises `NotReadOnly` if it is not one."""
    harmless = read_harmless(command, cwd)
    with open_views(harmless.gits) as views:
        yield harmless.rewrite(views), {**make_bare_environment(), **ENVIRONMENT, **_QUIET}


def read_harmless(command: str, cwd: Path) -> Harmless:
    """Reads a command; raises `NotReadOnly` unless every part of it is on the list and reads no secret file.

    What git would show of the history is not checked here, but in `why_not_harmless`.
    """
    reading = read_commands(command, wide=True)
    harmless = Harmless(command.rstrip("\n").encode(), cwd, find_repo(cwd).checkout)
    places = [(span.start, span.end) for span in reading.spans if span.kind == "word"]
    joiners = [harmless.source[one.start : one.end].decode() for one in reading.spans if one.kind == "operator"]
    budget = Budget(MOST_NAMES)
    here = Path(os.path.realpath(cwd))
    try:
        for index, simple in enumerate(reading.commands):
            spans, places = places[: len(simple.words)], places[len(simple.words) :]
            for word, (start, _) in zip(simple.words, spans, strict=True):
                if 0 in word.globs:  # a file with the name of an option must not become one
                    harmless.edits.append((start, start, "./"))
            if simple.words[0].text in _LIST_FILES:
                simple = replace(simple, words=tuple(map(_anchor, simple.words)))
            if simple.words[0].text == "cd":
                _check_certain(joiners[:index][-1:], joiners[index:])
                here = _change_folder(simple, here, harmless.project)
                continue
            if _lists_variables(simple, reading.commands[index + 1 :]):
                listed = " ".join(shlex.quote(f"{one}=") for one in sorted(dict(os.environ)))
                harmless.edits.append((*spans[0], f"printf '%s\\n' {listed}"))
                continue
            _read_part(harmless, simple, spans, here, budget)
    except TooMuch as error:
        raise NotReadOnly("there are too many files to check for secrets") from error
    return harmless


def _read_part(
    harmless: Harmless, simple: SimpleCommand, spans: list[tuple[int, int]], here: Path, budget: Budget
) -> None:
    name, *rest = simple.words
    words = tuple(rest)
    if any(word.expands for word in words) and name.text not in ("echo", "basename", "dirname"):
        raise NotReadOnly("it holds a variable where its value matters")
    texts = [word.text for word in simple.words]
    if not name.plain:
        raise NotReadOnly(f"{clip(name.raw)} is not the plain name of a program")
    if name.text in PROGRAMS:
        check_command(simple)
        if found := find_secret(simple, here, budget):
            raise ReadsSecret(explain_secret(name.text, found).rstrip("."))
    elif is_version_query(texts) and not any(word.globs for word in words):
        _read_version(harmless, texts, spans, here)
    elif name.text == "git":
        _read_git(harmless, words, spans, here)
    elif is_known(name.text):
        opened = check_program(name.text, words)
        walk = Walk(follows=True) if opened.recursive else None
        files = [word for word in opened.words if word.text != "-"]
        if found := find_secret_word(files, here, budget, walk):
            raise ReadsSecret(explain_secret(name.text, found).rstrip("."))
        _place_program(harmless, name.text, words, spans)
    else:
        raise NotReadOnly(f"{clip(name.text)} is not on the list of harmless commands")


def _anchor(word: Word) -> Word:
    """Returns a word that begins with a glob as it runs: with `./` before it."""
    return Word(word.raw, f"./{word.text}", frozenset(at + 2 for at in word.globs)) if 0 in word.globs else word


def _check_certain(before: list[str], after: list[str]) -> None:
    """Refuses a `cd` after which it is not certain in which folder the rest runs."""
    if before in ([], [";"]) and after[:1] != ["|"]:
        return
    if before != ["&&"] or not {"&&", "|", ";"}.issuperset(after) or after[:1] not in ([], ["&&"]) or ";" in after[:-1]:
        raise NotReadOnly("it is not certain in which folder a part of it runs")


def _lists_variables(simple: SimpleCommand, following: tuple[SimpleCommand, ...]) -> bool:
    """Whether it is `env` in a pipe that cuts off the values; then only the names are given to the pipe."""
    if tuple(word.text for word in simple.words) not in (("env",), ("printenv",)):
        return False
    pipe = takewhile(lambda one: one.piped, following)
    return any(tuple(word.text for word in one.words) in _CUTS_OFF_VALUES for one in pipe)


def _change_folder(simple: SimpleCommand, here: Path, project: Path) -> Path:
    if len(simple.words) != 2 or simple.words[1].globs or simple.words[1].text.startswith("-"):
        raise NotReadOnly("cd is known as harmless only with the name of a folder")
    word = simple.words[1]
    text = f"{Path.home()}{word.text[1:]}" if word.raw.startswith("~") else word.text
    target = Path(os.path.normpath(here / text))  # as bash does it: `link/..` is the folder of the link
    if not target.is_dir() or not Path(os.path.realpath(target)).is_relative_to(project):
        raise NotReadOnly(f"{clip(word.raw)} is not a folder in this project")
    return target


def _read_version(harmless: Harmless, texts: list[str], spans: list[tuple[int, int]], here: Path) -> None:
    program = find_program(texts[0], here, harmless.project)
    if program is None:
        return  # there is no such program: bash says so
    path = os.pathsep.join([str(program.parent), make_bare_environment()["PATH"]])
    harmless.edits += [
        (*spans[0], f"(cd / && PATH={shlex.quote(path)} exec {shlex.quote(str(program))}"),
        (spans[-1][1], spans[-1][1], ")"),
    ]


def _place_program(harmless: Harmless, name: str, words: tuple[Word, ...], spans: list[tuple[int, int]]) -> None:
    """Makes sure that the program is not one of the project, and that questions about PATH are about the user's."""
    start, end = spans[0]
    path = f"PATH={shlex.quote(os.pathsep.join(os.get_exec_path()))} "
    if name in LOOKUPS:
        how, wanted = find_looked_up(name, words)
        harmless.edits += [(start, spans[-1][1], f"{path}{how} {' '.join(wanted)}")]
    elif name == "printenv":
        known = {key: value for key, value in dict(os.environ).items() if key in SHOWN_VARIABLES - {"PWD"}}
        given = " ".join(f"{key}={shlex.quote(value)}" for key, value in known.items())
        program = system_program(name)
        if program is None:
            raise NotReadOnly("printenv is not installed")
        harmless.edits.append((start, end, f"{given} {shlex.quote(str(program))}"))
    elif not is_builtin(name) and system_program(name) is None:
        program = users_program(name, harmless.cwd, harmless.project)
        if program is not None:
            harmless.edits.append((start, end, shlex.quote(str(program))))


def _read_git(harmless: Harmless, words: tuple[Word, ...], spans: list[tuple[int, int]], here: Path) -> None:
    call = read_git(words)
    folder = here
    if call.folder is not None:
        folder = Path(os.path.realpath(here / call.folder))
        if not folder.is_dir() or not folder.is_relative_to(harmless.project):
            raise NotReadOnly(f"git -C {clip(call.folder)} is not a folder in this project")
    repo = find_checkout(folder)
    if repo is None and call.subcommand == "diff":
        raise NotReadOnly("there is no repository here")
    root = repo.checkout if repo is not None else harmless.project
    if call.subcommand == "grep" and not all((folder / text).exists() for text in call.searched):
        raise NotReadOnly("git grep is known as harmless only in files that exist")
    operands = call.searched if call.subcommand == "grep" else call.operands
    named = (*operands, *call.paths, *(value for name, value, _ in call.options if name == "-L" and value))
    for path in (text.rpartition(":")[2] for text in named):
        if path.startswith("~") or not _is_inside(path, folder, root):
            raise NotReadOnly(f"{clip(path)} is outside the repository")
        if call.shows_content or call.subcommand == "blame":
            _refuse_secret(folder / path, path)
    harmless.gits.append(GitPart(call, folder, repo, spans[0], spans[call.at + 1][1]))


def _is_inside(path: str, folder: Path, root: Path) -> bool:
    if "\0" in path:
        return False
    return not (path.startswith("/") or ".." in path.split("/")) or Path(
        os.path.realpath(folder / path)
    ).is_relative_to(root)


def _refuse_secret(path: Path, shown: str) -> None:
    if is_sensitive(path) or is_sensitive(Path(os.path.realpath(path))):
        raise ReadsSecret(explain_secret("git", clip(shown)).rstrip("."))


def _needs_a_look(part: GitPart) -> bool:
    """Whether the words of a git command are not enough: what it shows, or how, depends on the repository."""
    sub = part.call.subcommand
    filtered = sub in _CONVERTS and part.repo is not None and "filter=" in _read_attributes(part.repo.checkout)
    return part.call.shows_content or sub in ("remote", "config") or filtered


def _check_git_secrets(part: GitPart, views: dict[Path, GitView]) -> None:
    """Asks git which files it would show; raises `NotReadOnly` if one of them may hold secrets."""
    call, repo = part.call, part.repo
    if repo is None:
        return
    view = views[repo.checkout]
    if call.subcommand in ("remote", "config") and view.shows_credentials:
        raise NotReadOnly("an address of the repository holds a password")
    if call.subcommand == "config" and call.operands[0].lower() not in {key.lower() for key in view.keys}:
        raise NotReadOnly(f"git config {clip(call.operands[0])} is not a key known to be harmless")
    if call.subcommand in _CONVERTS and view.filters:
        _check_filters(repo.checkout, view.filters)
    if not call.shows_content:
        return
    operands = () if call.subcommand == "grep" else call.operands
    revisions = [end.lstrip("^") for text in operands for end in text.replace("...", "..").split("..")]
    asked = "".join(f"{one}^{{}}\n" for one in revisions if one and ":" not in one)
    if asked and b"blob" in view.ask(["cat-file", "--batch-check=%(objecttype)"], part.cwd, asked):
        raise NotReadOnly("it shows content without the name of its file")
    if any(name == "-L" for name, _, _ in call.options):
        return  # it shows only the file that it names
    shown = view.ask(call.name_query(), part.cwd).decode("utf-8", "surrogateescape")
    for name in shown.replace("\0", "\n").split("\n"):
        if name.strip():
            _refuse_secret(repo.checkout / name.strip(), name.strip())


def _check_filters(checkout: Path, filters: frozenset[str]) -> None:
    """A filter of the user that the project uses would change what is shown, and it does not run in a view."""
    text = _read_attributes(checkout)
    for name in filters:
        if f"filter={name}" in text:
            raise NotReadOnly(f"this project uses your filter {name}, which runs a program")


def _read_attributes(checkout: Path) -> str:
    try:
        return read_head(checkout / ".gitattributes", 1_000_000).decode("utf-8", "replace")
    except OSError:
        return ""
