"""Runs commands against a home that the disk takes away, each in a process and a mount namespace of its own.

    python -m tests.cli.fault_driver FOLDER SECRET PLAN  >results.json

PLAN is JSON: for each fault the commands to run, or null for all. The home they find is built in FOLDER first.

A child is forked from one process that has imported the command line, so a whole matrix takes seconds. Each child
mounts its own home, copies the template there, brings the fault about, runs the command in a grandchild and looks at
the home.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests import warm
from tests.cli.fault_cases import Case, cases

FAULTS = ("none", "read-only", "full", "no-growth", "file", "forbidden", "full-output", "closed-output")
_CLONE_NEWNS, _CLONE_NEWUSER, _MS_REC, _MS_PRIVATE = 0x20000, 0x10000000, 0x4000, 1 << 18
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIMIT_S = 60
_NOBODY = 65_534


def mountable() -> str | None:
    """Why nothing can be mounted here; None if it can."""
    probe = subprocess.run(
        [sys.executable, "-c", "from tests.cli.fault_driver import own_mounts; own_mounts()"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True,
    )  # fmt: skip
    return None if probe.returncode == 0 else "no mount namespace can be made here (root or user namespaces needed)"


def own_mounts() -> None:
    """A mount namespace of this process alone, with a tmpfs in it to see that mounting works."""
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_CLONE_NEWNS | (_CLONE_NEWUSER if user else 0)):
        raise OSError(ctypes.get_errno(), "unshare")
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    if _LIBC.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "mount")
    with tempfile.TemporaryDirectory() as folder:
        mount(Path(folder), "size=64k")
        subprocess.run(["umount", folder], check=True)


def mount(where: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(where)], check=True)


def _fill(home: Path) -> None:
    """Takes the last block of the disk."""
    with (home / "filler").open("wb", buffering=0) as file:
        for size in (65_536, 4_096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def _prepare(fault: str, template: Path, home: Path) -> None:
    """The home as the command finds it."""
    if fault == "file":
        home.rmdir()
        home.write_text("not a folder")
        return
    if fault in ("read-only", "full"):
        own_mounts()
        mount(home, "size=8m" if fault == "read-only" else f"size={_room(template)}k")
    shutil.copytree(template, home, dirs_exist_ok=True, symlinks=True)
    if fault == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True)
    elif fault == "full":
        _fill(home)
    elif fault == "forbidden":
        home.chmod(0o000)
        if os.getuid() == 0:
            os.chown(home, _NOBODY, _NOBODY)


def _room(template: Path) -> int:
    """Kilobytes that the template takes in pages; 64 for an empty one."""
    files = [path for path in template.rglob("*") if path.is_file()]
    return max(64, sum(4 * (path.stat().st_size // 4096 + 2) for path in files))


def _run(args: list[str], fault: str, case: Case, out: Path, err: Path) -> int:
    """The command in a grandchild; its exit code."""
    child = os.fork()
    if child:
        return _wait(child, 2 if case.serves else _LIMIT_S, -999 if not case.serves else 0)
    os.dup2(os.open(_given(case.stdin, out.parent), os.O_RDONLY), 0)
    if fault == "full-output":
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    elif fault == "closed-output":
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
    else:
        os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(os.open(err, os.O_WRONLY | os.O_CREAT), 2)
    if fault == "forbidden" and os.getuid() == 0:
        _drop_capabilities()
    if fault == "no-growth":
        _pipes_for_output(out, err)  # only files may not grow; a terminal or a pipe would not notice
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    from reverie.cli.app import app

    sys.argv = ["reverie", *args]
    code = 70
    try:
        app()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    except BaseException:  # what would be a traceback
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _drop_capabilities() -> None:
    """Mode bits hold for root as well from now on."""
    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if _LIBC.capset(header, data):
        raise OSError(ctypes.get_errno(), "capset")


def _pipes_for_output(*paths: Path) -> None:
    """Sends standard output and error through `cat`, which may write where this process may not."""
    for number, path in enumerate(paths, 1):
        with path.open("wb") as file:
            writer = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file)
        assert writer.stdin is not None
        os.dup2(writer.stdin.fileno(), number)
        writer.stdin.close()


def _given(text: str, folder: Path) -> Path:
    path = folder / "stdin"
    path.write_text(text)
    return path


def _wait(child: int, limit_s: float, late: int) -> int:
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return late


def one(fault: str, template: Path, work: Path, path: tuple[str, ...], case: Case) -> dict[str, Any]:
    """Runs one command in a world of its own and says what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        home, out, err, told = Path(folder, "home"), Path(folder, "out"), Path(folder, "err"), Path(folder, "told")
        home.mkdir()
        Path(folder).chmod(0o755)
        child = os.fork()
        if not child:
            result: dict[str, Any] = {}
            try:
                _prepare(fault, template, home)
                os.environ.update(HOME=folder, REVERIE_HOME=str(home), EDITOR=f"{work}/editor")
                os.chdir(work)
                args = [*path, *(str(home / "ledger") if arg == "LEDGER" else arg for arg in case.args)]
                result["code"] = _run(args, fault, case, out, err)
                if fault == "no-growth":
                    time.sleep(0.05)
                if fault == "forbidden":
                    home.chmod(0o700)
                if case.stored is not None and fault != "file":
                    result["stored"] = case.stored(home)
            except BaseException as error:
                result["broken"] = repr(error)
            told.write_text(json.dumps(result))
            os._exit(0)
        os.waitpid(child, 0)
        result = json.loads(told.read_text())
        for key, kept in (("out", out), ("err", err)):
            result[key] = kept.read_text(errors="replace") if kept.exists() else ""
        return {"command": list(path), "args": list(case.args), **result}


