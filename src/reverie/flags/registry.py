"""Every kill switch with its default, and the names of the numbers that a flag may change. Data only.

Off means as if absent. A flag that shapes the prefix is read once per session; all others are asked at each use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import cast

from reverie.quick import dataclass
from reverie.settings.fields import Setting
from reverie.settings.kinds import Counts, Numeric
from reverie.settings.schema import list_settings


@dataclass(frozen=True, slots=True)
class Flag:
    """One switch. `prefix`: it shapes the prefix, so it is read once per session. It is off if the flag of its table is
    off, or one that it `needs`."""

    name: str
    default: bool
    help: str
    prefix: bool = False
    needs: tuple[str, ...] = ()


_ON = (
    Flag("tool_results", True, "Large tool results go to disk (layer 1)."),
    Flag("tool_results.message_budget", True, "All tool results of one round share a budget."),
    Flag("microcompact.time", True, "Old tool results are cleared after an hour's pause (layer 2)."),
    Flag("microcompact.economic", True, "Old tool results are cleared when that pays."),
    Flag("session_notes", True, "Notes are kept while working (layer 3)."),
    Flag("compaction.auto", True, "A full context is compacted by itself (layer 4)."),
    Flag(
        "compaction.notes",
        True,
        "Compaction takes the notes where it can, without a model call.",
        needs=("session_notes",),
    ),
    Flag("compaction.reactive", True, "A prompt the server finds too long is compacted and sent again."),
    Flag("compaction.partial", True, "Only a part of the conversation can be compacted."),
    Flag("extraction", True, "Lessons of a turn go to memory (layer 5)."),
    Flag("dream", True, "Memory is consolidated across sessions (layer 6)."),
    Flag("recall", True, "Memories that fit a message are shown with it."),
    Flag("search_past_context", True, "The prompt says how to search earlier sessions.", prefix=True),
    Flag("agent_memory", True, "Agents have their own memories (layer 7)."),
    Flag("progress_summary", True, "Running agents say in a few words what they are doing."),
    Flag("rules", True, "Rules with `paths:` load when such a file is touched."),
    Flag("fork_children", True, "Several children may be forked from one message."),
    Flag("mcp", True, "Tools of MCP servers can be used."),
    Flag("cache_watch", True, "Breaks of the prompt cache are detected and explained."),
)
_OFF = (
    Flag("microcompact.cache_edits", False, "Tool results are cleared by cache edits, where an endpoint has them."),
    Flag("microcompact.server", False, "The server clears old tool results and thinking."),
    Flag("extraction.noninteractive", False, "Extraction also runs when nobody is at the keyboard."),
    Flag("recall.no_index", False, "The memory index is not shown; recall alone finds memories.", prefix=True),
    Flag("team_memory", False, "A part of the memory is shared with a team.", prefix=True),
    Flag("daily_log", False, "The agent appends to a log of the day instead of topic files.", prefix=True),
    Flag("coordinator", False, "The main agent only coordinates workers.", prefix=True),
    Flag("context_collapse", False, "Old stretches are folded at read time instead of compacted."),
    Flag("history_snip", False, "The oldest complete tool rounds are dropped."),
)

FLAGS: Mapping[str, Flag] = {flag.name: flag for flag in (*_ON, *_OFF)}


@cache
def switches_of(name: str) -> tuple[str, ...]:
    """Returns the flags that must all be on for this one: itself, and those above it."""
    table = name.rpartition(".")[0]
    return (name, *FLAGS[name].needs, *((table,) if table in FLAGS else ()))


ENV_PREFIX = "REVERIE_FLAG_"
_NO_VARIABLE = re.compile(r"[^A-Z0-9]")


@cache
def numbers() -> Mapping[str, Setting]:
    """Returns the settings that a flag of the same name may change while a session runs."""
    return {key: setting for key, setting in list_settings().items() if setting.live}


def number_kind(name: str) -> Numeric | None:
    """Returns the kind of a number, or None if there is no such flag. `tool_results.limits.Bash` is one of a table."""
    found = numbers().get(name)
    if found is not None:
        return found.kind if isinstance(found.kind, Numeric) else None
    table = numbers().get(name.rpartition(".")[0])
    return Numeric(whole=True, minimum=1) if table is not None and isinstance(table.kind, Counts) else None


def all_names() -> tuple[str, ...]:
    """Returns all names for a flags file; a table of numbers has the name of the table."""
    return (*FLAGS, *numbers())


def env_name(name: str) -> str:
    """Returns the variable that sets a flag for one process: `REVERIE_FLAG_RECALL_NO_INDEX` for `recall.no_index`."""
    return ENV_PREFIX + _NO_VARIABLE.sub("_", name.upper())


@cache
def variables() -> Mapping[str, str]:
    """Returns the flags and numbers by their variables."""
    return {env_name(name): name for name in all_names() if name in FLAGS or number_kind(name)}


def name_of_variable(variable: str) -> str | None:
    """Returns the flag of a variable. A number of a table has the name of the table, and the rest as it is written."""
    if (name := variables().get(variable)) is not None:
        return name
    tables = [name for name in all_names() if name not in FLAGS and number_kind(name) is None]
    above = next((name for name in tables if variable.startswith(f"{env_name(name)}_")), None)
    rest = variable.removeprefix(f"{env_name(above)}_") if above else ""
    return f"{above}.{rest}" if rest else None


def flatten(table: Mapping[str, object], above: str = "") -> Iterable[tuple[str, object, tuple[str, ...]]]:
    """Yields (name, value, keys) for every flag in a TOML table. `on` in a table is the flag of the table's name."""
    for key, value in table.items():
        name = above if key == "on" and above else f"{above}.{key}" if above else key
        if isinstance(value, dict):
            for inner, given, keys in flatten(cast("dict[str, object]", value), name):
                yield inner, given, (key, *keys)
        else:
            yield name, value, (key,)
