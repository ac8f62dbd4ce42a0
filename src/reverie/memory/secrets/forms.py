"""Where in a text a secret may stand behind a word that announces it: a label, an assignment, a sentence, a column.

Each function yields (kind, start, end) for what `secret_shapes` takes for a real value. They work on any view of the
text, return no values, and cost next to nothing where the text has none of their words.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from reverie.memory.secrets.rules import (
    BENIGN_AFTER,
    BENIGN_BEFORE,
    FIRM_BEFORE,
    FIRM_WORDS,
    HASH_WORDS,
    KEY_WORDS,
    NOT_VALUES,
    PASSWORD_WORDS,
    SHORT_WORDS,
    WIFI_BEFORE,
)
from reverie.memory.secrets.shapes import (
    classes,
    has_odd_case,
    is_chosen,
    is_hex,
    is_password,
    is_placeholder,
    is_random,
    is_striking,
    is_uuid,
    wordlike,
)
from reverie.text.folding import word_set

Hit = tuple[str, int, int]

TOKEN = re.compile(r"[^\s\"'`<>|,、，。]+")
_QUOTED = re.compile(
    r"\"([^\"\n]{1,300})\"|'([^'\n]{1,300})'|`([^`\n]{1,300})`|“([^”\n]{1,300})”"
    r"|«\s?([^»\n]{1,300}?)\s?»|「([^」\n]{1,300})」|„([^“\n]{1,300})“"
)
_MOST_INSIDE: Final = 4  # announcing words inside one value
_LONGEST: Final = 256  # characters of a token that stands somewhere near such a word
_BARE = re.compile(r"[^\s\"'`<>|,;、，。；]{1,256}")
_SET = re.compile(
    r"[\"'`*_\])}]{0,4}[ \t]{0,3}(?:\[[^\]\n]{0,20}\][ \t]?)?"
    r"(?::=|=>|->|→|===?|=|:|：|\||>|\(\s?(?=[\"'])|,[ \t]?(?=[\"']))[*_]{0,3}[ \t]*(?:@(?=\"))?"
)
_SET_BELOW = re.compile(r"[\"'`*_]{0,4}[ \t]{0,3}[:=：][*_]{0,3}[ \t]*\r?\n[ \t>*-]{0,8}(?=\S+[ \t]*(?:\r?\n|$))")
# A value on the lines below, one word per line: a block of YAML, a string in three quotes.
_BLOCK = re.compile(
    r"[\"']?[ \t]{0,3}[:=][ \t]*(?:[>|][+-]?\d?[+-]?|\"\"\"|'''|[\"'`])[ \t]*\\?\r?\n"
    r"(?P<lines>(?:[ \t]*[^\s\"'`]{4,200}[ \t]*(?:\r?\n|$)){1,12})"
)
_VALUE_FIELD = re.compile(r"[\"']?\s{0,3}[,;]?\s{0,12}[\"']?value[\"']?\s?[:=]\s?")
_PREPOSITION: Final = (
    "for|of|to|on|für|de|del|der|dei|do|da|du|di|des|pour|para|por|von|vom|zum|zur|am|im|in|van|voor|от|для|к|до|na|"
    "till|för|til|at|from|auf|bei|fürs|beim|en|dans|sur"
)
_IS = re.compile(
    rf"(?i)(?:[ \t]+(?:{_PREPOSITION})[ \t]+(?:[^\n.:;=]|[.:](?=\S)){{1,40}}?|[ \t]*\([^)\n]{{0,40}}\)"
    r"|[ \t]+(?:we|you|they|i|he|she)[ \t]+\w{2,12}(?:[ \t]+\w{2,12})?)?"
    r"[ \t]+(?:is|was|are|be|stays|remains|becomes|now|lautet|ist|war|es|era|est|é|è|jest|är|er|on|to|as|like"
    r"|auf|a|à|это)"
    r"(?:[ \t]+(?:now|still|just|always|currently|jetzt|ahora|maintenant|set to|simply))?[ \t]*:?[ \t]+"
)
_FOR = re.compile(rf"(?i)[ \t]+(?:{_PREPOSITION})[ \t]+(?:[^\n.:;=,]|[.:](?=\S)){{1,40}}?[ \t]*[:=：][ \t]*")
# `mot de passe maître :`, `la contraseña maestra es`: an adjective behind the noun.
_ADJECTIVE = re.compile(r"(?i)[ \t]+[^\W\d_]{3,14}(?:[ \t]+(?:is|ist|est|es)[ \t]+|[ \t]*[:：][ \t]*)")
_IS_TIGHT = re.compile(r"[ \t]*(?:是|为|為|は|が|:|：|는|은|이|—|–|-)[ \t]*")
_GAP = re.compile(r"[ \t]+(?:(?:by|for \S+|to)[ \t]+(?=[\"']))?|[ \t]*[(\[][ \t]*")
_WORDS = re.compile(r"[^\W\d_]{3,20}(?:[ -][^\W\d_]{3,20}){2,11}(?=[.!;,]?[ \t]*(?:\n|$)|[.!;][ \t])")
_LEET = re.compile(r"^[^\s_/.]*[A-Za-z]\d[a-z][^\s_/.]*$")  # a digit for a letter: `Sw0rdfish9`
_PREDICATE = re.compile(  # what a sentence about a password goes on with
    r"(?:ed|ing|ly|able|ible|ado|ada|ido|ida|iert)$|^(?:kept|known|held|written|sent|set|shown|lost|hidden|built|made|given"
    r"|chosen|taken|found|bekannt|connu|changé|stocké)$"
)
_SENTENCE_END = re.compile(r"[.!?;](?:\s|$)|[。！？；\n]")
_CODE = re.compile(r"^[\w.]+\(|::\w|^/[\w./-]+$|^\.{1,2}/|^~/|^\w+@[\w.-]+\.\w+$")
_DOTTED = re.compile(r"^[A-Za-z_]+(?:\.[A-Za-z_]+)+$|^[\w-]+(?:/[\w.-]+)+$")
_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z]+)+|[a-z]+(?:_[a-z]+)+\d?|[A-Z][a-z]+(?:[A-Z][a-z]+)+")
IN_SENTENCES: Final = word_set(
    """the is be must at least your a an of to in for and or not with from by on use this that are was has it no
    der die das und ist el la de le les et when if while once every each only never always will should can may before
    after during between until than then as we you they she he them which who what where how twice against derived
    also again among behind beneath inside outside within without through using via into onto over under about above
    below since because but does did had have having been being its our their his her there here some any all both
    most more less such same other another into per just still even very too once see ask goes lives sits comes needs
    wird werden sind war nicht nur noch auch aber oder wenn weil dass für von vom mit bei beim aus nach über
    unter zwischen ohne durch einer einem einen eine ein kein keine den dem des im am zum zur sich man wir ihr
    sie alle jede jeder jeden est sont pas dans par pour avec sans sur sous entre chez puis une des du aux que
    qui mais donc chaque tous toutes elle ils nous vous son ses leur cette ces fois seule doit sera está son por
    para con sin sobre entre cada todos todas una uno los las del que pero como más muy sólo solo debe luego
    desde hasta nunca siempre también"""
)


def announced(text: str) -> Iterator[Hit]:
    """Values behind a word that announces a password, a key or a token."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    found = [
        (at, word, is_strong)
        for known, is_strong in ((PASSWORD_WORDS, True), (KEY_WORDS, False))
        for word in known
        for at in _places(lower, word)
    ]
    if found:
        reading = _Reading(text, lower, sorted({at for at, _, _ in found}))
        for at, word, is_strong in found:
            yield from _behind(reading, at, word, is_strong)


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
        self._seen: set[int] = set()

    def value_end(self, start: int) -> int:
        """Before where a value that begins here ends: none holds many announcing words."""
        number = bisect_left(self._places, start) + _MOST_INSIDE
        return self._places[number] if number < len(self._places) else len(self.text) + 1

    def new_tokens(self, begin: int, stop: int) -> Iterator[tuple[int, int]]:
        """The tokens that begin in a stretch, each only once in the life of the reading."""
        for number in range(bisect_left(self._tokens, (begin, 0)), len(self._tokens)):
            start, end = self._tokens[number]
            if start >= stop:
                return
            if start not in self._seen:
                self._seen.add(start)
                yield start, end


