"""A small machine around a project, with everything that a command must not change, read or reach.

Files outside with a mark that no output may contain, servers of every kind that note who connects, a process that is
looked at, a terminal, shared memory. `wrong` says what has happened that must not.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import pty
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from reverie.paths.programs import make_bare_environment
from reverie.permissions.sandbox.order import Limits, SandboxReport, SandboxView
from reverie.permissions.sandbox.probe import SandboxLayers
from reverie.permissions.sandbox.profiles import Profile, Sandbox

PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
"""A Python that every user may start."""
LIMITS = Limits(cpu_seconds=20, memory=1_000_000_000, file_size=50_000_000, private_size=50_000_000, processes=200)
SECONDS = 20
"""For one attack; far above what any takes."""
State = tuple[object, ...]
_libc = ctypes.CDLL(None, use_errno=True)


def state_of(path: Path) -> State:
    """What can change of a file or folder."""
    status = path.lstat()
    content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
    names = tuple(sorted(os.listxattr(path, follow_symlinks=False)))
    return (status.st_mode, status.st_uid, status.st_nlink, status.st_mtime_ns, status.st_ino, content, names)


def states_below(*folders: Path) -> dict[str, State]:
    found: dict[str, State] = {}
    for folder in folders:
        for path in (folder, *sorted(folder.rglob("*"))):
            found[str(path)] = state_of(path)
    return found


@dataclass
class World:
    """`mark` is in every secret. Close it at the end."""

    base: Path
    mark: str = field(default_factory=lambda: f"MARK{secrets.token_hex(8)}")
    contacts: list[str] = field(default_factory=list)
    _sockets: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home, self.project, self.outside = (self.base / name for name in ("home", "home/project", "outside"))
        self.run = self.base / "run"
        for folder in (self.home / ".ssh", self.home / ".config/gh", self.outside / "deep", self.run):
            folder.mkdir(parents=True)
        secret = f"key={self.mark}\n"
        (self.home / ".ssh/id_ed25519").write_text(secret)
        (self.home / ".netrc").write_text(secret)
        (self.home / ".config/gh/hosts.yml").write_text(secret)
        (self.home / ".reverie").mkdir()
        (self.home / ".reverie/log").write_text(secret)
        (self.home / "notes.txt").write_text("notes\n")
        for name in ("file", "deep/file", "run.sh"):
            (self.outside / name).write_text("canary\n")
        (self.outside / "link").symlink_to("file")
        os.mkfifo(self.run / "fifo")
        self._fifo = os.open(self.run / "fifo", os.O_RDWR | os.O_NONBLOCK)
        self.make_project()
        self._victim = subprocess.Popen(
            [PYTHON, "-c", "import time\nprint(flush=True)\ntime.sleep(1000)"],
            env={"KEY": self.mark},
            stdout=subprocess.PIPE,
            cwd=self.outside,
        )
        assert self._victim.stdout is not None
        self._victim.stdout.readline()
        self.victim = self._victim.pid
        self._limits = resource.prlimit(self.victim, resource.RLIMIT_NOFILE)
        self._nice = os.getpriority(os.PRIO_PROCESS, self.victim)
        self._serve()
        self._terminal, terminal = pty.openpty()
        self.terminal = os.ttyname(terminal)
        self._terminal_kept = terminal
        os.set_blocking(self._terminal, False)
        os.write(self._terminal, f"{self.mark}\n".encode())
        time.sleep(0.01)
        self._drain_terminal()
        self.shared = _libc.shmget(0, 4096, 0o1600)
        _libc.shmat.restype = ctypes.c_void_p
        at = _libc.shmat(self.shared, None, 0)
        ctypes.memmove(at, self.mark.encode(), len(self.mark))
        self._shared_at = at
        self.memory_file = Path("/dev/shm") / f"reverie-{self.mark.lower()}"
        self.memory_file.write_text("canary\n")

    def make_project(self) -> None:
        """Makes the project new, with a history that holds no secret."""
        shutil.rmtree(self.project, ignore_errors=True)
        project = self.project
        for folder in ("src", "config", ".github/workflows", ".vscode", "secret-links"):
            (project / folder).mkdir(parents=True)
        for name in ("README.md", "src/main.py", ".github/workflows/ci.yml", ".vscode/tasks.json", "AGENTS.md"):
            (project / name).write_text("canary\n")
        (project / "Makefile").write_text("all:\n\techo made\n")
        (project / ".gitignore").write_text(".env\ncache/\n*.bak\nsecret-links/\n")
        environment = {**make_bare_environment(), "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
        for words in (("init", "-q", "."), ("add", "-A"), (*identity, "commit", "-qm", "first")):
            subprocess.run(["/usr/bin/git", *words], cwd=project, env=environment, check=True)
        secret = f"key={self.mark}\n"
        for name in (".env", "config/.env", "config/server.pem", "src/.ENV.local"):
            (project / name).write_text(secret)
        os.link(project / ".env", project / "secret-links/plain.txt")
        os.link(self.home / ".ssh/id_ed25519", project / "secret-links/of-home.txt")
        (project / "to-home").symlink_to(self.home / ".ssh")
        (project / "to-outside").symlink_to(self.outside)
        (project / "to-file").symlink_to(self.outside / "file")

    def _serve(self) -> None:
        families = (
            ("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            ("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            ("stream", socket.AF_UNIX, socket.SOCK_STREAM, str(self.run / "stream")),
            ("datagram", socket.AF_UNIX, socket.SOCK_DGRAM, str(self.run / "datagram")),
            ("packets", socket.AF_UNIX, socket.SOCK_SEQPACKET, str(self.run / "packets")),
            ("abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.mark}"),
            ("abstract-datagram", socket.AF_UNIX, socket.SOCK_DGRAM, f"\0{self.mark}-d"),
        )
        self.ports = dict[str, int]()
        for name, family, kind, address in families:
            server = socket.socket(family, kind)
            server.bind(address)
            self._sockets.append(server)
            if family == socket.AF_INET:
                self.ports[name] = server.getsockname()[1]
            if kind != socket.SOCK_DGRAM:
                server.listen()
            threading.Thread(target=self._listen, args=(server, name, kind), daemon=True).start()

    def _listen(self, server: socket.socket, name: str, kind: int) -> None:
        with suppress(OSError):
            while True:
                if kind == socket.SOCK_DGRAM:
                    server.recv(100)
                else:
                    server.accept()[0].close()
                self.contacts.append(name)

    def _drain_terminal(self) -> bytes:
        with suppress(OSError):
            return os.read(self._terminal, 65_536)
        return b""

    def preamble(self) -> str:
        """Names for the attacks: paths, numbers, and the calls without a function."""
        return f"""
