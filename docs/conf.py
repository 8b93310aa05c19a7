"""The site: the pages of this folder, a reference made from the docstrings, a gallery made by running examples/.

pip install '.[docs]' && .ci/run site
"""

import contextlib
import functools
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

os.environ.setdefault("MPLBACKEND", "agg")

import matplotlib.pyplot as plt  # noqa: E402
import tables  # noqa: E402
from cut import cut  # noqa: E402
from names import public_names  # noqa: E402
from pictures import news, paths, scores, training, versions  # noqa: E402, F401
from pictures.chart import chart  # noqa: E402
from pictures.ink import THEMES, colours, draw_all  # noqa: E402
from terms import first_uses  # noqa: E402

import structsvm  # noqa: E402

project = "structsvm"
author = "structsvm developers"
project_copyright = "structsvm developers"
version = release = installed_version("structured-svm")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_templates", "pictures", "gallery/**/*.ipynb"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = "structsvm"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_search_summary = False  # it loads every page that is found
html_copy_source = False

# Pages are read on the repository's site too: links go from file to file, headings have the anchors that it gives them.
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]

# Formulas are MathML, which browsers lay out themselves: MathJax would come from elsewhere when a page is read.
html_math_renderer = "mathml"

# "$ " and ">>> " are no part of what is copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Each public name has a page, also where a module imports it when it is first used.
autosummary_generate = True


def shown_before(module, name):
    """Whether the front door has shown a name that a room offers again."""
    return module != "structsvm" and name in structsvm.__all__


autosummary_context = {"public_names": public_names, "shown_before": shown_before}
suppress_warnings = ["config.cache"]  # warns of the function above
autodoc_typehints = "none"
numpydoc_show_class_members = False

# Scripts that need downloaded data are shown without being run.
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/(?!chunking_conll2000)\w+\.py$",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "backreferences_dir": "project/used",
    "doc_module": ("structsvm",),
    "abort_on_example_error": True,
    "parallel": True,  # in processes of their own: JAX's threads do not outlive a fork, and pages are read by forks
}


