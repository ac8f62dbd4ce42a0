"""Addresses and commands of a tool call that only an inferred memory has. Such a call is asked for even where it would
be allowed: text of others may have come into memory, and must not choose where the agent goes. It only finds reasons
to ask, never to allow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from reverie.memory.gate.marks import Marks
from reverie.memory.gate.review import list_statements
from reverie.memory.gate.speech import features
from reverie.memory.taxonomy import Trust
from reverie.memory.upkeep.duplicates import MemoryTexts
from reverie.text.patterns import late

_SCHEME: Final = late(r"^[a-z][a-z0-9+.-]*://(?:[^@/\s]*@)?", re.IGNORECASE)
_PARTS: Final = late(r"[|;&\n()`]+")


class InferredAddresses:
    """The addresses in inferred statements of one memory directory."""

    def __init__(self, root: Path) -> None:
        self._texts = MemoryTexts(root)
        self._marks = Marks(root)

    def find(self, used: str, known: Callable[[], Iterable[str]], *, commands: bool = True) -> tuple[str, str] | None:
        """An address or command of `used` that is in an inferred memory and not in `known`, with the file; None if
        there is none. `known` returns the texts of the user, and is called only if something is found."""
        line = " ".join(used.split()).lower()
        near = {part.split()[0].lower() for part in _PARTS.split(used) if part.split()} if commands else set[str]()
        near |= {_host(address) for address in features(used).addresses}
        found = [
            (address, name)
            for name, text in (self._texts.sharing(near, 1) if near else ())
            for address in self._of(name, text, commands)
            if _is_in(address, line)
        ]
        if not found:
            return None
        said = "\n".join(" ".join(text.split()).lower() for text in known())
        return next(((one, name) for one, name in found if not _is_in(one, said) and _host(one) not in said), None)

    def _of(self, name: str, text: str, commands: bool) -> Iterator[str]:
        for one in list_statements(name, text, self._marks):
            if one.trust is not Trust.INFERRED:
                continue
            quote = " ".join(one.mark.quote.split()).lower() if one.mark else ""
            has = features(one.text)
            wanted = [*map(_place, has.addresses), *(has.commands if commands else ())]
            yield from (bare for each in wanted if (bare := " ".join(each.split()).lower()) not in quote)


def _place(address: str) -> str:
    """A host with the first part of the path, or a mail address: `github.com/acme`."""
    bare = _SCHEME.sub("", address.lower()).rstrip("/")
    return "/".join(bare.split("/")[:2])


def _host(address: str) -> str:
    return _place(address).split("/")[0]


def _is_in(address: str, line: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(address)}(?![\w-])", line) is not None
