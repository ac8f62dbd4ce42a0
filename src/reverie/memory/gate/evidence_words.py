"""Word lists for judging evidence: words without content, words of assent, of dates and of numbers, in many languages.

Data only.
"""

from __future__ import annotations

import re
from typing import Final

from reverie.memory.secrets.shapes import words

EMPTY_WORDS: Final = words(
    """the user users wants want wanted prefers prefer preferred asked asks ask said says say told tells likes like
    needs need should must always never only when whenever use uses used using make makes made sure keep keeps
    kept also any all each every more most other others such than then there here it its this that these those
    who what which whose while during before after until because since so as at by for from in into of off on
    onto or out over per to under up with without within and but if not no nor do does did don dont doesn doesnt
    didn didnt isn isnt aren arent won wont can cannot cant could would may might will shall be been being am is
    are was were has have had having get gets got go goes going gone let lets one thing things way ways very
    just even still already really please new old current currently now today future memory remember note noted
    apply applies applied application reason why how rule rules general generally instead rather project
    projects repo repository work works working session conversation he she him her his hers they them their we
    us our you your me my mine himself herself about regarding via etc eg ie der die das den dem des ein eine
    einen einem einer und oder aber nicht kein keine ist sind war waren wird werden soll sollen muss müssen kann
    können will wollen immer nie nur bei mit von vom zu zum zur für auf in im an am aus nach vor seit bis als
    wie wenn dass weil auch noch schon sehr hier dort er sie es wir ihr ich mir mich uns sein ihre ihren nutzer
    nutzerin benutzer möchte bitte künftig jetzt el la los las un una unos unas y o pero no es son era está
    están ser estar de del al a en con por para que como cuando siempre nunca solo sólo se su sus lo le les mi
    me yo tú usted nosotros usuario usuaria quiere prefiere más le la les un une des et ou mais ne pas est sont
    de du au aux en dans avec pour par que qui comme quand toujours jamais seulement il elle nous vous je on se
    sa son ses utilisateur veut préfère plus o a os as um uma e ou mas não é são de do da em no na com por para
    que como quando sempre nunca só se seu sua il lo gli i un uno una e o ma non è sono di del della in con per
    che come quando sempre mai solo si suo sua de het een en of maar niet is zijn van in op met voor door dat
    die als altijd nooit alleen"""
)
"""Words that any memory may have, whatever was said; CJK has none, its pairs are judged as they are."""

_ASSENT_WORDS: Final = """
    yes yep yeah yup ya yess ok okay okey k sure right correct exactly precisely agreed agree absolutely
    definitely indeed perfect great good nice fine sounds true please do it go ahead proceed works lgtm deal
    that thats this so is way ship keep doing approved confirmed 👍 👌 ✅ 💯 love ja jo genau richtig stimmt
    passt gut super perfekt einverstanden klar gerne mach machen so bitte korrekt sí si claro correcto exacto
    vale bien perfecto hazlo adelante acuerdo dale oui ouais exact exactement parfait bien accord vas-y vas
    fais faites sim certo exato perfeito isso pode concordo beleza sì esatto giusto perfetto va bene certo да
    ага точно верно хорошо конечно давай согласен tak dobrze dokładnie zgoda evet tamam doğru ja prima klopt
    akkoord"""

ASSENT: Final = words(_ASSENT_WORDS) | words(
    """好 好的 对 對 是 是的 可以 没错 沒錯 行 嗯 同意 就这样 没问题 对的 确认 好啊 当然 はい ええ うん そうです
    その通り その通りです お願いします いいです 了解 承知しました それで オッケー 네 예 응 맞아요 맞습니다
    좋아요 그래요 그렇게 해주세요 동의"""
)
"""Words of which a message may consist that only says yes."""
FILLER: Final = words(
    """and then but very much so thanks thank you btw the a an to me pls plz und dann doch danke y muchas et merci"""
)
FIRM_ASSENT: Final = frozenset(
    one.replace("_", " ")
    for one in words(
        """yes yes_please yep yeah yep_go yes_go yes_do yes_do_that agree agreed exactly exactly_right correct
        right thats_right that's_right thats_correct that's_correct precisely absolutely perfect do_that do_it
        sounds_good i_agree ja ja_bitte genau genau_so richtig stimmt passt einverstanden sí sí_por_favor
        exacto correcto de_acuerdo claro oui exactement d'accord parfait c'est_ça sim exato isso concordo sì
        esatto va_bene d'accordo да точно верно tak dokładnie evet 好的 对 是的 没错 可以 就这样 没问题 はい
        その通りです それでお願いします 了解です 네 맞아요"""
    )
)
"""How a longer message begins that says yes to what was said before it."""

NUMBER_WORDS: Final = {
    word: str(number)
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

DATE_WORDS: Final = re.compile(
    r"(?i)\b(?:mon|tues?|wednes|thurs?|fri|satur|sun)(?:day)?s?\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept"
    r"|oct|nov|dec)(?:[a-z]*)\b"
    r"|\b(?:today|tonight|tomorrow|yesterday|week|weeks|month|months|year|years|quarter|fortnight|sprint|day"
    r"|days|eod|eow|eom|q[1-4])\b"
    r"|\b\d{1,2}(?:st|nd|rd|th)\b|\b\d{1,2}[./]\d{1,2}\b"
    r"|\b(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|heute|morgen|gestern|übermorgen|woche"
    r"|wochen|monat|jahr|tag|tagen)\w*"
    r"|\b(?:januar|februar|märz|mai|juni|juli|oktober|dezember|jänner)\b"
    r"|\b(?:lunes|martes|miércoles|jueves|viernes|sábado|domingo|hoy|mañana|ayer|semanas?|mes|meses|años?|días?|enero"
    r"|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)\b"
    r"|\b(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|demain|hier|aujourd|semaine|mois|jour|jours"
    r"|janvier|février|mars|avril|juin|juillet|août|octobre|décembre)\b"
    r"|\b(?:segunda|terça|quarta|quinta|sexta|hoje|amanhã|ontem|lunedì|martedì|mercoledì|giovedì|venerdì|sabato"
    r"|domenica|oggi|domani|ieri|settimana|mese)\b"
    r"|[年月日号號]|[周週]|今天|明天|昨天|后天|星期|礼拜|今日|明日|昨日|来週|先週|今週|曜|월|일|주|내일|오늘|어제"
)

NEGATIONS: Final = words(
    """not no never none nor without dont don doesnt doesn isnt isn arent aren cannot cant wont won stop avoid
    forbid forbidden nicht kein keine keinen nie niemals ohne no nunca jamás sin ne pas jamais sans não nunca
    sem non mai senza niet geen nooit zonder не нет никогда без"""
)

LANGUAGES: Final = {
    "en": words("the is are and with for not should when after before because must on of to in a"),
    "de": words("der die das und ist nicht mit für bei auf von wenn ein eine den dem wird soll"),
    "es": words("el la los las y es no con para por que de del en una un se cuando"),
    "fr": words("le la les et est pas avec pour que de du des une un dans sur il elle"),
    "pt": words("o os as e é não com para por que de do da em uma um se quando"),
    "it": words("il lo gli e è non con per che di del della una un quando nel"),
    "nl": words("de het een en is niet met voor van op dat die bij als wordt"),
}
"""The commonest words of a language: enough to tell two of them apart."""
