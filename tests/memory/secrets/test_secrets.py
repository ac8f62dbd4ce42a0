"""The detector of secrets, measured on the shared corpus, on one of our own, and by planting secrets anywhere."""

from __future__ import annotations

import base64
import json
import random
import re
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.memory.secrets.scan import MASK, find_secrets, redact
from tests.counts import count
from tests.memory.secrets_corpus import CARRIERS, FORMS, TOKENS, Draw, cases
from tests.memory.secrets_held_out import HARMLESS, SECRETS
from tests.memory.secrets_spoken import HARMLESS as TALK
from tests.memory.secrets_spoken import LATER_HARMLESS, LATER_SECRETS
from tests.memory.secrets_spoken import SECRETS as SPOKEN
from tests.shared_data import ROOT
from tests.work import calls, cpu_limit, ratio

PROSE = """---
name: Deployment of the checkout service
description: who deploys, when, and what has to be ready before
type: project
---

Releases are cut on Thursdays; Marta from QA takes them to the chamber the same day (see INC-88 and PR #2210).

**Why:** the slot at the lab cannot be moved, and a broken build costs a week. Fixed in 9e1f0c2, image app:2.4.1-rc.3.
**How to apply:** nothing risky after Wednesday noon; `make release VERSION=2.4.1` on release/2.4.
"""


def _measure(rows: list[tuple[str, bool, str]]) -> tuple[list[str], list[str]]:
    missed = [why for text, secret, why in rows if secret and not find_secrets(text)]
    false = [why for text, secret, why in rows if not secret and find_secrets(text)]
    return missed, false


def _beside() -> list[list[tuple[str, bool, str]]]:
    file = ROOT / "security" / "secrets-dev.jsonl"
    raw = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    rows = [(base64.b64decode(row["text_b64"]).decode(), row["secret"], row["why"]) for row in raw]
    return [rows] if rows else []


@pytest.mark.parametrize("rows", [list(cases(0)), *_beside()], ids=["sample", "shared"][: 1 + len(_beside())])
def test_no_secret_of_a_corpus_is_stored_and_few_false_alarms(rows: list[tuple[str, bool, str]]) -> None:
    missed, false = _measure(rows)
    assert missed == []
    assert len(false) <= 0.05 * sum(not secret for _, secret, _ in rows), false


def test_own_corpus_is_at_least_twice_the_shared_one() -> None:
    rows = list(cases(0))
    assert len(rows) >= 2 * 80
    assert sum(secret for _, secret, _ in rows) >= 2 * 44
    assert sum(not secret for _, secret, _ in rows) >= 2 * 36


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(count(2, 60)))
def test_own_corpus(seed: int) -> None:
    rows = list(cases(1_000 + seed))
    missed, false = _measure(rows)
    assert missed == []
    assert len(false) <= 0.05 * sum(not secret for _, secret, _ in rows), false


@pytest.mark.parametrize("carrier", CARRIERS)
def test_every_maker_is_known_in_every_carrier(carrier: str) -> None:
    draw = Draw(len(carrier))
    missed = [name for name, make in TOKENS.items() if not find_secrets(carrier.format(make(draw)))]
    assert missed == []


def test_a_real_memory_directory_raises_no_alarm(many_memories: Path) -> None:
    files = list(many_memories.rglob("*.md"))
    flagged = [path.name for path in files if find_secrets(path.read_text())]
    assert len(flagged) <= 0.01 * len(files), flagged


@settings(deadline=None, max_examples=count(30, 600))
@given(
    st.sampled_from(sorted(TOKENS) + sorted(FORMS)),
    st.integers(0, 10_000),
    st.integers(0, len(PROSE.splitlines())),
    st.sampled_from(["\n", "\r\n"]),
)
def test_a_secret_planted_on_any_line_of_a_memory_is_found(name: str, seed: int, line: int, end: str) -> None:
    secret = (TOKENS.get(name) or FORMS[name])(Draw(seed))
    lines = PROSE.splitlines()
    text = end.join([*lines[:line], secret, *lines[line:]])
    assert find_secrets(text), name


