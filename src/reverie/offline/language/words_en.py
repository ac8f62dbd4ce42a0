"""English speech formulas: acts and facts together."""

from __future__ import annotations

from reverie.offline.language.acts_en import ACTS
from reverie.offline.language.facts_en import FACTS
from reverie.offline.language.lexicon import Lexicon

LEXICON = Lexicon(**ACTS, **FACTS)
