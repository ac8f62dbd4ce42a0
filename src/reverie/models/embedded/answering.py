"""What the embedded model does next: look, read, or answer in plain words with the lines it found.

A pure function of the conversation and the tools at hand. It calls only tools that are offered, at most a handful a
turn, and says so when it found nothing.
"""

from __future__ import annotations

from reverie.models.base import Request
from reverie.models.embedded.conversation import Done, Line, Turn, read_turn
from reverie.models.embedded.step import Act, Call, Say, Step, offered_tools
from reverie.models.embedded.terms import Question, fit, pattern, read_question
from reverie.types import JsonObject

MOST_CALLS = 5
"""Calls a turn; then it answers with what it has."""

QUOTED_LINES = 6
READ_LINES = 40
PRINTED_LINES = 20

ABOUT = (
    "I am Reverie's embedded model: no key, no network, no weights. I search the files and this conversation and quote"
    " what I find. For a model that thinks, set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a local server with"
    " `--model openai:<model>` and its base URL."
)


def next_step(request: Request) -> Step:
    """The next thing to do in this conversation."""
    turn = read_turn(request)
    question = read_question(turn.question)
    if question.command and "Bash" in offered_tools(request):
        return _run(turn, question, offered_tools(request))
    if not question.terms and not question.paths:
        return Say(f"{_remembered(turn, question)}\n\n{ABOUT}".lstrip())
    if question.about_us and (known := _remembered(turn, question, share=1.0)):
        return Say(known)
    if known := _from_memory(turn, question, share=0.5):
        return Say(known)
    looking = _look(turn, question, offered_tools(request))
    return looking or Say(_answer(turn, question))


