"""`reverie permissions`: rules with their origin, and the removal of saved ones."""

from __future__ import annotations

import json

from tests.cli.conftest import Command


def test_rules_are_listed_with_their_origin_and_saved_ones_removed(reverie: Command) -> None:
    assert "There are no rules." in reverie("permissions").stdout
    local = reverie.work / ".reverie/settings.local.toml"
    local.parent.mkdir()
    local.write_text('[permissions]\n# often\nallow = [\n    "Bash(npm test:*)",\n    "Edit(docs/**)", # pages\n]\n')
    (local.parent / "settings.toml").write_text('[permissions]\ndeny = ["Bash(git push:*)"]\n')
    listed = json.loads(reverie("permissions", "list", "--json").stdout)["rules"]
    assert [(one["kind"], one["rule"]) for one in listed] == [
        ("deny", "Bash(git push:*)"),
        ("allow", "Bash(npm test:*)"),
        ("allow", "Edit(docs/**)"),
    ]
    assert listed[1]["where"].endswith("settings.local.toml:3") and "not trusted" in listed[1]["ignored"]

    reverie("trust", "--yes")
    assert "settings.local.toml:4" in reverie("permissions").stdout
    done = reverie("permissions", "remove", "Bash(npm test:*)")
    assert "Removed Bash(npm test:*)" in done.stdout
    assert local.read_text() == '[permissions]\n# often\nallow = [\n    "Edit(docs/**)", # pages\n]\n'
    assert "trusted, until" in reverie("trust", "--status").stdout, "our own change does not end the trust"
    assert "no saved rule" in reverie("permissions", "remove", "Bash(git push:*)", code=2).stderr
