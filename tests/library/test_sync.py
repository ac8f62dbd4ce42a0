"""`reverie.sync`: the same object without async, from any thread and inside a running event loop."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie import UserError
from reverie.sync import Memory
from tests.waiting import LIMIT_S


def test_it_does_the_same_without_async(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m") as memory:
        assert memory.remember("The staging port is 8080").action == "added"
        assert memory.recall("which port does staging use?")[0].text == "The staging port is 8080"
        assert memory.path == tmp_path / "m" and "m" in repr(memory)
    with pytest.raises(UserError, match="closed"):
        memory.list()


def test_an_engine_takes_a_memory_without_async(tmp_path: Path) -> None:
    from reverie.sync import Engine

    with Memory.open(tmp_path / "m") as memory:
        memory.remember("The staging port is 8080", origin="typed")
        with Engine.open("talk", model="anthropic:claude-sonnet-5-5", memory=memory) as engine:
            request = engine.prepare(messages=[{"role": "user", "content": "Which port does staging use?"}])
    assert request.recalled == ("project_staging_port.md",) and "8080" in str(request.body["messages"])


def test_it_works_inside_a_running_loop_and_in_threads(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m") as memory:

        async def inside() -> int:
            memory.remember("Anna owns the billing service")
            return len(memory.list())

        assert asyncio.run(inside()) == 1
        texts = ["The roof is red", "The garden gate is green", "The boiler needs water in winter"]
        threads = [threading.Thread(target=memory.remember, args=(text,)) for text in texts]
        for one in threads:
            one.start()
        for one in threads:
            one.join(20)
        assert len(memory.list()) == 4


def test_an_error_keeps_its_traceback(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m") as memory, pytest.raises(UserError) as caught:
        memory.read("nothing")
    shown = "".join(traceback.format_exception(caught.value))
    assert "find_file" in shown and "test_sync.py" in shown


def test_every_method_has_the_signature_of_its_coroutine() -> None:
    for name, method in inspect.getmembers(reverie.Memory, callable):
        if not name.startswith("_"):
            assert inspect.signature(getattr(Memory, name)) == inspect.signature(method), name
            assert getattr(Memory, name).__doc__ == method.__doc__
            assert not inspect.iscoroutinefunction(getattr(Memory, name))


def test_a_blocking_call_on_its_own_loop_is_an_error_and_no_deadlock(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m") as memory:

        async def ask(_body: Any) -> Any:
            return memory.list()

        with Memory.open(tmp_path / "other", ask=ask) as other:
            done = other.extract([{"role": "user", "content": "Remember that the office closes at six."}])
        assert "use the async object" in done.problems[0]


PROGRAM = """
import os, sys
from reverie.sync import Memory
memory = Memory.open(sys.argv[1])
memory.remember("The staging port is 8080")
memory.recall("which port does staging use?")
child = os.fork()
if not child:
    print("child", len(memory.list()), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("parent", len(memory.list()))
"""


def test_a_program_that_forks_and_closes_nothing_ends_cleanly(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", PROGRAM, str(tmp_path / "m")],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["child", "1", "parent", "1"])
    assert "Traceback" not in done.stderr and (tmp_path / "m" / "MEMORY.md").exists()


def test_only_the_classes_of_the_library_are_there() -> None:
    import reverie.sync

    for name in ("Session", "ask", "Saved", "nothing"):
        with pytest.raises(AttributeError):
            getattr(reverie.sync, name)
