"""Writes values the way TOML does, and the reference page `docs/settings.md` from the sections themselves.

A test compares the page with what this prints, so the two cannot drift apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from reverie.settings.fields import Section, Setting, list_section_settings
from reverie.settings.kinds import Choice
from reverie.settings.reach import find_reach
from reverie.settings.schema import list_sections

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEAD = """\
# Settings

*Written by `reverie settings --docs`; change the sections in `src/reverie/settings/sections.py` instead.*

`reverie settings` shows every value and where it came from. Values come from, later over earlier:

| place | file |
|---|---|
| managed | `/etc/reverie/settings.toml` |
| user | `<home>/settings.toml` (`<home>` is `REVERIE_HOME`, else `~/.reverie`) |
| project | `<checkout>/.reverie/settings.toml`, committed |
| local | `<repository>/.reverie/settings.local.toml`, then that of the worktree; not committed |
| environment | the variables below |
| command line | options of the command |

**Merging.** Lists of several places are joined, in this order and without doubles; tables of numbers are joined key by
key; anything else is replaced by the later place. So a list can only grow: nobody can take a managed `deny` rule away.

**Mistakes.** An unknown key or a value that does not fit is an error with file, line and the nearest valid key. A
variable that begins with `REVERIE_` and looks like one below, but is none, is a warning.

**Trust.** The two files in a folder may have been written by strangers: a clone, an unpacked archive. Until you say
`reverie trust` there, they can only restrict. The column *folder* says what they can do without your trust: `yes`;
`only lower`, `only higher` and `only off`, compared with your own settings and the defaults; `if trusted`: nothing;
`local, if trusted`: nothing, and in a trusted folder only in the local file. The column *could* says what a stranger
could otherwise do with it. What is ignored is told in one line; `reverie settings` and `reverie doctor` list it. Trust
is kept in `<home>/trust.json` for one folder, not for those below it, and ends when the parts that can act change.
Worktrees of a trusted repository are trusted where these parts are the same.

**Paths**: `~/` is your home; a relative path starts at the folder of the file it is written in.
"""


def format_toml(value: object) -> str:
    """A value as it would be written in a settings file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:_}"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str | Path):
        return _quote(str(value))
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        return (
            "{"
            + ", ".join(
                f"{key if _BARE.fullmatch(key) else _quote(key)} = {format_toml(item)}" for key, item in table.items()
            )
            + "}"
        )
    if isinstance(value, Section):
        return format_toml(to_json_value(value))
    if isinstance(value, tuple):
        return "[" + ", ".join(map(format_toml, cast("tuple[object, ...]", value))) + "]"
    return "(not set)"


def _quote(text: str) -> str:
    # TOML allows no bare DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def to_json_value(value: object) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Section):
        return {entry.name: to_json_value(getattr(value, entry.name)) for entry in fields(cast("Any", value))}
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, tuple):
        return [to_json_value(item) for item in cast("tuple[object, ...]", value)]
    return value


def format_default(setting: Setting, default: object) -> str:
    """A default as the reference page has it: nothing that depends on the machine."""
    return setting.default_text or format_toml(default)


def make_reference_page() -> str:
    """The whole page, as Markdown."""
    return (
        _HEAD + "".join(_format_section(name, section) for name, section in list_sections().items()) + _format_flags()
    )


def _format_section(name: str, section: type) -> str:
    lines = [f"\n## {name}", "", (section.__doc__ or "").strip(), ""]
    lines += ["| setting | default | unit | variable | folder | could | what it is |", "|---|---|---|---|---|---|---|"]
    defaults = section()
    for key, setting in list_section_settings(section).items():
        lines.append("| " + " | ".join(_format_row(f"{name}.{key}", setting, getattr(defaults, key))) + " |")
    if name == "hooks":
        lines += ["", *_format_hooks()]
    return "\n".join(lines) + "\n"


def _format_row(key: str, setting: Setting, default: object) -> Iterator[str]:
    yield f"`{key}`"
    yield f"`{format_default(setting, default)}`"
    yield setting.unit
    yield f"`{setting.env}`" + (" only" if setting.env_only else "") if setting.env else ""
    reach = find_reach(key)
    yield "" if setting.env_only else reach.rule.value
    yield "" if setting.env_only else reach.risk.value
    choices = f" One of {', '.join(setting.kind.options)}." if isinstance(setting.kind, Choice) else ""
    yield setting.help + choices + (" A flag of this name changes it at once." if setting.live else "")


_FLAGS_HEAD = """
# Flags

Kill switches: off means exactly as if absent. `reverie settings --flags` shows them. They are read through OpenFeature;
the provider that comes with Reverie takes, later over earlier, `<home>/flags.toml`, the variables `REVERIE_FLAG_<NAME>`
(dots become `_`) and `/etc/reverie/flags.toml`, so that whoever runs a fleet can stop it. There is no file by project.
The files are read again when they change: a switch works on sessions that are running. Those marked *once* shape the
prompt's prefix and are read once a session.

    dream = false
    "recall.no_index" = true      # in quotation marks,

    [extraction]                  # or as a table,
    on = true                     # where `on` is the flag of the table's own name
    noninteractive = true

    [tool_results.limits]         # numbers marked in the tables above
    Bash = 10_000

An unknown flag is a warning with the nearest name. A mistake is an error when a session starts; while one runs, the
flags stay as they were, and the user is told.

| flag | default | read | what it is |
|---|---|---|---|
"""


def _format_flags() -> str:
    from reverie.flags.registry import FLAGS

    rows = ""
    for flag in FLAGS.values():
        default, read = "on" if flag.default else "off", "once" if flag.prefix else "at each use"
        rows += f"| `{flag.name}` | {default} | {read} | {flag.help} |\n"
    return _FLAGS_HEAD + rows


def _format_hooks() -> Iterator[str]:
    from reverie.settings.sections import HookCommand

    yield "Each is a list of tables:"
    yield ""
    yield '    [[hooks.PreToolUse]]\n    matcher = "Bash"\n    command = "./check.sh"\n    timeout_s = 10'
    yield ""
    for key, setting in list_section_settings(HookCommand).items():
        unit = f" ({setting.unit})" if setting.unit else ""
        yield f"- `{key}`{unit}: {setting.help}"
