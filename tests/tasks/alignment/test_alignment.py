"""`SequenceAligner`: training, prediction, files of models, bad input."""

import copy
import os
import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

import structsvm
from structsvm import CuttingPlane, ModelFileError
from structsvm.datasets import make_alignment
from structsvm.dual.parallel import Rounds
from structsvm.metrics import q_score
from structsvm.structures.gapped import strip_gaps
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment.letters import LetterEncoder, hydrophobicity
from structsvm.tasks.alignment.model import log_odds_matrix

IDENTITY = SubstitutionMatrix("ACDEFGHIKLMNPQRSTVWYX", 3.0 * np.eye(21) - 1.0)


@pytest.fixture(scope="module")
def homologues():
    return make_alignment(40, divergence=0.5, random_state=0), make_alignment(40, divergence=0.5, random_state=1)


# --- letters --------------------------------------------------------------------------------------


def test_the_rule_for_letters():
    encoder = LetterEncoder("protein")

    def letters(text):
        return "".join(encoder.letters[k] for k in encoder.encode(text)[:, 0])

    assert letters("ACDEFGHIKLMNPQRSTVWYX") == "ACDEFGHIKLMNPQRSTVWYX"
    assert letters("acd") == "ACD"
    assert letters("UOBJZ*uobjz") == "CKXXXXCKXXX"
    dna = LetterEncoder("dna")
    assert "".join(dna.letters[k] for k in dna.encode("acguRYN")[:, 0]) == "ACGTNNN"
    for text, message in [
        ("AC-D", "the letter '-' at position 3"),
        ("AC1", "'1' at position 3"),
        ("Ä", "at position 1"),
        ("MKßV", "'ß' at position 3"),  # SS in upper case
        ("ﬁ", "'ﬁ' at position 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            encoder.encode(text)
    with pytest.raises(ValueError, match="the letter 'N' at position 2"):
        LetterEncoder("ACGT").encode("AN")
    with pytest.raises(ValueError, match="the letter '中' at position 2"):
        LetterEncoder("AC?").encode("A中C")
    with pytest.raises(ValueError, match="'中' at position 1"):
        LetterEncoder("AC", classes=("HE?",)).encode(("A", "中"))
    for options, message in [
        ({"alphabet": "AAC"}, "The 'alphabet' parameter must hold each letter once"),
        ({"alphabet": "ac-"}, "The 'alphabet' parameter must be letters without - and ."),
        ({"alphabet": "AA"}, "The 'alphabet' parameter must hold each letter once"),
        ({"alphabet": "aA"}, "The 'alphabet' parameter must hold each letter once"),
        ({"alphabet": "aß"}, "letters that have no upper case. Got 'aß', with 'ß'"),
        ({"classes": ("HH",)}, "The 'classes' parameter must hold each letter once"),
    ]:
        with pytest.raises(ValueError, match=message):
            LetterEncoder(**options)


def test_position_features():
    assert hydrophobicity("DDDDDDDDIIIIIIIII") == "LLLLLLLMHHHHHHHHH"[:17]
    assert LetterEncoder(classes="hydrophobicity").encode("DDDDDDDDIIIIIIIII")[0].tolist() == [2, 0]
    encoder = LetterEncoder("ACGT", classes=("HEC", "01"))
    assert encoder.encode(("ACG", "HCE", "010")).tolist() == [[0, 0, 0], [1, 2, 1], [2, 1, 0]]
    for bad, message in [
        ("ACG", "expected a tuple of 3 strings"),
        (("ACG", "HC", "010"), "different lengths"),
        (("ACG", "HCX", "010"), "the letter 'X' at position 3"),
    ]:
        with pytest.raises(ValueError, match=message):
            encoder.encode(bad)


# --- training -------------------------------------------------------------------------------------


def test_what_is_given_goes_by_place(homologues):
    """Series have labels of their own, and iterators are read once."""
    import pandas as pd

    data, _ = homologues
    order = np.random.default_rng(0).permutation(len(data.X))
    kinds = (lambda values: pd.Series(values, index=order), lambda values: pd.Series(values, index=order + 1), iter)

    def costs(of=lambda values: values):
        aligner = SequenceAligner(C=0.1, mode="local", prior=IDENTITY, max_iter=2, random_state=0)
        yield aligner.fit(of(data.X), of(data.y)).coef_
        yield aligner.partial_fit(of(data.X), of(data.y), decoys=of(data.decoys)).coef_
        yield aligner.fit(of(data.X), of(data.y), decoys=of(data.decoys)).coef_
        yield aligner.fit(of(data.X), None, decoys=of([iter(some) for some in data.decoys])).coef_
        yield aligner.calibrate(of(data.X), of(data.y)).temperature_
        yield aligner.score(of(data.X), None, decoys=of(data.decoys))
        yield aligner.decision_function(of([x for x, _ in data.X]), of(data.decoys))

    expected = list(costs())
    for of in kinds:
        for value, other in zip(costs(of), expected, strict=True):
            assert np.array_equal(value, other)


def test_the_letters_of_a_matrix():
    """Either case; a matrix of none of the letters is refused."""
    small, large = (SubstitutionMatrix(letters, 3.0 * np.eye(4) - 1.0) for letters in ("acgt", "ACGT"))
    one, two = (SequenceAligner.from_costs(matrix, -3, -1, alphabet="dna") for matrix in (small, large))
    assert (one.coef_ == two.coef_).all() and one.coef_[0] == 2.0
    settings = {"alphabet": "dna", "mode": "global"}
    for matrix in (SubstitutionMatrix("xyz", np.eye(3)), SubstitutionMatrix("?", [[1.0]])):
        with pytest.raises(ValueError, match="has no scores of 'ACGTN'"):
            SequenceAligner.from_costs(matrix, -3, -1, alphabet="dna")
        with pytest.raises(ValueError, match="has no scores of 'ACGTN'"):
            SequenceAligner(prior=(matrix, -3.0, -1.0), **settings).fit([("ACGT", "ACT")], [("ACGT", "AC-T")])


def test_the_pair_without_rows_is_named():
    for y, which in ((None, "y is None: "), ([("A", "A"), None], "y, example 1, is None: ")):
        with pytest.raises(ValueError, match=which + "without alignments there must be decoys"):
            SequenceAligner().fit([("A", "A"), ("C", "C")], y)


@pytest.mark.parametrize("mode", ["semi_global", "global", "local"])
def test_learning_from_alignments(mode, homologues):
    data, test = homologues
    plain = SequenceAligner.from_costs(IDENTITY, -4.0, -1.0, mode=mode)
    model = SequenceAligner(C=1.0, mode=mode, tol=0.05, random_state=0).fit(data.X, data.y)
    assert model.result_.status == "converged" and model.result_.relative_gap <= 0.05
    assert model.score(test.X, test.y) == q_score(test.y, model.predict(test.X))
    assert model.score(test.X, test.y) > plain.score(test.X, test.y)
    # Letters of one family replace each other in the simulation, letters of two do not.
    values = model.substitution_matrix_.values[:20, :20]
    family = np.arange(20) // 4
    same = (family[:, None] == family) & ~np.eye(20, dtype=bool)
    assert values[same].mean() > values[family[:, None] != family].mean()
    assert np.array_equal(values, values.T)


@pytest.mark.parametrize("gaps", ["affine", "linear"])
def test_learning_from_decoys(gaps, homologues):
    data, test = homologues
    model = SequenceAligner(C=1.0, mode="local", gaps=gaps, tol=0.02, random_state=0)
    model.fit(data.X, data.y, decoys=data.decoys)
    assert model.score(data.X, data.y, decoys=data.decoys) >= 0.95
    assert model.score(test.X, test.y, decoys=test.decoys) > 0.7
    assert (model.gap_open_ == model.gap_extend_) == (gaps == "linear")
    (x, z), decoys = test.X[0], test.decoys[0]
    order = model.rank(x, [*decoys, z])
    scores = model.decision_function([x], [[*decoys, z]])[0]
    assert sorted(order.tolist()) == list(range(11)) and (np.diff(scores[order]) <= 0.0).all()


def test_homologues_whose_alignments_are_unknown():
    data, test = make_alignment(15, divergence=0.8, random_state=0), make_alignment(40, divergence=0.8, random_state=1)
    plain = SubstitutionMatrix(IDENTITY.alphabet, 0.2 * IDENTITY.values)
    options = {"C": 0.3, "mode": "local", "tol": 1e-3, "random_state": 0}
    start = {"prior": (plain, -0.8, -0.2)}
    X, decoys = data.X, data.decoys
    given = SequenceAligner.from_costs(plain, -0.8, -0.2, mode="local")

    def objective(model):
        scores = model.decision_function([x for x, _ in X], [[z, *d] for (_, z), d in zip(X, decoys, strict=True)])
        slacks = [max(0.0, 1.0 + s[1:].max() - s[0]) for s in scores]
        return 0.5 * np.sum((model.coef_ - given.coef_) ** 2) + 0.3 * sum(slacks)

    def predicted(model):
        return [tuple(row.upper() for row in rows) for rows in model.predict(X)]  # known whole

    # Rounds by hand: none raises the objective.
    rows, values = predicted(given), [objective(given)]
    for _ in range(10):
        model = SequenceAligner(**options, **start).fit(X, rows, decoys=decoys)
        values.append(objective(model))
        if predicted(model) == rows:
            break
        rows = predicted(model)
    assert all(b <= a + 2e-3 * a for a, b in pairwise(values)) and values[-1] < 0.5 * values[0]
    learnt = SequenceAligner(**options, **start).fit(X, None, decoys=decoys)
    assert learnt.result_.n_rounds > 1
    # Each round goes on from the last one.
    assert objective(learnt) == pytest.approx(values[-1], rel=2e-2)
    assert objective(learnt) <= learnt.result_.primal * (1.0 + 1e-6)
    assert learnt.score(test.X, test.y, decoys=test.decoys) > given.score(test.X, test.y, decoys=test.decoys)
    for fitted, X_bad, more, message in [
        (SequenceAligner(**options, **start), X, {}, "there must be decoys"),
        (SequenceAligner(**options, prior=None), X, {"decoys": decoys}, "prior is None"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitted.fit(X_bad, None, **more)


@pytest.mark.parametrize("mode", ["local", "semi_global"])
def test_homologues_that_the_prior_does_not_align(mode):
    """They begin with the best alignment that has a pair."""
    start = {"prior": (IDENTITY, -4.0, -1.0), "random_state": 0}
    X, decoys = [("AA", "CC"), ("ACDE", "ACDE"), ("AWA", "CCC")], [["DD"], ["FGHI"], ["D"]]
    given = SequenceAligner.from_costs(IDENTITY, -4.0, -1.0, mode=mode)
    assert given.decision_function(["AA"], [["CC"]])[0][0] <= 0.0
    learnt = SequenceAligner(10.0, mode=mode, **start).fit(X, None, decoys=decoys)
    assert learnt.score(X, None, decoys=decoys) == 1.0 > given.score(X, None, decoys=decoys)


@pytest.mark.parametrize("C", [0.3, "auto"])
def test_some_alignments_are_unknown(C):
    """These pairs are aligned in rounds, the others are as they are given."""
    data = make_alignment(40, divergence=0.3, random_state=0)
    costs = {"prior": (IDENTITY, -4.0, -1.0)}
    y = [rows if k % 2 else None for k, rows in enumerate(data.y)]
    model = SequenceAligner(C, random_state=0, **costs).fit(data.X, y, decoys=data.decoys)
    assert model.result_.n_rounds > 0
    none = SequenceAligner(C, random_state=0, **costs).fit(data.X, None, decoys=data.decoys)
    assert model.score(data.X, data.y) >= none.score(data.X, data.y) - 0.01
    # Alignments that no costs would choose teach something else.
    odd = [(x + "-" * (len(z) - 1), "-" * (len(x) - 1) + z) if rows else None for (x, z), rows in zip(data.X, y)]
    learnt = SequenceAligner(C, random_state=0, mode="global", **costs).fit(data.X, odd, decoys=data.decoys)
    none = SequenceAligner(C, random_state=0, mode="global", **costs).fit(data.X, None, decoys=data.decoys)
    assert np.abs(learnt.coef_ - none.coef_).max() > 0.1 or C == "auto"  # "auto" may choose to learn nothing
    with pytest.raises(ValueError, match="there must be decoys to tell the homologues from"):
        model.fit(data.X, y)
    with pytest.raises(ValueError, match="prior is None"):
        SequenceAligner(C, prior=None).fit(data.X, y, decoys=data.decoys)


@pytest.mark.parametrize("event", [ValueError, KeyboardInterrupt])
def test_rounds_that_end_early(event, monkeypatch):
    """An error while the homologues are aligned leaves the old model; Ctrl-C leaves that of the last round."""
    data = make_alignment(8, divergence=0.3, random_state=0)
    costs = {"prior": (IDENTITY, -4.0, -1.0)}
    model = SequenceAligner(C=0.3, max_iter=1, random_state=0, **costs).fit(data.X, data.y)
    before = vars(model).copy()
    rows = SequenceAligner.from_costs(IDENTITY, -4.0, -1.0).predict(data.X)
    one = copy.deepcopy(model).fit(data.X, rows, decoys=data.decoys)
    asked = []

    def completions(self, w, turn=0, turns=1):
        asked.append(w)
        if len(asked) == 2:
            raise event("second round")
        return real(self, w, turn, turns)

    real = Rounds.completions
    monkeypatch.setattr(Rounds, "completions", completions)
    with pytest.raises(event, match="second round" if event is ValueError else "training was interrupted"):
        model.fit(data.X, None, decoys=data.decoys)
    if event is ValueError:
        assert vars(model) == before
    else:
        assert np.array_equal(model.coef_, one.coef_) and (model.coef_ != before["model_"].weights).any()
    with pytest.raises(ValueError, match="there are no examples"):
        model.fit([], None, decoys=[])


def test_solvers_and_formulations(homologues):
    data, _ = homologues
    X, y = data.X[:8], data.y[:8]
    primal = SequenceAligner(C=0.5, tol=1e-3, random_state=0).fit(X, y).result_.primal
    for solver in ("cutting_plane", "frank_wolfe"):
        model = SequenceAligner(C=0.5, solver=solver, tol=9e-3, max_iter=2000, random_state=0).fit(X, y)
        assert model.result_.primal == pytest.approx(primal, rel=1e-2)
    for options in ({"rescaling": "slack"}, {"penalty": "quadratic"}, {"rescaling": "slack", "penalty": "quadratic"}):
        solver = CuttingPlane(C=0.5, tol=0.05, random_state=0, **options)
        assert SequenceAligner(solver=solver).fit(X, y).result_.status == "converged"
    for options in (
        {"loss": "zero_one"},
        {"window": 2},
        {"letter_gaps": True},
        {"classes": "hydrophobicity"},
        {"band": 30},
    ):
        model = SequenceAligner(C=0.5, max_iter=3, random_state=0, **options).fit(X, y)
        assert model.result_.gap >= 0.0
    for name in ("perceptron", "passive_aggressive"):
        assert SequenceAligner(solver=name, max_iter=3, random_state=0).fit(X, y).coef_.any()


def test_the_prior_is_start_and_centre(homologues):
    data, _ = homologues
    given = SequenceAligner.from_costs(IDENTITY, -4.0, -1.0)
    costs = {"prior": (IDENTITY, -4.0, -1.0)}
    near = SequenceAligner(C=1e-9, tol=1e-3, random_state=0, **costs).fit(data.X, data.y)
    assert np.allclose(near.coef_, given.coef_, atol=1e-6)
    assert given.substitution_matrix_["A", "A"] == 2.0 and given.substitution_matrix_["A", "C"] == -1.0
    assert (given.gap_open_, given.gap_extend_) == (-4.0, -1.0)
    far = SequenceAligner(C=1.0, tol=0.05, random_state=0, **costs).fit(data.X, data.y)
    assert far.score(data.X, data.y) > given.score(data.X, data.y)


def test_annotations_help():
    """Letters that say nothing, with annotations that say all."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(20):
        states = "".join(rng.choice(list("HEC"), 12))
        start = int(rng.integers(0, 5))
        z = ("".join(rng.choice(list("AC"), 8)), states[start : start + 8])
        x = ("".join(rng.choice(list("AC"), 12)), states)
        X.append((x, z))
        y.append((x[0], "-" * start + z[0] + "-" * (4 - start)))
    with_them = SequenceAligner(C=1.0, alphabet="AC", classes=("HEC",), tol=0.05, random_state=0).fit(X, y)
    assert with_them.score(X, y) > 0.9
    letters = [(x[0], z[0]) for x, z in X]
    assert SequenceAligner(C=1.0, alphabet="AC", tol=0.05, random_state=0).fit(letters, y).score(letters, y) < 0.8


def test_the_generative_model():
    y = [("AACCx", "AACGX"), ("ACGT", "ACGT")]
    matrix = log_odds_matrix(y, alphabet="ACGTX", symmetric=False)
    counts = np.ones((5, 5))
    for a, b in ["AA", "AA", "CC", "CG", "AA", "CC", "GG", "TT"]:
        counts["ACGTX".index(a), "ACGTX".index(b)] += 1
    joint = counts / counts.sum()
    assert np.allclose(matrix.values, np.log(joint / np.outer(joint.sum(1), joint.sum(0))))
    both = log_odds_matrix(y, alphabet="ACGTX")
    assert np.array_equal(both.values, both.values.T)
    model = SequenceAligner.from_costs(matrix, -0.2, alphabet="ACGTX", symmetric=False, mode="local")
    assert model.gap_open_ == model.gap_extend_ == -0.2
    assert model.predict([("AACC", "AACG")]) == [("AACC", "AACG")]


@pytest.mark.parametrize(
    "options",
    [{}, {"prior": (IDENTITY, -4.0, None), "mode": "local"}, {"solver": "perceptron", "C": None, "prior": None}],
)
@pytest.mark.parametrize("with_decoys", [False, True])
def test_warm_start_goes_on_bit_for_bit(options, with_decoys, homologues, tmp_path):
    data, _ = homologues
    options = {"C": 0.5, "random_state": 0} | options
    known = (data.X[:10], data.y[:10])
    decoys = data.decoys[:10] if with_decoys else None
    whole = SequenceAligner(max_iter=3, **options).fit(*known, decoys=decoys)
    model = SequenceAligner(max_iter=1, warm_start=True, **options).fit(*known, decoys=decoys)
    model.save(tmp_path / "m")
    for again in (model, structsvm.load(tmp_path / "m")):
        again.set_params(max_iter=2).fit(*known, decoys=decoys)
        assert again.n_iter_ == 3 and np.array_equal(again.coef_, whole.coef_)
    # Other examples: their problem around the present costs, as `partial_fit` solves it.
    other = (data.X[10:18], data.y[10:18])
    decoys = data.decoys[10:18] if with_decoys else None
    batch = copy.deepcopy(model).partial_fit(*other, decoys=decoys)
    model.set_params(max_iter=1).fit(*other, decoys=decoys)
    assert model.n_iter_ == 1 and np.array_equal(model.coef_, batch.coef_)
    assert (model.coef_ != again.coef_).any() or "prior" in options  # the prior tells these decoys as it is
    before = model.coef_.copy()
    with pytest.raises(ValueError, match=r"trained with another 'gaps'; set it back.* Got 'linear', it has 'affine'"):
        model.set_params(gaps="linear").fit(*known, decoys=decoys)
    assert np.array_equal(model.coef_, before)


def test_partial_fit(homologues):
    data, test = homologues
    model, costs = SequenceAligner(C=1.0, random_state=0), []
    for first in range(0, 40, 10):
        model.partial_fit(data.X[first : first + 10], data.y[first : first + 10])
        assert model.result_.n_iter == 1 and model.result_.dual <= model.result_.primal
        costs.append(model.coef_.copy())
    assert all((a != b).any() for a, b in pairwise(costs))
    assert model.score(test.X, test.y) > SequenceAligner.from_costs(IDENTITY, -4.0, -1.0).score(test.X, test.y)
    # The batch's problem is that of `fit` around the costs so far.
    (pair, rows), near = (data.X[0], data.y[0]), {"prior": (IDENTITY, -4.0, -1.0)}
    given = SequenceAligner.from_costs(IDENTITY, -4.0, -1.0, C=0.1, random_state=0).partial_fit([pair], [rows])
    assert np.array_equal(
        given.coef_, SequenceAligner(C=0.1, max_iter=1, random_state=0, **near).fit([pair], [rows]).coef_
    )
    with pytest.raises(ValueError, match="y, example 0: the rows have"):
        model.partial_fit([pair], [("A", "AC")])
    with pytest.raises(ValueError, match="has no meaning here: alignments have no classes"):
        model.partial_fit([pair], [rows], ["A"])
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.partial_fit([pair], None)
    assert np.array_equal(model.coef_, costs[-1])
    again = copy.deepcopy(model).partial_fit(data.X, data.y)
    assert np.array_equal(model.set_params(warm_start=True, max_iter=1).fit(data.X, data.y).coef_, again.coef_)


# --- prediction -----------------------------------------------------------------------------------


def test_rows_are_the_sequences():
    for mode in ("semi_global", "global", "local"):
        model = SequenceAligner.from_costs(IDENTITY, -4.0, -1.0, mode=mode)
        X = [("WWACDEFGHKLMWW", "ACDEFGKLMY"), ("a", "ACDE" * 250), ("BZUX", "bzux")]
        for (x, z), rows in zip(X, model.predict(X), strict=True):
            assert [strip_gaps(row) for row in rows] == [x.upper(), z.upper()]
    assert model.predict(X)[0] == ("wwACDEFGHKLMww-", "--ACDEFG-KLM--y")
    many = X * 20
    model.n_jobs = 2
    assert model.predict(many) == model.predict(X) * 20


def test_kbest():
    model = SequenceAligner.from_costs(IDENTITY, -2.0, -1.0)
    ((best, *others),) = model.predict_kbest([("ACDC", "ADC")], 4)
    assert best[0] == model.predict([("ACDC", "ADC")])[0] == ("ACDC", "A-DC")
    assert best[1] == 4.0 and len(others) == 3
    assert all(a[1] >= b[1] for a, b in zip([best, *others], others, strict=False))


def test_kbest_are_different_rows():
    model = SequenceAligner.from_costs(IDENTITY, -2.0, -1.0, mode="semi_global")
    (found,) = model.predict_kbest([("AC", "DAC")], 1000)
    rows = [rows for rows, _ in found]
    assert len(set(rows)) == len(rows) == 21 and rows[0] == ("-AC", "DAC")  # by free gaps at the ends: once, not twice
    assert {("---AC", "DAC--"), ("AC---", "--DAC")} < set(rows)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


def test_biopython_finds_the_same_scores():
    align = pytest.importorskip("Bio.Align")
    rng = np.random.default_rng(0)
    letters = "ACDEFGHIKLMNPQRSTVWY"
    X = [tuple("".join(rng.choice(list(letters), int(k))) for k in rng.integers(1, 60, 2)) for _ in range(30)]
    values = rng.integers(-3, 4, (20, 20))
    matrix = SubstitutionMatrix(letters, values + values.T + 4 * np.eye(20))
    other = align.PairwiseAligner()
    other.substitution_matrix = align.substitution_matrices.Array(letters, 2, matrix.values)
    other.open_gap_score, other.extend_gap_score = -7.0, -1.0
    for mode in ("global", "local", "semi_global"):
        other.mode = "local" if mode == "local" else "global"
        other.end_gap_score = 0.0 if mode == "semi_global" else -1.0
        if mode == "global":
            other.open_gap_score, other.extend_gap_score = -7.0, -1.0
        model = SequenceAligner.from_costs(matrix, -7.0, -1.0, mode=mode, alphabet=letters)
        scores = model.decision_function([x for x, _ in X], [[z] for _, z in X])
        assert [s[0] for s in scores] == [other.score(x, z) for x, z in X]


# --- files, scikit-learn --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "local", "gaps": "linear", "symmetric": False, "alphabet": "ACDEFGHIKLMNPQRSTVWY", "band": (20, 30)},
        {
            "classes": "hydrophobicity",
            "letter_gaps": True,
            "prior": IDENTITY,
            "solver": CuttingPlane(C=0.2, max_iter=20),
        },
        {"context": "letters", "classes": "hydrophobicity", "prior": None, "C": 0.01},
    ],
)
def test_models_in_files(options, homologues, tmp_path):
    data, test = homologues
    if "solver" not in options:
        options = options | {"max_iter": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SequenceAligner(**options).fit(data.X[:6], data.y[:6])
    model.save(tmp_path / "model")
    again = structsvm.load(tmp_path / "model")
    assert type(again) is SequenceAligner
    assert np.array_equal(again.coef_, model.coef_)
    assert again.predict(test.X[:5]) == model.predict(test.X[:5])
    assert again.result_.primal == model.result_.primal
    for name, value in model.get_params(deep=False).items():
        if name not in ("prior", "solver"):
            assert getattr(again, name) == value
    assert np.array_equal(np.asarray(again.substitution_matrix_), np.asarray(model.substitution_matrix_))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).coef_, model.coef_)
    raw = (tmp_path / "model").read_bytes()
    (tmp_path / "short").write_bytes(raw[:-100])
    with pytest.raises(ModelFileError, match="truncated"):
        structsvm.load(tmp_path / "short")


def test_files_that_are_not_sound(homologues, tmp_path):
    from structsvm.model_file import read_model, write_model

    data, _ = homologues
    SequenceAligner(max_iter=1, random_state=0).fit(data.X[:3], data.y[:3]).save(tmp_path / "model")
    file = read_model(tmp_path / "model")
    for meta, arrays in [
        ({"alphabet": "AA"}, {}),
        ({"oracle": {"mode": "sideways"}}, {}),
        ({"params": []}, {}),
        ({"result": {}}, {}),
        ({}, {"weights": np.zeros(3)}),
        ({}, {"weights": np.full(len(file.arrays["weights"]), np.nan)}),
        ({}, {"weights": file.arrays["weights"].astype(np.float32)}),
    ]:
        write_model(tmp_path / "bad", "alignment", file.meta | meta, file.arrays | arrays)
        with pytest.raises(ModelFileError, match="bad: not a sound alignment model"):
            structsvm.load(tmp_path / "bad")
    write_model(tmp_path / "bad", "alignment", file.meta | {"params": {"C": -1.0}}, file.arrays)
    with pytest.raises(ModelFileError, match="The 'C' parameter"):
        structsvm.load(tmp_path / "bad")


def test_clone_and_params():
    model = SequenceAligner(C=2.0, prior=IDENTITY, band=(1, 2))
    assert clone(model).get_params()["band"] == (1, 2)
    with pytest.raises(ValueError, match="The 'mode' parameter of SequenceAligner must be"):
        SequenceAligner(mode="glocal").fit([("A", "A")], [("A", "A")])


# --- bad input ------------------------------------------------------------------------------------


def test_sequences_and_alignments_that_do_not_fit():
    model = SequenceAligner(max_iter=1, random_state=0)
    good = ([("ACD", "AD")], [("ACD", "A-D")])
    model.fit(*good)
    before = model.coef_.copy()
    for X, y, decoys, message in [
        ([("ACD", "AD")], [], None, "X has 1 pairs, y has 0"),
        ([("ACD", "")], [("ACD", "---")], None, "z of example 0: the string is empty"),
        ([("ACD", "A?")], [("ACD", "A-?")], None, r"z of example 0: the letter '\?' at position 2"),
        ([("ACD", "AD")], [("ACD", "AD")], None, "y, example 0: the rows have 3 and 2 columns"),
        ([("ACD", "AD")], [("ACE", "A-D")], None, "y, example 0: its row of x is not x: they differ from letter 3 on"),
        ([("ACD", "AD")], [("ACD", "A--")], None, "y, example 0: its row of z is not z: they differ from letter 2 on"),
        ([("ACD", "AD")], ["ACD"], None, "y, example 0: an alignment is a pair of gapped strings"),
        ([("ACD", "AD")], [("ACD--", "---AD")], None, "y, example 0: the alignment has no pair of letters"),
        (
            [("ACD", "AD")] * 2,
            [("acd", "a-d"), ("ACD", "A-D")],
            None,
            "example 0: its reference alignment has no pair that the loss assesses",
        ),
        ([("ACD", "AD")], [("ACD", "A-D")], [], "X has 1 pairs, decoys has 0"),
        ([("ACD", "AD")], [("ACD", "A-D")], [[]], "decoys, example 0: expected a list of at least one string"),
        ([("ACD", "AD")], [("ACD", "A-D")], ["ACD"], "decoys, example 0: expected a list"),
        ([("ACD", "AD")], [("ACD", "A-D")], [["A1"]], "decoy 0 of example 0: the letter '1'"),
        ([], [], None, "no examples"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, decoys=decoys)
        assert np.array_equal(model.coef_, before)
    with pytest.raises(ValueError, match="x of example 1: the letter '1'"):
        model.predict([("A", "A"), ("1", "A")])
    for X in ([("A", "A", "A")], ["AC"], [3]):
        with pytest.raises(ValueError, match="X, example 0: expected a pair"):
            model.predict(X)
        with pytest.raises(ValueError, match="X, example 0: expected a pair"):
            model.fit(X, [("A", "A")])
    with pytest.raises(ValueError, match="x of example 0: expected a string of letters, got 3"):
        model.rank(3, ["A"])
    with pytest.raises(ValueError, match="k must be an integer of at least 1, got 0"):
        model.predict_kbest([("A", "A")], 0)


def test_costs_that_cannot_be():
    for costs, options, message in [
        ((IDENTITY, np.nan, -1.0), {}, "gap_open must be a finite number, got nan"),
        ((IDENTITY, -1.0, -1.0), {"prior": (IDENTITY, np.nan, None)}, "The 'prior' parameter .* gap_open"),
        (("BLOSUM99", -1.0, -1.0), {}, "there is no substitution matrix 'BLOSUM99'"),
    ]:
        with pytest.raises(ValueError, match=message):
            SequenceAligner.from_costs(*costs, **options)


@pytest.mark.parametrize("mode", ["global", "semi_global", "local"])
@pytest.mark.parametrize(
    ("gaps", "message"),
    [
        ((10, 1), "gap_open must not be positive: .*-10 and -1 .*-11 and -1.*Got 10"),
        ((-10, 0.5), "gap_extend must not be positive: .*Got 0.5"),
        ((np.float32(2.0), None), "gap_open must not be positive: .*Got 2"),
    ],
    ids=str,
)
def test_costs_of_gaps_where_scores_are_meant(mode, gaps, message, homologues):
    """Positive numbers, as other aligners write costs, would reward gaps: few pairs would be aligned rightly."""
    data, _ = homologues
    with pytest.raises(ValueError, match=message):
        SequenceAligner.from_costs(IDENTITY, *gaps, mode=mode)
    with pytest.raises(ValueError, match=message):
        SequenceAligner(prior=(IDENTITY, *gaps), mode=mode, C=0.1).fit(data.X, data.y)
    assert SequenceAligner.from_costs(IDENTITY, 0, 0, mode=mode).predict([("AC", "AC")]) == [("AC", "AC")]


def test_distances_where_scores_are_meant(homologues):
    data, _ = homologues
    distances = SubstitutionMatrix("ACGT", 1.0 - np.eye(4))
    for train in (
        lambda: SequenceAligner.from_costs(distances, -1),
        lambda: SequenceAligner(prior=distances).fit(data.X, data.y),
    ):
        with pytest.raises(ValueError, match=r"these are distances, .*SubstitutionMatrix"):
            train()
    SequenceAligner.from_costs(SubstitutionMatrix("ACGT", -distances.values), -1)
    SequenceAligner.from_costs(SubstitutionMatrix("AC", [[0, 2], [2, 3]]), -1)  # letters that pair with others


def test_a_learnt_reward_for_gaps_is_said():
    model = SequenceAligner(C=10.0, mode="local", alphabet="AC", tol=0.05, random_state=0)
    with pytest.warns(UserWarning, match="a letter against a gap scores up to") as caught:
        model.fit([("AAAA", "CC")] * 3, [("AAAA", "C--C")] * 3)
    assert max(model.gap_open_, model.gap_extend_) > 0.0
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.skipif("STRUCTSVM_DATA" not in os.environ, reason="STRUCTSVM_DATA names no data folder")
def test_real_proteins():
    from structsvm.datasets import fetch_oxbench, fetch_prefab, fetch_substitution_matrix

    assert fetch_substitution_matrix("BLOSUM62")["W", "W"] == 11.0
    data = fetch_oxbench()
    assert (len(data.X_train), len(data.X_valid), len(data.X_test)) == (1089, 378, 540)
    assert all(len(decoys) == 10 for decoys in data.decoys_test)
    assert [len(part) for part in (fetch_prefab().y_train, fetch_prefab().y_valid, fetch_prefab().y_test)] == [
        1148,
        290,
        243,
    ]
    published = SequenceAligner.from_costs("BLOSUM62", -11.0, -1.0)
    learnt = SequenceAligner(C=0.1, prior="BLOSUM62", max_iter=2, random_state=0).fit(
        data.X_train[:300], data.y_train[:300]
    )
    assert published.score(data.X_test[:60], data.y_test[:60]) > 0.9
    assert learnt.score(data.X_test[:60], data.y_test[:60]) > 0.9
    assert published.score(data.X_test[:30], None, decoys=data.decoys_test[:30]) > 0.9


def test_proteins_that_are_not_there(tmp_path):
    from structsvm.datasets import DatasetUnavailableError, fetch_oxbench

    with pytest.raises(
        DatasetUnavailableError, match=r"pairs.fa.gz.* not found in .*its origin has it in another form"
    ):
        fetch_oxbench(tmp_path)


@pytest.mark.parametrize("letters", ["αβγδ", "абвг", "abcd", "天地人和", "אבגד", "😀😁😂🤣"])
def test_letters_of_any_script(letters, tmp_path):
    """The same costs as of Latin letters in their places; what has a case is one letter in both."""
    to_latin = str.maketrans(letters + letters.upper(), "ABCDABCD")
    X, y = [(letters, letters[:2] + letters[3:]), (letters[1:], letters)] * 2, []
    for x, z in X:
        y.append((x, z[:2] + "-" + z[2:]) if len(x) == 4 else ("-" + x, z))
    latin = [[tuple(text.translate(to_latin) for text in pair) for pair in pairs] for pairs in (X, y)]
    settings = {"C": 0.1, "mode": "global", "random_state": 0}
    model = SequenceAligner(alphabet=letters, **settings).fit(X, y)
    other = SequenceAligner(alphabet="ABCD", **settings).fit(*latin)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    found = model.predict(X)
    assert [tuple(row.translate(to_latin) for row in rows) for rows in found] == other.predict(latin[0])
    assert found[0][0] == letters.upper() and model.score(X, y) == 1.0
    model.save(tmp_path / "m")
    assert structsvm.load(tmp_path / "m").predict(X) == found
    with pytest.raises(ValueError, match="x of example 0: the letter 'Ж' at position 1 is not in the alphabet"):
        model.predict([("ж", letters)])
    with pytest.raises(ValueError, match=r"expected a string of letters, got \('the', 'cat'\); lists of words"):
        model.predict([(["the", "cat"], ["the"])])


def test_scores_of_gaps_in_the_wrong_order():
    pairs = make_alignment(4, random_state=0)
    model = SequenceAligner(C=0.01, prior=("BLOSUM62", -1, -11), random_state=0)
    for call in (lambda: model.fit(pairs.X, pairs.y), lambda: SequenceAligner.from_costs("BLOSUM62", -1, -11)):
        with pytest.warns(structsvm.AdviceWarning, match="gap_extend=-11 is below gap_open=-1: .* stands first"):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error", structsvm.AdviceWarning)
        for gaps in ((-11, -1), (-4, -4), (-4,), (0, 0)):
            SequenceAligner.from_costs("BLOSUM62", *gaps)


@pytest.mark.parametrize("own", [0.0, 0.5, -2.0])
def test_matrices_of_distances(own):
    letters, pairs = "ACDEFGHIKLMNPQRSTVWY", make_alignment(4, random_state=0)
    distances = SubstitutionMatrix(letters, 5.0 + (own - 5.0) * np.eye(20))
    with pytest.raises(ValueError, match=rf"has {own:g} at most for a letter with itself .* these are distances"):
        SequenceAligner(prior=(distances, -10, -1)).fit(pairs.X, pairs.y)
