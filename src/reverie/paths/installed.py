"""How more of Reverie is installed: from where this one came, into the Python that runs it."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from shlex import join, quote
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from reverie.parsing import Unparsable, load_json
from reverie.regular_files import read_regular

_PACKAGE = "reverie"


def pip_install(extra: str) -> str:
    """The command that installs an extra: from the checkout, file or repository of this installation, or from an index
    if it came from one."""
    if find_spec("pip") is not None:
        program = [sys.executable, "-m", "pip", "install"]
    else:
        program = ["uv", "pip", "install", "--python", sys.executable]
    checkout = Path(__file__).parents[3]
    if (checkout / "pyproject.toml").is_file():
        return f"{join([*program, '-e'])} {quote(f'{checkout}[{extra}]')}"
    name = f"{_PACKAGE}[{extra}]"
    source = _source()
    return f"{join(program)} {quote(f'{name} @ {source}' if source else name)}"


def _source() -> str:
    """Where pip got this installation (PEP 610); empty for an index, or if it is gone."""
    try:
        recorded = [one for one in distribution(_PACKAGE).files or () if one.name == "direct_url.json"]
        found: Any = load_json(read_regular(Path(str(recorded[0].locate())))) if recorded else {}
        url, repository = str(found.get("url", "")), found.get("vcs_info")
        if repository:
            return f"{repository['vcs']}+{url}@{repository['commit_id']}"
    except (PackageNotFoundError, Unparsable, OSError, AttributeError, KeyError, TypeError):
        return ""
    parts = urlsplit(url)
    return "" if parts.scheme == "file" and not Path(url2pathname(parts.path)).exists() else url
