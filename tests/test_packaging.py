"""One import package out of three folders, and what the sdist and the wheel hold."""

import copy
import ctypes
import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import pickle
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from deflate import deflate_compress

import structsvm
from structsvm._problem import Problem
from structsvm.dual._dual import DualState
from structsvm.dual._schedules import FixedSchedule, SubgradientSchedule
from structsvm.dual._weights import WeightState
from structsvm.execution.joined import FINDER, LIST, SHARED, joined
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.taxonomy import TaxonomyOracle
from structsvm.oracles.viterbi import ViterbiOracle

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"structsvm": "structsvm", "oracles": "structsvm/oracles", "tasks": "structsvm/tasks"}
CYTHONS_OWN = "structsvm._shared"  # code that all compiled modules share, in the file that has them all
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
# Bytes: 1.70 million compiled, 1.54 million of Python, .15 million of the runtime in C, pages and stubs, .12 million of
# names and hashes. What Cython writes for CPython 3.12 and later compiles to 2 % more.
MAX_WHEEL = 3_510_000 if sys.version_info < (3, 12) else 3_602_000
NOT_IN_SDIST = (".ci/", ".github/", ".gitattributes", ".gitignore", ".pre-commit-config.yaml")
in_checkout = pytest.mark.skipif(
    not (ROOT / ".git").exists() or shutil.which("git") is None, reason="needs git and a checkout"
)


COMPILED = sorted(joined())


def extension_types(name):
    """The types in a compiled module that it did not import from where they say they live."""
    types = [item for item in vars(importlib.import_module(name)).values() if isinstance(item, type)]
    return [
        cls
        for cls in types
        if cls.__module__ == name or getattr(sys.modules.get(cls.__module__), cls.__name__, None) is not cls
    ]


def test_no_stray_top_level_package():
    assert importlib.util.find_spec("oracles") is None
    assert importlib.util.find_spec("tasks") is None
    code = (
        "import sys, structsvm.oracles.viterbi, structsvm.oracles._viterbi, structsvm.tasks\n"
        "assert not {'oracles', 'tasks'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_one_file_holds_the_compiled_modules():
    assert importlib.util.find_spec(LIST).origin.endswith(".py")
    sources = {
        f"{package}/{path.relative_to(ROOT / folder).with_suffix('').as_posix()}".replace("/", ".")
        for folder, package in PACKAGES.items()
        for path in (ROOT / folder).rglob("*.pyx")
    }
    assert {"structsvm._problem", "structsvm.dual._dual", "structsvm.oracles._viterbi"} < sources == set(COMPILED)
    assert {importlib.util.find_spec(name).origin for name in (CYTHONS_OWN, *COMPILED)} == set(joined().values())
    assert importlib.import_module("structsvm.dual._dual").__spec__.name == "structsvm.dual._dual"


@pytest.mark.parametrize("name", ["structsvm._absent", "structsvm.kernel._dual", "structsvm.oracles._shared"])
def test_what_the_file_lacks_is_not_found(name):
    """A module has one name, whatever the file would say to the last part of another."""
    assert importlib.util.find_spec(name) is None
    with pytest.raises(ModuleNotFoundError, match=name):
        importlib.import_module(name)


FIRST = ("__init__.py", "_distribution.py", "execution/__init__.py", "execution/joined.py")


def install(folder, names=("structsvm._problem",)):
    """Put there what is imported first, and a file that stands for the compiled modules."""
    for name in FIRST:
        target = folder / "structsvm" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder_of("structsvm") / name, target)
    (folder / "structsvm" / f"_shared{SUFFIX}").touch()
    (folder / "structsvm" / "_compiled.py").write_text(f"NAMES = {names!r}\n", encoding="utf-8")
    return folder


def said(code, folder):
    """Words that Python without other packages prints, with a folder first in its path; else its errors."""
    code = f"import sys, importlib.util\nfind = importlib.util.find_spec\nsys.path.insert(0, {str(folder)!r})\n{code}"
    run = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    return run.stdout.split() if run.returncode == 0 else run.stderr


