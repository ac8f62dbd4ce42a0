"""Word lists for judging evidence: words of assent and of dates, in many languages."""

from __future__ import annotations

import re
from typing import Final

from reverie.text.folding import word_set

_ASSENT_WORDS: Final = """
    yes yep yeah yup ya yess ok okay okey k sure right correct exactly precisely agreed agree absolutely
    definitely indeed perfect great good nice fine sounds true please do it go ahead proceed works lgtm deal
    that thats this so is way ship keep doing approved confirmed 👍 👌 ✅ 💯 love ja jo genau richtig stimmt
    passt gut super perfekt einverstanden klar gerne mach machen so bitte korrekt sí si claro correcto exacto
    vale bien perfecto hazlo adelante acuerdo dale oui ouais exact exactement parfait bien accord vas-y vas
    fais faites sim certo exato perfeito isso pode concordo beleza sì esatto giusto perfetto va bene certo да
    ага точно верно хорошо конечно давай согласен tak dobrze dokładnie zgoda evet tamam doğru ja prima klopt
    akkoord"""

ASSENT: Final = word_set(_ASSENT_WORDS) | word_set(
    """好 好的 对 對 是 是的 可以 没错 沒錯 行 嗯 同意 就这样 没问题 对的 确认 好啊 当然 はい ええ うん そうです
    その通り その通りです お願いします いいです 了解 承知しました それで オッケー 네 예 응 맞아요 맞습니다
    좋아요 그래요 그렇게 해주세요 동의"""
)
"""The words of a message that only says yes."""
FILLER: Final = word_set(
    """and then but very much so thanks thank you btw the a an to me pls plz und dann doch danke y muchas et merci"""
)
FIRM_ASSENT: Final = frozenset(
    one.replace("_", " ")
    for one in word_set(
        """yes yes_please yep yeah yep_go yes_go yes_do yes_do_that agree agreed exactly exactly_right correct
        right thats_right that's_right thats_correct that's_correct precisely absolutely perfect do_that do_it
        sounds_good i_agree ja ja_bitte genau genau_so richtig stimmt passt einverstanden sí sí_por_favor
        exacto correcto de_acuerdo claro oui exactement d'accord parfait c'est_ça sim exato isso concordo sì
        esatto va_bene d'accordo да точно верно tak dokładnie evet 好的 对 是的 没错 可以 就这样 没问题 はい
        その通りです それでお願いします 了解です 네 맞아요"""
    )
)
"""The beginning of a longer message that says yes to the message before it."""

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
