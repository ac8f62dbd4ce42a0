"""The system calls that Python has no function for: Landlock, capabilities, namespaces and mounts.

Every function raises OSError with the name of the call. Nothing here knows profiles or paths of ours.
"""

from __future__ import annotations

import ctypes
import os
import platform
import stat
import struct
from contextlib import suppress

IS_X86 = platform.machine() == "x86_64"
IS_ARM = platform.machine() in ("aarch64", "arm64")

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << bit for bit in range(6))
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = (1 << bit for bit in range(13, 16))

READS = EXECUTE | READ_FILE | READ_DIR
CHANGES = (
    WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE
)
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_HANDLED_BITS = {1: 13, 2: 14, 3: 15, 4: 15}
_TCP, _SCOPES = 3, 3  # bind and connect; abstract sockets and signals

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NET = 0x20000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_ATTR_READ_ONLY, _ATTR_NO_DEVICES, _AT_RECURSIVE = 1, 4, 0x8000

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


def landlock_abi() -> int:
    """Returns the version of Landlock in this kernel; 0 if there is none."""
    return max(0, _libc.syscall(444, None, 0, 1)) if IS_X86 or IS_ARM else 0


class Ruleset:
    """Which files a process may use: what no rule allows is denied. It can be applied to many processes."""

    def __init__(self, abi: int, *, network: bool) -> None:
        self._handled = (1 << _HANDLED_BITS.get(abi, 16)) - 1
        tcp = 0 if network or abi < 4 else _TCP
        attributes = struct.pack("QQQ", self._handled, tcp, _SCOPES if abi >= 6 else 0)
        size = 8 if abi < 4 else 16 if abi < 6 else 24
        self.descriptor = _checked(_libc.syscall(444, attributes, size, 0), "landlock_create_ruleset")

    def allow(self, path: str, rights: int) -> None:
        """Allows these rights on a file, or on a folder and everything below it. A path that is missing is skipped."""
        try:
            descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return
        try:
            mode = os.fstat(descriptor).st_mode
            rights &= self._handled if stat.S_ISDIR(mode) else self._handled & _OF_FILES
            if rights and not stat.S_ISLNK(mode):
                _libc.syscall(445, self.descriptor, 1, struct.pack("=Qi", rights, descriptor), 0)
        finally:
            os.close(descriptor)

    def allow_except(self, path: str, rights: int, hidden: frozenset[str], *, below: bool = False) -> None:
        """Allows a tree without the hidden parts: the folders above those may be listed, and each sibling is a rule.

        A rule for a file holds for all its names, so a sibling with several names is not allowed: one may be hidden.
        """
        if path in hidden:
            return
        prefix = path.rstrip("/") + "/"
        if not any(name.startswith(prefix) for name in hidden):
            if below and not os.path.isdir(path) and os.lstat(path).st_nlink > 1:
                return
            self.allow(path, rights)
            return
        self.allow(path, rights & READ_DIR)
        try:
            entries = [entry.path for entry in os.scandir(path)]
        except OSError:
            return
        for entry in entries:
            with suppress(OSError):
                self.allow_except(entry, rights, hidden, below=True)

    def restrict(self) -> None:
        """Restricts this process, and all that it starts, for ever."""
        _checked(_libc.syscall(446, self.descriptor, 0), "landlock_restrict_self")

    def close(self) -> None:
        os.close(self.descriptor)


def forbid_new_rights() -> None:
    """From now on, the set-user-id bit of a program has no effect."""
    _checked(_libc.prctl(38, 1, 0, 0, 0), "no_new_privs")


def keep_capabilities(mask: int) -> None:
    """Drops every capability that is not in the mask."""
    number = 126 if IS_X86 else 91
    header, data = struct.pack("Ii", 0x20080522, 0), struct.pack("IIIIII", mask, mask, 0, 0, 0, 0)
    _checked(_libc.syscall(number, header, data), "capset")


def end_with_parent() -> None:
    """The kernel kills this process when the one that started it ends."""
    _checked(_libc.prctl(1, 9, 0, 0, 0), "pdeathsig")


