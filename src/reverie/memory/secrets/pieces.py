"""Secrets of more than one word: recovery phrases, lists of bytes, keys spelled out or split up, key blocks.

Each function yields (kind, start, end). They accept any view of the text and never return values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from reverie.memory.secrets.carriers import HASH_WORDS, IN_SENTENCES
from reverie.memory.secrets.grammar import Hit
from reverie.memory.secrets.rules import PRIVATE_BLOCK
from reverie.memory.secrets.shapes import is_placeholder, is_random
from reverie.text.folding import word_set
from reverie.text.patterns import late

_PHRASE = late(
    r"(?i)(?:\b(?:seed|recovery|mnemonic|backup|secret|wallet|restore)[- ]?(?:phrase|words?|seed|sentence)\b"
    r"|\bmnemonics?\b|\bwiederherstellungs-?(?:wörter|phrase|satz)|\bphrase (?:de récupération|secrète|mnémonique)"
    r"|\bmots de récupération|\bfrase (?:de recuperación|semilla|secreta)|\bpalabras (?:de recuperación|semilla)"
    r"|助记词|助記詞|恢复短语|种子短语|\b(?:12|24|twelve|zwölf|douze|doce)[- ](?:words?|wörter|mots|palabras)\b)"
)
_SEED_RUN = late(
    r"(?:\d{1,2}[.):]?[ \t]?)?[a-zà-ÿ]{3,8}(?:[ \t]*[,;\n-]?[ \t]*(?:\d{1,2}[.):]?[ \t]?)?[a-zà-ÿ]{3,8}\b){7,40}"
    r"|(?:[\u4e00-\u9fff][ ,、]){11,23}[\u4e00-\u9fff](?![\u4e00-\u9fff])"
)
_LEAST_SEED: Final = 8
_NOUN = late(
    r"(?i)pass(?:word|wort|phrase|code|wd)|kennwort|secret|token|(?<![a-z])pin(?![a-z])|key(?![a-rt-z])|schlüssel|clave|clé"
    r"|contraseña|mot de passe|密钥|密鑰|密码|密碼|口令|令牌"
)
_SHOWN = late(
    r"(?i)public|pub(?:lic)?_?key|fingerprint|host[-_ ]key|checksum|hash|sha-?\d|md5|digest|primary|sort|cache|index"
    r"|öffentlich|publique|pública|公钥|key[-_ ]?(?:id|code|frame|press|down|up|size)s?|magic"
)
_BYTES = late(
    r"(?<![\w.])(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ \t]*[ ,:;-]\s{0,8}){11,}(?:0x|\\x)?[0-9A-Fa-f]{2}(?![\w.])"
    r"|(?<![\w.])(?:\d{1,3}[ \t]*[ ,;]\s{0,8}){11,}\d{1,3}(?![\w.])"
)
_SPELLING: Final = word_set(
    """alpha alfa bravo charlie delta echo foxtrot golf hotel india juliett juliet kilo lima mike november oscar papa
    quebec romeo sierra tango uniform victor whiskey whisky xray x-ray yankee zulu zero one two three four five six
    seven eight nine null eins zwei drei vier fünf sechs sieben acht neun anton berta cäsar dora emil friedrich gustav
    heinrich ida julius kaufmann ludwig martha nordpol otto paula quelle richard siegfried theodor ulrich viktor
    wilhelm xanthippe ypsilon zacharias zéro un deux trois quatre cinq sept huit neuf cero uno dos tres cuatro cinco
    seis siete ocho nueve dash hyphen minus underscore dot hash at capital upper uppercase lower lowercase big small
    groß klein majuscule minuscule mayúscula minúscula"""
)
_SAID = late(r"[^\W\d_]+(?:-ray)?")
_LEAST_SPELLED: Final = 8
_GIVEN = late(
    r"(?<![\w$])\$?(?P<name>[A-Za-z_]\w{0,40})[\"']?(?:[ \t]*:[ \t]*\w{1,20})?[ \t]{0,4}(?::=|=|:)[ \t]{0,4}"
    r"(?:[\"'`](?P<quoted>[^\"'`\n]{4,200})[\"'`]|(?P<bare>[A-Za-z0-9+/_-]{6,200}={0,2})(?=[\s;,]|$))"
)
_PUT_TOGETHER = late(
    r"\$?\{?[A-Za-z_]\w{0,40}\}?(?:[ \t]{0,3}(?:\+|\.\.?|&|\|\||,)?[ \t]{0,3}"
    r"[\"']{0,2}\$?\{?[A-Za-z_]\w{0,40}\}?){1,11}"
)
_NAME = late(r"[A-Za-z_]\w*")
_PIECE: Final = r"[\"'`][A-Za-z0-9+/=_-]{6,200}[\"'`]"
_SPLIT = late(rf"{_PIECE}(?:\s{{0,40}}(?:[+.&,]|\.\.|\|\||\)?\.concat\()?\s{{0,40}}{_PIECE}){{1,20}}")
_FRAMED = late(r"[A-Za-z0-9+/=]{20,}")


def find_phrases(text: str) -> Iterator[Hit]:
    """Finds recovery words: a word for them, then at least eight short words that do not form a sentence."""
    end = 0
    for match in _PHRASE.finditer(text):
        for run in _SEED_RUN.finditer(text, max(end, match.end()), match.end() + 480):
            end = run.end()
            said = [word[0] in IN_SENTENCES for word in re.finditer(r"[a-zà-ÿ]+|[\u4e00-\u9fff]", run[0])]
            # Such lists contain a few words that sentences also use: at most two in twelve, none in eight.
            if any(
                at + size <= len(said) and sum(said[at : at + size]) <= most
                for size, most in ((_LEAST_SEED, 0), (12, 2))
                for at in range(len(said))
            ):
                yield "a recovery phrase", run.start(), run.end()


def find_byte_lists(text: str) -> Iterator[Hit]:
    """Finds a key as a list of bytes after a word for a key: `27 90 99 …`, `bytes([88, 86, …])`, `{0x12, …}`."""
    for match in _BYTES.finditer(text):
        found = re.findall(r"[0-9A-Fa-f]+", re.sub(r"0x|\\x", " ", match[0]))
        numbers = [int(one, 16) if len(one) == 2 else int(one, 10) for one in found if len(one) == 2 or one.isdigit()]
        if max(numbers) > 255 or len(set(numbers)) < min(len(numbers), 16) * 0.6:
            continue
        rising = sum(a < b for a, b in pairwise(numbers)) >= 0.9 * (len(numbers) - 1)
        if not rising and _is_named_before(text, match.start()):
            yield "a key", match.start(), match.end()


def find_spelled(text: str) -> Iterator[Hit]:
    """Finds a key that is spelled out: `kilo seven dash tango …`."""
    start, last, count = 0, -1, 0
    for match in _SAID.finditer(text):
        if match[0].lower() not in _SPELLING or (count and match.start() - last > 3):
            start, count = match.start(), 0
        if match[0].lower() in _SPELLING:
            start, count, last = (start if count else match.start()), count + 1, match.end()
            if count == _LEAST_SPELLED and _is_named_before(text, start):
                yield "a key or password that is spelled out", start, last
                start, count = last, 0


def _is_named_before(text: str, at: int) -> bool:
    """Whether there is a word for a secret shortly before, and no word for something public."""
    before = text[max(0, at - 70) : at]
    ends = [noun.end() for noun in _NOUN.finditer(before)]
    return bool(ends) and not re.search(r"[.!?;。][ \n]|\n\n", before[ends[-1] :]) and not _SHOWN.search(before)


def find_in_variables(text: str) -> Iterator[Hit]:
    """Finds parts of a key in variables that are joined: `k1 = "…"; k2 = "…"; key = k1 + k2`."""
    given: dict[str, tuple[str, int, int]] = {}
    for match in _GIVEN.finditer(text):
        group = "quoted" if match["quoted"] else "bare"
        given[match["name"]] = (match[group], match.start(group), match.end(group))
    if len(given) < 2:
        return
    for match in _PUT_TOGETHER.finditer(text):
        parts = [given[name] for name in _NAME.findall(match[0]) if name in given]
        value = "".join(part for part, _, _ in parts)
        if (
            len(parts) > 1
            and is_random(value, 20)
            and not _SHOWN.search(text[max(0, match.start() - 30) : match.start()])
        ):
            yield from (("a key in pieces", start, end) for _, start, end in parts)


def find_split_literals(text: str) -> Iterator[Hit]:
    """Finds a value split into quoted pieces (nobody splits a hash): `"baa5…" + "a164…"`, `["…", "…"].join("")`."""
    if text.count('"') + text.count("'") + text.count("`") < 4:
        return
    for match in _SPLIT.finditer(text):
        is_list = "," in match[0]
        if is_list and not re.search(r"join|concat|implode", text[max(0, match.start() - 12) : match.end() + 12]):
            continue
        value = re.sub(r"\)?\.concat\(|[\"'`\s,&|]|(?<=[\"'`\s])[+.]+(?=[\"'`\s])", "", match[0])
        before, after = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 30]
        is_hash = HASH_WORDS.search(before) or HASH_WORDS.search(after.partition("\n")[0])
        if is_random(value, 24) and not is_hash:
            yield "a key in pieces", match.start() + 1, match.end() - 1


def find_blocks(text: str) -> Iterator[Hit]:
    """Finds private keys between BEGIN and END lines, even on one line with escaped line breaks."""
    for match in PRIVATE_BLOCK.finditer(text):
        body = match["body"] or match["putty"] or ""
        bare = re.sub(r"\\+[nr]|[\"'+,\s]+", "", re.sub(r"(?m)^[A-Za-z-]+: .*$", "", body))
        run = _FRAMED.search(bare)
        if run and " " not in body.strip()[:20] and not is_placeholder(run[0][:200]):
            yield "a private key", match.start(), match.end()


# Each form with its marks. The text must contain one of them: finding a mark is fast, matching a form is not.
_KEYS: Final = word_set("key pass secret token schlüssel clave clé contraseña kennwort pin 密 口令 令牌")
_FORMS: Final[tuple[tuple[frozenset[str], Callable[[str], Iterator[Hit]]], ...]] = (
    (word_set("private secret putty"), find_blocks),
    (word_set("seed phrase mnemonic words wörter mots palabras frase 助 短语 backup"), find_phrases),
    (_KEYS, find_byte_lists),
    (_KEYS, find_spelled),
    (word_set("= :"), find_in_variables),
)


def find_in_pieces(text: str) -> Iterator[Hit]:
    """Finds all of these forms except quoted pieces."""
    lower = text.lower()
    for marks, form in _FORMS:
        if any(mark in lower for mark in marks):
            yield from form(text)
