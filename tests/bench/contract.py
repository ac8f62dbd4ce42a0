"""The keys that programs rely on, in `contract.toml`: every test of a measurement holds its figures to them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reverie.lab.measurement import plain

CONTRACT: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_TYPES = {"": (int, float), "flag": bool, "text": str, "list": list, "object": dict}


def check_keys(name: str, figures: object, part: str = "keys") -> None:
    """Fails if a key is new, is missing or has a value of another type. `part`: what was measured, if not the usual."""
    assert list(_wrong(plain(figures), "", CONTRACT[name][part])) == [], name


def _wrong(value: Any, path: str, known: dict[str, str]) -> Iterator[str]:
    if isinstance(value, list):
        for inner in value:
            yield from _wrong(inner, f"{path}[]", known)
    elif isinstance(value, dict) and path not in known:
        yield f"{path} is not in contract.toml"
    elif isinstance(value, dict):
        types = dict(entry.partition("=")[::2] for entry in known[path].split())
        wanted = {key.rstrip("?"): kind for key, kind in types.items()}
        yield from (f"{path}.{key} is gone" for key in types if key[-1] not in "*?" and key not in value)
        for key, inner in value.items():
            shown = key if key in wanted else "*"
            below = f"{path}.{shown}".lstrip(".")
            if shown not in wanted:
                yield f"{path}.{key} is not in contract.toml"
            elif inner is not None and not isinstance(inner, _TYPES[wanted[shown]]):
                yield f"{below} is {type(inner).__name__}, not {wanted[shown] or 'a number'}"
            elif isinstance(inner, dict | list):
                yield from _wrong(inner, below, known)
