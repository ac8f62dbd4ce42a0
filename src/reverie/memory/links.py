"""Links between memories: `[[name]]` and `[text](file.md)`. A name is a file, with or without `.md`, or a title. Text
in, names out."""

from __future__ import annotations

from collections.abc import Iterable

from reverie.memory.index import linked_files
from reverie.text.patterns import late

_WIKI = late(r"\[\[([^\[\]|\n]{1,200})(?:\|[^\[\]\n]{0,200})?\]\]")


def linked_names(text: str) -> tuple[str, ...]:
    """The memories that a text links to, as it names them, each once."""
    named = (match[1].partition("#")[0].strip() for match in _WIKI.finditer(text))
    return tuple(dict.fromkeys(name for name in (*named, *sorted(linked_files(text))) if name and "\n" not in name))


def link_keys(file: str, title: str) -> frozenset[str]:
    """The names that lead to a memory, in the form of `link_key`."""
    return frozenset({link_key(file), link_key(file.rpartition("/")[2]), link_key(title)} - {""})


def link_key(name: str) -> str:
    """A name without what does not matter."""
    return " ".join(name.casefold().removesuffix(".md").split())


def resolve_link(name: str, memories: Iterable[tuple[str, str]]) -> str | None:
    """The file that a name means, among `(file, title)`; None if there is none."""
    wanted = link_key(name)
    found = [file for file, title in memories if wanted in link_keys(file, title)]
    return min(found, key=lambda file: (link_key(file) != wanted, file), default=None)
