"""The bound problem: arguments, sparse cuts, formulations."""

import re
from pathlib import Path

import numpy as np
import pytest
from dual_reference import constraint
from hypothesis import given, settings
from hypothesis import strategies as st
from python_oracles import FORMS, Data, alphas_of

import structsvm
from structsvm import LaRank
from structsvm._problem import Problem
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle

FORMULATIONS = [(rescaling, penalty) for rescaling in ("margin", "slack") for penalty in ("linear", "quadratic", None)]


@pytest.mark.parametrize(("rescaling", "penalty"), FORMULATIONS)
@pytest.mark.parametrize("form", FORMS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8)
def test_separate(rescaling, penalty, form, seed):
    data = Data(seed, n=4, penalty=penalty, form=form)
    problem = data.bind(rescaling)
    w = np.random.default_rng(seed).normal(size=problem.n_features)
    for i, table in enumerate(data.oracle.constraints(data.X, data.Y, rescaling)):
        violations = [b - psi @ w for b, psi in table]
        b, psi = problem.separate(i, w)
        best = max(violations) if penalty is None else max([0.0, *violations])
        assert b - psi @ w == pytest.approx(best, abs=1e-12)
        if b > 0.0:
            k = int(np.argmax(violations))
            assert b == pytest.approx(table[k][0])
            assert np.allclose(psi, table[k][1])
        else:
            assert not psi.any()


@given(seed=st.integers(0, 10**6), loss=st.floats(0.01, 100.0))
@settings(max_examples=20)
def test_the_table_of_formulations(seed, loss):
    """Two classes: the only constraint there is shows its right-hand side and its scale."""
    for rescaling, penalty in FORMULATIONS:
        data = Data(seed, n=1, n_classes=2, penalty=penalty)
        data.oracle.costs = loss * (1.0 - np.eye(2))
        b, psi = data.bind(rescaling).separate(0, -100.0 * (data.oracle.dense(data.X[0], data.Y[0])))
        x, y = data.X[0], data.Y[0]
        b_expected, psi_expected = constraint(
            data.oracle.dense(x, y) - data.oracle.dense(x, 1 - y), loss, rescaling, penalty
        )
        assert b == pytest.approx(b_expected)
        assert np.allclose(psi, psi_expected)


def test_plain_inference_for_perceptrons():
    data = Data(0, n=6)
    problem = data.perceptron()
    w = np.random.default_rng(0).normal(size=problem.n_features)
    for i, (x, y) in enumerate(zip(data.X, data.Y, strict=True)):
        z = int(np.argmax(w.reshape(3, -1) @ x))
        _, psi = problem.separate(i, w)
        assert np.allclose(psi, data.oracle.dense(x, y) - data.oracle.dense(x, z))


@pytest.mark.parametrize(
    ("oracle", "X", "Y", "n", "dtype"),
    [
        (Data().oracle, Data().X, Data().Y, 7, np.float64),
        (ViterbiOracle(2, 3), [np.ones((2, 3))] * 4, [[0, 1]] * 4, 4, np.float32),
        (GreedyOracle(2, 3), [np.ones((2, 3))] * 4, [[0, 1]] * 4, 8, np.float32),
    ],
    ids=["python", "viterbi", "greedy"],
)
def test_attributes_and_arguments(oracle, X, Y, n, dtype):
    problem = oracle.bind(X, Y, rescaling="slack")
    assert isinstance(problem, Problem)
    assert (problem.n_samples, problem.n_features, problem.is_exact) == (n, oracle.n_features, True)
    assert problem.weight_dtype == dtype
    assert problem.formulation == {"rescaling": "slack", "penalty": "linear"}
    assert oracle.bind(X, Y, rescaling=None).formulation["rescaling"] is None
    w = np.zeros(problem.n_features)
    for i in (-1, n, 2**40):
        with pytest.raises(IndexError, match=f"example {i} is out of range for {n} examples"):
            problem.separate(i, w)
    for wrong in (w[1:], np.zeros((1, len(w))), 0.0):
        with pytest.raises(ValueError, match=r"w has shape .*, expected"):
            problem.separate(0, wrong)
    # Any numbers will do for w, and they are not changed.
    for given_w in (list(w), w.astype(np.float32), w[::-1], w.astype(int)):
        b, psi = problem.separate(0, given_w)
        assert b > 0.0 and psi.dtype == np.float64 and psi.shape == (problem.n_features,)
    w.flags.writeable = False
    problem.separate(0, w)


def test_a_problem_without_an_oracle_says_so():
    problem = Problem(1, 2)
    with pytest.raises(NotImplementedError, match="Problem does not implement c_separate"):
        problem.separate(0, np.zeros(2))
    with pytest.raises(NotImplementedError, match="Problem does not implement c_separate"):
        LaRank().solve(problem)


def test_large_cuts():
    """Words of more than the first buffer, and of different lengths, one after the other."""
    rng = np.random.default_rng(0)
    data = Data(0, n=6, n_inputs=700)
    data.X = [np.where(np.arange(700) < n, rng.normal(size=700), 0.0) for n in (1, 700, 0, 30, 22, 699)]
    run = LaRank(C=1.0, max_iter=20, random_state=0, average=False).solve(data.bind())
    _, cuts = alphas_of(run.get_state(), 6, data.oracle.n_features)
    constraints = data.oracle.constraints(data.X, data.Y, "margin")
    for i in range(6):
        for b, psi in cuts[i]:
            assert any(b == bb and np.array_equal(psi, pp) for bb, pp in constraints[i])
    assert run.dual <= run.primal * (1 + 1e-12)


# ---- the C contract and its page ----------------------------------------------------------------

ROOT = Path(__file__).parents[2]
BLOCKS = ["must", "for more than a margin", "for speed, with a default"]
VERB = re.compile(r"^    cdef \S+ (c_\w+)\(self, (.*?)\) (?:except|noexcept)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(c_\w+)\((.*?)\)` \|(.*)\|(.*)\|$", re.MULTILINE)


def declared():
    """``{block: [(verb, names of its parameters)]}`` of the declarations."""
    source = Path(structsvm.__file__).with_name("_problem.pxd").read_text(encoding="utf-8")
    parts = re.split(r"^    # ==== (.*) ====$", source.partition("cdef class Problem(")[2], flags=re.MULTILINE)
    return {
        block: [
            (verb, ", ".join(parameter.split()[-1].lstrip("*") for parameter in parameters.split(",")))
            for verb, parameters in VERB.findall(text)
        ]
        for block, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def test_the_page_lists_the_verbs_of_each_block():
    page = (
        (ROOT / "docs" / "oracles" / "c-contract.md").read_text(encoding="utf-8").partition("\n## The C contract\n")[2]
    )
    sections = re.split(r"^###? (.*)$", page, flags=re.MULTILINE)
    listed = {
        title.lower(): [(verb, parameters) for verb, parameters, *_ in ROW.findall(text)]
        for title, text in zip(sections[1::2], sections[2::2], strict=True)
    }
    assert declared() == {block: listed[block] for block in BLOCKS}
    assert sum(map(len, listed.values())) == sum(map(len, declared().values())) == 20
    assert all(after.strip() for *_, after in ROW.findall(page))


def test_each_verb_is_declared_with_what_holds_before_and_after():
    source = Path(structsvm.__file__).with_name("_problem.pxd").read_text(encoding="utf-8")
    verbs = source.partition("    # ==== must ====\n")[2].split("\n\n")
    for text in verbs:
        if VERB.search(text):
            assert len(VERB.findall(text)) == 1 and "# Before: " in text and "After: " in text, text
