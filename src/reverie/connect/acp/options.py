"""What an editor can choose for a session: how permissions are handled, and the model."""

from __future__ import annotations

from collections.abc import Iterator

from acp import schema

from reverie.models.catalogue import Catalogue
from reverie.models.registry import EMBEDDED, model_access
from reverie.permissions.policy import PolicyMode
from reverie.session.session import Session
from reverie.settings import Settings

MODE, MODEL = "mode", "model"
_MODES = {
    PolicyMode.ASK: ("Ask", "Ask before a change."),
    PolicyMode.ACCEPT_EDITS: ("Accept edits", "Allow edits of files in this folder; ask for everything else."),
    PolicyMode.ACCEPT_ALL: ("Accept all", "Allow everything. Your deny rules still count."),
    PolicyMode.READ_ONLY: ("Read only", "Refuse every change."),
}


def list_modes(session: Session) -> schema.SessionModeState:
    """The permission modes."""
    return schema.SessionModeState(
        current_mode_id=session.gate.mode.value,
        available_modes=[
            schema.SessionMode(id=mode.value, name=name, description=about) for mode, (name, about) in _MODES.items()
        ],
    )


def list_options(session: Session) -> list[schema.SessionConfigOptionSelect | schema.SessionConfigOptionBoolean]:
    """The same modes and the models, for editors that show options."""
    modes = [
        schema.SessionConfigSelectOption(value=mode.value, name=name, description=about)
        for mode, (name, about) in _MODES.items()
    ]
    current = session.model_name
    names = dict.fromkeys([current, *_list_models(session.parts.settings)])
    return [
        schema.SessionConfigOptionSelect(
            id=MODE,
            name="Permissions",
            category="mode",
            type="select",
            current_value=session.gate.mode.value,
            options=modes,
        ),
        schema.SessionConfigOptionSelect(
            id=MODEL,
            name="Model",
            category="model",
            type="select",
            current_value=current,
            options=[
                schema.SessionConfigSelectOption(value=name, name=name.partition(":")[2] or name) for name in names
            ],
        ),
    ]


def _list_models(settings: Settings) -> Iterator[str]:
    """The models of the catalogue for whose provider there is a key, and the embedded one."""
    access, catalogue = model_access(settings), Catalogue.load(settings.catalogue.files)
    keys = {"anthropic": access.anthropic_key or access.anthropic_token, "openai": access.openai_key}
    for name in catalogue.names:
        provider = catalogue.facts(name).provider
        if keys.get(provider):
            yield f"{provider}:{name}"
    yield EMBEDDED
