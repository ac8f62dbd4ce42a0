"""All settings as one frozen object, and how to look a setting up by its full name, `section.key`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from reverie.settings.fields import Setting, settings_of
from reverie.settings.layer_sections import Agents, Compaction, Dream, Extraction, Messages, Notes
from reverie.settings.sections import (
    Background,
    Budget,
    Catalogue,
    Debug,
    FlagSettings,
    Hooks,
    InstructionSettings,
    Memory,
    Microcompact,
    Model,
    Permissions,
    PlaceSettings,
    Remote,
    SessionSettings,
    Team,
    ToolResults,
    Tools,
    Transcript,
    Window,
)

if TYPE_CHECKING:
    from reverie.settings.loading import Source
    from reverie.settings.trust import Part


def _no_strings() -> Mapping[str, str]:
    return MappingProxyType({})


def _no_sources() -> Mapping[str, tuple[Source, ...]]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set, read once. `Settings()` is all defaults; `load_settings` reads the places."""

    places: PlaceSettings = field(default_factory=PlaceSettings)
    session: SessionSettings = field(default_factory=SessionSettings)
    model: Model = field(default_factory=Model)
    window: Window = field(default_factory=Window)
    transcript: Transcript = field(default_factory=Transcript)
    permissions: Permissions = field(default_factory=Permissions)
    hooks: Hooks = field(default_factory=Hooks)
    tools: Tools = field(default_factory=Tools)
    tool_results: ToolResults = field(default_factory=ToolResults)
    microcompact: Microcompact = field(default_factory=Microcompact)
    notes: Notes = field(default_factory=Notes)
    compaction: Compaction = field(default_factory=Compaction)
    memory: Memory = field(default_factory=Memory)
    instructions: InstructionSettings = field(default_factory=InstructionSettings)
    team: Team = field(default_factory=Team)
    extraction: Extraction = field(default_factory=Extraction)
    dream: Dream = field(default_factory=Dream)
    agents: Agents = field(default_factory=Agents)
    messages: Messages = field(default_factory=Messages)
    background: Background = field(default_factory=Background)
    budget: Budget = field(default_factory=Budget)
    catalogue: Catalogue = field(default_factory=Catalogue)
    flags: FlagSettings = field(default_factory=FlagSettings)
    remote: Remote = field(default_factory=Remote)
    debug: Debug = field(default_factory=Debug)

    warnings: tuple[str, ...] = ()
    """What was ignored and why: sentences to show once."""
    parts: tuple[Part, ...] = field(default=(), compare=False, repr=False)
    """What can act in the folder's own files, ignored or not: what `reverie trust` shows."""
    flag_env: Mapping[str, str] = field(default_factory=_no_strings)
    """The `REVERIE_FLAG_*` variables as they are; `flags/` knows what they mean."""
    env: Mapping[str, str] = field(default_factory=_no_strings, compare=False, repr=False)
    """The environment as it was read, for processes we start; everything else asks a setting."""
    sources: Mapping[str, tuple[Source, ...]] = field(default_factory=_no_sources, compare=False, repr=False)
    """Where each `section.key` that is not a default came from."""


@cache
def sections() -> Mapping[str, type]:
    """Every section by its name, in the order of `Settings`."""
    found = {entry.name: entry.default_factory for entry in fields(Settings)}
    return {name: made for name, made in found.items() if isinstance(made, type)}


@cache
def all_settings() -> Mapping[str, Setting]:
    """Every setting by its full name, `section.key`."""
    return {
        f"{name}.{key}": setting
        for name, section in sections().items()
        for key, setting in settings_of(section).items()
    }


def value_of(settings: Settings, key: str) -> object:
    """The value of `section.key`."""
    section, name = key.split(".", 1)
    return cast("object", getattr(getattr(settings, section), name))
