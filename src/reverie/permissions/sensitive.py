"""The one list of names of files that hold keys and passwords: for paths, for globs and for searches.

Reading such a file asks first, and a search skips it. This is a courtesy, not a sandbox: only names count.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase, translate
from pathlib import Path

from reverie.text.patterns import late

_DATA = ("yaml", "yml", "json", "toml", "ini", "conf", "cfg", "txt", "xml", "properties", "csv", "env")
_KEEPING = (
    *(*_DATA, "json5", "jsonc", "ejson", "plist", "tsv", "lst", "list", "log", "dat", "bin", "db", "sqlite", "sqlite3"),
    *("enc", "gpg", "pgp", "asc", "age", "sops", "kdbx", "zip", "gz", "tgz", "tar", "7z", "sh", "bash", "zsh", "fish"),
    *("ps1", "bat", "cmd", "sql", "tf", "xls", "xlsx", "ods", "doc", "docx", "odt", "pdf", "rtf", "local", "out"),
)
"""Endings of files that hold values. `secrets.py` and `secrets.md` are ordinary source code and docs."""

# Each also with something added: .netrc.old, .env-local, .npmrc~.
_STARTING_NAMES = (
    *(".env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".pypirc", ".npmrc", ".htpasswd"),
    *(".dockercfg", ".git-credentials", ".vault-token", ".vault_pass", ".vault-pass", ".vault_password", ".boto"),
    *(".vault-password", ".s3cfg", ".terraformrc", ".credentials", ".claude.json", ".databrickscfg", ".smbcredentials"),
    *(".msmtprc", ".fetchmailrc", ".xauthority", ".zhistory", ".histfile", ".history", "fish_history", "kubeconfig"),
    *(".password", ".passwd", ".token", "vault_pass", "vault-pass", "vault_password", "vault-password"),
)

SENSITIVE_NAMES: tuple[str, ...] = (
    # folders, with their content
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", ".oci", ".kaggle", ".aliyun", "secrets"),
    *(".bash_sessions", ".zsh_sessions"),
    # files that programs read when they start
    *_STARTING_NAMES,
    *(f"{name}.*" for name in _STARTING_NAMES if name.startswith(".")),
    *("*.env", "credentials.json", "credentials.toml", "credentials.yml", "credentials.yaml", "credentials.xml"),
    *("credentials.csv", "credentials.tfrc.json", "application_default_credentials.json", "client_secret*.json"),
    *("*service-account*.json", "*service_account*.json", "*serviceaccount*.json"),
    *("*service-account*.y*ml", "*service_account*.y*ml"),
    *(f"secret{many}.{kind}" for many in ("", "s") for kind in _DATA),
    *(".secrets", ".secrets.*", ".secret", "password.txt", "*.token"),
    *("*.kubeconfig", "*-kubeconfig", "kaggle.json", "*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json"),
    # keys and stores of keys
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "id_xmss*", "*_rsa", "*_dsa", "*_ecdsa", "*_ed25519"),
    *("ssh_host_*_key", "*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdb", "*.kdbx"),
    *("*.ovpn", "*.keychain", "*.keychain-db", "wallet.dat", "key3.db", "key4.db", "logins.json", "login data"),
    # histories of typed commands
    *(".*_history", ".*_history-*", ".*_history.*", "consolehost_history.txt"),
)
"""Names of files and folders at any depth, with the wildcards of .gitignore. A glob that may match one counts too."""

VARIANT_NAMES: tuple[str, ...] = (
    *(f"{name}{ending}" for name in _STARTING_NAMES for ending in (".*", "-*", "_*", "~*")),
    *(f"{name}.{kind}" for name in ("secret", "secrets", "passwords") for kind in _KEEPING),
    *(f"{name}.*.{kind}" for name in ("secret", "secrets") for kind in _DATA),
    *(f"*{mark}secret{many}.{kind}" for mark in "-_." for many in ("", "s") for kind in _DATA),
    *(f"secret{many}{mark}*.{kind}" for mark in "-_" for many in ("", "s") for kind in _DATA),
)
"""More names, too many to compare with every glob: a glob counts only if it matches such a file on disk."""

_OF_A_PROCESS = (
    *("environ", "mem", "maps", "smaps*", "numa_maps", "map_files", "pagemap", "fd", "fdinfo", "cmdline", "auxv"),
    *("stack", "syscall", "task", "root", "cwd", "exe"),
)

SENSITIVE_PATHS: tuple[str, ...] = (
    *(".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/git/credentials", ".config/rclone"),
    *(".config/glab-cli", ".config/doctl", ".config/hcloud", ".config/sops", "sops/age", "age/keys.txt"),
    *(".docker/config.json", "containers/auth.json", ".cargo/credentials", ".gem/credentials", ".m2/settings.xml"),
    *(".composer/auth.json", "composer/auth.json", ".gradle/gradle.properties", ".codex/auth.json"),
    *("huggingface/token", "huggingface/stored_tokens", ".huggingface/token", ".fly/config.yml", ".dbt/profiles.yml"),
    *(".local/share/keyrings", "library/keychains", ".local/state/*/history*", ".local/share/*/history*"),
    *("zsh/history", "bash/history", "nushell/history.*"),
    *("etc/shadow*", "etc/gshadow*", "etc/ssl/private", "run/secrets", "/proc/kcore", "/dev/mem", "/dev/kmem"),
    *(f"/proc/*/{name}" for name in _OF_A_PROCESS),
)
"""Ends of paths: the name means a secret only in this folder. With a leading slash: only at the root."""

_COPY_WORDS = (
    *("bak", "bkp", "bck", "back", "backup", "old", "orig", "original", "save", "saved", "copy", "prev", "previous"),
    *("tmp", "temp", "swp", "swo", "swn", "new", "dpkg-old", "dpkg-dist", "rpmsave", "rpmnew", "txt", "local"),
)
_COPY = late(
    rf"(?:~\d*~?|\#|[.\-_ ](?:{'|'.join(_COPY_WORDS)})[\d.\-_]*|[.\-_]\d[\d.\-_:t]*z?| ?\(\d+\)| - copy| copy)\Z"
)
_COPY_ENDS = (*"~#)-_.z0123456789", *_COPY_WORDS)
_MOST_COPIES = 4

COPIES = "{" + ",".join(("~*", "[#]", " *", "[._-][0-9]*", *(f"[._-]{word}*" for word in _COPY_WORDS))) + "}"
"""What a copy adds to a name, as one glob with alternatives, for programs that support them."""

PUBLIC_NAMES: tuple[str, ...] = (
    *("*.pub", "*.example", "*.sample", "*.template", "*.tmpl", "*.dist"),
    *("cacert.pem", "ca-bundle.pem", "ca-certificates.pem", "cert.pem", "chain.pem", "fullchain.pem", "public.pem"),
    *("example.env", "sample.env", "template.env", ".env.dist", ".secrets.baseline"),
)
"""Names that match the lists above, but are templates or public."""


class _Names:
    """Many patterns in one test that is quick enough for every file of a tree."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        wild = [pattern for pattern in patterns if "*" in pattern or "[" in pattern]
        self._exact = frozenset(patterns) - set(wild)
        self._ends = tuple(pattern[1:] for pattern in wild if pattern.rfind("*") == 0 and "[" not in pattern)
        self._begins = tuple(
            pattern[:-1] for pattern in wild if pattern.find("*") == len(pattern) - 1 and "[" not in pattern
        )
        others = [p for p in wild if p[1:] not in self._ends and p[:-1] not in self._begins]
        self._others = re.compile("|".join(map(translate, others)) or "(?!)")

    def fit(self, name: str) -> bool:
        return (
            name in self._exact
            or name.endswith(self._ends)
            or name.startswith(self._begins)
            or self._others.match(name) is not None
        )


_SENSITIVE, _PUBLIC = _Names((*SENSITIVE_NAMES, *VARIANT_NAMES)), _Names(PUBLIC_NAMES)
_PATHS = tuple(tuple(name or "/" for name in path.split("/")) for path in SENSITIVE_PATHS)
_LAST = _Names(tuple({path[-1] for path in _PATHS}))


def is_sensitive_name(name: str) -> bool:
    """Whether a file or folder of this name holds secrets in any folder. Case does not matter."""
    name = name.lower()
    if _PUBLIC.fit(name):
        return False
    if _SENSITIVE.fit(name):
        return True
    original = _without_copy_marks(name)
    return original != name and _SENSITIVE.fit(original) and not _PUBLIC.fit(original)


def _without_copy_marks(name: str) -> str:
    """The name of the original of a copy: `server.key` for `server.key.bak.2`, `.env` for `.#.env`."""
    for mark in (".#", "#", "copy of "):
        name = name.removeprefix(mark)
    for _ in range(_MOST_COPIES):
        # The quick test first: this runs for every file of a tree.
        found = _COPY.search(name) if name.endswith(_COPY_ENDS) else None
        if not found or not found.start():
            break
        name = name[: found.start()]
    return name


def may_be_sensitive(name: str) -> bool:
    """Whether a file of this name holds secrets in some folder: a quick test before `is_sensitive`."""
    return is_sensitive_name(name) or _LAST.fit(name.lower())


def is_sensitive(path: Path) -> bool:
    """Whether a name in the path means that it holds secrets. Case does not matter."""
    return any(map(is_sensitive_name, path.parts)) or is_sensitive_place(path)


def is_sensitive_place(path: Path) -> bool:
    """Whether the file has a name that means a secret in its folder only."""
    parts = [part.lower() for part in path.parts]
    for end in (number for number, part in enumerate(parts, 1) if _LAST.fit(part)):
        for wanted in _PATHS:
            if len(wanted) <= end and all(map(fnmatchcase, parts[end - len(wanted) : end], wanted)):
                return True
    return False


def sensitive_below(folder: Path) -> tuple[str, ...]:
    """Returns patterns for the rest of each listed path that begins above `folder`: in /etc that is `/shadow*`."""
    parts = [part.lower() for part in Path(os.path.realpath(folder)).parts]
    found: list[str] = []
    for wanted in _PATHS:
        for size in range(1, len(wanted)):
            ending = parts[-size:]
            if len(ending) == size and all(map(fnmatchcase, ending, wanted)):
                found.append("/" + "/".join(wanted[size:]))
    return tuple(found)
