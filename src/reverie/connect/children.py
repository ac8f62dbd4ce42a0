"""How a client is told to use the proxy, for one process only: by its environment or its arguments.

The requests go on to where they would have gone without the proxy, because the key of the client belongs to that
server. It reads the settings of Codex and opencode, and changes none.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from urllib.parse import urlsplit

from reverie.connect.json_text import get_value, without_comments
from reverie.errors import UserError
from reverie.models.registry import check_url
from reverie.models.sdk import strip_secrets
from reverie.models.wire import as_object
from reverie.parsing import load_json, load_toml
from reverie.proxy.server import ANTHROPIC_PATH
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.runtime.loopback import is_here
from reverie.types import Json, JsonObject

_ANTHROPIC = "https://api.anthropic.com"
_OPENAI = "https://api.openai.com/v1"
_ANTHROPIC_NAMES = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE")
_OPENAI_NAMES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
"""The variables that clients read; the first one is the usual name."""
_ADVICE = "give the address with `reverie proxy --upstream`"
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Child:
    """What to start: the arguments, and the variables that are added to the environment."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    upstreams: Mapping[str, str]
    """Where its requests go, by API."""


@dataclass(frozen=True, slots=True)
class _Base:
    """A base URL as a client has it, with or without the version: it adds `/messages` or `/v1/messages` to it."""

    upstream: str
    """The address without the version."""
    version: str

    def at(self, url: str) -> str:
        """What the client gets in its place, so that the proxy sees the paths that the upstream has."""
        return url + self.version


class _Set:
    """The base URLs that the user has set. What names the proxy itself is not set: clients of it have that."""

    def __init__(self, url: str, upstream: str) -> None:
        self._url = url
        self._upstream = upstream

    def base(self, given: Mapping[str, str], default: str) -> _Base:
        """The base URL of a client, from where it may be set (by the name of that place), or its `default`. With
        `--upstream`, only the version of the default counts."""
        if self._upstream:
            return _Base(self._upstream, _read(default).version)
        found = {name: _read(text, name) for name, text in given.items() if text.strip()}
        found = {name: base for name, base in found.items() if not self._is_own(base.upstream)}
        if len(set(found.values())) > 1:
            raise UserError(f"{' and '.join(found)} are different addresses: unset one of them, or {_ADVICE}.")
        return next(iter(found.values()), _read(default))

    def _is_own(self, address: str) -> bool:
        own, other = urlsplit(self._url), urlsplit(address)
        near = own.netloc == other.netloc or (is_here(own.netloc) and is_here(other.netloc))
        return near and own.port == other.port


def _read(text: str, name: str = "") -> _Base:
    try:
        address = check_upstream(text, name)
    except UserError as error:
        raise UserError(f"{str(error).rstrip('.')}, or {_ADVICE}.") from error
    version = "/v1" if address.endswith("/v1") else ""
    return _Base(address.removesuffix(version), version)


def check_upstream(address: str, name: str) -> str:
    """The address of a server without a slash at its end. Raises `UserError` if it is none; `name` says what it is."""
    text = address.strip().rstrip("/")
    check_url(text, name)
    if (parts := urlsplit(text)).query or parts.fragment:
        raise UserError(f"{name} is {strip_secrets(text)!r} with a query: write it without one.")
    return text


def upstreams_of(url: str, environment: Mapping[str, str], upstream: str = "") -> dict[str, str]:
    """Where the requests of clients go that have the proxy at `url` in these variables: to `upstream`, to what the
    variables say now, or to the vendors."""
    return _upstreams(*_bases(_Set(url, upstream), environment))


def _bases(chosen: _Set, environment: Mapping[str, str]) -> tuple[_Base, _Base]:
    return (
        chosen.base(_given(environment, _ANTHROPIC_NAMES), _ANTHROPIC),
        chosen.base(_given(environment, _OPENAI_NAMES), _OPENAI),
    )


