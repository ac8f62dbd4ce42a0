"""The one list of files that hold keys and passwords by their name: for paths, for globs and for searches.

Reading one is worth a question, and searching a tree passes them over. A courtesy, not a sandbox: names are all it
knows. It never looks inside a file.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase, translate
from pathlib import Path

SENSITIVE_NAMES: tuple[str, ...] = (
    # folders, with all that is in them
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store"),
    # what programs read at their start
    *(".env", ".env.*", "*.env", ".envrc"),
    *(".netrc", "_netrc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".pypirc", ".npmrc", ".htpasswd", ".dockercfg"),
    *(".git-credentials", ".vault-token", ".boto", ".s3cfg", ".terraformrc", ".credentials", ".credentials.*"),
    *("credentials.json", "credentials.toml", "credentials.yml", "credentials.yaml", "credentials.xml"),
    *("credentials.csv", "credentials.tfrc.json", "application_default_credentials.json", "client_secret*.json"),
    *("service-account*.json", "service_account*.json", "serviceaccount*.json", "*-service-account.json"),
    *("secrets.json", "secrets.toml", "secrets.yml", "secrets.yaml", "secrets.ini", "secrets.properties", ".secrets"),
    *("*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json"),
    # keys and where keys are kept
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "id_xmss*", "*_rsa", "*_dsa", "*_ecdsa", "*_ed25519"),
    *("ssh_host_*_key", "*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.jks", "*.keystore", "*.kdb", "*.kdbx"),
    *("*.ovpn", "*.keychain", "*.keychain-db", "wallet.dat", "key3.db", "key4.db", "logins.json", "login data"),
    # what was typed
    ".*_history",
)
"""Names of files and folders, wherever they are, with the wildcards of .gitignore."""

SENSITIVE_PATHS: tuple[str, ...] = (
    *(".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/git/credentials", ".config/rclone"),
    *(".docker/config.json", ".cargo/credentials", ".gem/credentials", ".m2/settings.xml", ".composer/auth.json"),
    *(".gradle/gradle.properties", ".codex/auth.json", ".local/share/keyrings", "library/keychains"),
    *("etc/shadow*", "etc/gshadow*", "etc/ssl/private", "run/secrets", "proc/*/environ", "proc/*/mem"),
)
"""Ends of paths: only in this folder does the name mean a secret."""

PUBLIC_NAMES: tuple[str, ...] = (
    *("*.pub", "*.example", "*.sample", "*.template", "*.tmpl", "*.dist"),
    *("cacert.pem", "ca-bundle.pem", "ca-certificates.pem", "cert.pem", "chain.pem", "fullchain.pem", "public.pem"),
    *("example.env", "sample.env", "template.env"),
)
"""Names that would fit above but show a form, or are meant for everybody."""


class _Names:
    """Many patterns as one question, quick enough to be asked for every file of a tree."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        wild = [pattern for pattern in patterns if "*" in pattern]
        self._exact = frozenset(patterns) - set(wild)
        self._ends = tuple(pattern[1:] for pattern in wild if pattern.rfind("*") == 0)
        self._begins = tuple(pattern[:-1] for pattern in wild if pattern.find("*") == len(pattern) - 1)
        others = [p for p in wild if p[1:] not in self._ends and p[:-1] not in self._begins]
        self._others = re.compile("|".join(map(translate, others)) or "(?!)")

    def fit(self, name: str) -> bool:
        return (
            name in self._exact
            or name.endswith(self._ends)
            or name.startswith(self._begins)
            or self._others.match(name) is not None
        )


_SENSITIVE, _PUBLIC = _Names(SENSITIVE_NAMES), _Names(PUBLIC_NAMES)
_PATHS = tuple(tuple(path.split("/")) for path in SENSITIVE_PATHS)
_LAST = _Names(tuple({path[-1] for path in _PATHS}))


def is_sensitive_name(name: str) -> bool:
    """Whether a file or folder of this name holds secrets wherever it is. Case does not matter."""
    name = name.lower()
    return _SENSITIVE.fit(name) and not _PUBLIC.fit(name)


def may_be_sensitive(name: str) -> bool:
    """Whether a file of this name holds secrets in some folder: a quick question before `is_sensitive`."""
    return is_sensitive_name(name) or _LAST.fit(name.lower())


def is_sensitive(path: Path) -> bool:
    """Whether the path names, or lies inside, something that by its name holds secrets. Case does not matter."""
    parts = [part.lower() for part in path.parts]
    if any(map(is_sensitive_name, parts)):
        return True
    for wanted in _PATHS:
        for start in range(len(parts) - len(wanted) + 1):
            if all(fnmatchcase(part, name) for name, part in zip(wanted, parts[start:], strict=False)):
                return True
    return False


def sensitive_below(folder: Path) -> tuple[str, ...]:
    """Patterns, bound to `folder`, for the rest of a listed path that begins above it: in /etc that is `/shadow*`."""
    parts = [part.lower() for part in Path(os.path.realpath(folder)).parts]
    found: list[str] = []
    for wanted in _PATHS:
        for size in range(1, len(wanted)):
            ending = parts[-size:]
            if len(ending) == size and all(map(fnmatchcase, ending, wanted)):
                found.append("/" + "/".join(wanted[size:]))
    return tuple(found)
