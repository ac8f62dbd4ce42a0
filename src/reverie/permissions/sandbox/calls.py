"""The seccomp program of a profile: which system calls are refused, and which are announced before the kernel decides.

Announced calls are those that change files or reach the network. The keeper notes what they tried and lets the kernel
decide (Landlock, read-only mounts, a private network), because a process can change its memory while somebody reads it.
"""

from __future__ import annotations

import errno
import struct

from reverie.permissions.sandbox.kernel import IS_X86
from reverie.quick import dataclass

# Numbers of system calls: (x86-64, ARM64); None: this machine has no such call.
_Number = tuple[int | None, int | None]

FORBIDDEN: dict[str, _Number] = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "process_madvise": (440, 440),
    # namespaces and mounts
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "chroot": (161, 51),
    # the kernel and its keys
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "iopl": (172, None),
    "ioperm": (173, None),
    "lookup_dcookie": (212, 18),
    # the machine
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "fanotify_init": (300, 262),
    "seccomp": (317, 277),
}
"""Refused in every profile."""

SHARED_MEMORY: dict[str, _Number] = {
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
}
"""Refused where there is no private namespace for them. A number is enough to use what others have opened."""

SIGNALS: dict[str, _Number] = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}
"""Announced where the processes of others can be reached: before ABI 6 of Landlock, without a private namespace. The
keeper allows those to the command's own processes: the number of a process is in a register, nobody can change it."""
_SIGNAL_BY_DESCRIPTOR: _Number = (424, 424)
_FCNTL: _Number = (72, 25)
_SET_OWNER = (8, 15)
"""`fcntl` with these, and `ioctl` with those below, name a process that gets signals."""
_SET_OWNER_BY_IOCTL = (0x8901, 0x8902)

SESSIONS: dict[str, _Number] = {
    "setsid": (112, 157),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
}
"""Refused where a session is how the processes of a command are found: without a private namespace."""

METADATA: dict[str, _Number] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "utimensat": (280, 88),
    "futimesat": (261, None),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
"""Changes that Landlock does not see: refused where no read-only mount does it."""

CHANGING: dict[str, _Number] = {
    "creat": (85, None),
    "openat2": (437, 437),
    "truncate": (76, 45),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "mknod": (133, None),
    "mknodat": (259, 33),
}
"""Announced, and then left to the kernel."""

OPENING: dict[str, tuple[_Number, int]] = {"open": ((2, None), 1), "openat": ((257, 56), 2)}
"""Announced if the flags in this argument write, create or truncate."""

STARTS: dict[str, _Number] = {"clone": (56, 220), "fork": (57, None), "vfork": (58, None)}
"""Announced where no namespace ends all processes at once: when the keeper has gone, nothing new can start."""

NETWORK: dict[str, _Number] = {"connect": (42, 203)}
SOCKET: _Number = (41, 198)
_SOCKETPAIR: _Number = (53, 199)
_SENDTO: _Number = (44, 206)
_CLONE, _CLONE3, _IOCTL, _PRLIMIT = (56, 220), (435, 435), (16, 29), (302, 261)
_IO_URING = ((425, 425), (426, 426), (427, 427))

WRITING_FLAGS = 0o3 | 0o100 | 0o1000  # write or read and write, create, truncate
_NEW_NAMESPACES = 0x7E020080
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _PACKETS = 1, 5
_IOCTL_TYPES = (0x5400, 0x8900)
"""Of terminals, pipes and sockets."""
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_KILL, _REFUSE, _ANNOUNCE, _ALLOW = 0x80000000, 0x00050000, 0x7FC00000, 0x7FFF0000
_NUMBER_AT, _MACHINE_AT = 0, 4


@dataclass(frozen=True, slots=True)
class CallRights:
    """What decides about system calls: whether namespaces are private, whether files may change, and Landlock's ABI."""

    namespaces: bool
    writes: bool
    landlock: int


def pick(number: _Number) -> int | None:
    """The number of a call on this machine."""
    return number[0 if IS_X86 else 1]


def names_by_number() -> dict[int, str]:
    """The names of the announced calls, by their number on this machine."""
    table = {**CHANGING, **METADATA, **NETWORK, **SIGNALS, **STARTS, "socket": SOCKET, "sendto": _SENDTO}
    table |= {name: number for name, (number, _) in OPENING.items()}
    return {number: name for name, numbers in table.items() if (number := pick(numbers)) is not None}


