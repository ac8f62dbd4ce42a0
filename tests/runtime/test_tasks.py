"""Background tasks: states, kills, serial queues, exit; errors stop at the edge."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.errors import StorageError, UserError
from reverie.runtime.background_log import BackgroundLog
from reverie.runtime.tasks import PROGRESS_LINES, TaskHandle, TaskInfo, Tasks, TaskState
from reverie.types import Purpose
from tests.counts import count
from tests.waiting import LIMIT_S, until

NOTES = Purpose.NOTES
S = TaskState


@pytest.fixture(autouse=True)
def nothing_on_the_terminal(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The event loop reports what goes wrong in its callbacks on standard error, in the middle of a conversation."""
    yield
    assert [record.message for record in caplog.get_records("call") if record.name == "asyncio"] == []


class Board:
    """Tasks with a log and everything `on_change` was told."""

    def __init__(self, folder: Path) -> None:
        self.log = BackgroundLog(folder / "background.jsonl", "s-1")
        self.changes: list[TaskInfo] = []
        self.tasks = Tasks(self.log, self.changes.append)

    def states(self, id: str) -> list[TaskState]:
        return [info.state for info in self.changes if info.id == id]


def run(folder: Path, test: Callable[[Board], Coroutine[object, object, None]]) -> Board:
    async def start() -> Board:
        board = Board(folder)
        await test(board)
        return board

    return asyncio.run(start())


async def forever(handle: TaskHandle) -> None:
    handle.progress("waiting")
    await asyncio.Event().wait()


async def breaks(_: TaskHandle) -> None:
    raise ValueError("the user said: my password is hunter2")


async def works(_: TaskHandle) -> int:
    return 7


def test_the_life_of_a_task(tmp_path: Path) -> None:
    async def body(board: Board) -> None:
        async def work(handle: TaskHandle) -> str:
            handle.progress("reading\nthe   file\x1b[2J")
            await asyncio.sleep(0)
            return "done"

        task = board.tasks.start(NOTES, "Updating notes", work)
        assert task.info.state is S.STARTING and board.tasks.running == (task.info,)
        info = await task.wait()
        assert (info.state, task.result, info.error) == (S.COMPLETED, "done", None)
        assert info.progress == ("reading the file [2J",)
        assert info.ended is not None and info.ended >= info.started
        assert board.states(task.id) == [S.STARTING, S.RUNNING, S.RUNNING, S.COMPLETED]
        assert board.tasks.running == () and board.tasks.list() == (info,)
        assert task.id.startswith("notes-")
        assert json.loads(json.dumps(info.to_json()))["state"] == "completed"

    board = run(tmp_path, body)
    assert [entry.kind for entry in board.log.read()] == ["task_started", "task_completed"]


def test_errors_stop_here_and_are_counted_and_logged_without_what_was_said(tmp_path: Path) -> None:
    async def body(board: Board) -> None:
        tasks = board.tasks
        for expected in (1, 2, 3):
            info = await tasks.start(NOTES, "x", breaks).wait()
            assert (info.state, info.error) == (S.FAILED, "Unexpected ValueError.")
            assert tasks.failures_in_a_row(NOTES) == expected
        assert tasks.failures_in_a_row(Purpose.DREAM) == 0
        task = tasks.start(NOTES, "x", forever)
        await tasks.kill(task.id)
        assert tasks.failures_in_a_row(NOTES) == 3, "a killed task is neither success nor failure"
        await tasks.start(NOTES, "x", works).wait()
        counts = tasks.counts(NOTES)
        assert (counts.started, counts.completed, counts.failed, counts.killed) == (5, 1, 3, 1)
        assert counts.failures_in_a_row == 0 and counts.last_success is not None

        async def full(_: TaskHandle) -> None:
            raise StorageError("Cannot write notes: the disk is full.")

        assert (await tasks.start(NOTES, "x", full).wait()).error == "Cannot write notes: the disk is full."

    board = run(tmp_path, body)
    failed = board.log.read(kind="task_failed")
    assert [entry.fields["in_a_row"] for entry in failed] == [1, 2, 3, 1]
    assert "test_tasks.py" in failed[0].fields["where"] and "breaks" in failed[0].fields["where"]
    assert "hunter2" not in board.log.path.read_text()


