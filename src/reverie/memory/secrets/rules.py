"""The marks of secrets: how tokens of many makers begin, what frames a key, which words announce a password.

Data only. `secrets` runs the rules; `secret_shapes` judges the values.
"""

from __future__ import annotations

import re
from typing import Final

from reverie.text.folding import word_set

T: Final = "[A-Za-z0-9]"  # what most tokens are made of
W: Final = "[A-Za-z0-9_-]"
H: Final = "[0-9a-f]"

# Tokens that say who made them. Each must have a tail that looks drawn, so that prose about a mark passes.
_MAKERS: Final = (
    ("an Anthropic key", rf"sk-ant-{W}{{16,}}"),
    ("an OpenAI key", rf"sk-(?:proj|svcacct|admin|None)-{W}{{16,}}"),
    ("an OpenRouter key", rf"sk-or-(?:v\d-)?{W}{{16,}}"),
    ("a Langfuse key", rf"sk-lf-{W}{{16,}}"),
    ("an API key", rf"sk-{W}{{18,}}"),
    ("a LangSmith key", rf"lsv2_(?:pt|sk)_{W}{{16,}}"),
    ("a Groq key", rf"gsk_{T}{{20,}}"),
    ("an xAI key", rf"xai-{W}{{20,}}"),
    ("a Perplexity key", rf"pplx-{T}{{20,}}"),
    ("a Replicate token", rf"r8_{T}{{20,}}"),
    ("a Hugging Face token", rf"(?:hf|api_org)_{T}{{20,}}"),
    ("a Fireworks key", rf"fw_{T}{{20,}}"),
    ("a Pinecone key", rf"pcsk_{W}{{20,}}"),
    ("a Voyage key", rf"pa-{W}{{30,}}"),
    ("a Tavily key", rf"tvly-{W}{{16,}}"),
    ("an E2B key", rf"e2b_{T}{{20,}}"),
    ("an AWS access key", r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"),
    ("an AWS Bedrock key", rf"ABSK{T}{{40,}}"),
    ("a Google API key", rf"AIza{W}{{24,}}"),
    ("a Google OAuth token", rf"ya29\.{W}{{16,}}"),
    ("a Google OAuth secret", rf"GOCSPX-{W}{{16,}}"),
    ("a Google refresh token", rf"1//0{W}{{30,}}"),
    ("a GitHub token", rf"gh[pousr]_{W}{{16,}}"),
    ("a GitHub token", rf"github_pat_{W}{{16,}}"),
    ("a GitLab token", rf"gl(?:pat|dt|rt|ptt|soat|cbt|ft|imt|agent|oas|ffct|rtr)-{W}{{16,}}|GR1348941{W}{{20}}"),
    ("a Slack token", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{16,}"),
    ("a Slack app token", r"xapp-\d-[A-Za-z0-9-]{16,}"),
    ("a Stripe key", rf"(?:sk|rk)_(?:live|test|prod)_{T}{{10,}}"),
    ("a webhook secret", r"whsec_[A-Za-z0-9+/=]{16,}"),
    ("a Twilio key", rf"SK{H}{{32}}"),
    ("a SendGrid key", rf"SG\.{W}{{12,}}\.{W}{{16,}}"),
    ("a Mailgun key", rf"key-{H}{{32}}|(?:priv|pub)key-{H}{{32}}"),
    ("a Mailchimp key", rf"{H}{{32}}-us\d{{1,2}}"),
    ("a Brevo key", rf"x(?:keysib|smtpsib)-{H}{{32,}}-{T}{{8,}}"),
    ("a Resend key", rf"re_{T}{{6,}}_{T}{{16,}}"),
    ("a Postman key", rf"PMAK-{H}{{20,}}-{H}{{30,}}"),
    ("a Notion token", rf"(?:secret_|ntn_){T}{{32,}}"),
    ("a Linear key", rf"lin_(?:api|oauth|wh)_{T}{{20,}}"),
    ("an Airtable token", rf"pat{T}{{14}}\.{H}{{40,}}"),
    ("a Figma token", rf"fig[dour]_{W}{{20,}}"),
    ("an Atlassian token", r"AT(?:ATT3|CTT3|BB|STT3)[A-Za-z0-9_=+/-]{20,}"),
    ("an Asana token", rf"[012]/\d{{14,}}(?:/\d{{14,}})?:{H}{{32}}"),
    ("a Shopify token", rf"shp(?:at|ca|pa|ss|ua|tka)_{H}{{24,}}"),
    ("a Square token", rf"sq0(?:atp|csp|idp)-{W}{{20,}}|EAAA{W}{{50,}}"),
    ("a PayPal token", rf"access_token\$(?:production|sandbox)\$\w+\${H}{{20,}}"),
    ("a Facebook token", rf"EAA[A-Z]{T}{{40,}}"),
    ("an Instagram token", rf"IG[QA][A-Z]{W}{{40,}}"),
    ("a Twitter bearer token", r"A{18,}[A-Za-z0-9%]{30,}"),
    ("a Discord token", rf"[MNO]{T}{{22,27}}\.{W}{{6}}\.{W}{{25,}}|mfa\.{W}{{60,}}"),
    ("a Telegram bot token", rf"(?<!\d)\d{{7,11}}:A{W}{{30,}}"),
    ("a DigitalOcean token", rf"do[opr]_v1_{H}{{32,}}"),
    ("a Heroku key", rf"HRKU-{W}{{20,}}"),
    ("a Netlify token", rf"nf[pcobu]_{T}{{20,}}"),
    ("a Vercel token", rf"vc[pirak]_{T}{{20,}}|vercel_{T}{{20,}}"),
    ("a Fly.io token", r"(?:FlyV1 )?fm\d[a-z]?_[A-Za-z0-9+/=,_-]{30,}|fo1_[A-Za-z0-9_-]{20,}"),
    ("a Render key", rf"rnd_{T}{{20,}}"),
    ("a Cloudflare key", rf"v1\.0-{H}{{20,}}-{H}{{60,}}|cf(?:at|ut)_{W}{{20,}}"),
    ("a Supabase key", rf"sbp_{H}{{32,}}|sb_secret_{W}{{16,}}"),
    ("a PlanetScale token", rf"pscale_(?:tkn|pw|oauth)_{W}{{20,}}"),
    ("a Neon key", rf"napi_{T}{{20,}}"),
    ("a Databricks token", rf"dapi{H}{{32}}(?:-\d)?|dkea{H}{{32}}|dose{H}{{32}}"),
    ("a Doppler token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{20,}"),
    ("a Vault token", rf"hv[sbr]\.{W}{{16,}}"),
    ("a Vault token", rf"(?<![\w.])s\.{T}{{24}}(?![\w.])"),
    ("a Terraform token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{50,}"),
    ("a Pulumi token", rf"pul-{H}{{32,}}"),
    ("a Grafana token", r"gl(?:c|sa)_[A-Za-z0-9+/=_]{20,}"),
    ("a New Relic key", rf"NR(?:AK|II|IQ|JS|RA|AA|BR)-?{T}{{20,}}"),
    ("a Sentry token", r"sntry[su]_[A-Za-z0-9+/=_-]{20,}"),
    ("a Dynatrace token", r"dt0[a-z]\d\d\.[A-Z0-9]{20,}\.[A-Z0-9]{40,}"),
    ("a SonarQube token", rf"sq[upa]_{H}{{40}}"),
    ("an npm token", rf"npm_{T}{{20,}}"),
    ("a PyPI token", rf"pypi-{W}{{16,}}"),
    ("a RubyGems key", rf"rubygems_{H}{{32,}}"),
    ("a crates.io token", rf"cio{T}{{32}}"),
    ("a NuGet key", r"oy2[a-z0-9]{43}"),
    ("a Docker token", rf"dckr_[po]at_{W}{{16,}}"),
    ("an Artifactory token", rf"AKC{T}{{10,}}|cmVmd{T}{{30,}}"),
    ("a Clojars token", rf"CLOJARS_{T}{{40,}}"),
    ("a Tailscale key", rf"tskey-{W}{{16,}}"),
    ("a 1Password key", r"ops_eyJ[A-Za-z0-9_=-]{40,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-?){3,6}"),
    ("an age key", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    ("an Alibaba key", rf"LTAI{T}{{12,}}"),
    ("a Tencent key", rf"AKID{T}{{28,}}"),
    ("a Yandex key", rf"AQVN{W}{{30,}}|y[0-3]_{W}{{40,}}|t1\.[A-Z0-9a-z_-]+={{0,2}}\.{W}{{60,}}"),
    ("a Buildkite token", rf"bk[auc]{{2}}_{T}{{20,}}"),
    ("a CircleCI token", rf"CCI(?:PAT|PRJ)_{T}{{10,}}_{T}{{20,}}"),
    ("a Contentful token", rf"CFPAT-{W}{{20,}}"),
    ("a Dropbox token", rf"sl\.{W}{{60,}}"),
    ("a HubSpot token", r"pat-(?:na|eu)\d-[0-9a-f-]{30,}"),
    ("a Mapbox token", r"sk\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("a Prefect key", rf"pn[ub]_{T}{{20,}}"),
    ("a Sourcegraph token", rf"sg[pd]_(?:{H}{{16}}_|local_)?{H}{{32,}}"),
    ("a Shippo token", rf"shippo_(?:live|test)_{H}{{32,}}"),
    ("an EasyPost key", rf"EZ[AT]K{T}{{40,}}"),
    ("a Duffel token", rf"duffel_(?:live|test)_{W}{{30,}}"),
    ("a Flutterwave key", rf"FLWSECK(?:_TEST)?-{T}{{12,}}"),
    ("a Typeform token", rf"tfp_{W}{{30,}}"),
    ("a Readme key", rf"rdme_{T}{{30,}}"),
    ("a Harness token", rf"pat\.{W}{{20,}}\.{W}{{20,}}\.{W}{{16,}}"),
    ("an Infracost key", rf"ico-{T}{{20,}}"),
    ("an Adafruit key", rf"aio_{T}{{20,}}"),
    ("an Adobe secret", rf"p8e-{W}{{28,}}"),
    ("an Azure client secret", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{28,}"),
    ("an Okta token", r"(?<![\w-])00[A-Za-z0-9_-]{38}[A-Za-z0-9](?![\w-])"),
    ("a Zapier or Make hook", rf"hooks\.zapier\.com/hooks/catch/\d+/{T}+|hook\.[a-z0-9]+\.make\.com/{T}{{20,}}"),
    ("a signed token (JWT)", r"ey[IJ][A-Za-z0-9_=-]{8,600}\.ey[A-Za-z0-9_=-]{4,}(?:\.[A-Za-z0-9_=+/-]*)?"),
    ("an encrypted token (JWE)", rf"eyJ{W}{{10,600}}\.{W}*(?:\.{W}{{8,}}){{3}}"),
    # The beginnings of private keys whose frame was cut off.
    ("a private key", r"b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=]{40,}"),
    ("a private key", r"MII[A-Za-z][A-Za-z0-9+/]{1,3}[AI]BAAKC[A-Za-z0-9+/=]{40,}"),
    ("a private key", r"MII[A-Za-z][A-Za-z0-9+/]{2,4}IBADANBgkqhkiG9w0BAQEFAASC[A-Za-z0-9+/=]{20,}"),
    ("a private key", r"(?:MH[cQ]CAQEEI|MIGHAgEAMBMGByqGSM49|MC4CAQAwBQYDK2Vw)[A-Za-z0-9+/=]{20,}"),
    # Addresses that are secrets themselves.
    ("a Slack webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"),
    ("a Discord webhook", r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{10,}/[A-Za-z0-9_-]{20,}"),
    ("a Teams webhook", r"(?:webhook\.office\.com|logic\.azure\.com)[:/][^\s\"'<>)]{40,}"),
    ("a SoftLayer address", rf"api\.softlayer\.com/(?:soap|rest)/v[\d.]+/{H}{{64}}"),
    ("a Telegram bot address", rf"api\.telegram\.org/bot\d{{6,}}:{W}{{20,}}"),
)  # fmt: skip


def _maker(number: int, pattern: str) -> str:
    return f"(?P<m{number}>{pattern})"


MAKERS: Final = re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(_maker(n, p) for n, (_, p) in enumerate(_MAKERS)) + ")")
MAKER_KINDS: Final = tuple(kind for kind, _ in _MAKERS)

# The exact shapes of keys, by their makers: such a key counts whatever its characters are, as long as it is not masked.
SHAPED: Final = re.compile(
    r"(?<![A-Za-z0-9_-])(?:gh[pousr]_(?P<a>[A-Za-z0-9]{36})|github_pat_(?P<b>[A-Za-z0-9]{22}_[A-Za-z0-9]{59})"
    r"|glpat-(?P<c>[A-Za-z0-9_-]{20})|npm_(?P<d>[A-Za-z0-9]{36})|sq[upa]_(?P<e>[0-9a-f]{40})|(?:AKIA|ASIA)(?P<f>[A-Z2-7]{16})"
    r"|xox[abps]-\d{9,14}-\d{9,14}-(?:\d{9,14}-)?(?P<g>[A-Za-z0-9]{24,34})|[rs]k_live_(?P<h>[A-Za-z0-9]{24,99})"
    r"|do[opr]_v1_(?P<i>[0-9a-f]{64})|SG\.(?P<j>[\w-]{22}\.[\w-]{43})|AIza(?P<k>[\w-]{35})|hf_(?P<l>[A-Za-z]{34})"
    r"|shp(?:at|ca|pa|ss)_(?P<m>[0-9a-f]{32})|pypi-(?P<n>AgEIcHlwaS5vcmc[\w-]{50,200})|dapi(?P<o>[0-9a-f]{32})"
    r"|sk-ant-(?:api|admin)\d\d-(?P<p>[\w-]{80,120})|lin_api_(?P<q>[A-Za-z0-9]{40})|figd_(?P<r>[\w-]{40})"
    r"|discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{17,20}/(?P<t>[\w-]{60,80})"
    r"|maker\.ifttt\.com/trigger/[\w-]{1,60}(?:/json)?/with/key/(?P<v>[\w-]{22,43})"
    r"|hooks\.slack\.com/services/T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/(?P<u>[A-Za-z0-9]{24})"
    r"|glsa_(?P<s>[A-Za-z0-9]{32}_[0-9a-f]{8}))(?![A-Za-z0-9_-])"
)
MASKED: Final = re.compile(r"(?i)x{5,}|0{8,}|\*{3}|example|placeholder|your|redacted|dummy|sample")

# A mark nobody has told us of yet: short lower-case words, a joint, then a long drawn tail.
UNKNOWN_MAKER: Final = re.compile(
    r"(?<![A-Za-z0-9/.])(?!(?:msg|toolu|req|run|evt|cus|sub|pi|in|ch|acct|price|prod|file|asst|thread|call|chatcmpl|resp"
    r"|org|usr|user|obj|doc|item|job|batch|id)[_-])"
    r"[a-z][a-z0-9]{1,11}(?:[_-][a-z0-9]{1,8}){0,4}[_-](?P<tail>[A-Za-z0-9]{24,})(?![A-Za-z0-9])"
)

PRIVATE_BLOCK: Final = re.compile(
    r"-----\s?BEGIN (?:[A-Z0-9]+ )*(?:PRIVATE KEY|SECRET KEY"
    r"|PGP MESSAGE SECRET)(?: BLOCK)?\s?-----(?P<body>(?:[^-]|-(?!----)){0,4000})"
    r"|PuTTY-User-Key-File-\d[\s\S]{0,2000}?Private-Lines:(?P<putty>[\s\S]{20,200})"
)
PUBLIC_BLOCK: Final = re.compile(
    r"-----BEGIN (?:CERTIFICATE(?: REQUEST)?|(?:RSA |EC |DSA )?PUBLIC KEY|PGP PUBLIC KEY BLOCK|PGP SIGNATURE"
    r"|PGP SIGNED MESSAGE|SSH SIGNATURE|X509 CRL|PKCS7|CMS|DH PARAMETERS)-----"
    r"[\s\S]{0,16000}?-----END [A-Z0-9 ]+-----"
)
# Long strings that are public by their nature; nothing inside them is looked at as a random string.
PUBLIC: Final = re.compile(
    r"(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-nistp\d+|sk-(?:ssh-ed25519"
    r"|ecdsa-sha2-nistp256)@openssh\.com) [A-Za-z0-9+/=]+(?: \S+)?"
    r"|data:[\w.+/-]*(?:;[\w=-]+)*;base64,[A-Za-z0-9+/=]+"
    r"|(?<![A-Za-z0-9_-])(?i:sha(?:1|224|256|384|512)|md5|blake2b|blake3)[-:= ][A-Za-z0-9+/=_-]{20,}"
    r"|(?<![A-Za-z0-9+/=_-])h1:[A-Za-z0-9+/=]{40,}|(?<![A-Za-z0-9+/=_-])SHA256:[A-Za-z0-9+/]{40,}=?"
    r"|(?<![A-Za-z0-9+/=_-])(?:Qm[1-9A-HJ-NP-Za-km-z]{44}|bafy[a-z2-7]{50,})\b"
    r"|(?:[0-9A-Fa-f]{2}:){15,}[0-9A-Fa-f]{2}|(?<![A-Za-z0-9+/=_-])(?:age1|bc1q?|npub1)[a-z0-9]{30,}\b"
    r"|(?<![A-Za-z0-9+/=_-])RWQ?[A-Za-z0-9+/]{50,}={0,2}"
    r"|(?i:public[-_ ]?key)[\"'`*]{0,3}(?:[ \t]*[:=][ \t]*|[ \t]+(?:is[ \t]+)?)[\"'`]?[A-Za-z0-9+/]{40,}={0,2}"
    r"|(?i:site[-_ ]?key)[\"'`*]{0,3}(?:[ \t]*[:=][ \t]*|[ \t]+(?:is[ \t]+)?)[\"'`]?6L[A-Za-z0-9_-]{20,}"
    r"|[\"'](?:n|x|y|x5t|x5t#S256|kid)[\"'][ \t]*:[ \t]*[\"'][A-Za-z0-9_=-]{20,}[\"']"
    r"|(?i:\bpeer)[ \t]*[:=]?[ \t]*[A-Za-z0-9+/]{43}="
    r"|(?<![A-Za-z0-9+/=_-])(?:pk_(?:live|test)_\w+|pk\.eyJ[\w.-]+|pk-lf-[\w-]+)"
)

# Words that announce a password; the value may be anything a person would choose. Lower case, found as they stand.
PASSWORD_WORDS: Final = (
    "password", "passwort", "passwd", "passphrase", "pass phrase", "pass-phrase", "passcode",
    "passwörter", "kennwort", "kennwörter",
    "zugangscode", "zugangsdaten", "mot de passe", "mots de passe", "contraseña", "contrasena", "contrasenya",
    "palavra-passe", "senha", "parola", "parolă", "wachtwoord", "lösenord", "losenord", "adgangskode", "kodeord",
    "passord", "salasana", "jelszó", "hasło", "haslo", "heslo", "şifre", "lozinka", "kata sandi", "mật khẩu",
    "парол", "κωδικός", "סיסמ", "كلمة المرور", "كلمة السر", "पासवर्ड", "รหัสผ่าน", "密码", "密碼", "口令",
    "パスワード", "暗証番号", "合言葉", "비밀번호", "암호", "pwd", "pw", "psk", "pass", "mdp", "requirepass",
    "identified by", "convertto-securestring",
)  # fmt: skip
# Words that announce a key or a token; the value must look drawn.
KEY_WORDS: Final = (
    "secret", "token", "apikey", "credential", "creds", "bearer", "authorization", "geheimnis", "schlüssel", "jeton",
    "segredo", "clave", "chave", "chiave", "clé", "sleutel", "klucz", "nyckel", "ключ", "токен", "секрет", "密钥",
    "密鑰", "令牌", "トークン", "秘密鍵", "キー", "토큰", "key", "session_id", "sessionid", "_auth",
    "accesskey", "signature",
)  # fmt: skip
SHORT_WORDS: Final = frozenset(
    {"pwd", "pw", "psk", "pass", "mdp", "key", "clé", "clave", "senha", "parola", "heslo", "chave", "creds", "bearer"}
)
"""Words that stand inside others: they count only if no letter stands beside them."""
NOT_VALUES: Final = word_set(
    """required optional mandatory missing wrong incorrect correct invalid valid expired unchanged changed rotated
    hashed encrypted salted stored kept saved shared generated reset needed unknown empty blank strong weak long
    short new old same different fine okay good bad here there below above inside only also again never always
    not now soon later ask see use via from with without and or but for the this that these those his her their
    our your its my everyone nobody anyone someone somewhere elsewhere stdin prompt interactive manual managed
    automatic daily weekly monthly yearly rotation authentication authorization login logon signin bcrypt argon
    scrypt plain plaintext cleartext base basic digest oauth sso saml kerberos ldap keycloak bitwarden lastpass
    keepass dashlane vaultwarden infisical doppler sops chamber keychain keyring vault envrc dotenv direnv
    configmap secretsmanager parameterstore hashicorp terraform ansible kubernetes rejected refused accepted
    denied allowed forbidden revoked leaked exposed compromised policy policies manager managers field fields
    string strings value values erforderlich falsch leer geändert abgelaufen nötig optional gespeichert requis
    vide incorrecto requerida necesaria vacía obligatoria guardada nicht keine kein siehe steht liegt lautet
    heißt seguro segura hier dort bei beim von vom im in am an auf zu zur zum el la los las de del un una que se
    est es le les des du au aux dans pour par sur qui ne pas een het niet staat"""
)

# …unless the word says that it is no secret, or what follows is about the secret rather than the secret itself.
BENIGN_BEFORE: Final = re.compile(
    r"(?i)(?:(?<![a-z])(?:n|of|per|max|min|num|row|hot|map|pad|env|hash)|public|pub|publishable|primary|foreign|cache|partition|sort|idempotency|dedup\w*"
    r"|translation|i18n|locale|registry|dictionary|dict|object|"
    r"redis|config|settings?|feature|composite|natural|surrogate|unique|index|lookup|group|routing|json|yaml"
    r"|shortcut|keyboard|arrow|answer|total|"
    r"input|output|prompt|completion|cached?|context|stop|eos|bos|special|cancel\w*|next|page|pagination"
    r"|continuation|cursor|design|\d+k?|million|count|"
    r"host|known|gpg|s3|storage object|bucket|metadata|sort|order|join|event|message|record|document"
    r"|distribution|dist|shard)[-_ .]{0,2}$|:\d{12}:$"
)
BENIGN_AFTER: Final = re.compile(
    r"(?i)[-_. ]?(?:files?|paths?|urls?|uris?|length|len|min|max|policy|policies|fields?|names?|ids?|types?"
    r"|counts?|limits?|reset|hints?|ttl|expir\w*|env|vars?|variable|refs?|"
    r"header|prefix|suffix|managers?|strength|rules?|rotat\w*|prompt|input|form|page|screen|endpoint|service"
    r"|provider|store|vault|column|table|budget|usage|window|"
    r"bucket|version|format|algorithm|alg|size|bits|index|order|date|days|hours|minutes|seconds|protection"
    r"|protected|less|ring|board|stone|note|chain|fingerprint|stroke|word|pair|map|lookup|space|set|value"
    r"|frame)(?![A-Za-z0-9]*[-_. ]?(?:secret|password|token))\b"
)
FIRM_WORDS: Final = (
    "secret",
    "token",
    "credential",
    "creds",
    "bearer",
    "apikey",
    "schlüssel",
    "токен",
    "密钥",
    "令牌",
    "トークン",
    "토큰",
)
"""Words that mean a secret on their own; `key` does so only behind one of `FIRM_BEFORE`."""
FIRM_BEFORE: Final = re.compile(
    r"(?i)(?:api|access|auth\w*|hmac|aes|cipher|crypto|symmetric|private|secret|signing|encryption|master"
    r"|account|service|shared|storage|deploy"
    r"|webhook|license|licence|"
    r"integration|ingest|admin|root|function|subscription|session|client|app|stripe|openai|anthropic|maps?"
    r"|recovery|ssh|aws|gcp|azure|write|"
    r"live|prod\w*|staging|server|mail\w*|sms|bot)[-_ .]?$"
)
WIFI_BEFORE: Final = re.compile(
    r"(?i)\b(?:wi-?fi|wlan|wpa[23]?|hotspot|router|network|netzwerk)[-_ ]{0,3}(?:network[-_ ])?$"
)
"""What makes `key` a word for a password: people choose the key of a wireless network."""
HASH_WORDS: Final = re.compile(
    r"(?i)\b(?:commits?|sha-?\d*|md5|hash(?:es|ed)?|digest|checksum|integrity|etag|fingerprint|revision|rev|git"
    r"|blob|tree|merge|cherry-?pick|bisect|tag|image|layer|crc|sum|cid|"
    r"trace|span|request|correlation|transaction|tx|block|address|wallet|contract|object|document|doc|sheet"
    r"|spreadsheet|file|folder|drive|figma|page|node|build|run|job|"
    r"pod|container|instance|device|serial|model|uuid|guid|id|ids|public key|pubkey|certificate|cert|thumbprint"
    r"|nonce|version)\b[^\n]{0,24}$"
)
