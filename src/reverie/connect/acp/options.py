"""What an editor can choose for a session: how permissions are handled, and the model."""

from __future__ import annotations

from acp import schema

from reverie.models.catalogue import Catalogue
from reverie.models.registry import EMBEDDED, model_access
from reverie.permissions.policy import PolicyMode
from reverie.session.session import Session

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
            current_value=session.model_name,
            options=[
                schema.SessionConfigSelectOption(value=name, name=name.partition(":")[2] or name)
                for name in list_models(session)
            ],
        ),
    ]


def list_models(session: Session) -> list[str]:
    """The current model, those of the catalogue for whose provider there is a key, and the embedded one."""
    settings = session.parts.settings
    access, catalogue = model_access(settings), Catalogue.load(settings.catalogue.files)
    keys = {"anthropic": access.anthropic_key or access.anthropic_token, "openai": access.openai_key}
    facts = ((name, catalogue.facts(name).provider) for name in catalogue.names)
    known = [f"{provider}:{name}" for name, provider in facts if keys.get(provider)]
    return list(dict.fromkeys([session.model_name, *known, EMBEDDED]))
