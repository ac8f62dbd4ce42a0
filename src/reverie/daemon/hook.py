"""What a hook of Claude Code or Codex runs: it sends its input to the service and prints the answer.

Runs as `PYTHON -I -S hook.py AGENT EVENT HOME SOCKET`. One process starts per event, so it imports only modules written
in C, and nothing of ours. It never fails: whatever goes wrong, it prints nothing and ends with 0 before its deadline.
"""

# No `from __future__` and no `contextlib`: they would be imports. The modules in C have no types, or a few.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# ruff: noqa: SIM105

import _signal  # type: ignore[import-not-found]
import posix
import sys
from time import sleep, time

SECONDS = {"SessionStart": 5.0, "UserPromptSubmit": 2.0, "PreCompact": 2.0, "PostToolUse": 2.0}
"""The most seconds that a hook takes per event, with the start of the service."""
OTHER_SECONDS = 1.0
ATTEMPT_SECONDS = 60.0
"""The time between two attempts to start the service."""
STARTING_SECONDS = 5.0
"""How long after an attempt a hook still waits for the service."""

_CHUNK = 1_048_576
_LARGEST_ANSWER = 16 * _CHUNK
_OK = b'{"ok": true, '
_PASSED_ON = (
    *(b"HOME", b"CLAUDE_PROJECT_DIR", b"CLAUDE_CONFIG_DIR", b"CLAUDE_PLUGIN_ROOT", b"CODEX_HOME"),
    *(b"CLAUDE_CODE_DISABLE_AUTO_MEMORY", b"CLAUDE_CODE_REMOTE", b"CLAUDE_CODE_REMOTE_MEMORY_DIR"),
)


def main(agent: str, event: str, home: str, path: str) -> None:
    """Sends standard input to the service and prints its answer. May raise anything: the caller ends the process."""
    if not home or _environment().get(b"REVERIE_INSIDE"):
        return
    part = _read_input()
    connection = part and _reach(home, path)
    if not connection:
        return
    connection.sendall(b'{"payload": ')
    while part:
        connection.sendall(part.replace(b"\n", b" "))  # no JSON text contains a line break that matters
        part = _read_input()
    # Last, because of two equal keys the last one counts: input that is not one object cannot change the request.
    request = f', "do": "hook", "agent": "{agent}", "event": "{event}", "environment": {_variables()}}}\n'
    connection.sendall(request.encode())
    answer = b""
    while not answer.endswith(b"\n"):
        part = connection.recv(_CHUNK)
        if not part or len(answer) > _LARGEST_ANSWER:
            return  # half an answer is none
        answer += part
    if answer.startswith(_OK + b'"hookSpecificOutput"'):
        _write_output(b"{" + answer[len(_OK) :])
    elif answer.startswith(_OK + b'"text"'):
        import json

        _write_output(json.loads(answer)["text"].encode("utf-8", "replace"))


def start(home: str, path: str) -> int:
    """Starts the service for `home`, detached from this process, and returns its PID."""
    given = {name: value for name, value in _environment().items() if not name.startswith(b"REVERIE_")}
    given[b"REVERIE_HOME"] = home.encode("utf-8", "surrogateescape")
    program = [sys.executable, "-E", "-P", "-m", "reverie.daemon", home, path]
    pid = posix.fork()
    if pid == 0:
        try:
            posix.setsid()
            posix.chdir("/")
            posix.umask(0o077)
            null = posix.open("/dev/null", posix.O_RDWR)
            for stream in (0, 1, 2):
                posix.dup2(null, stream)
            posix.closerange(3, 65_536)
            posix.execve(sys.executable, program, given)
        finally:
            posix._exit(1)
    return pid


def limit(event: str) -> None:
    """Ends this process with 0 at the deadline of the event, whatever it waits for."""
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    _signal.signal(_signal.SIGALRM, lambda *_: posix._exit(0))
    _signal.setitimer(_signal.ITIMER_REAL, SECONDS.get(event, OTHER_SECONDS))


def _reach(home: str, path: str):  # type: ignore[no-untyped-def]
    """Returns a connection to the service. If nobody listens, starts it; None if that was tried shortly before."""
    connection = _connect(path)
    if connection:
        return connection
    if posix.stat(home).st_uid != posix.geteuid():
        return None  # root in the home of a user (sudo) would leave files there that the user cannot write
    age = _age_of_attempt(home)
    if STARTING_SECONDS <= age < ATTEMPT_SECONDS:
        return None
    child = start(home, path) if age >= ATTEMPT_SECONDS else 0
    while not connection:  # until the deadline
        sleep(0.02)
        if child:
            ended, status = posix.waitpid(child, posix.WNOHANG)
            if ended and status:
                return None
            child = 0 if ended else child  # without an error: another one serves, or is about to
        connection = _connect(path)
    return connection


def _connect(path: str):  # type: ignore[no-untyped-def]
    """Returns a connection, or None if nobody listens. Raises OSError if what is there is not a socket of this user."""
    import _socket

    try:
        found = posix.lstat(path)
    except FileNotFoundError:
        return None
    if found.st_mode & 0o170000 != 0o140000 or found.st_uid != posix.geteuid():
        raise OSError(path)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    if hasattr(_socket, "SO_PEERCRED"):
        owner = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)[4:8]
        if int.from_bytes(owner, sys.byteorder) != posix.geteuid():
            raise OSError(path)
    return connection


def _age_of_attempt(home: str) -> float:
    """Returns the seconds since the last attempt to start the service, and marks a new one if that is long ago.

    Raises OSError if the mark cannot be written: without it, every hook would start a process.
    """
    mark = f"{home}/run/daemon.started"
    try:
        age = time() - posix.stat(mark).st_mtime
    except FileNotFoundError:
        age = -1.0
    if 0 <= age < ATTEMPT_SECONDS:
        return age
    try:
        posix.mkdir(f"{home}/run", 0o700)
    except FileExistsError:
        pass
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC | posix.O_NOFOLLOW | posix.O_NONBLOCK
    opened = posix.open(mark, flags, 0o600)
    posix.utime(opened)
    posix.close(opened)
    return ATTEMPT_SECONDS


def _environment() -> dict[bytes, bytes]:
    return dict(posix.environ)


def _variables() -> str:
    """Returns the variables that say where the program keeps its files, as JSON."""
    given = _environment()
    found = [(name.decode(), given[name].decode("utf-8", "replace")) for name in _PASSED_ON if name in given]
    escaped = [(name, value.replace("\\", "\\\\").replace('"', '\\"')) for name, value in found if value.isprintable()]
    return "{" + ", ".join(f'"{name}": "{value}"' for name, value in escaped) + "}"


def _read_input() -> bytes:
    while True:
        try:
            return posix.read(0, _CHUNK)
        except BlockingIOError:
            sleep(0.005)


def _write_output(data: bytes) -> None:
    while data:
        try:
            data = data[posix.write(1, data) :]
        except BlockingIOError:
            sleep(0.005)


def _fill_streams() -> None:
    """Opens the standard streams that are closed: else a socket would get the number of one of them."""
    opened = 0
    while opened <= 2:
        opened = posix.open("/dev/null", posix.O_RDWR)
    posix.close(opened)


if __name__ == "__main__":
    try:
        _fill_streams()
        limit(sys.argv[2])
        try:
            main(*sys.argv[1:])
        finally:
            while _read_input():  # the program that writes it must not get an error
                pass
    finally:
        posix._exit(0)
