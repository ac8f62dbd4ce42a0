"""Finds `carrier [of …] join value`: a word that announces a secret, a join, and a value that is judged by both.

The words are in `carriers`, the joins in one table here, and `_JUDGES` has a judge per strength and join. It accepts
any view of the text, never returns values, and costs almost nothing if the text has none of the words.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

from reverie.memory.secrets.carriers import (
    BARE,
    BENIGN_AFTER,
    BENIGN_BEFORE,
    CARRIERS,
    FIRM_BEFORE,
    HASH_WORDS,
    IN_SENTENCES,
    NOT_VALUES,
    OPENS,
    WIFI_BEFORE,
    Strength,
)
from reverie.memory.secrets.shapes import (
    count_classes,
    has_odd_case,
    is_chosen,
    is_code,
    is_hex,
    is_password,
    is_placeholder,
    is_random,
    is_striking,
    is_uuid,
    is_wordlike,
)
from reverie.text.patterns import late

Hit = tuple[str, int, int]

_PREPOSITION: Final = (
    "for|of|to|on|at|from|in|für|fürs|von|vom|der|des|zum|zur|am|im|auf|bei|beim|de|del|du|dei|do|da|di|pour|para|por|en"
    "|dans|sur|van|voor|от|для|к|до|na|till|för|til"
)
_OF: Final = rf"[ \t]+(?:{_PREPOSITION})[ \t]+(?:[^\n.:;=：]|[.:](?=\S)){{1,40}}?"
_THEN: Final = r"(?:[ \t]+(?:now|still|just|always|currently|jetzt|ahora|maintenant|set to|simply))?[ \t]*:?[ \t]+"
_VERB: Final = (
    r"(?:is|was|are|be|stays|remains|becomes|now|lautet|lauten|ist|sind|war|es|son|era|est|sont|é|è|jest|är|er|это)"
)
_SAYS: Final = rf"(?:[ \t]+{_VERB}{_THEN}|[ \t]*[:=：][ \t]*)"
_CLOSED: Final = r"[\"'`*_\])}]{0,4}[ \t]{0,3}(?:\[[^\]\n]{0,20}\][ \t]?)?"
# Each join with its name, which says how surely the text after it is the value.
_JOINS: Final = (
    ("set", rf"{_CLOSED}(?::=|=>|->|→|===?|=|:|：|>)[*_]{{0,3}}[ \t]*(?:@(?=\"))?"),
    ("call", rf"{_CLOSED}(?:\||\(\s?(?=[\"'])|,[ \t]?(?=[\"']))[*_]{{0,3}}[ \t]*"),
    ("below", r"[\"'`*_]{0,4}[ \t]{0,3}[:=：][*_]{0,3}[ \t]*\r?\n[ \t>*-]{0,8}(?=\S+[ \t]*(?:\r?\n|$))"),
    ("set", r"[\"']?\s{0,3}[,;]?\s{0,12}[\"']?value[\"']?\s?[:=]\s?"),
    # `for the NAS is`, `(staging):`, `we use is`; then the same without words in between, and `maître :`.
    (
        "is",
        rf"(?i)(?:{_OF}|[ \t]*\([^)\n]{{0,40}}\)|[ \t]+(?:we|you|they|i|he|she)(?:[ \t]+\w{{2,12}}){{1,2}}){_SAYS}",
    ),
    ("is", rf"(?i)[ \t]+{_VERB}{_THEN}|[ \t]*(?:是|为|為|は|が|:|：|는|은|이|—|–|-)[ \t]*"),
    ("as", rf"(?i)[ \t-][^\W\d_]{{3,14}}{_SAYS}"),
    ("as", rf"(?i)(?:{_OF})?[ \t]+(?:on|to|as|like|auf|a|à|with|mit|als|con|como|for|für|para){_THEN}"),
    ("gap", r"[ \t]+(?:(?:by|for \S+|to)[ \t]+(?=[\"']))?|[ \t]*[(\[][ \t]*"),
)
_compile = cache(re.compile)  # only when a text has an announcing word; most texts have none
# A value on the next lines, one word per line: a YAML block, a string in triple quotes.
_BLOCK = late(
    r"[\"']?[ \t]{0,3}[:=][ \t]*(?:[>|][+-]?\d?[+-]?|\"\"\"|'''|[\"'`])[ \t]*\\?\r?\n"
    r"(?P<lines>(?:[ \t]*[^\s\"'`]{4,200}[ \t]*(?:\r?\n|$)){1,12})"
)
TOKEN = late(r"[^\s\"'`<>|,、，。]+")
_QUOTED = late(
    r"\"([^\"\n]{1,300})\"|'([^'\n]{1,300})'|`([^`\n]{1,300})`|“([^”\n]{1,300})”"
    r"|«\s?([^»\n]{1,300}?)\s?»|「([^」\n]{1,300})」|„([^“\n]{1,300})“"
)
_PLAIN = late(r"[^\s\"'`<>|,;、，。；]{1,256}")
_PAIR = late(
    r"[\"'`*(]{0,3}(?P<user>[\w.@+-]{2,40})[\"'`*]{0,3}[ \t]*(?:[/:|,，、]|[ \t](?:and|und|et|y|with|mit|avec|con))"
    r"[ \t]*[\"'`*]{0,3}(?![a-z]+=)(?P<value>[^\s\"'`*<>|,;)]{5,100}?)[.;:)\]]*(?![^\s\"'`*<>|,;)])"
)
_NUMBER = late(r"[\"'`*]{0,3}([#*]?\d{4,8}[#*]?)(?![\w-]|\.\d|[ \t]*(?:%|ms\b))")
_NUMBER_ENDS = late(r"[ \t]*(?:[.,;:)!?\n]|$)|[ \t]+(?:for|to|opens|on|at|of|and|is|für|und|pour|et|para|y)\b")
_LETTER = late(r"[^\W_\u2e80-\uffff]")
_OPENS_BEFORE = late(rf"(?<![a-z]){OPENS}(?:[- ]?|[^\n.:;=]{{0,30}} (?:with|mit|avec|con) (?:the |dem |le |el )?)$")
_OPENS_AFTER = late(
    rf"[ \t]+(?:{_PREPOSITION})[ \t](?:[^\n:;=]{{1,30}}?[ \t'’])?{OPENS}"
    rf"(?=[ \t]*[:：=]|[ \t]+(?:{_VERB}|{_PREPOSITION})[ \t])"
)
_WORDS = late(r"[^\W\d_]{3,20}(?:[ -][^\W\d_]{3,20}){2,11}(?=[.!;,]?[ \t]*(?:\n|$)|[.!;][ \t])")
_JOINT = late(r"[_.-]")
_OPTION = late(r"(?<!\S)--[\w-]*$")
_LEET = late(r"^[^\s_/.]*[A-Za-z]\d[a-z][^\s_/.]*$")  # a digit for a letter: `Sw0rdfish9`
_PREDICATE = late(  # how a sentence about a password continues
    r"(?:ed|ing|ly|able|ible|ado|ada|ido|ida|iert)$|^(?:kept|known|held|written|sent|set|shown|lost|hidden|built|made|given"
    r"|chosen|taken|found|bekannt|connu|changé|stocké)$"
)
_SENTENCE_END = late(r"[.!?;](?:\s|$)|[。！？；\n]")
_MOST_INSIDE: Final = 4  # the most announcing words inside one value
_LONGEST: Final = 256  # the most characters of a token near such a word


class _Value(NamedTuple):
    """The text after a join. `alone`: the rest of the line is empty, so the value can be a plain word."""

    text: str
    start: int
    quoted: bool = False
    alone: bool = False


def find_announced(text: str) -> Iterator[Hit]:
    """Finds values after a word that announces a secret."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    found: list[tuple[int, str, Strength]] = [
        (at, word, strength) for word, strength in CARRIERS for at in _find_places(lower, word)
    ]
    if found:
        reading = _Reading(text, lower, sorted({at for at, _, _ in found}))
        for at, word, strength in found:
            yield from _find_behind(reading, at, word, strength)


