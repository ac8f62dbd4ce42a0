"""Reads all settings into one frozen `Settings`. Only this package reads the environment and settings files.

`sections.py` lists every setting, `reach.py` says who may set it, `loading.py` reads files and variables, `folder.py`
and `trust.py` decide what counts in the files of a folder, and `reference.py` writes the reference page.
"""

from __future__ import annotations

from reverie.settings.loading import ExplainedSetting, explain_settings, find_home, load_settings
from reverie.settings.schema import Settings

__all__ = ["ExplainedSetting", "Settings", "explain_settings", "find_home", "load_settings"]
