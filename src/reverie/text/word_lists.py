"""Word tables: function words per language, number words, and negations. Data only; all of it folded, like the words
that `words` returns."""

from __future__ import annotations

from typing import Final

from reverie.text.folding import fold, folded_set

STOP_WORDS: Final = {
    "en": folded_set(
        """a about an and any are as at be been but by can could did do does for from get had has have he her him
        his how i if in into is it its just let me my no not of off ok on or our out please she should
        so some than thanks that the their them then there these they this those to too up us very was
        we were what when where which who whose why will with would yes you your"""
    ),
    "de": folded_set(
        """der die das den dem des ein eine einen einem einer und oder aber nicht kein keine ist sind war waren
        wird werden soll sollen muss müssen kann können will wollen immer nie nur bei mit von vom zu
        zum zur für auf in im an am aus nach vor seit bis als wie wenn dass weil auch noch schon sehr
        hier dort er sie es wir ihr ich mir mich uns sein ihre ihren möchte bitte künftig jetzt alle
        alles bist da dann dein denn dich dir du etwas haben hast ihm kannst mein ob sich so um unser
        unsere unter wann warum was welche welchem welchen welcher welches wem wer wo wofür woher
        wohin worin worum"""
    ),
    "es": folded_set(
        """el la los las un una unos unas y o pero no es son era está están ser estar de del al a en con por para
        que como cuando siempre nunca solo sólo se su sus lo le les mi me yo tú usted nosotros más
        antes cómo cual cuál cuales cuándo cuanto cuántos desde donde dónde ella ellos entre eres esa
        ese eso esta estamos este esto fue muy nos nuestra nuestro nuestros porque qué quien quién si
        sin sobre somos soy tu uno ya"""
    ),
    "fr": folded_set(
        """le la les un une des et ou mais ne pas est sont de du au aux en dans avec pour par que qui comme quand
        toujours jamais seulement il elle nous vous je on se sa son ses plus"""
    ),
    "pt": folded_set(
        """o a os as um uma e ou mas não é são de do da em no na com por para que como quando sempre nunca só se
        seu sua"""
    ),
    "it": folded_set(
        """il lo gli i un uno una e o ma non è sono di del della in con per che come quando sempre mai solo si
        suo sua"""
    ),
    "nl": folded_set("""de het een en of maar niet is zijn van in op met voor door dat die als altijd nooit alleen"""),
}
"""The function words of each language."""
FUNCTION_WORDS: Final = STOP_WORDS["en"]
GENERAL_WORDS: Final = folded_set(
    """user users wants want wanted prefers prefer preferred asked asks ask said says say told tells likes like
    needs need must always never only whenever use uses used using make makes made sure keep keeps kept
    also all each every more most other others such here while during before after until because since
    onto over under without within nor don dont doesn doesnt didn didnt isn isnt aren arent won wont
    cannot cant may might shall being having gets got go goes going gone lets one thing things way ways
    even still already really new old current currently now today future memory remember note noted apply
    applies applied application reason rule rules general generally instead rather project projects repo
    repository work works working session conversation hers mine himself herself regarding via etc eg ie
    nutzer nutzerin benutzer usuario usuaria quiere prefiere utilisateur veut préfère"""
)
"""Words that any memory may have."""
EMPTY_WORDS: Final = GENERAL_WORDS.union(*STOP_WORDS.values())
"""All words that carry no meaning. CJK has none: its pairs of characters are all compared."""

NUMBER_WORDS: Final = {
    fold(word): str(number)
    for number, spelled in {
        1: "one once eins eine uno una un une 一",
        2: "two twice both zwei dos deux due dois 二 两",
        3: "three drei tres trois tre três 三",
        4: "four vier cuatro quatre quattro quatro 四",
        5: "five fünf cinco cinq cinque 五",
        6: "six sechs seis sei 六",
        7: "seven sieben siete sept sette sete 七",
        8: "eight acht ocho huit otto oito 八",
        9: "nine neun nueve neuf nove 九",
        10: "ten zehn diez dix dieci dez 十",
        11: "eleven elf once onze undici",
        12: "twelve dozen zwölf doce douze dodici doze 十二",
        14: "fourteen fortnight",
        15: "fifteen fünfzehn quince quinze quindici",
        20: "twenty zwanzig veinte vingt venti vinte 二十",
        30: "thirty dreißig treinta trente trenta trinta",
        100: "hundred hundert cien cent cento cem 百",
        1000: "thousand tausend mil mille 千",
    }.items()
    for word in spelled.split()
    if word not in {"eine", "una", "un", "une", "once"}  # articles, or another number elsewhere
}

NEGATIONS: Final = folded_set(
    """not no never none nor without dont don doesnt doesn isnt isn arent aren cannot cant wont won stop avoid
    forbid forbidden nicht kein keine keinen nie niemals ohne no nunca jamás sin ne pas jamais sans não
    nunca sem non mai senza niet geen nooit zonder не нет никогда без"""
)
