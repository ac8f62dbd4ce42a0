"""Reads what a sandboxed command announced: which file it wants to change, which address it wants to reach.

The answers only say what was tried. Apart from a few calls that nothing else refuses, the kernel decides afterwards.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from reverie.permissions.sandbox import kernel
from reverie.permissions.sandbox.calls import (
    METADATA,
    SIGNALS,
    STARTS,
    WRITING_FLAGS,
    CallRights,
    names_by_number,
)
from reverie.permissions.sandbox.order import Attempt
from reverie.quick import dataclass

_RECEIVE, _SEND, _NOTICE, _ANSWER = 0xC0502100, 0xC0182101, struct.Struct("QIIiIQ6Q"), struct.Struct("QqiI")
_CONTINUE = 1
_MOST_ATTEMPTS, _MOST_TOTAL = 300, 20_000
"""Numbers of attempts, and of their characters: each may take six bytes in the report."""
_MOST_CHARACTERS = 4_096
_MORE = Attempt("more", "more than could be noted")
_MOST_ADDRESS = 128
_CREATE, _TRUNCATE, _WRITES = 0o100, 0o1000, 0o3
_HERE = -100
_PATHS: dict[str, tuple[tuple[int | None, int], ...]] = {
    # the arguments with the folder and the path; None: the path is relative to the working folder
    **dict.fromkeys(("open", "creat", "truncate", "mkdir", "rmdir", "unlink", "mknod", "chmod"), ((None, 0),)),
    **dict.fromkeys(("chown", "lchown", "utime", "utimes", "setxattr", "lsetxattr", "removexattr"), ((None, 0),)),
    **dict.fromkeys(("openat", "openat2", "mkdirat", "unlinkat", "mknodat", "fchmodat", "fchmodat2"), ((0, 1),)),
    **dict.fromkeys(("fchownat", "utimensat", "futimesat", "setxattrat", "removexattrat"), ((0, 1),)),
    "lremovexattr": ((None, 0),),
    "file_setattr": ((0, 1),),
    "rename": ((None, 0), (None, 1)),
    "renameat": ((0, 1), (2, 3)),
    "renameat2": ((0, 1), (2, 3)),
    "link": ((None, 1),),
    "linkat": ((2, 3),),
    "symlink": ((None, 1),),
    "symlinkat": ((1, 2),),
    **dict.fromkeys(("fchmod", "fchown", "fsetxattr", "fremovexattr"), ((0, -1),)),
}
_NEEDS_TARGET = frozenset({"rmdir", "unlink", "unlinkat", "truncate", "rename", "renameat", "renameat2", *METADATA})
_MAKES = frozenset({"mkdir", "mkdirat", "mknod", "mknodat", "link", "linkat", "symlink", "symlinkat"})
_FREE, _MEMORY = ("/proc/", "/dev/"), "/dev/shm/"
_COUNTED_AFTER = 32


@dataclass(frozen=True, slots=True)
class _Call:
    """One announced call."""

    id: int
    pid: int
    name: str
    arguments: tuple[int, ...]


class Watcher:
    """Answers the announced calls of one command and collects its attempts."""

    def __init__(
        self, listener: int, processes: int, rights: CallRights, free: tuple[str, ...], fixed: tuple[str, ...]
    ):
        self._listener, self._processes, self._rights = listener, processes, rights
        self._free, self._fixed = free, fixed
        self._names = names_by_number()
        self._attempts: dict[Attempt, None] = {}
        self._noted = 0
        self._session = self._most_processes = self._started = 0

    def limit(self, session: int, processes: int) -> None:
        """Allows signals to this session, and so many processes of it."""
        self._session, self._most_processes = session, processes

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(self._attempts)

    def answer(self) -> None:
        """Takes one announced call, notes what it tries, and lets the kernel go on."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notice)
        except OSError:  # the process has ended meanwhile
            return
        number_of_notice, pid, _, number, _, _, *arguments = _NOTICE.unpack(notice)
        call = _Call(number_of_notice, pid, self._names.get(number, ""), tuple(arguments))
        try:
            if call.name == "connect" and (work := self._connecting(call)) is not None:
                # It may wait for ever, and others must get answers meanwhile. A thread cannot start here, since the
                # next process belongs to another namespace; with that namespace, this one ends too.
                if os.fork() == 0:
                    try:
                        self._send(call, work())
                    finally:
                        os._exit(0)
                return
            ending = self._judge(call)
        except OSError as error:  # a bad address or descriptor, or the process has ended
            ending = error.errno or errno.EPERM
        except (ValueError, struct.error):
            ending = errno.EINVAL
        self._send(call, ending)

    def _send(self, call: _Call, ending: int | None) -> None:
        answer = _ANSWER.pack(call.id, 0, -(ending or 0), _CONTINUE if ending is None else 0)
        with suppress(OSError):
            fcntl.ioctl(self._listener, _SEND, answer)

    def _judge(self, call: _Call) -> int | None:
        """Notes an attempt; returns the error with which the call ends (0: it is done), or None: the kernel decides."""
        if call.name in SIGNALS:
            return None if self._is_own(call.name, call.arguments[0]) else errno.EPERM
        if call.name in STARTS:
            return errno.EAGAIN if self._has_too_many() else None
        if call.name == "socket":
            self._note("socket", "the network")
            return errno.EPERM
        if call.name == "connect":
            return self._refuse_connection(call)
        if call.name == "sendto":
            with suppress(OSError):
                self._note_host(self._read(call.pid, call.arguments[4], min(call.arguments[5], _MOST_ADDRESS)))
            return None
        self._note_paths(call)
        if self._rights.namespaces:
            return None
        if call.name in METADATA:  # Landlock does not see them
            return errno.EPERM
        if self._rights.landlock < 3:
            if call.name in ("truncate", "openat2"):
                return errno.EPERM if call.name == "truncate" else errno.ENOSYS
            flags = self._flags(call)
            if flags & _TRUNCATE and not flags & _WRITES:
                return errno.EPERM
        return None

    def _flags(self, call: _Call) -> int:
        match call.name:
            case "open":
                return call.arguments[1]
            case "openat":
                return call.arguments[2]
            case "creat":
                return _CREATE | _TRUNCATE | 1
            case "openat2":
                with suppress(OSError, struct.error):
                    return int(struct.unpack("Q", self._read(call.pid, call.arguments[2], 8))[0])
                return _WRITES
            case _:
                return 0

    def _note_paths(self, call: _Call) -> None:
        flags = self._flags(call)
        if call.name in ("open", "openat", "openat2") and not flags & WRITING_FLAGS:
            return
        for folder_at, path_at in _PATHS.get(call.name, ()):
            path = self._path(call, folder_at, path_at)
            if path is None or self._is_free(path):
                continue
            exists = os.path.lexists(path)
            if call.name in _MAKES and exists:
                continue  # it ends with "exists" anywhere
            if call.name in _NEEDS_TARGET and path_at != 3 and not exists:
                continue
            if call.name.startswith("open") and not flags & _CREATE and not exists:
                continue
            self._note("write", path)

    def _path(self, call: _Call, folder_at: int | None, path_at: int) -> str | None:
        """The real path that an argument names; None if it cannot be known."""
        try:
            if path_at < 0:
                return self._link(call, call.arguments[0])
            written = self._text(call.pid, call.arguments[path_at])
            if not written.startswith("/"):
                base = self._link(call, _HERE if folder_at is None else call.arguments[folder_at])
                written = os.path.join(base, written) if written else base
            folder, name = os.path.split(os.path.normpath(written))
            return os.path.join(os.path.realpath(folder), name)
        except (OSError, ValueError):
            return None

    def _link(self, call: _Call, descriptor: int) -> str:
        number = struct.unpack("i", struct.pack("I", descriptor & 0xFFFFFFFF))[0]
        name = "cwd" if number == _HERE else f"fd/{number}"
        return os.readlink(f"{call.pid}/{name}", dir_fd=self._processes)

    def _read(self, pid: int, address: int, size: int) -> bytes:
        if address >> 63:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        memory = os.open(f"{pid}/mem", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._processes)
        try:
            return os.pread(memory, size, address)
        finally:
            os.close(memory)

    def _text(self, pid: int, address: int) -> str:
        """The text at an address, which may end just before a page that cannot be read."""
        text = b""
        while b"\0" not in text and len(text) < 4_096:
            piece = self._read(pid, address + len(text), 256 - (address + len(text)) % 256)
            if not piece:
                break
            text += piece
        return os.fsdecode(text.partition(b"\0")[0])

    def _is_free(self, path: str) -> bool:
        def is_below(folders: tuple[str, ...]) -> bool:
            return any(path == folder or path.startswith(f"{folder}/") for folder in folders)

        is_device = path.startswith(_FREE) and not path.startswith(_MEMORY)
        return is_device or (is_below(self._free) and not is_below(self._fixed))

    def _is_own(self, name: str, number: int) -> bool:
        """Whether a signal goes to a process of the command."""
        pid = struct.unpack("i", struct.pack("I", number & 0xFFFFFFFF))[0]
        if name == "kill" and pid == 0:
            return True  # its own group
        if pid in (0, -1):
            return False
        with suppress(OSError):
            return os.getsid(abs(pid)) == self._session
        return False

    def _has_too_many(self) -> bool:
        """Whether the command has as many processes as it may; they are counted now and then."""
        self._started += 1
        if self._started < _COUNTED_AFTER:
            return False
        too_many = sum(1 for _ in processes_of(self._session)) >= self._most_processes
        self._started = _COUNTED_AFTER - 1 if too_many else 0
        return too_many

    def _address(self, call: _Call) -> bytes:
        return self._read(call.pid, call.arguments[1], min(call.arguments[2] & 0xFFFFFFFF, _MOST_ADDRESS))

    def _connecting(self, call: _Call) -> Callable[[], int] | None:
        """What connects a socket to a service of the command's own; None if this is something else.

        It connects to the address that was read here, which the command cannot change any more.
        """
        if not self._rights.namespaces:
            return None
        copy = kernel.copy_descriptor(call.pid, call.arguments[0] & 0xFFFFFFFF)
        address = b""
        with suppress(OSError):
            address = self._address(call)
        if not kernel.has_unix_family(copy) or address[:3] != struct.pack("=Hx", socket.AF_UNIX):
            os.close(copy)
            return None

        def connect() -> int:
            return kernel.connect(copy, address)

        return connect

    def _refuse_connection(self, call: _Call) -> int | None:
        """Notes who is called. Other families than that of services reach only a private network."""
        address = self._address(call)
        copy = kernel.copy_descriptor(call.pid, call.arguments[0] & 0xFFFFFFFF)
        try:
            is_unix = kernel.has_unix_family(copy)
        finally:
            os.close(copy)
        if not is_unix:
            self._note_host(address)
            return None if self._rights.namespaces else errno.EPERM
        path = os.fsdecode(address[2:].partition(b"\0")[0])
        if path and not os.path.lexists(os.path.join(self._link(call, _HERE), path)):
            return errno.ENOENT
        self._note("service", path or "an abstract socket")
        return errno.EACCES

    def _note_host(self, address: bytes) -> None:
        with suppress(OSError, ValueError, struct.error):
            family, port = struct.unpack_from("=H", address)[0], struct.unpack_from("!H", address, 2)[0]
            if family not in (socket.AF_INET, socket.AF_INET6):
                return
            raw = address[4:8] if family == socket.AF_INET else address[8:24]
            host = socket.inet_ntop(family, raw)
            if host in ("0.0.0.0", "::") or not port:  # how programs ask for their own address
                return
            if not (is_loopback(host) and port != 53 and self._listens(port)):
                self._note("network", f"[{host}]:{port}" if family == socket.AF_INET6 else f"{host}:{port}")

    def _listens(self, port: int) -> bool:
        """Whether something in the private network has this port."""
        wanted = f":{port:04X}"
        for name in ("tcp", "tcp6", "udp", "udp6"):
            with suppress(OSError, IndexError):
                table = os.open(f"self/net/{name}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._processes)
                with os.fdopen(table, encoding="ascii") as lines:
                    if any(line.split()[1].endswith(wanted) for line in lines):
                        return True
        return False

    def _note(self, kind: str, target: str) -> None:
        attempt = Attempt(kind, target[:_MOST_CHARACTERS])
        if attempt in self._attempts:
            return
        self._noted += len(attempt.target)
        is_full = len(self._attempts) >= _MOST_ATTEMPTS or self._noted > _MOST_TOTAL
        self._attempts[_MORE if is_full else attempt] = None


def processes_of(session: int) -> Iterator[int]:
    """The living processes of this session, and the orphans that came to us."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] not in (b"Z", b"X") and (int(fields[3]) == session or int(fields[1]) == os.getpid()):
                    yield int(name)


def is_loopback(host: str) -> bool:
    return host.startswith(("127.", "::ffff:127.")) or host == "::1"