def test_modules_of_an_older_import_are_not_mixed_with_a_new_one(tmp_path):
    old, new = install(tmp_path / "old"), install(tmp_path / "new", ("structsvm._problem", "structsvm._state"))
    code = (
        "import structsvm\nfirst = structsvm\nprint(find('structsvm._problem').origin, find('structsvm._state'))\n"
        "for name in [name for name in sys.modules if name.startswith('structsvm')]: del sys.modules[name]\n"
        f"sys.path[0] = {str(new)!r}\nimport structsvm\n"
        "for name in ('_problem', '_state'): print(find(f'structsvm.{name}').origin)\n"
        "getattr(first, 'Absent', 0)\nprint(find('structsvm._problem').origin)\n"
        "print(sum(type(finder).__name__ == 'Finder' for finder in sys.meta_path))\n"
    )
    before, after = (str(folder / "structsvm" / f"_shared{SUFFIX}") for folder in (old, new))
    assert said(code, old) == [before, "None", after, after, after, "1"]


def test_a_file_of_an_older_version_does_not_win(tmp_path):
    stale = install(tmp_path) / "structsvm" / f"_problem{SUFFIX}"
    stale.touch()
    code = "print(find('structsvm._problem').origin)"
    assert said(code, tmp_path) == [str(stale.with_name(f"_shared{SUFFIX}"))]


@pytest.mark.parametrize("lost", ["_compiled.py", f"_shared{SUFFIX}", None])
def test_an_incomplete_installation_says_so(tmp_path, lost):
    install(tmp_path, ("structsvm._problem",) if lost else ())
    if lost:
        (tmp_path / "structsvm" / lost).unlink()
    for code in ("import structsvm._problem", "import structsvm\nfind('structsvm._optional')"):
        end = said(code, tmp_path).splitlines()[-1]
        assert end.startswith(
            "ImportError: structsvm is installed incompletely; install it anew. It has no structsvm._"
        )
        assert (lost or "_compiled.py").partition(".")[0] in end
    assert said("import structsvm\nprint(find('structsvm.absent'))", tmp_path) == ["None"]


def test_a_list_without_names_is_not_one(tmp_path):
    (install(tmp_path) / "structsvm" / "_compiled.py").write_text("", encoding="utf-8")
    assert "install it anew. It has no structsvm._compiled" in said("import structsvm._problem", tmp_path)


def test_the_finder_comes_back():
    """Where sys.meta_path was another one for a while, in which the package was imported first."""
    with mock.patch.object(sys, "meta_path", [finder for finder in sys.meta_path if finder is not FINDER]):
        assert FINDER not in sys.meta_path
        structsvm.load  # noqa: B018
        assert sys.meta_path[0] is FINDER
        structsvm.load  # noqa: B018
        assert sys.meta_path.count(FINDER) == 1


@pytest.mark.parametrize("name", COMPILED)
def test_extension_types_know_their_module(name):
    for cls in extension_types(name):
        assert cls.__module__ == name
        assert getattr(importlib.import_module(cls.__module__), cls.__qualname__) is cls
        assert pickle.loads(pickle.dumps(cls)) is cls


@pytest.mark.parametrize("name", COMPILED)
def test_one_base_type(name):
    module = importlib.import_module(name)
    bases = {base for item in vars(module).values() if isinstance(item, type) for base in item.__mro__}
    assert {base for base in bases if base.__name__ == "Problem"} <= {Problem}
    assert {base for base in bases if base.__name__ == "WeightState"} <= {WeightState}


class Sign(structsvm.Oracle):
    """y in {-1, 1}; Psi(x, y) = y x / 2."""

    n_features = 2

    def joint_feature(self, x, y):
        return y * x / 2

    def loss(self, y_true, y):
        return float(y != y_true)

    def argmax(self, x, w, y_true=None, rescaling=None):
        return max((-1, 1), key=lambda y: y * (x @ w) / 2 + (y_true is not None and y != y_true))


