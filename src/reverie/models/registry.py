"""From a model's name to a model: `anthropic:<model>`, `openai:<model>`, `claude-code:<model>`, `codex:<model>`,
`command:<program>`, `scripted:<file>`, `embedded`, or a provider that an installed package adds (`reverie.models`).

Keys and addresses come from the settings. Opening a model only starts the import of its SDK.
"""

from __future__ import annotations

import difflib
from dataclasses import field
from functools import partial
from importlib import import_module
from typing import cast
from urllib.parse import urlsplit, urlunsplit

from reverie.errors import AuthenticationFailed, UnknownModel, UserError
from reverie.models.base import Capabilities, Model, Ttl
from reverie.models.catalogue import Catalogue, ModelFacts, Provider
from reverie.models.sdk import strip_secrets
from reverie.models.window import ONE_MILLION_BETA, asked_betas
from reverie.plugins import MODELS, find_plugin, has_plugin
from reverie.quick import dataclass
from reverie.settings import Settings

DEFAULT_ANTHROPIC = "anthropic:claude-sonnet-5-5"
DEFAULT_OPENAI = "openai:gpt-5.5"
EMBEDDED = "embedded"

_SUBSCRIPTIONS: dict[str, Provider] = {"claude-code": "anthropic", "codex": "openai"}
"""Programs that use a subscription, and the vendor of their models. Without a model they use their own default."""
_PROVIDERS = ("anthropic", "openai", "scripted", "command", *_SUBSCRIPTIONS)


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """Keys and addresses of models. With a base URL the key is optional, because local servers need none."""

    anthropic_key: str | None = field(default=None, repr=False)
    anthropic_token: str | None = field(default=None, repr=False)
    anthropic_base_url: str | None = None
    openai_key: str | None = field(default=None, repr=False)
    openai_base_url: str | None = None
    timeout_s: float = 600.0
    cache_edits: bool = False
    """The Anthropic endpoint understands `cache_edits`."""
    anthropic_betas: tuple[str, ...] = ()
    traced: bool = False
    """Requests are reported through OpenTelemetry."""
    claude_code_program: str = "claude"
    codex_program: str = "codex"
    programs_at_once: int = 2
    inside: bool = False
    """This process runs inside the program of a model."""


def model_access(settings: Settings) -> ModelAccess:
    """The keys and addresses in the settings."""
    given = settings.model
    return ModelAccess(
        anthropic_key=given.anthropic_api_key or None,
        anthropic_token=given.anthropic_auth_token or None,
        anthropic_base_url=given.anthropic_base_url or None,
        openai_key=given.openai_api_key or None,
        openai_base_url=given.openai_base_url or None,
        timeout_s=given.timeout_s,
        cache_edits=given.anthropic_cache_edits,
        anthropic_betas=asked_betas(settings),
        traced=settings.telemetry.otel,
        claude_code_program=given.claude_code_program,
        codex_program=given.codex_program,
        programs_at_once=given.programs_at_once,
        inside=settings.session.inside,
    )


def default_model_name(access: ModelAccess) -> str:
    """The model if the user names none: of the provider that has a key, else the embedded one."""
    if access.anthropic_key or access.anthropic_token:
        return DEFAULT_ANTHROPIC
    if access.openai_key:
        return DEFAULT_OPENAI
    return EMBEDDED


def open_model(name: str, access: ModelAccess, catalogue: Catalogue) -> Model:
    """Opens a model by its name. The provider can be left out for models of the catalogue.

    Raises `UnknownModel` (with similar names), `MissingExtra`, `AuthenticationFailed` if there is no key, and
    `UserError` for a script that cannot be read.
    """
    opened = _open(name, access, catalogue)
    return trace_requests(opened) if access.traced else opened


def trace_requests(model: Model) -> Model:
    """The same model; its requests are reported. Only this imports OpenTelemetry."""
    from reverie.models.telemetry import TracedModel

    return TracedModel(model)


def _open(name: str, access: ModelAccess, catalogue: Catalogue) -> Model:
    provider, model = split_name(name, catalogue)
    match provider:
        case "anthropic":
            return _anthropic(model, access, facts_of(name, catalogue))
        case "openai":
            return _openai(model, access)
        case "scripted":
            from reverie.models.script import Script
            from reverie.models.scripted import ScriptedModel

            return ScriptedModel(Script.load(model), f"scripted:{model}")
        case "claude-code" | "codex" | "command":
            return _program(provider, model, access)
        case "embedded":
            # Loaded by its name, because it imports from floors above this one.
            return cast(Model, import_module("reverie.offline.model").EmbeddedModel())
        case _:
            return _from_plugin(provider, model, access)


def _program(provider: str, model: str, access: ModelAccess) -> Model:
    from reverie.models.programs import claude_code, codex, command
    from reverie.models.programs.running import Program

    find = partial(Program, timeout_s=access.timeout_s, at_once=access.programs_at_once, inside=access.inside)
    if provider == "claude-code":
        found = find(access.claude_code_program, shown="Claude Code", missing=claude_code.MISSING)
        return claude_code.ClaudeCodeModel(model, found)
    if provider == "codex":
        return codex.CodexModel(model, find(access.codex_program, shown="Codex", missing=codex.MISSING))
    name = f"command:{model}"
    return command.CommandModel(name, find(model, shown=name, missing=command.MISSING))


