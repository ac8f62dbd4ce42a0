"""`reverie memory purge`: removes a secret from memories, their versions, transcripts, tool results and logs.

Searches first, shows where the secret is, and asks. It reads the secret from a prompt or standard input and never shows
it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.memory.opening import with_memory
from reverie.cli.options import examples
from reverie.cli.output import answer, can_ask, get_paint, one_line, plural, warn
from reverie.errors import ReverieError, UserError
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.inbox import MemoryInbox
from reverie.memory.opening import OpenedMemory
from reverie.memory.sharing.agent_memory import agent_memory_folders, snapshot_files
from reverie.memory.sharing.team_git import TeamCheckout
from reverie.memory.taxonomy import is_topic
from reverie.memory.topic_file import TopicFile, decode, statements_of
from reverie.memory.upkeep.purge import PurgedPlace, PurgeReport, PurgeScope, files_of_home, purge, purge_remote
from reverie.memory.upkeep.purge_forms import PurgeTarget
from reverie.storage.following import sources_of
from reverie.storage.history.folder import history_place

_SENTENCE_WORDS = 4
_SENTENCE_CHARACTERS = 8
"""Shorter parts of a forgotten memory can be anywhere, so they stay."""
_TO_DO = {
    "yours": "it is your own file, so change it yourself",
    "worktree": "it is your own file, so change it yourself",
    "recorded": "the other agent wrote it, so delete that session there",
    "remote": "its newest files are replaced, but only the owner of the remote can rewrite its history",
}


@examples(
    "reverie memory purge",
    "pass show old-token | reverie memory purge --yes",
    "reverie memory purge --forgotten user_knee_operation.md",
    "reverie memory purge --pattern 'ghp_[A-Za-z0-9]{36}' --dry-run",
)
@agents_may(AgentsMay.NOTHING, reads=lambda given: given["dry_run"])
@click.command("purge")
@click.argument("text", required=False)
@click.option("--pattern", metavar="REGEX", help="Purge every match of this regular expression.")
@click.option("--forgotten", metavar="FILE", help="Purge the text of a memory that you forgot, and its file name.")
@click.option("--everywhere", is_flag=True, help="Purge the memories and transcripts of every project.")
@click.option("--dry-run", is_flag=True, help="Only show where it is.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@with_memory
def command(
    text: str | None,
    pattern: str | None,
    forgotten: str | None,
    everywhere: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    memory: OpenedMemory,
) -> int:
    """Remove a secret, or a forgotten memory, from all files of Reverie.

    Removes it from the content and the names of memory files (yours and those of agents), from all versions of these
    files, and from the memory inbox, the marks of trust, the search index, transcripts, tool results, notes, messages,
    the request log, files of Reverie's home (~/.reverie) that belong to no project, and the folder that you share with
    colleagues. The history is rewritten, so the ids of versions change. A later sync, and a later copy of a recorded
    session, do not restore the secret. This cannot be undone.

    The history of a git remote cannot be purged from here. In other projects the secret is only searched for and
    reported; with --everywhere it is removed there too. Files that you wrote yourself (settings, instructions) are
    reported, and you must change them. So are sessions that other agents recorded and that Reverie follows; large
    results that were put on disk there are cleaned.

    The command asks for the secret or reads it from standard input. If you give the secret as TEXT, it stays in the
    history of your shell. The command refuses to run while a session with the secret is open. If it is interrupted, run
    it again.

    Exit codes: 0: the secret is gone; 1: you said no, or something is left; 2: wrong usage; 3: a session with the
    secret is open; 4: storage error.
    """
    if sum(given is not None for given in (text, pattern, forgotten)) > 1:
        raise UserError("Give a text, --pattern or --forgotten, not more than one.")
    if forgotten is not None:
        pattern = _pattern_of(memory, forgotten)
    if text is not None:
        warn("The secret is an argument, so it may be in the history of your shell. Remove it there too.")
    wanted = (
        PurgeTarget.of_pattern(pattern)
        if pattern is not None
        else PurgeTarget.of_text(text or _read_secret(yes or dry_run))
    )
    reports = list(_purge_all(memory, wanted, everywhere, dry_run=True))
    elsewhere = [] if everywhere else list(_find_elsewhere(memory, wanted))
    found = sum(report.found for _, report in reports)
    if dry_run or not found:
        _show_reports(reports, elsewhere, as_json, dry_run=True)
        return 1 if elsewhere and not dry_run else 0
    if not as_json:
        _show_reports(reports, [], False, dry_run=True)
    if not yes:
        if not can_ask():
            raise UserError("Nothing was purged: there is no terminal to ask on; give --yes.")
        kinds = {place.kind for _, report in reports for place in report.places}
        others = " Shared files change for the whole team." if kinds & {"shared", "remote"} else ""
        if not click.confirm(f"Remove it from all these places?{others} This cannot be undone."):
            raise ReverieError("Nothing was purged.")
    reports = list(_purge_all(memory, wanted, everywhere, dry_run=False))
    _show_reports(reports, elsewhere, as_json, dry_run=False)
    return 1 if elsewhere or any(report.left for _, report in reports) else 0


def _pattern_of(memory: OpenedMemory, given: str) -> str:
    """A pattern for the whole sentences of a memory that is gone, for the user's words that they rest on, and for its
    file name."""
    names = {change.name for version in memory.directory.log() for change in version.files if is_topic(change.name)}
    name = given if given in names else f"{given}.md"
    if memory.directory.exists(name):
        raise UserError(f"{name} is still there; `reverie forget {name}` removes it first.")
    texts = [
        decode(memory.directory.history.read(change.before))
        for version in memory.directory.log(name)
        for change in version.files
        if change.name == name and change.before is not None
    ]
    if not texts:
        raise UserError(f"There was no memory {given[:60]!r}; `reverie memory log` lists all versions.")
    said = {one for text in texts for one in (*statements_of(text), TopicFile.parse(text).name)}
    said |= {mark.quote for one in said if (mark := memory.gate.marks.of(one)) is not None}
    whole = {one.rstrip(" .") for one in said if len(one.split()) >= _SENTENCE_WORDS or not one.isascii()}
    long = sorted((one for one in whole if len(one) >= _SENTENCE_CHARACTERS), key=len, reverse=True)
    return "|".join(map(re.escape, [*long, name.rpartition("/")[2].removesuffix(".md")]))


def _read_secret(quiet: bool) -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Text to purge (not shown)", hide_input=True))
    given = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    if not quiet:
        raise UserError("Nothing was purged: there is no terminal to ask on; give --yes, or --dry-run to search.")
    return given


def _purge_all(
    memory: OpenedMemory, wanted: PurgeTarget, everywhere: bool, *, dry_run: bool
) -> Iterator[tuple[MemoryDirectory, PurgeReport]]:
    """Purges this project and the memories of its agents; with `everywhere`, every other project too."""
    places, gate, home = memory.places, memory.gate, memory.places.home
    own = tuple(dict.fromkeys([places.project, places.default_memory.parent]))
    agents = agent_memory_folders(places)
    others = _other_projects(memory) if everywhere else []
    apart = [places.projects, *agents, *(history_place(folder) for folder in agents)]
    files = [*files_of_home(home, apart), *snapshot_files(places)]
    log = memory.settings.debug.request_log
    if log is not None and not log.is_relative_to(home):
        files.append(log)
    team, keep = memory.settings.team, places.team_sync(memory.directory.root)
    index = (places.search_index(memory.directory.root),)
    shared = team.folder if team.sharing == "folder" else None
    record = places.purged_record
    recorded = tuple(sources_of(places, {*own, *others}))
    scope = PurgeScope(own, tuple(files), index, memory.inbox, shared, record, home, recorded)
    yield memory.directory, purge(wanted, memory.directory, scope, dry_run=dry_run)
    if team.sharing == "git":
        checkout = TeamCheckout(team, keep / "checkout", memory.settings.env)
        yield memory.directory, purge_remote(wanted, checkout, keep, dry_run=dry_run)
    if memory.settings.memory.store:
        from reverie.memory.sharing.store.redacting import purge_stores

        yield memory.directory, purge_stores(wanted, memory, dry_run=dry_run)
    rest: list[tuple[Path, tuple[Path, ...]]] = [(folder, ()) for folder in agents]
    for root, projects in (*rest, *((folder / "memory", (folder,)) for folder in others)):
        other = MemoryDirectory.open(root, gate=gate)
        derived = (places.search_index(other.root),)
        theirs = PurgeScope(projects, (), derived, MemoryInbox(other.root), record=record, home=home)
        yield other, purge(wanted, other, theirs, dry_run=dry_run)


def _find_elsewhere(memory: OpenedMemory, wanted: PurgeTarget) -> Iterator[PurgedPlace]:
    """Where the secret is in other projects, which only --everywhere changes."""
    for folder in _other_projects(memory):
        other = MemoryDirectory.open(folder / "memory", gate=memory.gate)
        scope = PurgeScope((folder,), inbox=MemoryInbox(other.root), home=memory.places.home)
        yield from purge(wanted, other, scope, dry_run=True, look_only=True).places


def _other_projects(memory: OpenedMemory) -> list[Path]:
    places = memory.places
    folders = sorted(one for one in places.projects.iterdir() if one.is_dir()) if places.projects.is_dir() else []
    return [one for one in folders if one not in (places.project, places.default_memory.parent)]


def _show_reports(
    reports: list[tuple[MemoryDirectory, PurgeReport]], elsewhere: list[PurgedPlace], as_json: bool, *, dry_run: bool
) -> None:
    places = [(directory, place) for directory, report in reports for place in report.places]
    left = [(directory, place) for directory, report in reports for place in report.left]
    found, versions = (sum(getattr(report, name) for _, report in reports) for name in ("found", "versions"))

    def listed(some: list[tuple[MemoryDirectory, PurgedPlace]]) -> list[dict[str, Any]]:
        return [{"memory": str(of.root), "kind": one.kind, "where": one.where, "found": one.found} for of, one in some]

    result = {"dry_run": dry_run, "found": found, "places": listed(places), "versions": versions, "left": listed(left)}
    paint = get_paint()
    if not found:
        where = "nowhere in this project" if elsewhere else "nowhere"
        lines = [f"It is {where}: not in memories, their versions, transcripts, tool results, logs or messages."]
    elif dry_run:
        lines = [f"Found {plural(found, 'time')} in {plural(len(places), 'place')}:"]
        for _, place in places:
            times = paint.dim(plural(place.found, "time"))
            lines.append(f"  {place.kind:<10}  {paint.accent(one_line(place.where))}  {times}")
    else:
        gone = plural(max(0, found - sum(place.found for _, place in left)), "occurrence")
        named = f"{plural(versions, 'version')} of the history got new names"
        lines = [f"Purged {gone}; {named}. Every place was searched again."]
    answer(as_json, {**result, "other_projects": len(elsewhere)}, *lines)
    if as_json:
        return
    for _, place in left if found and not dry_run else ():
        todo = f"; {_TO_DO[place.kind]}" if place.kind in _TO_DO else ""
        warn(f"It is still in {place.kind} {one_line(place.where)}{todo}.")
    if elsewhere:
        warn(f"It is also in {plural(len(elsewhere), 'place')} of other projects; --everywhere purges it there.")
