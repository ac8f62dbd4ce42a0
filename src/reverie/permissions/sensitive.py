"""Files that hold keys and passwords by convention: reading one is worth a question, searching a tree passes them over.

A courtesy, not a sandbox: names are all it knows. It never looks inside a file.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

SENSITIVE_NAMES: tuple[str, ...] = (
    ".ssh",
    ".gnupg",
    ".azure",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".git-credentials",
    ".env",
    ".env.local",
    ".env.*.local",
    ".env.dev",
    ".env.development",
    ".env.prod",
    ".env.production",
    ".env.staging",
    ".env.test",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "*.pem",
    "*.p12",
    "*.pfx",
    "*.kdbx",
)
"""Names of files and folders, wherever they are, with the wildcards of .gitignore."""

SENSITIVE_PATHS: tuple[str, ...] = (
    ".aws/credentials",
    ".config/gcloud",
    ".docker/config.json",
    ".kube/config",
    "etc/shadow",
    "etc/gshadow",
    "proc/*/environ",
)
"""Ends of paths: only in this folder does the name mean a secret."""


def is_sensitive(path: Path) -> bool:
    """Whether the path names, or lies inside, something that by its name holds secrets. Case does not matter."""
    parts = [part.lower() for part in path.parts]
    if any(fnmatchcase(part, name) for part in parts for name in SENSITIVE_NAMES):
        return True
    for known in SENSITIVE_PATHS:
        wanted = known.split("/")
        for start in range(len(parts) - len(wanted) + 1):
            if all(fnmatchcase(part, name) for part, name in zip(parts[start:], wanted, strict=False)):
                return True
    return False