def adopt_orphans() -> None:
    """Descendants whose parent ends become children of this process."""
    _checked(_libc.prctl(36, 1, 0, 0, 0), "child_subreaper")


def filter_calls(program: bytes) -> int:
    """Installs a seccomp filter; returns the descriptor on which calls are announced that the filter passes on."""
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    return _checked(_libc.syscall(317 if IS_X86 else 277, 1, 8, header), "seccomp")


def copy_descriptor(process: int, descriptor: int) -> int:
    """Returns a descriptor of ours for what another process has open."""
    number = os.pidfd_open(process)
    try:
        return _checked(_libc.syscall(438, number, descriptor, 0), "pidfd_getfd")
    finally:
        os.close(number)


def connect(descriptor: int, address: bytes) -> int:
    """Connects a socket to an address as the kernel writes it; returns the error, or 0."""
    return ctypes.get_errno() if _libc.connect(descriptor, address, len(address)) else 0


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), "unshare")


def make_mounts_private() -> None:
    _checked(_libc.mount(None, b"/", None, _RECURSIVE | _PRIVATE, None), "mount private")


def bind(source: str, target: str) -> None:
    """Shows a file or folder also at another place, with everything that is mounted below it."""
    _checked(_libc.mount(os.fsencode(source), os.fsencode(target), None, _BIND | _RECURSIVE, None), f"bind {target}")


def copy_mounts(path: str) -> int:
    """Returns a descriptor of a folder as it is shown now, to be attached somewhere."""
    flags = 1 | os.O_CLOEXEC | _AT_RECURSIVE  # OPEN_TREE_CLONE
    return _checked(_libc.syscall(428, -100, os.fsencode(path), flags), f"open_tree {path}")


def attach_mounts(descriptor: int, target: str) -> None:
    _checked(_libc.syscall(429, descriptor, b"", -100, os.fsencode(target), 4), f"move_mount {target}")


def mount_memory(target: str, size: int) -> None:
    """Mounts an empty private folder in memory, with at most `size` bytes."""
    options = f"mode=0700,size={size}".encode()
    _checked(_libc.mount(b"tmpfs", os.fsencode(target), b"tmpfs", 6, options), f"tmpfs {target}")  # nosuid, nodev


def mount_processes() -> bool:
    """Shows only the processes of this namespace in /proc; False where /proc is masked, as in some containers."""
    return _libc.mount(b"proc", b"/proc", b"proc", 15, None) == 0  # read-only, nosuid, nodev, noexec


def mount_terminals() -> None:
    """Shows no terminal of others in /dev/pts; new ones can be made."""
    options = b"newinstance,ptmxmode=0666,mode=0620"
    _checked(_libc.mount(b"devpts", b"/dev/pts", b"devpts", 10, options), "devpts")  # nosuid, noexec


def _set_attributes(path: str, on: int, off: int, flags: int = 0) -> None:
    attributes = struct.pack("QQQQ", on, off, 0, 0)
    _checked(_libc.syscall(442, -100, os.fsencode(path), flags, attributes, 32), f"mount_setattr {path}")


def fix_everything() -> None:
    """Nothing that is mounted now can be changed any more, and no device can be opened."""
    _set_attributes("/", _ATTR_READ_ONLY | _ATTR_NO_DEVICES, 0, _AT_RECURSIVE)


def allow_devices(path: str) -> None:
    """Devices of this mount can be opened."""
    _set_attributes(path, 0, _ATTR_NO_DEVICES)


def set_read_only(path: str, on: bool) -> None:
    _set_attributes(path, _ATTR_READ_ONLY if on else 0, 0 if on else _ATTR_READ_ONLY)


def close_on_exec() -> None:
    """No descriptor but 0, 1 and 2 is passed on to the next program."""
    _checked(_libc.syscall(436, 3, 0xFFFFFFFF, 4), "close_range")


def has_unix_family(descriptor: int) -> bool:
    """Whether a socket is of the family of this machine's services."""
    domain, size = ctypes.c_int(), ctypes.c_uint(4)
    _checked(_libc.getsockopt(descriptor, 1, 39, ctypes.byref(domain), ctypes.byref(size)), "getsockopt")
    return domain.value == 1
