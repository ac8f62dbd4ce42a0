"""The words that announce a secret, by meaning and language, and the words that mean that there is none.

Data only. `grammar` reads what follows a word; `shapes` judges it.
"""

from __future__ import annotations

from typing import Final, Literal

from reverie.text.folding import word_set
from reverie.text.patterns import late

Strength = Literal["password", "verb", "firm", "key", "login", "user", "code", "number"]
"""What may follow a word. `password`: anything that people choose; a `verb` can also mean something else. `firm`: what
looks generated; a `key` is firm only after `FIRM_BEFORE`. `login`: a name and its password; `user` is weaker. `code`:
digits; a `number` counts only if it opens something."""

_TABLE: Final[tuple[tuple[Strength, str, str], ...]] = (
    ("password", "en", "password, passwd, passphrase, pass phrase, pass-phrase, passcode, pwd, pw, psk, requirepass"),
    ("password", "sql, ps", "identified by, convertto-securestring"),
    ("password", "de", "passwort, passwörter, kennwort, kennwörter, zugangscode, zugangsdaten"),
    ("password", "fr", "mot de passe, mots de passe, mdp"),
    ("password", "es, ca, pt", "contraseña, contrasena, contrasenya, palavra-passe, senha"),
    ("password", "it, ro, nl", "parola, parolă, wachtwoord"),
    ("password", "sv, da, no, fi", "lösenord, losenord, adgangskode, kodeord, passord, salasana"),
    ("password", "hu, pl, cs, tr, hr, id, vi", "jelszó, hasło, haslo, heslo, şifre, lozinka, kata sandi, mật khẩu"),
    ("password", "ru, el, he, ar, hi, th", "парол, κωδικός, סיסמ, كلمة المرور, كلمة السر, पासवर्ड, รหัสผ่าน"),
    ("password", "zh, ja, ko", "密码, 密碼, 口令, パスワード, 暗証番号, 合言葉, 비밀번호, 암호"),
    ("verb", "en", "pass"),
    ("firm", "en", "secret, token, apikey, credential, creds, bearer, accesskey"),
    ("firm", "de, ru, zh, ja, ko", "schlüssel, токен, 密钥, 令牌, トークン, 토큰"),
    ("key", "en", "key, session_id, sessionid, auth, authorization, signature, sig, hmac"),
    ("key", "de, fr, es, pt, it", "geheimnis, jeton, clé, clave, segredo, chave, chiave"),
    ("key", "nl, pl, sv, ru, zh, ja", "sleutel, klucz, nyckel, ключ, секрет, 密鑰, 秘密鍵, キー"),
    ("login", "en", "login, log in, log-in, logged in, logon, log on, sign in, sign-in, signin, signed in, cred, auth"),
    ("login", "de", "zugang, anmeldedaten, anmeldung, anmelden, einloggen, logindaten"),
    ("login", "fr, es", "identifiant, connexion, accès, acceso, credenciales, iniciar sesión"),
    ("login", "zh", "登录, 登入, 账号, 帐号, 账户, 凭据, 用户"),
    (
        "user",
        "en, de, fr, es",
        "user, username, user name, account, benutzer, benutzername, konto, utilisateur, usuario",
    ),
    (
        "code",
        "en, de",
        "pin, pin code, pin-code, pin number, passcode, access code, security code, geheimzahl, zugangscode",
    ),
    ("code", "fr, es", "code d'accès, code secret, código de acceso, código secreto"),
    ("number", "en, de, fr, es", "code, código, combination, kombination, combinaison"),
    ("number", "en, de, fr, es", "opens with, unlocks with, öffnet mit, öffnet sich mit, s'ouvre avec, abre con"),
    ("number", "zh", "密码, 代码, 口令, 码"),
)
CARRIERS: Final[tuple[tuple[str, Strength], ...]] = tuple(
    (word, strength) for strength, _, listed in _TABLE for word in listed.split(", ")
)
BARE: Final = word_set("pwd pw psk pass mdp key clé clave senha parola heslo chave creds bearer sig auth")
"""Words that are also parts of other words: they count only if there is no letter next to them."""
OPENS: Final = (
    r"(?:door|gate|alarm|safe|lock(?:er)?|garage|vault|lift|elevator|phone|sim|card|gym|entrance|entry|office|haustür|tür|tor"
    r"|alarmanlage|tresor|schloss|schließfach|handy|karte|porte|portail|alarme|coffre|téléphone|carte|immeuble|puerta|alarma"
    r"|caja fuerte|garaje|móvil|tarjeta|unlock|门禁|大门|保险箱|保险柜|报警器?|手机|解锁|锁屏|支付|银行卡|开门)"
)
IN_SENTENCES: Final = word_set(
    """the is be must at least your a an of to in for and or not with from by on use this that are was has it no der die
    das und ist el la de le les et when if while once every each only never always will should can may before after
    during between until than then as we you they she he them which who what where how twice against derived also
    again among behind beneath inside outside within without through using via into onto over under about above below
    since because but does did had have having been being its our their his her there here some any all both most more
    less such same other another per just still even very too see ask goes lives sits comes needs wird werden sind war
    nicht nur noch auch aber oder wenn weil dass für von vom mit bei beim aus nach über unter zwischen ohne durch
    einer einem einen eine ein kein keine den dem des im am zum zur sich man wir ihr sie alle jede jeder jeden est
    sont pas dans par pour avec sans sur sous entre chez puis une du aux que qui mais donc chaque tous toutes elle ils
    nous vous son ses leur cette ces fois seule doit sera está por para con sin sobre cada todos todas una uno los las
    del pero como más muy sólo solo debe luego desde hasta nunca siempre también"""
)
"""Words that connect sentences: a passphrase does not contain one, and a value is never one."""
NOT_VALUES: Final = IN_SENTENCES | word_set(
    """required optional mandatory missing wrong incorrect correct invalid valid expired unchanged changed rotated
    hashed encrypted salted stored kept saved shared generated reset needed unknown empty blank strong weak long
    short new old different fine okay good bad now soon later these those my everyone nobody anyone someone
    somewhere elsewhere stdin prompt interactive manual managed automatic daily weekly monthly yearly rotation
    authentication authorization login logon signin bcrypt argon scrypt plain plaintext cleartext base basic digest
    oauth sso saml kerberos ldap keycloak bitwarden lastpass keepass dashlane vaultwarden infisical doppler sops
    chamber keychain keyring vault envrc dotenv direnv configmap secretsmanager parameterstore hashicorp terraform
    ansible kubernetes rejected refused accepted denied allowed forbidden revoked leaked exposed compromised policy
    policies manager managers field fields string strings value values erforderlich falsch leer geändert abgelaufen
    nötig gespeichert requis vide incorrecto requerida necesaria vacía obligatoria guardada siehe steht liegt lautet
    heißt seguro segura hier dort auf zu un se es au ne een het niet staat"""
)