def _given(environment: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {name: environment.get(name, "") for name in names}


def _for_anthropic(url: str) -> str:
    """The address for clients of Anthropic's API: whatever they ask for goes to its server."""
    return f"{url}{ANTHROPIC_PATH}"


def _upstreams(anthropic: _Base, openai: _Base) -> dict[str, str]:
    return {"messages": anthropic.upstream, "chat": openai.upstream, "responses": openai.upstream}


def child_of(
    arguments: Sequence[str], url: str, environment: Mapping[str, str], *, upstream: str = "", cwd: Path | None = None
) -> Child:
    """The client behind the proxy at `url`, in the folder `cwd`. A client that we do not know gets the usual variables.
    Raises `UserError` for settings in which the address cannot be read."""
    program = PurePath(arguments[0]).name.removesuffix(".exe").removesuffix(".cmd")
    chosen = _Set(url, upstream)
    if program == "codex":
        return _codex(arguments, url, environment, chosen)
    if program == "opencode":
        return _opencode(arguments, url, environment, chosen, cwd or Path.cwd())
    anthropic, openai = _bases(chosen, environment)
    added = {
        name: base
        for names, base in ((_ANTHROPIC_NAMES, anthropic.at(_for_anthropic(url))), (_OPENAI_NAMES, openai.at(url)))
        for name in names
        if name == names[0] or environment.get(name) or program == "aider"
    }
    return Child(tuple(arguments), added, _upstreams(anthropic, openai))


def _last(layers: Sequence[Json], *route: str) -> str:
    """The text at the end of a route, in the last layer of settings that has one there; else empty."""
    texts = (value for layer in reversed(layers) if isinstance(value := get_value(layer, route), str) and value)
    return next(texts, "")


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 (it has no other environment)


# Codex.


def _codex(arguments: Sequence[str], url: str, environment: Mapping[str, str], chosen: _Set) -> Child:
    """A provider of the user gets our address, and keeps its keys and headers. The one of OpenAI cannot be changed: a
    provider for this process is in its place. A provider of Codex itself on this machine is left alone."""
    layers = list(_codex_settings(arguments, environment))
    openai, settings = chosen.base({}, _OPENAI), dict[str, str]()
    provider = _last(layers, "model_provider") or "openai"
    if provider == "openai":
        own = _last(layers, "openai_base_url")
        openai = chosen.base({"openai_base_url of Codex": own} if own else _given(environment, _OPENAI_NAMES), _OPENAI)
        settings = {
            "model_provider": '"reverie"',
            "model_providers.reverie.name": '"OpenAI through Reverie"',
            "model_providers.reverie.base_url": f'"{openai.at(url)}"',
            "model_providers.reverie.wire_api": '"responses"',
            "model_providers.reverie.env_key": '"OPENAI_API_KEY"',
        }
    elif (own := _last(layers, "model_providers", provider, "base_url")) and _PLAIN_KEY.fullmatch(provider):
        openai = chosen.base({f"base_url of {provider}": own}, _OPENAI)
        settings = {f"model_providers.{provider}.base_url": f'"{openai.at(url)}"'}
    options = (part for key, value in settings.items() for part in ("-c", f"{key}={value}"))
    return Child((arguments[0], *options, *arguments[1:]), {}, _upstreams(chosen.base({}, _ANTHROPIC), openai))


def _codex_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[Json]:
    """The settings of Codex, later ones win: of the system, of the user, of the profile, and of the command line. Those
    of a project cannot name a server."""
    home = Path(environment.get("CODEX_HOME") or _home(environment) / ".codex")
    files = [_toml(Path("/etc/codex/config.toml")), _toml(home / "config.toml")]
    yield from files
    profile = "".join([*_options(arguments, "-p", "--profile")][-1:]) or _last(files, "profile")
    if profile:
        yield from (get_value(one, ("profiles", profile)) for one in files)
        if _PLAIN_KEY.fullmatch(profile):
            yield _toml(home / f"{profile}.config.toml")
    for option in _options(arguments, "-c", "--config"):
        key, _, text = option.partition("=")
        try:
            value: Json = load_toml(f"value = {text}")["value"]
        except ValueError:
            value = text.strip()
        for name in reversed(key.strip().split(".")):
            value = {name: value}
        yield value


def _options(arguments: Sequence[str], short: str, long: str) -> Iterator[str]:
    """The values of an option, in each of its spellings."""
    for one, following in zip(arguments[1:], [*arguments[2:], ""], strict=False):
        if one in (short, long):
            yield following
        elif one.startswith(f"{long}="):
            yield one.removeprefix(f"{long}=")
        elif one.startswith(short) and not one.startswith("--"):
            yield one.removeprefix(short).removeprefix("=")


def _toml(path: Path) -> JsonObject:
    try:
        return load_toml(read_regular_text(path))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read, so its address is unknown ({error}): {_ADVICE}.") from error


# opencode.


def _opencode(arguments: Sequence[str], url: str, environment: Mapping[str, str], chosen: _Set, cwd: Path) -> Child:
    """The configuration that the user may have given in the variable, with our addresses."""
    layers = [_jsonc(path) for path in _opencode_files(environment, cwd)]
    config = _parse_jsonc(environment.get("OPENCODE_CONFIG_CONTENT") or "{}", "OPENCODE_CONFIG_CONTENT")
    providers, bases = as_object(config.get("provider")), dict[str, _Base]()
    defaults = (
        ("anthropic", _ANTHROPIC_NAMES[0], f"{_ANTHROPIC}/v1", _for_anthropic(url)),
        ("openai", _OPENAI_NAMES[0], _OPENAI, url),
    )
    for name, variable, default, ours in defaults:
        own = _last([*layers, config], "provider", name, "options", "baseURL")
        own = re.sub(r"\{env:([^}]+)\}", lambda match: environment.get(match[1], ""), own)
        where = f"baseURL of {name} in the settings of opencode" if own else variable
        bases[name] = chosen.base({where: own or environment.get(variable, "")}, default)
        provider = as_object(providers.get(name))
        options = {**as_object(provider.get("options")), "baseURL": bases[name].at(ours)}
        providers = {**providers, name: {**provider, "options": options}}
    added = {"OPENCODE_CONFIG_CONTENT": json.dumps({**config, "provider": providers})}
    return Child(tuple(arguments), added, _upstreams(bases["anthropic"], bases["openai"]))


def _opencode_files(environment: Mapping[str, str], cwd: Path) -> Iterator[Path]:
    """The settings files of opencode, later ones win: of the user, of the variable, of the project."""
    names = ("config.json", "opencode.json", "opencode.jsonc")
    config = Path(environment.get("XDG_CONFIG_HOME") or _home(environment) / ".config")
    yield from (config / "opencode" / name for name in names)
    if given := environment.get("OPENCODE_CONFIG"):
        yield Path(given)
    folders = [*reversed(cwd.parents), cwd]
    yield from (folder / name for folder in folders for name in names[1:])
    yield from (folder / ".opencode" / name for folder in folders for name in names[1:])


def _jsonc(path: Path) -> JsonObject:
    try:
        return _parse_jsonc(read_regular_text(path), str(path))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UserError(f"{path} cannot be read, so its address is unknown ({error}): {_ADVICE}.") from error


def _parse_jsonc(text: str, where: str) -> JsonObject:
    try:
        return as_object(load_json(without_comments(text)))
    except ValueError as error:
        raise UserError(f"{where} cannot be read, so its address is unknown ({error}): {_ADVICE}.") from error
