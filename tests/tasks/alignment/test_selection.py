"""Choices on the training pairs: the mode, the costs to start from, and how what is not assessed is aligned."""

import sys

import numpy as np
import pytest

import structsvm
from structsvm import LaRank, LatentSVM
from structsvm.datasets import make_alignment
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment import selection
from structsvm.tasks.alignment.examples import AlignedPairs
from structsvm.tasks.alignment.model import AlignmentModel
from structsvm.tasks.alignment.selection import Costs, Selection

IDENTITY = SubstitutionMatrix("ACDEFGHIKLMNPQRSTVWYX", 3.0 * np.eye(21) - 1.0)
NEAR = {"prior": (IDENTITY, -4.0, -1.0)}


@pytest.fixture(scope="module")
def homologues():
    return make_alignment(40, divergence=0.5, random_state=0), make_alignment(40, divergence=0.5, random_state=1)


# --- mode and prior -------------------------------------------------------------------------------


@pytest.mark.parametrize(("gain", "mode"), [(0.5, "local"), (0.05, "semi_global"), (-0.5, "semi_global")])
def test_another_mode_must_surely_be_better(gain, mode, homologues, monkeypatch):
    data, _ = homologues
    trials, real = [], Selection._learnt

    def learnt(self, model, costs, trial, held_out):
        trials.append(costs.mode)
        assert 0 < held_out.sum() < len(held_out) == len(data.X)
        score = real(self, model, costs, trial, held_out)
        assert score.shape == (held_out.sum(),) and 0.3 < score.mean() <= 1.0
        noise = np.random.default_rng(len(trials)).normal(size=len(score))
        return 0.2 * noise + (gain if costs.mode == "local" else 0.0)

    monkeypatch.setattr(Selection, "_learnt", learnt)
    model = SequenceAligner(C=0.1, max_iter=1, context="none", random_state=0).fit(data.X, data.y)
    assert trials == list(selection.MODES) and model.mode_ == model.prior_.mode == mode
    trials.clear()
    assert (
        SequenceAligner(mode="global", context="none", max_iter=1, random_state=0).fit(data.X, data.y).mode_ == "global"
    )
    assert not trials


@pytest.mark.parametrize(("gain", "chosen"), [(0.5, True), (0.0, False), (-0.5, False)])
@pytest.mark.parametrize("mode", ["auto", "local"])
def test_contexts_must_surely_help(mode, gain, chosen, homologues, monkeypatch):
    """Each part of the pairs is held out in turn, without and with contexts."""
    data, _ = homologues
    trials, real = [], Selection._learnt

    def learnt(self, model, costs, trial, held_out):
        trials.append((len(model.oracle.contexts), held_out))
        score = real(self, model, costs, trial, held_out)
        noise = np.random.default_rng(len(trials)).normal(size=len(score))
        return 0.1 * noise + (gain if model.oracle.contexts else 0.0)

    monkeypatch.setattr(Selection, "_learnt", learnt)
    model = SequenceAligner(mode=mode, C=1e-9, max_iter=1, random_state=0).fit(data.X, data.y)
    of_contexts = trials[-2 * selection.HELD_OUT :]
    assert [n > 0 for n, _ in of_contexts] == [False] * selection.HELD_OUT + [True] * selection.HELD_OUT
    assert (sum(held_out for _, held_out in of_contexts) == 2).all()
    assert bool(model.model_.oracle.contexts) == chosen
    trials.clear()
    for context in ("letters", "none"):
        other = SequenceAligner(mode="local", context=context, C=1e-9, max_iter=1, random_state=0)
        assert bool(other.fit(data.X, data.y).model_.oracle.contexts) == (context == "letters")
    assert not trials


def test_pairs_that_share_a_string_stay_together(homologues):
    model = AlignmentModel.of(SequenceAligner())
    X = [("AC", "DE"), ("FG", "HI"), ("DE", "KL"), ("MN", "HI"), ("PQ", "RS"), ("KL", "AC")]
    groups = AlignedPairs(model.references(X, X)).groups.tolist()
    assert groups[0] == groups[2] == groups[5] and groups[1] == groups[3] and len(set(groups)) == 3