def _behind(reading: _Reading, at: int, word: str, is_strong: bool) -> Iterator[Hit]:
    text, lower = reading.text, reading.lower
    end = at + len(word)
    before = lower[max(0, at - 24) : at]
    hump = text[at].isupper() and text[at - 1 : at].islower()  # `dbPass`, `PrivateKey`
    if word in SHORT_WORDS and ((lower[at - 1 : at].isalnum() and not hump) or lower[end : end + 1].isalnum()):
        return
    suffix = re.match(r"\w{0,24}", text[end : end + 24])
    end += len(suffix[0]) if suffix and word[0] < "\u2e80" else 0
    is_strong = is_strong or bool(WIFI_BEFORE.search(before))
    if BENIGN_AFTER.match(lower[at + len(word) : end + 14]) or (not is_strong and BENIGN_BEFORE.search(before)):
        return
    named = text[at - 1 : at] in ("_", "-", ".", ":") or hump  # part of an identifier, so never a verb
    if is_strong and word != "identified by":
        yield from _spoken(text, end, least=3 if "phrase" in word else 4)
    block = _BLOCK.match(text, end)
    value = "".join(block["lines"].split()) if block else ""
    if block and (is_password(value, least=6) and not wordlike(value) if is_strong else is_random(value)):
        yield ("a password" if is_strong else "a key or token"), block.start("lines"), block.end("lines")
        return
    firm = is_strong or word.startswith(FIRM_WORDS) or bool(FIRM_BEFORE.search(before))
    for how, match in (
        ("set", _SET.match(text, end)),
        ("below", _SET_BELOW.match(text, end)),
        ("set", _VALUE_FIELD.match(text, end)),
        ("is", _IS.match(text, end)),
        ("is", _FOR.match(text, end)),
        ("is", _ADJECTIVE.match(text, end)),
        ("is", _IS_TIGHT.match(text, end)),
        ("gap", _GAP.match(text, end)),
    ):
        value, start, quoted = _value(text, match.end(), reading.value_end(match.end())) if match else ("", 0, False)
        if not value:
            continue
        alone = quoted or not text[start + len(value) : start + len(value) + 200].partition("\n")[0].strip(
            " \t\r.;,)}]\"'`*_|"
        )
        alone = alone and value.lower() not in text[at:end].lower()
        if named and quoted and how == "gap":  # `#define WIFI_PASS "…"`
            how = "set"
        if is_strong and _is_secret_password(value, how, quoted, alone, word == "pass" and not named):
            yield "a password", start, start + len(value)
            return
        if not is_strong and _is_secret_key(value, how, quoted, firm):
            yield "a key or token", start, start + len(value)
            return
    if firm:
        yield from _striking_nearby(reading, at, end, is_strong)