@settings(deadline=None, max_examples=count(30, 600))
@given(st.sampled_from(sorted(TOKENS)), st.integers(0, 10_000), st.integers(0, len(PROSE)))
def test_a_token_planted_between_any_two_words_is_found_where_it_is(name: str, seed: int, at: int) -> None:
    secret = TOKENS[name](Draw(seed))
    at = PROSE.rfind(" ", 0, at) + 1
    text = f"{PROSE[:at]}{secret} {PROSE[at:]}"
    found = find_secrets(text)
    assert any(one.start < at + len(secret) and at < one.end for one in found)
    assert secret not in redact(text)


@settings(deadline=None, max_examples=count(40, 800))
@given(st.text(max_size=400))
def test_any_text_can_be_scanned_and_places_are_inside_it(text: str) -> None:
    last = 0
    for one in find_secrets(text):
        assert last <= one.start < one.end <= len(text)
        last = one.end


def test_nothing_found_holds_the_value() -> None:
    draw = Draw(7)
    for name, make in TOKENS.items():
        secret = make(draw)
        for one in find_secrets(f"key: {secret}"):
            assert secret not in repr(one), name


def test_masking_leaves_the_rest_alone() -> None:
    token = TOKENS["GitHub classic token"](Draw(3))
    assert redact(f"the CI token {token} expires in May") == f"the CI token {MASK} expires in May"
    assert redact(PROSE) == PROSE


def test_two_kilobytes_take_no_more_than_a_blink() -> None:
    text = (PROSE * 4)[:2_048]
    find_secrets(f"{text} {TOKENS['npm token'](Draw(1))}")  # loads the detector
    assert calls(lambda: find_secrets(text)) < 10_000
    assert ratio(lambda: find_secrets(text), lambda: re.findall("[a-z]+", text), tries=20) < 200


