"""`reverie memory log|diff|undo|restore`: every version, what it changed, and the way back."""

from __future__ import annotations

import sys
from contextlib import suppress
from time import time

import click

from reverie.cli.memory.opening import file_names, find_file, undo_hint, version_json, with_memory
from reverie.cli.options import examples
from reverie.cli.output import (
    Paint,
    answer,
    cut,
    diff_line,
    format_age,
    get_paint,
    line_width,
    one_line,
    pad,
    say,
    say_all,
    wrap,
)
from reverie.cli.screen import printable
from reverie.errors import StorageError
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.opening import OpenedMemory
from reverie.storage.history.versions import Version

_VERSIONS = 30


def _absorb(memory: OpenedMemory) -> None:
    """What was changed by hand since the last touch becomes a version; a disk that refuses is left."""
    if memory.directory.history.head() is not None:
        with suppress(StorageError):
            memory.directory.absorb()


def _known_files(memory: OpenedMemory) -> set[str]:
    """Every file that any version has touched."""
    return {change.name for version in memory.directory.log() for change in version.files}


@click.command(
    "log",
    epilog=examples(
        "reverie memory log",
        "reverie memory log feedback_no_mocks",
        "reverie memory log --json | jq -r '.versions[] | select(.writer == \"dream\").short'",
    ),
)
@click.argument("file", metavar="[FILE]", required=False, shell_complete=file_names)
@click.option("-n", "--limit", type=click.IntRange(min=1), default=_VERSIONS, show_default=True, help="Newest so many.")
@with_memory
def log_command(file: str | None, limit: int, as_json: bool, memory: OpenedMemory) -> None:
    """List versions, newest first: when, who, what and why; of one file if it is named.

    Who: user (a command), agent, extraction, dream, import, hand (an editor or another program).
    """
    _absorb(memory)
    name = find_file(memory, file, also=_known_files(memory)) if file else None
    versions = list(memory.directory.log(name, limit=limit + 1))
    if as_json:
        answer(True, {"versions": [version_json(version) for version in versions[:limit]]})
        return
    if not versions:
        say("There are no versions yet.", err=True)
        return
    paint = get_paint()
    writers = max(len(version.info.writer) for version in versions)
    for version in versions[:limit]:
        when = f"{format_age(version.when.timestamp(), time()):>6}"
        head = f"{paint.accent(version.short)}  {paint.dim(when)}  {pad(one_line(version.info.writer), writers)}"
        room = line_width() - 10 - 2 - 6 - 2 - writers - 2
        say(f"{head}  {cut(one_line(version.info.subject), room)}")
    if len(versions) > limit:
        say(paint.dim(f"… and older ones: -n {limit * 2}"))


@click.command(
    "diff",
    epilog=examples(
        "reverie memory diff", "reverie memory diff 3f2a", "reverie memory diff 3f2a MEMORY.md | patch --dry-run -R -p1"
    ),
)
@click.argument("version", metavar="[V]", default="latest")
@click.argument("file", metavar="[FILE]", required=False, shell_complete=file_names)
@with_memory
def diff_command(version: str, file: str | None, as_json: bool, memory: OpenedMemory) -> None:
    """Show what a version changed, and who made it, when and why."""
    _absorb(memory)
    found = memory.directory.history.find(version)
    name = find_file(memory, file, also=[change.name for change in found.files]) if file else None
    text = memory.directory.history.diff(found, name)
    if as_json:
        answer(True, {**(version_json(found) or {}), "diff": text})
        return
    paint = get_paint()
    if sys.stdout.isatty():
        _show_about(found, paint)
    say_all(diff_line(line, paint) for line in printable(text).splitlines())


def _show_about(version: Version, paint: Paint) -> None:
    info = version.info
    when = version.when.astimezone().strftime("%Y-%m-%d %H:%M")
    say(f"{paint.accent(version.short)}  {paint.bold(one_line(info.subject))}")
    said = [f"by {info.writer}", when, *([f"session {info.session[:8]}"] if info.session else [])]
    say(paint.dim(" · ".join(said)))
    for line in wrap(info.why) if info.why else []:
        say(paint.dim(line))
    for name, reason in info.reasons.items():
        say(paint.dim(f"{name}: {one_line(reason)}"))
    say()


@click.command("undo", epilog=examples("reverie memory undo", "reverie memory undo 3f2a"))
@click.argument("version", metavar="[V]", default="latest")
@with_memory
def undo_command(version: str, as_json: bool, memory: OpenedMemory) -> None:
    """Reverse exactly one version; later changes of other lines stay. The newest one if V is left out.

    The undo is a version itself and can be undone. Where later versions changed the same lines, nothing is undone and
    they are named.
    """
    _absorb(memory)
    found = memory.directory.history.find(version)
    made = memory.directory.undo(found.id, WriteInfo(Writer.USER, "Asked for with `reverie memory undo`."))
    told = f"Undone: {one_line(found.info.subject)} ({found.short})."
    verbs = {"add": "back", "remove": "gone", "change": "changed"}
    files = [f"  {verbs[change.verb]:<8}{one_line(change.name)}" for change in made.files] if made else []
    nothing = f"Nothing to undo: everything is as it was before {found.short}."
    lines = [told, *map(get_paint().dim, files)] if made else [nothing]
    answer(as_json, {"undone": version_json(found), "version": version_json(made)}, *lines, *undo_hint(made))


@click.command(
    "restore",
    epilog=examples("reverie memory restore feedback_no_mocks.md", "reverie memory restore feedback_no_mocks.md@3f2a"),
)
@click.argument("file", metavar="FILE[@V]", shell_complete=file_names)
@with_memory
def restore_command(file: str, as_json: bool, memory: OpenedMemory) -> None:
    """Bring a file back as it was in a version, or before it was last changed or removed, with its index line."""
    _absorb(memory)
    given, _, spec = file.rpartition("@")
    known = _known_files(memory)
    if not given or file in known:
        given, spec = file, None
    name = find_file(memory, given, also=known)
    info = WriteInfo(Writer.USER, "Asked for with `reverie memory restore`.")
    made = memory.directory.restore(name, info, spec=spec)
    told = f"Restored {get_paint().accent(name)}." if made else f"{name} is already as it was then."
    answer(as_json, {"file": name, "version": version_json(made)}, told, *undo_hint(made))
