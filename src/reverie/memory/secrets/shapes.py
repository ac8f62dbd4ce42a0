"""What a value looks like: random, a password, a placeholder, a lookup, a hash, a word.

A rule finds a place where a secret is possible; these functions judge the value there. They judge only by its shape,
and never store it, log it or compare it with anything outside the text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise
from typing import Final

from reverie.memory.secrets.likeness import measure_likeness
from reverie.text.folding import word_set
from reverie.text.patterns import late

_UUID = late(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HEX = late(r"(?i)(?:0x)?[0-9a-f]+")
_MASK = late(r"(?i)[*•●∙·.…?#_x-]{3,}")
# Long words that random values do not contain by chance: a value with one of them is made up.
_MADE_UP = late(
    r"(?i)example|placeholder|change[-_ ]?me|redacted|your[-_ ]?(?:\w+[-_ ])?(?:key|token|secret|password|pass|api"
    r"|own|value)|(?:my|the|some|insert|replace|paste|enter|put|add|use|set)[-_ ](?:your|my|the|a|an|this|real|own"
    r"|new|here|api|token|secret|key)\b|[-_ ]here$|^your[-_A-Z]|not[-_ ]?a[-_ ]?real|goes[-_ ]here|removed|masked"
    r"|hidden[-_ ]value|dummy|f[o0]{2}bar|lorem|no[-_]?such|invalid[-_]|sample[-_]|[-_]sample|fake[-_]|[-_]fake|<|>"
    r"|\{\{|\}\}|x{5,}|\.{3}|…|\*{3}|0{8,}|(?:1234567890|0123456789|abcdefgh)"
)
_WHOLE_MADE_UP: Final = word_set(
    """none null nil undefined true false yes no on off empty blank unset default todo tbd na n/a unknown string
    str text number int integer bool boolean float any object array list bytes char varchar void self required
    optional secret password passwd pass pwd token key apikey api_key user username value foo bar baz test
    testing pw mypassword mysecret mytoken mykey passphrase credential credentials auth bearer basic hidden
    masked yourpassword secretstr nullable date datetime uuid enabled disabled env environ environment vault
    keychain keyring"""
)
# A lookup: the name of a place does not reveal the secret.
_LOOKUP = late(
    r"(?ix) ^[$%@!] (?: \{ | \( | [A-Za-z_][^&^*\#!?@+=]*$ ) | \$\{ | \$\( | \{\{ | %\([a-z_]+\)s | ^%[A-Z_]+%$ "
    r"| ^<[^>]*>?$ | ^\{[^}]*\}$ | ^\[[^\]]*\]$| ^(?:op|vault|sm|ssm|kms|gcp|akv|secretref|file|env|ref\+\w+|keychain"
    r"|pass)(?:://|:|\.) | ^arn:| \b(?:os\.|process\.|import\.meta\.)?(?:getenv|environ?|env)\b[.\[(:] "
    r"| \b(?:secrets?|vars?|settings?|config|cfg|params?|self|this|ctx|args|opts|options|props|req|request|data"
    r"|values?)\.[A-Za-z_]| ^[A-Za-z_][\w.:]*\((?:[^)]*\)?)?;?$ | ^[A-Za-z_]\w*\[ | ^https?://[^@\s]*$ | ^[A-Za-z]:\\"
)
_ENV_NAME = late(  # no digits between the letters of a part, except `K8S` and `I18N`
    r"(?!\d)(?:(?:[A-Z]+\d*|\d+|[A-Z]\d{1,2}[A-Z])_)+(?:[A-Z]+\d*|\d+|[A-Z]\d{1,2}[A-Z])|[A-Z]{3,}"
)
_IDENTIFIER = late(r"[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::|->|-)[A-Za-z_][A-Za-z0-9_]*)*")
_PARTS = late(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
# Versions, dates, files, and names of methods, formats and products that mix letters and digits like passwords.
_TECHNICAL = late(
    r"(?i)v?\d+(?:[.:/-]\d+)+(?:[-+.]?(?:rc|alpha|beta|dev|post|pre|a|b|build)?[\w.+-]{0,20})?|\d{4}-\d\d-\d\dT[\d:.]+Z?"
    r"|q[1-4]|[\d.,_]+[a-z%]{0,3}|argon2(?:id|i|d)?|[bsy]?crypt|pbkdf2(?:[-_]hmac)?(?:[-_]?sha-?\d*)?"
    r"|sha-?\d+(?:[-/]\d+)?|md[45]|hs\d+|rs\d+|es\d+|ps\d+|aes-?\d*(?:[-_]\w+)*|rsa-?\d*|ed25519|x25519|secp\d+[kr]\d"
    r"|oauth-?2?(?:\.\d)?|oidc|saml-?2?(?:\.\d)?|base(?:16|32|58|64)(?:url)?|utf-?(?:8|16|32)|x509|pkcs-?#?\d+"
    r"|tls-?v?1(?:\.\d)?|http/?[123](?:\.\d)?|ipv[46]|k8s|k3s|i18n|l10n|a11y|s3|ec2|h2|1password|auth0|web3|log4j"
    r"|fido2|webauthn|yubikey\d*|u2f|2fa|mfa|totp|hotp|ntlmv\d|win\d+|python\d(?:\.\d+)?|[\w.-]+\.(?:md|py|pyi|tsx?"
    r"|jsx?|mjs|json5?l?|ya?ml|toml|rs|go|java|kts?|swift|c|h|cc|cpp|hpp|cs|rb|php|sh|ps1|sql|txt|csv|tsv|pdf|html?"
    r"|s?css|xml|ini|cfg|conf|env|lock|log|zip|gz|tar|zst|png|jpe?g|svg|gif|ipynb|vue|dart|ex|exs|lua|r|jl|scala|tf"
    r"|proto|gradle|com|org|net|io|dev|test|local|internal|app|ai|cloud|example)"
)
_PATH = late(r"(?:~|\.{0,2})/[\w.-]+(?:/|$)")
_CODE = late(r"^[\w.]+\(|::\w|^/[\w./-]+$|^\.{1,2}/|^~/|^\w+@[\w.-]+\.\w+$")
_DOTTED = late(r"^[A-Za-z_]+(?:\.[A-Za-z_]+)+$|^[\w-]+(?:/[\w.-]+)+$")
_CAMEL = late(r"[a-z]+(?:[A-Z][a-z]+)+|[a-z]+(?:_[a-z]+)+\d?|[A-Z][a-z]+(?:[A-Z][a-z]+)+")
_CASES = late(r"[A-Z]{0,5}[a-z]+(?:[A-Z][a-z]+)*[A-Z]{0,4}s?")


def measure_entropy(value: str) -> float:
    """Returns the entropy in bits per character, from the counts in the value itself."""
    counts = Counter(value)
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in counts.values()) if total else 0.0


def count_classes(value: str) -> int:
    """Counts the classes of characters in the value: lower case, upper case, digits, others."""
    return (
        any(c.islower() for c in value)
        + any(c.isupper() for c in value)
        + any(c.isdigit() for c in value)
        + any(not c.isalnum() for c in value)
    )


def is_uuid(value: str) -> bool:
    return bool(_UUID.fullmatch(value))


def is_hex(value: str) -> bool:
    """Whether it has only hexadecimal digits: a hash, a commit or a key; the context decides."""
    return bool(_HEX.fullmatch(value))


def is_placeholder(value: str) -> bool:
    """Whether the value does not reveal a secret: it is made up, masked, a lookup, a type or empty."""
    bare = value.strip("\"'`“”‘’«»「」()[]{}.,;:!? ")
    if not bare or len(set(bare)) <= 2 or _MASK.fullmatch(bare):
        return True
    lower = bare.lower()
    if lower in _WHOLE_MADE_UP or _MADE_UP.search(bare) or _LOOKUP.search(value.strip()):
        return True
    if _PATH.match(value) and is_wordlike(value):
        return True
    if _ENV_NAME.fullmatch(bare) and not _has_random_capitals(bare):
        return True
    return _is_sequential(lower)


def _has_random_capitals(value: str) -> bool:
    """Whether capitals and digits are mixed in a way that names are not: `K7QX2MB4…`."""
    if len(re.findall(r"\d+", value)) >= 3 and len(value) >= 10:
        return True
    long = [part for part in re.findall(r"[A-Z]+", value) if len(part) > 3]
    return bool(long) and any(c.isdigit() for c in value) and not any(is_wordlike(part.lower()) for part in long)


def _is_sequential(lower: str) -> bool:
    """Whether somebody typed a sequence or a repetition: `abcdef…`, `12345678`, `abcabcabc`."""
    if len(lower) < 6:
        return False
    steps = sum(ord(b) - ord(a) in (0, 1) for a, b in pairwise(lower))
    if steps >= 0.8 * (len(lower) - 1):
        return True
    size = len(lower)
    return any(size >= 4 * step and lower == (lower[:step] * size)[:size] for step in (1, 2, 3, 4))


def is_technical(value: str) -> bool:
    """Whether it is a version, a date, a file, or the name of a method or product."""
    bare = value.strip("\"'`()[]{}.,;:!?")
    return bool(_TECHNICAL.fullmatch(bare))


def is_wordlike(value: str) -> bool:
    """Whether it is built from words, like names of functions, files and hosts, with at most short numbers."""
    return not any(c.isalpha() for c in value) or measure_likeness(value) > len(value) / 6


def is_random(value: str, least: int = 16) -> bool:
    """Whether a program generated it: long, mixed, without words. Hexadecimal values need at least 32 digits."""
    if len(value) < least or is_placeholder(value) or is_technical(value):
        return False
    if is_uuid(value):
        return False
    if is_hex(value):
        return len(value) >= 32 and measure_entropy(value.lower()) >= 2.8
    core = [c for c in value if c.isalnum()]
    if len(core) < 0.7 * len(value):
        return False
    kinds = count_classes("".join(core))
    if kinds < 2:
        return False
    return measure_entropy(value) >= min(3.6, 0.72 * math.log2(len(value))) and not is_wordlike(value)


def is_password(value: str, *, least: int = 4) -> bool:
    """Whether somebody could choose it as a password: not a plain word, a placeholder or a technical term."""
    if len(value) < least or len(value) > 200 or is_placeholder(value) or is_technical(value):
        return False
    if any(c.isdigit() for c in value) and any(c.isalpha() for c in value):
        return True
    inner = value.strip(".,;:!?)('\"")
    if re.search(r"[!@#$%^&*+=?~|\\]", value) and any(c.isalnum() for c in value) and len(value) >= 6:
        return not _IDENTIFIER.fullmatch(inner)
    # Mixed case that is neither a name nor words in camel case.
    mixed = any(c.isupper() for c in inner[1:]) and any(c.islower() for c in inner)
    return mixed and (not is_wordlike(inner) or has_odd_case(inner))


def has_odd_case(value: str) -> bool:
    """Whether the case changes as in no name: `bolQKSNcehz`, unlike `PostgreSQL`, `OAuth` or `readTimeout`."""
    return (
        len(value) >= 6
        and value.isalpha()
        and value.isascii()
        and value.lower() != value != value.upper()
        and not _CASES.fullmatch(value)
    )


def is_striking(value: str) -> bool:
    """Whether it is obviously a password in prose: three classes of characters, not an identifier, path or name."""
    bare = value.strip(".,;:)('\"`*")
    if len(bare) < 8 or len(bare) > 100 or is_placeholder(bare) or is_technical(bare) or is_uuid(bare) or is_hex(bare):
        return False
    if re.search(r"[/\\]\w+|^#|::|->|\(\)|^--?\w|@\w+\.\w|^\w+:$|[<>{}=]|^`|[…—–]", bare):
        return False
    if count_classes(bare) < 3 or not any(c.isdigit() for c in bare):
        return False
    if _IDENTIFIER.fullmatch(bare) or re.fullmatch(r"[\w]+(?:[-.][\w]+)*", bare):
        return not is_wordlike(bare) and len(_PARTS.findall(bare)) >= 4
    return bool(re.search(r"[!@$%^&*+=?~#]", bare)) or not is_wordlike(bare)


def is_chosen(value: str) -> bool:
    """Whether it has words and digits in both cases, like passwords of people: `blueRiver-77`, `Summer2024!`."""
    if len(value) < 8 or is_placeholder(value) or is_technical(value):
        return False
    if re.search(r"[/\\]|\.\w{1,4}$|^\d|://|[(){}<>=]", value):
        return False
    return count_classes(re.sub(r"[^A-Za-z0-9]", "", value)) == 3 and bool(
        re.search(r"\d[!?#$%&*]?$|[!@$%^&*?~#]", value)
    )


def is_code(value: str, quoted: bool = False) -> bool:
    """Whether it is a name, a call, a path or a mail address, and not a value."""
    if _CODE.search(value) or (is_wordlike(value) and _DOTTED.search(value)):
        return True
    return not quoted and bool(_CAMEL.fullmatch(value)) and is_wordlike(value)
