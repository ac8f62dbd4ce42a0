"""Invented secrets and harmless look-alikes. Values are drawn when a test runs, so that no file here holds a key.

`cases(seed)` gives (text, holds a secret, what it is). Makers' marks are put together from pieces for the same reason.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Iterator
from urllib.parse import quote

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"
B64 = ALNUM + "+/"
BASE32 = string.ascii_uppercase + "234567"
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits

Case = tuple[str, bool, str]


class Draw:
    """Random values of the shapes that makers use."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)

    def of(self, alphabet: str, size: int) -> str:
        while True:
            value = "".join(self.r.choice(alphabet) for _ in range(size))
            # A draw without a digit, or of one case only, is no secret of that shape.
            if size < 8 or alphabet in (HEX, string.digits) or any(c.isdigit() for c in value):
                return value

    def alnum(self, size: int) -> str:
        return self.of(ALNUM, size)

    def hex(self, size: int) -> str:
        return self.of(HEX, size)

    def safe(self, size: int) -> str:
        value = self.of(URLSAFE, size)
        return value if value[0].isalnum() and value[-1].isalnum() else self.safe(size)

    def b64(self, size: int) -> str:
        return self.of(B64, size)

    def digits(self, size: int) -> str:
        return self.r.choice("123456789") + self.of(string.digits, size - 1)

    def upper(self, size: int) -> str:
        return self.of(UPPER, size)

    def password(self, size: int = 0) -> str:
        """Drawn by a password manager."""
        size = size or self.r.randint(10, 18)
        body = self.of(ALNUM, size - 2)
        return f"{body[: size // 2]}{self.r.choice('!.-_#')}{body[size // 2 :]}{self.r.choice(string.digits)}"

    def chosen(self) -> str:
        """Chosen by a person: words, digits, a sign."""
        first = self.r.choice(["copper", "Winter", "tiger", "Marble", "orchid", "Falcon", "pebble", "Lantern"])
        second = self.r.choice(["Moon", "river", "Stone", "Cloud", "maple", "Echo"])
        joint, sign = self.r.choice(["", "-", "_"]), self.r.choice(["!", "", "?", "#"])
        return f"{first}{joint}{second}{self.r.randint(10, 9999)}{sign}"

    def wrapped(self, size: int) -> str:
        body = self.b64(size)
        return "\n".join(body[at : at + 64] for at in range(0, len(body), 64))


def m(*pieces: str) -> str:
    """A maker's mark from its pieces."""
    return "".join(pieces)


def frame(kind: str, body: str) -> str:
    dashes = "-" * 5
    return f"{dashes}BEGIN {kind}{dashes}\n{body}\n{dashes}END {kind}{dashes}"


