"""A PostgreSQL of our own for those who have none: a socket in a private folder, a password, modest memory. It runs
while a process uses it, and the last one stops it. What a killed process leaves behind, the next one takes over.
PostgreSQL does not run as root: then a system user owns the data, in `/var/lib/reverie`; the home stays as it is."""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

from reverie.errors import ReverieError, UserError
from reverie.regular_files import read_regular, read_tail
from reverie.server.operation.postgres_programs import choose, copy_for_others, environment
from reverie.storage.atomic import make_private_dir, remove, storage_error, write_new
from reverie.storage.locks import exclusive
from reverie.storage.token_file import load_secret

USER: Final = "reverie-postgres"
_ROOT_FOLDER: Final = Path("/var/lib/reverie")
_LONGEST_SOCKET: Final = 80
"""Of the folder: the path of a socket has at most 103 bytes (macOS)."""
_START_S: Final = 120
_PAUSE_S: Final = 0.1
_OWNER: Final = "reverie"
_MOST_LOG: Final = 10_000_000
_READY, _REFUSES, _SILENT = 0, 1, 2  # what `pg_isready` answers
_OPTIONS: Final = {
    "listen_addresses": "",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "max_wal_size": "256MB",
    "min_wal_size": "32MB",
    "jit": "off",
    "log_checkpoints": "off",
    "log_error_verbosity": "terse",  # the details of an error have contents
}