def states_and_their_parts():
    X, Y = [np.eye(3), np.ones((2, 3))], [np.array([0, 1, 0]), np.array([1, 1])]
    for oracle in (ViterbiOracle(2, 3), GreedyOracle(2, 3)):
        problem = oracle.bind(X, Y)
        state = DualState(problem, np.ones(problem.n_samples))
        yield from (problem.chain, state, FixedSchedule(state, 1, 10))
    problem = TaxonomyOracle(structsvm.Taxonomy.flat("ab"), 2).bind(np.eye(2), [0, 1])
    yield from (problem.decoder, DualState(problem, np.ones(2)))
    problem = Sign().bind(np.eye(2), [1, -1])
    state = WeightState(problem)
    yield from (state, SubgradientSchedule(state))


def test_what_holds_pointers_does_not_pickle():
    for item in states_and_their_parts():
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError):
                pickle.dumps(item, protocol)
        with pytest.raises(TypeError):
            copy.copy(item)


def test_version():
    assert structsvm.__version__ == importlib.metadata.version("structured-svm")


@in_checkout
def test_what_else_states_version_and_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {structsvm.__version__}\n" in citation
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    date = re.search(rf"^## \[{re.escape(structsvm.__version__)}\] - ([\d-]+)$", changes, re.MULTILINE)[1]
    assert f'\ndate-released: "{date}"\n' in citation
    recipe = (ROOT / "build-aux" / "recipe.yaml").read_text(encoding="utf-8")
    assert f'  version: "{structsvm.__version__}"\n' in recipe
    assert f'  summary: "{project["project"]["description"]}"\n' in recipe
    run = re.search(r"^  run:\n((?:    - .*\n)+)", recipe, re.MULTILINE)[1]
    needed = [f"python{project['project']['requires-python']}", *project["project"]["dependencies"]]
    assert [line.removeprefix("    - ").replace(" ", "") for line in run.splitlines()] == needed
    host = re.search(r"^  host:\n((?:    - .*\n)+)", recipe, re.MULTILINE)[1].replace(" ", "").replace("-", "", 1)
    assert set(backend().NEEDED) <= {line.lstrip("-") for line in host.splitlines()}
    assert project["build-system"]["requires"] == []  # or these would be installed before anything is said


@in_checkout
def test_what_runs_the_demo_has_what_its_picture_needs():
    recipe = (ROOT / "build-aux" / "recipe.yaml").read_text(encoding="utf-8")
    (needed,) = re.findall(r"- requirements:\n      run: \[(.+)\]\n(?:.*\n)*?      - structsvm demo ", recipe)
    assert "matplotlib-base" in needed.split(", ")
    workflow = (ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8")
    (extras,) = re.findall(r"'structured-svm\[(.+)\]'\n(?:.*\n)*?.* structsvm demo ", workflow)
    assert "plot" in extras.split(",")


def test_command_line_entry_point():
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="structsvm")
    assert callable(entry.load())


def folder_of(package):
    """Where its files are: in the sources, for an editable install."""
    return Path(importlib.import_module(package).__file__).parent


def test_type_information_and_declarations_are_installed():
    for name in ("py.typed", "__init__.pxd", "_problem.pxd", "_typedefs.pxd", "dual/__init__.pxd", "dual/_dual.pxd"):
        assert (folder_of("structsvm") / name).is_file()


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_modules_have_stubs(name):
    package, _, leaf = name.rpartition(".")
    assert (folder_of(package) / f"{leaf}.pyi").is_file()


def test_compiled_modules_share_what_cython_generates():
    assert importlib.util.find_spec(CYTHONS_OWN).origin.endswith(tuple(EXTENSION_SUFFIXES))
    assert CYTHONS_OWN == SHARED and SHARED in sys.modules


GENERATED = """
static PyObject *__pyx_pf_1m_LOOPS(PyObject *self); /* proto */
static PyObject *__pyx_pw_1m_1LOOPS(PyObject *self); /*proto*/
static int __pyx_f_1m_work(int n); /*proto*/
static PyObject *__pyx_pw_1m_1LOOPS(PyObject *self) {
  return __pyx_pf_1m_LOOPS(self);
}
static PyObject *__pyx_pf_1m_LOOPS(PyObject *self) {
  _save = PyEval_SaveThread();
  for (i = 0; i < n; i+=1) {
  }
  PyEval_RestoreThread(_save);
  return 0;
}
"""


