"""Reads settings: managed, user, project and local files, then the environment, then the command line; later wins.

Lists are joined, tables are joined key by key, everything else is replaced. A mistake is an error of one sentence. In a
folder that is not trusted, values that can act are ignored with a warning.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, cast

from reverie import paths
from reverie.errors import SettingsError
from reverie.quick import dataclass
from reverie.settings.fields import Setting, list_section_settings
from reverie.settings.kinds import Counts, Frame, Misfit
from reverie.settings.schema import Settings, get_value, list_sections, list_settings
from reverie.settings.sections import INSIDE
from reverie.settings.toml_file import KeyPath, TomlFile, format_key

if TYPE_CHECKING:
    from reverie.settings.claude_files import JsonFile
    from reverie.settings.trust import ActingPart

Place: TypeAlias = Literal["default", "managed", "user", "project", "local", "environment", "command line"]

MANAGED = Path("/etc/reverie")
FLAG_PREFIX = "REVERIE_FLAG_"

_OWN_PREFIX = "REVERIE_"
_RETIRED = {"trust.projects": "is no longer read; run `reverie trust` in each of these folders, and remove it here"}
"""Settings of earlier versions: they do no harm, and a warning says what to do instead."""


@dataclass(frozen=True, slots=True)
class SettingSource:
    """The source of a value. `str(source)` is `file:line`, the variable, or the place."""

    place: Place
    file: TomlFile | JsonFile | None = None
    path: KeyPath = ()
    variable: str = ""

    def __str__(self) -> str:
        if self.file is not None:
            return f"{self.file.path}:{self.file.line(self.path)}"
        return f"{self.place} {self.variable}" if self.variable else self.place


DEFAULT = SettingSource("default")


@dataclass(frozen=True, slots=True)
class ExplainedSetting:
    """One setting with its value and sources. `shown` hides credentials."""

    key: str
    value: object
    sources: tuple[SettingSource, ...]
    setting: Setting
    ignored: tuple[ActingPart, ...] = ()
    """The ignored values from the folder's files."""

    @property
    def source(self) -> str:
        return ", ".join(map(str, self.sources))

    @property
    def shown(self) -> object:
        if self.setting.secret:
            return "(set, hidden)" if self.value else ""
        return self.value


@dataclass(frozen=True, slots=True)
class GivenValue:
    """One value as written, not yet checked."""

    key: str
    value: object
    source: SettingSource
    frame: Frame


CheckedValue: TypeAlias = tuple[GivenValue, object]


def is_inside() -> bool:
    """Whether this process runs inside of a program that a model has started; without files, which may be broken."""
    return bool(os.environ.get(INSIDE))


