"""One frozen `Settings`: the only reader of the environment and of settings files; each number with its unit.

`sections.py` lists every setting, `loading.py` reads the places they come from, `toml_file.py` knows the lines,
`reference.py` writes the page about all of them.
"""

from __future__ import annotations

from reverie.settings.loading import Explained, Source, explain, load_settings
from reverie.settings.schema import Settings
from reverie.settings.sections import HookCommand, PermissionMode

__all__ = [
    "Explained",
    "HookCommand",
    "PermissionMode",
    "Settings",
    "Source",
    "explain",
    "load_settings",
]