# A word does not count if these words before it say that it is not a secret, or if the words after it are about the
# secret and do not give it.
BENIGN_BEFORE: Final = late(
    r"(?i)(?:(?<![a-z])(?:n|of|per|max|min|num|row|hot|map|pad|env|hash)|public|pub|publishable|primary|foreign|cache"
    r"|partition|sort|idempotency|dedup\w*|error|status|exit|translation|i18n|locale|registry|dictionary|dict|object"
    r"|redis|config|settings?|feature|composite|natural|surrogate|unique|index|lookup|group|routing|json|yaml"
    r"|shortcut|keyboard|arrow|answer|total|input|output|prompt|completion|cached?|context|stop|eos|bos|special"
    r"|cancel\w*|next|page|pagination|continuation|cursor|design|\d+k?|million|count|host|known|gpg|s3|storage object"
    r"|bucket|metadata|sort|order|join|event|message|record|document|distribution|dist|shard)[-_ .]{0,2}$|:\d{12}:$"
)
BENIGN_AFTER: Final = late(
    r"(?i)[-_. ]?(?:files?|paths?|urls?|uris?|length|len|min|max|policy|policies|fields?|names?|ids?|types?|counts?"
    r"|limits?|reset|hints?|ttl|expir\w*|env|vars?|variable|refs?|header|prefix|suffix|managers?|strength|rules?"
    r"|rotat\w*|prompt|input|form|page|screen|endpoint|service|provider|store|vault|column|table|budget|usage|window"
    r"|bucket|version|format|algorithm|alg|size|bits|index|order|date|days|hours|minutes|seconds|protection|protected"
    r"|less|ring|board|stone|note|chain|fingerprint|stroke|word|pair|map|lookup|space|set|value"
    r"|frame)(?![A-Za-z0-9]*[-_. ]?(?:secret|password|token))\b"
)
FIRM_BEFORE: Final = late(
    r"(?i)(?:api|access|auth\w*|hmac|aes|cipher|crypto|symmetric|private|secret|signing|encryption|master|account"
    r"|service|shared|storage|deploy|webhook|licen[sc]e|product|activation|serial|registration|integration|ingest"
    r"|admin|root|function|subscription|session|client|app|stripe|openai|anthropic|maps?|recovery|ssh|aws|gcp|azure"
    r"|write|amz|goog|[?&]|live|prod\w*|staging|server|mail\w*|sms|bot)[-_ .]?$"
)
WIFI_BEFORE: Final = late(r"(?i)\b(?:wi-?fi|wlan|wpa[23]?|hotspot|router|network|netzwerk)[-_ ]{0,3}(?:network[-_ ])?$")
"""After these, `key` means a password: people choose the key of a wireless network."""
HASH_WORDS: Final = late(
    r"(?i)\b(?:commits?|sha-?\d*|md5|hash(?:es|ed)?|digest|checksum|integrity|etag|fingerprint|revision|rev|git|blob"
    r"|tree|merge|cherry-?pick|bisect|tag|image|layer|crc|sum|cid|trace|span|request|correlation|transaction|tx|block"
    r"|address|wallet|contract|object|document|doc|sheet|spreadsheet|file|folder|drive|figma|page|node|build|run|job"
    r"|pod|container|instance|device|serial|model|uuid|guid|id|ids|public key|pubkey|certificate|cert|thumbprint"
    r"|nonce|version)\b[^\n]{0,24}$"
)


def count_announcing(text: str) -> int:
    """How many places the grammar has to judge, which is what makes a check long."""
    lower = text.lower()
    return sum(lower.count(word) for word, _ in CARRIERS)
