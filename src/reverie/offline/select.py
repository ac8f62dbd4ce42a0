"""Which memories fit a message, from the list alone: by the words they share, and none where that says too little.

Knows of each memory what stands in the list (file, kind, description), as any model that selects does. The ranker,
which knows the texts, does better and is what a session asks; this answers whoever asks the model itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass

from reverie.memory.recall.ranking.lexical import term_weight
from reverie.memory.recall.ranking.manner import manner
from reverie.memory.recall.ranking.mixture import RankSignals, decide
from reverie.memory.recall.ranking.tools import tools_in_use
from reverie.memory.recall.reminder import MAX_FILES
from reverie.models.base import Request
from reverie.offline.step import Say, Step
from reverie.text.words import FUNCTION_TERMS, terms, words

_QUESTION = re.compile(r"The message:\n(.*?)\n\nTools in use: ([^\n]*)\n\nMemories:\n(.*)\Z", re.DOTALL)
_LINE = re.compile(r"^- (?:\[(?P<type>\w+)\] )?(?P<file>\S.*?\.md) \([^()]*\)(?:: (?P<about>.*))?$")
_WARNS = re.compile(
    r"\b(?:warn|gotcha|pitfall|trap|caveat|beware|never|don't|do not|bug|broken|careful)", re.IGNORECASE
)
_MANUAL = re.compile(
    r"\b(?:usage|how to|cheat ?sheet|syntax|arguments?|parameters?|options|commands?)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Scored:
    file: str
    signals: RankSignals

    @property
    def score(self) -> float:
        return self.signals.words


def next_step(request: Request) -> Step:
    """The names of up to five files, the best first."""
    text = "\n".join(message.text for message in request.messages)
    asked = _QUESTION.search(text)
    chosen = _chosen(asked[1], asked[2], asked[3]) if asked else []
    return Say(json.dumps({"selected_memories": chosen}))


def _chosen(query: str, tools: str, manifest: str) -> list[str]:
    lines = [found for line in manifest.splitlines() if (found := _LINE.match(line))]
    used = {name for tool in tools_in_use(tools.split(", ")) if not tool.ordinary for name in tool.name}
    about = {
        line["file"]: set(terms(f"{line['file'].removesuffix('.md')} {line['about'] or ''}"))
        for line in lines
        if not _is_manual(line["about"] or "", used)
    }
    asked = set(terms(query))
    weights = {word: _weight(word, about.values()) for word in asked}
    whole = sum(weights.values())
    if not whole:
        return []
    scored = [
        _Scored(file, RankSignals(sum(weights[word] for word in asked & known) / whole, None, 0.0))
        for file, known in about.items()
    ]
    ranked = sorted((one for one in scored if one.score > 0), key=lambda one: (-one.score, one.file))
    decision = decide(query, ranked, manner=manner(query), nearness=None, limit=MAX_FILES)
    return [one.file for one in ranked[: decision.show]]


def _weight(term: str, known: Collection[set[str]]) -> float:
    """How telling a term is among these memories; everyday words tell little."""
    return term_weight(len(known), sum(term in one for one in known), is_content=term not in FUNCTION_TERMS)


def _is_manual(about: str, used: set[str]) -> bool:
    """Whether it only tells how to use a tool that is in use already."""
    return bool(used & set(words(about))) and bool(_MANUAL.search(about)) and not _WARNS.search(about)