def _find_places(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


class _Reading:
    """A text with its announcing words. No part of it is judged more than a few times, however many words it has."""

    def __init__(self, text: str, lower: str, places: list[int]) -> None:
        self.text, self.lower, self._places = text, lower, places
        tokens = (match.span() for match in TOKEN.finditer(text))
        self._tokens = [(start, end) for start, end in tokens if 8 <= end - start <= _LONGEST]
        self._seen: set[tuple[int, Strength]] = set()

    def find_value_end(self, start: int) -> int:
        """Returns the limit for the end of a value that begins here: a value does not contain many announcing words."""
        number = bisect_left(self._places, start) + _MOST_INSIDE
        return self._places[number] if number < len(self._places) else len(self.text) + 1

    def take_new_tokens(self, begin: int, stop: int, strength: Strength) -> Iterator[tuple[int, int]]:
        """Yields the tokens that begin between two places; each token only once per strength and reading."""
        for number in range(bisect_left(self._tokens, (begin, 0)), len(self._tokens)):
            start, end = self._tokens[number]
            if start >= stop:
                return
            if (start, strength) not in self._seen:
                self._seen.add((start, strength))
                yield start, end


def _find_behind(reading: _Reading, at: int, word: str, strength: Strength) -> Iterator[Hit]:
    text, lower, end = reading.text, reading.lower, at + len(word)
    before, has_user = lower[max(0, at - 30) : at], strength in ("login", "user")
    hump = text[at].isupper() and text[at - 1 : at].islower()  # `dbPass`, `PrivateKey`
    is_bare = word in BARE or strength not in ("password", "firm", "key")
    if is_bare and ((_LETTER.match(before[-1:]) and not hump) or (_LETTER.match(lower, end) and strength != "login")):
        return
    suffix = re.match(r"\w{0,24}", text[end : end + 24] if word[0] < "\u2e80" else "")
    said, end = end, end + (suffix.end() if suffix else 0)
    named = text[at - 1 : at] in ("_", "-", ".", ":") or hump  # a part of an identifier is never a verb
    is_option = bool(_OPTION.search(before))
    if (strength in ("firm", "key") and WIFI_BEFORE.search(before)) or (strength == "verb" and named):
        strength = "password"
    elif strength in ("firm", "key", "number") and BENIGN_BEFORE.search(before):
        return
    elif strength == "key" and FIRM_BEFORE.search(before):
        strength = "firm"
    if strength == "number" and not _can_open(word, before, lower, end):
        return
    if not has_user and BENIGN_AFTER.match(lower[said : end + 14]):
        return
    kind, read, judges = _JUDGES[strength]
    block = _BLOCK.match(text, end) if read is _read_value else None
    if block and judges["below"](_Value("".join(block["lines"].split()), 0)):
        yield kind, block.start("lines"), block.end("lines")
        return
    for how, join in _JOINS:
        match = _compile(join).match(text, end)
        value = read(reading, match.end(), how) if match else None
        if value is None or not value.text:
            continue
        spoken = strength in ("password", "verb") and how not in ("below", "gap")
        phrase = _read_passphrase(text, value, 3 if "phrase" in word else 4) if spoken else ""
        value = value._replace(alone=value.alone and value.text.lower() not in lower[at:end])
        is_name = value.text.lower().strip(".!,") in NOT_VALUES or is_code(value.text, value.quoted)
        if how == "gap":  # `#define WIFI_PASS "…"`, `--password …`
            how = "set" if named and value.quoted else "is" if is_option else how
        judge = judges[how]
        if phrase or (" " not in value.text and not is_name and judge(value)):
            yield kind, value.start, value.start + len(phrase or value.text)
            return
    if strength in ("password", "verb", "firm", "login"):
        yield from _find_nearby(reading, at, end, strength)


def _can_open(word: str, before: str, lower: str, end: int) -> bool:
    """Whether a number here can open something: `door code`, `code for the door`, `the door opens with`."""
    if " " in word:
        return bool(re.search(OPENS, before))
    return bool(_OPENS_BEFORE.search(before) or _OPENS_AFTER.match(lower, end))


def _read_value(reading: _Reading, start: int, _: str) -> _Value | None:
    """Reads a value in quotes, or a word."""
    text = reading.text
    while text.startswith(("**", "__"), start):
        start += 2
    quoted = _QUOTED.match(text, start)
    if quoted:
        group = quoted.lastindex or 1
        return _Value(quoted[group], quoted.start(group), quoted=True, alone=True)
    limit = reading.find_value_end(start)
    bare = _PLAIN.match(text, start, limit)
    if not bare or bare.end() == limit:
        return None
    shown = bare[0].partition("](")[0]  # the text of a link ends before its address
    value = shown.lstrip("([{*_")
    start += len(shown) - len(value)
    if not re.search(r"[(\[{]", value):
        value = re.sub(r"[)\]}*]+[.;:]?$|[.:;]$", "", value)
    if re.match(r"[^=&]*&\w+=", value):  # the next parameter of an address
        value = value.partition("&")[0]
    rest = text[start + len(value) : start + len(value) + 200].partition("\n")[0]
    return _Value(value, start, alone=not rest.strip(" \t\r.;,)}]\"'`*_|"))


def _read_pair(reading: _Reading, start: int, _: str) -> _Value | None:
    """Reads a name and a value; `quoted` if only a login looks like that: `bob:…`, `Login("bob", "…")`."""
    text, match = reading.text, _PAIR.match(reading.text, start)
    if match is None:
        return None
    between = text[match.end("user") : match.start("value")]
    called = text[start - 1 : start] == "(" and between[-1:] in ("'", '"')
    return _Value(match["value"], match.start("value"), quoted=called or between == ":")


def _read_number(reading: _Reading, start: int, how: str) -> _Value | None:
    match = _NUMBER.match(reading.text, start)
    if not match or how == "as" or (how == "gap" and not _NUMBER_ENDS.match(reading.text, match.end())):
        return None
    return _Value(match[1], match.start(1))


def _read_passphrase(text: str, value: _Value, least: int) -> str:
    """Reads a passphrase: in quotes, or plain words up to the end of the sentence that do not form a sentence."""
    if value.quoted:
        return value.text if " " in value.text and _is_passphrase(value.text) else ""
    match = _WORDS.match(text, value.start)
    said = re.split(r"[ -]", match[0].lower()) if match else []
    if not match or len(said) < least or sum(word in NOT_VALUES for word in said) > (len(said) > 3):
        return ""
    is_sentence = least > 3 and (match[0] != match[0].lower() or _PREDICATE.search(said[0]))
    return match[0] if not is_sentence and _is_passphrase(" ".join(said)) else ""


def _is_passphrase(value: str) -> bool:
    words = value.split()
    if not 3 <= len(words) <= 12 or is_placeholder(value):
        return any(is_striking(word) for word in words)
    return not any(word.lower().strip(".,!?") in IN_SENTENCES for word in words) and all(len(w) >= 3 for w in words)


_Judge = Callable[[_Value], bool]


def _is_given(value: _Value) -> bool:
    """`password = …`: anything except a placeholder; a plain word or a number only if it is long or alone."""
    text = value.text
    if text.isdigit():
        return len(text) >= 6 and not is_placeholder(text)
    named = any(part in text.lower() for part in ("pass", "pwd", "secret", "token"))
    word = value.alone and not named and text.isalpha() and len(text) >= 4 and not is_placeholder(text)
    return word or is_password(text) or is_uuid(text)


def _is_hard(value: _Value) -> bool:
    return is_password(value.text, least=6) and not is_wordlike(value.text) and not value.text.endswith(":")


def _is_said(value: _Value) -> bool:
    """`the password is …`."""
    text = value.text
    if is_password(text, least=5):
        return value.quoted or not is_wordlike(text) or has_odd_case(text) or any(c.isdigit() for c in text)
    return value.quoted and text.isalpha() and len(text) >= 5 and not is_placeholder(text)


def _is_odd(value: _Value) -> bool:
    """Whether ordinary sentences never contain such a value."""
    text = value.text
    return is_striking(text) or is_chosen(text) or (len(text) >= 8 and has_odd_case(text))


def _is_beside(value: _Value) -> bool:
    """`password …`, with digits among letters, but not a version, an ordinal or a name: `hunter2`, `s3cret`."""
    text = value.text
    mixed = re.fullmatch(r"(?=.*\d)(?=.*[A-Za-z])[\w!@#$%^&*+=?~.-]{6,}", text) and not is_uuid(text)
    typed = (
        value.quoted or (value.alone and len(text) >= 8) or (mixed and not (is_wordlike(text) and _JOINT.search(text)))
    )
    return _is_odd(value) or bool(typed and is_password(text, least=5))


def _is_passed(value: _Value) -> bool:
    """`pass …`; the verb can also continue with `--flag2` or `it on`."""
    typed = value.alone and is_password(value.text, least=8) and re.search(r"[A-Za-z]\d{2,}\W?$", value.text)
    return not value.quoted and (_is_odd(value) or bool(typed))


def _is_typed(value: _Value) -> bool:
    return is_password(value.text, least=5)


def _is_login(value: _Value) -> bool:
    """`creds bob:…`, `sign in as bob / …`: only a password is written like that."""
    text = value.text
    plain = len(text) < 8 or (is_wordlike(text) and not re.search(r"[A-Z]|\d[a-z]", text))
    return _is_odd(value) or (is_password(text, least=5) and (value.quoted or not plain))


def _is_call(value: _Value) -> bool:
    return _is_odd(value) or (value.quoted and _is_typed(value))


def _make_key_judge(least: int, hexes: int = 0, kinds: int = 0) -> _Judge:
    """Makes a judge of keys: at least so long, of so many hex digits, or of so many kinds of characters (0: never)."""

    def judge(value: _Value) -> bool:
        text = value.text
        if is_uuid(text):
            return bool(kinds)
        if is_placeholder(text) or (is_hex(text) and not text.isdigit()):
            return 0 < hexes <= len(text) and not is_placeholder(text)
        if is_random(text, least):
            return True
        if kinds == 2 and value.quoted and _LEET.search(text) and count_classes(text) >= 3 and len(text) >= 8:
            return True
        return 0 < kinds <= count_classes(text) + value.quoted and not is_wordlike(text) and is_password(text, least=8)

    return judge


def _is_any(_: _Value) -> bool:
    return True


_Reader = Callable[[_Reading, int, str], _Value | None]


def _map_joins(*judges: _Judge) -> dict[str, _Judge]:
    return dict(zip(("set", "call", "below", "is", "as", "gap"), judges, strict=True))


# The kind, the reader and the judges per join, for each strength.
_SET, _LONG = _make_key_judge(12, 16, 2), _make_key_judge(16, 16, 3)
_JUDGES: Final[dict[Strength, tuple[str, _Reader, dict[str, _Judge]]]] = {
    "password": ("a password", _read_value, _map_joins(_is_given, _is_given, _is_hard, _is_said, _is_said, _is_beside)),
    "verb": ("a password", _read_value, _map_joins(_is_given, _is_given, _is_hard, _is_said, _is_passed, _is_passed)),
    "firm": ("a key or token", _read_value, _map_joins(_SET, _SET, _LONG, _LONG, _LONG, _make_key_judge(20, 32))),
    "key": ("a key or token", _read_value, {how: _make_key_judge(20 if how == "gap" else 16) for how, _ in _JOINS}),
    "login": ("a password", _read_pair, _map_joins(_is_typed, _is_call, _is_typed, _is_typed, _is_login, _is_call)),
    "user": ("a password", _read_pair, _map_joins(_is_typed, _is_odd, _is_typed, _is_typed, _is_odd, _is_odd)),
    "code": ("a code that opens something", _read_number, {how: _is_any for how, _ in _JOINS}),
    "number": ("a code that opens something", _read_number, {how: _is_any for how, _ in _JOINS}),
}


def _find_nearby(reading: _Reading, at: int, end: int, strength: Strength) -> Iterator[Hit]:
    """Finds a value elsewhere in the sentence: `remember the password so that I can find it: …`."""
    text = reading.text
    begin = max((m.end() for m in _SENTENCE_END.finditer(text, max(0, at - 200), at)), default=max(0, at - 200))
    stop = text.find("\n", end)
    stop = min(len(text) if stop < 0 else stop, end + 240)
    for start, token_end in reading.take_new_tokens(begin, stop, strength):
        value = text[start:token_end].partition("](")[0].strip("()[]{}.,;:*")
        if len(value) < 8 or HASH_WORDS.search(text[max(0, start - 40) : start]):
            continue
        last = text[max(0, start - 3) : start].rstrip().endswith(":") and not text[token_end:stop].strip(" .")
        typed = is_striking(value) or (last and count_classes(value) >= 3 and is_password(value, least=8))
        if strength == "login":
            if typed and start - end < 40 and re.search(r"[!@$%^&*+?~#]", value):
                yield "a password", start, token_end
        elif strength != "firm" and typed:
            yield "a password", start, token_end
        elif not is_code(value) and not re.search(r"[/\\=]\w|^\w+://", value) and is_random(value, 20):
            yield "a key or token", start, token_end
