"""`carrier [of …] join value`: a word that announces a secret, what joins it to a value, and how strict to be with it.

The words are in `carriers`, the joins are one table here, and `_JUDGES` has a judge per strength of a word. It works on
any view of the text, returns no values, and costs next to nothing where the text has none of the words.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
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
    classes,
    has_odd_case,
    is_chosen,
    is_code,
    is_hex,
    is_password,
    is_placeholder,
    is_random,
    is_striking,
    is_uuid,
    wordlike,
)

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
_CLOSED: Final = r"[\"'`*_\])}]{0,4}[ \t]{0,3}(?:\[[^\]\n]{0,20}\][ \t]?)?"
_SCHEME: Final = "(?i:bearer|basic|token|apikey|digest|negotiate|key|oauth|bot)"
# Each join with its name: how sure it is that what follows is meant as the value.
_JOINS: Final = tuple(
    (how, re.compile(pattern))
    for how, pattern in (
        ("set", rf"{_CLOSED}(?::=|=>|->|→|===?|=|:|：|>)[*_]{{0,3}}[ \t]*(?:@(?=\"))?(?:{_SCHEME}[ \t]+)?|/"),
        ("call", rf"{_CLOSED}(?:\||\(\s?(?=[\"'])|,[ \t]?(?=[\"']))[*_]{{0,3}}[ \t]*"),
        ("below", r"[\"'`*_]{0,4}[ \t]{0,3}[:=：][*_]{0,3}[ \t]*\r?\n[ \t>*-]{0,8}(?=\S+[ \t]*(?:\r?\n|$))"),
        ("set", r"[\"']?\s{0,3}[,;]?\s{0,12}[\"']?value[\"']?\s?[:=]\s?"),
        # `for the NAS is`, `(staging):`, `we use is`, `maître :`; then the same without the words between.
        (
            "is",
            rf"(?i)(?:{_OF}|[ \t]*\([^)\n]{{0,40}}\)|[ \t]+(?:we|you|they|i|he|she)[ \t]+\w{{2,12}}(?:[ \t]+\w{{2,12}})?"
            rf"|[ \t-][^\W\d_]{{3,14}})(?:[ \t]+{_VERB}{_THEN}|[ \t]*[:=：][ \t]*)",
        ),
        ("is", rf"(?i)[ \t]+{_VERB}{_THEN}|[ \t]*(?:是|为|為|は|が|:|：|는|은|이|—|–|-)[ \t]*"),
        ("as", rf"(?i)(?:{_OF})?[ \t]+(?:on|to|as|like|auf|a|à|with|mit|als|con|como|for|für|para){_THEN}"),
        ("gap", r"[ \t]+(?:(?:by|for \S+|to)[ \t]+(?=[\"']))?|[ \t]*[(\[][ \t]*"),
    )
)
# A value on the lines below, one word per line: a block of YAML, a string in three quotes.
_BLOCK = re.compile(
    r"[\"']?[ \t]{0,3}[:=][ \t]*(?:[>|][+-]?\d?[+-]?|\"\"\"|'''|[\"'`])[ \t]*\\?\r?\n"
    r"(?P<lines>(?:[ \t]*[^\s\"'`]{4,200}[ \t]*(?:\r?\n|$)){1,12})"
)
TOKEN = re.compile(r"[^\s\"'`<>|,、，。]+")
_QUOTED = re.compile(
    r"\"([^\"\n]{1,300})\"|'([^'\n]{1,300})'|`([^`\n]{1,300})`|“([^”\n]{1,300})”"
    r"|«\s?([^»\n]{1,300}?)\s?»|「([^」\n]{1,300})」|„([^“\n]{1,300})“"
)
_PLAIN = re.compile(r"[^\s\"'`<>|,;、，。；]{1,256}")
_PAIR = re.compile(
    r"[\"'`*(]{0,3}(?P<user>[\w.@+-]{2,40})[\"'`*]{0,3}[ \t]*(?:[/:|,，、]|[ \t](?:and|und|et|y|with|mit|avec|con))[ \t]*"
    r"[\"'`*]{0,3}(?![a-z]+=)(?P<value>[^\s\"'`*<>|,;)]{5,100}?)[.!?;:)\]]*(?![^\s\"'`*<>|,;)])"
)
_NUMBER = re.compile(r"[\"'`*]{0,3}([#*]?\d{4,8}[#*]?)(?![\w-]|\.\d|[ \t]*(?:%|ms\b))")
_NUMBER_ENDS = re.compile(r"[ \t]*(?:[.,;:)!?\n]|$)|[ \t]+(?:for|to|opens|on|at|of|and|is|für|und|pour|et|para|y)\b")
_LETTER = re.compile(r"[^\W_\u2e80-\uffff]")
_OPENS_BEFORE = re.compile(rf"(?<![a-z]){OPENS}[- ]?$")
_OPENS_AFTER = re.compile(rf"[ \t]+(?:{_PREPOSITION})[ \t](?:[^\n:;=]{{1,30}}?[ \t'’])?{OPENS}(?=[ \t:：=])")
_WORDS = re.compile(r"[^\W\d_]{3,20}(?:[ -][^\W\d_]{3,20}){2,11}(?=[.!;,]?[ \t]*(?:\n|$)|[.!;][ \t])")
_LICENCE = re.compile(r"[A-Z2-7]{16,64}|[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){2,}")  # and the seed of one-time passwords
_LEET = re.compile(r"^[^\s_/.]*[A-Za-z]\d[a-z][^\s_/.]*$")  # a digit for a letter: `Sw0rdfish9`
_PREDICATE = re.compile(  # what a sentence about a password goes on with
    r"(?:ed|ing|ly|able|ible|ado|ada|ido|ida|iert)$|^(?:kept|known|held|written|sent|set|shown|lost|hidden|built|made|given"
    r"|chosen|taken|found|bekannt|connu|changé|stocké)$"
)
_SENTENCE_END = re.compile(r"[.!?;](?:\s|$)|[。！？；\n]")
_MOST_INSIDE: Final = 4  # announcing words inside one value
_LONGEST: Final = 256  # characters of a token that stands somewhere near such a word


class _Value(NamedTuple):
    """What stands behind a join."""

    text: str
    start: int
    how: str
    quoted: bool = False
    alone: bool = False
    """Nothing else stands in its line, so that it may be a plain word."""


def announced(text: str) -> Iterator[Hit]:
    """Values behind a word that announces a secret."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    found = [(at, word, strength) for word, strength in CARRIERS for at in _places(lower, word)]
    if found:
        reading = _Reading(text, lower, sorted({at for at, _, _ in found}))
        for at, word, strength in found:
            yield from _behind(reading, at, word, strength)