def test_what_was_chosen_is_best_near_by(homologues):
    data, _ = homologues
    model = SequenceAligner(C=1e-9, max_iter=1, random_state=0).fit(data.X, data.y)
    chosen = model.prior_
    assert isinstance(chosen, Costs) and chosen.mode == model.mode_ and chosen.scale > 0.0
    assert model.gap_open_ == pytest.approx(chosen.gap_open * chosen.scale, rel=1e-3)

    def score(mode, matrix, gap_open, gap_extend):
        return SequenceAligner.from_costs(matrix, gap_open, gap_extend, mode=mode).score(data.X, data.y)

    untrained, references = AlignmentModel.prepared(model, data.X, data.y)
    search = Selection(untrained, model, references)
    matrix = search.matrices[chosen.matrix]
    assert search.score(chosen) == pytest.approx(score(chosen.mode, matrix, chosen.gap_open, chosen.gap_extend))
    for step in selection.STEPS:
        assert score(chosen.mode, matrix, chosen.gap_open * step, chosen.gap_extend) <= search.score(chosen)
        assert score(chosen.mode, matrix, chosen.gap_open, chosen.gap_extend * step) <= search.score(chosen)
    assert str(chosen) in f"prior: {chosen}" and chosen.matrix in str(chosen)


def test_what_is_given_stays(homologues):
    data, _ = homologues
    options = {"C": 1e-9, "max_iter": 1, "random_state": 0}
    model = SequenceAligner(prior=(IDENTITY, None, -0.7), mode="global", **options).fit(data.X, data.y)
    assert model.prior_[:2] == ("global", "prior") and model.prior_.scale == 1.0
    assert model.gap_extend_ == pytest.approx(-0.7, rel=1e-3) and model.gap_open_ < model.gap_extend_
    near = SequenceAligner(mode="global", **options, **NEAR).fit(data.X, data.y)
    assert near.prior_ == ("global", "prior", -4.0, -1.0, 1.0)
    linear = SequenceAligner(gaps="linear", **options).fit(data.X, data.y)
    assert linear.prior_.gap_open == linear.prior_.gap_extend == pytest.approx(linear.gap_open_ / linear.prior_.scale)
    nothing = SequenceAligner(prior=None, **options).fit(data.X, data.y)
    assert nothing.prior_ is None and np.abs(nothing.coef_).max() < 1e-5
    few = SequenceAligner(**options).fit(data.X[:5], data.y[:5])
    assert few.mode_ == "semi_global" and few.prior_.matrix == "BLOSUM62"
    assert few.prior_[2:4] == pytest.approx((-11.0, -1.0), abs=0.05)


def test_pairs_without_weight_choose_nothing(homologues):
    data, test = homologues
    weight = np.repeat([1.0, 0.0], 40)
    model = SequenceAligner(max_iter=1, random_state=0).fit(data.X + test.X, data.y + test.y, weight)
    assert model.prior_ == SequenceAligner(max_iter=1, random_state=0).fit(data.X, data.y).prior_


def test_a_band_leaves_the_modes_that_fit(homologues):
    data, _ = homologues
    X, y = list(data.X), list(data.y)
    y[30] = (y[30][0] + "A" * 30 + "-" * 30, y[30][1] + "-" * 30 + "C" * 30)
    X[30] = tuple(row.replace("-", "") for row in y[30])
    assert any(c.islower() for c in y[30][0])
    assert SequenceAligner(band=25, max_iter=1, random_state=0).fit(X, y).mode_ == "local"
    with pytest.raises(ValueError, match=r"example 30: no alignment in the band agrees with what is known; widen it"):
        SequenceAligner(band=25, mode="global", max_iter=1, random_state=0).fit(X, y)
    y[30] = tuple(row.upper() for row in y[30])
    with pytest.raises(ValueError, match=r"example 30: the alignment leaves the band"):
        SequenceAligner(band=25, mode="global", max_iter=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"example \d+: .* band"):
        SequenceAligner(band=0, max_iter=1, random_state=0).fit(X, y)
    y[30] = tuple(row.lower() for row in y[30])
    with pytest.raises(ValueError, match=r"example 30: its reference alignment has no pair that the loss assesses"):
        SequenceAligner(max_iter=1).fit(X, y)


