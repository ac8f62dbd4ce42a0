"""Reports what memory holds, what was said last time, and what the project is, from one lookup of each."""

from __future__ import annotations

import re
from pathlib import PurePath

from reverie.offline.conversation import Done
from reverie.offline.step import Act, Answer, Step
from reverie.offline.talk.lookups import BY_USER, PastMessage, find_all_sayings, is_here
from reverie.offline.talk.memory_writes import below_memory
from reverie.offline.talk.turn import Talk
from reverie.offline.terms import coverage, read_question

_SHOWN = 12
_MESSAGES = 5
_TEXT = 160
_FIELD = re.compile(r"^description:\s*(.+)$")
_ME = re.compile(r"^(?:me|myself|mich|mir|mí|我|私)$", re.IGNORECASE)


def tell_memory(talk: Talk, about: str) -> Step:
    """Lists every memory with its description, or those that fit the named subject."""
    where = talk.place.memory
    if not where:
        return Answer(talk.word("memory_off"))
    if not talk.can("Grep"):
        kept = [(one.file, one.hook or one.title) for one in talk.place.index]
    else:
        listing = talk.result("Grep", path=where)
        if listing is None:
            given = {
                "pattern": "^description: *\\S",
                "path": where,
                "glob": "*.md",
                "output_mode": "content",
                "head_limit": 200,
            }
            return talk.act("Let me look into my memory.", "Grep", given)
        kept = _descriptions(talk, listing)
    kept = _about(kept, about)
    if not kept:
        if not about:
            return Answer(talk.word("memory_empty"))
        return Answer(talk.word("nothing_known", what=talk.word("you") if _ME.match(about) else about))
    lines = [f"- {text} ({file})" for file, text in kept[:_SHOWN]]
    lines += [talk.word("more_lines", count=str(len(kept) - _SHOWN))] if len(kept) > _SHOWN else []
    named = f" ({about})" if about and not _ME.match(about) else ""
    return Answer(talk.word("memory_holds", about=named, list="\n".join(lines)))


def _descriptions(talk: Talk, listing: Done) -> list[tuple[str, str]]:
    found = dict[str, str]()
    for hit in listing.hits():
        text = _FIELD.match(hit.text.strip())
        if text and PurePath(hit.path).name != "MEMORY.md":
            found.setdefault(below_memory(talk, hit.path), text[1].strip("\"'"))
    return list(found.items())


def _about(kept: list[tuple[str, str]], about: str) -> list[tuple[str, str]]:
    if not about:
        return kept
    if _ME.match(about):
        return [one for one in kept if one[0].startswith("user")] or [
            one for one in kept if one[0].startswith("feedback")
        ]
    question = read_question(about)
    scored = [(coverage(f"{file.replace('_', ' ')} {text}", question), (file, text)) for file, text in kept]
    return [one for share, one in sorted(scored, key=lambda each: -each[0]) if share >= 0.5]


def tell_last_time(talk: Talk) -> Step:
    """Reports what the user said in the newest session except this one, and the state in its notes."""
    where = talk.place.transcripts
    if not where or not talk.can("Glob", "Grep"):
        return Answer(talk.word("no_last"))
    sessions = talk.result("Glob", path=where)
    if sessions is None:
        return talk.act("Let me see which sessions there were.", "Glob", {"pattern": "*.jsonl", "path": where})
    newest = sessions.files()[:3]
    if newest and not any(talk.results("Grep")):
        calls = tuple(talk.call("Grep", _asked_in(path)) for path in newest)
        return Act("Let me see what was said there.", calls)
    said = _newest(talk, newest)
    if not said:
        return Answer(talk.word("no_last"))
    notes = f"{said[0].path.removesuffix('.jsonl')}/session-memory/summary.md"
    read = talk.result("Read", file_path=notes)
    if read is None and talk.can("Read"):
        return talk.act("It may have left notes.", "Read", {"file_path": notes, "limit": 60})
    lines = [f"- {one.text[:_TEXT]}" for one in said[:_MESSAGES]] + (["- …"] if len(said) > _MESSAGES else [])
    text = talk.word("last", day=said[-1].day, session=said[0].session, list="\n".join(lines))
    stood = _where_things_stood(read) if read is not None else ""
    return Answer(f"{text}\n\n{stood}".rstrip())


def _asked_in(path: str) -> dict[str, object]:
    return {"pattern": BY_USER, "path": path, "output_mode": "content", "head_limit": _MESSAGES + 1}


def _newest(talk: Talk, files: list[str]) -> list[PastMessage]:
    """The messages of the first file that is not this conversation, where all of them were said."""
    here = {text for role, text in [*talk.turn.before, ("user", talk.turn.question)] if role == "user"}
    for path in files:
        done = talk.result("Grep", path=path)
        said = find_all_sayings(done) if done is not None else []
        if said and not all(is_here(one, here) for one in said):
            return said
    return []


def _where_things_stood(read: Done) -> str:
    lines = [line.text for line in read.lines()]
    start = next((at for at, line in enumerate(lines) if line.startswith("# Where things stand")), None)
    if start is None:
        return ""
    body = list[str]()
    for line in lines[start + 1 :]:
        if line.startswith("# "):
            break
        if line.strip() and not line.startswith("_"):
            body.append(line[:_TEXT])
    return "Its notes say:\n" + "\n".join(body[:6]) if body else ""


def tell_overview(talk: Talk) -> Step:
    """Shows the beginning of the README, and the top level of the folder."""
    if not talk.can("Glob", "Read"):
        return Answer(talk.about())
    found = talk.result("Glob")
    if found is None:
        return talk.act("Let me look for a README.", "Glob", {"pattern": "{README,readme,Readme}*"})
    files = sorted(found.files(), key=len)
    if not files:
        return Answer(talk.word("nothing", what="README", places=talk.place.folder or "."))
    read = talk.result("Read", file_path=files[0])
    if read is None:
        return talk.act(f"Let me read {files[0]}.", "Read", {"file_path": files[0], "limit": 60})
    lines = [line.text for line in read.lines()]
    text = "\n".join(lines)
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()][:4]
    return Answer(f"{files[0]}:\n\n" + "\n\n".join("> " + part.replace("\n", "\n> ") for part in paragraphs))
