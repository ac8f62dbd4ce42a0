"""Forgets on request: finds the one memory and writes it empty, which can be undone.

If several fit, it asks which; if none fits, it reports that. It never guesses.
"""

from __future__ import annotations

import re

from reverie.offline.conversation import Done
from reverie.offline.step import Answer, Step
from reverie.offline.talk.memory_writes import below_memory, first_line, is_unwritten
from reverie.offline.talk.turn import Talk
from reverie.offline.terms import coverage, pattern, read_question

_CLEAR = 0.5
_BEHIND = 0.75
"""How near the second may be to the first while the first is still clear."""
_SHOWN = 6
_IT = re.compile(r"^(?:it|that|this|das|es|eso|esto|lo|这个|那个|それ|これ)$", re.IGNORECASE)
_FILE = re.compile(r"[\w./-]+\.md\b")


def forget(talk: Talk, text: str) -> Step:
    """The next step of forgetting what a text names."""
    root = talk.place.memory.rstrip("/")
    if not root:
        return Answer(talk.word("memory_off"))
    if talk.place.log or not talk.can("Grep", "Read", "Write"):
        return Answer(talk.word("refused", why="topic files are not changed here; `reverie forget` does it."))
    wrote = next(talk.results("Write"), None)
    if wrote is not None:
        return _told(talk, wrote, root)
    named = _FILE.search(text) or (_last_kept(talk) if _IT.match(text) else None)
    if named:
        return _open(talk, f"{root}/{named[0].removeprefix(root + '/')}", named[0])
    question = read_question(text)
    if not question.terms:
        return Answer(talk.word("none_to_forget", what=text))
    found = talk.result("Grep", path=root)
    if found is None:
        given = {"pattern": pattern(question), "path": root, "glob": "*.md", "output_mode": "content", "-i": True}
        return talk.act("Let me see which memory that is.", "Grep", {**given, "head_limit": 200})
    texts = dict[str, str]()
    for hit in found.hits():
        name = below_memory(talk, hit.path)
        if not name.endswith("MEMORY.md") and not name.startswith("logs/"):
            texts[name] = f"{texts.get(name, name.replace('_', ' '))}\n{hit.text}"
    scored = sorted(
        ((coverage(said, question), name) for name, said in texts.items()), key=lambda one: (-one[0], one[1])
    )
    meant = [(share, name) for share, name in scored if share >= _CLEAR]
    if not meant:
        return Answer(talk.word("none_to_forget", what=text))
    close = [name for share, name in meant if share >= _BEHIND * meant[0][0]]
    if len(close) > 1:
        return Answer(talk.word("which", list="\n".join(f"- {name}" for name in close[:_SHOWN])))
    return _open(talk, f"{root}/{close[0]}", text)


def _last_kept(talk: Talk) -> re.Match[str] | None:
    """The memory that was last mentioned in this conversation, if the user only says “it”."""
    for role, text in reversed(talk.turn.before):
        if role == "assistant" and (named := _FILE.search(text)):
            return named
    return None


def _open(talk: Talk, path: str, what: str) -> Step:
    read = talk.result("Read", file_path=path)
    if read is None:
        return talk.act("Let me see that it is the right one.", "Read", {"file_path": path})
    if read.failed:
        return Answer(talk.word("none_to_forget", what=what))
    return talk.act("I forget it.", "Write", {"file_path": path, "content": ""})


def _told(talk: Talk, wrote: Done, root: str) -> Step:
    path = str(wrote.input.get("file_path", ""))
    if is_unwritten(wrote):
        return Answer(talk.word("refused", why=first_line(wrote.text)))
    read = talk.result("Read", file_path=path)
    lines = [line.text.strip() for line in read.lines() if line.text.strip()] if read is not None else []
    fences = [at for at, line in enumerate(lines) if line == "---"]
    body = lines[fences[1] + 1 :] if len(fences) > 1 else lines
    return Answer(talk.word("forgot", file=path[len(root) + 1 :], text=" ".join(body)[:200]))
