"""The memory section of the system prompt: one order, four variants (individual, with a team's folder, with a daily log
instead of topic files, without an index). Rendered once per session; the texts are in `prompts/`."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path

from reverie.errors import StorageError
from reverie.flags import PrefixFlags
from reverie.memory.daily_log import LOG_PATTERN
from reverie.memory.taxonomy import TEAM
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.storage.atomic import make_private_dir

MAX_BYTES = 8_000
"""Most bytes of the section in any variant, without paths and the user's guidelines."""
GUIDELINES_BYTES = 8_000
"""Longer guidelines are cut."""


@dataclass(frozen=True, slots=True)
class MemoryPrompt:
    """The section, and what went wrong while it was made, as sentences for `doctor` and a notice."""

    text: str
    diagnostics: tuple[str, ...] = ()


def uses_team(flags: PrefixFlags) -> bool:
    """Whether the memory has a shared part. With a daily log it has none."""
    return flags.on("team_memory") and not flags.on("daily_log")


def memory_prompt(
    directory: Path, transcripts: Path, flags: PrefixFlags, tools: Collection[str], guidelines: str = ""
) -> MemoryPrompt:
    """The memory section for `directory`, which is made if it is missing. `transcripts` is the folder of earlier
    conversations; `tools` are the names of the model's tools. A folder that cannot be made is a diagnostic, and the
    section is still rendered."""
    team, log = uses_team(flags), flags.on("daily_log")
    diagnostics = _make_folder(directory / TEAM if team else directory)
    rules, cut = _guidelines(guidelines)
    sections = [
        _where(directory, team=team, log=log),
        _piece("purpose.md"),
        _piece("on_request_log.md" if log else "on_request.md"),
        _piece("belongs_log.md" if log else "types.md"),
        _piece("scopes.md") if team else "",
        _piece("not_saved.md"),
        _how_to_save(directory) if log else _piece("how_to_save.md"),
        _piece("when_to_use.md"),
        _piece("verify.md"),
        _piece("not_memory.md"),
        _piece("guidelines.md", guidelines=rules) if rules else "",
        _search(directory, transcripts, tools) if flags.on("search_past_context") else "",
    ]
    return MemoryPrompt("\n\n".join(filter(None, sections)), (*diagnostics, *cut))


def _make_folder(folder: Path) -> tuple[str, ...]:
    try:
        make_private_dir(folder)
    except StorageError as error:
        return (f"{error} Nothing can be remembered until this is fixed.",)
    return ()


def _where(directory: Path, *, team: bool, log: bool) -> str:
    if team:
        return _piece("where_team.md", directory=str(directory), team=str(directory / TEAM))
    return _piece("where_log.md" if log else "where.md", directory=str(directory))


def _how_to_save(directory: Path) -> str:
    return _piece("how_to_save_log.md", pattern=f"{directory}/{LOG_PATTERN}")


def _search(directory: Path, transcripts: Path, tools: Collection[str]) -> str:
    """How to search earlier work with the model's tools; empty if it has none for it."""
    if "Grep" in tools:
        return _piece("search_tools.md", directory=str(directory), transcripts=str(transcripts))
    if "Bash" in tools:
        quoted = {"directory": shlex.quote(str(directory)), "transcripts": shlex.quote(str(transcripts))}
        return _piece("search_shell.md", **quoted)
    return ""


def _guidelines(text: str) -> tuple[str, tuple[str, ...]]:
    raw = text.strip().encode("utf-8", "replace")
    if len(raw) <= GUIDELINES_BYTES:
        return text.strip(), ()
    kept = raw[:GUIDELINES_BYTES].decode("utf-8", "ignore").rstrip()
    return kept, (f"The memory guidelines have {len(raw):,} bytes; only the first {GUIDELINES_BYTES:,} are used.",)


def _piece(name: str, **values: str) -> str:
    return render("reverie.memory", name, values)