def test_what_python_calls_is_compiled_for_size_unless_it_loops_without_the_gil():
    spec = importlib.util.spec_from_file_location("translate", ROOT / "build-aux" / "translate.py")
    translate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(translate)
    assert translate.marked(GENERATED) == GENERATED
    calls = GENERATED.replace("for (i = 0; i < n; i+=1) {", "{")
    assert translate.marked(calls) == calls.replace("static PyObject", "static CALLED_BY_PYTHON PyObject")
    after = calls.replace("return 0;", "for (;;) {}")  # with the GIL
    assert translate.marked(after).count("CALLED_BY_PYTHON") == 4


def test_no_index_of_compiled_code_counts_from_the_end():
    """Without Cython's `wraparound` it is out of bounds for arrays of NumPy 2.5, which are sequences."""
    sources = [path for room in ("structsvm", "oracles", "tasks") for path in (ROOT / room).rglob("*.pyx")]
    assert len(sources) > 40
    found = [path.name for path in sources if re.search(r"\[-\d+\]", path.read_text(encoding="utf-8"))]
    assert found == []


# ---- an oracle of another project ---------------------------------------------------------------

OTHER_PROJECT = '''
from structsvm._problem cimport Cut, Problem, cut_terms
from structsvm._typedefs cimport float64_t, int32_t

import numpy as np


cdef class SignProblem(Problem):
    """y in {-1, 1} and x in R^d: Psi(x, y) = y x / 2, so the wrong output has dPsi = y x and loss 1."""

    cdef float64_t[:, ::1] yx
    cdef float64_t[::1] buffer      # d values, then d int32 indices

    def __init__(self, x, y, **formulation):
        super().__init__(x.shape[0], x.shape[1], **formulation)
        d = x.shape[1]
        self.yx = np.ascontiguousarray(x * y[:, None])
        self.buffer = np.empty(d + (d + 1) // 2)
        np.asarray(self.buffer)[d:].view(np.int32)[:d] = np.arange(d)

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        cdef Py_ssize_t d = self.n_features, k
        cdef double score = 0.0
        for k in range(d):
            self.buffer[k] = self.yx[i, k]
            score += self.yx[i, k] * (<const float64_t*>w)[k]
        cut_terms(self.rescaling, self.penalty, 1.0, cut)
        cut.words = <int32_t*>&self.buffer[0]
        cut.n_words = 3 * d
        violation[0] = cut.b - cut.scale * score
        if violation[0] <= 0.0:
            cut.n_words = 0
            cut.b = violation[0] = 0.0
        return 0
'''


def compile_module(source, folder):
    """Cython and the C compiler on a file, with what the installed package brings along."""
    cython = pytest.importorskip("Cython.Compiler.Main")
    compiler = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        pytest.skip(f"no C compiler ({compiler})")
    site = str(Path(structsvm.__file__).parents[1])
    result = cython.compile_single(
        str(source), cython.CompilationOptions(include_path=[site], language_level=3), source.stem
    )
    target = folder / (source.stem + sysconfig.get_config_var("EXT_SUFFIX"))
    command = [compiler, "-O1", "-fPIC", "-shared", result.c_file, "-o", str(target)]
    command += ["-I", sysconfig.get_path("include"), "-I", np.get_include(), "-I", site]
    if sys.platform == "darwin":
        command += ["-undefined", "dynamic_lookup"]
    subprocess.run(command, check=True)
    return target


