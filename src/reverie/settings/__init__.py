"""One frozen `Settings`: the only reader of the environment and of settings files; each number with its unit.

`sections.py` lists every setting, `reach.py` who may set it, `loading.py` reads the places they come from, `folder.py`
and `trust.py` say what counts of a folder's own files, `reference.py` writes the page about all of them.
"""

from __future__ import annotations

from reverie.settings.loading import ExplainedSetting, SettingSource, explain_settings, find_home, load_settings
from reverie.settings.schema import Settings
from reverie.settings.sections import HookCommand, PermissionMode

__all__ = [
    "ExplainedSetting",
    "HookCommand",
    "PermissionMode",
    "SettingSource",
    "Settings",
    "explain_settings",
    "find_home",
    "load_settings",
]
