"""From a model's name to a model: `anthropic:<model>`, `openai:<model>`, `scripted:<file>`, `embedded`.

Keys and addresses come in one small object from the settings; nothing here reads the environment. Opening a model
starts nothing but the import of its SDK.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from importlib import import_module
from typing import cast
from urllib.parse import urlsplit, urlunsplit

from reverie.errors import AuthenticationFailed, UnknownModel, UserError
from reverie.models.base import Capabilities, Model, Ttl
from reverie.models.catalogue import Catalogue, ModelFacts
from reverie.models.sdk import as_written
from reverie.settings import Settings

DEFAULT_ANTHROPIC = "anthropic:claude-sonnet-5-5"
DEFAULT_OPENAI = "openai:gpt-5.5"
EMBEDDED = "embedded"

_PROVIDERS = ("anthropic", "openai", "scripted")


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """How models are reached. A key is optional where a base URL is given: local servers want none."""

    anthropic_key: str | None = field(default=None, repr=False)
    anthropic_token: str | None = field(default=None, repr=False)
    anthropic_base_url: str | None = None
    openai_key: str | None = field(default=None, repr=False)
    openai_base_url: str | None = None
    timeout_s: float = 600.0
    cache_edits: bool = False
    """The Anthropic endpoint understands `cache_edits`."""


def model_access(settings: Settings) -> ModelAccess:
    """How the settings say that models are reached."""
    given = settings.model
    return ModelAccess(
        anthropic_key=given.anthropic_api_key or None,
        anthropic_token=given.anthropic_auth_token or None,
        anthropic_base_url=given.anthropic_base_url or None,
        openai_key=given.openai_api_key or None,
        openai_base_url=given.openai_base_url or None,
        timeout_s=given.timeout_s,
        cache_edits=given.anthropic_cache_edits,
    )


def default_model_name(access: ModelAccess) -> str:
    """The model for somebody who named none: of the provider whose key is there, else the embedded one."""
    if access.anthropic_key or access.anthropic_token:
        return DEFAULT_ANTHROPIC
    if access.openai_key:
        return DEFAULT_OPENAI
    return EMBEDDED


def open_model(name: str, access: ModelAccess, catalogue: Catalogue) -> Model:
    """Opens the model a user would call `name`; the provider may be left out for models the catalogue knows.

    Raises `UnknownModel` (with the nearest names), `MissingExtra`, `AuthenticationFailed` for a missing key, and
    `UserError` for a script that cannot be read.
    """
    provider, model = split_name(name, catalogue)
    match provider:
        case "anthropic":
            return _anthropic(model, access, catalogue.facts(model))
        case "openai":
            return _openai(model, access)
        case "scripted":
            from reverie.models.script import Script
            from reverie.models.scripted import ScriptedModel

            return ScriptedModel(Script.load(model), f"scripted:{model}")
        case _:
            return _embedded()


def split_name(name: str, catalogue: Catalogue) -> tuple[str, str]:
    """Provider and the provider's own name of a model."""
    given = name.strip()
    provider, colon, model = given.partition(":")
    if colon and provider in _PROVIDERS and model.strip():
        return provider, model.strip()
    if given == EMBEDDED:
        return EMBEDDED, EMBEDDED
    if not colon:
        facts = catalogue.facts(given)
        if facts.provider in ("anthropic", "openai"):
            return facts.provider, given
    raise UnknownModel(f"There is no model {given!r}; {_nearest(given, catalogue)}.")


def doubt_about(name: str, access: ModelAccess, catalogue: Catalogue) -> str | None:
    """One sentence about a model that the catalogue does not know, with the nearest names; None if all is well.

    Other servers than the vendor's have names of their own: there only a name that looks like a slip is told.
    """
    provider, model = split_name(name, catalogue)
    if provider not in ("anthropic", "openai") or catalogue.facts(model).known:
        return None
    known = [each for each in catalogue.names if catalogue.facts(each).provider == provider]
    near = difflib.get_close_matches(model, known, n=3, cutoff=0.6)
    if provider == "openai" and access.openai_base_url and not near:
        return None
    others = f"the nearest names are {', '.join(near)}" if near else f"it knows {', '.join(known[:3])} and others"
    return f"The catalogue does not know {provider}:{model} ({others}); it is tried as it is, with generic limits."


