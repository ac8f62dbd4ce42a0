"""Secrets as people speak of them, in five languages, and harmless talk about the same things.

Each line is a template; its value is invented and drawn with a fixed seed, so no whole key stands in the source.
`SECRETS` and `HARMLESS` were written before the rules of these classes, the `LATER_` ones after them.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable

from reverie.text.folding import word_set

_DRAW = random.Random(41_803)
_MIXED = string.ascii_letters + string.digits
_PLAIN = sorted(
    word_set(
        "copper lantern orbit velvet harbour cactus mirror pepper violin saddle meadow rocket walnut ribbon anchor"
    )
)
_SPOKEN = sorted(
    word_set("alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar papa")
)


def _drawn(length: int, alphabet: str) -> str:
    return "".join(_DRAW.choice(alphabet) for _ in range(length))


def _letters() -> str:
    """Letters of both cases without a digit, as a generator of passwords makes them."""
    return _drawn(3, string.ascii_lowercase) + _drawn(4, string.ascii_uppercase) + _drawn(4, string.ascii_lowercase)


def _numbers(count: int, form: str, between: str) -> str:
    return between.join(form.format(_DRAW.randrange(16, 256)) for _ in range(count))


def _card() -> str:
    """A number with a right check digit, as a payment card has it."""
    digits = [4, *(_DRAW.randrange(10) for _ in range(14))]
    total = sum(d if n % 2 else (2 * d - 9 if d > 4 else 2 * d) for n, d in enumerate(digits))
    text = "".join(map(str, [*digits, -total % 10]))
    return " ".join(text[at : at + 4] for at in range(0, 16, 4))


_MAKE: dict[str, Callable[[], str]] = {
    "{short}": lambda: _drawn(4, string.ascii_lowercase) + _drawn(2, string.digits),
    "{letters}": _letters,
    "{mixed}": lambda: _drawn(5, string.ascii_letters) + _drawn(2, string.digits) + _drawn(4, string.ascii_letters),
    "{signs}": lambda: f"{_drawn(5, string.ascii_letters)}{_drawn(2, string.digits)}#{_drawn(4, string.ascii_letters)}",
    "{pin}": lambda: _drawn(1, "2468") + _drawn(3, "13579"),
    "{words4}": lambda: " ".join(_DRAW.sample(_PLAIN, 4)),
    "{words8}": lambda: " ".join(_DRAW.sample(_PLAIN, 8)),
    "{words12}": lambda: " ".join(_DRAW.sample(_PLAIN, 12)),
    "{listed12}": lambda: ", ".join(_DRAW.sample(_PLAIN, 12)),
    "{hex}": lambda: _drawn(32, "0123456789abcdef"),
    "{hexes}": lambda: _numbers(16, "{:02x}", " "),
    "{0xes}": lambda: _numbers(16, "0x{:02x}", ", "),
    "{bytes}": lambda: _numbers(16, "{}", ", "),
    "{half}": lambda: _drawn(18, _MIXED) + "7kQ",
    "{card}": _card,
    "{spoken}": lambda: " ".join(_DRAW.choice([*_SPOKEN, "seven", "three", "nine"]) for _ in range(12)),
    "{again}": lambda: (_drawn(4, _MIXED) * 17)[:68],
    "{digits18}": lambda: _drawn(18, "123456789"),
}  # fmt: skip


def filled(template: str) -> str:
    for mark, make in _MAKE.items():
        while mark in template:
            template = template.replace(mark, make(), 1)
    return template


_SECRETS = r"""
The root password of the NAS is {words4}
Our admin password is now {words4}.
My laptop's password: {words4}
the vault password for staging stays {words4}
Das Passwort vom Router lautet {words4}
Le mot de passe du NAS est {words4}
La contraseña del servidor es {words4}
Passphrase of the backup disk = {words4}
Remember that the password for the shared mailbox is {words4}!
creds are admin:{short}
the creds: deploy:{short}
Creds for the box are pi:{short}
credentials are svc-build:{short}
DB creds = app:{short}
credentials for grafana: admin / {short}
Zugangsdaten: ops / {letters}
login: build / {letters}
Login is jenkins / {mixed}
login for the printer: admin / {short}
The login of the switch is root / {letters}
Identifiants : admin / {letters}
Acceso: root / {letters}
登录: admin / {letters}
账号 root 密码 {letters}
ssh pass for ops@10.1.2.3 is {letters}
the sudo pass on build-7 is {letters}
pass for the jump host is {letters}
wifi pass at the office is {letters}
The pw for ci@10.0.0.9 is {letters}
root pw on db-2: {letters}
Das Passwort für deploy@10.0.0.4 ist {letters}
Le mot de passe pour root@10.0.0.4 est {letters}
La contraseña de deploy@10.0.0.4 es {letters}
deploy@10.0.0.4 的密码是{letters}
服务器密码为 {letters}
AES key: {hexes}
the encryption key is {hexes}
Der Schlüssel lautet {hexes}
signing key = {0xes}
key = bytes([{bytes}])
the AES key is bytes([{bytes}])
const key = new Uint8Array([{bytes}])
byte[] secretKey = { {0xes} };
var hmacKey = []byte{{0xes}}
secret: [{bytes}]
La clave AES es {hexes}
La clé AES est {hexes}
密钥: {hexes}
Recovery words: {words12}
the seed phrase is {words12}
My wallet's backup words are {listed12}
mnemonic = "{words12}"
Recovery phrase for the ledger: {words8}
Wiederherstellungswörter: {words12}
Phrase de récupération : {words12}
Frase de recuperación: {words12}
助记词: {words12}
Write down the seed words {words12}
PIN of the alarm: {pin}
The PIN for the garage door is {pin}
alarm PIN = {pin}
Die PIN der Alarmanlage ist {pin}
Die PIN für das Handy lautet {pin}
Le code PIN de l'alarme est {pin}
El PIN de la alarma es {pin}
门禁密码是{pin}
SIM PIN is {pin}
The code for the front door is {pin}
TOKEN: >-\n  {half}\n  {half}
api_key: |\n  {half}\n  {half}
password: >\n  {signs}
Company card {card}, CVV 481, expires 04/29
Visa {card} exp 11/28
k1 = "{half}"; k2 = "{half}"; key = k1 + k2
const a = '{half}'\nconst b = '{half}'\nconst token = a + b
token = f"{a}{b}" where a = "{half}" and b = "{half}"
const token = `ghp_${''}{half}${''}{half}`
https://discord.com/api/webhooks/{digits18}/{again}
rotate to {signs} on the jump host
The key is {spoken}, spelled out
"""

_HARMLESS = r"""
the password is stored in Vault
password rotation happens monthly
PIN is optional
the login page is slow
creds are in 1Password
recovery words are explained in docs
The master password is never written down
The master password is the one thing we cannot reset
Our password is rotated by the platform team every quarter
The root password is only known to Marta and Jonas
the password is checked against a list of leaked ones
The password is at least twelve characters long
Passwords are hashed with argon2id before they are stored
My password manager is Bitwarden
the password for staging is in the team vault
password for the NAS is kept by the office manager
Das Passwort liegt im Tresor der Buchhaltung
Das Passwort wird alle drei Monate geändert
Das Passwort vom Router steht auf dem Gerät
Das Passwort ist im Schlüsselbund gespeichert
Le mot de passe est stocké dans le coffre
Le mot de passe doit contenir douze caractères
Le mot de passe du NAS est connu de Claire
La contraseña está guardada en el gestor del equipo
La contraseña del servidor es rotada cada mes
La contraseña debe tener doce caracteres
密码保存在保险库里
密码每个月更换一次
服务器密码由运维团队管理
creds are rotated weekly by a job
Creds for the box are with Jonas
credentials are read from the environment
the credentials: ask the platform team
credentials are injected by the sidecar at start
credentials for grafana: see the runbook / ask Ops
Zugangsdaten: bitte bei Frau Weber erfragen
Zugangsdaten sind im Wiki verlinkt / siehe Abschnitt Betrieb
login: OAuth / SAML
Login is handled by Keycloak / Okta
login for the printer: none / not needed
the login / logout flow is covered by tests
login: SSO / password fallback
The login service runs on auth-2:8443
Identifiants : voir le gestionnaire / demander à Paul
Acceso: VPN / oficina
登录: 单点登录 / 手机号
ssh pass-through is disabled on the jump host
the first pass for the parser is slow
pass for loop variables by reference
A second pass on build-7 is needed
the boarding pass for Berlin is in the app
The satellite pass for Friday is at noon
pass the config as an argument
We pass for now
the pw field for admins is hidden
AES key: 256 bit, rotated yearly
AES key sizes are 128, 192 and 256
the encryption key is kept in KMS
Der Schlüssel liegt beim Hausmeister
The key is to keep the queue short
signing key = rotated by the release job
La clave AES es de 256 bits
La clé AES est générée au démarrage
密钥: 由 KMS 管理
magic bytes are 89 50 4e 47 0d 0a 1a 0a 00 00 00 0d 49 48 44 52
The MAC address is 00 1b 44 11 3a b7
The first bytes of the dump: 7f 45 4c 46 02 01 01 00 00 00 00 00 00 00 00 00
shape is [64, 128, 256, 512, 1024, 2048]
primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53]
fan speeds: [40, 55, 60, 72, 88, 90, 95, 99, 101, 120, 140, 150, 160, 170, 180, 200]
UUID bytes 6b a7 b8 10 9d ad 11 d1 80 b4 00 c0 4f d4 30 c8
The palette is bytes([0, 0, 0, 255, 255, 255, 128, 128, 128, 64, 64, 64, 32, 32, 32, 16])
Recovery words are shown once and then never again by the app itself
The seed phrase is written on paper and kept in the safe at home
the seed for the random generator is fixed so that tests give the same result each time
Backup words from the wallet team explain how users should store them on steel plates
Seed data is loaded from fixtures before the first test starts and removed after the last
Recovery phrase: shown once, never stored
mnemonic codes are described in the wallet handbook
Wiederherstellungswörter werden einmal angezeigt und danach nicht mehr gespeichert
La phrase de récupération est affichée une seule fois puis elle est oubliée par le système
La frase de recuperación se muestra una sola vez y luego el sistema la olvida
助记词只显示一次
The PIN is four digits long
PIN of the alarm: ask Jonas
PIN entry locks after 3 tries
The PIN for the garage door is changed in 2027
Pin numpy to 1.26 in the lock file
pin the version: 2024 releases break
GPIO pin 17 drives the relay
Die PIN der Alarmanlage kennt nur der Hausmeister
Le code PIN de l'alarme est changé chaque année
El PIN de la alarma es opcional
error code for the front door service is 4031 in the log
The postal code is 10115
status code for timeouts is 5044 in our gateway
门禁密码每月更换
TOKEN: >-\n  read from the environment\n  at start
description: >-\n  The token is rotated\n  by a job every night
password: >\n  see the vault
summary: |\n  The build takes four minutes\n  on two cores
Order 4539 1488 0343 6468 is not a card
The card reader in hall 3 needs a new cable
phone +49 30 1234 5678 is the reception
tracking number 9400 1000 0000 0000 0000 00
a = "hello"; b = "world"; text = a + b
first = "checkout-service"; second = "-staging"; name = first + second
const url = `https://example.com/${path}`
key = prefix + ":" + user_id
cache_key = f"{tenant}:{name}"
const label = `build-${''}step`
https://discord.com/channels/{digits18}/{digits18}
https://discord.com/api/webhooks/<id>/<token>
rotate to landscape on the tablet
rotate to the new key on the jump host
rotate to us-east-2b on the jump host
rotate to node-17 on Friday
reCAPTCHA site key 6LC{half}AAAAA{half}
"jwk": {"kty": "RSA", "n": "{half}{half}{half}{half}", "e": "AQAB"}
The NATO alphabet starts with alpha bravo charlie delta echo
The key is spelled with two words in the docs
"""


def _lines(text: str) -> list[str]:
    return [filled(line.replace("\\n", "\n")) for line in text.strip().splitlines()]


SECRETS = _lines(_SECRETS)
HARMLESS = _lines(_HARMLESS)


_LATER_SECRETS = r"""
btw the keepass master pw is {words4}
You can unlock the archive; its password is {words4}.
Passwort fürs Archiv: {words4}
Mot de passe maître : {words4}
la contraseña maestra es {words4}
主密码是 {words4}
staging creds — qa:{short}
use the creds ops:{short} for the registry
credentials: username backup, password {letters}
Anmeldedaten für Grafana: admin / {letters}
Les identifiants du serveur sont root / {letters}
Las credenciales son deploy / {letters}
数据库账号: app / {letters}
login to the scanner with user scan and {mixed}
psql user app, pass {letters}
ftp password at 192.168.7.2 is {letters}
the password on web-3.prod.internal is {letters}
password for root on 10.2.0.1: {letters}
Das Kennwort auf dem Server 10.2.0.1 lautet {letters}
HMAC secret in bytes: {bytes}
unsigned char aes_key[16] = { {0xes} };
session key (hex): {hexes}
private static final byte[] KEY = new byte[] { {bytes} };
Schlüssel als Bytes: {bytes}
These are my 12 words: {words12}
wallet seed -> {words12}
Unsere Wiederherstellungsphrase ist {words12}
mes mots de récupération sont {words12}
钱包的助记词是 {words12}
The debit card's PIN is {pin}
Recovery words: abandon ability able about above absent absorb abstract absurd abuse access accident
Safe combination: {pin}
the lock on the server room opens with {pin}
Die Geheimzahl lautet {pin}
El código de la puerta es {pin}
client_secret: |-\n    {half}\n    {half}
Amex 3782 822463 10005? No: Mastercard {card}, cvc 402
part_a = '{half}'\npart_b = '{half}'\nAPI_KEY = part_a + part_b
A={half}\nB={half}\nexport TOKEN=$A$B
we changed it to {signs} yesterday
the token is spelled {spoken}
"""

_LATER_HARMLESS = r"""
btw the master pw is in KeePass
its password is printed on the label below the device
Passwort fürs Archiv: bitte Jonas fragen
The password is the same as last year
A password is required before every deployment
the password expires after ninety days without warning
password: ask whoever is on call
password resets go through the help desk
Mot de passe maître : demander au chef
la contraseña maestra es secreta y nadie la comparte
主密码不要写在这里
staging creds — ask QA
use the creds from the vault for the registry
credentials: username and password, both from the vault
credentials: OAuth / API key / none
Anmeldedaten für Grafana: siehe Tresor / Wiki
Les identifiants du serveur sont dans le coffre
Las credenciales son gestionadas por Ops / Seguridad
数据库账号: 由运维分配 / 每周更换
login to the scanner with your badge and wait
account: Acme / Enterprise plan
account: billing / EU2
Login: GitHub / GitLab
login is at auth.internal / port 8443
user / group: www-data / www-data
usuario: invitado / lector
ftp passwords are disabled at 192.168.7.2
the pass at web-3 is a second compiler pass
He has a pass for the museum in Lyon
We pass in the request id
Key bindings: 10 20 30 40 50 60 70 80 90 11 12 13
the histogram is 12 45 78 23 56 89 10 34 67 21 43 65 87 99 11 33
unsigned char header[8] = { 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a };
public key (hex): {hexes}
key fingerprint {hexes}
sensor values by key: 21, 22, 22, 23, 21, 20, 19, 22, 21, 22, 23, 24
The last 12 words of the summary repeat the title, please shorten them
These are the 12 words users confuse most often in the settings dialog
seed words must be entered in order, otherwise the wallet stays locked
The recovery phrase has twelve words and is never sent to the server
secret phrase detection is off by default
die Wiederherstellungsphrase hat zwölf Wörter und wird nie übertragen
mes mots de récupération sont dans le coffre de la banque
钱包的助记词只在本地生成
PIN length is 4 to 8 digits
Pin 4000 users to the old cluster
The PIN pad in room 2210 is broken
the code for the door sensor lives in src/door.py
the lock on table orders is held for 4031 ms
El código de la puerta está en el repositorio
The release code name for 2026 is Heron
zip code: 80331
client_secret: |-\n    rotated by the platform
Mastercard support is planned for 2027
invoice 4485 2217 0093 1182 was paid by bank transfer
part_a = 'src/reverie'\npart_b = '/memory'\nPATH = part_a + part_b
A=release\nB=candidate\nexport TAG=$A$B
we changed it to PostgreSQL 16.2 yesterday
switch to Python3.12 and reset to HEAD~2
kilo, mega and giga are spelled in lower case
"""

LATER_SECRETS = _lines(_LATER_SECRETS)
LATER_HARMLESS = _lines(_LATER_HARMLESS)