import ctypes, errno, fcntl, mmap, os, resource, select, signal, socket, struct, subprocess, sys, threading, time
from contextlib import suppress
P, O, H, R = {str(self.project)!r}, {str(self.outside)!r}, {str(self.home)!r}, {str(self.run)!r}
TCP, UDP, VICTIM, SHARED = {self.ports["tcp"]}, {self.ports["udp"]}, {self.victim}, {self.shared}
MARK_NAME = chr(0) + {self.mark[:4]!r} + {self.mark[4:]!r}
TERMINAL, TESTER, MEMORY_FILE = {self.terminal!r}, {os.getpid()}, {str(self.memory_file)!r}
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(w) if isinstance(w, int) else w for w in words])
    return result if result >= 0 else -ctypes.get_errno()
def show(path):
    with suppress(OSError):
        print(open(path, 'rb').read(100_000).replace(bytes(1), b' ').decode('latin-1'))
"""

    def states(self) -> dict[str, State]:
        """Everything outside the project."""
        found = states_below(self.outside, self.run)
        for path in (*self.home.iterdir(), *(self.home / ".ssh").iterdir(), self.memory_file):
            if path != self.project:
                found[str(path)] = state_of(path)
        return found

    def protected(self, profile: Profile) -> dict[str, State]:
        """What of the project must not change in a profile."""
        every = states_below(self.project)
        if profile is Profile.READ_ONLY:
            return every
        repository = f"{self.project}/.git"
        obeyed = (f"{self.project}/{name}" for name in (".vscode", "AGENTS.md", "Makefile", ".github/workflows"))
        fixed = [*obeyed, f"{self.project}/.env"]  # a folder with secrets may move; they stay hidden
        if profile is Profile.WORKSPACE:
            fixed.append(repository)
        else:
            fixed += [f"{repository}/{name}" for name in ("hooks", "config", "info")]
        return {
            name: (*state[:2], *state[4:]) if name in fixed else state[:2] + state[5:]
            for name, state in every.items()
            if any(name == path or name.startswith(f"{path}/") for path in fixed)
        }

    def wrong(self, output: str) -> list[str]:
        """What a command reached or changed of the processes, servers and secrets."""
        found = [f"reached {name}" for name in self.contacts]
        self.contacts.clear()
        if self.mark in output:
            found.append("a secret was shown")
        if "REACHED" in output:
            found.append(output[output.index("REACHED") :].splitlines()[0])
        if self._victim.poll() is not None:
            found.append("the process of others was killed")
        elif self._victim_state() != "S":
            found.append(f"the process of others is in state {self._victim_state()}")
            os.kill(self.victim, signal.SIGCONT)
        elif (
            resource.prlimit(self.victim, resource.RLIMIT_NOFILE) != self._limits
            or os.getpriority(os.PRIO_PROCESS, self.victim) != self._nice
        ):
            found.append("the limits of a process of others changed")
        if text := self._drain_terminal():
            found.append(f"the terminal got {text!r}")
        with suppress(OSError):
            found.append(f"the pipe got {os.read(self._fifo, 100)!r}")
        if ctypes.string_at(self._shared_at, len(self.mark)) != self.mark.encode():
            found.append("shared memory changed")
        return found

    def _victim_state(self) -> str:
        return Path(f"/proc/{self.victim}/stat").read_text().rpartition(")")[2].split()[0]

    def close(self) -> None:
        self._victim.kill()
        self._victim.wait()
        assert self._victim.stdout is not None
        self._victim.stdout.close()
        for server in self._sockets:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()
        for descriptor in (self._fifo, self._terminal, self._terminal_kept):
            os.close(descriptor)
        _libc.shmctl(self.shared, 0, None)
        self.memory_file.unlink(missing_ok=True)
        shutil.rmtree(self.base, ignore_errors=True)


def make_base() -> Path:
    """A folder that every user may reach, on a disk as the user's files are."""
    return Path(os.path.realpath(tempfile.mkdtemp(prefix="reverie-world-", dir="/tmp")))


def run_sandboxed(
    sandbox: Sandbox, command: str, profile: Profile, *, view: SandboxView | None = None, cwd: Path | None = None
) -> tuple[SandboxReport, str]:
    """Runs a command; what it wrote."""

    async def run() -> tuple[SandboxReport, str]:
        with tempfile.TemporaryFile() as output:
            seen = view or sandbox.make_view(profile)
            started = await sandbox.start(command, cwd or sandbox.project, seen, output.fileno())
            try:
                report = await asyncio.wait_for(started.wait(), SECONDS)
            except TimeoutError:
                report = await asyncio.wait_for(started.end(), SECONDS)
            output.seek(0)
            return report, output.read(2_000_000).decode("utf-8", "replace")

    return asyncio.run(run())


def layers_of(name: str) -> SandboxLayers:
    """`namespaces 7` or `landlock 3`."""
    kind, _, abi = name.partition(" ")
    return SandboxLayers(kind == "namespaces", int(abi))
