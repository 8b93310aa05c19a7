"""Docstrings, comments and error messages whose subject stands on another line.

None may begin with That, Those, Of, What or Which: only the author knows which noun they point to.

    python .ci/words.py FILE or FOLDER ...

prints `file:line: kind: text` per fault, and exits with 1 if there is one. Python and Cython are read as tokens, so
that one reader serves both.
"""

import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

PYTHON = {".py", ".pyx", ".pxd", ".pyi"}
C = {".c", ".h"}

FAULT = re.compile(r"(that|those|of|what|which)\b", re.IGNORECASE)
ERROR = re.compile(r"\w*(Error|Exception|Warning)|warn")
QUOTES = re.compile(r"[a-zA-Z]*('''|\"\"\"|'|\")")
MARKS = "/*#:! \t\n"
# Strings are matched too, so that what looks like a comment in them is none.
C_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)

LAYOUT = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}
STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_START", tokenize.STRING)}  # from Python 3.12 on


class Text(NamedTuple):
    """A docstring, comment or error message, and where it begins."""

    row: int
    column: int
    kind: str
    words: str


def python_texts(source: str) -> Iterator[Text]:
    """Texts of Python and Cython."""
    lines = source.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    comments = [Text(*token.start, "comment", token.string) for token in tokens if token.type == tokenize.COMMENT]
    yield from blocks(comments, lines)
    earlier: tuple[str, ...] = ("", "", "\n")
    code = [token for token in tokens if token.type not in LAYOUT]
    for token, following in pairwise(code):
        if token.type in STRINGS:
            statement = earlier[-1] == "\n" and following.type == tokenize.NEWLINE
            raised = earlier[-1] == "(" and (earlier[-3] == "raise" or ERROR.fullmatch(earlier[-2]))
            if statement or raised:
                row, column = token.start
                words = QUOTES.sub("", "".join([lines[row - 1][column:], *lines[row : row + 1]]), count=1)
                yield Text(row, column, "docstring" if statement else "error message", words)
        earlier = (*earlier[1:], "\n" if token.type == tokenize.NEWLINE else token.string)


def c_texts(source: str) -> Iterator[Text]:
    """Comments of C."""
    comments = []
    for match in C_TOKEN.finditer(source):
        if match[0].startswith("/"):
            before = source[: match.start()]
            comments.append(Text(before.count("\n") + 1, len(before) - before.rfind("\n") - 1, "comment", match[0]))
    return blocks(comments, source.splitlines())


def blocks(comments: Iterable[Text], lines: list[str]) -> Iterator[Text]:
    """First lines of blocks: a comment alone on its line continues one at the same column of the line above."""
    row, column = -1, 0
    for comment in comments:
        is_alone = not lines[comment.row - 1][: comment.column].strip()
        if not is_alone or (comment.row, comment.column) != (row + 1, column):
            yield comment
        row, column = comment.row, comment.column


def faults(path: Path) -> Iterator[Text]:
    """Texts of a file that begin with one of the five words."""
    source = path.read_text(encoding="utf-8")
    for text in c_texts(source) if path.suffix in C else python_texts(source):
        if FAULT.match(text.words.lstrip(MARKS)):
            yield text


def sources(places: Iterable[Path]) -> Iterator[Path]:
    """Source files among files and, recursively, in folders."""
    for place in places:
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.suffix in PYTHON | C:
                yield path


def main(places: list[str]) -> int:
    """Print the faults in files and folders; 1 if there are any."""
    found = [(path, text) for path in sources(map(Path, places)) for text in faults(path)]
    for path, text in found:
        print(f"{path}:{text.row}: {text.kind}: {' '.join(text.words.lstrip(MARKS).split())[:70]}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