def load_settings(
    cwd: Path,
    *,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
    managed_dir: Path | None = None,
    home: Path | str | None = None,
) -> Settings:
    """Returns the settings for `cwd`; raises `SettingsError` for a file, variable or override that cannot be used.

    `overrides` are `section.key` → value from the command line. `Settings.warnings` names the ignored values. `home`
    replaces that of the environment.
    """
    env = _with_home(os.environ if env is None else env, home)
    user_home = paths.user_home(env)
    home = paths.reverie_home(env)
    repo = paths.find_repo(cwd)
    if home.exists() and not home.is_dir():
        raise SettingsError(f"{home}: this is a file, and Reverie's home is a folder; move it, or set REVERIE_HOME.")
    values: dict[str, object] = {"places.home": home, "places.user_home": user_home}
    sources = {
        key: (SettingSource("environment", variable=name),)
        for key, name in (("places.home", "REVERIE_HOME"), ("places.user_home", "HOME"))
        if env.get(name)
    }
    warnings: list[str] = []

    def take(given: Iterable[GivenValue]) -> None:
        for one in given:
            _merge(one, check_value(one), values, sources)

    def frame_of(folder: Path) -> Frame:
        return Frame(folder, user_home)

    for place, path in (("managed", (managed_dir or MANAGED) / "settings.toml"), ("user", home / "settings.toml")):
        file = TomlFile.read(path)
        if file is not None:
            take(_read_file(cast("Place", place), file, frame_of(path.parent), warnings))
    last = [*_read_env(env, frame_of(cwd)), *_read_overrides(overrides or {}, frame_of(cwd))]
    found = [
        (folder, [(one, check_value(one)) for one in _read_file(place, file, frame_of(path.parent), warnings)])
        for place, folder, path in _list_folder_files(home, repo)
        if (file := TomlFile.read(path)) is not None
    ]
    switches = {**values, **{one.key: check_value(one) for one in last if one.key.startswith(("claude.", "places."))}}
    claude_home = cast("Path | None", switches.get("places.claude")) or user_home / ".claude"
    foreign: list[CheckedValue] = []
    if existing := _find_claude_files(claude_home, repo):
        from reverie.settings.claude_files import read_claude_files

        foreign, theirs = read_claude_files(existing, claude_home, switches, frame_of, warnings)
        found += theirs
    parts: tuple[ActingPart, ...] = ()
    if found:
        # Imported here, because most folders have no settings.
        from reverie.settings.folder import judge_folder

        base = dict(values)
        _merge_foreign(foreign, base, dict(sources))
        judged = judge_folder(found, base, home, repo)
        parts = judged.parts
        warnings.extend(judged.warnings)
        for one, value in judged.counted:
            if _is_foreign(one.source):
                foreign.append((one, value))
            else:
                _merge(one, value, values, sources)
    _merge_foreign(foreign, values, sources)
    take(last)
    warnings.extend(_find_misspelt(env))
    return _build(values, sources, tuple(warnings), parts, env)


def find_home(given: Path | str | None = None) -> Path:
    """Returns Reverie's home, for those who use no other setting. `given` replaces that of the environment."""
    return paths.reverie_home(_with_home(os.environ, given))


def _with_home(env: Mapping[str, str], home: Path | str | None) -> Mapping[str, str]:
    """The environment with the home that a program gives; unlike that of the environment, it may be relative."""
    return env if home is None else {**env, "REVERIE_HOME": str(Path(home).expanduser().absolute())}


def explain_settings(settings: Settings) -> list[ExplainedSetting]:
    """Returns every setting with its value and sources, in the order of the reference page."""
    ignored: dict[str, tuple[ActingPart, ...]] = {}
    for part in settings.parts:
        if part.ignored:
            ignored[part.key] = (*ignored.get(part.key, ()), part)
    return [
        ExplainedSetting(
            key, get_value(settings, key), settings.sources.get(key, (DEFAULT,)), setting, ignored.get(key, ())
        )
        for key, setting in list_settings().items()
    ]


def settings_files(cwd: Path, home: Path) -> list[Path]:
    """Returns every file, there or not, that decides the settings of `cwd`: who keeps settings looks for changes."""
    repo = paths.find_repo(cwd)
    own = [path for _, _, path in _list_folder_files(home, repo)]
    return [MANAGED / "settings.toml", home / "settings.toml", home / "trust.json", *own]


def _list_folder_files(home: Path, repo: paths.Repo) -> Iterator[tuple[Place, Path, Path]]:
    """Yields the place, the folder and the path of each settings file in the folder."""
    committed = repo.checkout / ".reverie" / "settings.toml"
    # In the user's home folder the project's file is the user's file.
    if not paths.same(committed, home / "settings.toml"):
        yield "project", repo.checkout, committed
    for folder in dict.fromkeys((repo.root, repo.checkout)):
        yield "local", folder, folder / ".reverie" / "settings.local.toml"


def _find_claude_files(home: Path, repo: paths.Repo) -> list[tuple[Place, Path, Path]]:
    """Returns the same for the files of Claude Code that exist; the user's own one is below `home`."""
    project = repo.checkout / ".claude" / "settings.json"
    listed: list[tuple[Place, Path, Path]] = [("user", repo.checkout, home / "settings.json")]
    listed.append(("project", repo.checkout, project))
    for folder in dict.fromkeys((repo.root, repo.checkout)):
        listed.append(("local", folder, folder / ".claude" / "settings.local.json"))
    return [one for one in listed if os.path.exists(one[2])]  # noqa: PTH110 (False where we may not look)