def _places(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


class _Reading:
    """A text with its announcing words. No stretch of it is judged more than a few times, however many words it has."""

    def __init__(self, text: str, lower: str, places: list[int]) -> None:
        self.text, self.lower, self._places = text, lower, places
        tokens = (match.span() for match in TOKEN.finditer(text))
        self._tokens = [(start, end) for start, end in tokens if 8 <= end - start <= _LONGEST]
        self._seen: set[tuple[int, Strength]] = set()

    def value_end(self, start: int) -> int:
        """Before where a value that begins here ends: none holds many announcing words."""
        number = bisect_left(self._places, start) + _MOST_INSIDE
        return self._places[number] if number < len(self._places) else len(self.text) + 1

    def new_tokens(self, begin: int, stop: int, strength: Strength) -> Iterator[tuple[int, int]]:
        """The tokens that begin in a stretch, each only once per strength in the life of the reading."""
        for number in range(bisect_left(self._tokens, (begin, 0)), len(self._tokens)):
            start, end = self._tokens[number]
            if start >= stop:
                return
            if (start, strength) not in self._seen:
                self._seen.add((start, strength))
                yield start, end


def _behind(reading: _Reading, at: int, word: str, strength: Strength) -> Iterator[Hit]:
    text, lower = reading.text, reading.lower
    end = at + len(word)
    before = lower[max(0, at - 30) : at]
    hump = text[at].isupper() and text[at - 1 : at].islower()  # `dbPass`, `PrivateKey`
    named = text[at - 1 : at] in ("_", "-", ".", ":") or hump  # part of an identifier, so never a verb
    is_key, has_name = strength in ("firm", "key"), strength in ("login", "user")
    bare = word in BARE or not (is_key or strength == "password")
    inside = _LETTER.match(before[-1:]) and not hump
    if bare and (inside or (_LETTER.match(lower, end) and not has_name)):
        return
    if word[0] < "\u2e80":
        end += len(_suffix[0]) if (_suffix := re.match(r"\w{0,24}", text[end : end + 24])) else 0
    if is_key and WIFI_BEFORE.search(before):
        strength, is_key = "password", False
    if strength == "key" and FIRM_BEFORE.search(before):
        strength = "firm"
    if not has_name and BENIGN_AFTER.match(lower[at + len(word) : end + 14]):
        return
    if (is_key or strength == "number") and BENIGN_BEFORE.search(before):
        return
    opens = re.search(OPENS, before) if " " in word else _OPENS_BEFORE.search(before) or _OPENS_AFTER.match(lower, end)
    if strength == "number" and not opens:
        return
    if strength == "verb" and named:
        strength = "password"
    kind = (
        "a key or token"
        if is_key
        else "a code that opens something"
        if strength in ("code", "number")
        else "a password"
    )
    block = None if has_name else _BLOCK.match(text, end)
    value = "".join(block["lines"].split()) if block else ""
    if block and (is_random(value) if is_key else is_password(value, least=6) and not wordlike(value)):
        yield kind, block.start("lines"), block.end("lines")
        return
    read, judge = _JUDGES[strength]
    for how, join in _JOINS:
        match = join.match(text, end)
        value = read(reading, match.end(), how) if match else None
        if value is None or not value.text:
            continue
        if named and value.quoted and how == "gap":  # `#define WIFI_PASS "…"`
            value = value._replace(how="set")
        if value.alone and value.text.lower() in lower[at:end]:
            value = value._replace(alone=False)
        if judge(value):
            yield kind, value.start, value.start + len(value.text)
            return
        if strength in ("password", "verb") and how in ("set", "call", "is", "as"):
            for phrase in _phrase(text, value.start, least=3 if "phrase" in word else 4):
                yield kind, phrase.start(), phrase.end()
                return
    if strength != "key" and strength not in ("code", "number", "user"):
        yield from _nearby(reading, at, end, strength)


def _one(reading: _Reading, start: int, how: str) -> _Value | None:
    """A value in quotes, or a word."""
    text = reading.text
    while text.startswith(("**", "__"), start):
        start += 2
    quoted = _QUOTED.match(text, start)
    if quoted:
        group = quoted.lastindex or 1
        return _Value(quoted[group], quoted.start(group), how, quoted=True, alone=True)
    limit = reading.value_end(start)
    bare = _PLAIN.match(text, start, limit)
    if not bare or bare.end() == limit:
        return None
    opened = bare[0].partition("](")[0].lstrip("([{*_")  # the text of a link ends where its address begins
    start += len(bare[0].partition("](")[0]) - len(opened)
    value = opened if re.search(r"[(\[{]", opened) else re.sub(r"[)\]}*]+[.;:]?$|[.:;]$", "", opened)
    if re.match(r"[^=&]*&\w+=", value):  # the next parameter of an address
        value = value.partition("&")[0]
    rest = text[start + len(value) : start + len(value) + 200].partition("\n")[0]
    return _Value(value, start, how, alone=not rest.strip(" \t\r.;,)}]\"'`*_|"))


def _second(reading: _Reading, start: int, how: str) -> _Value | None:
    """A name and a value; `quoted` if nothing else is written so: `bob:…`, `Login("bob", "…")`."""
    text, match = reading.text, _PAIR.match(reading.text, start)
    if match is None:
        return None
    between = text[match.end("user") : match.start("value")]
    called = text[start - 1 : start] == "(" and between[-1:] in ("'", '"')
    return _Value(match["value"], match.start("value"), how, quoted=called or between == ":")


def _number(reading: _Reading, start: int, how: str) -> _Value | None:
    match = _NUMBER.match(reading.text, start)
    if not match or (how == "gap" and not _NUMBER_ENDS.match(reading.text, match.end())):
        return None
    return _Value(match[1], match.start(1), how)


def _phrase(text: str, start: int, least: int) -> Iterator[re.Match[str]]:
    """A passphrase of plain words, which nothing but the end of its sentence ends, and which is no sentence itself."""
    phrase = _WORDS.match(text, start)
    said = re.split(r"[ -]", phrase[0].lower()) if phrase else []
    if not phrase or len(said) < least or not _is_passphrase(" ".join(said)):
        return
    is_sentence = least > 3 and (phrase[0] != phrase[0].lower() or _PREDICATE.search(said[0]))
    if not is_sentence and sum(word in NOT_VALUES for word in said) <= (len(said) > 3):
        yield phrase


def _is_passphrase(value: str) -> bool:
    words = value.split()
    if not 3 <= len(words) <= 12 or is_placeholder(value):
        return any(is_striking(word) for word in words)
    return not any(word.lower().strip(".,!?") in IN_SENTENCES for word in words) and all(len(w) >= 3 for w in words)


def _is_secret_password(value: _Value) -> bool:
    text, how, quoted = value.text, value.how, value.quoted
    if " " in text:
        return how != "gap" and quoted and _is_passphrase(text)
    if text.lower().strip(".!,") in NOT_VALUES or is_code(text, quoted):
        return False
    match how:
        case "set" | "call":
            if text.isdigit():
                return len(text) >= 6 and not is_placeholder(text)
            named = any(part in text.lower() for part in ("pass", "pwd", "secret", "token"))
            word = value.alone and not named and text.isalpha() and len(text) >= 4 and not is_placeholder(text)
            return word or is_password(text) or is_uuid(text)
        case "below":
            return is_password(text, least=6) and not wordlike(text) and not text.endswith(":")
        case "is" | "as":
            if is_password(text, least=5):
                return quoted or not wordlike(text) or has_odd_case(text) or any(c.isdigit() for c in text)
            return quoted and text.isalpha() and len(text) >= 5 and not is_placeholder(text)
        case _:
            typed = is_password(text, least=5) and (quoted or (value.alone and len(text) >= 8))
            return is_striking(text) or is_chosen(text) or typed or (is_password(text, least=6) and _mixed(text))


def _is_after_a_verb(value: _Value) -> bool:
    """Behind `pass`, which may go on with `--flag2` or `it on`."""
    if value.how not in ("as", "gap"):
        return _is_secret_password(value)
    text = value.text
    typed = value.alone and is_password(text, least=8) and re.search(r"[A-Za-z]\d{2,}\W?$", text)
    odd = len(text) >= 8 and has_odd_case(text)
    return not value.quoted and not is_code(text) and (is_striking(text) or is_chosen(text) or odd or bool(typed))


def _mixed(value: str) -> bool:
    """Digits among letters in a way that is no version, ordinal or name: `hunter2`, `s3cret`."""
    plain = re.fullmatch(r"(?=.*\d)(?=.*[A-Za-z])[\w!@#$%^&*+=?~.-]{6,}", value)
    return bool(plain) and not is_uuid(value) and not (wordlike(value) and re.search(r"[_.-]", value))


def _is_secret_key(value: _Value, firm: bool = False) -> bool:
    text, how, quoted = value.text, value.how, value.quoted
    if " " in text or text.lower() in NOT_VALUES or is_code(text, quoted):
        return False
    if is_uuid(text):
        return firm and how not in ("below", "gap")
    if is_hex(text) and not text.isdigit():
        return firm and len(text) >= (32 if how == "gap" else 16) and not is_placeholder(text)
    if firm and _LICENCE.fullmatch(text):
        return any(c.isdigit() for c in text) and not is_placeholder(text)
    least = {"set": 12, "call": 12, "gap": 20}.get(how, 16)
    if is_random(text, least if firm else max(16, least)):
        return True
    if firm and quoted and how in ("set", "call") and _LEET.search(text) and classes(text) >= 3 and len(text) >= 8:
        return not is_placeholder(text)
    if not firm or how == "gap" or wordlike(text):
        return False
    # Short, typed by hand, but with digits among letters or signs: `secret: s3cr3t-pa55`.
    return is_password(text, least=8) and classes(text) >= (2 if quoted or how in ("set", "call") else 3)


def _is_firm_key(value: _Value) -> bool:
    return _is_secret_key(value, firm=True)


def _is_of_user(value: _Value) -> bool:
    """Behind a name: `user ops / …`, `account for HFMVJ / …`."""
    text = value.text
    if not is_password(text, least=5) or is_code(text) or text.lower() in NOT_VALUES:
        return False
    odd = len(text) >= 8 and has_odd_case(text)
    return value.how in ("set", "is") or is_striking(text) or is_chosen(text) or odd


def _is_of_login(value: _Value) -> bool:
    """Behind a name to sign in with: nothing but its password is said so."""
    text = value.text
    plain = wordlike(text) and not re.search(r"[A-Z]|\d[a-z]", text)
    typed = is_password(text, least=5) and not is_code(text)
    sure = value.quoted or (value.how == "as" and len(text) >= 8 and not plain)
    return _is_of_user(value) or (sure and typed and text.lower() not in NOT_VALUES)


def _is_any(_: _Value) -> bool:
    return True


_Reader = Callable[[_Reading, int, str], _Value | None]
_JUDGES: Final[dict[Strength, tuple[_Reader, Callable[[_Value], bool]]]] = {
    "password": (_one, _is_secret_password),
    "verb": (_one, _is_after_a_verb),
    "firm": (_one, _is_firm_key),
    "key": (_one, _is_secret_key),
    "login": (_second, _is_of_login),
    "user": (_second, _is_of_user),
    "code": (_number, _is_any),
    "number": (_number, _is_any),
}


def _nearby(reading: _Reading, at: int, end: int, strength: Strength) -> Iterator[Hit]:
    """`remember the password so that I can find it: …`: the value stands elsewhere in the sentence."""
    text = reading.text
    begin = max((m.end() for m in _SENTENCE_END.finditer(text, max(0, at - 200), at)), default=max(0, at - 200))
    stop = text.find("\n", end)
    stop = min(len(text) if stop < 0 else stop, end + 240)
    for start, token_end in reading.new_tokens(begin, stop, strength):
        value = text[start:token_end].partition("](")[0].strip("()[]{}.,;:*")
        if len(value) < 8 or HASH_WORDS.search(text[max(0, start - 40) : start]):
            continue
        if strength == "login":
            if start - end < 40 and re.search(r"[!@$%^&*+?~#]", value) and is_striking(value):
                yield "a password", start, token_end
            continue
        behind_colon = text[max(0, start - 3) : start].rstrip().endswith(":")
        last = behind_colon and not text[token_end:stop].strip(" .")
        typed = is_striking(value) or (last and classes(value) >= 3 and is_password(value, least=8))
        if strength != "firm" and typed:
            yield "a password", start, token_end
        elif not is_code(value) and not re.search(r"[/\\=]\w|^\w+://", value) and is_random(value, 20):
            yield "a key or token", start, token_end