TOKENS: dict[str, Callable[[Draw], str]] = {
    "Anthropic key": lambda d: m("sk", "-ant", "-api03-") + d.safe(93) + "AA",
    "Anthropic admin key": lambda d: m("sk", "-ant", "-admin01-") + d.safe(80),
    "OpenAI project key": lambda d: m("sk", "-proj", "-") + d.safe(74),
    "OpenAI service key": lambda d: m("sk", "-svcacct", "-") + d.safe(60),
    "OpenAI old key": lambda d: m("sk", "-") + d.alnum(20) + "T3Blbk" + "FJ" + d.alnum(20),
    "DeepSeek key": lambda d: m("sk", "-") + d.hex(32),
    "OpenRouter key": lambda d: m("sk", "-or", "-v1-") + d.hex(64),
    "Groq key": lambda d: m("gs", "k_") + d.alnum(52),
    "xAI key": lambda d: m("xa", "i-") + d.alnum(80),
    "Replicate token": lambda d: m("r", "8_") + d.alnum(37),
    "Hugging Face token": lambda d: m("h", "f_") + d.alnum(34),
    "AWS key id": lambda d: m("AK", "IA") + d.of(BASE32, 16),
    "AWS session key id": lambda d: m("AS", "IA") + d.of(BASE32, 16),
    "Google API key": lambda d: m("AI", "za") + d.safe(35),
    "Google access token": lambda d: m("ya", "29.") + d.safe(120),
    "Google OAuth secret": lambda d: m("GOC", "SPX-") + d.safe(28),
    "GitHub classic token": lambda d: m("gh", "p_") + d.alnum(36),
    "GitHub app token": lambda d: m("gh", "s_") + d.alnum(36),
    "GitHub refresh token": lambda d: m("gh", "r_") + d.alnum(76),
    "GitHub fine-grained": lambda d: m("github", "_pat_") + d.alnum(22) + "_" + d.alnum(59),
    "GitLab token": lambda d: m("gl", "pat-") + d.safe(20),
    "GitLab runner token": lambda d: m("GR13", "48941") + d.safe(20),
    "GitLab deploy token": lambda d: m("gl", "dt-") + d.safe(20),
    "Slack bot token": lambda d: m("xo", "xb-") + f"{d.digits(12)}-{d.digits(13)}-{d.alnum(24)}",
    "Slack user token": lambda d: m("xo", "xp-") + f"{d.digits(12)}-{d.digits(12)}-{d.hex(32)}",
    "Slack app token": lambda d: m("xa", "pp-") + f"1-A{d.upper(10)}-{d.digits(13)}-{d.hex(64)}",
    "Stripe live key": lambda d: m("sk", "_live_") + d.alnum(24),
    "Stripe long key": lambda d: m("sk", "_live_") + d.alnum(99),
    "Stripe restricted key": lambda d: m("rk", "_live_") + d.alnum(24),
    "webhook secret": lambda d: m("wh", "sec_") + d.alnum(32),
    "Twilio key": lambda d: m("S", "K") + d.hex(32),
    "SendGrid key": lambda d: m("S", "G.") + d.safe(22) + "." + d.safe(43),
    "Mailchimp key": lambda d: d.hex(32) + "-us" + str(d.r.randint(1, 20)),
    "Brevo key": lambda d: m("xkey", "sib-") + d.hex(64) + "-" + d.alnum(16),
    "Notion token": lambda d: m("nt", "n_") + d.alnum(46),
    "Linear key": lambda d: m("lin", "_api_") + d.alnum(40),
    "Airtable token": lambda d: m("p", "at") + d.alnum(14) + "." + d.hex(64),
    "Figma token": lambda d: m("fig", "d_") + d.safe(40),
    "Atlassian token": lambda d: m("AT", "ATT3") + d.safe(60) + "=" + d.upper(8),
    "Shopify token": lambda d: m("shp", "at_") + d.hex(32),
    "Square token": lambda d: m("sq0", "atp-") + d.safe(22),
    "Telegram bot token": lambda d: d.digits(10) + ":" + m("A", "A") + d.safe(33),
    "Discord bot token": lambda d: m("M", "T") + d.alnum(24) + "." + d.safe(6) + "." + d.safe(38),
    "DigitalOcean token": lambda d: m("dop", "_v1_") + d.hex(64),
    "Netlify token": lambda d: m("nf", "p_") + d.alnum(36),
    "Supabase key": lambda d: m("sb", "p_") + d.hex(40),
    "PlanetScale token": lambda d: m("pscale", "_tkn_") + d.safe(43),
    "Databricks token": lambda d: m("da", "pi") + d.hex(32),
    "Doppler token": lambda d: m("dp", ".pt.") + d.alnum(43),
    "Vault token": lambda d: m("hv", "s.") + d.safe(90),
    "Vault batch token": lambda d: m("hv", "b.") + d.safe(120),
    "Pulumi token": lambda d: m("pu", "l-") + d.hex(40),
    "Grafana token": lambda d: m("gl", "sa_") + d.alnum(32) + "_" + d.hex(8),
    "New Relic key": lambda d: m("NR", "AK-") + d.upper(27),
    "Sentry token": lambda d: m("snt", "rys_") + d.b64(60),
    "npm token": lambda d: m("np", "m_") + d.alnum(36),
    "PyPI token": lambda d: m("py", "pi-") + "AgEIcHlwaS5vcmc" + d.safe(90),
    "RubyGems key": lambda d: m("ruby", "gems_") + d.hex(48),
    "Docker token": lambda d: m("dckr", "_pat_") + d.safe(27),
    "Tailscale key": lambda d: m("ts", "key-auth-") + d.alnum(14) + "-" + d.alnum(32),
    "age key": lambda d: m("AGE-", "SECRET-", "KEY-1") + d.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "1Password secret key": lambda d: m("A", "3-") + "-".join(d.upper(n) for n in (6, 6, 5, 5, 5, 5)),
    "Azure client secret": lambda d: d.alnum(3) + m("8", "Q~") + d.safe(34),
    "Postman key": lambda d: m("PM", "AK-") + d.hex(24) + "-" + d.hex(34),
    "a maker unknown to us": lambda d: m("zq", "live_") + d.alnum(32),
}