def compiled(source):
    """The module of a .pyx file, compiled beside it."""
    spec = importlib.util.spec_from_file_location(source.stem, compile_module(source, source.parent))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_an_oracle_compiled_by_another_project(tmp_path):
    source = tmp_path / "other_project.pyx"
    source.write_text(OTHER_PROJECT)
    module = compiled(source)
    assert issubclass(module.SignProblem, Problem)

    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], size=50)
    x = rng.normal(size=(50, 4)) + y[:, None] * np.array([2.0, 0.0, -2.0, 0.0])
    problem = module.SignProblem(x, y, rescaling="margin", penalty="linear")
    state = DualState(problem, np.full(50, 1.0), seed=0)
    schedule = FixedSchedule(state, 5, 50)
    schedule.start_pass()
    while not schedule.run(1.0):
        pass
    dual = state.settle()
    assert 0.0 < dual <= state.primal()
    assert np.mean(np.sign(x @ state.weights) == y) > 0.9


VERB = re.compile(r"^    cdef (\S+) (c_\w+)\(self(.*?)\) (?:except|noexcept)", re.MULTILINE | re.DOTALL)


def contract():
    """``(type, verb, parameters)`` of the verbs of the C contract, in their order."""
    source = (folder_of("structsvm") / "_problem.pxd").read_text(encoding="utf-8")
    return [(kind, verb, " ".join(parameters.split())) for kind, verb, parameters in VERB.findall(source)]


def counting(verbs):
    """Source of a subclass of the example's problem that counts the calls of each verb, from threads as well."""
    lines = [f"cdef long[{len(verbs)}] CALLS", "", "cdef class CountingProblem(ClassProblem):"]
    for k, (kind, verb, parameters) in enumerate(verbs):
        names = [parameter.split()[-1].lstrip("*") for parameter in parameters.split(",")[1:]]
        error = "noexcept" if verb in ("c_valid", "c_cost", "c_moments") or kind == "void" else "except? -1"
        error = "except -1" if kind == "int" or verb == "c_retarget" else error
        call = f"ClassProblem.{verb}({', '.join(['self', *names])})"
        lines += [f"    cdef {kind} {verb}(self{parameters}) {error} nogil:", f"        CALLS[{k}] += 1"]
        lines += [f"        {call if kind == 'void' else f'return {call}'}"]
    lines += ["def calls():", f"    return [CALLS[k] for k in range({len(verbs)})]", ""]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def every_verb(tmp_path_factory):
    """The example of a compiled oracle that has all verbs, and a problem that counts their calls."""
    source = tmp_path_factory.mktemp("every_verb") / "every_verb.pyx"
    text = (ROOT / "examples" / source.name).read_text(encoding="utf-8")
    text = text.replace("        return ClassProblem(X, y", "        return CountingProblem(X, y")
    source.write_text(text + "\n\n" + counting(contract()))
    return compiled(source)


def classes_of_rows(rng):
    y = rng.integers(0, 4, 60)
    return rng.normal(size=(60, 3)) + 1.5 * np.eye(4, 3)[y], y


def in_python(module):
    """The example's oracle through its Python methods."""
    return type("InPython", (module.Classes,), {"bind": structsvm.Oracle.bind})(4, 3)


def trained(oracle, X, Y, solver):
    return structsvm.StructuredSVM(oracle, solver).fit(list(X), list(Y))


@pytest.mark.slow
@pytest.mark.parametrize(("rescaling", "penalty"), [("margin", "linear"), ("slack", "quadratic"), ("margin", None)])
def test_every_verb_learns_what_its_python_learns(every_verb, rescaling, penalty):
    X, y = classes_of_rows(np.random.default_rng(0))
    if penalty is None:
        X = X + 20.0 * np.eye(4, 3)[y] - 10.0 * (y == 3)[:, None]
    oracle, obvious = every_verb.Classes(4, 3), in_python(every_verb)
    structsvm.testing.check_oracle(oracle, list(X), list(y))
    how = {"C": 0.3, "tol": 1e-3, "max_iter": 500, "random_state": 0, "rescaling": rescaling, "penalty": penalty}
    solvers = [structsvm.LaRank(**how), structsvm.CuttingPlane(**how)]
    if penalty == "linear":
        solvers += [structsvm.CuttingPlane(form="one_slack", **how)]
        solvers += [structsvm.LaRank(deterministic=False, n_jobs=2, **how)]
        del how["penalty"]
        solvers += [structsvm.FrankWolfe(**how)]
    results = [trained(oracle, X, y, solver).result_ for solver in solvers]
    results.append(trained(obvious, X, y, solvers[0]).result_)
    assert max(r.dual for r in results) <= min(r.primal for r in results) * (1.0 + 1e-9)
    assert max(r.relative_gap for r in results) <= 1e-3