@pytest.mark.parametrize(
    "piece",
    ["a", "A1", "password ", "password: ", "\"'`", "a\n", "http://a:b", "QUJD", "%41", "eyJ", "_", "\\", "密码", "sk-"],
)
def test_no_text_takes_long(piece: str) -> None:
    with cpu_limit(15):
        find_secrets(piece * (20_000 // len(piece)))


def test_the_line_of_an_index_is_no_password_and_one_in_a_link_is() -> None:
    assert not find_secrets("- [The satellite pass is on 2026-03-21](project_the_pass_is_on_2026_03_21.md) — when")
    (found,) = find_secrets(text := "- [pw: Tr0ub4dor&3x](notes.md) — where")
    assert text[found.start : found.end] == "Tr0ub4dor&3x"


@pytest.mark.parametrize(
    "text",
    [
        "The figures are in the dashboard (login news / Otter-Plinth-5520), look daily.",
        "login: news / Otter-Plinth-5520",
        "log in as news with Otter-Plinth-5520",
        "credentials news/Otter-Plinth-5520",
        "Zugang: presse / Otter-Plinth-5520",
        "sign in as deploy / Otter-Plinth-5520",
    ],
)
def test_a_name_to_sign_in_with_and_a_password_beside_it(text: str) -> None:
    (found,) = find_secrets(text)
    assert text[found.start : found.end] == "Otter-Plinth-5520"


@pytest.mark.parametrize("value", ["HFMVJ-F000", "6pFcta-haky79", "CQMLH.mn25", "abkd93kd"])
@pytest.mark.parametrize(
    "carrier", ["log in as admin / {} on the box", "sign in as carol: {}", "creds: bot / {}", "anmelden als eva / {}"]
)
def test_whatever_follows_a_name_to_sign_in_with_is_its_password(carrier: str, value: str) -> None:
    assert find_secrets(carrier.format(value))


@pytest.mark.parametrize("value", ["fqhOwx.3Ttq7", "3EPFjsi.HFSFdl9", "9jPPWUX.ZBIBBp3"])
def test_a_short_drawn_value_of_all_kinds_of_characters_is_no_name(value: str) -> None:
    assert find_secrets(f"password:\n  {value}\n") and find_secrets(f"ldapadd --password {value} -f users.ldif")


@pytest.mark.parametrize("value", ["T1LVB_SRT9", "K31FU_WME53", "NT3EC_ZPC3"])
def test_a_value_in_capitals_is_no_name_of_a_variable(value: str) -> None:
    assert find_secrets(f"DB_PASSWORD={value}") and find_secrets(f"amqp://worker:{value}@mq.corp.test:5672/%2f")
    for name in ("DB_PASSWORD", "OAUTH2_TOKEN", "K8S_SECRET_2", "I18N_KEY", "AWS_S3_KEY"):
        assert not find_secrets(f"password = {name}")


@pytest.mark.parametrize(
    "text",
    [
        "login news / see the vault",
        "The login page is in web/login-page-2.tsx.",
        "user stories / epics for 2026-Q3 are in Jira",
        "account team: release-2024.1 goes out on Friday",
        "Credentials are kept in 1Password, vault Team-2024.",
        "log in with the SSO / Okta tile",
        "log in as admin / operator-2024, whichever works",
        "sign in as viewer / release-manager2 on staging",
        "account for HFMVJ / INV-20240 is closed",
    ],
)
def test_talk_of_signing_in_is_no_password(text: str) -> None:
    assert not find_secrets(text)


def test_secrets_in_many_carriers_are_found_and_harmless_lines_pass() -> None:
    missed = [line for line in SECRETS if not find_secrets(line)]
    alarms = [line for line in HARMLESS if find_secrets(line)]
    assert missed == []
    assert alarms == []


@pytest.mark.parametrize(("secrets", "talk"), [(SPOKEN, TALK), (LATER_SECRETS, LATER_HARMLESS)])
def test_secrets_that_people_say_are_found_and_talk_about_them_is_not(secrets: list[str], talk: list[str]) -> None:
    assert [text for text in secrets if not find_secrets(text)] == []
    assert len(alarms := [text for text in talk if find_secrets(text)]) <= 0.05 * len(talk), alarms


@pytest.mark.parametrize(
    "piece",
    ["login for ", "PIN of a ", "12 34 ", "1, ", "seed words ", "kilo ", "a=b;", "a + ", "creds a:b ", "rotate to A1#",
     "4 ", "key: |\n a", "code for the ", "password at a.b:c ", "card 4111 "],
)  # fmt: skip
def test_no_spoken_form_takes_long(piece: str) -> None:
    with cpu_limit(5):
        find_secrets(piece * (20_000 // len(piece)))


@pytest.mark.parametrize("piece", ["token:", "key=", 'api_key="', "password is ", "key-", "token\n"])
def test_words_that_announce_are_read_in_little_time_and_hide_nothing(piece: str) -> None:
    many = piece * (count(8_192, 32_768) // len(piece))
    with cpu_limit(2):
        assert not find_secrets(many)
    (found,) = find_secrets(text := f"{many}\ntoken: askOsdhBB7NnrwXPUKFK")
    assert text[found.start :] == "askOsdhBB7NnrwXPUKFK"


@pytest.mark.parametrize("value", ["askOsdhBB7NnrwXPUKFK", "70xbupPB11WGHHGxJojh", "wcazusn5POxNqqMwULPP"])
@pytest.mark.parametrize("carrier", ["TOKEN = '{}'", "$env:TOKEN = '{}'", "> Set-Item Env:TOKEN '{}'"])
def test_a_drawn_value_with_sayable_pieces_is_a_key(carrier: str, value: str) -> None:
    assert find_secrets(carrier.format(value))


@pytest.mark.parametrize("carrier", ["Set-Item Env:TOKEN '{}'", "TOKEN={}", "the api key is {}"])
def test_chance_makes_no_name_of_a_drawn_value(carrier: str) -> None:
    chance = random.Random(20)
    drawn = ["".join(chance.choices(string.ascii_letters + string.digits, k=20)) for _ in range(count(300, 3_000))]
    assert [value for value in drawn if not find_secrets(carrier.format(value))] == []


@pytest.mark.parametrize(
    "name", ["SESSION_TOKEN_LIFETIME", "refreshTokenStore", "vault-token-helper", "tokenProvider2"]
)
def test_names_are_no_keys(name: str) -> None:
    assert not find_secrets(f"token = {name}")


def test_a_word_that_chance_put_into_a_key_does_not_hide_it() -> None:
    cloudflare = "0-4Zhc24FTUj9jADX7" + "UwIwLWDorPXlj2a1CpqkBc"  # not a version
    assert find_secrets(f"Cloudflare API token: {cloudflare}")
    key = "SG" + ".wD2QjyorUYNXs9GGqFb-Nh.Ipua_wAXLnmiSel_IOSxhazAZYY5N8myOuruC-xp10g"
    assert find_secrets(f"# Setup\n\n{key},")
    assert not find_secrets("SG" + ".YOUR_KEY_HERE_PLEASE_0.your-sendgrid-key-goes-in-here-000")


@pytest.mark.parametrize("before", ["> ", "- ", "  * ", ""])
def test_a_line_of_passwords_is_found_in_a_quote_or_a_list(before: str) -> None:
    assert find_secrets(f"Notes.\n{before}db.corp.test:5432:app:app:NS6naOF_YuE0232\nEnd.")


@pytest.mark.parametrize("value", ["@qR38&Ony1dHqceytDbKPTF@n@p%Gz&3cW0&u*A*B", "%I2^CQMD#s&0F942bXVh0Aq9!8Y^jQMR"])
def test_a_salt_that_begins_like_a_lookup_is_found(value: str) -> None:
    assert find_secrets(f'define( "SECURE_AUTH_SALT", "{value}" );')
    assert not find_secrets("password = $DB_PASSWORD") and not find_secrets("token: %TOKEN%")


@pytest.mark.parametrize(
    ("carriers", "value"),
    [
        (("password", "Kennwort", "mot de passe", "smtp_pass", "пароль"), "hunter2"),
        (("api key", "client secret", "Schlüssel", "authToken"), "askOsdhBB7NnrwXPUKFK"),
        (("PIN", "door code", "Geheimzahl", "safe combination"), "4826"),
        (("login", "creds", "Zugang", "identifiants"), "ops:mkwq72"),
    ],
)
@pytest.mark.parametrize(
    "join", ["{}: {}", "{} = {}", "{} is {}", "{} for the NAS is {}", "{} (staging): {}", "{} -> {}", "{} - {}"]
)
def test_every_join_leads_from_every_kind_of_word_to_its_value(
    carriers: tuple[str, ...], value: str, join: str
) -> None:
    for carrier in carriers:
        found = find_secrets(text := join.format(carrier, value))
        assert any(text[one.start : one.end].endswith(value.rpartition(":")[2]) for one in found), text


def test_a_token_is_named_after_its_maker_whatever_its_characters_are() -> None:
    (found,) = find_secrets("gh" + "p_" + "abcdefghijklmnopqrstuvwxyz0123456789")
    assert found.kind == "a GitHub token"


@pytest.mark.parametrize("value", ["1Wmdja-XQEY2", "hunter2x", "Summer-2024"])
@pytest.mark.parametrize(
    "line", ["ldapadd --password {} -f users.ldif", "tool --db-password {} --host db", "x --pwd {}"]
)
def test_what_follows_an_option_for_a_password_is_one(line: str, value: str) -> None:
    (found,) = find_secrets(text := line.format(value))
    assert text[found.start : found.end] == value
    assert not find_secrets("Use --password to give it, or --password-file PATH.")
