"""`reverie settings`: every setting and flag, its value, and where it comes from. Credentials are never shown."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click

from reverie.cli.app import unknown_name
from reverie.cli.options import cwd_option, examples, json_option
from reverie.cli.output import answer
from reverie.cli.screen import json_text, printable
from reverie.errors import UserError
from reverie.settings import ExplainedSetting, Settings, explain_settings, load_settings
from reverie.settings.reach import find_reach
from reverie.settings.reference import format_default, format_toml, make_reference_page, to_json_value
from reverie.settings.schema import get_value


@examples(
    "reverie settings", "reverie settings window", "reverie settings model.name --json", "reverie settings --flags"
)
@click.command("settings")
@click.argument("key", required=False)
@json_option
@click.option("--flags", "show_flags", is_flag=True, help="Show the flags: kill switches that switch a feature off.")
@click.option("--docs", is_flag=True, help="Print the reference page (docs/settings.md).")
@cwd_option
def command(key: str | None, as_json: bool, show_flags: bool, docs: bool, cwd: Path) -> None:
    """Show every setting and where its value comes from.

    KEY is one setting (model.name) or a whole section (model).

    Exit codes: 0: done; 2: wrong usage, a settings file has a mistake, or KEY is unknown.
    """
    if docs and as_json:
        raise click.UsageError("--docs prints a Markdown page; it cannot be combined with --json.")
    if docs:
        click.echo(make_reference_page(), nl=False)
        return
    settings = load_settings(cwd)
    if show_flags:
        _show_flags(settings, cwd, key, as_json)
        return
    chosen = _select(explain_settings(settings), key)
    if as_json:
        answer(True, {"settings": [_as_json(one) for one in chosen], "warnings": list(settings.warnings)})
        return
    for warning in settings.warnings:
        _say(f"warning: {warning}", err=True)
    if len(chosen) == 1 and chosen[0].key == key:
        _show_one(chosen[0])
    else:
        _show_all(chosen)


def _say(line: str, *, err: bool = False) -> None:
    click.echo(printable(line), err=err)


def _select(all_of_them: list[ExplainedSetting], key: str | None) -> list[ExplainedSetting]:
    if key is None:
        return all_of_them
    chosen = [one for one in all_of_them if one.key == key or one.key.startswith(f"{key}.")]
    if not chosen:
        from reverie.settings.loading import find_nearest

        sections = {one.key.split(".")[0] for one in all_of_them}
        near = find_nearest(key, (*(one.key for one in all_of_them), *sorted(sections)))
        hint = f"did you mean {near}?" if near else "`reverie settings` lists them all."
        raise UserError(f"There is no setting {key!r}; {hint}")
    return chosen


def _text(one: ExplainedSetting) -> str:
    return str(one.shown) if one.setting.secret and one.value else format_toml(one.shown)


def _show_all(chosen: list[ExplainedSetting]) -> None:
    width = max(len(one.key) for one in chosen)
    for one in chosen:
        _say(f"{one.key:<{width}} = {_text(one)}  # {one.source}")
        _show_ignored(one, width + 1)


def _show_ignored(one: ExplainedSetting, indent: int) -> None:
    for part in one.ignored:
        value = "(hidden)" if part.value is None else json_text(part.value)
        _say(f"{'':<{indent}}ignored: {value}  # {part.where}: {part.ignored}")


def _show_one(one: ExplainedSetting) -> None:
    setting = one.setting
    _say(f"{one.key} = {_text(one)}  # {one.source}")
    _show_ignored(one, 2)
    _say(f"  {setting.help}" + (f" In {setting.unit}." if setting.unit else ""))
    _say(f"  default {format_default(setting, get_value(Settings(), one.key))}; {setting.kind.wanted}")
    if setting.env:
        _say(f"  variable {setting.env}" + (" (only there)" if setting.env_only else ""))
    if not setting.env_only:
        reach = find_reach(one.key)
        _say(f"  settable by a folder's files before you trust it: {reach.rule.value} (could {reach.risk.value})")


def _as_json(one: ExplainedSetting) -> dict[str, Any]:
    return {
        "key": one.key,
        "value": to_json_value(one.shown),
        "source": one.source,
        "places": [source.place for source in one.sources],
        "unit": one.setting.unit,
        "variable": one.setting.env,
        "help": one.setting.help,
        "folder": find_reach(one.key).rule.value,
        "could": find_reach(one.key).risk.value,
        "ignored": [{"where": part.where, "value": part.value, "why": part.ignored} for part in one.ignored],
    }


def _show_flags(settings: Settings, cwd: Path, key: str | None, as_json: bool) -> None:
    from reverie.flags import FLAGS, Flags
    from reverie.paths import Places

    with closing(Flags.open(Places.of(cwd, settings), settings)) as flags:
        found, numbers = flags.all(), flags.numbers()
        warnings = (*settings.warnings, *flags.warnings)
    if key is not None:
        if key not in found:
            raise UserError(unknown_name("flag", key, found))
        found, numbers = {key: found[key]}, {}
    if as_json:
        listed = [
            {"name": name, "on": on, "source": source, "default": FLAGS[name].default, "help": FLAGS[name].help}
            for name, (on, source) in found.items()
        ]
        changed = [{"name": name, "value": value, "source": source} for name, (value, source) in numbers.items()]
        answer(True, {"flags": listed, "numbers": changed, "warnings": warnings})
        return
    for warning in warnings:
        _say(f"warning: {warning}", err=True)
    width = max(map(len, found))
    for name, (on, source) in found.items():
        _say(f"{name:<{width}} = {'on ' if on else 'off'}  # {source}: {FLAGS[name].help}")
    for name, (value, source) in numbers.items():
        _say(f"{name} = {value}  # {source}")
