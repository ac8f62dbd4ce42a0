"""How long parsers of foreign text take: twice the text, at most about twice the time, whatever the text is.

`make test` looks at one size of every pair of parser and text and only stops what is far off; `make soak` doubles each
text from 32 KB to 1 MB. A parser of foreign text that is not in the list below belongs there.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date

import pytest

from reverie.agents.messages.inbox_file import _good_line, _parse_array  # pyright: ignore[reportPrivateUsage]
from reverie.agents.messages.structured import parse as structured
from reverie.cli.chat.markdown_stream import MarkdownStream
from reverie.cli.output import Paint, one_line
from reverie.cli.screen import printable
from reverie.errors import ReverieError
from reverie.instructions.includes import expand, includes
from reverie.instructions.markdown import without_comments
from reverie.instructions.rules import gitignore, split_rule
from reverie.layers.l1_tool_results.replacement import preview
from reverie.layers.l3_session_notes.sections import outline
from reverie.layers.l4_compaction.by_code.definitions import definitions, without_numbers
from reverie.layers.l4_compaction.summary import compact_instructions
from reverie.layers.l4_compaction.survival import inventory
from reverie.memory.changes import Evidence
from reverie.memory.gate.lines import body_parts, put_back, quote_lines, take_out
from reverie.memory.gate.requests import (
    OWN_RULES,
    asks_to_forget,
    clause_to_keep,
    is_assent,
    points_at_text,
    single_question,
)
from reverie.memory.gate.speech import Speech
from reverie.memory.gate.statement import EvidenceText, features
from reverie.memory.index import entries, linked_files, load_index
from reverie.memory.note import classify, find_doubt, title_of
from reverie.memory.recall.reminder import parse_selection
from reverie.memory.references import named_files, named_symbols
from reverie.memory.secrets.scan import find_secrets
from reverie.memory.topic_file import TopicFile, statements_of
from reverie.memory.upkeep.importing import _heading, _sections  # pyright: ignore[reportPrivateUsage]
from reverie.memory.upkeep.purge_forms import SecretForms
from reverie.models.tokens import estimate_text
from reverie.models.wire import read_input
from reverie.offline.consolidate.gather import TypedText
from reverie.offline.consolidate.index_rows import read_rows
from reverie.offline.consolidate.lessons import find_lessons, strip_lead
from reverie.offline.conversation import _LETTER  # pyright: ignore[reportPrivateUsage]
from reverie.offline.language.prose import read_prose
from reverie.offline.talk.wants import read_want
from reverie.offline.terms import read_question
from reverie.parsing import load_json, load_toml, load_yaml, split_long
from reverie.permissions.path_glob import expand_braces
from reverie.permissions.shell_commands import all_commands, plain_commands
from reverie.permissions.strict_shell import is_read_only_shell
from reverie.runtime.hooks import _json_object  # pyright: ignore[reportPrivateUsage]
from reverie.storage.transcript.file import parse_line
from reverie.text.columns import width
from reverie.text.cutting import _pairs  # pyright: ignore[reportPrivateUsage]
from reverie.text.dates.phrases import find_days
from reverie.text.sentences import statements_in
from reverie.text.tongue import tongue_of
from reverie.text.values import hard_facts
from reverie.text.words import content_terms, terms, words
from reverie.types import Origin
from tests.counts import SOAK, count
from tests.work import TooMuchWork, cpu_limit


def _streamed(text: str) -> None:
    for colour in (True, False):
        stream = MarkdownStream(lambda _: None, Paint(colour), 80)
        stream.feed(text)
        stream.finish()


def _in_sentences(judge: Callable[[str], object]) -> Callable[[str], None]:
    """What is only ever asked about a sentence; sentences are cut by `split_long`."""
    return lambda text: [judge(one) for one in split_long(text)].clear()


TODAY = date(2026, 1, 1)
PARSERS: dict[str, Callable[[str], object]] = {
    "topic file": TopicFile.parse,
    "head": lambda text: TopicFile.parse(f"---\n{text}\n---\nbody"),
    "head of one field": lambda text: TopicFile.parse(f"---\ndescription: {text}\n---\nbody"),
    "changed head": lambda text: TopicFile.parse(f"---\ndescription: a{text}\n---\n").with_changes(description="b"),
    "repaired head": lambda text: TopicFile.parse(f"---\nname: a: {text}\n---\n").repair(),
    "rule": split_rule,
    "rule with paths": lambda text: gitignore.__wrapped__(split_rule(f"---\npaths: {text}\n---\n")[0]),
    "rule with a list": lambda text: gitignore.__wrapped__(split_rule(f"---\npaths:\n  - {text}\n---\n")[0]),
    "braces": expand_braces,
    "includes": lambda text: list(includes(text)),
    "expanded includes": lambda text: expand(text, lambda _: True, lambda _: None),
    "comments": without_comments,
    "import": _sections,
    "import's heading": _heading,
    "index": lambda text: load_index(text) and entries(text),
    "links": linked_files,
    "index rows": read_rows,
    "code names": named_files,
    "symbols": named_symbols,
    "statements": statements_of,
    "facts": hard_facts,
    "terms": content_terms,
    "words": words,
    "search terms": terms,
    "secrets": find_secrets,
    "pairs": _pairs,
    "checked facts": features.__wrapped__,
    "yes": is_assent,
    "request to keep": points_at_text,
    "clause to keep": clause_to_keep,
    "request to forget": asks_to_forget,
    "single question": single_question,
    "words of others": lambda text: Speech([Evidence(Origin.TOOL, text)]).is_quoted(
        features("one two three four"), EvidenceText(())
    ),
    "wish of others": lambda text: Speech([Evidence(Origin.TOOL, text)]).others_ask_to_forget,
    "rules of the user": OWN_RULES.search,
    "time of day": lambda text: EvidenceText([text]).has_time("14:30"),
    "lines taken out": lambda text: take_out(text, {bare for _, bare in body_parts(text)[::2]}),
    "lines put back": lambda text: put_back(text, "", [bare for _, bare in body_parts(text)]),
    "quoted lines": lambda text: quote_lines(text, {bare for _, bare in body_parts(text)}),
    "purge": SecretForms(["hunterGreen-4411"]).replace_in_line,
    "kind of a note": classify,
    "doubt about a note": find_doubt,
    "title of a note": title_of,
    "chosen memories": lambda text: parse_selection(text, ()),
    "instructions for compaction": compact_instructions,
    "notes": outline,
    "notes under a heading": lambda text: outline(f"# a\n_{text}\n"),
    "survival": lambda text: inventory(text, ()),
    "definitions": definitions,
    "shown file": without_numbers,
    "preview": lambda text: preview(text, 2_000),
    "answer": _streamed,
    "one line": one_line,
    "printable": printable,
    "width": width,
    "read-only shell": is_read_only_shell,
    "shell of allow rules": plain_commands,
    "shell of deny rules": lambda text: list(all_commands(text)),
    "arguments of a wrapper": lambda text: list(all_commands(f"sudo env {text}")),
    "transcript": lambda text: parse_line(text.encode()),
    "JSON": load_json,
    "tool input": read_input,
    "YAML": load_yaml,
    "TOML": load_toml,
    "mailbox": lambda text: (_parse_array(text.encode()), _good_line(text.encode())),
    "letter": structured,
    "hook's answer": _json_object,
    "tokens": estimate_text,
    "message": read_prose,
    "language": tongue_of,
    "wish": read_want,
    "question": read_question,
    "statements of a memory": statements_in,
    "days": _in_sentences(lambda text: find_days(text, TODAY)),
    "lesson": _in_sentences(strip_lead),
    "lessons of a message": lambda text: find_lessons(TypedText(text, TODAY)),
    "typed words": lambda text: Speech([Evidence(Origin.TYPED, text)]).anchor(features("one two"), frozenset()),
    "letter to the embedded mind": lambda text: _LETTER.match(f"<letter {text}"),
}

UNITS = [
    *" \n\t[(#`*<,1'\"\\/|@:-_=>;~{$a中A.%&?!«‚+)]}^",
    "- ",
    "a.",
    "a b ",
    "A. ",
    "](",
    "`](",
    "1_,",
    "[a](b.md) ",
    "<!--",
    "<a>\n",
    "a\n",
    "- a\n",
    "> ",
    "\r\n",
    "1. ",
    "key: v\n",
    "paths:\n",
    "- [a](b.md) c\n",
    "@a ",
    "a/",
    "a: ",
    "{a,",
    "never ",
    "please, ",
    "password = ",
    "password is ",
    "token:",
    "key=",
    'api_key="',
    "because ",
    "function is ",
    "$(",
    "sudo ",
    '{"a":',
    '"a",',
    "<summary>",
    "<analysis>",
    "<system-reminder>",
    "<system-reminder",
    '<letter from="a"',
    "1_,",
    "token:",
    "key=",
    "\\[",
    "  a",
]


def _random(size: int) -> str:
    draw = random.Random(7)
    return "".join(draw.choices([*UNITS, "word ", "Another sentence. "], k=size))[:size]


def _repeated(unit: str) -> Callable[[int], str]:
    return lambda size: (unit * (size // len(unit) + 1))[:size]


TEXTS: dict[str, Callable[[int], str]] = {repr(unit): _repeated(unit) for unit in UNITS} | {
    "blanks inside a heading": lambda size: f"# b{' ' * size}c",
    "blanks inside a sentence": lambda size: f"Always x{' ' * size}because y.",
    "blanks then text": lambda size: f"{' ' * size}a b",
    "lines inside a text": lambda size: "a" + "\n" * size + "b",
    "an open text": lambda size: '"' + '\\"' * (size // 2),
    "an open fence": lambda size: "```\n" + "x\n" * (size // 2),
    "an open bracket": lambda size: "[" + "[a]" * (size // 3),
    "random": _random,
}
_FIRST, _LAST = 32_768, 1_048_576
_FACTOR = 2.6
_IN_DOUBT = 2.2
_NOISE_S = 0.02
_LONGEST_S = 60.0
_STOP_S, _LONG_S, _GROWTH = 10.0, 0.15, 3.0


def _cpu(parse: Callable[[str], object], text: str, stop: float) -> float:
    began = time.process_time()
    with suppress(ValueError, ReverieError), cpu_limit(stop):
        parse(text)
    return time.process_time() - began


@pytest.mark.parametrize("name", PARSERS)
def test_no_text_takes_long(name: str) -> None:
    """Every fifth text, unless in a soak. What takes longer than most is judged by what twice the text takes."""
    parse, size = PARSERS[name], count(8_192, _FIRST)
    chosen_texts = list(TEXTS.items()) if SOAK else list(TEXTS.items())[len(name) % 5 :: 5]
    slow = list[str]()
    gc.disable()  # one look through all that the tests have loaded takes longer than a parser may
    try:
        for kind, made in chosen_texts:
            try:
                if _cpu(parse, made(size), _STOP_S) > _LONG_S:
                    before, took = _medians(parse, made(size), made(2 * size))
                    assert took <= _GROWTH * before, f"{name}: {kind}: {before:.3f} s, then {took:.3f} s"
            except TooMuchWork:
                slow.append(kind)
    finally:
        gc.enable()
    assert not slow, f"{name} takes more than {_STOP_S} s for {size:,} characters of {', '.join(slow)}"


@pytest.fixture
def own_objects_only() -> Iterator[None]:
    """What the tests have loaded is no work of a parser, so the garbage collector passes over it."""
    gc.collect()
    gc.freeze()
    gc.collect()
    yield
    gc.unfreeze()


@pytest.mark.soak
@pytest.mark.usefixtures("own_objects_only")
@pytest.mark.skipif(not SOAK, reason="up to a minute per parser: make soak")
@pytest.mark.parametrize("name", PARSERS)
def test_twice_the_text_takes_twice_the_time(name: str) -> None:
    """From 32 KB to 1 MB; what takes hardly any time is not judged by its noise.

    The largest text comes first: where that takes hardly any time, no smaller one does. One run per size is enough
    where the time is clearly in order; what comes near the limit is judged by the median of five.
    """
    parse = PARSERS[name]
    for kind, made in TEXTS.items():
        try:
            whole = _cpu(parse, made(_LAST), _LONGEST_S)
            if whole <= _NOISE_S:
                continue
            size, before = _FIRST * 2, _cpu(parse, made(_FIRST), _LONGEST_S)
            while size <= _LAST:
                took = whole if size == _LAST else _cpu(parse, made(size), _LONGEST_S)
                if before > _NOISE_S and took > _IN_DOUBT * before:
                    before, took = _medians(parse, made(size // 2), made(size))
                if before > _NOISE_S:
                    assert took <= _FACTOR * before, f"{name}: {kind}: {before:.3f} s, then {took:.3f} s ({size:,})"
                size, before = size * 2, took
        except TooMuchWork:
            pytest.fail(f"{name} takes more than {_LONGEST_S:.0f} s for {kind}")


def _medians(parse: Callable[[str], object], *texts: str) -> list[float]:
    """Of five runs per text, in turn: whatever else the machine does reaches all of them."""
    runs = [[_cpu(parse, text, _LONGEST_S) for text in texts] for _ in range(5)]
    return [statistics.median(times) for times in zip(*runs, strict=True)]