@pytest.mark.slow
def test_every_verb_has_the_expectations_of_all_classes(every_verb):
    rng = np.random.default_rng(0)
    X, y = classes_of_rows(rng)
    problem = every_verb.Classes(4, 3).bind(X, y)
    for i, w in enumerate(rng.normal(size=(10, 12))):
        scores = w.reshape(4, 3) @ X[i]
        p = np.exp(scores) / np.exp(scores).sum()
        loss, entropy, gradient = problem.expect(i, w)
        assert loss == pytest.approx(-np.log(p[y[i]])) and entropy == pytest.approx(-p @ np.log(p))
        np.testing.assert_allclose(gradient, np.outer(p - np.eye(4)[y[i]], X[i]).ravel(), atol=1e-6)
    field = trained(every_verb.Classes(4, 3), X, y, structsvm.solvers.ConditionalLikelihood(C=1.0, tol=1e-4))
    scores = X @ field.coef_.reshape(4, 3).T
    losses = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(60), y]
    assert field.result_.primal == pytest.approx(0.5 * field.coef_ @ field.coef_ + losses.sum(), rel=1e-5)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    gradient = field.coef_ + ((p - np.eye(4)[y]).T @ X).ravel()
    assert np.abs(gradient).max() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("online", [False, True])
def test_every_verb_learns_from_sets_of_classes(every_verb, online):
    rng = np.random.default_rng(0)
    X, y = classes_of_rows(rng)
    sets = [{int(k), int(other)} for k, other in zip(y, rng.integers(0, 4, 60), strict=True)]
    problem = every_verb.Classes(4, 3).bind(X, sets)
    w = rng.normal(size=12)
    scores = X @ w.reshape(4, 3).T
    found = [problem.complete(i, w).tolist() for i in range(60)]
    assert found == [[max(known, key=lambda k: scores[i, k])] for i, known in enumerate(sets)]
    solver = structsvm.LatentSVM(structsvm.LaRank(C=0.3, tol=1e-3, random_state=0), online=online)
    results = [trained(o, X, sets, solver).result_ for o in (every_verb.Classes(4, 3), in_python(every_verb))]
    assert results[0].status == results[1].status == "converged"
    assert results[0].primal == pytest.approx(results[1].primal, rel=2e-3)
    assert results[0].primal >= results[1].dual * (1.0 - 1e-9)


@pytest.mark.slow
def test_every_verb_is_called(every_verb, tmp_path):
    """After the trainings above: by solvers, but for what a resumed one checks and the norm of a constraint."""
    X, y = classes_of_rows(np.random.default_rng(0))
    for max_iter in (2, 4):
        solver = structsvm.LaRank(C=0.3, max_iter=max_iter, random_state=0, checkpoint=tmp_path / "state")
        trained(every_verb.Classes(4, 3), X, y, solver)
    calls = dict(zip([verb for _, verb, _ in contract()], every_verb.calls(), strict=True))
    assert len(calls) == 20
    assert [verb for verb, n in calls.items() if n == 0] == []


# ---- sdist and installed files ------------------------------------------------------------------


