"""What a model is shown of a letter for the program: the same in a sentence, with what it can do about it."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from reverie.agents.messages.message import Letter
from reverie.agents.messages.structured import (
    IdleNotification,
    IdleState,
    PermissionRequest,
    PermissionResponse,
    PlanApprovalResponse,
    ShutdownRequest,
    ShutdownResponse,
    Structured,
)


def in_words(letter: Letter, message: Structured) -> Letter:
    """The letter as the model is to read it."""
    return replace(letter, text=_text(letter.sender, message))


def _text(sender: str, message: Structured) -> str:
    match message:
        case ShutdownRequest(_, reason):
            return (
                f"{sender} asks you to end{_because(reason)}. If you have something to finish first, send {sender} "
                '{"type": "shutdown_response", "approve": false, "reason": "..."}; '
                "otherwise finish your turn."
            )
        case ShutdownResponse(approve, _, reason):
            return f"{sender} {'ends' if approve else 'does not end yet'}{_because(reason)}."
        case PlanApprovalResponse(approve, _, feedback):
            verdict = "Your plan is approved: carry it out." if approve else "Your plan is not approved: send another."
            return f"{verdict} {feedback}".strip()
        case IdleNotification(IdleState.AVAILABLE, text):
            return f"{sender} is idle. It said last:\n\n{text}" if text else f"{sender} is idle."
        case IdleNotification(IdleState.INTERRUPTED, text):
            return f"{sender} was interrupted{_because(text)}."
        case IdleNotification(_, text):
            return f"{sender} has failed{_because(text)}."
        case PermissionRequest(_, tool, _, reason):
            return f"{sender} asks whether it may use {tool}{_because(reason)}."
        case PermissionResponse(_, allow, reason):
            return f"{sender} {'allows' if allow else 'refuses'} it{_because(reason)}."
        case _:
            assert_never(message)


def _because(reason: str) -> str:
    said = " ".join(reason.split()).rstrip(".")
    return f": {said}" if said else ""


def marked_cut_off(text: str) -> str:
    """An answer that was cut off, as another agent or the user reads it."""
    return f"{text}\n\n[This answer is not complete: it was cut off at a limit of the model.]"