def copy_pages(_app):
    """Pages that stand elsewhere: the kept tables of the benchmarks, the changelog, how to contribute, security."""
    kept = HERE / "benchmarks"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    names = []
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.md")):
        write_cut(path.read_text(encoding="utf-8"), kept / path.stem)
        names.append(path.stem)
    lines = "\n".join(names)
    (kept / "index.md").write_text(
        "# Benchmarks\n\nThe last results that are kept; `python benchmarks/NAME.py` measures them again.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{lines}\n```\n"
    )
    (HERE / "project").mkdir(exist_ok=True)
    for old in (HERE / "project").glob("*.md"):  # folders beside them are kept: the gallery fills its own once
        old.unlink()
    for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY"):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        write_cut(text.replace("](docs/", "](../"), HERE / "project" / name.lower())


def write_cut(text, stem):
    """Write a page, cut where it is too long: to the path `stem` with a suffix, and beside it."""
    for name, page in cut(text, stem.name).items():
        stem.with_name(f"{name}.md").write_text(page, encoding="utf-8")


def draw_demo(_app):
    """The picture of `structsvm demo`, for the start page."""
    command = [sys.executable, "-P", "-m", "structsvm", "demo", "--output", str(HERE / "project" / "demo.png")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def draw_pictures(_app):
    """The pictures that pages ask for, in the colours of both themes."""
    draw_all(HERE / "project" / "pictures")


def show_pictures(_app, name, source):
    """In the place of ``<!-- picture NAME: TEXT -->`` the picture, with the text as its alternative; and the map."""
    up = "../" * name.count("/")

    def figures(found):
        options = f":alt: {found[2]}\n:loading: lazy\n:figclass: drawn"
        files = {theme: f"{up}project/pictures/{found[1]}-{theme}.svg" for theme in THEMES}
        return "\n".join(f"```{{figure}} {file}\n{options} only-{theme}\n```\n" for theme, file in files.items())

    text = re.sub(r"^<!-- picture ([\w-]+): (.+?) -->$", figures, source[0], flags=re.MULTILINE)
    source[0] = text.replace("<!-- map -->", f"```{{raw}} html\n{chart(tables.rows())}\n```")


PROGRAM = re.compile(r"^```python\n(.*?)^```\n(\n```text)?", re.MULTILINE | re.DOTALL)


def show_run(_app, name, source):
    """Run a page's programs: in the place of ``<!-- drawn here: TEXT -->`` the picture that the one before it draws.

    In tutorials, behind each program the text that it prints, where the page itself says none.
    """
    text = source[0]
    mark = re.search(r"^<!-- drawn here: (.+?) -->$", text, flags=re.MULTILINE)
    if mark is None and not name.startswith("tutorials/"):
        return
    stem = name.replace("/", "-")
    drawing = len(PROGRAM.findall(text[: mark.start()])) - 1 if mark else None
    _, outputs = run_program(text, drawing, HERE / "project" / "pictures" / stem)
    if name.startswith("tutorials/"):
        printed = iter(outputs)

        def with_output(block):
            said = next(printed).strip()
            return f"{block[0]}\n```text\n{said}\n```\n" if said and block[2] is None else block[0]

        text = PROGRAM.sub(with_output, text)
    source[0] = text.replace(mark[0], f"<!-- picture {stem}: {mark[1]} -->") if mark else text


def show_live(_app, _name, source):
    """In the place of ``<!-- shown here: EXPRESSION -->`` its value, as a notebook shows it."""
    for mark in reversed([*re.finditer(r"^<!-- shown here: (.+?) -->$", source[0], flags=re.MULTILINE)]):
        before, behind = source[0][: mark.start()], source[0][mark.end() :]
        names, _ = run_program(before + f"```python\nshown = {mark[1]}\n```\n")
        source[0] = f"{before}```{{raw}} html\n{names['shown']._repr_html_()}\n```{behind}"


def run_program(text, drawing=None, stem=None):
    """Run the programs of a page, one after another, in a folder of their own.

    The program that draws runs once per theme, in the same namespace. It should draw alone: what it trains is trained
    twice, and what it changes is changed twice, also for the programs after it.

    Parameters
    ----------
    text : str
    drawing : int, optional
        Number of the program that draws: it is run once per theme, in its colours.
    stem : pathlib.Path, optional
        Where its pictures go, without the theme and the suffix.

    Returns
    -------
    names : dict
        What the programs define.
    printed : list of str
        What each prints.
    """
    page = sys.modules["page"] = types.ModuleType("page")  # by which classes of the page can be pickled
    printed = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, (block, _) in enumerate(PROGRAM.findall(text)):
            code = compile(block, f"program {number}", "exec")
            for theme in THEMES if number == drawing else (None,):
                said = io.StringIO()
                with contextlib.redirect_stdout(said), colours(THEMES[theme]) if theme else contextlib.nullcontext():
                    exec(code, vars(page))  # noqa: S102
                    if theme:
                        plt.savefig(f"{stem}-{theme}.svg", metadata={"Date": None})
                        plt.close("all")
            printed.append(said.getvalue())
    plt.close("all")
    return vars(page), printed


def link_results(_app, name, source):
    """Links to the kept tables, which stand outside docs/, lead to the copies that `copy_pages` makes."""
    up = "../" * name.count("/")
    source[0] = re.sub(r"\]\((?:\.\./)+benchmarks/results/", f"]({up}benchmarks/", source[0])


MADE = ("benchmarks/", "gallery/", "project/", "reference/")  # pages of other words than these pages'
NO_WORDS = (nodes.reference, nodes.literal, nodes.math, nodes.raw)


def link_terms(app, page, name):
    """Make the first use of each word of the glossary a link to it; but for the page that explains them by pictures."""
    if name.startswith(MADE) or name in ("glossary", "101"):
        return
    seen, glossary = set(), app.builder.get_relative_uri(name, "glossary")
    for paragraph in [*page.findall(nodes.paragraph)]:
        if not isinstance(paragraph.parent, nodes.entry):
            for text in [*paragraph.findall(nodes.Text)]:
                if not isinstance(text.parent, NO_WORDS) and not isinstance(text.parent.parent, NO_WORDS):
                    text.parent.replace(text, linked(text.astext(), seen, glossary))


def linked(text, seen, glossary):
    """The nodes of a text, some of its words links."""
    found, place = [], 0
    for start, stop, anchor in first_uses(text, seen):
        link = nodes.reference("", text[start:stop], internal=True, refuri=f"{glossary}#{anchor}", classes=["term"])
        found += [nodes.Text(text[place:start]), link]
        place = stop
    return [*found, nodes.Text(text[place:])]


def leave_entries_out(_app, page, name):
    """Search knows the public names as objects: as entries of the index too they were a third of what it loads."""
    for node in page.findall(addnodes.index) if name.startswith("reference/") else ():
        node["entries"] = []


def fold_side_bar(_app, _name, _template, context, _tree):
    """List in the side bar the pages around this one alone: with all public names it was half of each page."""
    if "toctree" in context:
        context["toctree"] = functools.partial(folded, context["toctree"])


def folded(toctree, **options):
    """The table of contents, with the branch of the present page unfolded."""
    return toctree(**options | {"collapse": True})


def show_demo(_app, name, source):
    """On the site the start page has the picture; in the repository there is none."""
    if name == "index":
        caption = "What `structsvm demo` trains in some seconds, on data that it simulates"
        source[0] = source[0].replace(
            "\n## Install\n",
            f"\n```{{figure}} project/demo.png\n:alt: predicted structures\n\n{caption}\n```\n\n## Install\n",
            1,
        )


def escape_bars(_app, _kind, _name, _object, _options, lines):
    """A norm such as |w| is none of the substitutions that reStructuredText takes it for."""
    for k, line in enumerate(lines):
        parts = line.split("``")
        parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
        lines[k] = "``".join(parts)


def skip_foreign(_app, _kind, _name, member, skip, _options):
    """Skip members that scikit-learn's classes give ours: they are documented there."""
    return skip or not (getattr(member, "__module__", None) or "structsvm").startswith("structsvm")


def write_formula(translator, node):
    """A formula within a line."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def write_block(translator, node):
    """A formula of its own; a wide one scrolls."""
    translator.body.append(f'<div class="math" tabindex="0">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


# The theme leaves these out; readers need them who hear a page or go through it by the keyboard (rules of axe-core).
ACCESSIBLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results">',
}


EMPTY_HEADING = re.compile(r'<th class="head([^"]*)"><p></p></th>')  # above a column of explanations, say


def make_accessible(app, error):
    """Levels and words of headings, names of the side bars, programs and tables that scroll by the keyboard."""
    for path in Path(app.outdir).rglob("*.html") if error is None else ():
        text = path.read_text(encoding="utf-8")
        for before, after in ACCESSIBLE.items():
            text = text.replace(before, after)
        text = EMPTY_HEADING.sub(r'<td class="head\1"></td>', text)
        path.write_text(text, encoding="utf-8")


def setup(app):
    """Sphinx's hook."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_block, None))
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("config-inited", lambda app, _config: copy_pages(app))
    app.connect("config-inited", lambda app, _config: draw_pictures(app))  # before the gallery, which shows some
    app.connect("builder-inited", draw_demo)
    app.connect("source-read", link_results)
    app.connect("source-read", show_demo)
    app.connect("source-read", show_run)
    app.connect("source-read", show_live)
    app.connect("source-read", show_pictures)
    app.connect("doctree-resolved", link_terms)
    app.connect("doctree-resolved", leave_entries_out)
    app.connect("html-page-context", fold_side_bar, priority=100)  # before the theme's own
    app.connect("build-finished", make_accessible)