def test_kill_cancels_waits_and_lets_the_work_clean_up(tmp_path: Path) -> None:
    async def body(board: Board) -> None:
        cleaned: list[str] = []

        async def work(_: TaskHandle) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.02)
                cleaned.append("rolled back")

        task = board.tasks.start(Purpose.DREAM, "Dreaming", work)
        await asyncio.sleep(0)
        info = await board.tasks.kill(task.id)
        assert info.state is S.KILLED and cleaned == ["rolled back"]
        assert await board.tasks.kill(task.id) == info, "twice is once"
        with pytest.raises(UserError, match="no task 'dream-nope'; running tasks: none"):
            await board.tasks.kill("dream-nope")

    run(tmp_path, body)


def test_kill_before_the_first_step_and_while_waiting_for_its_turn(tmp_path: Path) -> None:
    async def body(board: Board) -> None:
        tasks = board.tasks
        early = tasks.start(NOTES, "never ran", forever)
        assert (await tasks.kill(early.id)).state is S.KILLED
        first = tasks.start(NOTES, "first", forever, serial="notes")
        queued = tasks.start(NOTES, "queued", forever, serial="notes")
        await until(lambda: first.info.state is S.RUNNING)
        assert queued.info.state is S.STARTING
        assert (await tasks.kill(queued.id)).state is S.KILLED and queued.info.progress == ()
        third = tasks.start(NOTES, "third", forever, serial="notes")
        await tasks.kill(first.id)
        await until(lambda: third.info.state is S.RUNNING)
        await tasks.drain(0)

    run(tmp_path, body)


def test_work_that_finishes_or_falls_over_while_being_killed(tmp_path: Path) -> None:
    async def body(board: Board) -> None:
        async def finishes(_: TaskHandle) -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "landed just in time"
            return ""

        async def falls(_: TaskHandle) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                raise KeyError("x")

        async def stubborn(_: TaskHandle) -> None:
            while not board_done.is_set():
                try:
                    await board_done.wait()
                except asyncio.CancelledError:
                    continue

        board_done = asyncio.Event()
        done, fell, stays = (board.tasks.start(NOTES, "x", work) for work in (finishes, falls, stubborn))
        await asyncio.sleep(0)
        assert (await board.tasks.kill(done.id)).state is S.COMPLETED
        info = await board.tasks.kill(fell.id)
        assert (info.state, info.error) == (S.KILLED, "Unexpected KeyError.")
        info = await board.tasks.kill(stays.id, grace_s=0.05)
        assert info.state is S.KILLED and "abandoned" in (info.error or "")
        board_done.set()
        await until(lambda: any(entry.kind == "task_ended_late" for entry in board.log.read()))
        assert stays.info == info and board.tasks.counts(NOTES).killed == 2

    board = run(tmp_path, body)
    assert [entry.kind for entry in board.log.read()][-1] == "task_ended_late"


def test_drain_waits_for_what_ends_in_time_and_kills_the_rest(tmp_path: Path) -> None:
    async def body(board: Board) -> None:
        tasks = board.tasks

        async def trailing(_: TaskHandle) -> None:
            await asyncio.sleep(0.05)

        async def starts_another(_: TaskHandle) -> None:
            await asyncio.sleep(0.02)
            tasks.start(NOTES, "trailing run", trailing)

        tasks.start(NOTES, "first", starts_another)
        assert await tasks.drain(LIMIT_S) == ()
        assert [info.state for info in tasks.list()] == [S.COMPLETED, S.COMPLETED]
        one, two = tasks.start(NOTES, "a", forever), tasks.start(NOTES, "b", forever)
        killed = await tasks.drain(0.1)
        assert {info.id for info in killed} == {one.id, two.id} and {info.state for info in killed} == {S.KILLED}
        assert tasks.running == ()

    run(tmp_path, body)