def files_of(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A commit of the checkout as it stands, in a repository of its own."""
    folder = tmp_path_factory.mktemp("checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "as it stands"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder


@in_checkout
@pytest.mark.slow
def test_sdist_has_all_and_no_litter(checkout, tmp_path):
    tracked = {name for name in files_of(checkout) if not name.startswith((".git/", *NOT_IN_SDIST))}
    # Files that Python leaves behind where the sources were imported must not go along.
    (checkout / "structsvm" / "datasets" / "__pycache__").mkdir()
    (checkout / "structsvm" / "datasets" / "__pycache__" / "litter.pyc").touch()
    command = [sys.executable, "-P", "-m", "build", "--sdist", "--outdir", str(tmp_path), str(checkout)]
    if all(importlib.util.find_spec(tool) for tool in ("mesonpy", "mesonbuild", "ninja", "Cython")):
        command += ["--no-isolation", "--skip-dependency-check"]
    environment = {**os.environ, "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,) = tmp_path.glob("*.tar.gz")
    top = f"structured_svm-{structsvm.__version__}/"
    with tarfile.open(sdist) as archive:
        names = {member.name for member in archive if member.isfile()}
    assert all(name.startswith(top) for name in names)
    assert {name.removeprefix(top) for name in names} == tracked | {"PKG-INFO"}
    assert {"LICENSE", "README.md", "meson.build", "build-aux/translate.py", "oracles/simd/chain_kernels.c"} <= tracked
    status = subprocess.run(["git", "status", "--porcelain"], cwd=checkout, check=True, capture_output=True, text=True)
    assert status.stdout == "", "the build leaves something in the sources"


@in_checkout
@pytest.mark.slow
def test_the_sdist_of_the_runtime_compiles_by_itself(checkout, tmp_path):
    """It has copies of the sources, which stand in another folder of the checkout; the wheel is built from it."""
    for folder in ("runtime", "structsvm/export/runtime"):
        shutil.copytree(checkout / folder, tmp_path / "from" / folder)
    command = [sys.executable, "-P", "-m", "build", "--outdir", str(tmp_path), str(tmp_path / "from" / "runtime")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in (tmp_path / "from").iterdir()} == {"runtime", "structsvm"}
    assert not (tmp_path / "from" / "runtime" / "structsvm").exists()
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        top = sdist.name.removesuffix(".tar.gz")
        assert archive.extractfile(f"{top}/LICENSE").read() == (checkout / "LICENSE").read_bytes()
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())
        archive.extractall(tmp_path / "wheel")
    for structure in ("sequences", "segments", "documents", "trees"):
        (library,) = (tmp_path / "wheel" / "structsvm_runtime").glob(f"_{structure}.*")
        assert ctypes.CDLL(str(library)).structsvm_predict


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions_have_signatures(name):
    """Theirs are written before the docstring; special methods have those of their slots."""
    module = importlib.import_module(name)
    spaces = [module, *(item for item in vars(module).values() if isinstance(item, type) and item.__module__ == name)]
    routines = [
        item
        for space in spaces
        for key, item in vars(space).items()
        if inspect.isroutine(item) and not key.startswith("__") and getattr(item, "__module__", name) == name
    ]
    for routine in routines:
        assert inspect.signature(routine).parameters is not None, routine


@pytest.fixture(scope="module")
def installed():
    """The files that the wheel installed: name in the wheel -> path; what the installer itself adds is left out."""
    files = importlib.metadata.files("structured-svm") or []
    if not any(file.as_posix() == "structsvm/__init__.py" for file in files):
        pytest.skip("an editable install has no files of its own")
    names = {file.as_posix(): Path(file.locate()) for file in files}
    own = {name for name in names if "__pycache__" not in name and not name.startswith("../")}
    return {name: names[name] for name in own if not name.endswith(("/INSTALLER", "/REQUESTED", "/direct_url.json"))}


@in_checkout
def test_wheel_holds_the_package_and_nothing_else(checkout, installed):
    wanted = {SHARED.replace(".", "/") + SUFFIX, LIST.replace(".", "/") + ".py"}
    for folder, package in PACKAGES.items():
        for name in files_of(checkout / folder):
            shipped = (".py", ".pyi", ".pxd", "py.typed", ".html", ".css", ".js")
            if name.endswith(shipped) or name.startswith("export/runtime/"):
                wanted.add(f"{package}/{name}")
    assert {name for name in installed if ".dist-info/" not in name} == wanted
    for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"):
        assert f"structured_svm-{structsvm.__version__}.dist-info/{name}" in installed
    metadata = importlib.metadata.metadata("structured-svm")
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Requires-Python"] == ">=3.11"


def test_wheel_is_small_and_stripped(installed):
    compiled = [name for name in installed if name.endswith(tuple(EXTENSION_SUFFIXES))]
    assert len(compiled) == 1
    if sys.platform == "linux":
        assert not [n for n in compiled if re.search(rb"\.(symtab|debug_info)\0", installed[n].read_bytes())]
    headers = zipfile.sizeFileHeader + zipfile.sizeCentralDir
    sizes = [headers + 2 * len(name) + len(deflate_compress(path.read_bytes(), 12)) for name, path in installed.items()]
    assert sum(sizes) + zipfile.sizeEndCentDir <= MAX_WHEEL


def backend():
    """The module that builds the project, without what it builds with."""
    spec = importlib.util.spec_from_file_location("backend", ROOT / "build-aux" / "backend.py")
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {"mesonpy": None, "deflate": None}):
        spec.loader.exec_module(module)
    return module


def test_a_build_says_first_what_it_needs(monkeypatch, capsys):
    """Where there is no terminal, to who asks; before it asks for any package."""
    monkeypatch.setattr("builtins.open", mock.Mock(side_effect=OSError("no terminal")))
    monkeypatch.setenv("CC", f"ccache {sys.executable}")
    needed = backend().get_requires_for_build_wheel()
    said = capsys.readouterr().out
    assert sys.executable in said and "2 minutes on two cores" in said
    assert {re.match(r"[\w-]+", name)[0] for name in needed} >= {"meson-python", "cython", "numpy", "deflate"}


def test_a_tool_on_the_path_may_not_run(monkeypatch, tmp_path):
    """A shim of another version, or an old one: ninja is asked for all the same."""
    (tmp_path / "ninja").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "ninja").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("CC", sys.executable)
    for needed in (backend().get_requires_for_build_wheel(), backend().get_requires_for_build_sdist()):
        assert "ninja>=1.8.2" in needed


def test_a_compiler_is_named_as_a_shell_reads_it(monkeypatch, tmp_path):
    own = tmp_path / "a folder" / "cc"
    own.parent.mkdir()
    own.symlink_to(sys.executable)
    monkeypatch.setenv("CC", f"'{own}' -O2")
    assert backend().compiler() == str(own)


@pytest.mark.parametrize(
    "args", [["--cross-file=arm.ini"], ["-Dx=1", "--native-file", "own.ini"], "--cross-file arm.ini"]
)
def test_the_compiler_of_a_machine_file_is_not_looked_for(args, monkeypatch, capsys):
    monkeypatch.setattr("builtins.open", mock.Mock(side_effect=OSError("no terminal")))
    monkeypatch.setenv("CC", "nowhere-cc")
    assert "meson>=1.4" in backend().get_requires_for_build_wheel({"setup-args": args})
    assert "with the compiler of Meson's machine file" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="nowhere-cc"):
        backend().get_requires_for_build_wheel({"setup-args": ["-Dx=1"]})


@pytest.mark.parametrize(
    ("lacks", "message"), [("compiler", r"no C compiler.*\(nowhere-cc\)"), ("headers", r"no .*Python\.h")]
)
def test_a_build_that_lacks_something_ends_at_once(lacks, message, monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "nowhere-cc" if lacks == "compiler" else sys.executable)
    if lacks == "headers":
        monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(SystemExit, match=f"(?s){message}.*apt install gcc python3-dev"):
        backend().get_requires_for_build_wheel()


def test_a_wheel_that_is_packed_again_has_the_same_files(tmp_path):
    """Names, contents, dates and modes; empty files too."""
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {"a/b.py": b"x = 1\n" * 999, "empty": b"", "c": os.urandom(50)}.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 2, 3, 4, 6))
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, data)
    before, size = contents(wheel), wheel.stat().st_size
    backend().repack(wheel)
    assert contents(wheel) == before and wheel.stat().st_size < size
    assert zipfile.ZipFile(wheel).testzip() is None


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return [(e.filename, e.date_time, e.external_attr, e.CRC, archive.read(e)) for e in archive.infolist()]
