"""Lets several agents look things up at once: forks of the conversation, which share its cache, with one task each.

They report by message; what has arrived is shown, the rest is still under way. It never invents tasks.
"""

from __future__ import annotations

from reverie.offline.step import Act, Answer, Step
from reverie.offline.talk.turn import Talk
from reverie.offline.terms import read_question

MOST_AGENTS = 8
_WORDS = 5
_LINES = 4
_TEXT = 200


def delegate(talk: Talk, tasks: tuple[str, ...]) -> Step:
    """Starts one agent per task, all in one message; then shows what their messages say."""
    started = list(talk.results("Agent"))
    if not started:
        if not talk.can("Agent"):
            return Answer(talk.word("no_agents"))
        calls = tuple(talk.call("Agent", {"description": _title(task), "prompt": task}) for task in tasks[:MOST_AGENTS])
        return Act("I start them.", calls)
    failed = next((done.text for done in started if done.failed), "")
    if failed:
        return Answer(f"{talk.word('failed')} {failed[:_TEXT]}")
    return Answer("\n".join(list_messages(talk)) or talk.word("agents_work", count=str(len(started))))


def list_messages(talk: Talk) -> list[str]:
    """Lists what other agents wrote since the question: one line per message."""
    return [f"- {sender}: {_short(text)}" for sender, text in sorted(talk.turn.letters)]


def _title(task: str) -> str:
    """A few words that distinguish one task from another: its subject and its file."""
    question = read_question(task)
    files = [path.rsplit("/", 1)[-1] for path in question.paths]
    terms = [term for term in question.terms if not any(term in path for path in question.paths)]
    words = [*terms[:2], *(["in", files[0]] if files and terms else files[:1])]
    return " ".join(words) or " ".join(task.split()[:_WORDS])


def _short(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    quoted = [line.removeprefix("- ") for line in lines if line.startswith("- ")] or lines
    return " / ".join(line[:_TEXT] for line in quoted[:_LINES])
