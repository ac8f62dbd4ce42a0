"""Forms of a secret without an announcing word and a join: headers, commands, cookies, hashes, cards, codes, pairs.

One table: the kind, its marks, its judge and its pattern. The text must contain at least one of the marks, because
finding a mark is fast and matching a pattern is not. The functions accept any view of the text and never return values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final
from urllib.parse import unquote

from reverie.memory.secrets.carriers import NOT_VALUES
from reverie.memory.secrets.grammar import TOKEN, Hit
from reverie.memory.secrets.shapes import (
    count_classes,
    is_chosen,
    is_code,
    is_hex,
    is_password,
    is_placeholder,
    is_random,
    is_striking,
    is_technical,
    is_uuid,
    is_wordlike,
)
from reverie.text.patterns import late

_Judge = Callable[[str, re.Match[str]], object]
_LOCAL = late(r"(?i)localhost|127\.|0\.0\.0\.0|\[?::1|host\.docker\.internal|(?:[a-z-]+\.)?example\.(?:com|org|net)")
_SESSION = late(r"(?i)sess|sid|auth|token|jwt|remember")
_CARD_WORD = late(
    r"(?i)card|visa|master|amex|american express|karte|carte|tarjeta|cvv|cvc|\bexp\b|expir|信用卡|银行卡|卡号|\bpan\b"
)


def _is_cookie(value: str, match: re.Match[str]) -> bool:
    session = _SESSION.search(match["name"]) and len(value) >= 16 and is_password(value)
    return bool(session) or is_random(value) or is_uuid(value)


def _is_argument(value: str, _: re.Match[str]) -> bool:
    typed = len(value) >= 6 and not is_placeholder(value) and not is_technical(value) and not value.startswith("//")
    return typed or is_password(value)


def _is_own(value: str, match: re.Match[str]) -> bool:
    """Whether somebody chose the password: not a template, and not the default of a local service."""
    password, user = unquote(value), unquote(match["user"])
    if not password or is_placeholder(password) or (password.lower() == user.lower() and password.isalpha()):
        return False
    return not (_LOCAL.match(match["host"]) and password.isalpha() and len(password) <= 10)


def _is_card(value: str, match: re.Match[str]) -> bool:
    """Whether the check digit is right and the same line has a word for a card."""
    digits = [int(c) for c in value if c.isdigit()]
    doubled = [d if n % 2 == 0 else (2 * d - 9 if d > 4 else 2 * d) for n, d in enumerate(reversed(digits))]
    if sum(doubled) % 10 or len(set(digits)) < 5 or not 13 <= len(digits) <= 19:
        return False
    before = match.string[max(0, match.start() - 60) : match.start()].rpartition("\n")[2]
    after = match.string[match.end() : match.end() + 60].partition("\n")[0]
    return bool(_CARD_WORD.search(before) or _CARD_WORD.search(after))


def _is_new(value: str, _: re.Match[str]) -> bool:
    """Whether something is changed to a value that only a password looks like."""
    return count_classes(re.sub(r"[^A-Za-z0-9]", "", value)) == 3 and is_striking(value) and not is_code(value)


def _has_codes(value: str, _: re.Match[str]) -> bool:
    codes = re.findall(r"[A-Za-z0-9-]{8,13}", value)
    return sum(any(c.isdigit() for c in code) for code in codes) >= 2


def _is_typed(value: str, _: re.Match[str]) -> bool:
    return is_password(value) and not is_code(value) and value.lower() not in NOT_VALUES


def _is_given(value: str, _: re.Match[str]) -> bool:
    return not is_placeholder(value)


def _is_header(value: str, match: re.Match[str]) -> bool:
    likely = match["scheme"] or is_random(value, 12) or is_password(value, least=8)
    return bool(likely) and not is_placeholder(value) and not is_code(value)


def _is_in_path(value: str, match: re.Match[str]) -> bool:
    return (is_random(value) and not is_hex(value)) or (is_uuid(value) and "hook" in match["what"])


_FORMS: Final[dict[tuple[str, str, _Judge], str]] = {
    ("an authorization header", "authorization api-key x- private-token", _is_header): (
        r"(?i)\b(?:authorization|proxy-authorization|x-[a-z-]*(?:api-?key|token|secret|auth)[a-z-]*|api-key|private-token)"
        r"[\"']?\s?[:=]\s?[\"']?(?:(?P<scheme>bearer|basic|token|apikey|digest|negotiate|key|oauth|bot)\s+)?"
        r"(?P<value>[^\s\"',;<>]{6,})"
    ),
    ("an authorization header", "bearer", lambda value, _: is_random(value, 12)): (
        r"(?i)\bbearer\s+(?P<value>[A-Za-z0-9+/_.=~-]{12,})"
    ),
    ("a licence key", "licen product activation serial registration", _is_given): (
        r"(?i)\b(?:licen[sc]e|product|activation|serial|registration)[- ]?(?:key|code|number)\W{0,4}(?:is )?"
        r"(?P<value>(?-i:[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){2,}))"
    ),
    ("a one-time-password seed", "otp 2fa mfa", lambda value, _: re.search(r"\d|.{24}", value)): (
        r"\b(?:otpauth://\S*?secret=|(?i:totp|otp|2fa|mfa)[^\n]{0,30}?\b)(?P<value>[A-Z2-7]{16,64})\b"
    ),
    ("a token in an address", "/key/ /token/ /secret/ /api-key/ /apikey/ hook/ hooks/", _is_in_path): (
        r"(?i)://[^\s\"'<>]{3,200}?/(?:with/)?(?P<what>key|token|secret|api-?key|(?:web)?hooks?)/"
        r"(?P<value>[A-Za-z0-9_-]{16,100})(?![\w-])"
    ),
    ("a session cookie", "cookie sess", _is_cookie): (
        r"(?i)(?:\bcookies?[\"']?\s?[:=]\s?[\"']?|;[ \t]*)(?P<name>[\w.%-]+)=(?P<value>[^;\s\"']+)"
    ),
    ("a password in a command", "-u --user --proxy-user", _is_argument): (
        r"(?:^|\s)(?:-u|--user|--proxy-user|-U)[ =]?[\"']?[\w.@+-]+[:%](?P<value>[^\s\"']{3,})"
    ),
    ("a password in a command", "-p -a pass:", _is_typed): (
        r"\b(?:mysql\w*|mariadb\w*|sshpass|docker login|podman login|zip|7z|redis-cli|smbclient|net use|keytool|openssl"
        r"|htpasswd)\b[^\n|;]{0,80}?\s-(?:p|a|P|pass(?:in|out)? pass:)[ ]?[\"']?(?P<value>[^\s\"'-][^\s\"']{3,})"
    ),
    ("a password's hash", "$ {s {c", lambda value, _: not re.search(r"\.{3}|(?i:x{6})", value)): (
        r"(?P<value>\$(?:2[abxy]?|argon2(?:id|i|d)|[1567y]|apr1|scrypt|s0|sha1|md5|P|H)\$[A-Za-z0-9./$=,+*-]{20,}"
        r"|\bpbkdf2_sha\d+\$\d+\$[^\s\"']{20,}|\{(?:SSHA|SHA|SMD5|CRYPT)\d*\}[A-Za-z0-9+/=]{16,})"
    ),
    ("a password", ":5432: :3306: :*: :1521: :6432: :1433:", lambda value, _: is_password(value)): (
        r"(?m)^(?:[ \t>+*-]{0,8}[ \t])?[\w.*-]+:(?:\d{2,5}|\*):[\w*-]+:[\w*.-]+:(?P<value>\S{4,})$"
    ),
    # `… is the password`, `use … as password`
    ("a password", "passw passcode passphrase pwd pw kennwort contraseña mot", _is_typed): (
        r"(?i)(?<!\S)[\"'`“]?(?P<value>[^\s\"'`“”]{5,60})[\"'`”]?,?[ \t]+(?:is|was|as|for|ist|als|es|como|est|comme)"
        r"[ \t]+(?:the|my|our|a|das|mein|unser|la|le|mi|su|your|its)?[ \t]*(?:[\w-]+[ \t]+){0,2}?"
        r"(?:password|passwort|passcode|passphrase|pwd|pw|kennwort|contraseña|mot de passe)\b"
    ),
    # `u: … p: …`
    ("a password", "p: p=", _is_typed): (
        r"(?i)\b(?:u|usr|user|login|id)\s?[:=]\s?[\w.@-]+[\s,;/|]+(?:p|pwd?)\s?[:=]\s?(?P<value>[^\s,;]{6,})"
    ),
    ("a password", "wifi:", _is_given): r"\bWIFI:[^\n]{0,80}?\bP:(?P<value>[^;\n]{4,63});",
    ("a password in an address", "://", _is_own): (
        r"[A-Za-z][A-Za-z0-9+.-]{1,30}://(?P<user>[^\s/@:\"'<>`]{0,200}):(?!\d{1,5}(?:/|@|$))"
        r"(?P<value>[^\s\"'<>`@]{0,200}(?:@[^\s\"'<>`@/]{0,100})?)@(?P<host>[^\s/@\"'<>`?#]+)"
    ),
    ("a token in an address", "://", lambda value, _: is_random(unquote(value), 24)): (
        r"://(?P<value>[^\s/@:\"'<>`]{24,200})@(?![^\s/@\"'<>`?#]*sentry)"
    ),
    ("a password in an address", "thin:", _is_given): r"thin:\w+/(?P<value>[^\s@/]{4,})@",
    ("a code that opens something", "cvv cvc", _is_given): (
        r"(?i)\b(?:cvv2?|cvc2?)\b[\"'*]{0,3}[ \t]?(?:[:=]|is|ist|est|es)?[ \t]?(?P<value>[0-9]{3,4})(?![\w-]|\.\d)"
    ),
    ("backup codes", "code", _has_codes): (
        r"(?i)\b(?:backup|recovery|rescue|scratch|einmal|wiederherstellungs)[- ]?codes?\b[^\n:]{0,40}[:=]?\s*"
        r"(?P<value>(?:[A-Za-z0-9]{4,6}-?[A-Za-z0-9]{4,6}[\s,;]*){2,})"
    ),
    ("a payment card", "card visa master amex karte carte tarjeta cvv cvc exp 卡 pan american", _is_card): (
        r"(?P<value>(?<![\w.-])(?:\d{4}(?:[ -]?\d{4}){2}[ -]?\d{1,7}|3\d{3}[ -]?\d{6}[ -]?\d{5})(?![\w-]))"
    ),
    # `rotate to …`
    ("a password", "rotat chang switch reset updat renew set änder wechs rotier remplac cambia rotar 改 换", _is_new): (
        r"(?i)(?:(?:rotat\w{1,3}|chang\w{1,3}|switch\w{0,3}|reset|updat\w{1,3}|renew\w{0,3}|set|ge?ändert|ändern|wechseln"
        r"|rotieren|changer|remplacer|cambia\w{0,2}|rotar)(?:[ \t]+(?:it|them|this|that|root|admin|es|sie|la|le))?"
        r"[ \t]+(?:to|into|auf|zu|in|par|por|à|a|en)[ \t]+[\"'`]?|(?:改为|改成|换成|更换为)[ \t]*)"
        r"(?P<value>[^\s\"'`,;]{8,60}?)[.)]*(?![^\s\"'`,;])"
    ),
}
_compile = cache(re.compile)  # only when a text has one of the marks; most texts have none
_USERS = late(
    r"(?i)(?:(?<![\w/.-])(?:guest|admin\w*|root|demo|user\w*|viewer|login|test\w*|postgres|sa|sysadmin|superuser|service"
    r"|svc[-_]\w+|bot|ubuntu|pi|ec2-user|vagrant|\w+@[\w.-]+\.\w{2,})[ \t]*(?:[/:|+]|[ \t]and|,)"
    r"|(?P<open>[(\[])[ \t]*[\w.@-]{2,30}[ \t]*[/:|])[ \t]*$"
)
_GLUED = late(r"[(\[]?[\w.@-]{2,30}[/:|](?=\S)")


def find_carried(text: str) -> Iterator[Hit]:
    """Finds all forms of the table."""
    lower = text.lower()
    for (kind, marks, judge), pattern in _FORMS.items():
        if any(mark in lower for mark in marks.split()):
            for match in _compile(pattern).finditer(text):
                if judge(match["value"], match):
                    yield kind, *match.span("value")


def find_pairs(text: str) -> Iterator[Hit]:
    """Finds a usual user name, or a name in brackets, with its password: `(guest / …)`, `admin:…`."""
    for match in TOKEN.finditer(text):
        word, at = match[0], match.start()
        if len(word) < 8 or word.isalpha() or not any(c.isdigit() for c in word):
            continue
        glued = _GLUED.match(word)
        value, at = (word[glued.end() :], at + glued.end()) if glued else (word, at)
        value = value.rstrip(".;:)]")
        user = _USERS.search(text, max(0, at - 48), at)
        if user and (is_chosen(value) or (not user["open"] and is_striking(value))):
            yield "a password", at, at + len(value)


_SECRET_COLUMN = late(
    r"(?i)^\W*(?:[\w ]*(?:password|passwort|passwd|pwd|pw|secret|token|api[-_ ]?key|contraseña|mot de passe|密码"
    r"|パスワード)[\w ]*)\W*$"
)


def find_columns(text: str) -> Iterator[Hit]:
    """Finds passwords and keys in the columns of tables."""
    lines = [(match.start(), match[0]) for match in re.finditer(r"[^\n]+", text)]
    for number, (_, head) in enumerate(lines[:-1]):
        mark = next((one for one in "|,;\t" if one in head), "")
        if not mark or len(head) > 300 or "(" in head:
            continue
        secret = [at for at, cell in enumerate(head.split(mark)) if _SECRET_COLUMN.match(cell)]
        for start, line in lines[number + 1 : number + 60] if secret else ():
            cells = line.split(mark)
            if len(cells) != head.count(mark) + 1:
                break
            for value in (cells[at].strip(" `*\"'") for at in secret):
                hard = is_password(value, least=6) and (count_classes(value) >= 3 or not is_wordlike(value))
                if (hard and not is_code(value)) or is_random(value):
                    yield "a password", start + line.find(value), start + line.find(value) + len(value)
