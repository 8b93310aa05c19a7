r"""Observation patterns of other programs: which strings of which neighbours form an observation.

Wapiti's patterns are ``u:``, ``b:`` and ``*:`` lines with ``%x[off,col]``, ``%t[off,col,"regex"]`` and
``%m[off,col,"regex"]``; an upper-case command folds its result to lower case, and ``@`` makes an offset
absolute. CRF++'s are ``U`` and ``B`` lines with ``%x[row,col]``. Both programs work on bytes, so do these:
a class such as ``\a`` knows ASCII letters only, and ``.`` is one byte of UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from structsvm.features.functions.expressions import END, Expression

__all__ = ["compile_regex", "parse_crfpp", "parse_wapiti", "read_wapiti_patterns"]

FARTHEST = 1_000_000
WAPITI_BOUNDARIES = 4
CRFPP_BOUNDARIES = 8

# Behind a line; other blanks belong to it.
BLANKS = " \t\r\v\f"

Columns = Sequence[Sequence[bytes]]


class PatternError(ValueError):
    """A pattern that cannot be used; the message names file and line."""


@dataclass(frozen=True, slots=True)
class Command:
    """One ``%`` command: its kind (x, t, m), offset, column, whether it folds case, its regular expression.

    `source` is the regular expression as it is written.
    """

    kind: str
    offset: int
    column: int
    folds: bool = False
    absolute: bool = False
    regex: Expression | None = None
    source: str = ""

    @property
    def name(self) -> str:
        """Its letter, and its regular expression: ``x``, ``T,"^a"``."""
        letter = self.kind.upper() if self.folds else self.kind
        return letter if self.regex is None else f'{letter},"{self.source}"'

    def place(self, t: int, n_tokens: int) -> int:
        """Index of the token that position t reads; below 0 or from n_tokens on, a boundary."""
        if not self.absolute:
            return t + self.offset
        return n_tokens + self.offset if self.offset < 0 else self.offset - 1

    def value(self, string: bytes) -> bytes:
        """Result of the command for one string."""
        if self.regex is not None:
            match = self.regex.compiled.search(string)
            if self.kind == "t":
                string = b"false" if match is None else b"true"
            else:
                string = b"" if match is None else match[0]
        return string.lower() if self.folds else string

    @property
    def overruns(self) -> bool:
        """Whether Wapiti's result may be longer than the match: see `Expression.overruns`."""
        return self.kind == "m" and self.regex is not None and self.regex.overruns

    def taken(self, string: bytes) -> bytes:
        """Result of the command in Wapiti, where it overruns, with a zero byte where its observation ends."""
        found = (self.regex and self.regex.taken(string)) or b""
        return found.lower() if self.folds else found


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern: literals and commands in turn, ``literals[0] command[0] literals[1] ...``."""

    source: str
    literals: tuple[bytes, ...]
    commands: tuple[Command, ...]
    boundary: Callable[[int, int], bytes] = field(repr=False, compare=False)

    @property
    def n_columns(self) -> int:
        """Number of columns that the pattern needs."""
        return 1 + max((command.column for command in self.commands), default=-1)

    def apply(self, tokens: Columns) -> list[bytes]:
        """Observation of the pattern at each token; ``tokens[t][column]`` are the strings of token t."""
        n = len(tokens)
        parts: list[list[bytes]] = [[self.literals[0]] * n]
        for command, literal in zip(self.commands, self.literals[1:], strict=True):
            places = [command.place(t, n) for t in range(n)]
            value = command.taken if command.overruns else command.value
            parts.append(
                [value(tokens[at][command.column] if 0 <= at < n else self.boundary(at, n)) + literal for at in places]
            )
        return [b"".join(strings).partition(END)[0] for strings in zip(*parts, strict=True)]


def compile_regex(text: bytes) -> re.Pattern[bytes]:
    r"""Compile a regular expression of Wapiti's dialect.

    There are ``.``, the classes ``\a \d \l \p \s \u \w`` (upper case: their complements), ``\`` before any
    other character, ``^`` first, ``$`` last, ``*`` (as few as possible) and ``?`` (one if possible). Any other
    character stands for itself: ``+``, ``(``, ``[`` and ``|`` are no operators.

    Raises
    ------
    ValueError
        For a ``*`` or ``?`` after nothing, or a ``\`` at the end.

    Examples
    --------
    >>> from structsvm.features.functions.patterns import compile_regex
    >>> compile_regex(rb"^\u.*").search(b"Word")[0]
    b'W'
    >>> compile_regex(rb"a+").search(b"aa") is None
    True
    """
    return Expression.parsed(text).compiled


# ---------------------------------------------------------------------------------------- Wapiti

_COMMAND = re.compile(
    rb"%(?P<kind>[A-Za-z])\[\s*(?P<absolute>@?)(?P<offset>[+-]?(?:0|[1-9][0-9]{0,6})),\s*(?P<column>0|[1-9][0-9]{0,6})"
    rb'(?P<regex>,"(?:\\.|[^"\\])*")?\]',
    re.DOTALL,
)


def wapiti_boundary(at: int, n_tokens: int) -> bytes:
    """String of the place `at` outside a sequence."""
    sign, distance = (b"-", -at) if at < 0 else (b"+", at - n_tokens + 1)
    return b"_x" + sign + (b"%d" % distance if distance <= WAPITI_BOUNDARIES else b"#")


def parse_wapiti(line: str, where: str = "pattern") -> Pattern:
    r"""Parse one pattern of Wapiti.

    Parameters
    ----------
    line : str
        ``u:name=%x[-1,0]``, ``b``, ``*:%M[0,0,"\\d*$"]``, ...
    where : str
        File and line for messages.

    Raises
    ------
    PatternError
        For any other form.

    Examples
    --------
    >>> from structsvm.features.functions.patterns import parse_wapiti
    >>> parse_wapiti('*:%X[-1,0]/%t[0,0,"^\\u"]').apply([[b"The"], [b"cat"]])
    [b'*:_x-1/true', b'*:the/false']
    """
    if line[:1].lower() not in ("u", "b", "*"):
        raise PatternError(f"{where}: {line!r}: a pattern starts with 'u', 'b' or '*'")
    line = line[0].lower() + line[1:]
    text = line.encode("utf-8", "surrogateescape")
    literals, commands, end = [], [], 0
    while (at := text.find(b"%", end)) >= 0:
        match = _COMMAND.match(text, at)
        if match is None:
            raise PatternError(f"{where}: {line!r}: wanted %x[offset,column] or %t[offset,column,\"regex\"] after '%'")
        literals.append(text[end:at])
        commands.append(_command(match, line, where))
        end = match.end()
    literals.append(text[end:])
    return Pattern(line, tuple(literals), tuple(commands), wapiti_boundary)


def _command(match: re.Match[bytes], line: str, where: str) -> Command:
    letter = match["kind"].decode()
    kind = letter.lower()
    if kind not in "xtm":
        raise PatternError(f"{where}: {line!r}: no command %{letter} (there are %x, %t, %m, and %X, %T, %M)")
    if (match["regex"] is None) != (kind == "x"):
        wanted = "takes no regular expression" if kind == "x" else 'needs a regular expression: [offset,column,"regex"]'
        raise PatternError(f"{where}: {line!r}: %{letter} {wanted}")
    offset = int(match["offset"])
    if abs(offset) > FARTHEST or int(match["column"]) > FARTHEST:
        raise PatternError(f"{where}: {line!r}: offset and column must be within {FARTHEST:,}")
    try:
        source = b"" if kind == "x" else match["regex"][2:-1]
        regex = None if kind == "x" else Expression.parsed(source)
    except ValueError as error:
        raise PatternError(f"{where}: {line!r}: {error}") from None
    text = source.decode("utf-8", "surrogateescape")
    return Command(kind, offset, int(match["column"]), letter.isupper(), bool(match["absolute"]), regex, text)


def read_wapiti_patterns(text: str, name: str = "patterns") -> list[Pattern]:
    r"""Parse the text of a pattern file of Wapiti: one pattern per line, ``#`` starts a comment anywhere.

    Examples
    --------
    >>> from structsvm.features.functions.patterns import read_wapiti_patterns
    >>> [pattern.source for pattern in read_wapiti_patterns("U:%x[0,0]  # the word\n\n*\n")]
    ['u:%x[0,0]', '*']
    """
    return [parse_wapiti(line, f"{name}:{number}") for number, line in wapiti_lines(text)]


def wapiti_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines of a pattern file with their numbers, without comments; those with nothing left are left out."""
    lines = (raw.split("#", 1)[0].rstrip(BLANKS) for raw in text.split("\n"))
    return ((number, line) for number, line in enumerate(lines, 1) if line)


# ----------------------------------------------------------------------------------------- CRF++

_CELL = re.compile(rb"%x\[(-?[0-9]{1,6}),([0-9]{1,6})\]")


def _crfpp_boundary(at: int, n_tokens: int) -> bytes:
    return b"_B-%d" % -at if at < 0 else b"_B+%d" % (at - n_tokens + 1)


def parse_crfpp(line: str, where: str = "template") -> Pattern:
    """Parse one template of CRF++.

    Examples
    --------
    >>> from structsvm.features.functions.patterns import parse_crfpp
    >>> parse_crfpp("U01:%x[-1,0]").apply([[b"The"], [b"cat"]])
    [b'U01:_B-1', b'U01:The']
    """
    if line[:1] not in ("U", "B"):
        raise PatternError(f"{where}: {line!r}: a template starts with 'U' or 'B'")
    text = line.encode("utf-8", "surrogateescape")
    literals, commands, end = [], [], 0
    while (at := text.find(b"%", end)) >= 0:
        match = _CELL.match(text, at)
        if match is None:
            raise PatternError(f"{where}: {line!r}: wanted %x[row,column] after '%'")
        if abs(int(match[1])) > CRFPP_BOUNDARIES:
            raise PatternError(f"{where}: {line!r}: row {int(match[1])} is not within +-{CRFPP_BOUNDARIES}")
        literals.append(text[end:at])
        commands.append(Command("x", int(match[1]), int(match[2])))
        end = match.end()
    literals.append(text[end:])
    return Pattern(line, tuple(literals), tuple(commands), _crfpp_boundary)
