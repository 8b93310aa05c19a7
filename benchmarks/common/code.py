"""The code that a part measures, and whether it is still that of the kept results.

A part measures its own module and what this imports: solvers, oracles, tasks, the choice of C. What reads data, scores
outputs, draws or stores models is followed by none of them.

`results/code.json` has a digest per file of each kept part, of the code alone: comments, docstrings, annotations,
imports, layout and messages of errors change none. So a table is stale if and only if one of its files would give
another digest now.
"""

from __future__ import annotations

import ast
import datetime as dt
import json
import re
import subprocess
from collections import Counter
from functools import cache
from hashlib import sha256

# Folders of the repository by the packages that they install as.
FOLDERS = {"structsvm.oracles": "oracles", "structsvm.tasks": "tasks", "structsvm": "structsvm"}
ROOMS = ("oracles/", "tasks/", *(f"structsvm/{room}/" for room in ("dual", "kernel", "linear", "solvers")))
# The tasks' common code that decides what is learnt; the rest is interface and files.
COMMON = re.compile(r"tasks/common/(selection/\w+|training|likelihood|calibration|units|intercept|kernel_machine)\.py")
# Modules that change no result of one thread: measured where a part imports them, followed from nowhere else.
ASIDE = re.compile(r"structsvm/dual/(parallel|threads|_threads|exchanges|members|itinerary)\.\w+")
SOURCES = (".py", ".pyx", ".pxd", ".h", ".c")
IMPORTS = re.compile(r"^\s*from\s+([\w.]+)\s+c?import\s+(.+)", re.MULTILINE)
INCLUDES = re.compile(r'(?:extern from|#\s*include)\s+"([\w./]+)"')
COMMENTS = {
    ".pyx": re.compile(r'^\s*"""(?:[^"\\]|\\.|"(?!""))*"""|("(?:[^"\\\n]|\\.)*")|#[^\n]*', re.MULTILINE),
    ".h": re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL),
}
# Fields of Python's syntax that change no result.
WITHOUT = {"annotation", "returns", "simple", "ctx", "kind", "type_comment", "type_params", "type_ignores"}
COMMENTS |= {".pxd": COMMENTS[".pyx"], ".c": COMMENTS[".h"]}


