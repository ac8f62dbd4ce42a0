"""Which rules a permission question offers for "this session" and "always": as narrow as they are useful.

A command of a known family gets a prefix (`npm run test:*`), each other command only its exact text. Programs that run
whatever they are given (shells, interpreters, `sudo`, `xargs`) never get a prefix.
"""

from __future__ import annotations

import re

from reverie.permissions.patterns import find_covering_rule, make_rule, parse_rule
from reverie.permissions.policy import names_guarded_file
from reverie.permissions.rules import ToolCall
from reverie.quick import dataclass


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_.-]*")
# Programs with subcommands, and those of their subcommands that run what they are given or change how others run.
_FAMILIES = {
    "git": "config submodule bisect rebase filter-branch difftool mergetool remote grep worktree hook"
    " maintenance clone ls-remote archive",
    "npm": "exec x explore config set run-script-shell init create",
    "pnpm": "exec dlx config create",
    "yarn": "exec dlx config node create",
    "bun": "x repl create",
    "cargo": "install",
    "go": "env install",
    "uv": "tool python",
    "pip": "config",
    "pip3": "config",
    "poetry": "config shell",
    "pdm": "config",
    "hatch": "shell config",
    "dotnet": "exec tool",
    "gh": "api alias config extension auth secret",
    "docker": "run exec cp login plugin context",
    "kubectl": "exec run cp config proxy attach plugin",
    "terraform": "console",
    "mvn": "",
    "gradle": "",
    "./gradlew": "",
    "./mvnw": "",
    "make": "",
    "just": "",
    "rake": "",
    "bundle": "config",
    "mix": "run",
}
_GROUPS = {
    "git": "stash notes reflog lfs sparse-checkout bundle",
    "npm": "pkg cache",
    "uv": "pip",
    "gh": "pr issue repo run workflow release gist label project cache variable codespace ssh-key gpg-key ruleset",
    "docker": "compose container image volume network buildx system",
    "kubectl": "rollout auth certificate set create",
    "terraform": "state workspace providers",
}
"""Subcommands that have subcommands: those belong to the prefix."""
_RUNNERS = _split("run exec")
"""Subcommands after which the name of a script or a program follows: that name belongs to the prefix."""
_TOOLS = _split(
    "pytest ruff mypy pyright black isort flake8 tox nox eslint prettier tsc jest vitest rustfmt gofmt"
    " clang-format shellcheck mkdir ctest ninja"
)
_MODULES = _split("pytest unittest ruff mypy black isort build pip")
_OPEN = _split(
    "bash sh zsh dash ksh fish python python2 python3 node deno ruby perl php lua env sudo doas su xargs find"
    " awk gawk time timeout nohup nice exec eval source npx bunx uvx pipx ssh parallel watch command builtin"
    " setsid"
)
"""Programs that run whatever they are given: they never get a prefix, not even behind `uv run`."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Rules that cover the call together. `can_save`: they are worth keeping beyond the session."""

    rules: tuple[str, ...] = ()
    can_save: bool = False


def make_offer(call: ToolCall) -> Offer:
    """Returns what to offer for a call; no rules if none can express it, or if it is about a guarded file."""
    if names_guarded_file(call):
        return Offer()
    exact = make_rule(call)
    if call.tool != "Bash":
        return Offer((exact,), can_save=True) if exact is not None else Offer()
    from reverie.permissions.shell.commands import plain_commands

    command = str(call.input.get("command", ""))
    parts = plain_commands(command) or ()
    rules = [rule for part in parts if (rule := _make_prefix(part.words)) is not None]
    chosen = tuple(dict.fromkeys(rules))
    if chosen and find_covering_rule(call, [parse_rule(rule) for rule in chosen]):
        return Offer(chosen, can_save=True)
    return Offer((exact,), can_save=len(parts) == 1) if exact is not None else Offer()


def _make_prefix(words: tuple[str | None, ...]) -> str | None:
    """Returns the prefix rule of one command; None for commands that should have none."""
    program = words[0]
    if program is None or program in _OPEN:
        return _make_module_prefix(words)
    if program in _TOOLS:
        return f"Bash({program}:*)"
    if program not in _FAMILIES or len(words) < 2:
        return None
    sub = words[1]
    if sub is None or not _SUBCOMMAND.fullmatch(sub) or sub in _FAMILIES[program].split():
        return None
    if sub in _GROUPS.get(program, "").split():
        part = words[2] if len(words) > 2 else None
        is_known = part is not None and _SUBCOMMAND.fullmatch(part) and part not in _FAMILIES[program].split()
        return f"Bash({program} {sub} {part}:*)" if is_known else None
    if sub not in _RUNNERS:
        return f"Bash({program} {sub}:*)"
    script = words[2] if len(words) > 2 else None
    if script is None or not _SUBCOMMAND.fullmatch(script) or script.rstrip("0123456789.") in _OPEN:
        return None
    return f"Bash({program} {sub} {script}:*)"


def _make_module_prefix(words: tuple[str | None, ...]) -> str | None:
    if len(words) > 2 and words[0] in ("python", "python3") and words[1] == "-m" and words[2] in _MODULES:
        return f"Bash({words[0]} -m {words[2]}:*)"
    return None
