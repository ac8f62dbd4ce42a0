"""All settings as one frozen object, and how to look a setting up by its full name, `section.key`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from reverie.settings.fields import Setting, list_section_settings
from reverie.settings.layer_sections import (
    AgentSettings,
    CompactionSettings,
    DreamSettings,
    ExtractionSettings,
    MessageSettings,
    NoteSettings,
)
from reverie.settings.sections import (
    BackgroundSettings,
    BudgetSettings,
    CatalogueSettings,
    DebugSettings,
    FlagSettings,
    HookSettings,
    InstructionSettings,
    MemorySettings,
    MicrocompactSettings,
    ModelSettings,
    PermissionSettings,
    PlaceSettings,
    RemoteSettings,
    SessionSettings,
    TeamSettings,
    ToolResultSettings,
    ToolSettings,
    TranscriptSettings,
    WindowSettings,
)

if TYPE_CHECKING:
    from reverie.settings.loading import SettingSource
    from reverie.settings.trust import ActingPart


def _no_strings() -> Mapping[str, str]:
    return MappingProxyType({})


def _no_sources() -> Mapping[str, tuple[SettingSource, ...]]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set, read once. `Settings()` is all defaults; `load_settings` reads the places."""

    places: PlaceSettings = field(default_factory=PlaceSettings)
    session: SessionSettings = field(default_factory=SessionSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    window: WindowSettings = field(default_factory=WindowSettings)
    transcript: TranscriptSettings = field(default_factory=TranscriptSettings)
    permissions: PermissionSettings = field(default_factory=PermissionSettings)
    hooks: HookSettings = field(default_factory=HookSettings)
    tools: ToolSettings = field(default_factory=ToolSettings)
    tool_results: ToolResultSettings = field(default_factory=ToolResultSettings)
    microcompact: MicrocompactSettings = field(default_factory=MicrocompactSettings)
    notes: NoteSettings = field(default_factory=NoteSettings)
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    instructions: InstructionSettings = field(default_factory=InstructionSettings)
    team: TeamSettings = field(default_factory=TeamSettings)
    extraction: ExtractionSettings = field(default_factory=ExtractionSettings)
    dream: DreamSettings = field(default_factory=DreamSettings)
    agents: AgentSettings = field(default_factory=AgentSettings)
    messages: MessageSettings = field(default_factory=MessageSettings)
    background: BackgroundSettings = field(default_factory=BackgroundSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    catalogue: CatalogueSettings = field(default_factory=CatalogueSettings)
    flags: FlagSettings = field(default_factory=FlagSettings)
    remote: RemoteSettings = field(default_factory=RemoteSettings)
    debug: DebugSettings = field(default_factory=DebugSettings)

    warnings: tuple[str, ...] = ()
    """What was ignored and why: sentences to show once."""
    parts: tuple[ActingPart, ...] = field(default=(), compare=False, repr=False)
    """What can act in the folder's own files, ignored or not: what `reverie trust` shows."""
    flag_env: Mapping[str, str] = field(default_factory=_no_strings)
    """The `REVERIE_FLAG_*` variables as they are; `flags/` knows what they mean."""
    env: Mapping[str, str] = field(default_factory=_no_strings, compare=False, repr=False)
    """The environment as it was read, for processes we start; everything else asks a setting."""
    sources: Mapping[str, tuple[SettingSource, ...]] = field(default_factory=_no_sources, compare=False, repr=False)
    """Where each `section.key` that is not a default came from."""


@cache
def list_sections() -> Mapping[str, type]:
    """Every section by its name, in the order of `Settings`."""
    found = {entry.name: entry.default_factory for entry in fields(Settings)}
    return {name: made for name, made in found.items() if isinstance(made, type)}


@cache
def list_settings() -> Mapping[str, Setting]:
    """Every setting by its full name, `section.key`."""
    return {
        f"{name}.{key}": setting
        for name, section in list_sections().items()
        for key, setting in list_section_settings(section).items()
    }


def get_value(settings: Settings, key: str) -> object:
    """The value of `section.key`."""
    section, name = key.split(".", 1)
    return cast("object", getattr(getattr(settings, section), name))
