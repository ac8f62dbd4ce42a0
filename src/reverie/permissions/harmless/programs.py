"""The ordinary programs of the second list: their options, their operands, and the files whose content they show.

The tables are written by hand from the manuals. They leave out options that write, run something or read names from
elsewhere. Git, version queries and `cd` have their own modules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from reverie.permissions.harmless.sed import check_script
from reverie.permissions.rules import NotReadOnly, clip
from reverie.permissions.shell.options import Arguments, Options, check_format, read_arguments
from reverie.permissions.shell.paths import check_contents
from reverie.permissions.shell.programs import kinds, names, short
from reverie.permissions.shell.words import Word
from reverie.quick import dataclass

SHOWN_VARIABLES = frozenset({"HOME", "USER", "LOGNAME", "SHELL", "PATH", "PWD", "LANG", "TZ"})
"""What `printenv` may show: none of them holds a secret."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The words that name files whose content is shown. `recursive`: folders are read with all that is in them."""

    words: tuple[Word, ...] = ()
    recursive: bool = False


Operands = Callable[[Arguments], Opened]


def _open_all(given: Arguments) -> Opened:
    return Opened(given.operands)


def _open_nothing(_given: Arguments) -> Opened:
    return Opened()


def _take_none(given: Arguments) -> Opened:
    if given.operands:
        raise NotReadOnly(f"{clip(given.operands[0].raw)} may set something")
    return Opened()


def _uniq(given: Arguments) -> Opened:
    if len(given.operands) > 1 or any(word.globs for word in given.operands):
        raise NotReadOnly("the second file of uniq is written")
    return Opened(given.operands)


def _date(given: Arguments) -> Opened:
    if any(not word.text.startswith("+") or word.globs for word in given.operands):
        raise NotReadOnly("date sets the clock, unless its operand begins with +")
    for word in given.operands:
        check_format("date", word.text)
    return Opened()


def _sleep(given: Arguments) -> Opened:
    if len(given.operands) != 1 or not re.fullmatch(r"\d{1,2}(\.\d+)?s?", given.operands[0].text):
        raise NotReadOnly("sleep is known as harmless only for less than 100 seconds")
    return Opened()


def _plain_text(given: Arguments) -> Opened:
    if any(word.globs for word in given.operands):
        raise NotReadOnly("it holds a glob where text is expected (quote it)")
    return Opened()


def _printf(given: Arguments) -> Opened:
    for word in given.operands[:1]:
        check_format("printf", word.text)
        if re.search(r"%[^A-Za-z%]*n", word.text):
            raise NotReadOnly("printf %n sets a variable")
    return _plain_text(given)


def _diff(given: Arguments) -> Opened:
    return Opened(given.operands, recursive=True)  # it compares the files of two folders even without -r


def _sed(given: Arguments) -> Opened:
    scripts = [value for option, value in given.values if option in ("-e", "--expression")]
    files = given.operands
    if not scripts:
        if not files:
            raise NotReadOnly("sed has no script")
        scripts, files = [files[0]], files[1:]
    for script in scripts:
        if script.globs:
            raise NotReadOnly("the script of sed is a glob (quote it)")
        check_script(script.text)
    return Opened(files)


def _jq(given: Arguments) -> Opened:
    if not given.operands:
        raise NotReadOnly("jq has no program")
    program, *files = given.operands
    if program.globs or re.search(r"\b(?:import|include|env|input_filename|get_search_list)\b|\$ENV", program.text):
        raise NotReadOnly("the program of jq may read more than its input")
    return Opened(tuple(files))


_FIELD = r'(?:\$(?:\d{1,4}|NF)|NR|NF|FILENAME|"[^"\\]*")'
_AWK = re.compile(
    r"\s*(?:(?:NR|NF)\s*(?:==|!=|<=|>=|<|>)\s*\d{1,9}|!?/(?:[^/\\]|\\.)*/)?"
    rf"\s*(?:\{{\s*print(?:\s+{_FIELD}(?:(?:\s*,\s*|\s+){_FIELD})*)?\s*;?\s*\}})?\s*"
)


def _awk(given: Arguments) -> Opened:
    if not given.operands or given.operands[0].globs or not _AWK.fullmatch(given.operands[0].text):
        raise NotReadOnly("the program of awk is not known to print fields only")
    if any(word.text.startswith("/inet") for word in given.operands[1:]):
        raise NotReadOnly("some awks connect to such a file")
    return Opened(given.operands[1:])


@dataclass(frozen=True, slots=True)
class Program:
    options: Options
    operands: Operands
    builtin: bool = False


