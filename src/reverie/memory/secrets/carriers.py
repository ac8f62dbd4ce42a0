"""What carries a secret without a word for it: addresses, headers, cookies, commands, hashes, pairs, codes, key blocks.

Each function yields (kind, start, end). They work on any view of the text and return no values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote

from reverie.memory.secrets.forms import TOKEN, Hit, is_code
from reverie.memory.secrets.rules import HASH_WORDS, NOT_VALUES, PRIVATE_BLOCK
from reverie.memory.secrets.shapes import (
    classes,
    entropy,
    is_chosen,
    is_hex,
    is_password,
    is_placeholder,
    is_random,
    is_striking,
    is_technical,
    is_uuid,
    wordlike,
)

_ADDRESS = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]{1,30}://(?P<user>[^\s/@:\"'<>`]{0,200})(?::(?P<password>[^\s\"'<>`@]{0,200}(?:@[^\s\"'<>`@/]{0,100})?))?"
    r"@(?P<host>[^\s/@\"'<>`?#]+)"
)
_LOCAL = re.compile(
    r"(?i)localhost|127\.|0\.0\.0\.0|\[?::1|host\.docker\.internal|(?:[a-z-]+\.)?example\.(?:com|org|net)"
)
_PORT = re.compile(r"\d{1,5}(?:/|$)")
_HEADER = re.compile(
    r"(?i)\b(authorization|proxy-authorization|x-[a-z-]*(?:api-?key|token|secret|auth)[a-z-]*|api-key"
    r"|private-token)[\"']?\s?"
    r"[:=]\s?[\"']?(?:(bearer|basic|token|apikey|digest|negotiate|key|oauth|bot)\s+)?([^\s\"',;<>]{6,})"
)
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s+([A-Za-z0-9+/_.=~-]{12,})")
_COOKIE = re.compile(r"(?i)\b(?:set-)?cookies?[\"']?\s?[:=]\s?[\"']?([^\n\"']{8,})")
_SESSION = re.compile(r"(?i)sess|sid|auth|token|jwt|remember")
_COOKIE_VALUE = re.compile(r"([\w.%-]+)=([^;\s]+)")
_SIGNED = re.compile(
    r"(?i)[?&](?:sig|signature|x-amz-signature|x-goog-signature|x-amz-security-token|hmac|secret|auth)="
    r"([^&\s\"'<>]{16,})"
)
_USER_ARGUMENT = re.compile(r"(?:^|\s)(?:-u|--user|--proxy-user|-U)[ =]?[\"']?([\w.@+-]+)[:%]([^\s\"']{3,})")
_PASSWORD_ARGUMENT = re.compile(
    r"\b(?:mysql\w*|mariadb\w*|sshpass|docker login|podman login|zip|7z|redis-cli|smbclient|net use|keytool"
    r"|openssl|htpasswd)\b"
    r"[^\n|;]{0,80}?\s-(?:p|a|P|pass(?:in|out)? pass:)[ ]?[\"']?([^\s\"'-][^\s\"']{3,})"
)
_HASHED = re.compile(
    r"\$(?:2[abxy]?|argon2(?:id|i|d)|[1567y]|apr1|scrypt|s0|sha1|md5|P|H)\$[A-Za-z0-9./$=,+*-]{20,}"
    r"|\bpbkdf2_sha\d+\$\d+\$[^\s\"']{20,}|\{(?:SSHA|SHA|SMD5|CRYPT)\d*\}[A-Za-z0-9+/=]{16,}"
)
_PASSWORD_LINE = re.compile(r"(?m)^(?:[ \t>+*-]{0,8}[ \t])?[\w.*-]+:(?:\d{2,5}|\*):[\w*-]+:[\w*.-]+:(\S{4,})$")
_USERS: Final = (
    r"(?:guest|admin\w*|root|demo|user\w*|viewer|login|test\w*|postgres|sa|sysadmin|superuser|service|svc[-_]\w+"
    r"|bot|ubuntu|pi|"
    r"ec2-user|vagrant|\w+@[\w.-]+\.\w{2,})"
)
_NAMED = re.compile(rf"(?i)(?<![\w/.-]){_USERS}[ \t]*(?:[/:|+]|[ \t]and|,)[ \t]*$")
_GLUED = re.compile(rf"(?i)[(\[]?(?:{_USERS}[/:|]|[\w.@-]{{2,30}}[/:|](?=\S+[)\]]$))")
_IN_BRACKETS = re.compile(r"[(\[][ \t]*[\w.@-]{2,30}[ \t]*[/:|][ \t]*$")
_LOGIN = re.compile(
    r"(?i)\b(?:log ?in|login|sign in|signin|einloggen|anmelden|connect(?:er)?|accede?r?|credentials?|creds"
    r"|zugangsdaten|"
    r"user(?:name)?|account|konto)\b"
)
_SIGN_IN: Final = (
    r"(?:(?P<sign>log(?:ged)?[ -]?ins?|sign(?:ed)?[ -]?in|einloggen|anmelden|anmeldung|zugang(?:sdaten)?"
    r"|credentials?|creds|acceso|iniciar sesión)|usuario|account|konto|user(?:[ -]?name)?|benutzer(?:name)?)[ \t]*"
    r"(?P<says>(?:is|are|as|with|mit|als|con|como|ist|es|for|für|para)[ \t]+|[:=][ \t]*)?"
)
# `login news / …`, `sign in as deploy with …`: whatever the name is, what follows is its password.
_SIGNED_IN = re.compile(rf"(?i)\b{_SIGN_IN}[\w.@+-]{{2,30}}[ \t]*(?:[/:|]|[ \t](?:with|mit|con))[ \t]*$")
_SIGNING_IN = re.compile(rf"(?i)\b{_SIGN_IN}$")
_NAME_BEFORE = re.compile(r"[(\[]?[\w.@+-]{2,30}[/:|](?=\S{6})")
_AS_PASSWORD = re.compile(
    r"(?i)(?<!\S)[\"'`“]?([^\s\"'`“”]{5,60})[\"'`”]?,?[ \t]+(?:is|was|as|for|ist|als|es|como|est|comme)[ \t]+"
    r"(?:the|my|our|a|das|mein|unser|la|le|mi|su|your|its)?[ \t]*(?:[\w-]+[ \t]+){0,2}?"
    r"(?:password|passwort|passcode|passphrase|pwd|pw|kennwort|contraseña|mot de passe)\b"
)
_OTP = re.compile(r"\b(?:otpauth://\S*?secret=|(?i:totp|otp|2fa|mfa)[^\n]{0,30}?\b)([A-Z2-7]{16,64})\b")
_LETTERS = re.compile(r"(?i)\b(?:u|usr|user|login|id)\s?[:=]\s?[\w.@-]+[\s,;/|]+(?:p|pwd?)\s?[:=]\s?([^\s,;]{6,})")
_LICENCE = re.compile(
    r"(?i)\b(?:licen[sc]e|product|activation|serial|registration)[- ]?(?:key|code|number)\W{0,4}(?:is )?"
    r"((?-i:[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){2,}))"
)
_WIFI_CODE = re.compile(r"\bWIFI:[^\n]{0,80}?\bP:([^;\n]{4,63});")
_LOGIN_CALL = re.compile(
    r"(?i)\b\w{0,30}(?:credentials?|login|auth)\(\s{0,5}[\"'][^\"'\n]{1,60}[\"']\s{0,5},\s{0,5}[\"']([^\"'\n]{4,60})[\"']"
)
_IN_PATH = re.compile(
    r"(?i)://[^\s\"'<>]{3,200}?/(?:with/)?(?P<what>key|token|secret|api-?key|(?:web)?hooks?)/(?P<value>[A-Za-z0-9_-]{16,100})(?![\w-])"
)
_PIECE: Final = r"[\"'`][A-Za-z0-9+/=_-]{6,200}[\"'`]"
_SPLIT = re.compile(rf"{_PIECE}(?:\s{{0,40}}(?:[+.&,]|\.\.|\|\||\)?\.concat\()?\s{{0,40}}{_PIECE}){{1,20}}")
_FRAMED = re.compile(r"[A-Za-z0-9+/=]{20,}")


def addresses(text: str) -> Iterator[Hit]:
    """Addresses with a password, or with a token where the user's name stands."""
    if "://" in text and "@" in text:
        for match in _ADDRESS.finditer(text):
            user, given, host = unquote(match["user"]), match["password"], match["host"]
            if given is None:
                if "sentry" not in host and is_random(user, 24):
                    yield "a token in an address", match.start("user"), match.end("user")
            elif not _PORT.match(given) and _is_own(user, unquote(given), host):
                yield "a password in an address", match.start("password"), match.end("password")
    if "thin:" in text:
        for match in re.finditer(r"thin:(\w+)/([^\s@/]{4,})@", text):
            if not is_placeholder(match[2]):
                yield "a password in an address", match.start(2), match.end(2)