def build_program(rights: CallRights) -> bytes:
    """Writes the filter for one command."""
    program = _Program()
    program.check_machine()
    refused = dict(FORBIDDEN)
    if not rights.namespaces:
        refused |= SHARED_MEMORY | SESSIONS
    for numbers in refused.values():
        program.on(numbers, program.refuse())
    if not rights.namespaces and rights.landlock < 6:
        for numbers in SIGNALS.values():
            program.on(numbers, program.announce())
        program.on(_SIGNAL_BY_DESCRIPTOR, program.refuse())
        for command in _SET_OWNER:
            program.on(_FCNTL, [program.argument(1), *program.if_equal(command, program.refuse())])
        for command in _SET_OWNER_BY_IOCTL:
            program.on(_IOCTL, [program.argument(1), *program.if_equal(command, program.refuse())])
    for numbers in (*_IO_URING, _CLONE3):  # what these do cannot be seen here; programs know other ways
        program.on(numbers, program.refuse(errno.ENOSYS))
    for numbers in {**CHANGING, **METADATA}.values():
        program.on(numbers, program.announce())
    for numbers, flags_at in OPENING.values():
        program.on(numbers, [program.argument(flags_at), *program.if_any(WRITING_FLAGS, program.announce())])
    program.on(_CLONE, [program.argument(0), *program.if_any(_NEW_NAMESPACES, program.refuse())])
    program.on(_IOCTL, [program.argument(1), *program.if_equal(0x5412, program.refuse())])  # TIOCSTI types for others
    program.on(_IOCTL, [program.argument(1), *program.if_equal(0x541C, program.refuse())])  # TIOCLINUX
    program.on(_PRLIMIT, [program.argument(0), *program.unless_equal(0, program.refuse())])
    if not rights.namespaces:
        # Many change a file that is open for reading: its flags, or a snapshot of its folder. Landlock does not see it.
        known = [line for kind in _IOCTL_TYPES for line in program.if_equal(kind, [program.allow()])]
        program.on(_IOCTL, [program.argument(1), program.masked(0xFF00), *known, *program.refuse(errno.ENOTTY)])
        for numbers in STARTS.values():
            program.on(numbers, program.announce())
    # A datagram of this family (SOCK_RAW is another word for it) reaches any service, by a call whose address cannot be
    # seen here. Some other families reach beyond the private network: the host of a virtual machine, or radio.
    kinds = [line for kind in (_STREAM, _PACKETS) for line in program.if_equal(kind, [program.allow()])]
    connected = [program.argument(1), program.masked(0xF), *kinds, *program.refuse()]
    program.on(_SOCKETPAIR, connected)
    others = program.announce()
    if rights.namespaces:
        families = (_INET, _INET6, _NETLINK)
        others = [line for family in families for line in program.if_equal(family, [program.allow()])]
        others += program.refuse(errno.EAFNOSUPPORT)
    program.on(SOCKET, [program.argument(0), *program.if_equal(_UNIX, connected), *others])
    for numbers in NETWORK.values():
        program.on(numbers, program.announce())
    program.on(_SENDTO, [program.argument(4), *program.unless_equal(0, program.announce())])
    return program.finish()


class _Program:
    """Collects the instructions of a filter. If what `on` gets does not return, the next check follows."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    @staticmethod
    def _line(code: int, if_true: int, if_false: int, value: int) -> bytes:
        return struct.pack("HBBI", code, if_true, if_false, value)

    def check_machine(self) -> None:
        """Calls of another machine's numbering would pass every check."""
        self._lines += [
            self._line(_LOAD, 0, 0, _MACHINE_AT),
            self._line(_EQUAL, 1, 0, 0xC000003E if IS_X86 else 0xC00000B7),
            self._line(_RETURN, 0, 0, _KILL),
            self._line(_LOAD, 0, 0, _NUMBER_AT),
        ]
        if IS_X86:  # the x32 numbers
            self._lines += [self._line(_AT_LEAST, 0, 1, 0x40000000), *self.refuse(errno.ENOSYS)]

    def on(self, numbers: _Number, then: list[bytes]) -> None:
        number = pick(numbers)
        if number is None:
            return
        reload = [self._line(_LOAD, 0, 0, _NUMBER_AT)] if len(then) > 1 else []
        self._lines += [self._line(_EQUAL, 0, len(then) + len(reload), number), *then, *reload]

    def refuse(self, number: int = errno.EPERM) -> list[bytes]:
        return [self._line(_RETURN, 0, 0, _REFUSE | number)]

    def announce(self) -> list[bytes]:
        return [self._line(_RETURN, 0, 0, _ANNOUNCE)]

    def allow(self) -> bytes:
        return self._line(_RETURN, 0, 0, _ALLOW)

    def argument(self, number: int) -> bytes:
        """Loads the low half of an argument."""
        return self._line(_LOAD, 0, 0, 16 + 8 * number)

    def masked(self, bits: int) -> bytes:
        return self._line(_AND, 0, 0, bits)

    def if_any(self, bits: int, then: list[bytes]) -> list[bytes]:
        return [self._line(_ANY_BIT, 0, len(then), bits), *then]

    def if_equal(self, value: int, then: list[bytes]) -> list[bytes]:
        return [self._line(_EQUAL, 0, len(then), value), *then]

    def unless_equal(self, value: int, then: list[bytes]) -> list[bytes]:
        return [self._line(_EQUAL, len(then), 0, value), *then]

    def finish(self) -> bytes:
        return b"".join([*self._lines, self.allow()])