def _nearest(given: str, catalogue: Catalogue) -> str:
    bare = given.rpartition(":")[2] or given
    known = [known for known in catalogue.names if known != "scripted"]
    near = difflib.get_close_matches(bare, known, n=3, cutoff=0.5)
    near += [f"{provider}:<model>" for provider in difflib.get_close_matches(given.partition(":")[0], _PROVIDERS, n=1)]
    if near:
        return f"did you mean {' or '.join(near)}?".removesuffix("?") + " (provider:model names any other)"
    return "write anthropic:<model>, openai:<model>, scripted:<file> or embedded"


def _embedded() -> Model:
    """Loaded by its name, as a plug-in is: it knows the floors above this one, and they know this one."""
    return cast(Model, import_module("reverie.offline.model").EmbeddedModel())


def _checked(url: str | None, setting: str) -> None:
    """Refuses an address that no connection can be made to, before anybody waits for one."""
    if not url:
        return
    try:
        parts = urlsplit(url)
        wrong = (
            "it has blanks or control characters in it"
            if any(char.isspace() or not char.isprintable() for char in url)
            else "it does not begin with http:// or https://"
            if parts.scheme not in ("http", "https")
            else "it has no host"
            if not parts.hostname
            else "a server cannot have port 0"
            if parts.port == 0
            else ""
        )
    except ValueError as error:
        wrong = str(error)
    if wrong:
        raise UserError(
            f"{setting} is {as_written(url)!r}, which is not the address of a server ({wrong}):"
            " write it as http://HOST:PORT or https://HOST."
        )


def _anthropic(model: str, access: ModelAccess, facts: ModelFacts) -> Model:
    key, token = access.anthropic_key or None, access.anthropic_token or None
    if not (key or token or access.anthropic_base_url):
        raise _no_key("Anthropic", f"anthropic:{model}", "ANTHROPIC_API_KEY")
    _checked(access.anthropic_base_url, "ANTHROPIC_BASE_URL (model.anthropic_base_url)")
    from reverie.models.anthropic import ONE_MILLION_BETA, AnthropicModel

    capabilities = Capabilities(
        cache_markers=facts.cache_markers,
        ttls=tuple[Ttl, ...](ttl for ttl in ("5m", "1h") if ttl in facts.ttls),
        context_edits=facts.context_management,
        cache_edits=access.cache_edits,
        output_schema=True,
    )
    return AnthropicModel(
        model,
        key=key,
        token=token,
        base_url=_without_version(access.anthropic_base_url),
        timeout_s=access.timeout_s,
        capabilities=capabilities,
        betas=(ONE_MILLION_BETA,) if facts.asked_1m and facts.window_1m == "beta" else (),
    )


def _openai(model: str, access: ModelAccess) -> Model:
    key = access.openai_key or None
    if not (key or access.openai_base_url):
        raise _no_key("OpenAI", f"openai:{model}", "OPENAI_API_KEY")
    _checked(access.openai_base_url, "OPENAI_BASE_URL (model.openai_base_url)")
    from reverie.models.openai import OpenAIModel

    return OpenAIModel(model, key=key, base_url=_with_version(access.openai_base_url), timeout_s=access.timeout_s)


def _no_key(vendor: str, name: str, variable: str) -> AuthenticationFailed:
    return AuthenticationFailed(
        f"There is no {vendor} key for {name}: set {variable}, or a base URL of a server that wants none,"
        " or use the model `embedded`."
    )


def _without_version(url: str | None) -> str | None:
    """The SDK adds `/v1` itself; people paste addresses with it."""
    return url.rstrip("/").removesuffix("/v1") if url else None


def _with_version(url: str | None) -> str | None:
    """A bare `http://localhost:11434` means its `/v1`, where every such server has its chat completions."""
    if not url:
        return None
    parts = urlsplit(url)
    return url if parts.path.strip("/") else urlunsplit(parts._replace(path="/v1"))