def _jwt(d: Draw) -> str:
    parts = [{"alg": "RS256", "typ": "JWT", "kid": d.hex(8)}, {"sub": d.alnum(8), "exp": int(d.digits(10))}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, d.safe(43)])


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORMS: dict[str, Callable[[Draw], str]] = {
    "RSA key": lambda d: frame(m("RSA PRI", "VATE KEY"), d.wrapped(820)),
    "key without algorithm": lambda d: frame(m("PRI", "VATE KEY"), d.wrapped(600)),
    "encrypted key": lambda d: frame(m("ENCRYPTED PRI", "VATE KEY"), d.wrapped(600)),
    "OpenSSH key in a note": lambda d: "deploy key for web1:\n" + frame(m("OPENSSH PRI", "VATE KEY"), d.wrapped(400)),
    "PGP key": lambda d: frame(m("PGP PRI", "VATE KEY BLOCK"), "\n" + d.wrapped(500) + "\n=abcd"),
    "key on one line": lambda d: json.dumps({"private_key": frame(m("PRI", "VATE KEY"), d.wrapped(500)) + "\n"}),
    "key cut off": lambda d: frame(m("RSA PRI", "VATE KEY"), d.wrapped(300)).rpartition("\n")[0],
    "key without its frame": lambda d: "key material: " + m("MIIE", "pAIBAAKC", "AQEA") + d.b64(300),
    "JWT": lambda d: f"use this for the test tenant: {_jwt(d)}",
    "JWT in a header": lambda d: f"Authorization: Bearer {_jwt(d)}",
    "opaque bearer": lambda d: f'curl -H "Authorization: Bearer {d.safe(40)}" https://api.corp.test/v2/me',
    "token header": lambda d: f"Authorization: token {d.hex(40)}",
    "API key header": lambda d: f"X-Api-Key: {d.alnum(32)}",
    "basic header": lambda d: f"Authorization: Basic {_b64('svc:' + d.password())}",
    "cookie": lambda d: f"Cookie: theme=dark; session={d.hex(40)}",
    "set-cookie": lambda d: f"Set-Cookie: sid={d.safe(43)}; HttpOnly; Secure",
    "Postgres address": lambda d: f"postgresql://app:{d.alnum(16)}@db.corp.test:5432/app",
    "Postgres address, chosen": lambda d: f"dsn: postgres://reader:{quote(d.chosen(), safe='')}@10.0.4.12/metrics",
    "AMQP address": lambda d: f"amqp://worker:{d.password()}@mq.corp.test:5672/%2f",
    "Redis address": lambda d: f"REDIS_URL=rediss://default:{d.alnum(32)}@cache.corp.test:6380",
    "MongoDB address": lambda d: f"mongodb://etl:{d.alnum(18)}@m1.corp.test,m2.corp.test/prod?replicaSet=rs0",
    "SMTP address": lambda d: f"smtp://noreply%40corp.test:{d.alnum(14)}@smtp.corp.test:587",
    "address with a basic login": lambda d: f"https://ci:{d.password()}@nexus.corp.test/repository/npm/",
    "clone address with a token": lambda d: f"https://x-access-token:{m('gh', 's_')}{d.alnum(36)}@github.com/org/repo",
    "clone address, token alone": lambda d: f"git remote add o https://{d.hex(40)}@github.com/org/repo.git",
    "SQLAlchemy address": lambda d: f"mysql+pymysql://root:{d.chosen()}@mysql.corp.test/shop".replace("#", "1"),
    "JDBC address": lambda d: f"jdbc:sqlserver://sql.corp.test;user=sa;password={d.password()};encrypt=true",
    "ADO connection string": lambda d: f"Server=tcp:sql.corp.test;Database=app;User Id=app;Password={d.password()};",
    "ODBC connection string": lambda d: f"Driver=ODBC 18;Server=x;Uid=app;Pwd={d.password()};",
    "Azure storage": lambda d: f"AccountName=blobs;AccountKey={d.b64(86)}==;EndpointSuffix=core.windows.net",
    "Azure SAS": lambda d: f"https://b.blob.core.windows.net/f.csv?sv=2023-11-03&sp=r&sig={quote(d.b64(43), safe='')}",
    "service bus": lambda d: f"Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey={d.b64(43)}=",
    "presigned address": lambda d: f"https://b.s3.amazonaws.com/k?X-Amz-Expires=600&X-Amz-Signature={d.hex(64)}",
    "token in an address": lambda d: f"https://files.corp.test/export?api_key={d.alnum(32)}&format=csv",
    "SoftLayer address": lambda d: f"https://api.softlayer.com/soap/v3.1/{d.hex(64)}",
    "Slack webhook": lambda d: f"https://hooks.slack.com/services/T{d.upper(10)}/B{d.upper(10)}/{d.alnum(24)}",
    "Discord webhook": lambda d: f"https://discord.com/api/webhooks/{d.digits(18)}/{d.safe(68)}",
    "Teams webhook": lambda d: f"https://corp.webhook.office.com/webhookb2/{d.hex(32)}/IncomingWebhook/{d.hex(32)}/x",
    "env password": lambda d: f"export DB_PASSWORD={d.password()}",
    "env password, quoted": lambda d: f"SMTP_PASS='{d.password()}'",
    "env password in a command": lambda d: f"PGPASSWORD={d.alnum(12)} psql -h db.corp.test app",
    "env token, hex": lambda d: f"APP_SIGNING_KEY={d.hex(64)}",
    "env token, alnum": lambda d: f"PAYMENTS_TOKEN={d.alnum(40)}",
    "AWS secret": lambda d: f"aws_secret_access_key = {d.b64(40)}",
    "AWS secret, camel": lambda d: f'"SecretAccessKey": "{d.b64(40)}"',
    "AWS pair in prose": lambda d: f"rotate {m('AK', 'IA')}{d.of(BASE32, 16)} / {d.b64(40)} on Monday",
    "JSON secret": lambda d: json.dumps({"clientId": "web", "clientSecret": d.safe(40)}),
    "JSON password": lambda d: json.dumps({"user": "etl", "password": d.chosen()}),
    "YAML password": lambda d: f"database:\n  user: app\n  password: {d.password()}\n",
    "YAML password, next line": lambda d: f"password:\n  {d.password()}\n",
    "TOML token": lambda d: f'[registry]\ntoken = "{d.alnum(32)}"\n',
    "INI password": lambda d: f"[client]\nuser=root\npassword={d.chosen()}\n",
    "properties": lambda d: f"spring.datasource.password={d.password()}",
    "Python literal": lambda d: f'client = Client(api_key="{d.alnum(32)}")',
    "Python weak literal": lambda d: 'password = "hunter2"',
    "Go literal": lambda d: f'const jwtSecret = "{d.alnum(24)}"',
    "Ruby hash": lambda d: f':secret_key_base => "{d.hex(128)}"',
    "PHP define": lambda d: f"define('DB_PASSWORD', '{d.password()}');",
    "XML": lambda d: f"<server><id>nexus</id><password>{d.password()}</password></server>",
    "Kubernetes env": lambda d: f"- name: DB_PASSWORD\n  value: {d.password()}\n",
    "Kubernetes secret": lambda d: f"kind: Secret\ndata:\n  password: {_b64(d.password())}\n",
    "Dockerfile": lambda d: f"ENV API_TOKEN {d.alnum(36)}",
    "npmrc": lambda d: f"//npm.corp.test/:_authToken={d.alnum(36)}",
    "npmrc auth": lambda d: f"_auth={_b64('ci:' + d.alnum(20))}",
    "netrc": lambda d: f"machine git.corp.test login ci password {d.alnum(16)}",
    "pgpass": lambda d: f"db.corp.test:5432:app:app:{d.password()}",
    "curl -u": lambda d: f"curl -u ops:{d.password()} https://jenkins.corp.test/api/json",
    "mysql -p": lambda d: f"mysql -h db.corp.test -u root -p{d.password()} shop",
    "sshpass": lambda d: f"sshpass -p '{d.password()}' ssh ops@web1",
    "docker login": lambda d: f"docker login -u ci -p {d.password()} registry.corp.test",
    "--password": lambda d: f"ldapadd --password {d.password()} -f users.ldif",
    "--token=": lambda d: f"vault login --token={d.alnum(26)}",
    "SQL user": lambda d: f"CREATE USER app WITH PASSWORD '{d.password()}';",
    "SQL identified by": lambda d: f"ALTER USER 'app'@'%' IDENTIFIED BY '{d.password()}';",
    "Redis config": lambda d: f"requirepass {d.alnum(20)}",
    "WireGuard": lambda d: f"[Interface]\nPrivateKey = {d.b64(43)}=\nAddress = 10.8.0.2/32",
    "wifi": lambda d: f"office wifi: ssid Corp-Guest, psk {d.password()}",
    "bcrypt hash": lambda d: f"admin row: $2b$12${d.of(ALNUM + './', 53)}",
    "argon2 hash": lambda d: f"hash is $argon2id$v=19$m=65536,t=3,p=4${d.b64(22)}${d.b64(43)}",
    "shadow line": lambda d: f"root:$6${d.alnum(8)}${d.of(ALNUM + './', 86)}:19700:0:99999:7:::",
    "prose is": lambda d: f"The staging admin password is {d.password()}, ask Lena before changing it.",
    "prose is, chosen": lambda d: f"User's NAS password is {d.chosen()}",
    "prose for": lambda d: f"password for the demo tenant: {d.chosen()}",
    "prose far": lambda d: f"remember the grafana password so I need not type it every time: {d.password()}",
    "prose before": lambda d: f"use {d.password()} as the password on staging",
    "prose pw": lambda d: f"jenkins login: ops, pw: {d.chosen()}",
    "prose pair": lambda d: f"Looker board 'GPU burn' (viewer / {d.chosen().strip('!?#').capitalize()})",
    "prose pair 2": lambda d: f"log in as admin / {d.password()} on the box",
    "prose credentials": lambda d: f"credentials: admin:{d.password()}",
    "bold label": lambda d: f"**Password:** {d.chosen()}",
    "table": lambda d: f"| host | user | password |\n| db1 | app | {d.password()} |",
    "backticks": lambda d: f"The API token is `{d.alnum(40)}`.",
    "hex key in prose": lambda d: f"our Datadog api key is {d.hex(32)} (eu site)",
    "UUID as a key": lambda d: f"HEROKU_API_KEY={d.hex(8)}-{d.hex(4)}-4{d.hex(3)}-a{d.hex(3)}-{d.hex(12)}",
    "German": lambda d: f"Das Passwort für den Testserver lautet {d.password()}",
    "German label": lambda d: f"Kennwort: {d.chosen()}",
    "French": lambda d: f"Le mot de passe du wifi est {d.password()}",
    "Spanish": lambda d: f"La contraseña de staging es {d.password()}",
    "Portuguese": lambda d: f"senha do banco: {d.chosen()}",
    "Italian": lambda d: f"password del database: {d.chosen()}",
    "Dutch": lambda d: f"wachtwoord is {d.password()}",
    "Polish": lambda d: f"hasło do bazy: {d.password()}",
    "Russian": lambda d: f"пароль от стенда: {d.password()}",
    "Turkish": lambda d: f"şifre: {d.password()}",
    "Chinese": lambda d: f"测试环境数据库密码是{d.password()}",
    "Chinese label": lambda d: f"密码：{d.chosen()}",
    "Japanese": lambda d: f"検証環境のパスワードは{d.password()}です",
    "Korean": lambda d: f"스테이징 비밀번호: {d.password()}",
    "PIN": lambda d: f"The server room door code is {d.digits(6)}",
    "recovery phrase": lambda d: "seed phrase: " + " ".join(d.r.choice(_WORDS) for _ in range(12)),
    "backup codes": lambda d: "GitHub backup codes: " + " ".join(f"{d.hex(4)}9-{d.hex(5)}" for _ in range(4)),
    "TOTP seed": lambda d: f"otpauth://totp/Corp:ops?secret={d.of('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 32)}&issuer=Corp",
    "standing alone": lambda d: f"for the upload use {d.alnum(44)}",
    "base64 of an assignment": lambda d: _b64(f"DB_PASSWORD={d.password()}"),
    "base64 of a token": lambda d: "decoded at start-up: " + _b64(m("gh", "p_") + d.alnum(36)),
    "hex of a token": lambda d: (m("gl", "pat-") + d.safe(20)).encode().hex(),
    "percent-encoded": lambda d: f"https://x.corp.test/cb?state={quote('password=' + d.password(), safe='')}",
    "zero width": lambda d: "\u200b".join(m("gh", "p_") + d.alnum(36)),
    "soft hyphen": lambda d: m("sk", "-ant", "-api03-") + "\u00ad".join([d.safe(40), d.safe(40)]),
    "wide letters": lambda d: "".join(chr(ord(c) + 0xFEE0) for c in m("gh", "p_") + d.alnum(36)),
    "Markdown escapes": lambda d: (m("gh", "p_") + d.alnum(36)).replace("_", "\\_"),
    "split over lines": lambda d: f"token: {m('gh', 'p_')}{d.alnum(12)}\n  {d.alnum(24)}",
    "split behind its mark": lambda d: f"{m('sk', '-ant', '-api03-')}\n{d.safe(60)}",
    "string pieces": lambda d: f'key = "{m("sk", "-ant-")}" + "api03-{d.safe(30)}" + "{d.safe(30)}"',
    "line that goes on": lambda d: f"export TOKEN={m('gl', 'pat-')}{d.safe(8)}\\\n{d.safe(12)}",
    "unicode escapes": lambda d: "".join(f"\\u{ord(c):04x}" for c in m("gh", "p_") + d.alnum(36)),
    "GCP service account": lambda d: json.dumps(
        {"type": "service_account", "private_key": frame(m("PRI", "VATE KEY"), d.wrapped(800))}, indent=2
    ),
}  # fmt: skip

