"""Pages that nobody would read to their end, such as all kept tables of a benchmark, cut at their headings."""

import re

LONGEST = 12_000  # characters of a page
ROOM = 300  # characters for a page's own title and for links to the others
HEADING = re.compile("##+ ")


def pieces(text: str) -> list[str]:
    """Split a page before its headings, which in a block of code are none."""
    found, is_code = [""], False
    for line in text.splitlines(keepends=True):
        is_code ^= line.lstrip().startswith(("```", "~~~"))
        if not is_code and HEADING.match(line):
            found.append("")
        found[-1] += line
    return found


def cut(text: str, name: str) -> dict[str, str]:
    """Cut a page into pages of at most `LONGEST` characters. The first one leads to the others.

    Parameters
    ----------
    text : str
        A page, whose sections are no longer than that.
    name : str
        Its name, without a suffix.

    Returns
    -------
    dict of str to str
        Pages by their names: NAME, NAME-2, NAME-3 ...
    """
    title, pages, above = text.partition("\n")[0], [""], ""
    for piece in pieces(text):
        heading = piece.partition("\n")[0]
        if len(pages[-1]) + len(piece) > LONGEST - ROOM:
            pages.append(f"{title}, page {len(pages) + 1}\n\n" + above * heading.startswith("### "))
        if heading.startswith("## "):
            above = f"{heading}\n\n"
        pages[-1] += piece
    names = [name, *(f"{name}-{k}" for k in range(2, len(pages) + 1))]
    if len(pages) > 1:
        pages[0] += "\n".join(["\n```{toctree}", ":maxdepth: 2", "", *names[1:], "```", ""])
    return dict(zip(names, pages, strict=True))
