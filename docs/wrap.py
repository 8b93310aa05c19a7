"""Prose of the pages in lines of at most 120 characters: ``python docs/wrap.py`` breaks longer ones.

It goes through all pages, and takes no arguments. A paragraph or list item is wrapped anew where a line of it is too
long. Programs, tables, headings, formulas and comments stay as they are, and no line begins with what Markdown would
take for a list, a heading or a quotation, or with the sign of a percentage.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH = 120
BUILT = {"benchmarks", "gallery", "project", "reference"}  # folders that the site's build makes
FENCE = re.compile(r" *(```|~~~|\$\$)")
ITEM = re.compile(r" *(?:[-*+]|\d+[.)]) +")
APART = re.compile(r" *(?:[|#>]|<!--|<a |</|\[[^]]+\]: |:\w+:)|    |.*(?:  |\\)$")  # lines that stay as they are
SPAN = re.compile(r"`+[^`]*`+|\$[^$\n]+\$|\]\([^)]*\)|<a [^>]*>")
# Words that are marks at the beginning of a line, or belong to the number before them.
BEGINS = re.compile(r"([-*+=]+|\d+[.)]|%[.,;:)]*|([#>|]|```|~~~|\$\$|<!--).*)$")
BLANK = "\N{NO-BREAK SPACE}"


def pages() -> list[Path]:
    """The pages that are written by hand."""
    found = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page.relative_to(ROOT).parts[1] not in BUILT]
    return [*found, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


def parts(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Runs of lines: whether they are prose, and they; a list item is a run of its own."""
    inside, number, kinds, marks = None, 0, [], 0
    for line in lines:
        fence = FENCE.match(line)
        comment = "<!--" if line.startswith("<!--") and "-->" not in line else None
        goes_on = marks % 2 == 1 and bool(line.strip())  # in code that the line before begins
        is_apart = not goes_on and (fence or comment or APART.match(line))
        is_prose = inside is None and not is_apart and bool(line.strip())
        marks = marks * goes_on + line.count("`") if is_prose else 0
        if is_prose:
            number += not goes_on and bool(ITEM.match(line))
        elif inside is None:
            inside = fence[1] if fence and line.count("$$") < 2 else comment
        elif line.strip().startswith(inside) or (inside == "<!--" and "-->" in line):
            inside = None
        number += not is_prose
        kinds.append((is_prose, number))
    for (is_prose, _), run in groupby(zip(kinds, lines, strict=True), key=lambda pair: pair[0]):
        yield is_prose, [line for _, line in run]


def wrapped(run: list[str]) -> list[str]:
    """A paragraph or list item in lines that are short, if one is too long or begins with a mark."""
    if max(map(len, run)) <= WIDTH and not any(BEGINS.match(line.split()[0]) for line in run[1:]):
        return run
    mark = ITEM.match(run[0])
    first = mark[0] if mark else re.match(" *", run[0])[0]
    text = SPAN.sub(lambda found: found[0].replace(" ", BLANK), " ".join(map(str.strip, run))[len(first.lstrip()) :])
    words = text.split(" ")
    joined = [words[0]]
    for word in words[1:]:
        if BEGINS.match(word):
            joined[-1] += BLANK + word
        else:
            joined.append(word)
    made = textwrap.wrap(
        " ".join(joined), WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace(BLANK, " ") for line in made]


def written(text: str) -> str:
    """A page with short lines of prose."""
    return "\n".join(line for is_prose, run in parts(text.split("\n")) for line in (wrapped(run) if is_prose else run))


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(f"docs/wrap.py takes no arguments, got {' '.join(sys.argv[1:])}: it writes all pages")
    for page in pages():
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