def _from_plugin(provider: str, model: str, access: ModelAccess) -> Model:
    plugin = find_plugin(MODELS, provider)
    assert plugin is not None, "`split_name` has found it"
    opened: object = plugin(model, access)
    if not isinstance(opened, Model):
        raise UserError(f"What {plugin.whose} returned is not a model: it needs name, capabilities, stream and close.")
    return opened


def split_name(name: str, catalogue: Catalogue) -> tuple[str, str]:
    """The provider of a model, and the provider's name for it."""
    given = name.strip()
    provider, colon, model = given.partition(":")
    if provider in _SUBSCRIPTIONS or (colon and provider in _PROVIDERS and model.strip()):
        return provider, model.strip()
    if given == EMBEDDED:
        return EMBEDDED, EMBEDDED
    if not colon:
        facts = catalogue.facts(given)
        if facts.provider in ("anthropic", "openai"):
            return facts.provider, given
    elif model.strip() and has_plugin(MODELS, provider):
        return provider, model.strip()
    raise UnknownModel(f"There is no model {given!r}; {_nearest(given, catalogue)}.")


def facts_of(name: str, catalogue: Catalogue) -> ModelFacts:
    """What is known about a model. Its provider counts too, if the catalogue has no entry for it."""
    provider, colon, model = name.strip().partition(":")
    if provider in _SUBSCRIPTIONS:
        alias = next((known for known in catalogue.names if model and f"-{model}-" in f"-{known}-"), model or provider)
        return catalogue.facts(alias, _SUBSCRIPTIONS[provider])
    if not colon or provider not in _PROVIDERS or provider == "command":
        return catalogue.facts(name.strip())
    return catalogue.facts(model, cast(Provider, provider) if provider != "scripted" else None)


def small_model_name(name: str, facts: ModelFacts, catalogue: Catalogue) -> str:
    """The model for small jobs beside a model: the cheapest of its family, by the same provider, or itself."""
    return f"{split_name(name, catalogue)[0]}:{facts.cheapest}" if facts.cheapest else name


def doubt_about(name: str, access: ModelAccess, catalogue: Catalogue) -> str | None:
    """One sentence about a model that the catalogue does not know, with similar names; None if there is no doubt.

    Servers other than the vendor's have their own names. So only a name that looks like a typing error is reported.
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
    return (
        "write anthropic:<model>, openai:<model>, claude-code:<model>, codex:<model>, command:<program>,"
        " scripted:<file> or embedded"
    )


def check_url(url: str | None, setting: str) -> None:
    """Raises `UserError` if this is set and not the address of a server."""
    if not url:
        return
    try:
        parts = urlsplit(url)
        flaws = {
            "it has blanks or control characters in it": any(c.isspace() or not c.isprintable() for c in url),
            "it does not begin with http:// or https://": parts.scheme not in ("http", "https"),
            "it has no host": not parts.hostname,
            "a server cannot have port 0": parts.port == 0,
        }
        wrong = next((flaw for flaw, is_there in flaws.items() if is_there), "")
    except ValueError as error:
        wrong = str(error)
    if wrong:
        raise UserError(
            f"{setting} is {strip_secrets(url)!r}, which is not the address of a server ({wrong}):"
            " write it as http://HOST:PORT or https://HOST."
        )


def _anthropic(model: str, access: ModelAccess, facts: ModelFacts) -> Model:
    key, token = access.anthropic_key or None, access.anthropic_token or None
    if not (key or token or access.anthropic_base_url):
        raise _no_key("Anthropic", f"anthropic:{model}", "ANTHROPIC_API_KEY")
    check_url(access.anthropic_base_url, "ANTHROPIC_BASE_URL (model.anthropic_base_url)")
    from reverie.models.anthropic import AnthropicModel

    asked = (ONE_MILLION_BETA,) if facts.asked_1m and facts.window_1m == "beta" else ()
    return AnthropicModel(
        model,
        key=key,
        token=token,
        base_url=_without_version(access.anthropic_base_url),
        timeout_s=access.timeout_s,
        capabilities=Capabilities(
            cache_markers=facts.cache_markers,
            ttls=tuple[Ttl, ...](ttl for ttl in ("5m", "1h") if ttl in facts.ttls),
            context_edits=facts.context_management,
            cache_edits=access.cache_edits,
            output_schema=True,
        ),
        betas=tuple(dict.fromkeys((*asked, *access.anthropic_betas))),
    )


def _openai(model: str, access: ModelAccess) -> Model:
    key = access.openai_key or None
    if not (key or access.openai_base_url):
        raise _no_key("OpenAI", f"openai:{model}", "OPENAI_API_KEY")
    check_url(access.openai_base_url, "OPENAI_BASE_URL (model.openai_base_url)")
    from reverie.models.openai import OpenAIModel

    return OpenAIModel(model, key=key, base_url=_with_version(access.openai_base_url), timeout_s=access.timeout_s)


def _no_key(vendor: str, name: str, variable: str) -> AuthenticationFailed:
    return AuthenticationFailed(
        f"There is no {vendor} key for {name}: set {variable}, or a base URL of a server that wants none,"
        " or use the model `embedded`."
    )


def _without_version(url: str | None) -> str | None:
    """The address without `/v1`, which the SDK adds itself."""
    return url.rstrip("/").removesuffix("/v1") if url else None


def _with_version(url: str | None) -> str | None:
    """The address with `/v1` if it has no path, because servers have their chat completions there."""
    if not url:
        return None
    parts = urlsplit(url)
    return url if parts.path.strip("/") else urlunsplit(parts._replace(path="/v1"))