class Code:
    """The sources below a folder.

    Parameters
    ----------
    root : Path
        The repository.
    """

    def __init__(self, root):
        self.root = root
        folders = ("structsvm", "oracles", "tasks")
        paths = [path for folder in folders for path in (root / folder).rglob("*") if path.suffix in SOURCES]
        self.paths = {path.relative_to(root).as_posix() for path in paths}
        self.by_name = {}
        for path in self.paths:
            self.by_name.setdefault(path.rpartition("/")[2], []).append(path)
        self.homes, self.about = cache(self._homes), cache(self._about)

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    def measured(self, name, part):
        """The digests by file of what a part measures."""
        first = f"benchmarks/{name}/{part.partition('-')[0]}.py"
        found, left = set(), [first] if (self.root / first).exists() else []
        while left:
            path = left.pop()
            if path not in found:
                found.add(path)
                left += self.about(path)[1]
        return {path: self.about(path)[0] for path in sorted(found)}

    def _about(self, path):
        """The digest of a file, and the measured files that it imports, cimports or includes."""
        text, suffix = self.read(path), path[path.rindex(".") :]
        if suffix == ".py":
            tree = ast.parse(text)
            plain, found = "".join(shape(tree)), self.imported(tree)
            if path.startswith("benchmarks/"):
                found |= self.of_benchmarks(tree)
        else:
            plain = " ".join(COMMENTS[suffix].sub(lambda found: found[1] or " ", text).split())
            found = self.cimported(text)
        if not path.startswith("benchmarks/"):
            found = {other for other in found if not ASIDE.fullmatch(other)}
        digest = sha256(f"{path} {plain}".encode()).hexdigest()[:8]
        return digest, sorted(other for other in found if other != path and is_measured(other))

    def imported(self, tree):
        """The files of the modules that Python code imports, those for type checkers aside."""
        found = set()
        for node in statements(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    found |= self.files_of(node.module, alias.name)
        return found

    def cimported(self, text):
        """The files that Cython or C code imports or includes, a header's kernels with it."""
        found = set()
        for module, names in IMPORTS.findall(text):
            for name in re.findall(r"\w+", names):
                found |= self.files_of(module, name)
        for header in INCLUDES.findall(text):
            name = header.rpartition("/")[2]
            for other in (name, name[:-2] + ".c", name[:-2] + "_kernels.c"):
                found.update(self.by_name.get(other, ()))
        return found

    def of_benchmarks(self, tree):
        """The modules of benchmarks that a part imports, or names in a text, and names like ``tasks.Ranker``."""
        names, found = set(), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                names |= {node.value}
            elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("oracles", "solvers", "tasks"):
                found |= self.files_of(f"structsvm.{node.value.id}", node.attr)
        own = {name for name in names if re.fullmatch(r"(?!common\.)\w+\.\w+", name)}
        paths = {f"benchmarks/{name.replace('.', '/')}.py" for name in own}
        return found | {path for path in paths if (self.root / path).exists()}

    def files_of(self, module, name):
        """The files of the module that defines a name of a module, or that has this name in a package."""
        base = folder_of(module)
        if base is None:
            return set()
        home = self.homes(f"{base}/__init__.py").get(name, module)
        if home != module:
            return self.files_of(home, name)
        bases = [f"{base}/{name}", base]
        return next((found for found in map(self.files, bases) if found), set())

    def files(self, base):
        return {base + suffix for suffix in (".py", ".pyx", ".pxd") if base + suffix in self.paths}

    def _homes(self, path):
        """The modules that define the names of a package."""
        nodes = ast.walk(ast.parse(self.read(path))) if path in self.paths else ()
        named = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
        return {alias.name: node.module for node in named for alias in node.names}


def folder_of(module):
    """The folder or file, without suffix, of a module of the package; None for others."""
    for package, folder in FOLDERS.items():
        if module == package or module.startswith(package + "."):
            return folder + module[len(package) :].replace(".", "/")
    return None


def is_measured(path):
    """Whether a file says what is learnt, not how it is asked for or stored."""
    if path.endswith("__init__.py"):
        return False
    if path.startswith("tasks/common/"):
        return COMMON.fullmatch(path) is not None
    return path.startswith(("benchmarks/", *ROOMS))


def statements(tree):
    """The statements of Python code, without what type checkers alone see."""
    left = [tree]
    while left:
        node = left.pop()
        if is_for_types(node):
            left += node.orelse
            continue
        yield node
        for block in ("body", "orelse", "finalbody", "handlers"):
            left += getattr(node, block, []) if not isinstance(node, (ast.IfExp, ast.Lambda)) else []


def is_for_types(node):
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def shape(node):
    """Pieces of text: the syntax of Python code, without what changes no result."""
    if isinstance(node, list):
        for child in node:
            yield from shape(child)
    elif not isinstance(node, ast.AST):
        yield f"{node!r},"
    elif isinstance(node, ast.Raise):
        yield "Raise"
    elif not (isinstance(node, (ast.Import, ast.ImportFrom)) or is_text(node) or is_for_types(node)):
        yield f"{type(node).__name__.removeprefix('Ann')}("
        for field in node._fields:
            if field not in WITHOUT:
                yield from shape(getattr(node, field, None))
        yield ")"


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


class Record:
    """The code of the kept results: ``NAME/PART`` -> date, digests and, if one was kept, a trial's figures."""

    def __init__(self, folder):
        self.path = folder / "code.json"
        self.load()

    def load(self):
        self.parts = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}

    def keep(self, part, measured, **entry):
        """Store that what is kept of a part is true of this code, as of today, beside what other runs have stored."""
        self.load()
        self.parts[part] = entry | {"date": dt.date.today().isoformat(), "code": " ".join(measured.values())}
        self.path.write_text(json.dumps(self.parts, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    def changed(self, part, date, measured):
        """The files of a part that have changed since; all if its results are newer than what is stored."""
        entry = self.parts.get(part, {"date": ""})
        before = entry["code"].split() if entry["date"] >= date else ()
        return [path for path, digest in measured.items() if digest not in before]


def stale(root, kept):
    """A sentence per part whose code has changed since it was kept; `kept` has the dates by ``(name, part)``."""
    code, record = Code(root), Record(root / "benchmarks" / "results")
    if not record.parts:
        return
    measured = {part: code.measured(*part) for part in kept}
    shared = Counter(path for files in measured.values() for path in files)
    found = {part: record.changed("/".join(part), kept[part], files) for part, files in measured.items()}
    dates = last_changes(root, min(kept.values())) if any(found.values()) else {}
    for part, paths in found.items():
        if paths:
            first = sorted(paths, key=lambda path: (shared[path], path))[:3]
            named = ", ".join(f"{path} ({dates[path]})" if path in dates else path for path in first)
            more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
            yield f"{'/'.join(part)} of {kept[part]} is older than the code that it measures: {named}{more}"


def last_changes(root, since):
    """The date of the last commit of each file since a day; none without a history."""
    command = ["git", "-C", str(root), "log", f"--since={since}T00:00", "--format=@%as", "--name-only", "--no-renames"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return {}
    dates, date = {}, ""
    for line in done.stdout.splitlines():
        if line.startswith("@"):
            date = line[1:]
        elif line:
            dates.setdefault(line, date)
    return dates
