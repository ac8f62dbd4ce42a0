"""`reverie memory log|diff|undo|restore`: every version, what it changed, and the way back."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from time import time

import click

from reverie.cli.memory.opening import (
    cwd_option,
    file_meant,
    file_names,
    json_option,
    memory_in,
    painted,
    say,
    say_json,
    say_undo,
    version_json,
    wrapped,
)
from reverie.cli.output import Paint, age, columns, cut, one_line, pad
from reverie.cli.screen import printable
from reverie.errors import StorageError
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.opening import OpenedMemory
from reverie.storage.history.versions import Version

_VERSIONS = 30


def _up_to_date(cwd: Path) -> OpenedMemory:
    """The memory, with what was changed by hand since the last touch made a version; a disk that refuses is left."""
    memory = memory_in(cwd)
    if memory.directory.history.head() is not None:
        with suppress(StorageError):
            memory.directory.absorb()
    return memory


def _ever(memory: OpenedMemory) -> set[str]:
    """Every file that any version has touched."""
    return {change.name for version in memory.directory.log() for change in version.files}


@click.command("log")
@click.argument("file", metavar="[FILE]", required=False, shell_complete=file_names)
@click.option("-n", "--limit", type=click.IntRange(min=1), default=_VERSIONS, show_default=True, help="Newest so many.")
@json_option
@cwd_option
def log_command(file: str | None, limit: int, as_json: bool, cwd: Path) -> None:
    """List versions, newest first: when, who, what and why; of one file if it is named.

    Who: user (a command), agent, extraction, dream, import, hand (an editor or another program).

    \b
    Examples:
      reverie memory log
      reverie memory log feedback_no_mocks
      reverie memory log --json | jq -r '.versions[] | select(.writer == "dream").short'
    """
    memory = _up_to_date(cwd)
    name = file_meant(memory, file, also=_ever(memory)) if file else None
    versions = list(memory.directory.log(name, limit=limit + 1))
    if as_json:
        say_json({"versions": [version_json(version) for version in versions[:limit]]})
        return
    if not versions:
        say("There are no versions yet.", err=True)
        return
    paint = painted()
    wide = columns() if sys.stdout.isatty() else 10_000
    writers = max(len(version.info.writer) for version in versions)
    for version in versions[:limit]:
        when = f"{age(version.when.timestamp(), time()):>6}"
        head = f"{paint.accent(version.short)}  {paint.dim(when)}  {pad(one_line(version.info.writer), writers)}"
        room = wide - 10 - 2 - 6 - 2 - writers - 2
        say(f"{head}  {cut(one_line(version.info.subject), room)}")
    if len(versions) > limit:
        say(paint.dim(f"… and older ones: -n {limit * 2}"))


@click.command("diff")
@click.argument("version", metavar="[V]", default="latest")
@click.argument("file", metavar="[FILE]", required=False, shell_complete=file_names)
@json_option
@cwd_option
def diff_command(version: str, file: str | None, as_json: bool, cwd: Path) -> None:
    """Show what a version changed, and who made it, when and why.

    \b
    Examples:
      reverie memory diff
      reverie memory diff 3f2a
      reverie memory diff 3f2a MEMORY.md | patch --dry-run -R -p1
    """
    memory = _up_to_date(cwd)
    found = memory.directory.history.find(version)
    name = file_meant(memory, file, also=[change.name for change in found.files]) if file else None
    text = memory.directory.history.diff(found, name)
    if as_json:
        say_json({**(version_json(found) or {}), "diff": text})
        return
    paint = painted()
    if sys.stdout.isatty():
        _about(found, paint)
        say()
    for line in printable(text).splitlines():
        say(_painted(line, paint))


def _about(version: Version, paint: Paint) -> None:
    info = version.info
    when = version.when.astimezone().strftime("%Y-%m-%d %H:%M")
    say(f"{paint.accent(version.short)}  {paint.bold(one_line(info.subject))}")
    said = [f"by {info.writer}", when, *([f"session {info.session[:8]}"] if info.session else [])]
    say(paint.dim(" · ".join(said)))
    for line in wrapped(info.why) if info.why else []:
        say(paint.dim(line))
    for name, reason in info.reasons.items():
        say(paint.dim(f"{name}: {one_line(reason)}"))


def _painted(line: str, paint: Paint) -> str:
    if line.startswith(("---", "+++", "@@")):
        return paint.dim(line)
    return paint.good(line) if line.startswith("+") else paint.bad(line) if line.startswith("-") else line


@click.command("undo")
@click.argument("version", metavar="[V]", default="latest")
@json_option
@cwd_option
def undo_command(version: str, as_json: bool, cwd: Path) -> None:
    """Reverse exactly one version; later changes of other lines stay. The newest one if V is left out.

    The undo is a version itself and can be undone. Where later versions changed the same lines, nothing is undone and
    they are named.

    \b
    Examples:
      reverie memory undo
      reverie memory undo 3f2a
    """
    memory = _up_to_date(cwd)
    found = memory.directory.history.find(version)
    made = memory.directory.undo(found.id, WriteInfo(Writer.USER, "Asked for with `reverie memory undo`."))
    if as_json:
        say_json({"undone": version_json(found), "version": version_json(made)})
        return
    if made is None:
        say(f"Nothing to undo: everything is as it was before {found.short}.")
        return
    say(f"Undone: {one_line(found.info.subject)} ({found.short}).")
    _files(made)
    say_undo(made)


@click.command("restore")
@click.argument("file", metavar="FILE[@V]", shell_complete=file_names)
@json_option
@cwd_option
def restore_command(file: str, as_json: bool, cwd: Path) -> None:
    """Bring a file back as it was in a version, or before it was last changed or removed, with its index line.

    \b
    Examples:
      reverie memory restore feedback_no_mocks.md
      reverie memory restore feedback_no_mocks.md@3f2a
    """
    memory = _up_to_date(cwd)
    given, _, spec = file.rpartition("@")
    known = _ever(memory)
    if given and file not in known:
        name, version = file_meant(memory, given, also=known), spec
    else:
        name, version = file_meant(memory, file, also=known), None
    info = WriteInfo(Writer.USER, "Asked for with `reverie memory restore`.")
    made = memory.directory.restore(name, info, spec=version)
    if as_json:
        say_json({"file": name, "version": version_json(made)})
        return
    if made is None:
        say(f"{name} is already as it was then.")
        return
    say(f"Restored {painted().accent(name)}.")
    say_undo(made)


def _files(version: Version) -> None:
    verbs = {"add": "back", "remove": "gone", "change": "changed"}
    for change in version.files:
        say(painted().dim(f"  {verbs[change.verb]:<8}{one_line(change.name)}"))