_WORDS = ("abandon", "travel", "camera", "island", "market", "pepper", "ribbon", "silver", "tunnel", "velvet", "window")

CARRIERS = (
    "{}",
    "export KEY={}",
    "The CI token is {} and expires in May.",
    "api_key: {}",
    '{{"token": "{}", "region": "eu"}}',
    "- uses `{}` for uploads",
    "curl -H 'X-Key: {}' https://api.corp.test",
    "(old one was {})",
    "{},",
    "see {}; rotate it",
    "密钥：{}",
    "token={}&x=1",
)


def _benign(d: Draw) -> dict[str, str]:
    sha, short = d.hex(40), d.hex(7)
    uuid = f"{d.hex(8)}-{d.hex(4)}-4{d.hex(3)}-a{d.hex(3)}-{d.hex(12)}"
    return {
        "git commit": f"Fixed in commit {sha}, follow-up in {short}",
        "git range": f"git diff {short}..{d.hex(7)}",
        "commit in an address": f"https://github.com/org/repo/commit/{sha}",
        "blob address": f"https://github.com/org/repo/blob/{sha}/src/auth/token.py#L40-L52",
        "sha256": f"sha256 of release.tar.gz: {d.hex(64)}",
        "md5": f"md5sum = {d.hex(32)}",
        "image digest": f"ghcr.io/org/app@sha256:{d.hex(64)}",
        "npm integrity": f'"integrity": "sha512-{d.b64(86)}=="',
        "go sum": f"github.com/x/y v1.2.3 h1:{d.b64(43)}=",
        "nix hash": f'hash = "sha256-{d.b64(43)}=";',
        "cargo checksum": f'checksum = "{d.hex(64)}"',
        "etag": f'ETag: "{d.hex(32)}"',
        "uuid": f"request id {uuid} failed",
        "uuid assignment": f"tenant_id: {uuid}",
        "trace id": f"trace {d.hex(32)} span {d.hex(16)}",
        "idempotency key": f"Idempotency-Key: {uuid}",
        "partition key": "partition key: tenant_id#2024-05",
        "primary key": "primary key is (order_id, line_no)",
        "public ssh key": f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{d.b64(43)} me@laptop",
        "public rsa key": f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ{d.b64(340)}== ops@web1",
        "host key fingerprint": f"SHA256:{d.b64(43)} web1 (ED25519)",
        "certificate": frame("CERTIFICATE", d.wrapped(900)),
        "public key": frame("PUBLIC KEY", d.wrapped(390)),
        "PGP public key": frame("PGP PUBLIC KEY BLOCK", "\n" + d.wrapped(400)),
        "icon": f"logo: data:image/png;base64,iVBORw0KGgo{d.b64(300)}=",
        "publishable key": f"pk_live_{d.alnum(24)}",
        "docs example key": "AKIAIOSFODNN7" + "EXAMPLE is the one from the manual",
        "placeholder": "OPENAI_API_KEY=your-api-key-here",
        "placeholder 2": "export TOKEN=<paste your token>",
        "placeholder 3": "Replace ghp_" + "x" * 36 + " with a real one",
        "placeholder 4": "password: changeme",
        "placeholder 5": "sk-ant-... goes into the keychain",
        "placeholder 6": "api_key = 'YOUR_API_KEY'",
        "placeholder 7": "Bearer {token}",
        "placeholder 8": "token: $(pass show ci/token)",
        "placeholder 9": "password={{ vault_db_password }}",
        "placeholder 10": "DB_PASSWORD=%DB_PASSWORD%",
        "placeholder 11": "SECRET_KEY=changeme-in-production",
        "masked": "password: ********",
        "masked tail": "key ends in …f3a9",
        "redacted": "Authorization: Bearer [REDACTED]",
        "env reference": "password: ${POSTGRES_PASSWORD}",
        "env lookup": 'token = os.getenv("GITHUB_TOKEN")',
        "node lookup": "const secret = process.env.JWT_SECRET",
        "settings lookup": "api_key=settings.OPENAI_API_KEY",
        "actions secret": "token: ${{ secrets.GITHUB_TOKEN }}",
        "vault reference": "password: vault:secret/data/app#password",
        "1Password reference": "op://Platform/staging-db/password",
        "secret manager": "projects/p/secrets/db-password/versions/latest",
        "secret's name": "secretKeyRef: {name: app-db-credentials, key: password}",
        "tls secret name": "secretName: wildcard-corp-test-tls",
        "arn": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf",
        "where it is kept": "The staging password is in 1Password, vault Platform, item 'staging db'",
        "where it is kept 2": "API keys live in Bitwarden; ask Marta for access",
        "where it is kept 3": "Zugangsdaten liegen im KeePass, Ordner Infrastruktur",
        "where it is kept 4": "密码放在 1Password 里,不要写进文档",
        "where it is kept 5": "パスワードは 1Password に保管されています",
        "rule about secrets": "Never commit tokens; use the secret store and rotate every 90 days",
        "password prose": "The password reset flow lives in src/auth/reset.ts",
        "password prose 2": "password hashing uses Argon2id with 64 MiB",
        "password prose 3": "Passwords must be at least 12 characters with one digit",
        "password prose 4": "password is required on the login form",
        "password prose 5": "Users may log in with password or passkey since v2.4.1",
        "password prose 6": "user wants a password manager integration by 2026-04-15",
        "password field": "interface Login { email: string; password: string; otp?: string }",
        "password type": "password: str = Field(min_length=12)",
        "password policy": "password_min_length = 14",
        "password file": "password_file = /run/secrets/db_password",
        "token prose": "Tokens expire after 15 minutes; refresh tokens after 30 days",
        "token count": "max_tokens = 8192, budget 200000 tokens a session",
        "token prose 2": "the tokenizer splits at 512 tokens per chunk",
        "token prose 3": "JWT: header.payload.signature, RS256, validated by the gateway",
        "token identifier": "getAccessTokenFromRefreshTokenOrThrow is called twice in auth_provider_v2.ts",
        "csrf": "the CSRF token header is X-CSRF-Token",
        "key prose": "The key insight: cache by tenant, not by user",
        "keyboard": "key: Ctrl+Shift+P opens the palette",
        "config key": "config key feature.checkout_v2.enabled = true",
        "cache key": "cache key: user:{id}:profile:v3",
        "i18n key": "translation key: checkout.summary.total_label",
        "secret boolean": "secret: false",
        "empty": "API_KEY=",
        "none": "token: None",
        "url": "https://grafana.corp.test/d/000000012/home?orgId=1&from=now-6h",
        "url with a port": "http://localhost:8080/@scope/pkg and ssh://git@git.corp.test:2222/org/repo.git",
        "url with a page token": "https://api.corp.test/v1/items?page_token=2&page_size=100",
        "doc address": f"https://docs.google.com/document/d/{d.alnum(44)}/edit",
        "figma address": f"https://www.figma.com/file/{d.alnum(22)}/Checkout-v2?node-id=12%3A345",
        "notion address": f"https://www.notion.so/corp/Runbook-{d.hex(32)}",
        "loom address": f"https://www.loom.com/share/{d.hex(32)}",
        "linear address": "https://linear.app/corp/issue/PAY-1423/idempotency-keys",
        "database address": "postgres://localhost:5432/app_test",
        "database template": "postgres://USER:PASSWORD@HOST:5432/DB",
        "local default": "postgres://postgres:postgres@localhost:5432/test",
        "ssh remote": "git@gitlab.com:org/group/repo.git",
        "mail": "ask ops@corp.test or marta.nowak@corp.test",
        "version": f"reverie 1.14.0-rc.2+build.20260301.{d.hex(7)}",
        "versions": "postgres 16.4, redis 7.2.5, node v22.11.0, Kotlin 2.0.21",
        "dates": "freeze from 2026-04-30T18:00:00Z to 2026-05-05",
        "hex colour": "brand colours #1A2B3C and #FFB703, accent rgba(26,43,60,.8)",
        "mac and ip": "sensor 00:1B:44:11:3A:B7 at 10.20.0.17, ipv6 fe80::1ff:fe23:4567:890a",
        "phone": "Support hotline +49 30 12345678",
        "ticket": "see INC-88, PAY-1423 and RFC 7519",
        "bucket": "dumps go to s3://corp-backups-eu/pg/2026/04/30/base.tar.zst",
        "path": "handlers live in server/ws/handlers/SessionTokenRefreshHandler.ts",
        "java class": "com.corp.payments.auth.OAuth2ClientCredentialsTokenProvider2",
        "shell": "kubectl -n prod rollout restart deploy/checkout-api-7d9f8b6c5-x2k4q",
        "pod": "pod checkout-api-7d9f8b6c5-x2k4q restarted",
        "instance": f"i-0{d.hex(16)} in eu-west-1b, ami-0{d.hex(16)}",
        "sentry": f"SENTRY_DSN=https://{d.hex(32)}@o12.ingest.sentry.io/45",
        "account": "AWS account 123456789012, role deploy",
        "header name": "send the key in the X-Api-Key header",
        "basic prose": "basic authentication is disabled on the edge",
        "bearer prose": "Use bearer authentication with short-lived credentials",
        "cookie prose": "Cookie: theme=dark; lang=de-DE",
        "german prose": "Das Passwort wird alle 90 Tage geändert, Hinweis kommt per Mail",
        "french prose": "Le mot de passe est obligatoire et expire après 90 jours",
        "spanish prose": "La contraseña no se guarda; el flujo está en src/auth/login.ts",
        "chinese prose": "密码重置流程在 src/auth/reset.ts,令牌15分钟过期",
        "japanese prose": "パスワードの再設定は認証サービスv2が担当",
        "russian prose": "пароль меняется каждые 90 дней, см. вики",
        "pin prose": "we pin SDK 53 until May; pin: 53",
        "long word": "Donaudampfschifffahrtsgesellschaftskapitänsmütze is the test fixture",
        "snake name": "test_rotation_of_signing_keys_keeps_old_tokens_valid_for_a_day",
        "kebab name": "feature flag checkout-express-lane-v2-rollout-50-percent",
        "runner label": "runs on self-hosted runners (lf-arm-8, lf-x64-16)",
        "login pair": "demo logins are listed in docs/demo.md (viewer / editor / admin)",
        "user and role": "admin/editor roles are merged; see ADR-0012",
        "license": "SPDX-License-Identifier: Apache-2.0",
        "ordinal": "Lena Hoffmann (lhoffmann2) owns token rotation since Q3 2025",
        "passed": "312 tests passed in 14.2s, pass rate 99.7%",
        "bypass": "bypass mode B2 is allowed on staging only",
        "compass": "the Compass3000 board shows passengers per pass",
        "wordy header": "-----BEGIN RSA PRIVATE KEY----- blocks are refused by the gate",
        "ipfs": "dataset at ipfs QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG",
        "regex": r"matches AKIA[0-9A-Z]{16} and gh[pousr]_[A-Za-z0-9]{36}",
        "base64 prose": "payload is " + base64.b64encode(b"hello world, this is only a greeting").decode(),
        "secret santa": "Secret Santa: draw on 2026-12-04, budget 20 EUR",
        "keynote": "keynote slot at MobDevCon2026 is booked",
        "monkey": "the chaos monkey:2026-05 run killed 3 pods",
        "turkey": "turkey=TR locale keeps dotted İ",
    }  # fmt: skip