_SUMS = Program(
    Options("bt", long_flags=names("binary text tag zero"), long_optional=kinds()), _open_all
)  # without -c, which reads names from a file
PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        "pwd": Program(Options("LP"), _take_none, builtin=True),
        "true": Program(Options(""), _plain_text, builtin=True),
        "false": Program(Options(""), _plain_text, builtin=True),
        "printf": Program(Options(""), _printf, builtin=True),
        "date": Program(
            Options(
                "uRI",
                short(d="pattern", r="pattern"),
                names("utc universal rfc-email iso-8601"),
                kinds(pattern="date reference", choice="rfc-3339"),
                kinds(choice="iso-8601"),
            ),
            _date,
        ),
        "tree": Program(
            Options(
                "adfilpsughDFtcvrCnAxXJQNqUS",
                short(L="small", I="pattern", P="pattern"),
                names("noreport dirsfirst filesfirst gitignore du prune ignore-case matchdirs si inodes device"),
                kinds(small="filelimit", choice="charset sort timefmt"),
                kinds(choice="sort"),
            ),
            _open_nothing,
        ),
        "du": Program(
            Options(
                "abcDhHklLmPsSx0",
                short(d="small", B="choice", t="choice"),
                names(
                    "all apparent-size bytes total dereference-args human-readable inodes dereference no-dereference"
                    " separate-dirs si summarize one-file-system null count-links"
                ),
                kinds(small="max-depth", choice="block-size threshold time-style", pattern="exclude"),
                kinds(choice="time"),
            ),
            _open_nothing,
        ),
        "df": Program(
            Options(
                "ahHiklmPT",
                short(B="choice", t="choice", x="choice"),
                names("all human-readable si inodes local portability print-type total"),
                kinds(choice="block-size type exclude-type"),
                kinds(choice="output"),
            ),
            _open_nothing,
        ),
        "uname": Program(
            Options(
                "asnrvmpio",
                long_flags=names(
                    "all kernel-name nodename kernel-release kernel-version machine processor hardware-platform"
                    " operating-system"
                ),
            ),
            _take_none,
        ),
        "sleep": Program(Options(""), _sleep),
        "hostname": Program(Options("sfdiI"), _take_none),
        "lscpu": Program(Options("J"), _take_none),
        "locale": Program(Options("a"), _take_none),
        "arch": Program(Options(""), _take_none),
        "nproc": Program(Options("", long_flags=names("all"), long_valued=kinds(small="ignore")), _take_none),
        "uptime": Program(Options("ps", long_flags=names("pretty since")), _take_none),
        "free": Program(Options("bkmghtwl", long_flags=names("human total wide si")), _take_none),
        "whoami": Program(Options(""), _take_none),
        "id": Program(Options("ugGnrz", long_flags=names("user group groups name real zero")), _open_nothing),
        "groups": Program(Options(""), _open_nothing),
        "sort": Program(
            Options(
                "bdfghiMnRrVcCmsuz",
                short(k="choice", t="pattern"),
                names(
                    "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting"
                    " month-sort human-numeric-sort numeric-sort reverse version-sort check merge stable unique"
                    " zero-terminated"
                ),
                kinds(choice="key sort", pattern="field-separator"),
            ),
            _open_all,
        ),
        "uniq": Program(
            Options(
                "cdDiuz",
                short(f="small", s="small", w="small"),
                names("count repeated ignore-case unique zero-terminated"),
                kinds(small="skip-fields skip-chars check-chars"),
                kinds(choice="all-repeated group"),
            ),
            _uniq,
        ),
        "cut": Program(
            Options(
                "nsz",
                short(b="choice", c="choice", f="choice", d="pattern"),
                names("complement only-delimited zero-terminated"),
                kinds(choice="bytes characters fields", pattern="delimiter output-delimiter"),
            ),
            _open_all,
        ),
        "tr": Program(
            Options("cCdst", long_flags=names("complement delete squeeze-repeats truncate-set1")), _plain_text
        ),
        "nl": Program(
            Options("p", short(b="pattern", n="choice", w="small", s="pattern", v="small", i="small")), _open_all
        ),
        "tac": Program(Options("b"), _open_all),
        "rev": Program(Options(""), _open_all),
        "fold": Program(Options("bs", short(w="small"), names("bytes spaces"), kinds(small="width")), _open_all),
        "expand": Program(Options("i", short(t="choice")), _open_all),
        "paste": Program(
            Options("sz", short(d="pattern"), names("serial zero-terminated"), kinds(pattern="delimiters")), _open_all
        ),
        "comm": Program(Options("123z", long_flags=names("check-order nocheck-order total")), _open_all),
        "cmp": Program(Options("bls", short(n="bytes"), names("print-bytes verbose quiet silent")), _open_all),
        "md5sum": _SUMS,
        "sha1sum": _SUMS,
        "sha256sum": _SUMS,
        "sha512sum": _SUMS,
        "od": Program(
            Options("abcdfhilosvx", short(A="choice", j="bytes", N="bytes", t="choice", w="small")), _open_all
        ),
        "column": Program(Options("tx", short(s="pattern", c="small", o="pattern"), names("table")), _open_all),
        "basename": Program(
            Options("az", short(s="pattern"), names("multiple zero"), kinds(pattern="suffix")), _open_nothing
        ),
        "dirname": Program(Options("z", long_flags=names("zero")), _open_nothing),
        "realpath": Program(
            Options(
                "emLPqsz",
                long_flags=names("canonicalize-existing canonicalize-missing logical physical quiet strip zero"),
                long_valued=kinds(pattern="relative-to relative-base"),
            ),
            _open_nothing,
        ),
        "readlink": Program(
            Options("efmnqsvz", long_flags=names("canonicalize canonicalize-existing canonicalize-missing no-newline")),
            _open_nothing,
        ),
        "file": Program(
            Options(
                "bhikLNr0",
                short(F="pattern"),
                names("brief mime mime-type mime-encoding dereference no-dereference keep-going no-pad raw"),
                kinds(pattern="separator"),
            ),
            _open_all,
        ),
        "diff": Program(
            Options(
                "abBcdeEiNnpqrstTuwyZ",
                short(U="small", C="small", W="small", I="regex", x="pattern", F="regex"),
                names(
                    "brief report-identical-files unified context side-by-side recursive new-file ignore-case"
                    " ignore-all-space ignore-space-change ignore-blank-lines ignore-trailing-space text minimal"
                    " suppress-common-lines strip-trailing-cr show-c-function normal no-dereference"
                    " unidirectional-new-file left-column expand-tabs initial-tab"
                ),
                kinds(small="width", regex="ignore-matching-lines", pattern="exclude label"),
                kinds(small="unified context", choice="color"),
                number="small",
            ),
            _diff,
        ),
        "sed": Program(
            Options(
                "nErsuz",
                short(e="pattern"),
                names("quiet silent regexp-extended separate unbuffered null-data posix"),
                kinds(pattern="expression"),
            ),
            _sed,
        ),
        "awk": Program(Options("", short(F="pattern")), _awk),
        "jq": Program(
            Options(
                "rcnsaSCMjeR",
                long_flags=names(
                    "raw-output compact-output null-input slurp ascii-output sort-keys color-output monochrome-output"
                    " join-output exit-status raw-input tab"
                ),
                long_valued=kinds(small="indent"),
            ),
            _jq,
        ),
    }
)
LOOKUPS = frozenset({"which", "type", "command"})
_SPECIAL = LOOKUPS | {"echo", "test", "printenv"}
_DATE_UNITS = re.compile(r"-I(?:date|hours|minutes|seconds|ns)")
_NAME = re.compile(r"[A-Za-z0-9_.+-]+")
_FILE_TESTS = re.compile(r"-[abcdefghknprsuwxzLOGNS]")