def _is_foreign(source: SettingSource) -> bool:
    return source.file is not None and not isinstance(source.file, TomlFile)


def _merge_foreign(
    pairs: Iterable[CheckedValue], values: dict[str, object], sources: dict[str, tuple[SettingSource, ...]]
) -> None:
    """Joins lists. A single value counts only if no file of ours sets it."""
    for one, value in pairs:
        is_wanted = values.get(f"claude.{one.key.split('.')[0]}", True)
        is_ours = not list_settings()[one.key].adds_up and not all(map(_is_foreign, sources.get(one.key, ())))
        if is_wanted and not is_ours:
            _merge(one, value, values, sources)


def _read_file(place: Place, file: TomlFile, frame: Frame, warnings: list[str]) -> Iterator[GivenValue]:
    for name, table in file.data.items():
        section = list_sections().get(name)
        where = f"{file.path}:{file.line((name,))}"
        if section is None:
            retired = _find_retired(name, table)
            if not retired:
                _refuse_unknown(where, name, name)
            warnings.extend(f"{where}: `{key}` {_RETIRED[key]}." for key in retired)
            continue
        if not isinstance(table, dict):
            raise SettingsError(f"{where}: `{name}` is a section; write [{name}] and its settings below.")
        for key, value in cast("dict[str, object]", table).items():
            full = f"{name}.{key}"
            source = SettingSource(place, file, (name, key))
            if key not in list_section_settings(section):
                _refuse_unknown(str(source), full, key, name)
            setting = list_settings()[full]
            if setting.env_only:
                raise SettingsError(f"{source}: `{full}` cannot be set in a file; set the variable {setting.env}.")
            yield GivenValue(full, value, source, frame)


def _find_retired(name: str, table: object) -> list[str]:
    """Returns the keys of an unknown section, if all of them are from earlier versions."""
    keys = [f"{name}.{key}" for key in cast("dict[str, object]", table)] if isinstance(table, dict) else []
    return keys if all(key in _RETIRED for key in keys) else []


def _read_env(env: Mapping[str, str], frame: Frame) -> Iterator[GivenValue]:
    for key, setting in list_settings().items():
        if setting.env and env.get(setting.env) and key not in ("places.home", "places.user_home"):
            source = SettingSource("environment", variable=setting.env)
            yield GivenValue(key, setting.kind.from_text(env[setting.env]), source, frame)


def _read_overrides(overrides: Mapping[str, object], frame: Frame) -> Iterator[GivenValue]:
    for key, value in overrides.items():
        setting = list_settings().get(key)
        if setting is None:
            _refuse_unknown("command line", key, key.rsplit(".", 1)[-1], key.split(".", 1)[0])
        given = setting.kind.from_text(value) if isinstance(value, str) else value
        yield GivenValue(key, str(given) if isinstance(given, Path) else given, SettingSource("command line"), frame)


def check_value(given: GivenValue) -> object:
    """Returns the value of a setting; raises `SettingsError` if what is written does not fit."""
    setting = list_settings()[given.key]
    try:
        return setting.kind.check(given.value, given.frame)
    except Misfit as misfit:
        key = given.key + "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in misfit.at)
        source = given.source
        where = str(SettingSource(source.place, source.file, (*source.path, *misfit.at), source.variable))
        if misfit.unknown is not None:
            hint = _make_hint(find_nearest(misfit.unknown, misfit.valid), misfit.valid)
            raise SettingsError(f"{where}: unknown key `{format_key(key)}`; {hint}") from misfit
        shown = "hidden" if setting.secret else _shorten(reduce(getitem, misfit.at, cast("Any", given.value)))
        raise SettingsError(f"{where}: `{format_key(key)}` is {shown}, but must be {misfit.wanted}.") from misfit