def split_literals(text: str) -> Iterator[Hit]:
    """A value cut into quoted pieces, which nobody does to a hash: `"baa5…" + "a164…"`, `["…", "…"].join("")`."""
    if text.count('"') + text.count("'") + text.count("`") < 4:
        return
    for match in _SPLIT.finditer(text):
        is_list = "," in match[0]
        if is_list and not re.search(r"join|concat|implode", text[max(0, match.start() - 12) : match.end() + 12]):
            continue
        value = re.sub(r"\)?\.concat\(|[\"'`\s,&|]|(?<=[\"'`\s])[+.]+(?=[\"'`\s])", "", match[0])
        is_key = len(value) >= 32 and entropy(value.lower()) >= 2.8 if is_hex(value) else is_random(value, 24)
        beside = (
            text[max(0, match.start() - 40) : match.start()],
            text[match.end() : match.end() + 30].partition("\n")[0],
        )
        if is_key and not any(map(HASH_WORDS.search, beside)):
            yield "a key in pieces", match.start() + 1, match.end() - 1


def _is_own(user: str, password: str, host: str) -> bool:
    """Whether somebody chose the password: not a template, not the default of a service on this machine."""
    if not password or is_placeholder(password) or (password.lower() == user.lower() and password.isalpha()):
        return False
    return not (_LOCAL.match(host) and password.isalpha() and len(password) <= 10)