def build(template: Path, work: Path, secret: str) -> None:
    """Makes the home that every command finds, through the commands themselves."""
    template.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    (work / "notes.md").write_text("# Pantry\n\nThe pantry is filled on Sundays.\n")
    (work / "shelf.md").write_text("".join(f"On shelf {n} there are {n * 7} jars of plums.\n" for n in range(700)))
    (work / "team.toml").write_text("")
    (work / "editor").write_text('#!/bin/sh\necho edited-line >> "$1"\n')
    (work / "editor").chmod(0o755)
    user, answer = (f"11111111-1111-4111-8111-11111111111{n}" for n in (1, 2))
    beside = {"sessionId": "22222222-2222-4222-8222-222222222222", "cwd": "/x", "version": "1"}
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": user, "parentUuid": None, "message": {"role": "user", "content": "Paint it violet."}},
        {"type": "assistant", "uuid": answer, "parentUuid": user, "message": {"role": "assistant", "content": "Done."}},
    ]
    stamped = [json.dumps({**line, **beside, "timestamp": "2026-01-01T10:00:00.000Z"}) for line in lines]
    (work / "foreign.jsonl").write_text("\n".join(stamped) + "\n")
    os.environ.update(HOME=str(template.parent), REVERIE_HOME=str(template))
    os.chdir(work)
    for line in (
        ("run", "-q", f"We use tabs here. My note is {secret}, keep it."),
        ("run", "-c", "-q", "List the files here"),
        ("run", "-c", "-q", "Read shelf.md"),
        ("pin", "never touch generated files"),
        ("memory", "add", "The old bell hangs in the tower."),
        ("forget", "old bell", "--yes"),
        ("remember", "The blue server is restarted on Mondays by Ann."),
    ):
        code = _run(list(line), "none", Case(line), template.parent / "out", template.parent / "err")
        assert code == 0, (line, (template.parent / "err").read_text())


def main(folder: Path, secret: str, plan: dict[str, list[str] | None]) -> dict[str, list[dict[str, Any]]]:
    """Builds the home, then runs the commands of each fault, each in its own copy of it."""
    warm.load()  # once, for every child
    template, work = folder / "home" / "r", folder / "w"
    build(template, work, secret)
    return {
        fault: [
            one(fault, template, work, path, case)
            for path, listed in cases(work, secret).items()
            for case in listed
            if only is None or " ".join(path) in only
        ]
        for fault, only in plan.items()
    }


if __name__ == "__main__":
    json.dump(main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])), sys.stdout)