def _spoken(text: str, end: int, least: int) -> Iterator[Hit]:
    """A passphrase of plain words, which nothing but the end of its sentence ends, and which is no sentence itself."""
    for form in (_SET, _IS, _FOR, _IS_TIGHT, _ADJECTIVE):
        match = form.match(text, end)
        words = _WORDS.match(text, match.end()) if match else None
        said = re.split(r"[ -]", words[0].lower()) if words else []
        if least > 3 and words and (words[0] != words[0].lower() or _PREDICATE.search(said[0])):
            continue
        if (
            words
            and len(said) >= least
            and _is_passphrase(" ".join(said))
            and sum(word in NOT_VALUES for word in said) <= (len(said) > 3)
        ):
            yield "a password", words.start(), words.end()
            return


def _value(text: str, start: int, limit: int) -> tuple[str, int, bool]:
    """What stands at `start` and ends before `limit`, where it begins, and whether it is quoted."""
    while text.startswith(("**", "__"), start):
        start += 2
    quoted = _QUOTED.match(text, start)
    if quoted:
        group = quoted.lastindex or 1
        return quoted[group], quoted.start(group), True
    bare = _BARE.match(text, start, limit)
    if not bare or bare.end() == limit:
        return "", start, False
    opened = bare[0].partition("](")[0].lstrip("([{*_")  # the text of a link ends where its address begins
    start += len(bare[0].partition("](")[0]) - len(opened)
    value = opened if re.search(r"[(\[{]", opened) else re.sub(r"[)\]}*]+[.;:]?$|[.:;]$", "", opened)
    if re.match(r"[^=&]*&\w+=", value):  # the next parameter of an address
        value = value.partition("&")[0]
    return value, start, False


def _is_secret_password(value: str, how: str, quoted: bool, alone: bool, verb: bool) -> bool:
    """`alone`: nothing else stands in its line, so that it may be a plain word. `verb`: the word may be a verb."""
    if " " in value:
        return how != "gap" and quoted and _is_passphrase(value)
    if value.lower().strip(".!,") in NOT_VALUES or is_code(value, quoted):
        return False
    match how:
        case "set":
            if is_password(value) or is_uuid(value):
                return True
            if value.isdigit():
                return len(value) >= 6 and not is_placeholder(value)
            named = any(part in value.lower() for part in ("pass", "pwd", "secret", "token"))
            return alone and not named and value.isalpha() and len(value) >= 4 and not is_placeholder(value)
        case "below":
            return is_password(value, least=6) and not wordlike(value) and not value.endswith(":")
        case "is":
            if is_password(value, least=5):
                return quoted or not wordlike(value) or has_odd_case(value) or any(c.isdigit() for c in value)
            return quoted and value.isalpha() and len(value) >= 5 and not is_placeholder(value)
        case _ if verb:  # `pass --flag2`, `pass it on`
            typed = alone and len(value) >= 8 and re.search(r"[A-Za-z]\d{2,}\W?$", value)
            odd = len(value) >= 8 and has_odd_case(value)
            return not quoted and (is_striking(value) or is_chosen(value) or odd or bool(typed and is_password(value)))
        case _:
            return (
                is_striking(value)
                or is_chosen(value)
                or ((quoted or (alone and len(value) >= 8)) and is_password(value, least=5))
                or (is_password(value, least=6) and not is_uuid(value) and _mixed(value))
            )


