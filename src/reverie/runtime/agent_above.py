"""Whether an agent started this process: then its words and decisions are a model's, not the user's (decision 0060).

What our agents start is marked by a limit of the kernel that limits nothing (file locks, unused since Linux 2.4.25).
Every process inherits it, and none can raise it again, whatever it does with its environment, terminal or parents.
Other agents are known by their variables and by the names of the programs above us. This is not a sandbox: a process
that asks another service to start it (tmux, systemd, cron, ssh) has left.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from reverie.paths.programs import system_program

_LOCKS, _MOST_LOCKS = 10, 2**30
_VARIABLE, _OURS = "AI_AGENT", "reverie"
_VARIABLES = (
    *(_VARIABLE, "CLAUDECODE", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "GEMINI_CLI"),
    *("QWEN_CODE", "CURSOR_AGENT", "OPENCODE", "COPILOT_CLI", "CLINE_ACTIVE", "GOOSE_TERMINAL", "AUGMENT_AGENT"),
)
"""What agents set for the commands that they run, and editors do not set for their terminals."""
_PROGRAMS = frozenset(
    {
        *("claude", "codex", "gemini", "qwen", "cursor-agent", "opencode", "copilot", "cline", "goose", "amp"),
        *("auggie", "aider", "crush", "droid", "kiro-cli"),
    }
)
_INTERPRETERS = ("node", "bun", "deno", "python")
_MOST_ANCESTORS = 200


def agent_above() -> str:
    """The name of the agent that started this process, directly or through others; empty if there is none."""
    environment = dict(os.environ)
    if _is_marked() or environment.get(_VARIABLE) == _OURS:
        return "Reverie"
    if named := _agent_in(environment):
        return named
    return next((name for pid in _ancestors() if (name := _agent_of(pid))), "")


def mark_words(words: Sequence[str | Path]) -> list[str]:
    """The same command, started so that it and all that it starts are known as an agent's."""
    bash = system_program("bash") if sys.platform == "linux" else None
    if bash is None:
        return [str(word) for word in words]
    # `-p`: nothing of the environment runs here, and all of it is passed on.
    set_limit = f'ulimit -x {_MOST_LOCKS} 2>/dev/null; exec "$@"'
    return [str(bash), "-p", "-c", set_limit, "bash", *map(str, words)]


def mark_process() -> None:
    """Marks this process, and all that it starts, as an agent's."""
    if sys.platform == "linux":
        import resource

        hard = resource.getrlimit(_LOCKS)[1]
        most = _MOST_LOCKS if hard == resource.RLIM_INFINITY else min(hard, _MOST_LOCKS)
        resource.setrlimit(_LOCKS, (most, most))


def mark_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The same environment with the variable by which other programs know an agent; an agent around us stays named."""
    return {_VARIABLE: _OURS, **environment}


def _is_marked() -> bool:
    if sys.platform != "linux":
        return False
    import resource

    limit = resource.getrlimit(_LOCKS)[1]
    return limit != resource.RLIM_INFINITY and limit <= _MOST_LOCKS


def _agent_in(environment: Mapping[str, str]) -> str:
    if environment.get("AGENT", "") in _PROGRAMS:
        return environment["AGENT"]
    return next((name for name in _VARIABLES if environment.get(name)), "")


def _agent_of(pid: int) -> str:
    """The agent that this process is, or by which it was started."""
    words = list[str]()
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    names = [_name_of(pid), *map(os.path.basename, words[:1])]
    if any(name.startswith(_INTERPRETERS) for name in names):
        names += [Path(word).stem for word in words[1:2]]
    if named := next((name for name in names if name in _PROGRAMS), ""):
        return named
    given = b""
    with suppress(OSError):  # of another user
        given = Path(f"/proc/{pid}/environ").read_bytes()
    pairs = (item.partition("=") for item in given.decode("utf-8", "replace").split("\0"))
    return _agent_in({name: value for name, _, value in pairs})


def _ancestors() -> Iterator[int]:
    pid = os.getppid()
    for _ in range(_MOST_ANCESTORS):
        if pid <= 1:
            return
        yield pid
        pid = _parent_of(pid)


def _parent_of(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        if sys.platform == "linux":
            # `pid (name) state ppid …`; the name may hold anything, even `)`.
            return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        return int(_ask_ps(pid, "ppid="))
    return 0


def _name_of(pid: int) -> str:
    with suppress(OSError):
        if sys.platform == "linux":
            return Path(f"/proc/{pid}/comm").read_bytes().decode("utf-8", "replace").strip()
        return Path(_ask_ps(pid, "comm=").strip()).name
    return ""


def _ask_ps(pid: int, field: str) -> str:
    return subprocess.run(["/bin/ps", "-o", field, "-p", str(pid)], capture_output=True, text=True, check=False).stdout
