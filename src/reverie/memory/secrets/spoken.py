"""Secrets as people say them: a noun that means one, perhaps some words, then what only a secret can be.

Pairs behind a word for a login, codes, recovery words, lists of bytes, keys spelled out, parts of a key in variables,
payment cards, "rotate to …". Each function yields (kind, start, end), works on any view and returns no values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from reverie.memory.secrets.forms import IN_SENTENCES, Hit, is_code
from reverie.memory.secrets.rules import NOT_VALUES
from reverie.memory.secrets.shapes import (
    classes,
    entropy,
    has_odd_case,
    is_hex,
    is_password,
    is_placeholder,
    is_random,
    is_striking,
)
from reverie.text.folding import word_set

# What may stand between a noun and its verb: `for the printer`, `de l'alarme`, `at 10.0.0.4`.
OF: Final = (
    r"(?:[ \t]+(?:for|of|to|on|at|from|in|für|vom|von|der|des|zum|zur|am|im|bei|auf|de|del|du|des|pour|para|por|en|dans"
    r"|sur|di|do|da|van|voor)[ \t]+(?:[^\n.:;=：]|[.:](?=[^\s])){1,40}?)?"
)
_IS: Final = (
    r"(?:[ \t]*(?:[:：=]|是|为|為|は)[ \t]*"
    r"|[ \t]+(?:is|are|was|now|ist|sind|lautet|lauten|est|sont|es|son|è|é)(?:[ \t]+(?:now|still|jetzt|ahora))?"
    r"[ \t]*:?[ \t]+)"
)
_LOGIN = re.compile(
    r"(?i)(?:(?<![^\W_])(?:log[ -]?ins?|log[ -]?ons?|sign[ -]?ins?|creds?|credentials?|zugang|zugangsdaten|anmeldedaten"
    r"|anmeldung|logindaten|identifiants?|connexion|accès|acceso|credenciales|usuario|account|konto|user(?:name)?"
    r"|benutzer(?:name)?|utilisateur)|登录|登入|账号|帐号|账户|凭据|用户名?)"
    rf"(?:{OF}{_IS}|(?P<gap>[ \t]+))[\"'`*(]{{0,3}}(?P<user>[\w.@+-]{{2,40}})[\"'`*]{{0,3}}"
    r"[ \t]*(?P<sep>[/:|,，、]|[ \t](?:and|und|et|y|with|mit|avec|con))[ \t]*"
    r"[\"'`*]{0,3}(?P<value>[^\s\"'`*<>|,;)]{5,100})"
)
_OPENS: Final = (
    r"(?:door|gate|alarm|safe|lock|garage|vault|lift|elevator|phone|sim|card|gym|entrance|entry|office|haustür|tür|tor"
    r"|alarmanlage|tresor|safe|schließfach|handy|karte|porte|portail|alarme|coffre|téléphone|carte|immeuble|puerta|alarma"
    r"|caja fuerte|garaje|móvil|tarjeta)"
)
_CODE = re.compile(
    r"(?i)(?:(?<![^\W_])(?:pin(?:[- ]?(?:code|number|nummer))?|passcode|code pin|código pin|codigo pin|geheimzahl"
    r"|(?:door|gate|alarm|unlock|entry|access|security|lock|safe|garage|vault)[- ]code|tür-?code|türcode|zugangscode"
    r"|(?:safe|lock|locker|vault|tresor|schloss)[- ]?(?:combination|kombination)"
    r"|code (?:d'accès|secret)|código (?:de acceso|secreto))(?![^\W_])"
    rf"|(?<!error )(?<!status )(?<!exit )(?<![^\W_])(?:code|código|combination|kombination|combinaison)"
    rf"[ \t]+(?:for|of|to|on|für|zum|zur|der|vom|von|de|del|du|pour|para)[ \t]"
    rf"(?:[^\n:;=]{{1,30}}?[ \t'’])?{_OPENS}(?=[ \t:：=])"
    r"|(?:门禁|大门|保险箱|保险柜|报警器?|手机|解锁|锁屏|支付|银行卡|开门)(?:密码|码|代码|口令))"
    rf"[\"'*]{{0,3}}(?:{OF}{_IS}"
    r"|[ \t]+(?=[#*]?\d{4,8}[#*]?(?:[ \t]*(?:[.,;:)!?\n]|$)"
    r"|[ \t]+(?:for|to|opens|on|at|of|and|is|für|und|pour|et|para|y)\b)))"
    r"[\"'`*]{0,3}([#*]?\d{4,8}[#*]?)(?![\w-]|\.\d|[ \t]*(?:%|ms\b))"
)
_OPENED = re.compile(
    rf"(?i)\b{_OPENS}\b[^\n.:;=]{{0,30}}?[ \t](?:opens?|unlocks?|öffnet|s'ouvre|abre)(?:[ \t]sich)?"
    r"[ \t](?:with|by|mit|avec|con)"
    r"(?:[ \t](?:code|the code|dem code|le code|el código))?[ \t]([#*]?\d{4,8}[#*]?)(?![\w-]|\.\d)"
)
_CVV = re.compile(r"(?i)\b(?:cvv2?|cvc2?)\b[\"'*]{0,3}[ \t]?(?:[:=]|is|ist|est|es)?[ \t]?([0-9]{3,4})(?![\w-]|\.\d)")
_BACKUP_CODES = re.compile(
    r"(?i)\b(?:backup|recovery|rescue|scratch|einmal|wiederherstellungs)[- ]?codes?\b[^\n:]{0,40}[:=]?\s*"
    r"((?:[A-Za-z0-9]{4,6}-?[A-Za-z0-9]{4,6}[\s,;]*){2,})"
)
_PHRASE = re.compile(
    r"(?i)(?:\b(?:seed|recovery|mnemonic|backup|secret|wallet|restore)[- ]?(?:phrase|words?|seed|sentence)\b"
    r"|\bmnemonics?\b|\bwiederherstellungs-?(?:wörter|phrase|satz)|\bphrase (?:de récupération|secrète|mnémonique)"
    r"|\bmots de récupération|\bfrase (?:de recuperación|semilla|secreta)|\bpalabras (?:de recuperación|semilla)"
    r"|助记词|助記詞|恢复短语|种子短语|\b(?:12|24|twelve|zwölf|douze|doce)[- ](?:words?|wörter|mots|palabras)\b)"
)
_SEED_RUN = re.compile(
    r"(?:\d{1,2}[.):]?[ \t]?)?[a-zà-ÿ]{3,8}(?:[ \t]*[,;\n-]?[ \t]*(?:\d{1,2}[.):]?[ \t]?)?[a-zà-ÿ]{3,8}\b){7,40}"
    r"|(?:[\u4e00-\u9fff][ ,、]){11,23}[\u4e00-\u9fff](?![\u4e00-\u9fff])"
)
_LEAST_SEED: Final = 8
_NOUN = re.compile(
    r"(?i)pass(?:word|wort|phrase|code|wd)|kennwort|secret|token|(?<![a-z])pin(?![a-z])|key(?![a-rt-z])|schlüssel|clave|clé"
    r"|contraseña|mot de passe|密钥|密鑰|密码|密碼|口令|令牌"
)
_SHOWN = re.compile(
    r"(?i)public|pub(?:lic)?_?key|fingerprint|host[-_ ]key|checksum|hash|sha-?\d|md5|digest|primary|sort|cache|index"
    r"|öffentlich|publique|pública|公钥|key[-_ ]?(?:id|code|frame|press|down|up|size)s?|magic"
)
_BYTES = re.compile(
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
_SAID = re.compile(r"[^\W\d_]+(?:-ray)?")
_LEAST_SPELLED: Final = 8
_GIVEN = re.compile(
    r"(?<![\w$])\$?(?P<name>[A-Za-z_]\w{0,40})[\"']?(?:[ \t]*:[ \t]*\w{1,20})?[ \t]{0,4}(?::=|=|:)[ \t]{0,4}"
    r"(?:[\"'`](?P<quoted>[^\"'`\n]{4,200})[\"'`]|(?P<bare>[A-Za-z0-9+/_-]{6,200}={0,2})(?=[\s;,]|$))"
)
_PUT_TOGETHER = re.compile(
    r"\$?\{?[A-Za-z_]\w{0,40}\}?(?:[ \t]{0,3}(?:\+|\.\.?|&|\|\||,)?[ \t]{0,3}"
    r"[\"']{0,2}\$?\{?[A-Za-z_]\w{0,40}\}?){1,11}"
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_CARD = re.compile(
    r"(?<![\w.-])\d{4}(?:[ -]?\d{4}){2}[ -]?\d{1,7}(?![\w-])|(?<![\w.-])3\d{3}[ -]?\d{6}[ -]?\d{5}(?![\w-])"
)
_CARD_WORD = re.compile(
    r"(?i)card|visa|master|amex|american express|karte|carte|tarjeta|cvv|cvc|\bexp\b|expir|信用卡|银行卡|卡号|\bpan\b"
)
_ROTATED = re.compile(
    r"(?i)(?:rotat\w{1,3}|chang\w{1,3}|switch\w{0,3}|reset|updat\w{1,3}|renew\w{0,3}|set|ge?ändert|ändern|wechseln|rotieren"
    r"|changer|remplacer|cambia\w{0,2}|rotar)[ \t]+(?:(?:it|them|this|that|root|admin|es|sie|la|le)[ \t]+)?"
    r"(?:to|into|auf|zu|in|par|por|à|a|en)[ \t]+[\"'`]?([^\s\"'`,;]{8,60})|(?:改为|改成|换成|更换为)[ \t]*([!-~]{8,60})"
)


def logins(text: str) -> Iterator[Hit]:
    """`creds are root:…`, `login: ops / …`: a name and its password behind a word for both."""
    for match in _LOGIN.finditer(text):
        value = match["value"].rstrip(".!?")
        glued = match["sep"] == ":" and f"{match['user']}:{match['value']}" in match[0]
        glued = glued and match[0].lower().startswith(("cred", "log"))
        strong = is_striking(value) or (len(value) >= 8 and has_odd_case(value))
        if match["gap"] and not strong and not glued:
            continue
        if is_password(value, least=5) and not is_code(value) and value.lower() not in NOT_VALUES:
            yield "a password", match.start("value"), match.start("value") + len(value)


def codes(text: str) -> Iterator[Hit]:
    """Numbers that open something, and lists of backup codes."""
    for pattern in (_CODE, _CVV, _OPENED):
        for match in pattern.finditer(text):
            yield "a code that opens something", match.start(1), match.end(1)
    for match in _BACKUP_CODES.finditer(text):
        found = re.findall(r"[A-Za-z0-9-]{8,13}", match[1])
        if sum(any(c.isdigit() for c in code) for code in found) >= 2:
            yield "backup codes", match.start(1), match.end(1)


def phrases(text: str) -> Iterator[Hit]:
    """Recovery words: a word for them, then at least eight short words that make no sentence."""
    end = 0
    for match in _PHRASE.finditer(text):
        for run in _SEED_RUN.finditer(text, max(end, match.end()), match.end() + 480):
            end = run.end()
            said = [word[0] in IN_SENTENCES for word in re.finditer(r"[a-zà-ÿ]+|[\u4e00-\u9fff]", run[0])]
            # Lists of such words hold a few that sentences hold too: two in twelve, none in eight.
            if any(
                at + size <= len(said) and sum(said[at : at + size]) <= most
                for size, most in ((_LEAST_SEED, 0), (12, 2))
                for at in range(len(said))
            ):
                yield "a recovery phrase", run.start(), run.end()


def byte_lists(text: str) -> Iterator[Hit]:
    """A key written as its bytes: `27 90 99 …`, `bytes([88, 86, …])`, `{0x12, …}` behind a word for a key."""
    for match in _BYTES.finditer(text):
        found = re.findall(r"[0-9A-Fa-f]+", re.sub(r"0x|\\x", " ", match[0]))
        numbers = [int(one, 16) if len(one) == 2 else int(one, 10) for one in found if len(one) == 2 or one.isdigit()]
        if max(numbers) > 255 or len(set(numbers)) < min(len(numbers), 16) * 0.6:
            continue
        rising = sum(a < b for a, b in pairwise(numbers)) >= 0.9 * (len(numbers) - 1)
        if not rising and _named_before(text, match.start()):
            yield "a key", match.start(), match.end()


def spelled(text: str) -> Iterator[Hit]:
    """A key spelled out: `kilo seven dash tango …`."""
    start, last, count = 0, -1, 0
    for match in _SAID.finditer(text):
        if match[0].lower() not in _SPELLING or (count and match.start() - last > 3):
            start, count = match.start(), 0
        if match[0].lower() in _SPELLING:
            start, count, last = (start if count else match.start()), count + 1, match.end()
            if count == _LEAST_SPELLED and _named_before(text, start):
                yield "a key or password that is spelled out", start, last
                start, count = last, 0


def _named_before(text: str, at: int) -> bool:
    """Whether a word for a secret stands a little before, and none for something public."""
    before = text[max(0, at - 70) : at]
    ends = [noun.end() for noun in _NOUN.finditer(before)]
    return bool(ends) and not re.search(r"[.!?;。][ \n]|\n\n", before[ends[-1] :]) and not _SHOWN.search(before)


def in_variables(text: str) -> Iterator[Hit]:
    """Parts of a key in variables that are put together: `k1 = "…"; k2 = "…"; key = k1 + k2`."""
    given: dict[str, tuple[str, int, int]] = {}
    for match in _GIVEN.finditer(text):
        group = "quoted" if match["quoted"] else "bare"
        given[match["name"]] = (match[group], match.start(group), match.end(group))
    if len(given) < 2:
        return
    for match in _PUT_TOGETHER.finditer(text):
        parts = [given[name] for name in _NAME.findall(match[0]) if name in given]
        value = "".join(part for part, _, _ in parts)
        is_key = len(value) >= 32 and entropy(value.lower()) >= 2.8 if is_hex(value) else is_random(value, 20)
        if len(parts) > 1 and is_key and not _SHOWN.search(text[max(0, match.start() - 30) : match.start()]):
            yield from (("a key in pieces", start, end) for _, start, end in parts)


def cards(text: str) -> Iterator[Hit]:
    """Numbers of payment cards: a right check digit, and a word for a card in the same line."""
    for match in _CARD.finditer(text):
        digits = [int(c) for c in match[0] if c.isdigit()]
        doubled = [d if n % 2 == 0 else (2 * d - 9 if d > 4 else 2 * d) for n, d in enumerate(reversed(digits))]
        if sum(doubled) % 10 or len(set(digits)) < 5 or not 13 <= len(digits) <= 19:
            continue
        before = text[max(0, match.start() - 60) : match.start()].rpartition("\n")[2]
        if _CARD_WORD.search(before) or _CARD_WORD.search(text[match.end() : match.end() + 60].partition("\n")[0]):
            yield "a payment card", match.start(), match.end()


def rotated(text: str) -> Iterator[Hit]:
    """`rotate to …`: what something is changed to, if only a password looks like that."""
    for match in _ROTATED.finditer(text):
        value = (match[1] or match[2]).rstrip(".!?)")
        mixed = classes(re.sub(r"[^A-Za-z0-9]", "", value)) == 3
        if mixed and is_striking(value) and not is_placeholder(value) and not is_code(value):
            yield "a password", match.start(match.lastindex or 1), match.start(match.lastindex or 1) + len(value)


_KEYS: Final = word_set("key pass secret token schlüssel clave clé contraseña kennwort pin 密 口令 令牌")
# Each form with the marks one of which its text must have: looking for a mark is fast, matching a form is not.
_SPOKEN: Final[tuple[tuple[frozenset[str], Callable[[str], Iterator[Hit]]], ...]] = (
    (word_set("log cred zugang anmeld identif connexion acc us benutzer util 用户 konto sign 登 账 帐 凭"), logins),
    (word_set("pin code open unlock öffn ouvr abre código cvv cvc combina kombina geheimzahl 密码 口令 码"), codes),
    (word_set("seed phrase mnemonic words wörter mots palabras frase 助 短语 backup"), phrases),
    (_KEYS, byte_lists),
    (_KEYS, spelled),
    (word_set("= :"), in_variables),
    (word_set("card visa master amex karte carte tarjeta cvv cvc exp 卡 pan"), cards),
    (word_set("rotat chang switch reset updat renew set änder wechs rotier remplac cambia rotar 改 换"), rotated),
)


def spoken(text: str) -> Iterator[Hit]:
    """All of these forms."""
    lower = text.lower()
    for marks, form in _SPOKEN:
        if any(mark in lower for mark in marks):
            yield from form(text)
