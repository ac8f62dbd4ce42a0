"""German speech formulas."""

from __future__ import annotations

from reverie.offline.language.lexicon import Lexicon, pattern

_ROLE = (
    r"(?:\w+(?:beraterin|berater|ärztin|arzt|pflegerin|pfleger|leiterin|leiter|entwicklerin|entwickler|lehrerin"
    r"|lehrer|anwältin|anwalt|meisterin|meister|ingenieurin|ingenieur"
    r"|wissenschaftlerin|wissenschaftler|in|er|ist|istin|ent|entin|ant|antin|or|loge|login|frau|mann)|Chef|Koch"
    r"|Köchin|Azubi|Einsteiger|Anfänger|Neuling|Arzt|Ärztin|Hebamme|\w+(?:amme|wart|wirt|hilfe|kraft))"
)

LEXICON = Lexicon(
    standing=pattern(
        r"\b(?:künftig|zukünftig|in zukunft|ab (?:jetzt|sofort|heute)|von nun an|von jetzt an|fortan"
        r"|grundsätzlich|generell|prinzipiell)\b",
        r"\bjedes mal\b|\bimmer wenn\b|\bwenn du (?!fertig|zeit|willst|kannst|magst)|\bnie wieder\b|\bhör auf\b"
        r"|\bregel\s?:|\bin (?:allen|jedem|jeder) \w+, d(?:ie|en|as) du\b|\bstandardmäßig\b",
    ),
    habit=pattern(r"\b(?:immer|nie|niemals|stets|nur noch)\b"),
    forbids=pattern(
        r"\b(?:nicht|nie|niemals|kein|keine|keinen|keinerlei) (?:mehr )?\w+|\blass(?:e)? (?:das|die|den|es)\b"
        r"|\bbitte (?:nicht|nie|kein)|\bohne (?:zu fragen|rückfrage)\b"
    ),
    displeased=pattern(
        r"^(?:nein|nee|ne|puh|halt|stopp|moment|oje|au|hm+|och|bitte)\b|\bso (?:nicht|kann)\b|\bdas (?:war"
        r"|ist) (?:nicht|falsch|zu)\b|\bnicht das, was\b|\brückgängig\b|\bschon wieder\b|\bmach das zurück\b|!!"
    ),
    prefers=pattern(
        r"\bich (?:möchte|will|mag|bevorzuge|hätte gern|brauche)\b|\blieber\b|\bstatt(?:dessen)?\b|\banstatt\b"
        r"|\bbitte (?:immer|nur)\b"
    ),
    permits=pattern(
        r"\bdu (?:darfst|kannst|musst nicht)\b|\bohne (?:zu fragen|nachzufragen|rückfrage)\b"
        r"|\bfrag(?:e)? (?:mich )?(?:vorher|erst|zuerst)\b|\berst (?:fragen|zeigen)\b|\bzeig mir (?:erst|vorher"
        r"|zuerst)\b"
    ),
    our_way=pattern(
        r"\bbei uns\b|\bin (?:diesem|unserem|dieser|unserer) \w+|\bwir (?:nutzen|verwenden|schreiben|arbeiten"
        r"|machen|benutzen) (?:nur|immer|nie|ausschließlich|hier)\b|\bunsere? (?:regel|konvention|vorgabe"
        r"|richtlinie)"
    ),
    keep_on=pattern(
        r"\b(?:genau so|weiter so|mach (?:das )?weiter so|so (?:immer|weiter)|behalt(?:e)? das bei"
        r"|das ist genau)\b|\bso (?:will|möchte|mag) ich (?:das|es)\b|\bimmer so\b"
    ),
    approves=pattern(
        r"\b(?:genau (?:so|richtig)|perfekt|sehr gut|richtig so|gut, dass du|gute (?:idee|entscheidung|wahl)"
        r"|passt genau|prima)\b|^genau\b"
    ),
    praises=pattern(
        r"\b(?:war|ist) (?:genau )?(?:richtig|die richtige)\b|\bgenau richtig\b|\bgut, dass du\b"
        r"|\bgute (?:entscheidung|wahl)\b"
    ),
    written=pattern(
        r"\b(?:steht (?:schon|doch|ja|auch)|schon (?:dokumentiert|aufgeschrieben)|wie (?:immer|gesagt|üblich))\b"
    ),
    demands=pattern(r"\b(?:muss|müssen|soll|sollen|braucht|brauchen|darf nicht|dürfen nicht|nur)\b"),
    complains=pattern(
        r"^(?:warum |wieso )?(?:du |machst du |fragst du )(?:immer|ständig|dauernd|schon wieder|\w+ (?:immer|ständig))"
    ),
    reason=pattern(r"\b(?:weil|denn|da (?:wir|sonst|die|das|der)|sonst|damit|deshalb|deswegen|wegen|grund|nämlich)\b"),
    people=pattern(
        r"\bich lese (?:das|es|sie|die)\b|\b(?:team|kund\w+|chef\w*|kolleg\w+|prüfer\w*|mandant\w+|leser\w*"
        r"|niemand|alle|jeder|er|sie|wir"
        r"|die \w+)\b (?:\w+ )?(?:liest|lesen|will|wollen|braucht|brauchen|erwartet|erwarten|schaut|kann|können"
        r"|versteht|verstehen|nutzt|nutzen|mag|hat|haben|prüft|sieht|muss|müssen)\b"
    ),
    manner=pattern(
        r"\bbitte (?:kürzer|länger|ausführlicher|einfacher|knapper|genauer)\b|\b[\wäöüß -]{3,40} bitte (?:auf|in"
        r"|ohne|mit|immer|nur|als|im|per|nie|kein\w*)\b"
        r"|^bitte (?:\w+ ){0,3}(?:auf|in|ohne|mit|nur|als|kurz|immer|nie)\b|\bohne fachchinesisch\b"
        r"|\bauf (?:deutsch|englisch)\b"
    ),
    solved=pattern(r"\b(?:lag (?:daran|am)|hat sich erledigt|geht wieder|behoben|mein fehler|fehlalarm)\b"),
    mishap=pattern(
        r"\b(?:letzte[ns]? (?:mal|woche|monat|jahr)|einmal|neulich|damals|schon (?:mal|zweimal)|ausgefallen"
        r"|kaputt|verloren|beschwert|gekostet)\b"
    ),
    once=pattern(
        r"\b(?:nur (?:dieses|diesmal|heute|einmal)|dieses eine mal|diesmal|ausnahmsweise|gerade|im moment"
        r"|momentan|vorerst|erst mal|fürs erste)\b"
    ),
    supposed=pattern(
        r"\b(?:angenommen|nehmen wir an|stell dir vor|was wäre|hypothetisch|gedankenspiel|falls wir)\b"
        r"|\bwenn (?:wir|ich|das) .*\b(?:wäre|würde|hätte|würden|wären)\b"
    ),
    mocked=pattern(
        r"🙃|🙄|\bna (?:toll|super|klasse|prima)\b|\bwas soll schon schiefgehen\b|\bja klar\b|^(?:oh|ach) (?:toll"
        r"|super|wie schön)\b"
    ),
    quoted=pattern(
        r"\b(?:kollege|kollegin|jemand|chef|artikel|buch|mail|e-mail|brief|kunde|kundin|anleitung|doku|internet"
        r"|er|sie) (?:sagt|sagte|meint|meinte|schreibt|schrieb|behauptet|will)\b|\bin der (?:mail|e-mail"
        r"|anleitung|doku) st(?:and|eht)\b|\blaut \w+|[:：]\s*“…”"
    ),
    asks=pattern(
        r"^(?:wer|was|wie|wo|wann|warum|wieso|weshalb|welche[rsnm]?|ist|sind|hast|kannst|soll|sollen|gibt|habt"
        r"|können|darf)\b"
    ),
    requests=pattern(
        r"^(?:bitte |ok,? |dann |jetzt |und |auch )*(?:schreib|mach|änder|füg|lösch|zeig|erklär|erstell|bau|prüf"
        r"|such|find|führ|starte|benenn|verschieb|übersetz|korrigier|setz|zieh|nimm|gib|schau|sieh|öffne|lies"
        r"|teste|stell|räum|pack|sortier|rechne|fasse?|hilf|ersetz|entfern|aktualisier|installier|commit"
        r"|push)\w*\b",
        r"\b(?:kannst|könntest|würdest) du\b",
    ),
    filler=pattern(
        r"^(?:(?:ok|okay|danke|super|gut|prima|ja|nein|hallo|hi|alles klar|passt|perfekt|klar|schön|genau|so"
        r"|vielen|dank|guten|morgen|tag)[,.! ]*)+$"
    ),
    person=pattern(
        rf"\bich bin (?:eine?|die|der|hier |neue?r? |hier die |hier der )?\s?(?:[\wäöüß-]+ ){{0,3}}?{_ROLE}\b",
        r"\bich (?:arbeite|leite|unterrichte|studiere|betreue|manage|führe) (?:als|bei|in|im|seit|die|das|den|ein"
        r"|an|mit|eine)\b|\bich komme aus (?:der|dem)\b|\bich bin (?:neu|blind|farbenblind|gehörlos|zuständig"
        r"|verantwortlich|rot-grün)",
        r"\bseit (?:\d+|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|zwanzig) (?:jahren|monaten)\b"
        r"|\b(?:\d+|zwei|drei|fünf|zehn|zwölf|zwanzig) jahre (?:erfahrung|\w+)\b",
        r"\b(?:für mich|mir) (?:ist )?(?:\w+ )?(?:ganz )?neu\b|\bist (?:für mich )?neu\b|\bnoch nie (?:mit|etwas"
        r"|was|benutzt|gemacht|programmiert)\b|\bzum ersten mal\b|\b(?:kurz )?zu mir\s?:|\bmein (?:hintergrund"
        r"|beruf|job)\b|\bmeine (?:rolle|ausbildung|muttersprache)\b",
    ),
    not_person=pattern(r"\bich bin (?:mir|fertig|gleich|nicht sicher|müde|wieder|dabei|gerade|kurz|unsicher|dran)\b"),
    goal=pattern(
        r"\bmein ziel\b|\bich (?:will|möchte) (?:\w+ )?(?:lernen|verstehen|selbst)\b|\bich (?:lerne"
        r"|bereite mich)\b|\bich will das selbst\b"
    ),
    event=pattern(
        r"(?:freeze|launch|release|termin|frist|abgabe|prüfung|audit|demo|vorführung|lieferung|messe|umzug"
        r"|migration|wartung|urlaub|besuch|schulung|einführung|start|treffen|präsentation|stichtag|verhandlung"
        r"|eröffnung|abnahme)\w*\b",
        r"\b(?:beginnt|startet|endet|verschoben|verschiebt|geplant|fällig|liefern|geht live|abgeschaltet|gesperrt"
        r"|geschlossen|läuft aus|eingeführt|übernimmt|zieht um)\b",
    ),
    limit=pattern(r"\b(?:bis|ab|vor|spätestens|seit|zum|am)\b"),
    parked=pattern(
        r"\b(?:liegt|ist|wurde|bleibt) (?:\w+ )?(?:auf eis|pausiert|zurückgestellt|ausgesetzt|gestrichen|abgesagt)\b"
    ),
    bound_by=pattern(
        r"\b(?:dsgvo|iso \d+|zertifiziert|prüfer|aufsicht|gesetz|vertrag|datenschutz"
        r"|behörde)\w*\b(?=.*\b(?:deshalb|weil|muss|müssen|verlangt|fordert|darum)\b)"
    ),
    on_hold=pattern(
        r"\b(?:auf eis|pausiert|zurückgestellt|gesperrt|eingefroren|ausgesetzt|liegt auf eis|verschoben auf)\b"
    ),
    decided=pattern(
        r"\bwir (?:haben )?(?:uns )?(?:entschieden|beschlossen|geeinigt|bleiben bei|steigen um|wechseln|ersetzen"
        r"|stellen um|haben entschieden)\b|\b(?:haben|hat) .{0,40}\b(?:entschieden|beschlossen)\b"
        r"|\bdas ist (?:entschieden|beschlossen)\b"
    ),
    owns=pattern(
        r"\b[A-ZÄÖÜ]\w+ (?:übernimmt|leitet|betreut|ist zuständig|ist verantwortlich|macht jetzt"
        r"|hat .{0,20}übernommen|verlässt|ist weg)\b|\bzuständig (?:ist|für)\b"
    ),
    trouble=pattern(r"\b(?:ausfall|störung|vorfall|panne|datenverlust|ausgefallen|sicherheitslücke)\b"),
    place=pattern(
        r"\b(?:wiki|board|dashboard|kanal|ordner|laufwerk|ablage|tracker|portal|intranet|ticketsystem|tabelle"
        r"|seite|archiv|handbuch|postfach|bereich)\b"
    ),
    located=pattern(
        r"\b(?:liegt|liegen|steht|stehen|findest|findet|ist|sind|hängt|landen|kommen|gehört|gehören|wird|werden"
        r"|schau|dort|verwaltet|gepflegt)\b"
    ),
    remember=pattern(
        r"\b(?:merk dir|merke dir|bitte merken|denk daran|vergiss nicht|notier(?:e)? dir|speicher(?:e)? dir)\b"
    ),
    tells=pattern(r"\b(?:zur info|übrigens|nebenbei|kurz zu mir|zur kenntnis|noch was|wichtig|hinweis|fyi)\b"),
    forget=pattern(
        r"\bvergiss\b|\bkannst du .*\bvergessen\b|\b(?:lösch|streich|entfern)e?\b.*\b(?:notiz|regel|erinnerung"
        r"|eintrag|gedächtnis)\b"
    ),
    not_forget=pattern(r"\bvergiss (?:bitte )?(?:nicht|das nicht)\b|\bnicht vergessen\b|\bhabe? vergessen\b"),
    changed=pattern(
        r"\b(?:verschoben|geändert|umgezogen|nicht mehr|stattdessen|jetzt|neu(?:er|e|es)?|gewechselt|ersetzt"
        r"|übernommen|übernimmt|ab sofort|seit (?:heute|montag|gestern)|doch nicht|früher|änderung)\b"
    ),
    harks_back=pattern(
        r"\bich (?:habe dir )?(?:gesagt|sagte)\b|\bdie sache mit\b|\bmeine regel\b|\bwas ich (?:dir )?gesagt\b"
    ),
    excepts=pattern(r"\b(?:ausnahme|außer|ausgenommen|nur (?:bei|für|wenn|über|unter)|es sei denn|gilt nicht)\b"),
)
