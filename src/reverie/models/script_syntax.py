"""Parses the script language into sections, replies, repeats and matchers. See docs/scripts.md.

Every mistake in a script is found here and reported with file and line, so that playing it cannot fail.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any, Literal, NoReturn, TypeAlias, cast, get_args

from reverie.errors import UserError
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.text.patterns import late
from reverie.types import JsonObject, Purpose

FaultKind: TypeAlias = Literal[
    "overloaded",
    "rate-limited",
    "server-error",
    "unreachable",
    "cut",
    "prompt-too-long",
    "bad-request",
    "authentication",
]

SERVER_FAULTS = {
    "overloaded": (529, "The model is overloaded"),
    "rate-limited": (429, "The rate limit is reached"),
    "server-error": (500, "The server failed"),
}
"""Faults of an overloaded server, with their HTTP status."""

ANY_PURPOSE = "*"
PLACEHOLDER = late(r"\{(round|turn|loop|i|text|result)\}")

_SECTIONS = (*(purpose.value for purpose in Purpose), ANY_PURPOSE)
_VERBS = ("say", "think", "call", "malformed", "fill", "empty", "stop", "fail", "wait", "slow", "usage")
_BLOCKS = ("repeat", "when", "end")
_CALL = late(r"(?P<name>[A-Za-z_][\w.:-]*)\s*(?P<json>.*?)(?:\s+x(?P<times>\d+))?\s*", re.DOTALL)
_WHEN = late(r"/(?P<regex>.*)/(?P<flags>i?)\s*")
_TIMES = late(r"(?P<count>\d+)x|always")


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Think:
    text: str


@dataclass(frozen=True, slots=True)
class Fill:
    """A number of characters of plain prose, to make a conversation large."""

    characters: int


@dataclass(frozen=True, slots=True)
class Call:
    """`times` parallel calls. `malformed`: the input is sent unchanged, and is not valid JSON."""

    name: str
    input: str
    times: int = 1
    malformed: bool = False


Part: TypeAlias = Say | Think | Fill | Call


@dataclass(frozen=True, slots=True)
class Fault:
    """An error instead of the reply (`cut`: in the middle of it). `times`: how often before the reply; None: always."""

    kind: FaultKind
    times: int | None = 1
    retry_after: float | None = None
    after_chars: int = 0
    actual: int = 0
    limit: int = 0
    message: str = ""


@dataclass(slots=True)
class Reply:
    """One reply, filled while its lines are read. `empty`: it has no content on purpose."""

    parts: list[Part] = field(default_factory=list[Part])
    stop: str | None = None
    faults: list[Fault] = field(default_factory=list[Fault])
    wait_s: float = 0.0
    slow_s: float = 0.0
    usage: JsonObject | None = None
    line: int = 0
    empty: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """The replies of `body`, repeated `times` times; None: forever."""

    times: int | None
    body: tuple[Step, ...]


Step: TypeAlias = Reply | Repeat


@dataclass(frozen=True, slots=True)
class When:
    pattern: re.Pattern[str]
    body: tuple[Step, ...]


@dataclass(slots=True)
class ScriptSection:
    """The script of one purpose: replies by position, and matchers that come first."""

    steps: tuple[Step, ...] = ()
    whens: list[When] = field(default_factory=list[When])


def parse_sections(text: str, name: str) -> dict[str, ScriptSection]:
    """The sections of a script, or a `UserError` with the file and the line."""
    return _Parser(text, name).sections()


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._line = 0
        self._lines = list(_join_lines(text))
        self._next = 0

    def sections(self) -> dict[str, ScriptSection]:
        found: dict[str, ScriptSection] = {}
        current = "main"
        while self._next < len(self._lines):
            header = self._peek()
            if header.startswith("["):
                current = self._section_name(header)
                if current in found:
                    self._bad(f"section [{current}] appears twice; put its replies together")
                self._next += 1
            section = found.setdefault(current, ScriptSection())
            section.steps = self._steps(section, closing=None)
        return found

    def _steps(self, section: ScriptSection | None, closing: str | None) -> tuple[Step, ...]:
        """Reads replies up to `end` (of the `closing` block), the next section or the end of the script."""
        opened = self._line
        steps: list[Step] = []
        draft = Reply()

        def finish() -> Reply:
            if draft.line:
                steps.append(draft)
            return Reply()

        while self._next < len(self._lines):
            line = self._peek()
            verb, _, rest = line.partition(" ")
            if line.startswith("[") or (verb == "end" and closing):
                break
            self._next += 1
            if line == "---":
                draft = finish()
            elif verb == "repeat":
                draft = finish()
                steps.append(Repeat(self._times(rest), self._body("repeat")))
            elif verb == "when":
                draft = finish()
                if section is None:
                    self._bad("`when` belongs at the top of a section, not inside another block")
                pattern = self._pattern(rest)
                section.whens.append(When(pattern, self._body("when")))
            elif verb == "end":
                self._bad("`end` without a `repeat` or `when` before it")
            else:
                draft.line = draft.line or self._line
                self._statement(draft, verb, rest)
        finish()
        if closing:
            if self._next >= len(self._lines) or self._peek() != "end":
                self._line = opened
                self._bad(f"this `{closing}` has no `end`")
            self._next += 1
        return tuple(steps)

    def _body(self, kind: str) -> tuple[Step, ...]:
        opened = self._line
        body = self._steps(None, closing=kind)
        if not body:
            self._line = opened
            self._bad(f"this `{kind}` holds no reply")
        return body

    def _statement(self, draft: Reply, verb: str, rest: str) -> None:
        if draft.empty or (verb == "empty" and draft.parts):
            self._bad("`empty` means no content, so it must be alone; separate replies with a line `---`")
        match verb:
            case "say":
                draft.parts.append(Say(rest))
            case "think":
                draft.parts.append(Think(rest))
            case "fill":
                draft.parts.append(Fill(self._number(rest, "fill wants a number of characters, such as `fill 4000`")))
            case "call" | "malformed":
                draft.parts.append(self._call(rest, malformed=verb == "malformed"))
            case "empty":
                draft.empty = True
            case "stop":
                if not re.fullmatch(r"\w+", rest):
                    self._bad("stop wants one stop reason, such as `stop max_tokens`")
                draft.stop = rest
            case "fail":
                draft.faults.append(self._fault(rest))
            case "wait":
                draft.wait_s = self._seconds(rest, "wait")
            case "slow":
                draft.slow_s = self._seconds(rest, "slow")
            case "usage":
                draft.usage = self._object(rest, "usage")
            case _:
                self._unknown(verb, (*_VERBS, *_BLOCKS), "statement")

    def _call(self, rest: str, *, malformed: bool) -> Call:
        found = _CALL.fullmatch(rest)
        if not found:
            self._bad('call wants a tool and its input, such as `call Read {"file_path": "a.txt"}`')
        given, times = found["json"], int(found["times"] or 1)
        if times < 1:
            self._bad("x0 would call nothing; leave the call out")
        if malformed:
            return Call(found["name"], given, times, malformed=True)
        given = given or "{}"
        self._object(PLACEHOLDER.sub("0", given), "the input of a call")
        return Call(found["name"], given, times)

    def _fault(self, rest: str) -> Fault:
        kind, *words = rest.split() or [""]
        if kind not in get_args(FaultKind):
            self._unknown(kind, get_args(FaultKind), "fault")
        kind = cast(FaultKind, kind)
        times: int | None = None if kind in ("prompt-too-long", "bad-request", "authentication") else 1
        retry_after: float | None = None
        numbers: list[int] = []
        message: list[str] = []
        while words:
            word = words.pop(0)
            if often := _TIMES.fullmatch(word):
                times = int(often["count"]) if often["count"] else None
            elif word == "retry-after" and words:
                retry_after = self._seconds(words.pop(0), "retry-after")
            elif word.isdecimal() and kind != "bad-request":
                numbers.append(int(word))
            elif word != ">":
                message.append(word)
        if kind == "cut" and len(numbers) != 1:
            self._bad("cut wants the number of characters after which the stream breaks, such as `fail cut 40`")
        if kind == "prompt-too-long" and len(numbers) != 2:
            self._bad("prompt-too-long wants both sizes, such as `fail prompt-too-long 208310 > 200000`")
        if kind not in ("cut", "prompt-too-long") and numbers:
            self._bad(f"a bare number means nothing to `fail {kind}`; for three times write `fail {kind} 3x`")
        if message and kind != "bad-request":
            self._bad(f"`{' '.join(message)}` means nothing to `fail {kind}`")
        first, second = (*numbers, 0, 0)[:2]
        if kind == "cut":
            return Fault(kind, times, after_chars=first)
        return Fault(kind, times, retry_after, actual=first, limit=second, message=" ".join(message))

    def _times(self, rest: str) -> int | None:
        return None if rest == "forever" else self._number(rest, "repeat wants a number or `forever`")

    def _pattern(self, rest: str) -> re.Pattern[str]:
        found = _WHEN.fullmatch(rest)
        if not found:
            self._bad("when wants a regular expression between slashes, such as `when /port/i`")
        try:
            return re.compile(found["regex"], re.IGNORECASE if found["flags"] else 0)
        except re.error as error:
            self._bad(f"/{found['regex']}/ is not a regular expression: {error}")

    def _section_name(self, header: str) -> str:
        if not header.endswith("]"):
            self._bad("a section is a purpose in brackets, such as [notes]")
        name = header[1:-1].strip()
        if name not in _SECTIONS:
            self._unknown(name, _SECTIONS, "section")
        return name

    def _object(self, text: str, what: str) -> JsonObject:
        try:
            value: Any = load_json(text)
        except ValueError as error:
            self._bad(f"{what} is not valid JSON: {error}")
        if not isinstance(value, dict):
            self._bad(f"{what} must be a JSON object")
        return cast(JsonObject, value)

    def _number(self, text: str, wanted: str) -> int:
        if not text.isdecimal() or not text.isascii() or int(text) < 1:
            self._bad(wanted)
        return int(text)

    def _seconds(self, text: str, verb: str) -> float:
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
            self._bad(f"{verb} wants seconds, such as `{verb} 0.5`")
        return float(text)

    def _peek(self) -> str:
        self._line, line = self._lines[self._next]
        return line

    def _unknown(self, given: str, valid: tuple[str, ...], what: str) -> NoReturn:
        near = difflib.get_close_matches(given, valid, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(valid)}"
        self._bad(f"unknown {what} `{given}`; {hint}")

    def _bad(self, what: str) -> NoReturn:
        raise UserError(f"{self._name}:{self._line}: {what}")


def _join_lines(text: str) -> Iterator[tuple[int, str]]:
    """Statements with their line numbers: without comments and blank lines, with `|` lines joined to the one before."""
    pending: tuple[int, str] | None = None
    bare = False
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if line.startswith("|") and pending:
            more = line[1:].removeprefix(" ")
            pending = (pending[0], f"{pending[1]}{' ' if bare else chr(10)}{more}")
            bare = False
            continue
        if not line or line.startswith("#"):
            continue
        if pending:
            yield pending
        pending, bare = (number, line), " " not in line
    if pending:
        yield pending
