"""`reverie memory log|diff|undo|restore`: versions of the memory directory."""

from __future__ import annotations

import sys

import click

from reverie.cli.below_agent import refuse_agent
from reverie.cli.memory.opening import file_names, undo_hint, version_json, with_memory
from reverie.cli.options import examples
from reverie.cli.output import (
    answer,
    diff_line,
    format_age,
    get_paint,
    line_width,
    one_line,
    say,
    say_all,
    say_dim,
    table,
)
from reverie.cli.screen import printable
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.lookup import absorb, find_file, list_past_files
from reverie.memory.opening import OpenedMemory
from reverie.storage.history.versions import Version

_VERSIONS = 30


@examples(
    "reverie memory log",
    "reverie memory log feedback_no_mocks",
    "reverie memory log --json | jq -r '.versions[] | select(.writer == \"dream\").short'",
)
@click.command("log")
@click.argument("file", metavar="[FILE]", required=False, shell_complete=file_names)
@click.option("-n", "--limit", type=click.IntRange(min=1), default=_VERSIONS, show_default=True, help="How many.")
@with_memory
def log_command(file: str | None, limit: int, as_json: bool, memory: OpenedMemory) -> None:
    """List the versions of the memory directory, or of FILE, newest first: when, who, what and why.

    Who: user (a command), agent, extraction, dream, import, hand (somebody changed the file directly, in an editor or
    with another program).
    """
    absorb(memory.directory)
    name = find_file(memory.directory, file, also=list_past_files(memory.directory)) if file else None
    versions = list(memory.directory.log(name, limit=limit + 1))
    if as_json:
        answer(True, {"versions": [version_json(version) for version in versions[:limit]]})
        return
    if not versions:
        say("There are no versions yet.", err=True)
        return
    paint = get_paint()
    ages = [paint.dim(format_age(version.when.timestamp())) for version in versions]
    rows = [
        (paint.accent(version.short), age, one_line(version.info.writer), one_line(version.info.subject))
        for version, age in zip(versions[:limit], ages, strict=False)
    ]
    say_all(table(rows, right=(1,), room=line_width(), flexible=3))
    if len(versions) > limit:
        say(paint.dim(f"… older versions: -n {limit * 2}"))


@examples(
    "reverie memory diff", "reverie memory diff 3f2a", "reverie memory diff 3f2a MEMORY.md | patch --dry-run -R -p1"
)
@click.command("diff")
@click.argument("version", metavar="[V]", default="latest")
@click.argument("file", metavar="[FILE]", required=False, shell_complete=file_names)
@with_memory
def diff_command(version: str, file: str | None, as_json: bool, memory: OpenedMemory) -> None:
    """Show what a version changed, and who made it, when and why."""
    absorb(memory.directory)
    found = memory.directory.history.find(version)
    name = find_file(memory.directory, file, also=[change.name for change in found.files]) if file else None
    text = memory.directory.history.diff(found, name)
    if as_json:
        answer(True, {**(version_json(found) or {}), "diff": text})
        return
    paint = get_paint()
    if sys.stdout.isatty():
        _show_about(found)
    say_all(diff_line(line, paint) for line in printable(text).splitlines())


def _show_about(version: Version) -> None:
    info, paint = version.info, get_paint()
    when = version.when.astimezone().strftime("%Y-%m-%d %H:%M")
    say(f"{paint.accent(version.short)}  {paint.bold(one_line(info.subject))}")
    parts = [f"by {info.writer}", when, *([f"session {info.session[:8]}"] if info.session else [])]
    say(paint.dim(" · ".join(parts)))
    if info.why:
        say_dim(info.why)
    for name, reason in info.reasons.items():
        say(paint.dim(f"{name}: {one_line(reason)}"))
    say()


@examples("reverie memory undo", "reverie memory undo 3f2a")
@click.command("undo")
@click.argument("version", metavar="[V]", default="latest")
@with_memory
def undo_command(version: str, as_json: bool, memory: OpenedMemory) -> None:
    """Undo one version: V, or the newest one. Later changes to other lines stay.

    The undo is a version too and can be undone. If later versions changed the same lines, nothing is undone, and the
    message names those versions.
    """
    absorb(memory.directory)
    found = memory.directory.history.find(version)
    if found.info.writer != Writer.AGENT:
        refuse_agent(f"Undoing {found.short}, which no agent has written,")
    made = memory.directory.undo(found.id, WriteInfo(Writer.USER, "Asked for with `reverie memory undo`."))
    text = f"Undone: {one_line(found.info.subject)} ({found.short})."
    verbs = {"add": "restored", "remove": "removed", "change": "changed"}
    files = [f"  {verbs[change.verb]:<9} {one_line(change.name)}" for change in made.files] if made else []
    nothing = f"Nothing to undo: memory is already as before {found.short}."
    lines = [text, *map(get_paint().dim, files)] if made else [nothing]
    answer(as_json, {"undone": version_json(found), "version": version_json(made)}, *lines, *undo_hint(made))


@examples("reverie memory restore feedback_no_mocks.md", "reverie memory restore feedback_no_mocks.md@3f2a")
@click.command("restore")
@click.argument("file", metavar="FILE[@V]", shell_complete=file_names)
@with_memory
def restore_command(file: str, as_json: bool, memory: OpenedMemory) -> None:
    """Restore a file and its index line to the state in version V.

    Without V, to the state before the last change or removal of the file.
    """
    absorb(memory.directory)
    given, _, spec = file.rpartition("@")
    known = list_past_files(memory.directory)
    if not given or file in known:
        given, spec = file, None
    name = find_file(memory.directory, given, also=known)
    info = WriteInfo(Writer.USER, "Asked for with `reverie memory restore`.")
    made = memory.directory.restore(name, info, spec=spec)
    text = f"Restored {get_paint().accent(name)}." if made else f"{name} already has this content."
    answer(as_json, {"file": name, "version": version_json(made)}, text, *undo_hint(made))
