"""What somebody said changes the value it is about, wherever memory has it, and nothing else."""

from __future__ import annotations

import pytest

from reverie.offline.consolidate.changing import swaps, takes_the_place
from reverie.offline.consolidate.opposites import corrected
from reverie.offline.consolidate.swapping import applied, is_sound
from reverie.text.words import content_terms


def changed(statement: str, said: str, about: str = "") -> str:
    return applied(statement, swaps(statement, said, content_terms(about)))


@pytest.mark.parametrize(
    ("statement", "said", "becomes"),
    [
        ("The gateway listens on port 8080.", "No, the gateway listens on 9090 now.", "on port 9090."),
        ("Deploys happen on Tuesdays.", "We deploy on Wednesdays now.", "on Wednesdays."),
        ("The staging database is called orion.", "The staging database was renamed to lyra.", "called lyra."),
        ("Reviews are done by Anna.", "Anna left, Tom does the reviews now.", "by Tom."),
        ("Backups run at 02:00.", "Backups run at 03:30 these days, not 02:00.", "at 03:30."),
        ("Invoices are due within 30 days.", "Payment terms for invoices are 14 days now.", "14 days."),
        ("The upload limit is 10 MB.", "We raised the upload limit to 25 MB.", "25 MB."),
        ("Python 3.10 is the minimum.", "Actually the minimum is Python 3.12 since summer.", "Python 3.12 is"),
        ("Tests live in /tests.", "Tests moved to /spec.", "in /spec."),
        ("Docs are at docs.acme.example.", "The docs moved to handbook.acme.example.", "handbook.acme.example."),
        (
            "Wir nutzen Jenkins für die Builds.",
            "Jenkins nutzen wir nicht mehr, seit Mai ist es GitLab.",
            "nutzen GitLab",
        ),
        ("La caché es Memcached.", "Ya no usamos Memcached, ahora es Valkey.", "es Valkey."),
        ("We chat on Slack.", "We don't use Slack any more, it's Mattermost.", "on Mattermost."),
        ("Carla approves releases.", "Releases are approved by Deniz now, not Carla.", "Deniz approves"),
        ("The stand-up is at 9:30.", "The stand-up moved to 10:00.", "at 10:00."),
        ("A sprint lasts two weeks.", "Sprints are three weeks long now.", "three weeks."),
        ("The herd has 48 cows.", "It's 42 cows, we sold six.", "42 cows."),
        ("Parts are cleaned with acetone.", "We switched from acetone to ethanol.", "with ethanol."),
        ("Samples go to building 3, room 12.", "Samples go to building 7 now, not building 3.", "building 7, room 12."),
        ("Owner of billing: Sam.", "Priya owns billing since October, Sam moved to search.", "billing: Priya."),
        ("Cron jobs run in Europe/Madrid time.", "It's Europe/Lisbon, not Europe/Madrid.", "Europe/Lisbon time."),
        ("Install with `npm ci`.", "Use pnpm, not npm, in this repo.", "`pnpm ci`"),
        ("Der Lagerleiter heißt Bruno.", "Bruno ist nicht mehr da, jetzt ist es Frau Ems.", "heißt Frau Ems."),
    ],
)
def test_a_value_gives_way_to_another_of_its_kind(statement: str, said: str, becomes: str) -> None:
    assert becomes in changed(statement, said), changed(statement, said)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("The library holds 4,000 books.", "It's 42 cows, we sold six."),
        ("Card acquiring moves from Nordpay to PayHarbor on 2025-10-06.", "We left Nordpay, it's Stripe now."),
        ("Serial console 115200 8N1.", "It's SF7 with ADR on for all valves now."),
        ("One values file per environment.", "The webhook listens on 8443, not 443, in all environments."),
        ("The printer in room 3 is slow.", "The meeting is at 10:00 now."),
        ("Anna leads the design team.", "Bernd prefers dark mode now."),
        ("Shipper tenants move in waves from 2025-11-03.", "I moved to persistent work trees on 2026-01-26."),
        ("Nested flags: at most one level.", "We shipped the demo with an empty level 3."),
        ("Every card has six icons.", "Rebasing work tree 2 failed, we are stuck now."),
        ("Justification was added to `publish.json`.", "The prefix /opt/run.sh is not added to it."),
    ],
)
def test_what_is_about_something_else_stays(statement: str, said: str) -> None:
    assert changed(statement, said) == statement


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("round refunds down... then corrected herself: round UP", "round refunds UP"),
        ("put it before the header, no wait, after the header", "put it after the header"),
        ("use the red cable, scratch that, use the blue one", "use the blue one"),
        (
            "close the gate at over 40 cm, no wait, over 35 cm, the dyke is old",
            "close the gate at over 35 cm, the dyke is old",
        ),
        ("feed at 5 kg and rest at 5 kg, make that at 6 kg", "at 6 kg"),
        ("nothing to correct here", "nothing to correct here"),
    ],
)
def test_who_corrects_themselves_is_understood(said: str, meant: str) -> None:
    assert corrected(said) == meant


def test_what_is_given_up_or_has_moved_replaces_the_statement() -> None:
    assert takes_the_place("We don't do squash merges any more.", "Squash merges for feature branches.")
    assert takes_the_place("The tiles moved to S3.", "Map tiles are served from the share.")
    assert not takes_the_place("The tests moved to Bazel.", "Tests need the mock on port 12111.")
    assert not takes_the_place("The tiles are slow.", "Map tiles are served from the share.")


def test_a_value_is_not_swapped_while_another_that_hangs_on_it_has_changed() -> None:
    statement = "Interviews are recorded at 44.1 kHz mono."
    for said, sound in (
        ("We record at 96 kHz stereo now, not 44.1", False),
        ("We record at 96 kHz now, not 44.1", True),
    ):
        changes = swaps(statement, said, frozenset())
        assert [one.new for one in changes] == ["96"]
        assert is_sound(statement, said, changes) is sound
