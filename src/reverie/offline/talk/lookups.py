"""Looks for an answer: a memory in the index, then the files here, then earlier sessions; each at most once per turn.

Decides the next call, or None when everything was searched; the functions below the line show the results.
"""

from __future__ import annotations

import re

from reverie.offline.conversation import Done, Line
from reverie.offline.step import Act
from reverie.offline.talk.findings import ENOUGH, Finding, find_pointers
from reverie.offline.talk.turn import Talk
from reverie.offline.talk.wording import join_words
from reverie.offline.terms import Question, coverage, defines, fit, pattern
from reverie.parsing import load_json
from reverie.quick import dataclass

MOST_CALLS = 7
"""Calls per turn; then it answers with what it has."""

QUOTED_LINES = 6
READ_LINES = 40
_DEFINED = 30

BY_USER = '"(?:typed|entered|person)"'
"""What is in front of a user message in its record, in old records too; its time is directly before that."""
_RECORD = re.compile(r'"timestamp":"(?P<day>\d{4}-\d{2}-\d{2})[^"]*".*?"content":"(?P<text>.*)$', re.DOTALL)
_SESSION = re.compile(r"([0-9a-f]{8})-[0-9a-f-]{27}\.jsonl$|([^/]+)\.jsonl$")


@dataclass(frozen=True, slots=True)
class PastMessage:
    """What the user typed in a session, by its transcript."""

    session: str
    day: str
    text: str
    path: str = ""


def look(talk: Talk, question: Question) -> Act | None:
    """The next call that may help; None if there is none."""
    if len(talk.done) >= MOST_CALLS:
        return None
    steps = (_open_named, _find_named, _open_memory, _search, _past)
    return next((act for step in steps if (act := step(talk, question)) is not None), None)


def _open_named(talk: Talk, question: Question) -> Act | None:
    named = [path for path in question.paths if talk.result("Read", file_path=path) is None]
    if not talk.can("Read") or not named or any(talk.results("Read")):
        return None
    return talk.act(f"Let me read {named[0]}.", "Read", {"file_path": named[0], "limit": 200})


def _find_named(talk: Talk, question: Question) -> Act | None:
    """A named file that is not where the question says: searched by its name alone, then opened."""
    if not question.paths or not any(done.failed for done in _file_reads(talk)) or not talk.can("Glob", "Read"):
        return None
    found = talk.result("Glob")
    if found is None:
        name = question.paths[0].rsplit("/", 1)[-1]
        return talk.act("Not there; perhaps elsewhere.", "Glob", {"pattern": f"**/{name}"})
    files = sorted(found.files(), key=lambda path: (len(path), path))
    if not files or any(talk.results("Read", file_path=files[0])):
        return None
    return talk.act(f"There it is: {files[0]}.", "Read", {"file_path": files[0], "limit": 400})


def _open_memory(talk: Talk, question: Question) -> Act | None:
    """A memory that the index points to and recall did not show."""
    best = find_pointers(talk, question)
    if not best or not talk.can("Read") or not talk.place.memory:
        return None
    path = f"{talk.place.memory.rstrip('/')}/{best[0][1]}"
    if any(talk.results("Read", file_path=path)):
        return None
    return talk.act("The index of my memory points to something.", "Read", {"file_path": path})


