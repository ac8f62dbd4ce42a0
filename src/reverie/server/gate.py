"""The write gate of the server: paths, sizes and secrets are refused; trust is marked, and the bytes stay as they are.
Nothing of a refused text is shown or logged."""

from __future__ import annotations

import asyncio
import unicodedata
from hashlib import sha256
from typing import Final
from urllib.parse import unquote

from reverie.memory.secrets.carriers import count_announcing
from reverie.memory.secrets.new_secret import find_new_secret
from reverie.memory.secrets.scan import find_secrets, redact
from reverie.memory.taxonomy import Trust, is_index
from reverie.memory.topic_file import TopicFile
from reverie.quick import dataclass
from reverie.server.database import Principal
from reverie.server.wire import ApiError
from reverie.text.cutting import shorten

MOST_CONTENT: Final = 102_400
MOST_PATH: Final = 1_024
MOST_SEGMENTS: Final = 20
UNMARKED: Final = "unmarked"
_MOST_REASON: Final = 500
_MOST_ID: Final = 200
_IN_A_THREAD: Final = 4_096  # a scan of 100 KB takes 140 ms; the other requests go on
_MOST_ANNOUNCING: Final = 5_000  # 100 KB of nothing but `key=` would take seconds
_UNSEEN: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")
_BLANK_LETTERS: Final = "\u115f\u1160"  # letters by name, which file systems may ignore, as they do with marks


@dataclass(frozen=True, slots=True)
class Author:
    """Who makes a change, as its version shows it. A session acts for a person, but is not the person."""

    actor_type: str
    actor_id: str
    token_id: str | None = None
    reason: str = ""
    session_id: str | None = None
    message_id: str | None = None

    @classmethod
    def of(cls, who: Principal, *, reason: str = "", session: str = "", message: str = "") -> Author:
        """The author of a request. The three texts are percent-encoded headers; a secret in the reason is masked."""
        session_id, message_id = _read_id("x-reverie-session", session), _read_id("x-reverie-message", message)
        if session_id:
            kind, id = "session_actor", session_id
        else:
            kind, id = "user_actor" if who.kind == "person" else "service_account_actor", who.person_id
        said = shorten(redact(_decode(reason)[: 4 * _MOST_REASON]), _MOST_REASON)
        return cls(kind, id, who.token_id, said, session_id, message_id)

    @property
    def is_person(self) -> bool:
        return self.actor_type == "user_actor"

    def trust_in(self, path: str, content: str) -> str:
        """How far a text of this author is trusted. Its head can lower that, never raise it: only a person confirms,
        and what a session or a service writes is a conclusion."""
        if not path.endswith(".md") or is_index(path):
            return UNMARKED
        if not self.is_person:
            return Trust.INFERRED.value
        said = TopicFile.parse(content).trust
        return UNMARKED if said is None else said.value


def check_path(path: str) -> str:
    """A path as the published format has it."""
    if not path.startswith("/"):
        raise ApiError(400, "path: must start with `/`.")
    if any(unicodedata.category(one) in _UNSEEN for one in path):
        raise ApiError(400, "path: may not contain control characters, format characters or line separators.")
    if len(path.encode()) > MOST_PATH:
        raise ApiError(400, f"path: may have {MOST_PATH:,} bytes; it has {len(path.encode()):,}.")
    if not unicodedata.is_normalized("NFC", path):
        raise ApiError(400, "path: must be in Unicode Normalization Form C.")
    segments = path[1:].split("/")
    if len(segments) > MOST_SEGMENTS:
        raise ApiError(400, f"path: may have {MOST_SEGMENTS} segments; it has {len(segments)}.")
    if "" in segments:
        raise ApiError(400, "path: a segment may not be empty.")
    if has_hidden_name(path):
        raise ApiError(400, "path: a segment may not begin with a dot: programs obey hidden files and folders.")
    return path


def has_hidden_name(path: str) -> bool:
    """Whether a segment begins with a dot, or with what a file system may make one of: it may fold letters that look
    alike, and ignore those that nobody sees."""
    return any(map(_begins_with_dot, path.replace("\\", "/").split("/")))


def _begins_with_dot(name: str) -> bool:
    for letter in unicodedata.normalize("NFKC", name):
        if letter == "." or (unicodedata.category(letter)[0] in "LNPS" and letter not in _BLANK_LETTERS):
            return letter == "."
    return False


def check_content(content: str) -> str:
    """A content of at most 102,400 bytes that PostgreSQL can store."""
    if "\x00" in content or any("\ud800" <= one <= "\udfff" for one in content):
        raise ApiError(400, "content: contains a character that cannot be stored (NUL, or half of a pair).")
    size = len(content.encode())
    if size > MOST_CONTENT:
        raise ApiError(400, f"content: may have {MOST_CONTENT:,} bytes; it has {size:,}.")
    return content


async def check_secrets(path: str, content: str, before: str = "") -> None:
    """Refuses a secret that is not in `before`. A long text is read in a thread."""
    check_words("path", path.replace("/", " ").replace("_", " "))
    if len(content) > _IN_A_THREAD and count_announcing(content) > _MOST_ANNOUNCING:
        raise ApiError(
            400,
            f"content: more than {_MOST_ANNOUNCING:,} of its words announce a secret (`key`, `token`), and each place "
            "has to be checked; divide the text.",
        )
    if len(content) < _IN_A_THREAD:
        found = find_new_secret(path, content, before)
    else:
        found = await asyncio.to_thread(find_new_secret, path, content, before)
    if found is not None:
        raise ApiError(400, found.sentence)


def check_words(name: str, *texts: str) -> None:
    """Refuses a secret in short texts beside the memories: names, descriptions, metadata."""
    if any(find_secrets(one) for one in texts):
        raise ApiError(400, f"{name}: holds a secret, and secrets are never stored.")


def hash_content(content: str) -> str:
    return sha256(content.encode()).hexdigest()


def _read_id(name: str, given: str) -> str | None:
    id = _decode(given).strip()
    if len(id) > _MOST_ID or any(unicodedata.category(one) in _UNSEEN for one in id):
        raise ApiError(400, f"{name}: must have at most {_MOST_ID} characters, and no control characters.")
    return id or None


def _decode(given: str) -> str:
    return unquote(given, errors="replace").replace("\x00", "")
