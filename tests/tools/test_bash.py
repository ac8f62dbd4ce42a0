"""Bash: real processes; whatever ends a call, nothing it started is left, and no output is lost or held in memory."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reverie.paths.programs import make_bare_environment
from reverie.permissions.rules import Profile
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.runtime.process_family import ProcessFamily
from reverie.tools.base import ToolContext, ToolOutput
from reverie.tools.bash import Bash
from tests.tools.calls import make_context, refusal, text, use
from tests.waiting import LIMIT_S, wait_until


def alive(pid: int) -> bool:
    """Whether the process runs; one that ended and waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def pids(file: Path, count: int) -> list[int]:
    """Process ids a command wrote to a file, one a line, as soon as there are so many."""
    wait_until(lambda: file.exists() and file.read_text().count("\n") >= count)
    return [int(line) for line in file.read_text().split()]


@pytest.fixture(autouse=True)
def _needs_proc() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("these tests look processes up in /proc")


def bash(context: ToolContext, command: str, **more: Any) -> ToolOutput:
    return use(context, "Bash", command=command, **more)


def test_output_in_order_and_exit_code(context: ToolContext) -> None:
    output = bash(context, "echo one; echo two >&2; echo three; exit 3")
    assert text(output) == "Exit code 3\none\ntwo\nthree"
    assert output.is_error and output.structured == {"exitCode": 3, "interrupted": False}
    assert text(bash(context, "printf 'a\\n\\n'")) == "a\n"
    assert text(bash(context, "true")) == "The command finished without output."
    assert text(bash(context, "false")) == "Exit code 1"
    assert "signal 9 (SIGKILL)" in refusal(bash(context, "kill -KILL $$"))


def test_every_call_starts_anew_in_the_working_folder(context: ToolContext) -> None:
    assert text(bash(context, "cd / && X=1 && pwd")) == "/"
    assert text(bash(context, 'pwd; echo "[$X]"')) == f"{context.cwd}\n[]"


def test_no_input_no_terminal(context: ToolContext) -> None:
    assert text(bash(context, "cat; read x; echo $?; tty")).splitlines()[:2] == ["Exit code 1", "1"]
    assert "not a tty" in text(bash(context, "tty"))
    assert bash(context, "echo x > /dev/tty").is_error


def test_odd_bytes_and_long_words(context: ToolContext) -> None:
    assert text(bash(context, r"printf 'a\xff\xc3b'")) == "a\ufffd\ufffdb"
    assert text(bash(context, "echo 'ünï'; echo \"$(printf 'x%.0s' {1..5})\"")) == "ünï\nxxxxx"
    assert "NUL" in refusal(bash(context, "echo a\0b"))
    assert "half a character" in refusal(bash(context, "echo \ud800"))
    assert "too long" in refusal(bash(context, "echo " + "x" * 3_000_000))


def test_a_folder_that_is_gone(context: ToolContext) -> None:
    context.cwd.rmdir()
    assert "does not exist any more" in refusal(bash(context, "pwd"))