def test_an_event_loop_that_ends_leaves_killed_tasks(tmp_path: Path) -> None:
    async def body(board: Board) -> None:
        board.tasks.start(NOTES, "x", forever)
        await asyncio.sleep(0)

    board = run(tmp_path, body)
    assert [info.state for info in board.tasks.list()] == [S.KILLED]


def test_progress_and_history_are_bounded_and_late_progress_is_ignored(tmp_path: Path) -> None:
    async def body(board: Board) -> None:
        kept: list[TaskHandle] = []

        async def chatty(handle: TaskHandle) -> None:
            kept.append(handle)
            for n in range(500):
                handle.progress(f"step {n} " + "x" * 5000)

        task = board.tasks.start(NOTES, "t" * 5000, chatty)
        info = await task.wait()
        assert len(info.progress) == PROGRESS_LINES and info.progress[-1].startswith("step 499 ")
        assert max(map(len, (*info.progress, info.title))) <= 300
        changes = len(board.changes)
        kept[0].progress("too late")
        assert task.info == info and len(board.changes) == changes
        for _ in range(200):
            await board.tasks.start(NOTES, "x", works).wait()
        assert len(board.tasks.list()) <= 50

    run(tmp_path, body)


def test_waiting_with_a_limit_does_not_stop_the_task(tmp_path: Path) -> None:
    async def body(board: Board) -> None:
        task = board.tasks.start(NOTES, "x", forever)
        assert (await task.wait(0.02)).state is S.RUNNING
        waiting = asyncio.create_task(task.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert task.info.state is S.RUNNING
        await board.tasks.drain(0)

    run(tmp_path, body)


def test_a_log_that_cannot_be_written_does_not_hurt(tmp_path: Path) -> None:
    (tmp_path / "background.jsonl").mkdir()

    async def body(board: Board) -> None:
        assert (await board.tasks.start(NOTES, "x", works).wait()).state is S.COMPLETED

    board = run(tmp_path, body)
    assert board.log.lost == 2 and "background.jsonl" in str(board.log.error)


@settings(max_examples=count(20, 600), deadline=None)
@given(
    plan=st.lists(
        st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 3), st.sampled_from(["ok", "fail", "kill"])),
        max_size=12,
    )
)
def test_serial_runs_never_overlap_and_keep_their_order(
    tmp_path_factory: pytest.TempPathFactory, plan: list[tuple[str | None, int, str]]
) -> None:
    async def body(board: Board) -> None:
        inside: dict[str, int] = {}
        order: dict[str, list[int]] = {}

        def work(
            number: int, key: str | None, pauses: int, how: str
        ) -> Callable[[TaskHandle], Coroutine[object, object, None]]:
            async def go(_: TaskHandle) -> None:
                if key is not None:
                    assert inside.get(key, 0) == 0, "two runs of one key at once"
                    inside[key] = 1
                    order.setdefault(key, []).append(number)
                try:
                    for _ in range(pauses):
                        await asyncio.sleep(0)
                    if how == "fail":
                        raise RuntimeError
                finally:
                    if key is not None:
                        inside[key] = 0

            return go

        started = [
            board.tasks.start(NOTES, str(n), work(n, key, pauses, how), serial=key)
            for n, (key, pauses, how) in enumerate(plan)
        ]
        for task, (_, _, how) in zip(started, plan, strict=True):
            if how == "kill":
                await board.tasks.kill(task.id)
        assert await board.tasks.drain(LIMIT_S) == ()
        for task, (_, _, how) in zip(started, plan, strict=True):
            expected = {"ok": {S.COMPLETED}, "fail": {S.FAILED}, "kill": {S.KILLED, S.COMPLETED}}
            assert task.info.state in expected[how], task.info
            seen = board.states(task.id)
            assert seen == sorted(seen, key=list(TaskState).index) and sum(state.is_over for state in seen) == 1
        assert all(numbers == sorted(numbers) for numbers in order.values())

    run(tmp_path_factory.mktemp("serial"), body)