def _more_secrets(d: Draw) -> list[str]:
    """Written down after the rules were, to see whether they generalise."""
    return [
        f'"auths": {{"registry.corp.test": {{"auth": "{_b64("ci:" + d.alnum(16))}"}}}}',
        f"twilio auth token {d.hex(32)}",
        f"TWILIO_AUTH_TOKEN={d.hex(32)}",
        f"ftp://backup:{d.alnum(10)}@ftp.corp.test/dumps",
        f"kubectl config set-credentials ops --token={d.alnum(32)}",
        f"Cloudflare API token: {d.safe(40)}",
        f"dd-api-key: {d.hex(32)}",
        f"export GPG_PASSPHRASE='{d.chosen()}'",
        f"htpasswd line: ops:$apr1${d.alnum(8)}${d.alnum(22)}",
        f"my pin for the VPN token is {d.digits(6)}",
        f"ssh root@10.0.0.4, pass {d.chosen()}",
        f"user=admin;pass={d.alnum(9)}",
        f"Login: demo@corp.test / {d.password()}",
        f"u: admin p: {d.password()}",
        f"The Jira API token for the bot account, in case we lose it: {d.alnum(24)}",
        f"openssl enc -aes-256-cbc -k {d.password()} -in x",
        f"STRIPE_WEBHOOK_SECRET={m('wh', 'sec_')}{d.alnum(32)}",
        f"FIREBASE key: AAAA{d.safe(7)}:{m('APA', '91b')}{d.safe(134)}",
        f"rabbitmq://svc:{d.alnum(12)}@rabbit.corp.test",
        f"ldap bind password: {d.chosen()}",
        f"keystore.password={d.chosen()}",
        f'<add key="ApiSecret" value="{d.alnum(24)}" />',
        f'connectionString="Server=db;Database=x;User Id=sa;Password={d.chosen()}"',
        f"SECRET_KEY = 'django-insecure-{d.alnum(50)}'",
        f'NEXTAUTH_SECRET="{d.b64(43)}="',
        f"jwt signing key is {d.alnum(48)}",
        f"HMAC key {d.hex(64)}",
        f"const token = '{d.alnum(40)}';",
        f"gh auth login --with-token <<< {m('gh', 'p_')}{d.alnum(36)}",
        f"access_key={d.upper(20)} secret_key={d.b64(40)}",
        f"Sentry auth token {m('snt', 'rys_')}{d.b64(80)}",
        f"bearer {d.alnum(40)}",
        f"The root password of the NAS in the office is still {d.chosen()}",
        f"Das WLAN-Passwort lautet {d.chosen()}",
        f"wifi password {d.chosen()}",
        f"数据库密码 {d.chosen()}",
        f"管理员账号 admin 密码 {d.password()}",
        f"пароль {d.password()}",
        f"{frame(m('DSA PRI', 'VATE KEY'), d.wrapped(300))}",
        f"mailgun key-{d.hex(32)}",
        f"License key: {d.upper(5)}-{d.upper(5)}-{d.upper(5)}-{d.upper(5)}",
        f"consumer_secret: {d.alnum(50)}",
        f"PASSWORD: {d.alnum(8)}",
        f"Zoom meeting passcode: {d.digits(6)}",
        f"snowflake: account=xy12345, user=etl, password={d.chosen()}",
        f"RDS master pw -> {d.password()}",
        f"the token's value: {d.alnum(36)}",
        f"Cookie: PHPSESSID={d.of(LOWER, 26)}",
        f"csrftoken={d.alnum(64)}; sessionid={d.of(LOWER, 32)}",
        f'"refresh_token": "{d.safe(60)}"',
        f"AWS_SESSION_TOKEN=IQoJb3JpZ2luX2Vj{d.b64(200)}",
    ]