def test_decoys_choose_too(homologues):
    data, _ = homologues
    options = {"C": 0.1, "max_iter": 2, "random_state": 0}
    model = SequenceAligner(**options).fit(data.X, data.y, decoys=data.decoys)
    usual = SequenceAligner.from_costs("BLOSUM62", -11.0, -1.0)
    assert model.score(data.X, data.y, decoys=data.decoys) >= usual.score(data.X, data.y, decoys=data.decoys)
    unaligned = SequenceAligner(**options).fit(data.X, None, decoys=data.decoys)
    assert unaligned.prior_.matrix != selection.COUNTED and unaligned.prior_.scale == 1.0


@pytest.mark.parametrize(("alphabet", "matrix"), [("dna", "NUC.4.4"), ("ACGT", "equal")])
def test_other_alphabets(alphabet, matrix):
    model = SequenceAligner(alphabet=alphabet, max_iter=1, random_state=0).fit([("ACGT", "AGT")], [("ACGT", "A-GT")])
    assert model.prior_.matrix == matrix
    assert model.predict([("AACCGGTT", "AACGGTT")])[0][0] == "AACCGGTT"


def test_without_biopython(homologues, monkeypatch):
    data, _ = homologues
    monkeypatch.setitem(sys.modules, "Bio.Align", None)
    with pytest.raises(
        ImportError, match=r"published matrices come with Biopython: pip install 'structured-svm\[alignment\]'"
    ):
        SubstitutionMatrix.published("BLOSUM62")
    with pytest.warns(UserWarning, match="are chosen with equal scores of all letters: published matrices come"):
        model = SequenceAligner(max_iter=1, random_state=0).fit(data.X, data.y)
    assert model.prior_.matrix in ("equal", "counted")


def test_published_matrices():
    assert SubstitutionMatrix.published("BLOSUM62")["W", "W"] == 11.0
    assert SubstitutionMatrix.published("GONNET1992")["C", "C"] == 11.5
    with pytest.raises(
        ValueError, match=r"there is no substitution matrix '\.\./x', neither a file nor one of BENNER22,"
    ):
        SubstitutionMatrix.published("../x")


def test_the_search_is_bounded(monkeypatch):
    """It aligns about as many pairs as so many passes over them, however many there are."""
    data = make_alignment(700, length=12, n_decoys=1, random_state=0)
    aligned, real = [], AlignmentModel.held_out_scores

    def judged(self, references):
        aligned.append(len(references))
        return real(self, references)

    monkeypatch.setattr(AlignmentModel, "held_out_scores", judged)
    SequenceAligner(max_iter=1, random_state=0).fit(data.X, data.y)
    assert aligned.count(selection.FIRST) == 27 and max(aligned) == selection.LAST
    assert sum(aligned) < 80 * selection.LAST  # a quarter of it for the decoding that each C is judged by


def test_files_and_warm_starts(homologues, tmp_path):
    data, _ = homologues
    model = SequenceAligner(C=0.1, max_iter=1, random_state=0, warm_start=True).fit(data.X, data.y)
    model.save(tmp_path / "model")
    again = structsvm.load(tmp_path / "model")
    assert (again.mode, again.prior) == ("auto", "auto") and again.prior_ == model.prior_ and again.mode_ == model.mode_
    whole = SequenceAligner(C=0.1, max_iter=2, random_state=0).fit(data.X, data.y)
    assert np.array_equal(again.fit(data.X, data.y).coef_, whole.coef_)
    other = next(mode for mode in selection.MODES if mode != model.mode_)
    with pytest.raises(ValueError, match=f"trained with another 'mode'; set it back.* Got '{other}', it has '"):
        again.set_params(mode=other).fit(data.X, data.y)


