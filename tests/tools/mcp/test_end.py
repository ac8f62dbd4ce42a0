"""No process of a server is left, however the session ends, and a server that hangs delays nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from reverie.session import Session
from tests.sessions import ended, in_session, script, turn
from tests.tools.mcp.small import SERVER, entry, environment, user_servers, wait_until_gone
from tests.waiting import wait_until

_HOLDER = """
import os, subprocess, sys, time
from reverie.tools.mcp.leash import VARIABLE, Leash

leash = Leash()
leash.take()
marked = {VARIABLE: leash.mark, "PATH": "/usr/bin"}
subprocess.Popen([sys.executable, *sys.argv[1:]], stdin=subprocess.PIPE, env=marked)
bare = subprocess.Popen(["env", "-i", "sleep", "1000"], start_new_session=True, env=marked)
leash.tell(bare.pid)
open(os.path.join(sys.argv[-1], "bare.pid"), "w").write(str(bare.pid))
print("ready", flush=True)
time.sleep(1_000)
"""


def test_a_server_ends_with_a_killed_session_and_so_do_its_children(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HOLDER, str(SERVER), "silent", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        wait_until((tmp_path / "child.pid").exists)
        process.kill()
    wait_until_gone(tmp_path)


def test_a_server_that_hangs_delays_neither_a_message_nor_the_end(tmp_path: Path, own_home: Path) -> None:
    user_servers(own_home, silent=entry(tmp_path / "silent", "silent"))

    async def work(session: Session) -> None:
        assert ended(await turn(session, "hello")).reason == "answered"
        while session.mcp.servers is not None and not (tmp_path / "silent" / "child.pid").exists():
            await session.mcp.servers.settled(0.05)

    options = {"interactive": True, "overrides": {"mcp.first_wait_s": 0.1, "mcp.start_s": 600.0}}
    in_session(work, cwd=tmp_path, model=script(tmp_path, "say Hi.\n"), **options)
    wait_until_gone(tmp_path / "silent")
