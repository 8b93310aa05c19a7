"""Predictions: best alignments, or those with the most expected right pairs; and how that is chosen."""

import numpy as np
import pytest

import structsvm
from structsvm.datasets import make_alignment
from structsvm.metrics import alignment_scores
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment.decoding import SHARPNESS
from structsvm.tasks.common.selection.choice import ChosenDecoding

DNA = SubstitutionMatrix("ACGT", 5.0 * np.eye(4) - 2.0)
COSTS = {"alphabet": "ACGT", "mode": "semi_global"}


def far_relatives(n, seed):
    """Pairs whose letters are often others, with two gaps."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        x = rng.choice(list("ACGT"), 60)
        z = np.where(rng.random(60) < 0.4, x, rng.choice(list("ACGT"), 60))
        for at, length in rng.integers((5, 1), (50, 5), (2, 2)):
            z[at : at + length] = "-"
        rows.append(("".join(x), "".join(z)))
    return [tuple(row.replace("-", "") for row in pair) for pair in rows], rows


def test_expected_pairs_find_more_of_far_relatives():
    data = make_alignment(60, length=80, divergence=1.0, random_state=0)
    aligner = SequenceAligner.from_costs("BLOSUM62", -11.0, -1.0)
    usual = SHARPNESS / aligner.substitution_matrix_.values.std()
    assert [aligner.model_.beta_of(decode) for decode in (None, "best", "pairs")] == [0.0, 0.0, pytest.approx(usual)]
    best, found = (aligner.predict(data.X, decode=decode) for decode in ("best", "pairs"))
    assert best == aligner.predict(data.X)
    assert alignment_scores(data.y, found).q > alignment_scores(data.y, best).q + 0.05
    for (x, z), rows in zip(data.X, found, strict=True):
        assert tuple(row.replace("-", "") for row in rows) == (x, z)


def test_predictions_do_not_depend_on_the_unit_of_costs():
    X, _ = far_relatives(40, 1)
    large = SubstitutionMatrix("ACGT", 16.0 * DNA.values)
    found = [
        SequenceAligner.from_costs(matrix, -6.0 * unit, -1.0 * unit, **COSTS).predict(X, decode="pairs")
        for matrix, unit in ((DNA, 1.0), (large, 16.0))
    ]
    assert found[0] == found[1]


def test_the_choice(tmp_path):
    X, y = far_relatives(200, 2)
    settings = {"prior": (DNA, -6.0, -1.0), "context": "none", "random_state": 0} | COSTS
    model = SequenceAligner(**settings).fit(X, y)
    chosen = model.model_.choice.get(ChosenDecoding)
    gain, error = chosen.decoded
    assert chosen.sharpness > 0.0 and gain > error and "most expected pairs" in model.model_.choice.text
    assert model.beta_ > 0.0 and model.validation_["sharpness"] == chosen.sharpness
    test = far_relatives(200, 3)
    assert model.score(*test) > alignment_scores(test[1], model.predict(test[0], decode="best")).q
    model.save(tmp_path / "model")
    stored = structsvm.load(tmp_path / "model")
    assert stored.predict(test[0]) == model.predict(test[0]) and stored.beta_ == model.beta_
    assert stored.model_.choice == model.model_.choice


def test_best_alignments_where_they_are_wanted_or_nothing_is_chosen():
    data = make_alignment(30, random_state=0)
    for settings in ({"C": 0.01}, {}):
        model = SequenceAligner(mode="local", prior="BLOSUM62", random_state=0, **settings).fit(data.X, data.y)
        kbest = [found[0][0] for found in model.predict_kbest(data.X[:5], 1)]
        assert model.predict(data.X[:5], decode="best") == kbest
        assert settings == {} or (model.beta_ == 0.0 and model.predict(data.X[:5]) == kbest)
    decoys = SequenceAligner(mode="local", prior="BLOSUM62", random_state=0).fit(data.X, data.y, decoys=data.decoys)
    assert decoys.beta_ == 0.0


def test_a_choice_that_no_program_wrote():
    with pytest.raises(ValueError, match="sharpness"):
        ChosenDecoding.from_json({"sharpness": -1.0, "decoded": [0.0, 0.0]})
    with pytest.raises(ValueError, match="decode must be 'best', 'pairs' or None, got 'worst'"):
        SequenceAligner.from_costs("BLOSUM62", -11.0, -1.0).predict([("A", "A")], decode="worst")