def carried(text: str) -> Iterator[Hit]:
    """Headers, cookies, command lines, hashes of passwords, codes and phrases."""
    lower = text.lower()
    for marks, form in _CARRIED:
        if any(mark in lower for mark in marks):
            yield from form(text)


def _headers(text: str) -> Iterator[Hit]:
    for match in _HEADER.finditer(text):
        value = match[3]
        likely = match[2] or is_random(value, 12) or is_password(value, least=8)
        if likely and not is_placeholder(value) and not is_code(value):
            yield "an authorization header", match.start(3), match.end(3)


def _schemes(text: str) -> Iterator[Hit]:
    for match in _SCHEME.finditer(text):
        basic = match[1].lower() == "basic" and classes(match[2]) >= 3 and not wordlike(match[2])
        if is_random(match[2], 12) or (basic and not is_placeholder(match[2])):
            yield "an authorization header", match.start(2), match.end(2)


def _cookies(text: str) -> Iterator[Hit]:
    for header in _COOKIE.finditer(text):
        for match in _COOKIE_VALUE.finditer(text, header.start(1), header.end(1)):
            session = _SESSION.search(match[1]) and len(match[2]) >= 16 and is_password(match[2])
            if session or is_random(match[2]) or is_uuid(match[2]):
                yield "a session cookie", match.start(2), match.end(2)


def _signed(text: str) -> Iterator[Hit]:
    for match in _SIGNED.finditer(text):
        if is_random(unquote(match[1])):
            yield "a signed address", match.start(1), match.end(1)


def _commands(text: str) -> Iterator[Hit]:
    for match in _USER_ARGUMENT.finditer(text):
        given = match[2]
        typed = len(given) >= 6 and not is_placeholder(given) and not is_technical(given) and not given.startswith("//")
        if typed or is_password(given):
            yield "a password in a command", match.start(2), match.end(2)
    for match in _PASSWORD_ARGUMENT.finditer(text):
        if is_password(match[1]) and not is_code(match[1]):
            yield "a password in a command", match.start(1), match.end(1)


def _hashes(text: str) -> Iterator[Hit]:
    for match in _HASHED.finditer(text):
        if not re.search(r"\.{3}|(?i:x{6})", match[0]):
            yield "a password's hash", match.start(), match.end()


def _password_lines(text: str) -> Iterator[Hit]:
    for match in _PASSWORD_LINE.finditer(text):
        if is_password(match[1]):
            yield "a password", match.start(1), match.end(1)


def _licences(text: str) -> Iterator[Hit]:
    for match in _LICENCE.finditer(text):
        if not is_placeholder(match[1]) and len(set(match[1])) > 6:
            yield "a licence key", match.start(1), match.end(1)


def _said_as_password(text: str) -> Iterator[Hit]:
    for match in _AS_PASSWORD.finditer(text):
        if is_password(match[1], least=5) and not is_code(match[1]) and match[1].lower() not in NOT_VALUES:
            yield "a password", match.start(1), match.end(1)


