"""All settings as one frozen object, and access to a setting by its full name, `section.key`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from reverie.quick import dataclass
from reverie.settings import background_sections, layer_sections, mcp_section, sections
from reverie.settings.fields import Setting, list_section_settings

if TYPE_CHECKING:
    from reverie.settings.loading import SettingSource
    from reverie.settings.trust import ActingPart


_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, read once. `Settings()` has only defaults; `load_settings` reads files and variables."""

    places: sections.PlaceSettings = field(default_factory=sections.PlaceSettings)
    session: sections.SessionSettings = field(default_factory=sections.SessionSettings)
    model: sections.ModelSettings = field(default_factory=sections.ModelSettings)
    window: sections.WindowSettings = field(default_factory=sections.WindowSettings)
    transcript: sections.TranscriptSettings = field(default_factory=sections.TranscriptSettings)
    permissions: sections.PermissionSettings = field(default_factory=sections.PermissionSettings)
    hooks: sections.HookSettings = field(default_factory=sections.HookSettings)
    claude: sections.ClaudeSettings = field(default_factory=sections.ClaudeSettings)
    chat: sections.ChatSettings = field(default_factory=sections.ChatSettings)
    tools: sections.ToolSettings = field(default_factory=sections.ToolSettings)
    mcp: mcp_section.McpSettings = field(default_factory=mcp_section.McpSettings)
    tool_results: sections.ToolResultSettings = field(default_factory=sections.ToolResultSettings)
    microcompact: sections.MicrocompactSettings = field(default_factory=sections.MicrocompactSettings)
    notes: layer_sections.NoteSettings = field(default_factory=layer_sections.NoteSettings)
    compaction: layer_sections.CompactionSettings = field(default_factory=layer_sections.CompactionSettings)
    memory: sections.MemorySettings = field(default_factory=sections.MemorySettings)
    instructions: sections.InstructionSettings = field(default_factory=sections.InstructionSettings)
    team: sections.TeamSettings = field(default_factory=sections.TeamSettings)
    extraction: layer_sections.ExtractionSettings = field(default_factory=layer_sections.ExtractionSettings)
    dream: layer_sections.DreamSettings = field(default_factory=layer_sections.DreamSettings)
    agents: layer_sections.AgentSettings = field(default_factory=layer_sections.AgentSettings)
    messages: layer_sections.MessageSettings = field(default_factory=layer_sections.MessageSettings)
    background: background_sections.BackgroundSettings = field(default_factory=background_sections.BackgroundSettings)
    budget: background_sections.BudgetSettings = field(default_factory=background_sections.BudgetSettings)
    connect: background_sections.ConnectSettings = field(default_factory=background_sections.ConnectSettings)
    serve: background_sections.ServeSettings = field(default_factory=background_sections.ServeSettings)
    catalogue: sections.CatalogueSettings = field(default_factory=sections.CatalogueSettings)
    flags: sections.FlagSettings = field(default_factory=sections.FlagSettings)
    remote: sections.RemoteSettings = field(default_factory=sections.RemoteSettings)
    telemetry: sections.TelemetrySettings = field(default_factory=sections.TelemetrySettings)
    debug: sections.DebugSettings = field(default_factory=sections.DebugSettings)

    warnings: tuple[str, ...] = ()
    """Sentences to show once: what was ignored, and why."""
    parts: tuple[ActingPart, ...] = field(default=(), compare=False, repr=False)
    """The parts of the folder's files that can act, ignored or not: `reverie trust` shows them."""
    flag_env: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    """The `REVERIE_FLAG_*` variables, unchanged; `flags/` reads them."""
    env: Mapping[str, str] = field(default_factory=lambda: _EMPTY, compare=False, repr=False)
    """The environment, only for processes that we start."""
    sources: Mapping[str, tuple[SettingSource, ...]] = field(default_factory=lambda: _EMPTY, compare=False, repr=False)
    """The sources of each `section.key` that is not a default."""


@cache
def list_sections() -> Mapping[str, type]:
    """Returns every section by its name, in the order of `Settings`."""
    found = {entry.name: entry.default_factory for entry in fields(Settings)}
    return {name: made for name, made in found.items() if isinstance(made, type)}


@cache
def list_settings() -> Mapping[str, Setting]:
    """Returns every setting by its full name, `section.key`."""
    return {
        f"{name}.{key}": setting
        for name, section in list_sections().items()
        for key, setting in list_section_settings(section).items()
    }


def get_value(settings: Settings, key: str) -> object:
    """Returns the value of `section.key`."""
    section, name = key.split(".", 1)
    return cast("object", getattr(getattr(settings, section), name))


def with_values(settings: Settings, values: Mapping[str, object]) -> Settings:
    """Returns the settings with other values of some `section.key`. The values are not checked."""
    changed: dict[str, Any] = {}
    for key, value in values.items():
        section, name = key.split(".", 1)
        now = changed.get(section) or getattr(settings, section)
        changed[section] = type(now)(**{**now.__dict__, name: value})
    return replace(settings, **changed)
