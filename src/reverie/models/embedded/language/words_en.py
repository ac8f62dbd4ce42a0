"""English speech formulas: acts and facts together."""

from __future__ import annotations

from reverie.models.embedded.language.acts_en import ACTS
from reverie.models.embedded.language.facts_en import FACTS
from reverie.models.embedded.language.lexicon import Lexicon

LEXICON = Lexicon(**ACTS, **FACTS)
