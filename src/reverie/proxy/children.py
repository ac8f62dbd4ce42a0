"""How a client is told to use the proxy: by its environment or its arguments, for one process only. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath

from reverie.models.wire import as_object
from reverie.parsing import Unparsable, load_json
from reverie.quick import dataclass
from reverie.types import JsonObject


@dataclass(frozen=True, slots=True)
class Child:
    """What to start: the arguments, and the variables that are added to the environment."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]


def child_of(arguments: Sequence[str], url: str, environment: Mapping[str, str]) -> Child:
    """The client behind the proxy at `url`. A client that we do not know gets the usual variables."""
    program = PurePath(arguments[0]).name.removesuffix(".exe").removesuffix(".cmd")
    usual = {"ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": f"{url}/v1"}
    match program:
        case "codex":
            return Child((arguments[0], *_codex(url), *arguments[1:]), {})
        case "opencode":
            return Child(tuple(arguments), {"OPENCODE_CONFIG_CONTENT": _opencode(url, environment)})
        case "aider":
            return Child(tuple(arguments), {**usual, "ANTHROPIC_API_BASE": url, "OPENAI_API_BASE": f"{url}/v1"})
        case _:
            return Child(tuple(arguments), usual)


def _codex(url: str) -> tuple[str, ...]:
    """A provider for this process. `codex login` is used if there is no key in the environment."""
    own = {
        "name": '"OpenAI through Reverie"',
        "base_url": f'"{url}/v1"',
        "wire_api": '"responses"',
        "env_key": '"OPENAI_API_KEY"',
    }
    given = [f"model_providers.reverie.{key}={value}" for key, value in own.items()]
    return tuple(part for one in ('model_provider="reverie"', *given) for part in ("-c", one))


def _opencode(url: str, environment: Mapping[str, str]) -> str:
    """The configuration that the user may have given in the same variable, with our addresses."""
    config: JsonObject = {}
    with suppress(Unparsable):
        config = as_object(load_json(environment.get("OPENCODE_CONFIG_CONTENT") or "{}"))
    providers = as_object(config.get("provider"))
    ours = {name: _with_address(as_object(providers.get(name)), f"{url}/v1") for name in ("anthropic", "openai")}
    return json.dumps({**config, "provider": {**providers, **ours}})


def _with_address(provider: JsonObject, url: str) -> JsonObject:
    return {**provider, "options": {**as_object(provider.get("options")), "baseURL": url}}