@pytest.mark.parametrize("scrambled", [False, True])
def test_learnt_costs_are_not_worse_than_the_prior(scrambled, homologues):
    """C is chosen among values and one with which nothing is learnt: wrong alignments hardly change the prior."""
    data, test = homologues
    y = [tuple(reversed_pairs(rows) if scrambled and k % 2 else rows) for k, rows in enumerate(data.y)]
    model = SequenceAligner(mode="global", random_state=0, **NEAR).fit(data.X, y)
    found = model.validation_
    assert found["C"][0] < 1e-3 * found["C"][1] and found["passes"][0] > 0
    assert found["score"][found["C"].tolist().index(model.C_)] == found["score"].max() >= found["score"][0]
    if scrambled:
        start = SequenceAligner.from_costs(IDENTITY, -4.0, -1.0, mode="global")
        assert np.allclose(model.coef_, start.coef_, atol=0.2)  # by expected pairs, held-out scores differ by .001
        assert model.score(test.X, test.y) >= start.score(test.X, test.y)


def reversed_pairs(rows):
    """An alignment without meaning: all letters of x that have no partner first."""
    x, z = (row.replace("-", "").upper() for row in rows)
    n = max(len(x) - len(z) // 3, 0)
    return x + "-" * (len(z) - len(x) + n), "-" * n + z


# --- columns that are not assessed ----------------------------------------------------------------


def moved(y):
    """Alignments that differ in their lower-case columns only: each letter against a gap."""
    found = []
    for rows in y:
        pairs = ["", ""]
        for a, b in zip(*rows, strict=True):
            apart = a.islower() and b.islower()
            pairs[0] += a + "-" * apart
            pairs[1] += "-" * apart + b
        found.append(tuple(pairs))
    return found


def half_assessed(data):
    rng = np.random.default_rng(0)
    y = []
    for row_x, row_z in data.y:
        free = np.repeat(rng.random(len(row_x) // 5 + 1) < 0.4, 5)[: len(row_x)]
        free[rng.integers(len(row_x) // 2)] = False
        y.append(
            tuple("".join(c.lower() if f else c for c, f in zip(row, free, strict=True)) for row in (row_x, row_z))
        )
    return [k for k, (a, b) in enumerate(y) if any(c.isupper() and d.isupper() for c, d in zip(a, b, strict=True))], y


def test_letters_outside_of_local_alignments_are_known(homologues):
    """Rows as they are predicted; with a lower-case pair anywhere, lower case means that nobody has assessed."""
    data, _ = homologues
    upper = [tuple(row.upper() for row in rows) for rows in data.y]
    assert upper != [*data.y]
    pair = next(k for k, (a, b) in enumerate(zip(*data.y[0], strict=True)) if a.isupper() and b.isupper())
    some = [tuple(row[:pair] + row[pair].lower() + row[pair + 1 :] for row in data.y[0]), *data.y[1:]]
    options = {"C": 0.1, "mode": "local", "max_iter": 2, "random_state": 0}
    one, other, third = (SequenceAligner(**options, **NEAR).fit(data.X, y).coef_ for y in (data.y, upper, some))
    np.testing.assert_array_equal(one, other)
    assert (third != one).any()


@pytest.mark.parametrize("mode", selection.MODES)
@pytest.mark.parametrize("with_decoys", [False, True])
def test_what_is_not_assessed_is_not_learnt(mode, with_decoys, homologues):
    data, _ = homologues
    chosen, y = half_assessed(data)
    X, y = [data.X[k] for k in chosen], [y[k] for k in chosen]
    decoys = [data.decoys[k] for k in chosen] if with_decoys else None
    options = {"C": 0.1, "mode": mode, "max_iter": 2, "random_state": 0}
    one = SequenceAligner(**options, **NEAR).fit(X, y, decoys=decoys)
    assert moved(y) != y
    other = SequenceAligner(**options, **NEAR).fit(X, moved(y), decoys=decoys)
    assert np.array_equal(one.coef_, other.coef_)
    upper = [tuple(row.upper() for row in rows) for rows in y]
    assert (SequenceAligner(**options, **NEAR).fit(X, upper, decoys=decoys).coef_ != one.coef_).any()


def test_the_certificate_bounds_what_is_left_open(homologues):
    """sum of max(loss + score of any) - (score of the best that agrees), at the learnt costs, is at most the primal."""
    data, _ = homologues
    chosen, y = half_assessed(data)
    X, y = [data.X[k] for k in chosen], [y[k] for k in chosen]
    model = SequenceAligner(C=0.1, mode="semi_global", max_iter=3, random_state=0, **NEAR).fit(X, y)
    inner, start = model.model_, SequenceAligner.from_costs(IDENTITY, -4.0, -1.0)
    references = inner.references(X, y)

    def primal(guide):
        problem = inner.oracle.bind_references(inner.oracle.completed(references, guide))
        cuts = [problem.separate(i, inner.weights) for i in range(len(X))]
        slacks = sum(b - psi @ inner.weights for b, psi in cuts)
        return 0.5 * np.sum((inner.weights - start.coef_) ** 2) + 0.1 * float(np.sum(slacks))

    assert primal(start.coef_) == pytest.approx(model.result_.primal, rel=1e-6)
    assert primal(inner.weights) < model.result_.primal


@pytest.mark.parametrize("prior", [NEAR, {"prior": None}], ids=["prior", "no prior"])
def test_open_columns_and_what_was_learnt_before(prior, homologues, tmp_path):
    data, _ = homologues
    chosen, y = half_assessed(data)
    X, y = [data.X[k] for k in chosen], [y[k] for k in chosen]
    options = {"C": 0.1, "mode": "global", "random_state": 0} | prior
    whole = SequenceAligner(max_iter=3, **options).fit(X, y)
    model = SequenceAligner(max_iter=1, warm_start=True, **options).fit(X, y)
    model.save(tmp_path / "model")
    again = structsvm.load(tmp_path / "model")
    again.set_params(max_iter=2).fit(X, y)
    assert again.n_iter_ == 3 and np.array_equal(again.coef_, whole.coef_)
    # A batch is aligned anew, by the costs so far.
    batch = model.partial_fit(X[:10], y[:10]).model_
    assert np.array_equal(batch.guide, structsvm.load(tmp_path / "model").coef_)


def test_open_columns_in_rounds(homologues, tmp_path):
    """A LatentSVM aligns them by the costs of each round; the first one is by the prior."""
    data, _ = homologues
    chosen, y = half_assessed(data)
    X, y = [data.X[k] for k in chosen], [y[k] for k in chosen]
    options = {"mode": "semi_global", "warm_start": True} | NEAR
    once, rounds = (
        SequenceAligner(solver=solver(LaRank(C=0.1, max_iter=3, random_state=0)), C=None, **options).fit(X, y)
        for solver in (lambda inner: inner, LatentSVM)
    )
    assert rounds.result_.n_rounds > 1
    assert rounds.result_.primal < once.result_.primal
    rounds.save(tmp_path / "model")
    primal = rounds.result_.primal
    for model in (rounds, structsvm.load(tmp_path / "model")):
        assert model.fit(X, y).result_.primal <= primal * (1.0 + 1e-9)
    one = SequenceAligner(solver=LatentSVM(LaRank(C=0.1, max_iter=3, random_state=0), rounds=1), C=None, **options)
    assert np.array_equal(one.fit(X, y).coef_, once.coef_)


def test_unknown_alignments_and_what_was_learnt_before(homologues, tmp_path):
    data, _ = homologues
    X, decoys = data.X[:30], data.decoys[:30]
    options = {"C": 0.1, "mode": "global", "max_iter": 2, "random_state": 0} | NEAR
    path = tmp_path / "run"
    whole = SequenceAligner(**options).fit(X, None, decoys=decoys)
    model = SequenceAligner(**options, checkpoint=path, warm_start=True).fit(X, None, decoys=decoys)
    assert path.exists()
    assert np.array_equal(model.coef_, whole.coef_)
    primal = model.result_.primal
    model.set_params(checkpoint=None).save(tmp_path / "model")
    for other in (model, structsvm.load(tmp_path / "model")):
        assert other.fit(X, None, decoys=decoys).result_.primal <= primal * (1.0 + 1e-9)
    # One of them is an unknown alignment among others, which needs decoys just the same.
    one = SequenceAligner(**options).fit(X, [None, *data.y[1:30]], decoys=decoys)
    assert one.result_.n_rounds > 0
    with pytest.raises(ValueError, match="there must be decoys to tell the homologues from"):
        SequenceAligner(**options).fit(X, [None, *data.y[1:30]])
