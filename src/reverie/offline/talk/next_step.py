"""Which part of the librarian answers: chosen by what the user wants. Questions go through all sources."""

from __future__ import annotations

from typing import assert_never

from reverie.models.base import Request
from reverie.offline.step import Act, Answer, Step
from reverie.offline.talk.delegating import delegate, list_messages
from reverie.offline.talk.findings import find_at_hand
from reverie.offline.talk.forgetting import forget
from reverie.offline.talk.lookups import find_said_before, look, measure_coverage, quote_lines, quote_memories
from reverie.offline.talk.memory_writes import first_line, keep
from reverie.offline.talk.reports import tell_last_time, tell_memory, tell_overview
from reverie.offline.talk.running import run
from reverie.offline.talk.turn import Talk
from reverie.offline.talk.wants import (
    Delegate,
    Forget,
    Greeting,
    LastTime,
    Lookup,
    Overview,
    Remember,
    Run,
    Thanks,
    Told,
    Unsure,
    Want,
    WhatIsKnown,
    Work,
    read_want,
)
from reverie.offline.talk.wording import join_words, places
from reverie.offline.terms import Question, read_question

_ANSWERS = 3
_CLEAR = 0.6
"""What covers so much of a question is an answer; no further lookup is needed."""
_LOOKS = frozenset({"Read", "Grep", "Glob"})
"""The tools that only read. Every other call needs somebody who may ask for it."""
_LOOKED_UP = (Lookup, WhatIsKnown, LastTime, Overview)
"""What material can ask for; anything else in it is text to look for."""


def next_step(request: Request) -> Step:
    """The next step in this conversation. Whatever was chosen, it only acts for somebody who may ask for it."""
    talk = Talk.of(request)
    want = read_want(talk.turn.question)
    if not talk.turn.is_request and not isinstance(want, _LOOKED_UP):
        want = Lookup(talk.turn.question)
    step = _chosen(talk, want)
    if isinstance(step, Act) and not talk.turn.may_act and any(call.tool not in _LOOKS for call in step.calls):
        return Answer("\n".join(list_messages(talk)) or talk.word("not_asked"))
    return step


def _chosen(talk: Talk, want: Want) -> Step:
    match want:
        case Remember():
            return keep(talk, want.text)
        case Forget():
            return forget(talk, want.text)
        case Run():
            return run(talk, want.commands)
        case Unsure():
            what = join_words([f"`{command}`" for command in want.commands])
            return Answer(talk.word("ask_run", what=what) if what else talk.word("ask_forget"))
        case WhatIsKnown():
            return tell_memory(talk, want.about)
        case LastTime():
            return tell_last_time(talk)
        case Delegate():
            return delegate(talk, want.tasks)
        case Overview():
            return tell_overview(talk)
        case Greeting():
            return Answer(f"{talk.word('hello')} {talk.about()}")
        case Thanks():
            return Answer(talk.word("welcome"))
        case Told():
            return _heard(talk, want.text)
        case Work():
            return _work(talk, want.text)
        case Lookup():
            return _answer(talk, want.text)
        case _:
            assert_never(want)


def _heard(talk: Talk, text: str) -> Step:
    """A statement. If memory says something about the same subject, it is shown, since it may differ."""
    known = [one.text for one in find_at_hand(talk, read_question(text)) if one.rank == 2][:1]
    return Answer("\n\n".join([talk.word("heard"), *known]))


def _work(talk: Talk, text: str) -> Step:
    """A task that needs a model that thinks: it says this clearly, with the places the task is about."""
    question = read_question(text)
    looking = look(talk, question) if question.terms or question.paths else None
    if isinstance(looking, Act) and looking.calls[0].input.get("path") != talk.place.transcripts:
        return looking
    shown = _shown(talk, question)
    return Answer("\n\n".join(filter(None, [talk.word("work"), shown, talk.about()])))


def _answer(talk: Talk, text: str) -> Step:
    question = read_question(text)
    if not question.terms and not question.paths:
        return Answer(talk.about())
    found = find_at_hand(talk, question)
    if found and not talk.done and (found[0].covers >= _CLEAR or not talk.offered):
        best = found[0].covers
        return Answer("\n\n".join(one.text for one in found[:_ANSWERS] if one.covers >= best))
    looking = look(talk, question)
    if looking is not None:
        return looking
    remembered = [one.text for one in quote_memories(talk, question)[:_ANSWERS]]
    shown = "" if remembered else _shown(talk, question)
    earlier = [one.text for one in find_said_before(talk, question)]
    near = [] if shown or remembered or earlier else [one.text for one in found[:1]]
    if answer := "\n\n".join(filter(None, [*remembered, shown, *earlier, *near])):
        return Answer(answer)
    what = join_words(question.terms or question.paths)
    where = places(memory=bool(talk.place.memory), files=bool(talk.done), past=bool(talk.place.transcripts))
    refused = next((done for done in reversed(talk.done) if done.failed), None)
    why = f" ({refused.tool}: {first_line(refused.text)})" if refused is not None else ""
    return Answer(f"{talk.word('nothing', what=what, places=where)}{why}\n\n{talk.word('cannot')}")


def _shown(talk: Talk, question: Question) -> str:
    """Lines of files that were found, with their places; empty if they hardly touch the question."""
    lines = quote_lines(talk, question)
    if not lines or (question.terms and not question.paths and measure_coverage(talk, question) < 0.34):
        return ""
    where = join_words(list(dict.fromkeys(line.path for line in lines)))
    head = talk.word("found", what=join_words(question.terms or question.paths), where=where)
    return "\n".join([head, "", *(f"- {line.path}:{line.number}: {line.text.strip()[:200]}" for line in lines)])
