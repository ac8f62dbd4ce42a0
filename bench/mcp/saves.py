"""Saves from two client processes at the same time, each with a server of its own, on one memory: is any save lost?

`python -m bench.mcp.saves` is such a client. Each sends all its saves at once and waits for the answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from bench import CODE
from bench.mcp.servers import ServerCommand, connect, node_option, own_server, server_memory
from bench.scratch import count_option
from reverie.lab.measurement import Result, Table, measurement, plain
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text

CLIENTS: Final = 2
_LETTERS: Final = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z")
_VOWELS: Final = ("a", "e", "i", "o", "u")


@dataclass(frozen=True, slots=True)
class Saves:
    """What became of the saves to one server."""

    name: str
    asked: int
    answered: int
    """Saves that the server called stored;"""
    kept: int
    """and facts that are in memory at the end."""
    seconds: float

    @property
    def lost(self) -> int:
        return self.answered - self.kept


def word(number: int) -> str:
    """A word of its own for each number, in letters."""
    made = ""
    for _ in range(4):
        number, at = divmod(number, len(_LETTERS) * len(_VOWELS))
        made += _LETTERS[at % len(_LETTERS)] + _VOWELS[at // len(_LETTERS)]
    return made


def fact(number: int) -> str:
    """A fact that shares nearly no word with any other."""
    one, two, three, four = (word(4 * number + at + 7_919) for at in range(4))
    return f"Team {one} keeps {two} {three} in {four}."


@measurement("reverie lab mcp saves --count 100")
@count_option("--count", 1_000, 2, "Saves of both clients.")
@node_option
def saves(count: int, node: Path) -> Result:
    """Measure whether saves from two clients at the same time are lost, beside server-memory.

    Two client processes start a server each, on the same memory, and send all their saves at once. Then the facts that
    are in memory are counted.

    Exit codes: 0: Reverie kept every save; 1: a save was lost; 2: wrong usage.
    """
    measured = asyncio.run(measure_saves(count, node))
    servers = [{**plain(one), "lost": one.lost} for one in measured]
    table = Table(servers, ("name", "asked", "answered", "kept", "lost", "seconds"))
    return Result({"clients": CLIENTS, "servers": servers}, [table], holds=measured[0].kept == count)


async def measure_saves(count: int, node: Path) -> list[Saves]:
    """Saves `count` facts with each server that is here."""
    found = list[Saves]()
    with TemporaryDirectory(prefix="reverie-lab-") as folder:
        own = own_server(Path(folder) / "own")
        found.append(await _run(own, count))
        other = server_memory(Path(folder), node)
        if other is not None:
            found.append(await _run(other, count))
    return found


async def _run(server: ServerCommand, count: int) -> Saves:
    start = time.monotonic()
    parts = [range(at, count, CLIENTS) for at in range(CLIENTS)]
    answered = await asyncio.gather(*(_client(server, part) for part in parts))
    seconds = time.monotonic() - start
    text = "\n".join(_stored(server))
    kept = sum(fact(number) in text for number in range(count))
    return Saves(server.name, count, sum(answered), kept, seconds)


def _stored(server: ServerCommand) -> Iterator[str]:
    """The text of everything that a server keeps."""
    if server.name == "reverie":
        for path in Path(server.env["REVERIE_HOME"]).rglob("memory/*.md"):
            if path.name != "MEMORY.md":
                yield read_regular_text(path)
        return
    file = Path(server.env["MEMORY_FILE_PATH"])
    yield read_regular_text(file, errors="replace") if file.is_file() else ""


async def _client(server: ServerCommand, numbers: range) -> int:
    """Runs one client process; returns how many saves the server called stored."""
    told = {**asdict(server), "cwd": str(server.cwd), "numbers": [numbers.start, numbers.stop, numbers.step]}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.mcp.saves"),
        env={**os.environ, "PYTHONPATH": CODE},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await process.communicate(json.dumps(told).encode())
    return int(output.split()[-1]) if output.split() else 0


async def _save_all(server: ServerCommand, numbers: range) -> int:
    async with connect(server) as client:

        async def save(number: int) -> bool:
            if server.name == "reverie":
                given: dict[str, Any] = {"text": fact(number)}
                return not (await client.call_tool("remember", given, read_timeout_seconds=3_600)).is_error
            entity = {"name": f"fact-{number}", "entityType": "fact", "observations": [fact(number)]}
            given = {"entities": [entity]}
            return not (await client.call_tool("create_entities", given, read_timeout_seconds=3_600)).is_error

        return sum(await asyncio.gather(*map(save, numbers)))


def main() -> None:
    """One client: reads what to do from standard input, and prints how many saves were answered as stored."""
    given = cast("dict[str, Any]", load_json(sys.stdin.read()))
    server = ServerCommand(
        given["name"], given["command"], tuple(given["args"]), cast("dict[str, str]", given["env"]), Path(given["cwd"])
    )
    print(asyncio.run(_save_all(server, range(*given["numbers"]))))


if __name__ == "__main__":
    main()
