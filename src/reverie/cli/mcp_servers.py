"""`reverie mcp list`, `add`, `remove` and `test`: the MCP servers whose tools our own agent uses.

`attach` puts these commands into a group.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.options import examples, folder_options, load_places
from reverie.cli.output import answer, exact, get_paint, one_line, plural, table
from reverie.errors import UserError

if TYPE_CHECKING:
    from reverie.tools.mcp.config import ServerConfig
    from reverie.tools.mcp.server import McpServer


@examples("reverie mcp list", "reverie mcp list --json")
@agents_may(AgentsMay.ALL)
@click.command("list")
@folder_options
def list_command(cwd: Path, as_json: bool) -> None:
    """List the MCP servers of this folder.

    Your own servers are in `mcp.json` in Reverie's home, those of a project in `.mcp.json`. A server of a project is
    used only after you trust the folder (`reverie trust`). Nothing is started: `reverie mcp test` does that.
    """
    from reverie.tools.mcp.config import find_servers

    settings, places = load_places(cwd)
    found = find_servers(places, settings)
    rows = [_describe(one, one.problem or "used") for one in found.servers]
    rows += [_describe(one, "waits for your trust") for one in found.waiting]
    rows += [{"name": name, "state": "off (setting mcp.off)"} for name in settings.mcp.off]
    shown = [(row["name"], row.get("from", ""), row["state"], one_line(row.get("runs", ""), 80)) for row in rows]
    lines = list(table(shown))
    if not rows:
        lines = ["There are no MCP servers here. `reverie mcp add` adds one."]
    if not settings.mcp.enabled:
        lines.append("None of them starts: the setting mcp.enabled is false.")
    answer(as_json, {"servers": rows, "problems": list(found.problems)}, *lines, *map(exact, found.problems))


def _describe(one: ServerConfig, state: str) -> dict[str, Any]:
    return {
        "name": exact(one.name),
        "from": "project" if one.is_project else "you",
        "type": one.kind,
        "state": exact(state),
        "runs": exact(one.shown),
        "file": str(one.source),
    }


@examples(
    "reverie mcp add memory -- npx -y @modelcontextprotocol/server-memory",
    "reverie mcp add tickets --env 'TOKEN=${TICKETS_TOKEN}' -- tickets-mcp --read-only",
    "reverie mcp add docs --url https://docs.example/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'",
)
@click.command("add")
@click.argument("name")
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", metavar="URL", help="The address of a server that runs elsewhere, instead of a program.")
@click.option("--sse", is_flag=True, help="The server at --url speaks the older SSE.")
@click.option("--env", "variables", metavar="NAME=VALUE", multiple=True, help="A variable for the program. Repeatable.")
@click.option("--header", "headers", metavar="'NAME: VALUE'", multiple=True, help="A header for --url. Repeatable.")
@click.option("--project", is_flag=True, help="Add it to `.mcp.json` of this project, for everybody who works there.")
@folder_options
def add_command(
    name: str,
    program: tuple[str, ...],
    url: str | None,
    sse: bool,
    variables: tuple[str, ...],
    headers: tuple[str, ...],
    project: bool,
    cwd: Path,
    as_json: bool,
) -> None:
    """Add an MCP server.

    PROGRAM is the command that starts it, after `--`. Only few variables of your environment reach the program: give
    the others with --env. Write `${VAR}` or `${VAR:-default}` for a value that must not be in the file.

    Exit codes: 0: added; 2: wrong usage, or the name is taken; 4: storage error.
    """
    from reverie.tools.mcp.config_file import add_server

    if bool(program) == bool(url):
        raise click.UsageError("Give either the program after `--`, or --url.")
    if url and variables:
        raise click.UsageError("--env is for programs; a server at --url takes --header.")
    if not url and (headers or sse):
        raise click.UsageError("--header and --sse are for --url.")
    entry: dict[str, Any]
    if url:
        entry = {"type": "sse" if sse else "http", "url": url}
        if headers:
            entry["headers"] = dict(_split(one, ":") for one in headers)
    else:
        entry = {"command": program[0], "args": list(program[1:])}
        if variables:
            entry["env"] = dict(_split(one, "=") for one in variables)
    path, home = _file(cwd, project)
    add_server(path, name, entry, home)
    lines = [f"Added {exact(name)} to {exact(str(path))}. `reverie mcp test {exact(name)}` tries it."]
    if project:
        lines.append("Servers of a project start only in a trusted folder: `reverie trust` shows them and asks.")
    answer(as_json, {"name": name, "file": str(path), "server": entry}, *lines)


def _split(text: str, sign: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise click.UsageError(f"{text!r} has no {sign!r} between a name and a value.")
    return name.strip(), value.strip() if sign == ":" else value


@examples("reverie mcp remove memory", "reverie mcp remove tickets --project")
@click.command("remove")
@click.argument("name")
@click.option("--project", is_flag=True, help="Remove it from `.mcp.json` of this project.")
@folder_options
def remove_command(name: str, project: bool, cwd: Path, as_json: bool) -> None:
    """Remove an MCP server from your own list, or from that of the project.

    Exit codes: 0: removed; 2: there is no such server; 4: storage error.
    """
    from reverie.tools.mcp.config_file import remove_server

    path, home = _file(cwd, project)
    remove_server(path, name, home)
    answer(as_json, {"name": name, "file": str(path)}, f"Removed {exact(name)} from {exact(str(path))}.")


@examples("reverie mcp test", "reverie mcp test memory --json")
@agents_may(AgentsMay.ALL)
@click.command("test")
@click.argument("names", nargs=-1)
@folder_options
def test_command(names: tuple[str, ...], cwd: Path, as_json: bool) -> int:
    """Start MCP servers, list their tools, and end them.

    NAMES are the servers to test; all of them if none is given. Servers of a project need your trust first.

    Exit codes: 0: all of them work; 1: one does not; 2: there is no such server.
    """
    from reverie.cli.event_loop import CommandSignals, run_async
    from reverie.tools.mcp.config import find_servers
    from reverie.tools.mcp.servers import McpServers

    settings, places = load_places(cwd)
    found = find_servers(places, settings)
    known = {one.name: one for one in found.servers}
    if missing := [name for name in names if name not in known]:
        why = f" {found.problems[0]}" if found.problems else ""
        raise UserError(f"There is no MCP server {missing[0]!r} that may start here.{why}")
    chosen = [known[name] for name in dict.fromkeys(names)] or list(found.servers)
    told, reports = list[str](), list[dict[str, Any]]()

    async def work(_signals: CommandSignals) -> int:
        servers = McpServers(chosen, places, settings, tell=told.append)
        try:
            servers.start()
            await servers.settled(settings.mcp.start_s + 5)
            reports.extend(map(_report, servers))
            return 0
        finally:
            await servers.close()

    if chosen:
        run_async(work)
    paint = get_paint()
    lines = list[str]()
    for report in reports:
        state = "works" if not report["problem"] else paint.warning(exact(report["problem"]))
        size = f": {plural(len(report['tools']), 'tool')}, {report['bytes']:,} bytes" if not report["problem"] else ""
        lines.append(f"{paint.bold(exact(report['name']))} {state}{size}")
        lines += [
            f"  {exact(tool['name'])}  {paint.dim(exact(one_line(tool['line'], 80)))}" for tool in report["tools"]
        ]
    answer(as_json, {"servers": reports, "notices": told}, *(lines or ["There are no MCP servers to test."]))
    return int(any(report["problem"] for report in reports))


def _report(server: McpServer) -> dict[str, Any]:
    tools = [{"name": tool.name, "line": tool.line, "only_reads": tool.only_reads} for tool in server.tools]
    return {
        "name": server.name,
        "title": server.title,
        "problem": "" if server.listed else server.problem or "it did not list its tools",
        "bytes": sum(len(tool.text().encode()) for tool in server.tools),
        "tools": tools,
    }


def _file(cwd: Path, project: bool) -> tuple[Path, Path]:
    """Returns the file with the servers, and Reverie's home."""
    from reverie.tools.mcp.config import PROJECT_FILE, USER_FILE

    places = load_places(cwd)[1]
    return (places.checkout / PROJECT_FILE if project else places.home / USER_FILE), places.home


COMMANDS = (list_command, add_command, remove_command, test_command)
