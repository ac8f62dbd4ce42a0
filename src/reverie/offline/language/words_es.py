"""Spanish speech formulas."""

from __future__ import annotations

from reverie.offline.language.lexicon import Lexicon, pattern

LEXICON = Lexicon(
    standing=pattern(
        r"\b(?:de ahora en adelante|a partir de (?:ahora|hoy)|en adelante|en el futuro|por regla general"
        r"|en general|por defecto|como norma|desde ahora)\b",
        r"\bcada vez que\b|\bsiempre que\b|\bcuando (?:hagas|escribas|abras|toques|me (?:des|muestres|enseñes)"
        r"|cambies|crees|subas|uses)\b|\bnunca más\b|\bdeja de \w+[aei]r\b|\bregla\s?:|\bla próxima vez\b"
        r"|\ben tod[oa]s l[oa]s .{2,30} que (?:hagas|escribas|abras)\b",
    ),
    habit=pattern(r"\b(?:siempre|nunca|jamás)\b"),
    forbids=pattern(
        r"\bno (?:me |lo |la |los |las |nos )?(?:pongas|hagas|uses|toques|cambies|escribas|subas|borres|añadas"
        r"|mezcles|metas|vuelvas|quiero|envíes|des|traduzcas|ejecutes|\w+(?:es|as))\b|\bnunca\b|\bevita\b"
        r"|\bdeja de\b"
    ),
    displeased=pattern(
        r"^(?:no|uf|ay|oye|espera|para|alto|hm+|por favor|ojo)\b|\beso no\b|\bno es lo que\b|\botra vez\b"
        r"|\bte (?:dije|pedí)\b|\bdeshaz\b|\brevierte\b|!!|\bestá mal\b"
    ),
    prefers=pattern(
        r"\b(?:prefiero|me gusta|quiero|quisiera|preferimos|queremos)\b|\ben (?:vez|lugar) de\b|\bmejor\b"
        r"|\bsiempre en\b"
    ),
    permits=pattern(
        r"\bpuedes\b.*\bsin preguntar\b|\bsin preguntar(?:me)?\b|\bpregúntame (?:antes|primero)\b"
        r"|\bantes de .{2,40} (?:pregunta|avísame|enséñame|consúltame)\b|\benséñame (?:antes|primero)\b"
    ),
    our_way=pattern(
        r"\bes (?:la )?norma\b|\bpor norma\b|\bse (?:les|le) trata\b|\baquí (?:se|siempre|nunca|lo)\b"
        r"|\ben (?:este|nuestro|esta|nuestra) (?:equipo|proyecto|laboratorio"
        r"|empresa|oficina|grupo|despacho|cocina)\b|\bnosotros (?:siempre|nunca|solo|sólo)\b|\bnuestra (?:norma"
        r"|regla|convención|política)\b"
    ),
    keep_on=pattern(
        r"\b(?:sigue así|hazlo siempre así|siempre así|así (?:lo quiero|me gusta|es como)|mantenlo así|continúa así)\b"
    ),
    approves=pattern(
        r"\b(?:exacto|perfecto|justo así|muy bien|buena (?:idea|decisión|elección)|bien hecho|menos mal que"
        r"|hiciste bien)\b"
    ),
    praises=pattern(
        r"\b(?:fue|es|era) (?:justo )?(?:lo correcto|la decisión correcta|acertado)\b|\bhiciste bien\b"
        r"|\bmenos mal que\b|\bbuena decisión\b"
    ),
    written=pattern(r"\b(?:ya está (?:escrito|documentado)|como siempre|como dije|ya lo dice)\b"),
    demands=pattern(r"\b(?:debe|deben|tiene que|tienen que|hay que|necesita|necesitan|solo|sólo)\b"),
    complains=pattern(r"^(?:por qué )?(?:siempre|otra vez) (?:me|haces|preguntas|pones)\b"),
    reason=pattern(r"\b(?:porque|ya que|puesto que|para que|si no|por eso|debido a|así lo|así los|pues|así que)\b"),
    people=pattern(
        r"\b(?:el|la|los|las|nuestr[oa]s?) (?:equipo|cliente|clientes|jefe|jefa|gestoría|notario|notaria|lector"
        r"|lectores|usuarios|gente|dirección|auditor\w*)\b (?:\w+ )?(?:lee|leen|quiere|quieren|necesita|necesitan"
        r"|usa|usan|espera|edita|editan|revisa|revisan|pide|piden|no)\b"
    ),
    manner=pattern(
        r"\b(?:siempre|solo|sólo) en \w+\b|\bpor favor,? (?:sin|en|con)\b|^(?:sin|en|con) \w+,? por favor\b"
    ),
    solved=pattern(r"\b(?:resulta que|ya funciona|arreglado|falsa alarma|culpa mía)\b"),
    mishap=pattern(
        r"\b(?:la última vez|el (?:mes|año) pasado|una vez|ya nos pasó|perdimos|se cayó|rompió|se quej|nos costó"
        r"|tumbó)\w*"
    ),
    once=pattern(
        r"\b(?:solo (?:por )?esta vez|sólo (?:por )?esta vez|esta vez|por ahora|de momento|por el momento"
        r"|ahora mismo|solo hoy|por hoy)\b"
    ),
    supposed=pattern(
        r"\b(?:supón|supongamos|imagina|imaginemos|hipotéticamente|qué pasaría si|digamos que)\b"
        r"|\bsi (?:\w+ ){0,3}\w+(?:ara|iera|áramos|iéramos|ásemos)\b"
    ),
    mocked=pattern(
        r"🙃|🙄|\bqué podría salir mal\b|\bsí,? claro\b|\b(?:ah|oh),? (?:genial|perfecto|estupendo)\b"
        r"|\blo que faltaba\b"
    ),
    quoted=pattern(
        r"\b(?:compañero|compañera|colega|alguien|jefe|artículo|libro|correo|cliente|manual|tutorial|blog|él"
        r"|ella) (?:dice|dijo|opina|escribió|pone|quiere que)\b|\bsegún\b|[:：]\s*“…”"
    ),
    asks=pattern(r"^¿|^(?:qué|quién|cómo|cuándo|dónde|por qué|cuál|cuáles|es|son|hay|debería|podemos)\b.*\?"),
    requests=pattern(
        r"^(?:por favor,? |ok,? |vale,? |ahora |y |luego |también )*(?:cambia|haz|crea|añade|agrega|escribe"
        r"|corrige|arregla|ejecuta|corre|muestra|muéstra\w*|explica|explíca\w*|borra|elimina|renombra|mueve"
        r"|revisa|busca|abre|genera|actualiza|convierte|traduce|prueba|sube|instala|vuelve|pon|quita|dame|dime"
        r"|ordena|resume|compara|mira|lee|prepara)\b",
        r"\b(?:puedes|podrías) (?!siempre)\w+",
    ),
    filler=pattern(
        r"^(?:(?:ok|vale|gracias|perfecto|genial|bien|sí|no|hola|listo|muy|claro|entendido|muchas|buenos|días"
        r"|de acuerdo)[,.!¡ ]*)+$"
    ),
    person=pattern(
        r"\b(?:era|fui|trabajaba (?:de|como))\b.*\bahora (?:llevo|soy|trabajo|estoy|me dedico|hago)\b"
        r"|\bvoy aprendiendo\b",
        r"\bsoy (?:el |la |un |una |el único |la única )?(?!el que|la que|consciente|yo)[\wáéíóúñ]+(?:\w| ){0,40}",
        r"\b(?:trabajo|trabajé) (?:como|en|de|con|para)\b|\b(?:llevo|tengo) (?:\d+|un|dos|tres|cuatro|cinco|seis"
        r"|siete|ocho|nueve|diez|doce|quince|veinte) (?:años|meses)\b|\b(?:dirijo|coordino|enseño|estudio"
        r"|gestiono|lidero) (?:el|la|un|una|los|las)\b",
        r"\bvengo de\b|\bnunca he (?:usado|escrito|tocado|programado|trabajado|hecho)\b"
        r"|\bes (?:la )?(?:mi )?primera vez\b|\bpara mí es nuevo\b|\bmi (?:formación|profesión|trabajo|puesto"
        r"|experiencia|idioma)\b|\bsobre mí\s?:",
    ),
    not_person=pattern(r"\bsoy (?:consciente|un desastre|tonto)\b|\bestoy (?:cansad|list|segur|de vuelta|perdid)"),
    goal=pattern(
        r"\bmi objetivo\b|\bquiero (?:aprender|entender|poder)\b|\bestoy (?:aprendiendo|estudiando|preparando)\b"
    ),
    event=pattern(
        r"\b(?:lanzamiento|entrega|plazo|auditoría|auditoria|reunión|demo|presentación|congelación|migración"
        r"|visita|inspección|examen|juicio|feria|evento|mantenimiento|despliegue|cierre|vacaciones|apertura"
        r"|publicación|fecha|inauguración)\b",
        r"\b(?:empieza|comienza|termina|acaba|sale|salimos|lanzamos|entregamos|se (?:mueve|aplaza|retrasa|pospone"
        r"|cierra)|vence|presentamos|cierra|entra en vigor|apaga)\b",
    ),
    limit=pattern(r"\b(?:hasta|antes de(?:l)?|para el|desde|a partir de|como muy tarde|a más tardar)\b"),
    parked=pattern(
        r"\b(?:está|queda|sigue) (?:en pausa|parad[oa]|aparcad[oa]|congelad[oa]|suspendid[oa]|cancelad[oa])\b"
    ),
    bound_by=pattern(
        r"\b(?:rgpd|iso \d+|certificad|auditor|regulador|la ley|contrato|normativa)\w*\b(?=.*\b(?:por eso|porque"
        r"|exige|obliga|debe|hay que)\b)"
    ),
    on_hold=pattern(r"\b(?:en pausa|parado|aparcado|congelado|suspendido|bloqueado|aplazado|pospuesto)\b"),
    decided=pattern(
        r"\b(?:hemos decidido|decidimos|acordamos|hemos acordado|está decidido|nos quedamos con|vamos a (?:migrar"
        r"|cambiar|dejar|sustituir|reemplazar))\b"
    ),
    owns=pattern(
        r"\b[A-ZÁÉÍÓÚ]\w+ (?:se encarga|lleva|lidera|dirige|toma el relevo|asume|es (?:el|la) responsable|se va"
        r"|dejó)\b|\bresponsable de\b"
    ),
    trouble=pattern(r"\b(?:incidente|caída|fallo grave|brecha|fuga|pérdida de datos|se cayó)\b"),
    place=pattern(
        r"\b(?:tablero|panel|wiki|canal|carpeta|unidad|hoja|página|espacio|archivo|portal|intranet|proyecto"
        r"|rastreador|documento|repositorio)\b"
    ),
    located=pattern(
        r"\b(?:está|están|vive|viven|se (?:guarda|registra|guardan|registran|encuentra|encuentran|publican|suben)"
        r"|van? (?:en|a)|queda|mira|consulta|míralo|ahí|allí)\b"
    ),
    remember=pattern(r"\b(?:recuerda|acuérdate|ten en cuenta|no olvides|toma nota|apunta|guarda en (?:tu )?memoria)\b"),
    tells=pattern(r"\b(?:por cierto|para que (?:sepas|ajustes|lo sepas)|te cuento|ojo|aviso|para tu información)\b"),
    forget=pattern(
        r"\b(?:olvida|olvídate|puedes olvidar)\b|\b(?:borra|elimina|quita) (?:la|esa|el|ese) (?:nota|regla"
        r"|recuerdo|memoria|entrada)\b"
    ),
    not_forget=pattern(r"\bno (?:te )?olvides\b|\bse me olvidó\b|\bno olvid"),
    changed=pattern(
        r"\b(?:ya no|desde (?:hoy|ahora|ayer)|ahora|se (?:movió|ha movido|mueve|aplazó|ha aplazado|retrasa|cambió"
        r"|ha cambiado)|cambio|nuev[oa]|en (?:vez|lugar) de|pasa a|reemplaz\w+|sustituy\w+|queda en)\b"
    ),
    harks_back=pattern(r"\b(?:te dije|lo que dije|lo de(?:l)?|mi regla|te pedí)\b"),
    excepts=pattern(r"\b(?:excepto|excepción|salvo|menos|a menos que|solo (?:para|si|cuando)|no aplica)\b"),
)
