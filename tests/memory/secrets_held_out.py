"""Secrets in many carriers, and harmless lines that look like them. Every value is invented and made at run time.

Drawn with a fixed seed, so the lines are the same each time and no scanner of source code meets a whole key.
"""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable

_LETTERS = string.ascii_letters + string.digits
_DRAW = random.Random()


def drawn(length: int, alphabet: str = _LETTERS) -> str:
    while True:
        value = "".join(_DRAW.choice(alphabet) for _ in range(length))
        if any(c.isdigit() for c in value) and any(c.isalpha() for c in value):
            return value


def hexadecimal(length: int) -> str:
    return drawn(length, "0123456789abcdef")


def encoded(size: int) -> str:
    return base64.b64encode(bytes(_DRAW.randrange(256) for _ in range(size))).decode()


def phrase(words: int) -> str:
    chosen = [
        "copper",
        "lantern",
        "orbit",
        "velvet",
        "harbour",
        "cactus",
        "mirror",
        "saddle",
        "ribbon",
        "falcon",
        "meadow",
        "anchor",
    ]
    return " ".join(_DRAW.sample(chosen, words))


def chosen_by_a_person() -> str:
    words = ["Swordfish", "Marmot", "Kestrel", "Thunder", "Pickle", "Walrus"]
    return _DRAW.choice(words) + str(_DRAW.randrange(10, 9_999)) + _DRAW.choice("!?#x_")


