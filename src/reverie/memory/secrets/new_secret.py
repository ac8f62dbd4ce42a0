"""The first secret in what would be stored, with the sentence that refuses it: a write to memory, or a text that the
user typed to be kept. Folders, servers and pins use it."""

from __future__ import annotations

from reverie.errors import ReverieError
from reverie.memory.secrets.scan import find_secrets
from reverie.quick import dataclass

_INSTEAD = "where it is kept instead (the entry in the password manager, the name of the environment variable)."


class HoldsSecret(ReverieError):
    """The text holds a secret; the sentence names its kind and never the value."""

    exit_code = 2


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
        sentence = f"{name}: line {line} holds {found.kind}, and secrets are never stored; write {_INSTEAD}"
        return NewSecret(sentence, found.kind)
    return None


def refuse_secrets(text: str, done: str = "remembered") -> None:
    """Raises `HoldsSecret` if the text holds one. Call it before a title or a name is made from the text, or before it
    is kept anywhere. `done` is what is not done with it."""
    found = find_secrets(text)
    if found:
        raise HoldsSecret(f"Not {done}: the text holds {found[0].kind}, and secrets are never stored. Say {_INSTEAD}")
