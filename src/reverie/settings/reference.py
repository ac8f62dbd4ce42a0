"""Formats values as TOML, and writes the reference page `docs/settings.md` from the sections."""

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

`reverie settings` shows every value and its source. Values come from these places; later places win:

| place | file |
|---|---|
| managed | `/etc/reverie/settings.toml` |
| user | `<home>/settings.toml` (`<home>` is `REVERIE_HOME`, else `~/.reverie`) |
| project | `<checkout>/.reverie/settings.toml`, committed |
| local | `<repository>/.reverie/settings.local.toml`, then that of the worktree; not committed |
| environment | the variables below |
| command line | options of the command |

**Merging.** Lists of several places are joined in this order, without duplicates. Tables of numbers are joined key by
key. Other values are replaced by the later place. So a list can only grow: a managed `deny` rule cannot be removed.

**Mistakes.** An unknown key or a value that does not fit is an error with file, line and the most similar valid key. A
variable that begins with `REVERIE_` and is similar to one below, but not the same, is a warning.

**Trust.** Strangers may have written the two files in a folder: a clone, an unpacked archive. Until you run
`reverie trust` there, the files can only restrict. The column *folder* says what they can do without your trust: `yes`;
`only lower`, `only higher` and `only off`, compared with your own settings and the defaults; `if trusted`: nothing;
`local, if trusted`: nothing, and in a trusted folder only in the local file. The column *could* says what a stranger
could otherwise do with it. A line names the ignored settings; `reverie settings` and `reverie doctor` list them. Trust
is stored in `<home>/trust.json` for one folder, not for folders below it. It ends when the parts that can act change.
Worktrees of a trusted repository are trusted if these parts are the same.

**Paths.** `~/` is your home. A relative path starts at the folder of the settings file.
"""


def format_toml(value: object) -> str:
    """Formats a value for a settings file."""
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
        keys = {key: key if _BARE.fullmatch(key) else _quote(key) for key in table}
        return "{" + ", ".join(f"{keys[key]} = {format_toml(item)}" for key, item in table.items()) + "}"
    if isinstance(value, Section):
        return format_toml(to_json_value(value))
    if isinstance(value, tuple):
        return "[" + ", ".join(map(format_toml, cast("tuple[object, ...]", value))) + "]"
    return "(not set)"


def _quote(text: str) -> str:
    # TOML does not allow a bare DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def to_json_value(value: object) -> Any:
    """Converts a value for JSON."""
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
    """Formats a default for the reference page, without anything that depends on the machine."""
    return setting.default_text or format_toml(default)


def make_reference_page() -> str:
    """Returns the whole page as Markdown."""
    return "".join([_HEAD, *(_format_section(*section) for section in list_sections().items()), _format_flags()])


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

Flags switch features on and off; off means exactly as if the feature did not exist. A flag is off with the one above
it: with `tool_results` off, all of layer 1 is off, and with `session_notes`, `compaction.notes`. `reverie settings
--flags` shows them. They are read through OpenFeature. The provider of Reverie reads `<home>/flags.toml`, then the
variables `REVERIE_FLAG_<NAME>` (in capitals; what is no letter or digit becomes `_`, as in
`REVERIE_FLAG_TOOL_RESULTS_LIMITS_BASH=10000`), then `/etc/reverie/flags.toml`; later ones win, so an administrator can
stop a feature on all machines. Projects have no flags file. The files are read again when they change, so a flag also
changes running sessions. Flags marked *once* change the prefix of the prompt and are read once per session.

    dream = false
    "recall.no_index" = true      # in quotation marks,

    [extraction]                  # or as a table,
    on = true                     # where `on` is the flag of the table's own name
    noninteractive = true

    [tool_results.limits]         # numbers marked in the tables above
    Bash = 10_000

An unknown flag is a warning with the most similar name. A mistake is an error when a session starts; while a session
runs, the flags do not change, and a notice names the mistake.

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
