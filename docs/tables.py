"""The tables of structures in README and docs, made from the pages and the registry of estimators.

A page about structures ends with a comment, a row of the tables per block of lines ``NAME: TEXT``:

    <!-- tables
    for: what it is for
    with: what there is
    predicted: what is predicted
    from: from what
    about: a line of the start page
    -->

Its estimators are those of the registry; `estimators` names some of them, or others. A page without any in the
registry follows the page that `after` names. The script writes the tables again.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from structsvm.tasks.registry import ESTIMATORS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ROW = re.compile(r"^<!-- tables\n(.*?)^-->$", re.MULTILINE | re.DOTALL)


def rows() -> Iterator[dict[str, str]]:
    """The rows of all pages, in the order of the registry."""
    own: dict[str, list[str]] = {}
    for entry in ESTIMATORS:
        own.setdefault(entry.page, []).append(f"`{entry.name}`")
    found = {}
    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        about = {"page": path.stem, "heading": text.partition("\n")[0].removeprefix("# ")}
        about["estimators"] = ", ".join(own.get(path.stem, ()))
        found[path.stem] = [
            about | dict(line.split(": ", 1) for line in block.splitlines()) for block in ROW.findall(text)
        ]
    order = list(own)
    for others in (row for name in found.keys() - own.keys() for row in found[name]):
        order.insert(order.index(others["after"]) + 1 if "after" in others else len(order), others["page"])
    for name in order:
        yield from found[name]


def for_readme() -> str:
    """Structures and estimators; links lead from the folder above."""
    lines = [f"| [{row['for']}]({row['page']}.md) | {row['estimators']} | {row['with']} |" for row in rows()]
    text = "\n".join(["| for | estimators in `structsvm.tasks` | with |", "| --- | --- | --- |", *lines])
    return re.sub(r"\]\((\.\./)?", lambda found: "](" if found[1] else "](docs/", text)


def for_choosing() -> str:
    """Outputs, inputs and estimators, to choose by."""
    lines = [f"| {row['predicted']} | {row['from']} | [{row['estimators']}]({row['page']}.md) |" for row in rows()]
    return "\n".join(["| what is predicted | from what | estimator |", "| --- | --- | --- |", *lines])


def for_index() -> str:
    """The list of pages, as seen and as the site has it."""
    lines = [f"- [{row['heading']}]({row['page']}.md): {row['about']}" for row in rows() if "about" in row]
    pages = dict.fromkeys(row["page"] for row in rows() if "about" in row)
    return "\n".join([*lines, "", "```{toctree}", ":caption: Structures", ":hidden:", "", *pages, "```"])


def for_model_files() -> str:
    """The kinds of model files."""
    return ", ".join(f'`"{kind}"`' for kind in dict.fromkeys(entry.kind for entry in ESTIMATORS))


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "README.md": ("\n", for_readme),
    "docs/choosing.md": ("\n", for_choosing),
    "docs/index.md": ("\n", for_index),
    "docs/model-files.md": ("", for_model_files),
}


def written(page: str) -> str:
    """The text of a page with its table as it is now."""
    between, table = TABLES[page]
    begin, end = "<!-- structures -->", "<!-- structures end -->"
    head, _, rest = (ROOT / page).read_text(encoding="utf-8").partition(begin)
    return f"{head}{begin}{between}{table()}{between}{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    for name in TABLES:
        (ROOT / name).write_text(written(name), encoding="utf-8")
