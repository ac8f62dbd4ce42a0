"""Three MCP servers of other makers under our agent: through a compaction, with one killed in between, and resumed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reverie.events import Event
from reverie.session import Session
from reverie.storage.transcript.records import CompactBoundary, from_record
from reverie.tools.mcp.server import ServerState
from reverie.types import ImageBlock
from tests.integration.programs import installed
from tests.sessions import in_session, script, turn
from tests.tools.mcp.small import is_running, notices, results, shown, user_servers

pytestmark = pytest.mark.integration
_PROGRAM = """
import asyncio, sys
from reverie.session import Session

async def main():
    session = await Session.open(cwd=sys.argv[1], model=sys.argv[2])
    async for _ in session.send("go"):
        pass
    print(*(server.pid for server in session.mcp.servers), flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture
def project(tmp_path: Path, own_home: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("The valve is number 17.\n")
    program = {name: str(installed("mcp", f"node_modules/.bin/mcp-server-{name}")) for name in _SERVERS}
    user_servers(
        own_home,
        files={"command": program["filesystem"], "args": [str(folder)]},
        graph={"command": program["memory"], "env": {"MEMORY_FILE_PATH": str(tmp_path / "graph.json")}},
        everything={"command": program["everything"]},
    )
    return folder


_SERVERS = ("filesystem", "memory", "everything")


def call(tool: str, **given: Any) -> str:
    return f"call CallTool {json.dumps({'tool': f'mcp__{tool}', 'input': given})}"


def test_three_servers_through_a_compaction_with_one_killed(project: Path, tmp_path: Path) -> None:
    entity = {"name": "valve", "entityType": "part", "observations": ["is number 17"]}
    first = [
        'call LoadTools {"names": ["mcp__files__read_text_file", "mcp__graph__create_entities"], "query": "sum"}',
        call("files__read_text_file", path=str(project / "notes.txt")),
        call("graph__create_entities", entities=[entity]),
        call("everything__get-sum", a=20, b=22) + "\n" + call("everything__get-tiny-image"),
        call("everything__get-roots-list"),
        "say Done.",
    ]
    seen: dict[str, Any] = {}

    async def work(session: Session) -> None:
        await turn(session, "go " + "and explain every step of it " * 300)
        servers = session.mcp.servers
        assert servers is not None and [server.state for server in servers] == [ServerState.READY] * 3
        load, notes, made, total, image, roots = results(session)
        assert "### mcp__files__read_text_file" in load.text and "### mcp__everything__get-sum" in load.text
        assert "valve is number 17" in notes.text and "valve" in made.text and "42" in total.text
        assert any(isinstance(block, ImageBlock) for block in image.content)
        assert project.as_uri() in roots.text
        header = session.view.header
        assert header is not None and not any(tool["name"].startswith("mcp__") for tool in header.tools)
        own = sum(len(json.dumps(tool)) for tool in header.tools if tool["name"] in ("CallTool", "LoadTools"))
        whole = sum(len(tool.text()) for server in servers for tool in server.tools)
        listed = sum(map(len, shown(session)))
        print(f"two tools {own:,} bytes, lists {listed:,}, all definitions {whole:,}")
        assert own < 1_500 and own + listed < whole / 2
        await session.compact()
        boundary = next(b for r in session.log.records if isinstance(b := from_record(r), CompactBoundary))
        assert "mcp__graph__create_entities" in boundary.tools_discovered
        assert "### mcp__graph__create_entities" in "\n".join(shown(session))
        graph = servers.get("graph")
        assert graph is not None
        os.kill(graph.pid, signal.SIGKILL)
        told = list[Event]()
        session.listen(told.append)
        await turn(session, "and again")  # the script begins again after a compaction
        load, notes, made, total, *_ = results(session)
        assert "### mcp__graph__create_entities" in load.text and "valve is number 17" in notes.text
        assert made.is_error is None, "the call started the killed server again"
        assert "42" in total.text
        seen.update(id=session.id, shown=shown(session), tools=header.tools)
        assert len([text for text in notices(told) if "graph" in text]) <= 1

    model = script(tmp_path, "\n---\n".join(first))
    in_session(work, cwd=project, model=model, overrides={"permissions.allow": ["mcp__*"]})

    async def resumed(session: Session) -> None:
        await turn(session, "once more")
        assert session.view.header is not None and session.view.header.tools == seen["tools"]
        assert shown(session) == seen["shown"] and "is number 17" in results(session)[-1].text

    again = [*first, call("graph__search_nodes", query="valve"), "say Yes."]
    later = script(tmp_path, "\n---\n".join(again), "later.script")
    in_session(resumed, cwd=project, model=later, resume=seen["id"], overrides={"permissions.allow": ["mcp__graph"]})


def test_no_server_outlives_a_killed_session(project: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PROGRAM, str(project), script(tmp_path, "say Hi.\n")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 3 and all(map(is_running, pids))
        process.kill()
    subprocess.run(["sleep", "2"], check=True)
    assert not any(map(is_running, pids))


@pytest.mark.parametrize(("kind", "mode", "path"), [("http", "streamableHttp", "/mcp"), ("sse", "sse", "/sse")])
def test_a_server_behind_an_address_that_is_started_again(
    kind: str, mode: str, path: str, tmp_path: Path, own_home: Path
) -> None:
    program = installed("mcp", "node_modules/.bin/mcp-server-everything")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    user_servers(own_home, far={"type": kind, "url": f"http://127.0.0.1:{port}{path}"})
    sums = [call("far__get-sum", a=number, b=1) for number in (1, 2, 3)]

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [str(program), mode], env={**os.environ, "PORT": str(port)}, stderr=subprocess.DEVNULL
        )
        for _ in range(300):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.1):
                return process
            time.sleep(0.1)
        raise AssertionError("it does not listen")

    async def work(session: Session) -> None:
        nonlocal process
        await turn(session, "go")
        assert "is 2" in results(session)[-1].text
        process.kill()
        process.wait()
        process = await asyncio.to_thread(start)
        await turn(session, "and again")  # the first call finds out that the server has forgotten us
        assert "is 4" in results(session)[-1].text

    process = start()
    try:
        model = script(tmp_path, "\n---\n".join([sums[0], "say Done.", sums[1], sums[2], "say Done."]))
        in_session(work, cwd=tmp_path, model=model, overrides={"permissions.allow": ["mcp__far"]})
    finally:
        process.kill()
        process.wait()