def _seeds(text: str) -> Iterator[Hit]:
    for match in _OTP.finditer(text):
        if any(c.isdigit() for c in match[1]) or len(match[1]) >= 24:
            yield "a one-time-password seed", match.start(1), match.end(1)


def _letters(text: str) -> Iterator[Hit]:
    for match in _LETTERS.finditer(text):
        if is_password(match[1], least=6) and not is_code(match[1]):
            yield "a password", match.start(1), match.end(1)


def _networks(text: str) -> Iterator[Hit]:
    for match in _WIFI_CODE.finditer(text):
        if not is_placeholder(match[1]):
            yield "a password", match.start(1), match.end(1)


def _calls(text: str) -> Iterator[Hit]:
    for match in _LOGIN_CALL.finditer(text):
        if is_password(match[1], least=6) and not is_code(match[1]):
            yield "a password", match.start(1), match.end(1)


def _in_paths(text: str) -> Iterator[Hit]:
    for match in _IN_PATH.finditer(text):
        value = match["value"]
        if (is_random(value) and not is_hex(value)) or (is_uuid(value) and "hook" in match["what"]):
            yield "a token in an address", match.start("value"), match.end("value")


# Each form with the marks one of which its text must have: looking for a mark is fast, matching a form is not.
_CARRIED: Final[tuple[tuple[tuple[str, ...], Callable[[str], Iterator[Hit]]], ...]] = (
    (("authorization", "api-key", "x-", "token"), _headers),
    (("bearer", "basic"), _schemes),
    (("cookie",), _cookies),
    (("sig=", "signature=", "token=", "hmac=", "secret=", "auth="), _signed),
    ((" -u", "--user", "--proxy-user", " -p", " -a", "pass:"), _commands),
    (("$", "{s", "{c"), _hashes),
    ((":5432:", ":3306:", ":*:", ":1521:", ":6432:", ":1433:"), _password_lines),
    (("licen", "product", "activation", "serial", "registration"), _licences),
    (("passw", "passcode", "passphrase", "pwd", "pw", "kennwort", "contraseña", "mot de passe"), _said_as_password),
    (("otp", "2fa", "mfa"), _seeds),
    (("p:", "p=", "p :", "p ="), _letters),
    (("wifi:",), _networks),
    (("credential", "login(", "auth("), _calls),
    (("/key/", "/token/", "/secret/", "/api-key/", "/apikey/", "hook/", "hooks/"), _in_paths),
)


def pairs(text: str) -> Iterator[Hit]:
    """`(guest / …)`, `admin:…`: a user's name and, beside it, what can only be its password."""
    for match in TOKEN.finditer(text):
        word = match[0]
        if len(word) < 8 or word.isalpha() or not any(c.isdigit() for c in word):
            continue
        before, at, value = text[max(0, match.start() - 48) : match.start()], match.start(), word.rstrip(".;:)]")
        signing_in = _SIGNING_IN.search(before)
        glued = _GLUED.match(word) or (_NAME_BEFORE.match(word) if signing_in else None)
        if glued:
            before, at, value = before + glued[0], at + glued.end(), value[glued.end() :]
        signed_in = _SIGNED_IN.search(before)
        known = _NAMED.search(before) or signed_in or (signing_in and glued)
        named = known and (is_chosen(value) or is_striking(value))
        if signed_in and signed_in["sign"] and signed_in["says"]:  # `log in as NAME / …`: nothing else is said so
            plain = is_code(value) or (wordlike(value) and not re.search(r"[A-Z]|\d[a-z]", value))
            named = named or (is_password(value, least=8) and not plain)
        bracketed = _IN_BRACKETS.search(before) and is_chosen(value)
        signs = re.search(r"[!@$%^&*+?~#]", value) and is_striking(value)
        if named or bracketed or (signs and _LOGIN.search(before.rpartition("\n")[2])):
            yield "a password", at, at + len(value)


def blocks(text: str) -> Iterator[Hit]:
    """Private keys in their frames, also on one line with escaped breaks."""
    if "PRIVATE" not in text and "SECRET KEY" not in text and "PuTTY" not in text:
        return
    for match in PRIVATE_BLOCK.finditer(text):
        body = match["body"] or match["putty"] or ""
        bare = re.sub(r"\\+[nr]|[\"'+,\s]+", "", re.sub(r"(?m)^[A-Za-z-]+: .*$", "", body))
        run = _FRAMED.search(bare)
        if run and " " not in body.strip()[:20] and not is_placeholder(run[0][:200]):
            yield "a private key", match.start(), match.end()
