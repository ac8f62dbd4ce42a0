"""Runs `reverie` in processes that start warm: a server that has imported the program forks one per command.

Each is a process of its own, with its own folder, environment, streams and exit code; only the start of the interpreter
and the imports are saved. Where start-up, signals or the interpreter's own settings matter, tests start a real one.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import random
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT_S

_ADDRESS = "TEST_WARM_SERVER"
_COLD = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "COVERAGE")
"""Variables that an interpreter reads when it starts."""
_LOADED = (
    *("cli", "session", "layers", "memory", "offline", "agents", "models", "tools", "instructions", "context"),
    *("flags", "settings", "permissions", "storage", "runtime", "text"),
)
_LATER = ("openfeature.api", "tomllib", "tree_sitter", "tree_sitter_bash", "tree_sitter_toml")
"""What functions import when they are called."""
_SDKS = ("anthropic", "openai")
"""What a process imports that asks a served model, for more than a second; loaded when the first one of them starts."""
_READ = {
    "flags.registry": "numbers",
    "instructions.markdown": "_parser",
    "memory.recall.ranking.evidence": "_chances",
    "memory.recall.ranking.manner": "_weights",
    "memory.recall.ranking.related": "_related",
    "memory.secrets.likeness": "_read_pairs",
    "memory.secrets.rules": "compile_makers",
    "models.catalogue": "_load_built_in",
    "permissions.shell_commands": "_language",
    "settings.reach": "list_reaches",
    "settings.schema": "list_settings",
}
"""What functions read from the program's own files at their first call, and keep."""
_PR_SET_CHILD_SUBREAPER = 36
processor_seconds = 0.0
"""What the processes of this test run have used; the operating system does not add it to ours."""


def _is_cold(env: Mapping[str, str]) -> bool:
    started = {key: value for key, value in os.environ.items() if key.startswith(_COLD)}
    return any(started.get(key) != value for key, value in env.items() if key.startswith(_COLD))


class Process:
    """`reverie` with these arguments on these streams; what tests use of `subprocess.Popen`."""

    def __init__(
        self,
        *args: str,
        cwd: Path,
        env: Mapping[str, str],
        streams: Sequence[int],
        terminal: bool = False,
        module: str = "reverie",
    ) -> None:
        self.args = [module, *args]
        self.returncode: int | None = None
        order = {"args": args, "cwd": str(cwd), "env": dict(env), "terminal": terminal, "module": module}
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._line.connect(server())
        _order(self._line, order, streams)
        self.pid = int.from_bytes(self._line.recv(8), "big")

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        global processor_seconds
        if self.returncode is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode, used = json.loads(self._line.recv(1_000))
            processor_seconds += used
            self._line.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ended this moment
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(*args: str, module: str = "reverie", cwd: Path | None = None, stdout: int = 1) -> Process:
    """As `subprocess.Popen([sys.executable, "-m", module, *args])`, without input. `-c` runs its first argument."""
    with Path(os.devnull).open("rb") as nothing:
        streams = (nothing.fileno(), stdout, 2)
        return Process(*args, cwd=cwd or Path.cwd(), env=os.environ, streams=streams, module=module)


