"""Runs one command in the sandbox: a process of the helper's that starts it, watches it and ends all of it.

With namespaces: the keeper enters them, hides and fixes files by mounts, and starts the first process of the namespace,
which starts the command; when that first process ends, the kernel ends every other. Without them: Landlock and seccomp,
and the processes of the command's session are found in /proc.
"""

from __future__ import annotations

import os
import resource
import select
import shutil
import signal
import socket
import struct
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from reverie.permissions.sandbox import kernel
from reverie.permissions.sandbox.calls import CallRights, build_program
from reverie.permissions.sandbox.order import SandboxOrder, SandboxReport
from reverie.permissions.sandbox.watching import Watcher, processes_of
from reverie.runtime.agent_above import mark_process

_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
_TERMINALS, _NEW_TERMINAL = "/dev/pts", "/dev/ptmx"
_MEMORY_FOLDER = "/dev/shm"
_OF_ROOT = 0b1011
"""Without namespaces, root keeps CHOWN, DAC_OVERRIDE and FOWNER: its files may belong to others."""
_KILL_ROUNDS = 50


class Keeper:
    """Waits for one command in its namespaces, runs it, and reports how it ended."""

    def __init__(self, namespaces: bool, base: str) -> None:
        self._namespaces, self._base = namespaces, base
        self._error = ""

    def serve(self, requests: socket.socket, taking: int) -> None:
        """Runs the next order of `requests`; closes `taking` when it has one, so that another keeper can wait.

        The order comes with three descriptors: the order itself, the command's output, and where the report goes.
        If the other side closes the last one, the command is killed.
        """
        processes = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        channel, first = self._prepare((requests, taking))
        _, descriptors, _, _ = socket.recv_fds(requests, 16, 3)
        requests.close()
        os.close(taking)
        if len(descriptors) != 3:
            return
        written, output, control_descriptor = descriptors
        self._control = socket.socket(fileno=control_descriptor)
        report = SandboxReport(None, error=self._error)
        try:
            if not self._error:
                report = self._run(channel, first, processes, written, output)
        except OSError as error:
            report = SandboxReport(None, error=str(error))
        finally:
            with suppress(OSError):
                self._control.send(report.encode())

    def _prepare(self, closing: tuple[socket.socket, int]) -> tuple[socket.socket, int]:
        """Enters the namespaces and starts the first process in them, which waits for its order."""
        kernel.adopt_orphans()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if self._namespaces:
                _enter_namespaces()
                kernel.make_mounts_private()
        except OSError as error:
            self._error = str(error)
        first = os.fork()
        if first == 0:
            ours.close()
            closing[0].close()
            os.close(closing[1])
            self._be_first(theirs)
        theirs.close()
        ours.recv(1)  # it has mounted its /proc
        return ours, first

    def _run(self, channel: socket.socket, first: int, processes: int, written: int, output: int) -> SandboxReport:
        self._order = _read_order(written)
        # Only in our namespace, `base` is a folder in memory; so nothing of it is left.
        self._name_places(self._base if self._namespaces else tempfile.mkdtemp(dir=self._base))
        try:
            if self._namespaces:
                self._arrange_mounts()
            else:
                self._make_places()
            socket.send_fds(channel, [os.fsencode(self._folder)], [written, output])
            os.close(output)
            os.close(written)
            return self._watch(first, channel, processes)
        finally:
            self._end(first)
            if not self._namespaces:
                shutil.rmtree(self._folder, ignore_errors=True)

    def _name_places(self, folder: str) -> None:
        self._folder = folder
        self._private, self._none, self._no_folder = (f"{folder}/{name}" for name in ("tmp", "none", "none.d"))

    def _make_places(self) -> None:
        """Makes the private folder, and an empty file and folder that stand for those that are hidden."""
        os.mkdir(self._private, 0o700)
        os.close(os.open(self._none, os.O_CREAT | os.O_WRONLY, 0))
        os.mkdir(self._no_folder, 0)

    @property
    def _rights(self) -> CallRights:
        return CallRights(self._namespaces, bool(self._order.view.writable), self._order.view.landlock)

    def _arrange_mounts(self) -> None:
        view = self._order.view
        devices = [path for path in _DEVICES if os.path.exists(path)]
        for path in (*devices, *view.writable, *(path for path in view.fixed if os.path.lexists(path))):
            if not os.path.islink(path):
                kernel.bind(path, path)
        for source, target in view.replaced:
            kernel.bind(source, target)
        kernel.fix_everything()
        for path in devices:
            kernel.allow_devices(path)
        for path in view.writable:
            kernel.set_read_only(path, False)
        kernel.mount_memory(self._folder, self._order.limits.private_size)
        self._make_places()
        for path in (self._none, self._no_folder):  # what is bound from them can then not be changed either
            kernel.bind(path, path)
            kernel.set_read_only(path, True)
        if os.path.isdir(_TERMINALS):
            kernel.mount_terminals()
            if os.path.exists(_NEW_TERMINAL) and not os.path.islink(_NEW_TERMINAL):
                kernel.bind(f"{_TERMINALS}/ptmx", _NEW_TERMINAL)
        if self._has_memory_folder():
            kernel.mount_memory(_MEMORY_FOLDER, self._order.limits.private_size)
        shown = {path: kernel.copy_mounts(path) for path in view.shown if os.path.isdir(path)}
        for path in sorted(view.hidden):  # what is inside of another one comes after it
            if os.path.lexists(path) and not os.path.islink(path):
                inside = {name: mounts for name, mounts in shown.items() if name.startswith(f"{path}/")}
                if inside:
                    self._show_only(path, inside)
                else:
                    kernel.bind(self._no_folder if os.path.isdir(path) else self._none, path)
        for descriptor in shown.values():
            os.close(descriptor)

    def _show_only(self, path: str, inside: dict[str, int]) -> None:
        """Puts an empty folder in the place of a hidden one, with nothing in it but the way to these folders."""
        kernel.mount_memory(path, self._order.limits.private_size)
        for name in inside:
            os.makedirs(name, exist_ok=True)
        kernel.set_read_only(path, True)
        for name, descriptor in inside.items():
            kernel.attach_mounts(descriptor, name)

    def _has_memory_folder(self) -> bool:
        """Whether the command gets a /dev/shm of its own: not if something that it needs is there."""
        needed = (self._order.cwd, self._folder, *self._order.view.writable)
        inside = any(f"{path}/".startswith(f"{_MEMORY_FOLDER}/") for path in needed)
        return self._namespaces and not inside and os.path.isdir(_MEMORY_FOLDER)

    def _free_folders(self) -> tuple[str, ...]:
        """Where the command may write and nobody else reads."""
        return (self._private, *((_MEMORY_FOLDER,) if self._has_memory_folder() else ()))

    def _make_rules(self) -> kernel.Ruleset:
        view = self._order.view
        rules = kernel.Ruleset(view.landlock, network=self._namespaces)
        hidden, fixed = ((), ()) if self._namespaces else (view.hidden, view.fixed)
        rules.allow_except("/", kernel.READS, frozenset((*hidden, "/dev")))
        rules.allow("/dev", kernel.READ_DIR)
        for path in self._free_folders():
            rules.allow(path, kernel.READS | kernel.CHANGES)
        for path in view.writable:
            rules.allow_except(path, kernel.READS | kernel.CHANGES, frozenset((*hidden, *fixed)))
        for path in view.shown:
            rules.allow_except(path, kernel.READS, frozenset(view.hidden))
        for path in _DEVICES:
            rules.allow(path, kernel.READ_FILE | kernel.WRITE_FILE)
        if self._namespaces:  # all terminals that are seen there are its own
            rules.allow(_TERMINALS, kernel.READ_FILE | kernel.WRITE_FILE | kernel.READ_DIR | kernel.IOCTL_DEV)
            rules.allow(_NEW_TERMINAL, kernel.READ_FILE | kernel.WRITE_FILE | kernel.IOCTL_DEV)
        if not self._has_memory_folder():  # the command works there, and what it needs may be beside it
            rules.allow_except(_MEMORY_FOLDER, kernel.READS, frozenset(hidden))
        return rules

    def _be_first(self, channel: socket.socket) -> NoReturn:
        """The first process of the namespace: starts the command when it is told to, and ends with it."""
        try:
            kernel.end_with_parent()
            if self._namespaces:
                kernel.mount_processes()
            channel.send(b"r")
            folder, descriptors, _, _ = socket.recv_fds(channel, 4_096, 2)
            if len(descriptors) != 2:
                os._exit(0)
            self._order = _read_order(descriptors[0])
            self._name_places(os.fsdecode(folder))
            command = os.fork() if self._namespaces else 0
            if command == 0:
                self._become_command(channel, descriptors[1])
            os.close(descriptors[1])
            while True:
                pid, status = os.wait()
                if pid == command:
                    channel.send(struct.pack("i", status))
                    os._exit(0)
        finally:
            os._exit(1)

    def _become_command(self, channel: socket.socket, output: int) -> NoReturn:
        order = self._order
        try:
            os.setsid()
            rules = self._make_rules()
            os.chdir(order.cwd)
            nothing = os.open("/dev/null", os.O_RDONLY)
            for source, target in ((nothing, 0), (output, 1), (output, 2)):
                os.dup2(source, target)
            self._set_limits()
            for number in range(1, signal.NSIG):
                with suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_DFL)
            environment = {**order.environment, "TMPDIR": self._private}
            keep = _OF_ROOT if order.view.writable and not self._namespaces and os.geteuid() == 0 else 0
            kernel.keep_capabilities(keep)
            kernel.forbid_new_rights()
            kernel.close_on_exec()
            rules.restrict()
            listener = kernel.filter_calls(build_program(self._rights))
            socket.send_fds(channel, [b"l"], [listener])
            os.execve(order.words[0], order.words, environment)
        except (OSError, ValueError, ArithmeticError) as error:
            with suppress(OSError):
                channel.send(b"e" + str(error).encode("utf-8", "replace")[:2_000])
        finally:
            os._exit(127)

    def _set_limits(self) -> None:
        limits = self._order.limits
        for kind, most in (
            (resource.RLIMIT_CPU, limits.cpu_seconds),
            (resource.RLIMIT_DATA, limits.memory),
            (resource.RLIMIT_FSIZE, limits.file_size),
            (resource.RLIMIT_NOFILE, limits.descriptors),
            (resource.RLIMIT_CORE, 0),
            *(((resource.RLIMIT_NPROC, limits.processes),) if self._namespaces else ()),
        ):
            _, hard = resource.getrlimit(kind)
            value = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (value, value))
        mark_process()

    def _watch(self, first: int, channel: socket.socket, processes: int) -> SandboxReport:
        """Waits for the end of the command, for its announcements, and for the other side to give up."""
        message, descriptors, _, _ = socket.recv_fds(channel, 2_100, 1)
        if message[:1] != b"l" or not descriptors:
            os.waitpid(first, 0)
            error = message[1:].decode("utf-8", "replace") if message[:1] == b"e" else "it ended before it began"
            return SandboxReport(None, error=error)
        listener, view = descriptors[0], self._order.view
        free = (*self._free_folders(), *view.writable)
        watcher = Watcher(listener, processes, self._rights, free, (*view.fixed, *view.hidden))
        if not self._namespaces:
            watcher.limit(first, self._order.limits.processes)
        try:
            return self._wait(first, channel, watcher, listener)
        finally:
            os.close(listener)  # from now on, what is announced fails: without namespaces, nothing new can start

    def _wait(self, first: int, channel: socket.socket, watcher: Watcher, listener: int) -> SandboxReport:
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        poll.register(channel, select.POLLIN)
        ended = os.pidfd_open(first)
        poll.register(ended, select.POLLIN)
        status: int | None = None
        while status is None:
            events = dict(poll.poll())
            if events.get(listener, 0) & select.POLLIN:
                watcher.answer()
                continue
            if events.get(listener, 0):  # nobody is left who could announce anything
                poll.unregister(listener)
            if self._control.fileno() in events:
                return SandboxReport(-signal.SIGKILL, watcher.attempts)
            if channel.fileno() in events:
                data = channel.recv(2_100)
                if data[:1] == b"e":
                    return SandboxReport(None, error=data[1:].decode("utf-8", "replace"))
                if len(data) == 4:
                    status = struct.unpack("i", data)[0]
                else:
                    poll.unregister(channel)
            elif ended in events:
                status = os.waitpid(first, 0)[1]
        return SandboxReport(os.waitstatus_to_exitcode(status), watcher.attempts)

    def _end(self, first: int) -> None:
        """Kills what is left of the command."""
        with suppress(OSError):
            os.kill(first, signal.SIGKILL)
        for _ in range(_KILL_ROUNDS if not self._namespaces else 0):
            living = list(processes_of(first))
            if not living:
                break
            for pid in living:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def _read_order(descriptor: int) -> SandboxOrder:
    return SandboxOrder.decode(os.pread(descriptor, os.fstat(descriptor).st_size, 0))


def _enter_namespaces() -> None:
    user, group = os.getuid(), os.getgid()
    kernel.unshare(
        kernel.NEW_USER | kernel.NEW_MOUNTS | kernel.NEW_IPC | kernel.NEW_PIDS | kernel.NEW_NET,
    )
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path(f"/proc/self/{name}").write_text(text)
    _raise_loopback()


def _raise_loopback() -> None:
    """Brings up the loopback of the private network, for tests that talk to themselves."""
    import fcntl

    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
