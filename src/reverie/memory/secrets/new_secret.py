"""The first secret that a write would add to memory, with the sentence that refuses it. Folders and servers use it."""

from __future__ import annotations

from reverie.memory.secrets.scan import find_secrets
from reverie.quick import dataclass


@dataclass(frozen=True, slots=True)
class NewSecret:
    """Why a write is refused; the value itself is in neither field."""

    sentence: str
    kind: str


def find_new_secret(name: str, text: str, before: str = "") -> NewSecret | None:
    """Looks at the file name and the text. What `before` had already is not new: `memory check` reports it."""
    named = find_secrets(name.rpartition("/")[2].removesuffix(".md").replace("_", " "))
    if named:
        return NewSecret(f"The file name holds {named[0].kind}; choose one without it.", named[0].kind)
    for found in find_secrets(text):
        if text[found.start : found.end] in before:
            continue
        line = text.count("\n", 0, found.start) + 1
        sentence = (
            f"{name}: line {line} holds {found.kind}, and secrets are never stored; write where it is kept instead "
            "(the entry in the password manager, the name of the environment variable)."
        )
        return NewSecret(sentence, found.kind)
    return None