def _split(value: str) -> tuple[str, str]:
    return value[: len(value) // 2], value[len(value) // 2 :]


_SECRET: list[Callable[[], str]] = [
    # Split literals.
    lambda: 'key = "{}" + "{}"'.format(*_split(hexadecimal(32))),
    lambda: 'String token = "{}" +\n    "{}";'.format(*_split(drawn(40))),
    lambda: "$secret = '{}' . '{}';".format(*_split(drawn(36))),
    lambda: 'api_key: "{}" "{}"'.format(*_split(hexadecimal(40))),
    lambda: 'const SIGNING_KEY = ["{}", "{}"].join("");'.format(*_split(hexadecimal(48))),
    # Definitions.
    lambda: f"define('AUTH_KEY', '{drawn(48)}');",
    lambda: f'define( "SECURE_AUTH_SALT", "{drawn(60, _LETTERS + "!@#%^&*-_")}" );',
    lambda: f'#define WIFI_PASS "{chosen_by_a_person()}"',
    lambda: f'$env:TOKEN = "{drawn(28)}"',
    lambda: f"$Env:DB_PASSWORD='{chosen_by_a_person()}'",
    lambda: f"set API_TOKEN={drawn(32)}",
    lambda: f"export STRIPE_WEBHOOK_SECRET={drawn(32)}",
    lambda: f"setx SERVICE_PASSWORD {chosen_by_a_person()}",
    lambda: f'"client_secret": "Sw0rdfish9{drawn(10)}"',
    lambda: f'{{"clientSecret":"{drawn(24)}","tenant":"contoso"}}',
    lambda: f"client-secret: {drawn(30)}",
    lambda: f'<add key="AdminPassword" value="{chosen_by_a_person()}" />',
    lambda: f"<password>{chosen_by_a_person()}</password>",
    lambda: f"spring.datasource.password={chosen_by_a_person()}",
    lambda: f"SetEnv SECRET_KEY_BASE {hexadecimal(64)}",
    lambda: f'private const val MAPS_API_KEY = "{drawn(39)}"',
    lambda: f"--api-key={drawn(32)}",
    lambda: f"deploy --token {drawn(36)} --region eu",
    lambda: f"helm install x --set auth.rootPassword={chosen_by_a_person()}",
    lambda: f'ENV GH_TOKEN="{drawn(40)}"',
    lambda: f"ALTER USER bob WITH PASSWORD '{chosen_by_a_person()}';",
    lambda: f"IDENTIFIED BY '{chosen_by_a_person()}'",
    lambda: f"requirepass {drawn(24)}",
    lambda: f"machine files.internal login bob password {chosen_by_a_person()}",
    lambda: f'new Credentials("bob", "{chosen_by_a_person()}") // password',
    # Web addresses that are keys.
    lambda: f"https://discord.com/api/webhooks/{_DRAW.randrange(10**17, 10**18)}/{drawn(68, _LETTERS + '-_')}",
    lambda: f"https://discordapp.com/api/webhooks/{_DRAW.randrange(10**17, 10**18)}/{drawn(68)}",
    lambda: (
        "https://hooks.slack" + f".com/services/T{drawn(8, string.ascii_uppercase + string.digits)}"
        f"/B{drawn(10, string.ascii_uppercase + string.digits)}/{drawn(24)}"
    ),
    lambda: (
        f"https://contoso.webhook.office.com/webhookb2/{hexadecimal(8)}-0000-4000-8000-{hexadecimal(12)}@"
        f"{hexadecimal(8)}-1111-4111-8111-{hexadecimal(12)}/IncomingWebhook/{hexadecimal(32)}/{hexadecimal(8)}"
    ),
    lambda: f"https://api.telegram.org/bot{_DRAW.randrange(10**8, 10**10)}:AA{drawn(33)}/sendMessage",
    lambda: f"https://chat.googleapis.com/v1/spaces/AAAA/messages?key={drawn(39)}&token={drawn(43)}",
    lambda: f"https://maker.ifttt.com/trigger/x/with/key/{drawn(22)}",
    lambda: f"https://hooks.zapier.com/hooks/catch/{_DRAW.randrange(10**6, 10**7)}/{drawn(20)}/",
    # Prose.
    lambda: f"The encryption key {hexadecimal(64)} goes into the vault.",
    lambda: f"encryption key: {encoded(32)}",
    lambda: f"our disk passphrase is {phrase(4)}",
    lambda: f"The passphrase for the backup is '{phrase(5)}'.",
    lambda: f"Die Passphrase lautet {phrase(4)}.",
    lambda: f"The Wi-Fi key is {chosen_by_a_person()}",
    lambda: f"WLAN-Schlüssel: {chosen_by_a_person()}",
    lambda: f"wifi password of the office: {chosen_by_a_person()}",
    lambda: f"WIFI:T:WPA;S:Office;P:{chosen_by_a_person()};;",
    lambda: f'network={{ ssid="Office" psk="{chosen_by_a_person()}" }}',
    lambda: f"wpa_passphrase={chosen_by_a_person()}",
    lambda: f"the master password is {chosen_by_a_person()}, tell nobody",
    lambda: f"secret access key {drawn(40)}",
    lambda: "passphrase: correct horse " + phrase(2),
    lambda: f"the pass phrase we use is {phrase(4)}",
    lambda: f"wpa2 key: {chosen_by_a_person()}",
    lambda: f"Set-Item Env:TOKEN '{drawn(20)}'",
    lambda: 'String k = "{}".concat("{}");'.format(*_split(hexadecimal(32))),
    lambda: f'"clientSecret" : "Sw0rdfish{_DRAW.randrange(9)}Marlin"',
    lambda: f"https://open.feishu.cn/open-apis/bot/v2/hook/{_uuid()}",
    lambda: f"use the api key {drawn(32)} for staging",
    # Keys by their makers' marks, whatever follows.
    lambda: "gh" + "p_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    lambda: "gh" + "p_" + drawn(36),
    lambda: "github" + "_pat_" + drawn(22) + "_" + drawn(59),
    lambda: "squ" + "_" + hexadecimal(40),
    lambda: "sqp" + "_" + hexadecimal(40),
    lambda: "gl" + "pat-" + drawn(20),
    lambda: "np" + "m_" + drawn(36),
    lambda: "dop" + "_v1_" + hexadecimal(64),
    lambda: "shp" + "at_" + hexadecimal(32),
    lambda: "sk" + "_live_" + drawn(24),
    lambda: "AK" + "IA" + drawn(16, string.ascii_uppercase + "234567"),
    lambda: "AI" + "za" + drawn(35),
    lambda: "xo" + "xb-" + "123456789012-1234567890123-" + drawn(24),
    lambda: "hf" + "_" + drawn(34, string.ascii_letters + "12"),
    lambda: "SG" + "." + drawn(22) + "." + drawn(43),
    lambda: "lin" + "_api_" + drawn(40),
    lambda: "figd" + "_" + drawn(40),
    lambda: "glsa" + "_" + drawn(32) + "_" + hexadecimal(8),
    lambda: "AGE-SECRET-" + "KEY-1" + drawn(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
    lambda: f"PrivateKey = {encoded(32)}",
    lambda: f"PresharedKey = {encoded(32)}",
]


def _uuid() -> str:
    return f"{hexadecimal(8)}-{hexadecimal(4)}-4{hexadecimal(3)}-8{hexadecimal(3)}-{hexadecimal(12)}"


_HARMLESS: list[Callable[[], str]] = [
    lambda: f"PublicKey = {encoded(32)}",
    lambda: f"[Peer]\nPublicKey = {encoded(32)}\nAllowedIPs = 10.0.0.2/32",
    lambda: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{encoded(32)[:43]} bob@laptop",
    lambda: f"ssh-rsa AAAAB3NzaC1yc2E{encoded(90)} bob@laptop",
    lambda: f"age1{drawn(58, 'qpzry9x8gf2tvdw0s3jn54khce6mua7l')}",
    lambda: f"-----BEGIN CERTIFICATE-----\n{encoded(48)}\n{encoded(48)}\n-----END CERTIFICATE-----",
    lambda: f"-----BEGIN PUBLIC KEY-----\n{encoded(48)}\n-----END PUBLIC KEY-----",
    lambda: f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{encoded(48)}\n-----END PGP PUBLIC KEY BLOCK-----",
    lambda: f"commit {hexadecimal(40)}",
    lambda: f"Fixed in {hexadecimal(10)}, reverted in {hexadecimal(7)}.",
    lambda: f"git checkout {hexadecimal(40)} -- src/app.py",
    lambda: f"sha256:{hexadecimal(64)}",
    lambda: f"{hexadecimal(64)}  archive.tar.gz",
    lambda: f"md5sum is {hexadecimal(32)}",
    lambda: f"FROM python:3.12@sha256:{hexadecimal(64)}",
    lambda: f'"integrity": "sha512-{encoded(64)}"',
    lambda: f"The run {_uuid()} failed.",
    lambda: f"request_id={_uuid()}",
    lambda: f"session {_uuid()} took 12 s",
    lambda: f'ETag: "{hexadecimal(32)}"',
    lambda: f"fingerprint SHA256:{encoded(32)[:43]}",
    lambda: f"known_hosts: |1|{encoded(20)}|{encoded(20)} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{encoded(32)[:43]}",
    lambda: f'<img src="data:image/png;base64,iVBORw0KGgo{encoded(60)}">',
    lambda: "password = os.environ['DB_PASSWORD']",
    lambda: "TOKEN=${GITHUB_TOKEN}",
    lambda: "$env:TOKEN = $(Get-Secret token)",
    lambda: "define('AUTH_KEY', getenv('AUTH_KEY'));",
    lambda: "define('AUTH_KEY', 'put your unique phrase here');",
    lambda: '"client_secret": "<your client secret>"',
    lambda: '"client_secret": "${CLIENT_SECRET}"',
    lambda: "api_key: str = field(default='')",
    lambda: "The passphrase is stored in 1Password.",
    lambda: "The password is rotated every 90 days.",
    lambda: "The encryption key is kept in the vault under kms/prod.",
    lambda: "The Wi-Fi key is on the back of the router.",
    lambda: "Ask Ann for the wifi password.",
    lambda: "The key is to keep functions short.",
    lambda: "Use a passphrase with at least four words.",
    lambda: "The passphrase is asked for at the start of each session.",
    lambda: "https://discord.com/api/webhooks/<id>/<token>",
    lambda: "https://discord.com/channels/123456789012345678/123456789012345679",
    lambda: "https://hooks.slack" + ".com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    lambda: "https://api.telegram.org/bot<token>/getMe",
    lambda: "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx is how such a token looks",
    lambda: "squ_... is the prefix of a user token of SonarQube",
    lambda: "Tokens begin with `glpat-` and npm's with `npm_`.",
    lambda: "def get_api_key(name: str) -> str:",
    lambda: "const token = await fetchToken(clientId);",
    lambda: "see src/auth/token_store/refresh_token_rotation.py",
    lambda: "primary key (user_id, created_at)",
    lambda: "foreign_key: customers.customer_id",
    lambda: "public_key_path: /etc/ssh/ssh_host_ed25519_key.pub",
    lambda: "keyboard shortcut: Ctrl+Shift+P",
    lambda: "cache key: user:{id}:profile:v2",
    lambda: "sort_key=lambda item: item.name",
    lambda: f"build 2026.11.{_DRAW.randrange(1, 28)}+{hexadecimal(8)}",
    lambda: f"trace_id {hexadecimal(32)} span_id {hexadecimal(16)}",
    lambda: f"container {hexadecimal(12)} restarted",
    lambda: f"arn:aws:iam::123456789012:role/deploy-{hexadecimal(4)}",
    lambda: f"vpc-0{hexadecimal(16)} subnet-0{hexadecimal(16)}",
    lambda: f"order {_DRAW.randrange(10**9, 10**10)} shipped",
    lambda: f"ISBN 978-3-16-{_DRAW.randrange(100000, 999999)}-0",
    lambda: f"color: #{hexadecimal(6)};",
    lambda: f"tx 0x{hexadecimal(64)} was mined",
    lambda: f"chunk-{drawn(8)}.js  214 kB",
    lambda: "the secret of good soup is time",
    lambda: "Token limits: input 200000, output 8192",
    lambda: "secretName: web-tls",
    lambda: "password_hash_algorithm = argon2id",
    lambda: "AUTH_METHOD=oauth2",
    lambda: f'expected = "{hexadecimal(32)}" "{hexadecimal(32)}"  # sha256',
    lambda: f"wg set wg0 peer {encoded(32)} allowed-ips 10.0.0.2/32",
    lambda: f"The public key is {encoded(32)}",
    lambda: "The passphrase is checked by the agent at login.",
    lambda: "passphrase is optional when agents run",
    lambda: "the passphrase is derived from environment variables",
    lambda: "The network key is rotated every week",
    lambda: "['getUserName', 'setUserName', 'deleteUserName'].join(',')",
    lambda: 'auth("GET", "/api/users")',
    lambda: "https://example.com/docs/token/authentication-basics-for-everyone",
    lambda: "passwordPolicy: minLength=12, rotation=90d",
    lambda: "ssid=Office channel=11 security=WPA2-PSK",
    lambda: "psk: see the sticker on the router",
    lambda: f"site key {drawn(8)} of the map legend is on page {_DRAW.randrange(9)}",
    lambda: "auth: bearer tokens, see docs/auth.md",
]


def made(seed: int) -> tuple[list[str], list[str]]:
    """Two secrets and two harmless lines of each kind, drawn with this seed."""
    _DRAW.seed(seed)
    return [make() for make in _SECRET for _ in range(2)], [make() for make in _HARMLESS for _ in range(2)]


SECRETS, HARMLESS = made(20_260)
