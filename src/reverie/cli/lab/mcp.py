"""`reverie lab mcp sizes|saves|calls`: measures the MCP server beside others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from reverie.cli.options import examples, json_option
from reverie.cli.output import answer, show_progress, warn

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_NODE_HELP = "The folder in which npm has installed @modelcontextprotocol/server-memory.  [default: .venv-clients/node]"
_node = click.option("--node", metavar="DIR", type=click.Path(path_type=Path), default=None, help=_NODE_HELP)


def _folder(node: Path | None) -> Path:
    from reverie.lab.mcp.servers import NODE, SERVER_MEMORY

    found = node or NODE
    if not (found / SERVER_MEMORY).is_file():
        warn(f"server-memory is not installed in {found}, so it is not measured: npm install --prefix {found} …")
    return found


@examples("reverie lab mcp sizes", "reverie lab mcp saves --count 1000")
@click.group(name="mcp")
def mcp() -> None:
    """Measure the MCP server: what its tools cost, whether saves are lost, when a model calls recall."""


@examples("reverie lab mcp sizes --json")
@mcp.command("sizes")
@_node
@json_option
def sizes(node: Path | None, as_json: bool) -> None:
    """Measure the number of tools and the bytes of their schemas, beside other servers for memory."""
    from reverie.lab.mcp.sizes import measure_sizes, summary, table

    found = asyncio.run(measure_sizes(_folder(node)))
    answer(as_json, summary(found), table(found))


@examples("reverie lab mcp saves --count 100")
@mcp.command("saves")
@click.option("--count", default=1_000, show_default=True, type=click.IntRange(min=2), help="Saves of both clients.")
@_node
@json_option
def saves(count: int, node: Path | None, as_json: bool) -> None:
    """Measure whether saves from two clients at the same time are lost, beside server-memory.

    Two client processes start a server each, on the same memory, and send all their saves at once. Then the facts that
    are in memory are counted.

    Exit codes: 0: Reverie kept every save; 1: a save was lost; 2: wrong usage.
    """
    from reverie.lab.mcp.saves import measure_saves, summary, table

    found = asyncio.run(measure_saves(count, _folder(node)))
    answer(as_json, summary(found), table(found))
    if found[0].kept < count:
        raise click.exceptions.Exit(1)


@examples("reverie lab mcp calls evals/mcp-calls.jsonl -m anthropic:claude-sonnet-5-5 --jobs 8")
@mcp.command("calls")
@click.argument("file", metavar="FILE", type=_FILE)
@click.option("-m", "--model", metavar="NAME", help="The model that answers.  [default: from the settings]")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(min=1), help="Cases at the same time.")
@json_option
def calls(file: Path, model: str | None, jobs: int, as_json: bool) -> None:
    """Measure whether a model calls `recall` when it needs memory, and not when it does not.

    FILE has one case per line: {"id": "n01", "prompt": "…", "needs": true}, and lines {"memory": "…"} with what the
    user said before, for all cases ("memories": ["…"] in a case: for this one). Each case is a conversation of its own
    with a real server. docs/mcp.md describes it.
    """
    from reverie.lab.mcp.calls import measure_calls, read_cases, summary, table

    cases, memories = read_cases(file)
    total = len(cases)
    work = measure_calls(
        cases,
        memories,
        model,
        jobs=jobs,
        progress=lambda done: show_progress(f"{done} of {total} cases", ends_line=done == total),
    )
    found = asyncio.run(work)
    answer(as_json, summary(found), table(found))