def _search(talk: Talk, question: Question) -> Act | None:
    """By content, then by name, then the best file itself."""
    if quote_memories(talk, question) or any(done.lines() for done in _file_reads(talk)):
        return None
    best = _best_line(talk, question)
    if best is not None:
        path, number = best
        if not talk.can("Read") or any(talk.results("Read", file_path=path)):
            return None
        window = {"file_path": path, "offset": max(1, number - READ_LINES // 4), "limit": READ_LINES}
        return talk.act(f"{path} looks right; let me read it.", "Read", window)
    if talk.can("Grep") and question.terms and not list(_greps(talk)):
        given = {"pattern": pattern(question), "output_mode": "content", "-i": True, "-n": True, "head_limit": 200}
        return talk.act(f"Let me look for {join_words(question.terms)}.", "Grep", given)
    if talk.can("Glob") and not any(talk.results("Glob")):
        wanted = question.paths[0].rsplit("/", 1)[-1] if question.paths else f"*{question.terms[0]}*"
        return talk.act("Nothing in the text; perhaps in a file's name.", "Glob", {"pattern": f"**/{wanted}"})
    return None


def _past(talk: Talk, question: Question) -> Act | None:
    """What was said in earlier sessions, if nothing here covers the question."""
    where = talk.place.transcripts
    if not where or not talk.can("Grep") or not question.terms or any(talk.results("Grep", path=where)):
        return None
    if quote_memories(talk, question) or measure_coverage(talk, question) >= ENOUGH:
        return None
    plain = "|".join(re.escape(term).replace(r"\ ", " ").replace(r"\-", "-") for term in question.terms)
    given = {
        "pattern": f"{BY_USER}.*(?:{plain})",
        "path": where,
        "glob": "*.jsonl",
        "output_mode": "content",
        "-i": True,
        "head_limit": 100,
    }
    return talk.act("Not here; perhaps it was said in an earlier session.", "Grep", given)


# -- what was found ---------------------------------------------------------------------------------------------------


def _greps(talk: Talk) -> list[Done]:
    return [done for done in talk.results("Grep") if done.input.get("path") != talk.place.transcripts]


def _file_reads(talk: Talk) -> list[Done]:
    memory = talk.place.memory
    reads = talk.results("Read")
    return [done for done in reads if not (memory and str(done.input.get("file_path", "")).startswith(memory))]


def _best_line(talk: Talk, question: Question) -> tuple[str, int] | None:
    """The file that fits the question best, and its best line."""
    hits = [hit for done in _greps(talk) for hit in done.hits() if fit(hit.text, question)]
    if hits:
        best = _best_file(hits, question)
        top = max((hit for hit in hits if hit.path == best), key=lambda hit: (fit(hit.text, question), -hit.number))
        return top.path, top.number
    files = [path for done in talk.results("Glob") for path in done.files()]
    return (min(files, key=lambda path: (-fit(path, question), len(path), path)), 1) if files else None


def _best_file(hits: list[Line], question: Question) -> str:
    """By how much of the question it covers, then by its best line, then by how many lines fit."""

    def rank(path: str) -> tuple[float, float, int, str]:
        own = [hit for hit in hits if hit.path == path]
        together = coverage(" ".join([path, *(hit.text for hit in own)]), question)
        return -together, -max(fit(hit.text, question) for hit in own), -len(own), path

    return min({hit.path for hit in hits}, key=rank)


def measure_coverage(talk: Talk, question: Question) -> float:
    """How much of the question the files cover, at best in one file."""
    texts = dict[str, list[str]]()
    for line in _lines(talk):
        texts.setdefault(line.path, [line.path]).append(line.text)
    return max((coverage(" ".join(text), question) for text in texts.values()), default=0.0)


def _lines(talk: Talk) -> list[Line]:
    read = [line for done in _file_reads(talk) for line in done.lines()]
    hits = [hit for done in _greps(talk) for hit in done.hits()]
    return list({(line.path, line.number): line for line in [*hits, *read]}.values())


def quote_lines(talk: Talk, question: Question) -> list[Line]:
    """Quotes the lines that fit best, in file order; of a file that the user named, its beginning."""
    if question.definitions:
        return [line for line in _lines(talk) if defines(line.text)][:_DEFINED]
    fitting = [line for line in _lines(talk) if fit(line.text, question) > 0]
    if not fitting:
        read = [line for done in _file_reads(talk) for line in done.lines() if line.text.strip()]
        named = {path.rsplit("/", 1)[-1] for path in question.paths}
        by_name = any(talk.results("Glob"))
        return [line for line in read if by_name or line.path.rsplit("/", 1)[-1] in named][:QUOTED_LINES]
    most = max(fit(line.text, question) for line in fitting)
    close = [line for line in fitting if fit(line.text, question) >= most / 2]
    close.sort(key=lambda line: (-fit(line.text, question), line.path, line.number))
    return sorted(close[:QUOTED_LINES], key=lambda line: (line.path, line.number))


def quote_memories(talk: Talk, question: Question) -> list[Finding]:
    """Quotes what the opened memories say about it."""
    found = list[Finding]()
    for done in talk.results("Read"):
        path = str(done.input.get("file_path", ""))
        if not talk.place.memory or not path.startswith(talk.place.memory):
            continue
        lines = [line.text.strip() for line in done.lines() if line.text.strip()]
        fences = [at for at, line in enumerate(lines) if line == "---"]
        body = lines[fences[1] + 1 :] if len(fences) > 1 else lines
        best = max(body, key=lambda line: coverage(line, question), default="")
        if best:
            name = path[len(talk.place.memory.rstrip("/")) + 1 :]
            found.append(Finding(talk.word("index", file=name, text=best[:300]), coverage(" ".join(body), question), 2))
    return [one for one in found if one.covers]


def find_said_before(talk: Talk, question: Question) -> list[Finding]:
    """Finds what was said in earlier sessions and covers enough, newest first; questions do not count."""
    found = list[tuple[str, float, PastMessage]]()
    for done in talk.results("Grep", path=talk.place.transcripts):
        for said in find_sayings(talk, done):
            covers = coverage(said.text, question)
            if covers >= ENOUGH and not said.text.rstrip().endswith(("?", "？")):
                found.append((said.day, covers, said))
    found.sort(key=lambda each: (-each[1], [-ord(char) for char in each[0]]))
    unique = dict.fromkeys((said.text, said.day, said.session) for _, _, said in found)
    best = max((covers for _, covers, _ in found), default=0.0)
    return [
        Finding(talk.word("earlier", day=day, session=session, text=text[:300]), best) for text, day, session in unique
    ][:2]


def find_sayings(talk: Talk, done: Done) -> list[PastMessage]:
    """Finds what the user typed in other sessions, by a search of transcripts."""
    here = {text.strip() for role, text in [*talk.turn.before, ("user", talk.turn.question)] if role == "user"}
    return [said for said in find_all_sayings(done) if not is_here(said, here)]


def is_here(said: PastMessage, here: set[str]) -> bool:
    """Whether it is one of these messages, which a search may show cut."""
    text = said.text.rstrip("…")
    whole = {" ".join(one.split()) for one in here}
    return any(text and (one.startswith(text) or text.startswith(one)) for one in whole if one)


def find_all_sayings(done: Done) -> list[PastMessage]:
    """Finds what the user typed, by a search of transcripts."""
    found = list[PastMessage]()
    for hit in done.hits():
        record, named = _RECORD.search(hit.text), _SESSION.search(hit.path)
        if record and named:
            found.append(PastMessage(named[1] or named[2], record["day"], _unescaped(record["text"]), hit.path))
    return found


def _unescaped(raw: str) -> str:
    """The beginning of a JSON string, which may be cut anywhere, as one line of text."""
    end = re.search(r'(?<!\\)(?:\\\\)*"', raw)
    body = raw[: end.end() - 1] if end else raw.rstrip("…").rstrip("\\")
    try:
        text = str(load_json(f'"{body}"'))
    except ValueError:
        text = body.replace("\\n", " ").replace('\\"', '"')
    return " ".join(text.split())