def is_known(name: str) -> bool:
    return name in PROGRAMS or name in _SPECIAL


def is_builtin(name: str) -> bool:
    return name in _SPECIAL - {"printenv"} or (name in PROGRAMS and PROGRAMS[name].builtin)


def check_program(name: str, words: tuple[Word, ...]) -> Opened:
    """Returns what one program with these arguments shows; raises `NotReadOnly` unless it only prints."""
    texts = [word.text for word in words]
    if name == "echo":
        return Opened()  # a builtin that only prints its words
    if name == "test":
        # Other operators evaluate their operands, and an array subscript can run a command.
        if len(words) != 2 or not _FILE_TESTS.fullmatch(texts[0]) or words[1].globs:
            raise NotReadOnly("test is known as harmless only with one question about one file, as in test -f NAME")
        return Opened()
    if name == "printenv":
        if not words or not SHOWN_VARIABLES.issuperset(texts):
            raise NotReadOnly(
                f"printenv may show secrets; without a question it shows {', '.join(sorted(SHOWN_VARIABLES))}"
            )
        return Opened()
    if name in LOOKUPS:
        find_looked_up(name, words)
        return Opened()
    if name == "tree" and any(re.match(r"-[A-Za-z]*[LIP].", text) for text in texts):
        raise NotReadOnly("tree reads the letters after -L, -I and -P as more options")
    if name == "date":
        words = tuple(word for word in words if not _DATE_UNITS.fullmatch(word.text))
    program = PROGRAMS[name]
    given = read_arguments(name, words, program.options)
    if given.only_informs:
        return Opened()
    opened = program.operands(given)
    for word in opened.words:
        check_contents(word, recursive=opened.recursive)
    return opened


def find_looked_up(name: str, words: tuple[Word, ...]) -> tuple[str, list[str]]:
    """Returns how bash itself answers the question where a program is: options of `type` or `command`, and names."""
    options = [word.text for word in words if word.text.startswith("-")]
    wanted = [word.text for word in words if not word.text.startswith("-")]
    known = {"which": {"-a"}, "type": {"-a", "-p", "-P", "-t"}, "command": {"-v", "-V"}}[name]
    if not known.issuperset(options) or (name == "command" and len(options) != 1):
        raise NotReadOnly(f"{name} {' '.join(options)} is not a question known to be harmless")
    if not wanted or any(word.globs for word in words) or not all(map(_NAME.fullmatch, wanted)):
        raise NotReadOnly(f"{name} needs the plain name of a program")
    how = {"which": "type -P", "type": "type", "command": "command"}[name]
    return " ".join([how, *options]), wanted
