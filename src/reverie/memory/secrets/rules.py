"""The marks of secrets: how tokens of many makers begin, the lines around a key, and what is public by nature.

Data only. `scan` runs the rules; `shapes` judges the values.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from reverie.text.patterns import late

T: Final = "[A-Za-z0-9]"  # the characters of most tokens
W: Final = "[A-Za-z0-9_-]"
H: Final = "[0-9a-f]"

# Tokens whose mark names their maker. Each needs a tail that looks generated, so that prose about a mark passes. First
# the simple ones, sorted by tail, then the ones with a special shape.
_BY_TAIL: Final = {
    rf"{H}{{24,}}": r"""
        a DigitalOcean token do[opr]_v1_, a Pulumi token pul-, a RubyGems key rubygems_, a SonarQube token sq[upa]_, a
        Shippo token shippo_(?:live|test)_, a Shopify token shp(?:at|ca|pa|ss|ua|tka)_""",
    rf"{T}{{10,}}": r"""
        an Alibaba key LTAI, a Flutterwave key FLWSECK(?:_TEST)?-, a Stripe key (?:sk|rk)_(?:live|test|prod)_""",
    rf"{T}{{20,}}": r"""
        a Groq key gsk_, a Perplexity key pplx-, a Replicate token r8_, a Hugging Face token (?:hf|api_org)_, a
        Fireworks key fw_, an E2B key e2b_, a Linear key lin_(?:api|oauth|wh)_, a Netlify token nf[pcobu]_, a Render key
        rnd_, a Neon key napi_, a New Relic key NR(?:AK|II|IQ|JS|RA|AA|BR)-?, an npm token npm_, a Prefect key pn[ub]_,
        an Infracost key ico-, an Adafruit key aio_""",
    rf"{T}{{28,}}": r"""
        a Tencent key AKID, a Readme key rdme_, a Notion token secret_|ntn_, a crates.io token cio""",
    rf"{T}{{40,}}": r"""
        an AWS Bedrock key ABSK, a Facebook token EAA[A-Z], a Clojars token CLOJARS_, an EasyPost key EZ[AT]K""",
    rf"{W}{{16,}}": r"""
        an Anthropic key sk-ant-, an OpenAI key sk-(?:proj|svcacct|admin|None)-, an OpenRouter key sk-or-(?:v\d-)?, a
        Langfuse key sk-lf-, a LangSmith key lsv2_(?:pt|sk)_, a Tavily key tvly-, a Google OAuth token ya29\., a Google
        OAuth secret GOCSPX-, a GitHub token gh[pousr]_|github_pat_, a Vault token hv[sbr]\., a PyPI token pypi-, a
        Docker token dckr_[po]at_, a Tailscale key tskey-""",
    rf"{W}{{20,}}": r"""
        an xAI key xai-, a Pinecone key pcsk_, a Figma token fig[dour]_, a Heroku key HRKU-, a PlanetScale token
        pscale_(?:tkn|pw|oauth)_, a Contentful token CFPAT-""",
    rf"{W}{{24,}}": r"""
        a Google API key AIza, an Adobe secret p8e-, a Google refresh token 1//0, a Duffel token duffel_(?:live|test)_,
        a Typeform token tfp_""",
    rf"{W}{{40,}}": r"""
        an Instagram token IG[QA][A-Z], a Dropbox token sl\.""",
}
_MAKERS: Final = (
    *(
        (entry.rpartition(" ")[0], f"(?:{entry.rpartition(' ')[2]}){tail}")
        for tail, listed in _BY_TAIL.items()
        for entry in " ".join(listed.split()).split(", ")
    ),
    ("a Voyage key", rf"pa-{W}{{30,}}"),
    ("an API key", rf"sk-{W}{{18,}}"),
    ("an AWS access key", r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"),
    ("a GitLab token", rf"gl(?:pat|dt|rt|ptt|soat|cbt|ft|imt|agent|oas|ffct|rtr)-{W}{{16,}}|GR1348941{W}{{20}}"),
    ("a Slack token", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{16,}"),
    ("a Slack app token", r"xapp-\d-[A-Za-z0-9-]{16,}"),
    ("a webhook secret", r"whsec_[A-Za-z0-9+/=]{16,}"),
    ("a Twilio key", rf"SK{H}{{32}}"),
    ("a SendGrid key", rf"SG\.{W}{{12,}}\.{W}{{16,}}"),
    ("a Mailgun key", rf"key-{H}{{32}}|(?:priv|pub)key-{H}{{32}}"),
    ("a Mailchimp key", rf"{H}{{32}}-us\d{{1,2}}"),
    ("a Brevo key", rf"x(?:keysib|smtpsib)-{H}{{32,}}-{T}{{8,}}"),
    ("a Resend key", rf"re_{T}{{6,}}_{T}{{16,}}"),
    ("a Postman key", rf"PMAK-{H}{{20,}}-{H}{{30,}}"),
    ("an Airtable token", rf"pat{T}{{14}}\.{H}{{40,}}"),
    ("an Atlassian token", r"AT(?:ATT3|CTT3|BB|STT3)[A-Za-z0-9_=+/-]{20,}"),
    ("an Asana token", rf"[012]/\d{{14,}}(?:/\d{{14,}})?:{H}{{32}}"),
    ("a Square token", rf"sq0(?:atp|csp|idp)-{W}{{20,}}|EAAA{W}{{50,}}"),
    ("a PayPal token", rf"access_token\$(?:production|sandbox)\$\w+\${H}{{20,}}"),
    ("a Twitter bearer token", r"A{18,}[A-Za-z0-9%]{30,}"),
    ("a Discord token", rf"[MNO]{T}{{22,27}}\.{W}{{6}}\.{W}{{25,}}|mfa\.{W}{{60,}}"),
    ("a Telegram bot token", rf"(?<!\d)\d{{7,11}}:A{W}{{30,}}"),
    ("a Vercel token", rf"vc[pirak]_{T}{{20,}}|vercel_{T}{{20,}}"),
    ("a Fly.io token", r"(?:FlyV1 )?fm\d[a-z]?_[A-Za-z0-9+/=,_-]{30,}|fo1_[A-Za-z0-9_-]{20,}"),
    ("a Cloudflare key", rf"v1\.0-{H}{{20,}}-{H}{{60,}}|cf(?:at|ut)_{W}{{20,}}"),
    ("a Supabase key", rf"sbp_{H}{{32,}}|sb_secret_{W}{{16,}}"),
    ("a Databricks token", rf"dapi{H}{{32}}(?:-\d)?|dkea{H}{{32}}|dose{H}{{32}}"),
    ("a Doppler token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{20,}"),
    ("a Vault token", rf"(?<![\w.])s\.{T}{{24}}(?![\w.])"),
    ("a Terraform token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{50,}"),
    ("a Grafana token", r"gl(?:c|sa)_[A-Za-z0-9+/=_]{20,}"),
    ("a Sentry token", r"sntry[su]_[A-Za-z0-9+/=_-]{20,}"),
    ("a Dynatrace token", r"dt0[a-z]\d\d\.[A-Z0-9]{20,}\.[A-Z0-9]{40,}"),
    ("a NuGet key", r"oy2[a-z0-9]{43}"),
    ("an Artifactory token", rf"AKC{T}{{10,}}|cmVmd{T}{{30,}}"),
    ("a 1Password key", r"ops_eyJ[A-Za-z0-9_=-]{40,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-?){3,6}"),
    ("an age key", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    ("a Yandex key", rf"AQVN{W}{{30,}}|y[0-3]_{W}{{40,}}|t1\.[A-Z0-9a-z_-]+={{0,2}}\.{W}{{60,}}"),
    ("a Buildkite token", rf"bk[auc]{{2}}_{T}{{20,}}"),
    ("a CircleCI token", rf"CCI(?:PAT|PRJ)_{T}{{10,}}_{T}{{20,}}"),
    ("a HubSpot token", r"pat-(?:na|eu)\d-[0-9a-f-]{30,}"),
    ("a Mapbox token", r"sk\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("a Sourcegraph token", rf"sg[pd]_(?:{H}{{16}}_|local_)?{H}{{32,}}"),
    ("a Harness token", rf"pat\.{W}{{20,}}\.{W}{{20,}}\.{W}{{16,}}"),
    ("an Azure client secret", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{28,}"),
    ("an Okta token", r"(?<![\w-])00[A-Za-z0-9_-]{38}[A-Za-z0-9](?![\w-])"),
    ("a Zapier or Make hook", rf"hooks\.zapier\.com/hooks/catch/\d+/{T}+|hook\.[a-z0-9]+\.make\.com/{T}{{20,}}"),
    ("a signed token (JWT)", r"ey[IJ][A-Za-z0-9_=-]{8,600}\.ey[A-Za-z0-9_=-]{4,}(?:\.[A-Za-z0-9_=+/-]*)?"),
    ("an encrypted token (JWE)", rf"eyJ{W}{{10,600}}\.{W}*(?:\.{W}{{8,}}){{3}}"),
    ("a private key", r"b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=]{40,}"),
    ("a private key", r"MII[A-Za-z][A-Za-z0-9+/]{1,3}[AI]BAAKC[A-Za-z0-9+/=]{40,}"),
    ("a private key", r"MII[A-Za-z][A-Za-z0-9+/]{2,4}IBADANBgkqhkiG9w0BAQEFAASC[A-Za-z0-9+/=]{20,}"),
    ("a private key", r"(?:MH[cQ]CAQEEI|MIGHAgEAMBMGByqGSM49|MC4CAQAwBQYDK2Vw)[A-Za-z0-9+/=]{20,}"),
    ("a Slack webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"),
    ("a Discord webhook", r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{10,}/[A-Za-z0-9_-]{20,}"),
    ("a Teams webhook", r"(?:webhook\.office\.com|logic\.azure\.com)[:/][^\s\"'<>)]{40,}"),
    ("a SoftLayer address", rf"api\.softlayer\.com/(?:soap|rest)/v[\d.]+/{H}{{64}}"),
    ("a Telegram bot address", rf"api\.telegram\.org/bot\d{{6,}}:{W}{{20,}}"),
    ("an IFTTT address", r"maker\.ifttt\.com/trigger/[\w-]{1,60}(?:/json)?/with/key/[\w-]{22,43}"),
)


MAKER_KINDS: Final = tuple(kind for kind, _ in _MAKERS)
"""In the order of the groups of `compile_makers()`, which count from 1."""


@cache
def compile_makers() -> re.Pattern[str]:
    """Compiles the pattern of all makers, when the first text with a long run needs it, because that is slow."""
    return re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(f"({pattern})" for _, pattern in _MAKERS) + ")")


MASKED: Final = late(r"(?i)x{5,}|0{8,}|\*{3}|example|placeholder|(?-i:your|Your|YOUR)|redacted|dummy|sample")

# The mark of an unknown maker: short lower-case words, `_` or `-`, then a long random tail.
UNKNOWN_MAKER: Final = late(
    r"(?<![A-Za-z0-9/.])(?!(?:msg|toolu|req|run|evt|cus|sub|pi|in|ch|acct|price|prod|file|asst|thread|call|chatcmpl|resp"
    r"|org|usr|user|obj|doc|item|job|batch|id)[_-])"
    r"[a-z][a-z0-9]{1,11}(?:[_-][a-z0-9]{1,8}){0,4}[_-](?P<tail>[A-Za-z0-9]{24,})(?![A-Za-z0-9])"
)

PRIVATE_BLOCK: Final = late(
    r"-----\s?BEGIN (?:[A-Z0-9]+ )*(?:PRIVATE KEY|SECRET KEY|PGP MESSAGE SECRET)(?: BLOCK)?\s?-----(?P<body>(?:[^-]"
    r"|-(?!----)){0,4000})|PuTTY-User-Key-File-\d[\s\S]{0,2000}?Private-Lines:(?P<putty>[\s\S]{20,200})"
)
PUBLIC_BLOCK: Final = late(
    r"-----BEGIN (?:CERTIFICATE(?: REQUEST)?|(?:RSA |EC |DSA )?PUBLIC KEY|PGP PUBLIC KEY BLOCK|PGP SIGNATURE"
    r"|PGP SIGNED MESSAGE|SSH SIGNATURE|X509 CRL|PKCS7|CMS|DH PARAMETERS)-----[\s\S]{0,16000}?-----END [A-Z0-9 ]+-----"
)
# Long strings that are public by nature. Nothing inside them counts as a random string.
PUBLIC: Final = late(
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
    r"|(?<![A-Za-z0-9+/=_-])(?:user:)?(?:user|svac|apikey)_1[0-9a-hjkmnp-tv-z]{25}\b"  # ids of the memory server
)