def _mixed(value: str) -> bool:
    """Digits among letters in a way that is no version, ordinal or name: `hunter2`, `s3cret`."""
    plain = re.fullmatch(r"(?=.*\d)(?=.*[A-Za-z])[\w!@#$%^&*+=?~.-]{6,}", value)
    return bool(plain) and not (wordlike(value) and re.search(r"[_.-]", value))


def is_code(value: str, quoted: bool = False) -> bool:
    """A name, a call, a path or a mail address rather than a value."""
    if _CODE.search(value) or (wordlike(value) and _DOTTED.search(value)):
        return True
    return not quoted and bool(_CAMEL.fullmatch(value))


def _is_passphrase(value: str) -> bool:
    words = value.split()
    if not 3 <= len(words) <= 12 or is_placeholder(value):
        return any(is_striking(word) for word in words)
    return not any(word.lower().strip(".,!?") in IN_SENTENCES for word in words) and all(len(w) >= 3 for w in words)


def _is_secret_key(value: str, how: str, quoted: bool, firm: bool) -> bool:
    if " " in value or value.lower() in NOT_VALUES or is_code(value, quoted):
        return False
    if is_uuid(value):
        return firm and how in ("set", "is")
    if is_hex(value) and not value.isdigit():
        return firm and len(value) >= (32 if how == "gap" else 16) and not is_placeholder(value)
    least = {"set": 12, "below": 16, "is": 16}.get(how, 20)
    if is_random(value, least if firm else max(16, least)):
        return True
    if firm and quoted and how == "set" and _LEET.search(value) and classes(value) >= 3 and len(value) >= 8:
        return not is_placeholder(value)
    if not firm or how == "gap" or wordlike(value):
        return False
    # Short, typed by hand, but with digits among letters or signs: `secret: s3cr3t-pa55`.
    return is_password(value, least=8) and classes(value) >= (2 if quoted or how == "set" else 3)


def _striking_nearby(reading: _Reading, at: int, end: int, is_strong: bool) -> Iterator[Hit]:
    """`remember the password so that I can find it: …`: the value stands elsewhere in the sentence."""
    text = reading.text
    begin = max((m.end() for m in _SENTENCE_END.finditer(text, max(0, at - 200), at)), default=max(0, at - 200))
    stop = text.find("\n", end)
    stop = min(len(text) if stop < 0 else stop, end + 240)
    for start, token_end in reading.new_tokens(begin, stop):
        value = text[start:token_end].partition("](")[0].strip("()[]{}.,;:*")
        if len(value) < 8 or HASH_WORDS.search(text[max(0, start - 40) : start]):
            continue
        behind_colon = text[max(0, start - 3) : start].rstrip().endswith(":")
        last = behind_colon and not text[token_end:stop].strip(" .")
        if is_strong and (is_striking(value) or (last and classes(value) >= 3 and is_password(value, least=8))):
            yield "a password", start, token_end
        elif not is_code(value) and not re.search(r"[/\\=]\w|^\w+://", value) and is_random(value, 20):
            yield "a key or token", start, token_end


_SEPARATORS: Final = ("|", ",", ";", "\t")
_COLUMN_WORDS: Final = (
    "passw",
    "pwd",
    "pw",
    "secret",
    "token",
    "key",
    "contraseña",
    "mot de passe",
    "密码",
    "パスワード",
)
_SECRET_COLUMN = re.compile(
    r"(?i)^\W*(?:[\w ]*(?:password|passwort|passwd|pwd|pw|secret|token|api[-_ ]?key|contraseña|mot de passe|密码"
    r"|パスワード)[\w ]*)\W*$"
)


def columns(text: str) -> Iterator[Hit]:
    """Tables with a column of passwords or keys."""
    lower = text.lower()
    if not any(word in lower for word in _COLUMN_WORDS):
        return
    lines = [(match.start(), match[0]) for match in re.finditer(r"[^\n]+", text)]
    for number, (_, head) in enumerate(lines[:-1]):
        mark = next((one for one in _SEPARATORS if one in head), "")
        if not mark or len(head) > 300 or "(" in head:
            continue
        secret = [at for at, cell in enumerate(head.split(mark)) if _SECRET_COLUMN.match(cell)]
        for start, line in lines[number + 1 : number + 60] if secret else ():
            cells = line.split(mark)
            if len(cells) != head.count(mark) + 1:
                break
            for at in secret:
                value = cells[at].strip(" `*\"'")
                typed = (
                    is_password(value, least=6) and not is_code(value) and (classes(value) >= 3 or not wordlike(value))
                )
                if typed or is_random(value):
                    yield "a password", start + line.find(value), start + line.find(value) + len(value)