def test_a_mapped_folder(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    context = make_context(tmp_path, map_path=lambda path: copy)
    assert text(bash(context, "pwd")) == str(copy)


def test_fifty_megabytes_are_kept_on_disk_and_not_in_memory(context: ToolContext) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    output = bash(context, "seq 1 7000000 | head -c 52428800; echo; echo the end")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # kilobytes
    shown = text(output)
    assert len(shown) < 30_000 and shown.startswith("1\n2\n3\n") and shown.endswith("\nthe end")
    kept = Path(output.structured["persistedOutputPath"])
    assert str(kept) in shown and "52,428,809 bytes" in shown
    assert kept.stat().st_size == output.structured["persistedOutputSize"] == 52_428_809
    assert kept.parent == context.keep_dir
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    with kept.open("rb") as file:
        assert file.read(6) == b"1\n2\n3\n"
        file.seek(-9, os.SEEK_END)
        assert file.read() == b"\nthe end\n"[-9:]


def test_below_the_limit_all_is_shown(context: ToolContext) -> None:
    assert len(text(bash(context, "head -c 400000 /dev/zero | tr '\\0' x"))) == 400_000
    assert not context.keep_dir.exists()
    cut = asyncio.run(Bash(inline_bytes=1_000).run({"command": "head -c 30001 /dev/zero | tr '\\0' é"}, context))
    assert "30,001 bytes" in text(cut)


def test_characters_are_not_cut_in_half(context: ToolContext) -> None:
    output = asyncio.run(Bash(inline_bytes=100).run({"command": "printf 'x日%.0s' {1..20000}"}, context))
    assert "\ufffd" not in text(output)


def test_an_output_that_cannot_be_kept(context: ToolContext) -> None:
    context.keep_dir.write_text("in the way")
    output = bash(context, "seq 1 200000")
    shown = text(output)
    assert not output.is_error and "could not be kept: Cannot make the folder" in shown
    assert shown.startswith("1\n2\n") and shown.endswith("200000")
    assert "persistedOutputPath" not in output.structured


def test_the_time_limit_ends_everything(context: ToolContext) -> None:
    """A grandchild deaf to SIGTERM, one in a group of its own (timeout), and one that left the session."""
    file = context.cwd / "pids"
    command = (
        f"(trap '' TERM; echo $BASHPID >> {file}; exec 3>&1; while :; do sleep 1; done) & "
        f"timeout 1000 bash -c 'echo $$ >> {file}; sleep 1000' & "
        f"setsid bash -c 'echo $$ >> {file}; sleep 1000' & "
        f"echo started; sleep 1000"
    )
    for seconds in (1, 4, 16):  # on a busy machine, not all three may have begun after a second
        file.write_text("")
        output = bash(context, command, timeout=seconds * 1_000)
        assert text(output).startswith(f"The command did not finish: it was stopped at its time limit of {seconds} ")
        wait_until(lambda: not any(alive(int(pid)) for pid in file.read_text().split()))
        if len(file.read_text().split()) == 3:
            break
    assert output.is_error and output.structured["interrupted"] and "started" in text(output)
    assert len(pids(file, 3)) == 3


@pytest.mark.parametrize("command", ["sleep 1000", "trap '' TERM; sleep 1000 & wait", "seq 1 100000000"])
def test_cancelling_leaves_no_process_and_no_file(context: ToolContext, command: str) -> None:
    file = context.cwd / "pid"

    async def cancelled() -> None:
        given = {"command": f"echo $$ > {file}; {command}"}
        task = asyncio.ensure_future(Bash().run(given, context))
        await asyncio.to_thread(pids, file, 1)
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    (pid,) = pids(file, 1)
    assert not alive(pid) and not ProcessFamily(pid, (0, 0)).living()
    assert not context.keep_dir.exists() or not list(context.keep_dir.iterdir())


def test_cancelling_twice_still_leaves_no_process(context: ToolContext) -> None:
    file = context.cwd / "pid"

    async def cancelled() -> None:
        task = asyncio.ensure_future(
            Bash().run({"command": f"trap '' TERM; echo $$ > {file}; sleep 1000 & wait"}, context)
        )
        await asyncio.to_thread(pids, file, 1)
        task.cancel()
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    family = ProcessFamily(pids(file, 1)[0], (0, 0))
    wait_until(lambda: not family.living())  # on a busy machine the kernel takes a moment


@pytest.mark.parametrize("delay", [0, 0.001, 0.003, 0.005, 0.01, 0.02])
def test_cancelling_at_the_start_leaves_nothing(context: ToolContext, delay: float) -> None:
    file = context.cwd / "pid"

    async def cancelled() -> None:
        task = asyncio.ensure_future(Bash().run({"command": f"echo $$ > {file}; sleep 1000"}, context))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    open_before = len(list(Path("/proc/self/fd").iterdir()))
    asyncio.run(cancelled())
    assert len(list(Path("/proc/self/fd").iterdir())) <= open_before
    time.sleep(0.05)
    if file.exists() and file.read_text():
        assert not alive(int(file.read_text()))


def test_a_background_process_that_holds_the_output(context: ToolContext) -> None:
    output = bash(context, "sleep 1000 & echo $!")
    first, note = text(output).splitlines()
    assert not alive(int(first)) and "processes in the background were ended" in note and not output.is_error


def test_a_background_process_with_its_own_output_goes_on(context: ToolContext) -> None:
    output = bash(context, "sleep 1000 > /dev/null 2>&1 & echo $!")
    pid = int(text(output))
    try:
        assert alive(pid)
    finally:
        os.kill(pid, 9)


def test_a_command_that_closes_its_output_is_waited_for(context: ToolContext) -> None:
    bash(context, "exec >&- 2>&-; sleep 0.5; touch done")
    assert (context.cwd / "done").exists()


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    context = make_context(tmp_path, progress=told.append)
    bash(context, "for i in 1 2 3 4; do echo step $i; sleep 0.3; done")
    assert told and all(line.startswith("step ") for line in told)


def strict(context: ToolContext) -> ToolContext:
    """Where there is no sandbox, and nobody was asked."""
    return replace(context, profile=Profile.READ_ONLY, sandboxes=Sandboxes(wanted=False))


def test_a_command_that_is_not_on_the_strict_list_never_runs_unasked_without_a_sandbox(context: ToolContext) -> None:
    output = bash(strict(context), "touch made")
    assert output.is_error and "touch is not one of" in text(output) and not (context.cwd / "made").exists()


def test_a_command_that_only_reads_runs_with_a_bare_environment(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"touch {tmp_path}/sprung\n")
    monkeypatch.setenv("BASH_ENV", str(trap))
    monkeypatch.setenv("BASH_FUNC_ls%%", f"() {{ touch {tmp_path}/sprung; }}")
    (context.cwd / "a").touch()
    assert Bash().is_read_only({"command": "ls"})
    for unasked in (strict(context), replace(context, profile=Profile.READ_ONLY)):
        assert text(bash(unasked, "ls")) == "a"
        assert not (tmp_path / "sprung").exists()
    monkeypatch.delenv("BASH_FUNC_ls%%")
    monkeypatch.setenv("SEEN", "yes")
    assert text(bash(context, "echo $SEEN")) == "yes"


@pytest.mark.parametrize(
    ("command", "read_only"), [("ls -la", True), ("cat a | wc -l", True), ("rm a", False), (3, False)]
)
def test_what_only_reads(command: Any, read_only: bool) -> None:
    assert Bash().is_read_only({"command": command}) is read_only


def test_a_project_chooses_no_program_that_runs_unasked(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trap = f"#!/bin/sh\ntouch {tmp_path}/sprung\n"
    for name in ("bin/ls", "ls", "bash", "bin/bash"):
        (context.cwd / name).parent.mkdir(exist_ok=True)
        (context.cwd / name).write_text(trap)
        (context.cwd / name).chmod(0o755)
    for first in (f"{context.cwd}/bin", ".", "", "bin"):
        monkeypatch.setenv("PATH", f"{first}:{os.defpath}")
        for unasked in (strict(context), replace(context, profile=Profile.READ_ONLY)):
            assert "bin" in text(bash(unasked, "ls -d bin"))
        assert text(bash(context, "echo $0")).endswith("/bash"), "bash itself is the system's for every command"
        assert not (tmp_path / "sprung").exists(), first


def test_the_bare_environment_is_a_short_list(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = (
        "BASH_ENV",
        "ENV",
        "LD_PRELOAD",
        "GREP_OPTIONS",
        "GREP_COLORS",
        "LESSOPEN",
        "IFS",
        "SHELLOPTS",
        "BASHOPTS",
    )
    for name in (
        *hostile,
        "LC_CTYPE",
        "LANG",
        "TMPDIR",
        "POSIXLY_CORRECT",
        "BASH_FUNC_ls%%",
        "PS4",
        "CDPATH",
        "LS_COLORS",
    ):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("LC_ALL", "zh_CN.GBK")
    monkeypatch.setenv("HOME", "/home/u")
    found = make_bare_environment()
    assert set(found) <= {"HOME", "USER", "LOGNAME", "TZ", "PATH", "LC_ALL", "TERM"}
    assert found["HOME"] == "/home/u" and found["LC_ALL"] in ("C.UTF-8", "C")
    assert all(folder.startswith("/") and "home" not in folder for folder in found["PATH"].split(":"))
    monkeypatch.setenv("HOME", "-x")
    assert "HOME" not in make_bare_environment(), "a tilde would become an option"


@pytest.mark.parametrize("program", ["tail", "cat", "head", "wc", "ls", "grep -c x", "stat"])
def test_a_file_called_like_an_option_is_a_file(context: ToolContext, program: str) -> None:
    for name in ("-fs.5", "--follow.5", "-R.5", "a.5"):
        (context.cwd / name).write_text("x\n")
    command = f"{program} *.5"
    assert Bash().is_read_only({"command": command})
    output = bash(strict(context), command, timeout=LIMIT_S * 1_000)
    assert not output.is_error, text(output)
    if program == "wc":
        assert text(output).splitlines()[-1].split() == ["4", "4", "8", "total"]