def run(
    *args: str,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout: float = LIMIT_S,
    module: str = "reverie",
) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run([sys.executable, "-m", module, *args], …)` with its output captured."""
    if _is_cold(env):
        command = [sys.executable, "-m", module, *args]
        return subprocess.run(command, input=stdin, cwd=cwd, env=env, capture_output=True, timeout=timeout)
    given, out, err = os.pipe(), os.pipe(), os.pipe()
    process = Process(*args, cwd=cwd, env=env, streams=(given[0], out[1], err[1]), module=module)
    for end in (given[0], out[1], err[1]):
        os.close(end)
    read: dict[int, bytes] = {}
    threads = [threading.Thread(target=_drain, args=(end, read), daemon=True) for end in (out[0], err[0])]
    threads.append(threading.Thread(target=_feed, args=(given[1], stdin), daemon=True))
    for thread in threads:
        thread.start()
    until = time.monotonic() + timeout
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    for thread in threads[:2]:
        thread.join(max(0.0, until - time.monotonic()))
        if thread.is_alive():
            raise subprocess.TimeoutExpired(process.args, timeout)
    return subprocess.CompletedProcess(process.args, code, read[out[0]], read[err[0]])


def run_text(*args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """The same, with its output as text."""
    done = run(*args, **more)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def _drain(end: int, read: dict[int, bytes]) -> None:
    with os.fdopen(end, "rb") as file:
        read[end] = file.read()


def _feed(end: int, text: bytes) -> None:
    with suppress(OSError), os.fdopen(end, "wb") as file:  # it may not want to read
        file.write(text)


@cache
def server() -> str:
    """The address of this test run's server; it ends when the process that started it does."""
    if given := os.environ.get(_ADDRESS):
        return given
    folder = tempfile.mkdtemp(prefix="warm-")
    address = f"{folder}/socket"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(address)
    listening.listen(64)
    alive, kept = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.warm", str(listening.fileno()), str(alive)],
        cwd=Path(__file__).resolve().parents[1],
        pass_fds=(listening.fileno(), alive),
        stdin=subprocess.DEVNULL,
    )
    listening.close()
    os.close(alive)
    atexit.register(lambda: (os.close(kept), process.kill(), process.wait(), shutil.rmtree(folder, ignore_errors=True)))
    return address


def share() -> None:
    """One server for all processes that this one starts."""
    os.environ[_ADDRESS] = server()


def load() -> None:
    """Imports what commands import and reads what comes with the program. Reads no settings and starts no thread."""
    for room in _LOADED:
        package = importlib.import_module(f"reverie.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"reverie.{room}."):
            if "encoder" not in found.name:
                importlib.import_module(found.name)
    for name in _LATER:
        importlib.import_module(name)
    for room, function in _READ.items():
        getattr(importlib.import_module(f"reverie.{room}"), function)()
    from reverie import prompts, quick
    from reverie.memory.recall import runner
    from reverie.offline.language import lexicon, words
    from reverie.text import patterns

    runner._GRACE_S = LIMIT_S  # as in `own_home`
    for tongue in words.WORDS:
        lexicon.lexicon(tongue)
    source = Path(prompts.__file__).parent
    for path in source.rglob("prompts/*.md"):
        prompts._text(".".join(path.relative_to(source.parent).parts[:-2]), path.name)
    for one in gc.get_objects():
        if isinstance(one, patterns._LatePattern):
            assert one.flags is not None  # compiles it
        elif isinstance(one, type) and isinstance(vars(one).get("__init__"), quick._LateInit):
            assert one.__init__  # compiles it: for a session, one third of the time of a warm process
    assert threading.active_count() == 1, "a process with threads cannot be forked safely"
    gc.freeze()


def _load_sdks(order: dict[str, Any]) -> None:
    wanted = [name for name in _SDKS if f"{name.upper()}_BASE_URL" in order["env"] and f"{name}:" in str(order["args"])]
    wanted += ["reverie.connect.acp.agent"] if "acp" in order["args"][:1] else []
    for name in wanted:
        if name not in sys.modules:
            importlib.import_module(name)
            assert threading.active_count() == 1, f"a process with threads cannot be forked safely: {name} starts some"
            gc.freeze()


def _serve(listening: socket.socket, alive: int) -> Callable[[], object]:
    """Forks one process per connection and tells the exit code of each. Returns in a forked process: its work."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listening, alive, woken], [], [])
        if alive in ready:
            os._exit(0)
        if woken in ready:
            os.read(woken, 4_096)
            while waiting and (ended := os.wait4(-1, os.WNOHANG))[0]:
                pid, status, used = ended
                code = os.waitstatus_to_exitcode(status)
                with waiting.pop(pid) as line:
                    _tell(line, json.dumps([code, used.ru_utime + used.ru_stime]).encode())
        if listening in ready:
            line, _ = listening.accept()
            wanted, fds = _hear(line)
            _load_sdks(wanted)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for other in (*waiting.values(), line, listening):
                    other.close()
                for end in (alive, woken, wake):
                    os.close(end)
                return _become(wanted, fds)
            for end in fds:
                os.close(end)
            waiting[pid] = line
            _tell(line, pid.to_bytes(8, "big"))


def _order(line: socket.socket, order: Mapping[str, Any], streams: Sequence[int]) -> None:
    raw = json.dumps(order).encode("utf-8", "surrogateescape")
    socket.send_fds(line, [len(raw).to_bytes(8, "big")], list(streams))
    line.sendall(raw)


def _hear(line: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """An order and the streams that came with it. Where nobody can order any more, this process ends."""
    head, fds, _, _ = socket.recv_fds(line, 8, 3)
    left, order = int.from_bytes(head, "big"), b""
    if not head:
        os._exit(0)
    while len(order) < left:
        order += line.recv(left - len(order))
    return json.loads(order.decode("utf-8", "surrogateescape")), fds


def _tell(line: socket.socket, what: bytes) -> None:
    with suppress(OSError):  # whoever asked has gone
        line.send(what)


def _become(order: dict[str, Any], fds: list[int]) -> Callable[[], object]:
    """Makes this process what a new interpreter in that folder would be, and returns what it runs."""
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    for number, end in enumerate(fds):
        os.dup2(end, number)
        os.close(end)
    if order["terminal"] or order.get("session"):
        os.setsid()
    if order["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        errors = "backslashreplace" if name == "stderr" else "strict"
        stream = open(number, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        if name == "stderr":
            stream.reconfigure(line_buffering=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    random.seed()
    module, args = order["module"], order["args"]
    if args[:1] == ["team"] and args[1:2] == ["team.toml"] and (member := _start_members_warm()):
        return member
    if module == "-c":
        sys.argv = ["-c", *args[1:]]
        return lambda: exec(compile(args[0], "<string>", "exec"), {"__name__": "__main__"})
    sys.argv = [module, *args]
    name = "reverie.__main__" if module == "reverie" else module
    return lambda: runpy.run_module(name, run_name="__main__", alter_sys=True)


def _start_members_warm() -> Callable[[], object] | None:
    """A process beside this one forks every `reverie` that this one starts. Returns in such a fork: its work.

    It forks twice: the one in between ends at once, and the system gives its child to us, who can wait for it.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    line, beside = socket.socketpair()
    if os.fork():
        beside.close()
        subprocess._fork_exec = partial(_ask_for_member, line, subprocess._fork_exec)
        return None
    line.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Path(os.devnull).open("r+b") as nothing:
        for number in range(3):
            os.dup2(nothing.fileno(), number)
    while True:
        order, fds = _hear(beside)
        told, tell = os.pipe()
        between = os.fork()
        if not between:
            if pid := os.fork():
                os.write(tell, pid.to_bytes(8, "big"))
                os._exit(0)
            for end in (told, tell, beside.detach()):
                os.close(end)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return _become(order, fds)
        os.waitpid(between, 0)
        beside.send(os.read(told, 8))
        for end in (told, tell, *fds):
            os.close(end)


def _ask_for_member(line: socket.socket, cold: Callable[..., int], words: Sequence[bytes | str], *more: Any) -> int:
    """What `subprocess` calls to start a program; `more` as it gives it."""
    args = [os.fsdecode(word) for word in words]
    if args[:3] != [sys.executable, "-m", "reverie"]:
        return cold(words, *more)
    env = dict(os.fsdecode(one).split("=", 1) for one in more[4])
    order = {"args": args[3:], "cwd": os.fsdecode(more[3] or "."), "env": env, "terminal": False, "module": "reverie"}
    _order(line, {**order, "session": more[14]}, (more[5], more[8], more[10]))
    return int.from_bytes(line.recv(8), "big")


def to_the_end(work: Callable[[], object]) -> int:
    """Does the work and what an interpreter does when it ends, without taking the modules down one by one."""
    try:
        work()
        code: object = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = 120  # as an interpreter ends whose output is lost
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    load()
    os._exit(to_the_end(_serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))))
