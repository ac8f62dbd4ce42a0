"""What a command does when an agent has started it: whose words its text is, and what it refuses (decision 0060).

Every entry of a table of commands says what agents may do. A sub-command without a rule has that of its entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import wraps
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import click

from reverie.errors import ReverieError
from reverie.types import Origin

C = TypeVar("C", bound=click.Command)
When: TypeAlias = Callable[[Mapping[str, Any]], bool]


class AgentsMay(Enum):
    """What a command does below an agent."""

    ALL = "all"
    """It reads, or works with what belongs to agents too."""
    AS_MODEL = "as model"
    """What it stores or says counts as a model's."""
    NOTHING = "nothing"
    """It decides, or changes whom the user trusts."""


_DECLARED: WeakKeyDictionary[click.Command, tuple[AgentsMay, When]] = WeakKeyDictionary()
_GUARDED: WeakKeyDictionary[click.Command, AgentsMay] = WeakKeyDictionary()


def agents_may(may: AgentsMay, *, reads: When = lambda _: False) -> Callable[[C], C]:
    """The rule of one command. `reads`: with these parameters it only reads, and agents may do it."""

    def declare(command: C) -> C:
        _DECLARED[command] = (may, reads)
        return command

    return declare


def guard_command(command: click.Command, may: AgentsMay) -> None:
    """Makes a command and its sub-commands refuse what agents may not do. A second call does nothing."""
    own, reads = _DECLARED.get(command, (may, lambda _: False))
    if command not in _GUARDED and command.callback is not None and own is AgentsMay.NOTHING:
        command.callback = _refuse_agents(command.callback, reads)
    _GUARDED[command] = own
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            guard_command(inner, may)


def rule_of(command: click.Command) -> AgentsMay | None:
    """What agents may do with a command; None if no table of commands has it."""
    return _GUARDED.get(command)


def _refuse_agents(callback: Callable[..., Any], reads: When) -> Callable[..., Any]:
    @wraps(callback)
    def run(*args: Any, **more: Any) -> Any:
        context = click.get_current_context()
        if context.invoked_subcommand is None and not reads(context.params):
            refuse_agent(f"`{context.command_path}`")
        return callback(*args, **more)

    return run


def refuse_agent(what: str) -> None:
    """Raises an error if an agent has started this process. `what` is the subject of the sentence."""
    from reverie.runtime.agent_above import agent_above

    if agent := agent_above():
        raise ReverieError(
            f"{what} is for you to decide, and an agent has started this ({agent}): run it in a terminal of your own."
        )


def text_origin() -> Origin:
    """The origin of a text that was given as an argument."""
    from reverie.cli.output import has_terminal
    from reverie.runtime.agent_above import agent_above

    if agent_above():
        return Origin.MODEL
    return Origin.TYPED if has_terminal() else Origin.ENTERED
