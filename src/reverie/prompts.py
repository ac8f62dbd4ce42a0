"""Loads and fills prompts, which are Markdown files next to the code that uses them.

Filling is one pass over `{{name}}`. A variable that is missing in the call or in the file raises at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

_VARIABLE = re.compile(r"\{\{([A-Za-z_]+)\}\}")


@cache
def _text(package: str, name: str) -> str:
    return resources.files(package).joinpath("prompts", name).read_text(encoding="utf-8")


def render(package: str, name: str, values: Mapping[str, str] | None = None) -> str:
    """Returns the prompt `prompts/<name>` of a package with its variables filled in, without trailing white space."""
    given = dict(values or {})
    text = _text(package, name)
    wanted = set(_VARIABLE.findall(text))
    if wanted != set(given):
        odd = sorted(wanted ^ set(given))
        raise LookupError(f"prompt {package}/{name}: variables {', '.join(odd)} are not on both sides")
    return fill(text, given).rstrip()


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replaces each known `{{name}}` once; unknown ones stay."""
    return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)