def _merge(
    given: GivenValue, value: object, values: dict[str, object], sources: dict[str, tuple[SettingSource, ...]]
) -> None:
    setting, before = list_settings()[given.key], values.get(given.key)
    earlier = sources.get(given.key, ())
    if setting.adds_up and before is not None:
        items = cast("tuple[object, ...]", before) + cast("tuple[object, ...]", value)
        values[given.key] = tuple(dict.fromkeys(items))
        sources[given.key] = (*earlier, given.source)
    elif isinstance(setting.kind, Counts):
        defaults = cast("Mapping[str, int]", before or get_value(Settings(), given.key))
        values[given.key] = MappingProxyType({**defaults, **cast("Mapping[str, int]", value)})
        sources[given.key] = (*earlier, given.source)
    else:
        values[given.key] = value
        sources[given.key] = (given.source,)


def _build(
    values: Mapping[str, object],
    sources: Mapping[str, tuple[SettingSource, ...]],
    warnings: tuple[str, ...],
    parts: tuple[ActingPart, ...],
    env: Mapping[str, str],
) -> Settings:
    built: dict[str, Any] = {}
    for name, section in list_sections().items():
        given = {key: values[f"{name}.{key}"] for key in list_section_settings(section) if f"{name}.{key}" in values}
        built[name] = section(**given)
    flags = {name: value for name, value in env.items() if name.startswith(FLAG_PREFIX)}
    return Settings(
        **built,
        warnings=warnings,
        parts=parts,
        flag_env=MappingProxyType(flags),
        env=MappingProxyType(dict(env)),
        sources=MappingProxyType(dict(sources)),
    )


def _find_misspelt(env: Mapping[str, str]) -> Iterator[str]:
    """Yields a warning for each variable whose name is almost one of ours."""
    ours = {setting.env for setting in list_settings().values() if setting.env}
    known = [name.removeprefix(_OWN_PREFIX) for name in ours if name.startswith(_OWN_PREFIX)]
    for name in sorted(env):
        if name in ours or not name.startswith(_OWN_PREFIX) or name.startswith(FLAG_PREFIX):
            continue
        near = find_nearest(name.removeprefix(_OWN_PREFIX), known, likeness=0.75)
        if near:
            yield f"environment {name}: unknown variable, ignored; did you mean {_OWN_PREFIX}{near}?"


def find_nearest(name: str, valid: Iterable[str], likeness: float = 0.6) -> str | None:
    """Returns the valid name that is most similar to `name`, if there is one."""
    import difflib

    by_case = {candidate.lower(): candidate for candidate in valid}
    near = difflib.get_close_matches(name.lower(), by_case, n=1, cutoff=likeness)
    return by_case[near[0]] if near else None


def _refuse_unknown(where: str, full: str, key: str, section: str = "") -> NoReturn:
    """Raises an error with the most similar key: in this section, in another one, or by its whole name."""
    here = list_sections().get(section)
    keys = list(list_section_settings(here)) if here else list(list_sections())
    near = find_nearest(key, keys)
    if near:
        near = f"{section}.{near}" if here else near
    else:
        by_last = {name.split(".", 1)[1]: name for name in list_settings()}
        moved = find_nearest(key, by_last)
        near = by_last[moved] if moved else find_nearest(full, list_settings())
    raise SettingsError(f"{where}: unknown key `{format_key(full)}`; {_make_hint(near, keys)}")


def _make_hint(near: str | None, valid: Iterable[str]) -> str:
    return f"did you mean `{near}`?" if near else f"known here: {', '.join(valid)}."


def _shorten(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:79] + "…"


def wants_colour(is_terminal: bool) -> bool:
    """Whether to use colour: on a terminal unless NO_COLOR is set, elsewhere only with FORCE_COLOR."""
    get = os.environ.get
    return not get("NO_COLOR") and (bool(get("FORCE_COLOR")) or (is_terminal and get("TERM") != "dumb"))


def is_simple_terminal() -> bool:
    """Whether the terminal can only write lines."""
    return os.environ.get("TERM") in ("dumb", "unknown")


def find_editor() -> str:
    """Returns the command that edits a file: VISUAL, else EDITOR, else vi."""
    return os.environ.get("VISUAL", "").strip() or os.environ.get("EDITOR", "").strip() or "vi"


def find_claude_session() -> str:
    """Returns the id of the session of Claude Code that started this process; empty if it was not Claude Code."""
    return os.environ.get("CLAUDE_CODE_SESSION_ID", "").strip()