class EmbeddedPostgres:
    """The database of one home. `start` and `stop` say that this process uses it, and that it does not any more."""

    def __init__(self, folder: Path, password_file: Path, user: str = "") -> None:
        self.folder = folder
        self.password_file = password_file
        self.user = user
        """Who runs it; empty: this user."""
        self._held: int | None = None

    @classmethod
    def at(cls, home: Path) -> EmbeddedPostgres:
        """The database of a home; nothing is made yet."""
        home = home.expanduser().absolute()
        password = home / "server" / "postgres.password"
        if os.geteuid() != 0:
            return cls(home / "server" / "postgres", password)
        mark = sha256(os.fsencode(home.resolve())).hexdigest()[:16]
        return cls(_ROOT_FOLDER / mark, password, USER)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "postgres.log"

    @property
    def sockets(self) -> Path:
        """In /tmp if the folder is too deep for a socket, or has characters that separate addresses."""
        name = os.fsencode(self.folder)
        if len(name) <= _LONGEST_SOCKET and re.fullmatch(rb"[\w/.@+-]+", name):
            return self.folder
        return Path("/tmp") / f"reverie-{sha256(name).hexdigest()[:16]}"

    @property
    def dsn(self) -> str:
        """With the password: never print it."""
        password = read_regular(self.password_file).decode().strip()
        return f"postgresql://{_OWNER}:{quote(password)}@/postgres?host={quote(str(self.sockets), safe='')}"

    @property
    def is_made(self) -> bool:
        return (self.data / "PG_VERSION").exists()

    def start(self, tell: Callable[[str], None] = lambda _text: None) -> str:
        """Starts it if it does not run, and returns the DSN. The first start takes some seconds; `tell` hears what it
        makes outside the home, before it is made."""
        programs = choose(self.data)  # says what is missing before anything is made
        make_private_dir(self.password_file.parent)
        with exclusive(self._file("lock"), timeout_s=2 * _START_S, what="the database"):
            self._hold()
            try:
                state = self._wait_while_it_refuses(programs)
                if state == _READY and not self.password_file.exists():
                    self._halt()  # a new password can be set only while it does not run
                    state = _SILENT
                if state != _READY:
                    self._forget_dead()
                    self._make(programs, tell)
                    self._launch(programs)
            except BaseException:
                self._let_go()
                raise
        return self.dsn

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """This process does not need it any more: stops it if nobody else does. Open transactions are rolled back.
        `immediate` is like a crash."""
        if self._held is None:
            return
        with exclusive(self._file("lock"), timeout_s=2 * _START_S, what="the database"):
            is_last = True
            try:
                fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                is_last = False
            self._let_go()
            if is_last and self.is_running():
                self._halt(mode)

    def remove(self) -> None:
        """Stops it and deletes its data."""
        self.stop()
        for folder in (self.folder, self.sockets):
            shutil.rmtree(folder, ignore_errors=True)
        for path in (self.password_file, self._file("lock"), self._file("users")):
            remove(path)

    def is_running(self) -> bool:
        return self.is_made and self._state(choose(self.data)) != _SILENT

    def _halt(self, mode: str = "fast") -> None:
        self._run(choose(self.data), "pg_ctl", "stop", "-w", "-t", str(_START_S), "-m", mode, "-D", "data")

    def _file(self, kind: str) -> Path:
        return self.password_file.with_name(f"postgres.{kind}")

    def _hold(self) -> None:
        """Says that this process uses it. The kernel forgets it when the process ends, however it ends."""
        if self._held is not None:
            return
        path = self._file("users")
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(fd, fcntl.LOCK_SH)
        except OSError as error:
            raise storage_error(error, path, "lock") from error
        self._held = fd

    def _let_go(self) -> None:
        if self._held is not None:
            with suppress(OSError):
                fcntl.flock(self._held, fcntl.LOCK_UN)  # at once, even if a child shares the descriptor
            os.close(self._held)
            self._held = None

    def _state(self, programs: Path) -> int:
        asked = [programs / "pg_isready", "-q", "-t", "3", "-h", str(self.sockets)]
        return subprocess.run(asked, env=environment(), stdin=subprocess.DEVNULL, cwd="/").returncode

    def _wait_while_it_refuses(self, programs: Path) -> int:
        """It repairs itself after a crash, or a killed process was just stopping it."""
        until = time.monotonic() + _START_S
        while (state := self._state(programs) if self.is_made else _SILENT) == _REFUSES and time.monotonic() < until:
            time.sleep(_PAUSE_S)
        return state

    def _launch(self, programs: Path) -> None:
        with suppress(OSError):
            if self.log.stat().st_size > _MOST_LOG:
                self.log.replace(self.log.with_name("postgres.log.1"))
        settings = {**_OPTIONS, "unix_socket_directories": str(self.sockets)}
        options = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in settings.items())
        given = ("start", "-w", "-t", str(_START_S), "-D", "data", "-l", self.log.name, "-o", options)
        try:
            self._run(programs, "pg_ctl", *given)
        except ReverieError as error:
            if "pre-existing shared memory" not in str(error):
                raise
            time.sleep(2)  # the last processes of one that was killed are about to notice
            self._run(programs, "pg_ctl", *given)

    def _forget_dead(self) -> None:
        """Nothing listens here. The process numbers in the files of the last one may belong to other programs by now,
        or to processes that have ended and that nobody has waited for (in containers)."""
        for path in (self.data / "postmaster.pid", self.sockets / ".s.PGSQL.5432.lock"):
            with suppress(OSError, ValueError):
                number = int(read_regular(path, 4_096).split(b"\n", 1)[0])
                asked = ["ps", "-o", "stat=,comm=", "-p", str(number)]
                said = subprocess.run(asked, capture_output=True, text=True, errors="replace", env=environment())
                state, _, name = said.stdout.strip().partition(" ")
                if state and (state.startswith("Z") or "postgres" not in name):
                    remove(path)

    def _make(self, programs: Path, tell: Callable[[str], None]) -> None:
        if self.user:
            self._announce(tell)
            self._make_user()
            self.folder.parent.mkdir(mode=0o755, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self._give(self.folder)
        else:
            make_private_dir(self.folder)
        if self.sockets != self.folder:
            self._make_sockets()
        if self.is_made:
            self._mend(programs)
            return
        if self.data.exists():
            raise UserError(f"{self.data} is not a database: move it away, or restore a backup in another home.")
        password = load_secret(self.password_file)
        handed, unfinished = self.folder / "password", self.folder / "making"
        remove(handed)
        shutil.rmtree(unfinished, ignore_errors=True)  # of a first start that was interrupted
        write_new(handed, password.encode(), 0o600, fsync=False)
        self._give(handed)
        locale = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"
        auth = ("--auth=scram-sha-256", "--pwfile=password")
        try:
            self._run(programs, "initdb", "-U", _OWNER, "-E", "utf8", f"--locale={locale}", "-D", "making", *auth)
        finally:
            remove(handed)
        unfinished.rename(self.data)

    def _make_sockets(self) -> None:
        """In /tmp, where somebody else may have made a folder of this name: that one would see our password."""
        make_private_dir(self.sockets)
        found = self.sockets.lstat()
        if self.sockets.is_symlink() or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise UserError(f"{self.sockets} belongs to somebody else: remove it, or use a home with a shorter name.")

    def _mend(self, programs: Path) -> None:
        """The user of the system, or the file with the password, may be new while the data is old."""
        if self.user and self.data.stat().st_uid != pwd.getpwnam(self.user).pw_uid:
            for root, folders, names in os.walk(self.folder):
                for name in (".", *folders, *names):
                    self._give(Path(root, name))
        if not self.password_file.exists():
            password = load_secret(self.password_file)
            change = f"alter role {_OWNER} password '{password}'\n"
            self._run(programs, "postgres", "--single", "-D", "data", "postgres", stdin=change)

    def _announce(self, tell: Callable[[str], None]) -> None:
        made = [] if self.folder.exists() else [f"the folder {self.folder} for its data and a copy of its programs"]
        try:
            pwd.getpwnam(self.user)
        except KeyError:
            made.insert(0, f"the system user {self.user}")
        if made:
            tell(f"PostgreSQL does not run as root, so this makes {' and '.join(made)} (or give a database: --dsn).")

    def _make_user(self) -> None:
        with suppress(KeyError):
            pwd.getpwnam(self.user)
            return
        ways = (
            ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", self.user],
            ["adduser", "-S", "-D", "-H", "-s", "/sbin/nologin", self.user],  # BusyBox
        )
        path = environment()["PATH"]
        way = next((one for one in ways if shutil.which(one[0], path=path)), None)
        said = "this system has no useradd"
        if way is not None:
            made = subprocess.run(way, capture_output=True, text=True, errors="replace", env=environment())
            said = " ".join(made.stderr.split())
            if not made.returncode:
                return
        raise UserError(
            f"PostgreSQL does not run as root, and the system user {self.user} could not be made ({said}): "
            "make it, run `reverie serve` as another user, or give a database with `--dsn`."
        )

    def _give(self, path: Path) -> None:
        if self.user:
            found = pwd.getpwnam(self.user)
            os.chown(path, found.pw_uid, found.pw_gid, follow_symlinks=False)

    def _run(self, programs: Path, program: str, *given: str, stdin: str = "") -> None:
        """Runs a program in the folder: its arguments have no path that a shell could misread."""
        folder = copy_for_others(programs, _ROOT_FOLDER) if self.user else programs
        done = subprocess.run(
            [folder / program, *given],
            capture_output=True,
            text=True,
            errors="replace",
            input=stdin,
            user=self.user or None,
            group=pwd.getpwnam(self.user).pw_gid if self.user else None,
            extra_groups=[] if self.user else None,
            cwd=self.folder,
            env=environment(),
        )
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            logged = ""
            with suppress(OSError):
                logged = read_tail(self.log, 1_000)[0].decode("utf-8", "replace")
            lines = [*said[-2:], *logged.splitlines()[-3:]]
            raise ReverieError(f"PostgreSQL: {program} failed: {' '.join(' '.join(lines).split())}")