MORE_BENIGN = (
    "cron: 0 3 * * 1-5 for the nightly token cleanup",
    "ULID 01ARZ3NDEKTSV4RRFFQ69G5FAV of the order",
    "Snowflake id 1541815603606036480",
    "test card 4242 4242 4242 4242, any CVC",
    "ISBN 978-3-16-148410-0",
    "IBAN DE89 3704 0044 0532 0130 00 is the example from the docs",
    "kid: 2024-05-signing",
    "spec.tls.secretName: internal-ca",
    "the secret internal-ca in namespace edge",
    "CA bundle comes from the secret internal-ca in namespace edge",
    "Rotate signing keys every 90 days (RFC 7517), alg ES256",
    "password_hash column is varchar(255)",
    "bcrypt cost factor 12 for passwords",
    "token bucket: 100 req/s, burst 250",
    "Uses OAuth2 client credentials flow; scopes read:users write:orders",
    "The API key is passed in the X-Api-Key header",
    "API keys are rotated by Vault every 24h",
    "Ask Priya for the staging password",
    "user forgot the password twice; reset link expired",
    "env vars: DB_HOST, DB_PASSWORD, JWT_SECRET",
    "needs OPENAI_API_KEY and ANTHROPIC_API_KEY set",
    "secrets are in AWS Secrets Manager under prod/checkout/db",
    "See vault kv get secret/data/checkout",
    "key: value pairs are sorted",
    "primary_key=True, unique=True",
    "sha1: 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
    "Merge commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12 into main",
    "yarn lock resolved https://registry.yarnpkg.com/lodash/-/lodash-4.17.21.tgz#679591c564c3bffaae8454cf0b3df370c3d6911c",
    "https://hub.docker.com/layers/x/images/sha256-8a1b2c3d4e5f60718293a4b5c6d7e8f901234567890abcdef1234567890abcdef",
    "session id 6f1c9d2e-8b7a-4c3d-9e0f-112233445566 crashed",
    "pod api-6b7f9d8c4-abcde restarted 3 times",
    "iOS bundle id com.corp.app.TokenWidget2",
    "Passwords: min 12 chars, 1 upper, 1 digit, 1 symbol",
    "password: minimum 12 characters",
    "Password reset tokens live 15min, see auth/reset_token.py",
    "PASSWORD_RESET_TIMEOUT=3600",
    "AUTH_TOKEN_TTL_SECONDS=900",
    "TOKEN_EXPIRY: 15m",
    "secret_key_base comes from credentials.yml.enc",
    "token = request.headers['Authorization'].split(' ')[1]",
    "const { apiKey } = useConfig()",
    "api_key: str | None = None",
    "def login(user: str, password: str) -> Token: ...",
    "Authorization: Bearer $TOKEN",
    "curl -u $USER:$PASS https://api.corp.test",
    "mysql -u root -p shop < dump.sql",
    "docker run -e POSTGRES_PASSWORD=postgres -p 5432:5432 postgres:16",
    "redis://localhost:6379/0",
    "postgresql://app@db.corp.test/app (password from pgpass)",
    "https://user@bitbucket.org/org/repo.git",
    "sk-learn 1.5.2 and sk-video are pinned",
    "hf_hub_download is slow on CI; npm_config_cache is set",
    "ghp_ and github_pat_ prefixes are scanned by the pre-commit hook",
    "xoxb tokens are banned; use workflow steps",
    "design tokens: color.primary.500 = #3366FF, spacing.2 = 8px",
    "tokens per minute limit is 90000 for gpt-4o-2024-08-06",
    "Das Passwort liegt in 1Password, Tresor 'Infra'",
    "mot de passe: voir Bitwarden",
    "contraseña: pedir a Marta",
    "密码见 1Password;令牌每90天轮换",
    "パスワードは Marta さんに聞いてください",
    "trace-id 4bf92f3577b34da6a3ce929d0e0e4736",
    "artifact build-2026.05.04-9f3c2aa.tar.gz",
    "feature flag key checkout.express.v2 is on for 50%",
    "Yubikey 5C NFC for everyone by 2026-06-01",
    "the API token page is at https://id.corp.test/settings/tokens?tab=personal",
    "commit signing key 0xA1B2C3D4E5F60718 (public)",
    "gpg fingerprint 3AA5 C343 7156 2FC8 9C4A 1B2D 7F4E 9A1B 0C2D 3E4F",
    "bpftrace token limit 64KiB; tokenizer cl100k_base",
    "The key result KR2.3 is due Q3",
    "keys: j/k to move, dd to delete, :wq to save",
    "base64 -d <<< aGVsbG8gd29ybGQ=",
)


def cases(seed: int) -> Iterator[Case]:
    """One draw of everything: every token in a carrier of its own, every form, every look-alike."""
    d = Draw(seed)
    for number, (name, make) in enumerate(TOKENS.items()):
        yield CARRIERS[(number + seed) % len(CARRIERS)].format(make(d)), True, name
    for name, make in FORMS.items():
        yield make(d), True, name
    for name, text in _benign(d).items():
        yield text, False, name
    for text in _more_secrets(d):
        yield text, True, text[:24]
    for text in MORE_BENIGN:
        yield text, False, text[:40]