def _look(turn: Turn, question: Question, offered: dict[str, JsonObject]) -> Act | None:
    """Search by content, then by name, then read the best file: each once, and none that failed again."""
    if len(turn.done) >= MOST_CALLS:
        return None
    used = {done.tool for done in turn.done}
    named = [path for path in question.paths if not any(done.input.get("file_path") == path for done in turn.done)]
    if "Read" in offered and "Read" not in used and named:
        return _call(offered, f"Let me read {named[0]}.", "Read", {"file_path": named[0], "limit": 200})
    if any(done.tool == "Read" and done.lines() for done in turn.done):
        return None
    best = _best_line(turn, question)
    if best is None and "Grep" in offered and "Grep" not in used and question.terms:
        return _call(
            offered,
            f"Let me look for {_listed(question.terms)}.",
            "Grep",
            {"pattern": pattern(question), "output_mode": "content", "-i": True, "-n": True, "head_limit": 200},
        )
    if best is None and "Glob" in offered and "Glob" not in used:
        wanted = question.paths[0].rsplit("/", 1)[-1] if question.paths else f"*{question.terms[0]}*"
        return _call(offered, "Nothing in the text; perhaps in a file's name.", "Glob", {"pattern": f"**/{wanted}"})
    if best is not None and "Read" in offered:
        path, number = best
        if any(done.tool == "Read" and done.input.get("file_path") == path for done in turn.done):
            return None
        window = {"file_path": path, "offset": max(1, number - READ_LINES // 4), "limit": READ_LINES}
        return _call(offered, f"{path} looks right; let me read it.", "Read", window)
    return None


def _run(turn: Turn, question: Question, offered: dict[str, JsonObject]) -> Step:
    """Runs what the person asked to be run, once, and quotes what it printed."""
    ran = next((done for done in turn.done if done.tool == "Bash"), None)
    if ran is None:
        return _call(offered, "Let me run it.", "Bash", {"command": question.command})
    shown = [line[:200] for line in ran.text.splitlines() if line.strip()][:PRINTED_LINES]
    said = "It did not work" if ran.failed else "It printed"
    return Say("\n".join([f"{said}:", "", "```", *shown, "```"]) if shown else "It ran and printed nothing.")


def _call(offered: dict[str, JsonObject], say: str, tool: str, given: JsonObject) -> Act:
    """A call with those of the inputs that the tool takes."""
    known = offered[tool]
    return Act(say, (Call(tool, {key: value for key, value in given.items() if key in known or not known}),))


def _best_line(turn: Turn, question: Question) -> tuple[str, int] | None:
    """The file that fits the question best, and its best line."""
    hits = [hit for done in turn.done if done.tool == "Grep" for hit in done.hits()]
    if hits:
        best = _best_file(hits, question)
        top = max((hit for hit in hits if hit.path == best), key=lambda hit: (fit(hit.text, question), -hit.number))
        return top.path, top.number
    files = [path for done in turn.done if done.tool == "Glob" for path in done.files()]
    return (min(files, key=lambda path: (-fit(path, question), len(path), path)), 1) if files else None


def _best_file(hits: list[Line], question: Question) -> str:
    """By how many of the terms it holds, then by its best line, then by how many lines fit."""

    def rank(path: str) -> tuple[float, float, int, str]:
        own = [hit for hit in hits if hit.path == path]
        together = fit(" ".join([path, *(hit.text for hit in own)]), question)
        return -together, -max(fit(hit.text, question) for hit in own), -len(own), path

    return min({hit.path for hit in hits}, key=rank)


def _answer(turn: Turn, question: Question) -> str:
    sought = _listed(question.terms) if question.terms else _listed(question.paths)
    quoted = _quoted(turn.done, question)
    remembered = _remembered(turn, question)
    if quoted:
        where = _listed(tuple(dict.fromkeys(line.path for line in quoted)))
        told = [f"I looked for {sought} and found this in {where}:", ""]
        told += [f"- {line.path}:{line.number}: {line.text.strip()[:200]}" for line in quoted]
        return "\n".join([*told, "", remembered]).rstrip()
    if remembered:
        return remembered
    if known := _from_memory(turn, question, share=0.0):
        return known
    refused = [done for done in turn.done if done.failed]
    why = f" ({refused[-1].tool} said: {_first_line(refused[-1].text)})" if refused else ""
    return f"I looked for {sought} and found nothing{why}.\n\n{ABOUT}"


def _quoted(done: tuple[Done, ...], question: Question) -> list[Line]:
    """The lines that fit best: of the file that was read, and of the search; in file order."""
    read = [line for each in done if each.tool == "Read" for line in each.lines()]
    hits = [hit for each in done if each.tool == "Grep" for hit in each.hits()]
    lines = list({(line.path, line.number): line for line in [*hits, *read]}.values())
    fitting = [line for line in lines if fit(line.text, question) > 0]
    if not fitting:
        return [line for line in read if line.text.strip()][:QUOTED_LINES]
    most = max(fit(line.text, question) for line in fitting)
    close = [line for line in fitting if fit(line.text, question) >= most / 2]
    close.sort(key=lambda line: (-fit(line.text, question), line.path, line.number))
    return sorted(close[:QUOTED_LINES], key=lambda line: (line.path, line.number))


def _remembered(turn: Turn, question: Question, share: float = 0.5) -> str:
    """What was said before in this conversation that holds this share of the terms; the person's own words first."""
    best: tuple[float, bool, str] | None = None
    for role, text in turn.before:
        for line in text.splitlines():
            held, by_person = fit(line, question), role == "user"
            if not line.strip() or line.rstrip().endswith("?") or held < max(1.0, share * len(question.terms)):
                continue
            if best is None or (held, by_person) >= best[:2]:
                best = (held, by_person, line.strip())
    if best is None:
        return ""
    who = "you said" if best[1] else "I said"
    return f"Earlier in this conversation {who}: {best[2][:300]}"


def _from_memory(turn: Turn, question: Question, share: float) -> str:
    """The line of a recalled memory that holds this share of the terms (none: the first one), with its file."""
    best: tuple[float, str] | None = None
    for memory in turn.recalled:
        for line in memory.lines:
            held = fit(line, question)
            if held >= share * max(1, len(question.terms)) and (best is None or held > best[0]):
                best = (held, f"From memory, {memory.file} ({memory.age}): {line[:300]}")
    return best[1] if best is not None else ""


def _first_line(text: str) -> str:
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "")


def _listed(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
