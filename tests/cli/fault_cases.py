"""Every command of the command line with arguments to run it with, for tests that take the disk away.

Walks the tree of commands, so that a new command without a line here fails the test that asks for one. A command that
stores something names what must be in the home afterwards; a command that only reads does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from reverie.cli.app import commands

Home = Path
Stored = Callable[[Home], bool]


@dataclass(frozen=True, slots=True)
class Case:
    """One command line. `stored`: whether its effect is in the home; None if it only reads or only shows."""

    args: tuple[str, ...]
    stored: Stored | None = None
    stdin: str = ""
    slow: bool = False
    """Only in the soak: it takes more than a second."""
    serves: bool = False
    """It runs until it is ended: that it still runs after two seconds means that it works."""
    works: bool = True
    """Whether it ends with 0 where nothing is wrong with the disk."""


def leaves() -> Iterator[tuple[str, ...]]:
    """The names of every command that can be run, a group that does something on its own included."""

    def walk(command: click.Command, path: tuple[str, ...], context: click.Context) -> Iterator[tuple[str, ...]]:
        if not isinstance(command, click.Group):
            yield path
            return
        if command.invoke_without_command:
            yield path
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walk(below, (*path, name), click.Context(below, parent=context, info_name=name))

    yield from walk(commands, (), click.Context(commands))


def in_transcripts(text: str) -> Stored:
    return lambda home: any(text in path.read_text() for path in home.glob("projects/*/*.jsonl"))


def in_file(name: str, text: str) -> Stored:
    return lambda home: (home / name).exists() and text in (home / name).read_text()


def in_memory(text: str) -> Stored:
    return lambda home: any(text in path.read_text() for path in home.glob("projects/*/memory/*.md"))


def not_in_memory(text: str) -> Stored:
    return lambda home: not in_memory(text)(home)


def gone(pattern: str) -> Stored:
    return lambda home: not list(home.glob(pattern))


def there(pattern: str) -> Stored:
    return lambda home: bool(list(home.glob(pattern)))


def answered(home: Home) -> bool:
    """The last conversation has a turn about the eleven lamps."""
    return in_transcripts("eleven lamps")(home)


def _subtype(name: str, least: int = 1) -> Stored:
    def found(home: Home) -> bool:
        lines = [line for path in home.glob("projects/*/*.jsonl") for line in path.read_text().splitlines()]
        return sum(json.loads(line).get("subtype") == name for line in lines) >= least

    return found


def cases(work: Path, secret: str) -> dict[tuple[str, ...], list[Case]]:
    """By command. `work` is the project's folder; `secret` stands in a memory, a version and a transcript."""
    session = str(work / "foreign.jsonl")
    nowhere = ("--dsn", "postgresql://me@/none?host=/nonexistent")
    return {
        ("chat",): [Case((), stdin="/exit\n"), Case((), in_transcripts("ten lamps"), stdin="We have ten lamps.\n")],
        ("run",): [Case(("What about eleven lamps?",), answered), Case(("-c", "And eleven lamps?"), answered)],
        ("sessions", "delete"): [Case(("last", "--yes"), gone("projects/*/*.jsonl"))],
        ("sessions", "import"): [Case((session,), in_transcripts("violet"))],
        ("sessions", "follow"): [Case((session,), in_transcripts("violet"))],
        ("sessions", "list"): [Case(())],
        ("sessions", "path"): [Case(("last",))],
        ("sessions", "show"): [Case(("last",))],
        ("sessions", "upload"): [Case(("last", "--yes"), works=False)],
        ("remember",): [Case(("The gate opens at nine on Fridays.",), in_memory("gate opens"))],
        ("recall",): [Case(("blue server restart",))],
        ("forget",): [Case(("blue server", "--yes"), not_in_memory("blue server"))],
        ("memory", "list"): [Case(())],
        ("memory", "show"): [Case(("project_blue_server_restarted_mondays_ann.md",))],
        ("memory", "search"): [Case(("server",))],
        ("memory", "add"): [Case(("The roof is repaired in May.",), in_memory("roof is repaired"))],
        ("memory", "edit"): [
            Case(("project_blue_server_restarted_mondays_ann.md",), in_memory("edited-line")),
        ],
        ("memory", "forget"): [Case(("blue server", "--yes"), not_in_memory("blue server"))],
        ("memory", "check"): [Case(()), Case(("--fix",))],
        ("memory", "log"): [Case(())],
        ("memory", "diff"): [Case(())],
        ("memory", "undo"): [Case((), not_in_memory("blue server"))],
        ("memory", "restore"): [
            Case(("project_old_bell.md",), in_memory("old bell")),
        ],
        ("memory", "purge"): [
            Case((secret, "--yes"), lambda home: secret not in _everything(home)),
            Case((secret, "--dry-run")),
        ],
        ("memory", "inbox"): [Case(())],
        ("memory", "import"): [Case((str(work / "notes.md"),), in_memory("pantry"))],
        ("memory", "sync"): [Case((), works=False)],
        ("memory", "share"): [Case(("blue server", "--yes"), works=False)],
        ("memory", "unshare"): [Case(("blue server", "--yes"), works=False)],
        ("memory", "store"): [Case((), works=False)],
        ("memory", "login"): [Case(("http://127.0.0.1:9",), stdin="token", works=False)],
        ("memory", "logout"): [Case(("http://127.0.0.1:9",), works=False)],
        ("memory", "path"): [Case(())],
        ("dream",): [Case(("--now",), slow=True), Case(("--dry-run",), slow=True), Case(("--json",))],
        ("dream", "accept"): [Case((), works=False)],
        ("dream", "kill"): [Case((), works=False)],
        ("dream", "log"): [Case(())],
        ("dream", "reject"): [Case((), works=False)],
        ("dream", "review"): [Case((), works=False)],
        ("dream", "status"): [Case(())],
        ("dream", "undo"): [Case((), works=False)],
        ("compact",): [
            Case((), _subtype("compact_boundary")),
            Case(("--preview",)),
            Case(("undo",), works=False),
        ],
        ("notes",): [Case(()), Case(("--update",), there("projects/*/*/session-memory/summary.md"))],
        ("rewind",): [Case(("-1",), _subtype("rewind")), Case(())],
        ("pin",): [
            Case(("keep the quince",), in_transcripts("quince")),
            Case(()),
            Case(("--remove", "1"), _subtype("pin", 2)),
        ],
        ("extract",): [Case((session,), slow=True), Case(("--new",), slow=True)],
        ("connect",): [
            Case(("claude-code", "--yes"), there("connect/claude-code/reverie/hooks/hook.sh")),
            Case(("codex", "--yes"), there("connect/codex/hook.sh")),
            Case(("--status",)),
        ],
        ("disconnect",): [Case(())],
        ("settings",): [Case(()), Case(("model.name",))],
        ("mcp", "list"): [Case(("--json",))],
        ("mcp", "add"): [Case(("notes", "--", "notes-mcp"), stored=in_file("mcp.json", "notes-mcp"))],
        ("mcp", "remove"): [Case(("nonesuch",), works=False)],
        ("mcp", "test"): [Case(())],
        ("permissions",): [Case(())],
        ("permissions", "list"): [Case(("--json",))],
        ("permissions", "remove"): [Case(("Bash(nonesuch:*)",), works=False)],
        ("trust",): [Case(()), Case(("--list",))],
        ("cost",): [Case(())],
        ("health",): [Case(()), Case(("--by", "day"))],
        ("context",): [Case(())],
        ("agents",): [Case(())],
        ("agents", "list"): [Case(())],
        ("agents", "snapshot"): [Case(("keeper",), works=False)],
        ("btw",): [Case(("What did we talk about?",))],
        ("team", "member"): [Case((str(work / "team.toml"), "nobody"), works=False)],
        ("team", "run"): [Case((str(work / "team.toml"),), slow=True)],
        ("team", "status"): [Case(())],
        ("team", "stop"): [Case(("nobody",), works=False)],
        ("tasks",): [Case(())],
        ("tasks", "kill"): [Case(("x",), works=False)],
        ("tasks", "list"): [Case(())],
        ("log",): [Case(())],
        ("acp",): [Case((), stdin='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n')],
        ("daemon", "status"): [Case(())],
        ("daemon", "stop"): [Case(())],
        ("daemon", "run"): [Case((), slow=True, serves=True)],
        ("mcp",): [Case(()), Case(("--http",), slow=True, serves=True)],
        ("doctor",): [Case(())],
        ("demo",): [Case(("--no-chat",), slow=True)],
        ("simulate",): [Case(("--ledger", "LEDGER"), slow=True, serves=True)],
        ("web",): [Case(("--no-open",), slow=True, serves=True)],
        ("proxy",): [Case((), slow=True, serves=True)],
        ("proxy", "stats"): [Case(("--json",))],
        ("serve",): [Case(nowhere, works=False)],
        ("worker",): [Case(nowhere, works=False)],
        ("serve", "setup"): [Case(nowhere, works=False)],
        ("serve", "stores"): [Case((), works=False)],
        ("serve", "audit"): [Case((), works=False)],
        ("serve", "budget"): [Case(("5",), works=False)],
        ("serve", "people", "budget"): [Case(("ann", "5"), works=False)],
        ("serve", "backup"): [Case((str(work / "new.dump"),), works=False)],
        ("serve", "restore"): [Case((str(work / "notes.md"), *nowhere), works=False)],
        ("serve", "export"): [Case(("memstore_1", str(work / "new")), works=False)],
        ("serve", "import"): [Case((str(work), "--store", "memstore_1", "--person", "ann"), works=False)],
        **{
            ("serve", group, *one): [Case(given, works=False)]
            for group in ("people", "teams", "projects", "tokens")
            for one, given in _accounts(group)
        },
        ("models", "add"): [Case(("nonesuch",), works=False)],
        ("models", "list"): [Case(())],
        ("models", "path"): [Case(())],
        ("models", "remove"): [Case(("nonesuch",), works=False)],
        ("lab", "adapters"): [Case(("--only", "nothing"), works=False, slow=True)],
        ("lab", "billing"): [Case((), slow=True)],
        ("lab", "dream"): [Case((str(work),), works=False, slow=True)],
        ("lab", "extraction"): [Case((str(work / "notes.md"),), works=False, slow=True)],
        ("lab", "thrash"): [Case(("--window", "32000", "--json"), slow=True)],
        ("memory", "inferred"): [Case(("--json",))],
        ("lab", "writes"): [Case((str(work / "notes.md"),), works=False, slow=True)],
        ("lab", "forks"): [Case(("--children", "1", "--tokens", "1000"), slow=True)],
        ("lab", "hooks"): [Case(("--prompts", "1", "--runs", "1"), slow=True)],
        ("lab", "mcp", "calls"): [Case((str(work / "notes.md"),), works=False, slow=True)],
        ("lab", "mcp", "saves"): [Case(("--count", "2"), slow=True)],
        ("lab", "mcp", "sizes"): [Case((), slow=True)],
        ("lab", "mind"): [Case((session,), slow=True)],
        ("lab", "overhead"): [Case((), slow=True)],
        ("lab", "proxy"): [Case((session, "--alone"), works=False, slow=True)],
        ("lab", "screen"): [Case(("--runs", "1"), slow=True)],
        ("lab", "questions"): [
            Case((str(work / "notes.md"), session, "--answers", str(work / "answers")), works=False, slow=True)
        ],
        ("lab", "recall"): [Case((str(work),), works=False, slow=True)],
        ("lab", "replay"): [Case((session,), slow=True)],
        ("lab", "web"): [Case(("--memories", "3", "--sessions", "2", "--rounds", "3", "--runs", "1"), slow=True)],
        ("lab", "serve"): [Case(("--alone", "--texts", str(work)), works=False, slow=True)],
        ("lab", "startup"): [Case(("--runs", "1"), slow=True)],
        ("lab", "survival"): [Case((session,), slow=True)],
        ("lab", "tokens"): [Case((str(work),), works=False, slow=True)],
        ("completion",): [Case(("bash",))],
    }


def _accounts(group: str) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The commands about people, teams, projects or tokens; there is no server, so each says how to start one."""
    verbs = {
        "people": {"add": 1, "remove": 1, "disable": 1, "enable": 1},
        "teams": {"add": 1, "remove": 1, "join": 2, "leave": 2, "budget": 2},
        "projects": {"add": 1, "remove": 1, "join": 2, "leave": 2},
        "tokens": {"add": 1, "revoke": 1},
    }
    yield from (((), ()), (("list",), ()))
    for verb, count in verbs[group].items():
        yield (verb,), ("core", "5")[:count]


def _everything(home: Home) -> str:
    """All text under the home, file names too, with git's objects unpacked."""
    import zlib

    parts: list[str] = []
    for path in home.rglob("*"):
        parts.append(path.name)
        if path.is_file():
            data = path.read_bytes()
            if re.search(r"/objects/../[0-9a-f]{38}$", str(path)):
                data = zlib.decompress(data)
            parts.append(data.decode("utf-8", "replace"))
    return "\n".join(parts)
