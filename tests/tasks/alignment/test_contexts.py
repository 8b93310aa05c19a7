"""Weights by the letters around: of which strings, by what names, and what they can learn."""

import numpy as np
import pytest

import structsvm
from structsvm.structures.alignments import Strings
from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment.contexts import MOST_LETTERS, contexts_of
from structsvm.tasks.alignment.letters import LetterEncoder

SETTINGS = {"alphabet": "ACGT", "mode": "global", "prior": None, "random_state": 0}


def pairs_by_context(n, seed):
    """A letter of x is left out behind G alone: pairs whose letters do not say where."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        letters = rng.choice(list("ACT"), 14)
        letters[rng.integers(2, 11)] = "G"
        x = "".join(letters)
        place = x.index("G") + 1
        x = x[:place] + x[place] + x[place:]  # twice the same letter, behind G and once more
        row = x[:place] + "-" + x[place + 1 :]
        X.append((x, row.replace("-", "")))
        y.append((x, row))
    return X, y


def test_gaps_are_placed_by_the_letters_beside_them():
    X, y = pairs_by_context(60, 0)
    test = pairs_by_context(40, 1)
    with_them = SequenceAligner(context="letters", C=1.0, **SETTINGS).fit(X, y)
    without = SequenceAligner(context="none", C=1.0, **SETTINGS).fit(X, y)
    assert with_them.score(*test) == 1.0
    assert with_them.score(*test) >= without.score(*test)
    assert len(with_them.coef_) > len(without.coef_)


def test_names_and_explanations():
    X, y = pairs_by_context(30, 0)
    model = SequenceAligner(context="letters", C=1.0, **SETTINGS).fit(X, y).model_
    names = model.weight_names()
    assert len(set(names)) == len(names) == len(model.weights)
    assert {"left 0 with 3", "right 2 with 2", "gap opened beside left 2", "gap extended beside right 0"} <= set(names)
    linear = SequenceAligner(context="letters", gaps="linear", C=1.0, **SETTINGS).fit(X, y).model_.weight_names()
    assert "gap beside left 0" in linear and len(set(linear)) == len(linear)
    assert "gap opened beside right 1" in str(model.explain(X[0]))


@pytest.mark.parametrize(
    ("alphabet", "classes", "n"),
    [("protein", None, 8), ("protein", "hydrophobicity", 8), ("dna", None, 2), ("ABCDEFGHI", None, 0), ("A", None, 0)],
)
def test_which_strings_have_contexts(alphabet, classes, n):
    encoder = LetterEncoder(alphabet, classes)
    contexts = contexts_of(encoder)
    assert len(contexts) == n
    assert all(len(context.scale) == np.prod(encoder.sizes) for context in contexts)


def test_contexts_of_proteins():
    """A window of one letter is that letter's; neighbours beyond the ends have the middle value."""
    encoder = LetterEncoder("protein")
    by_name = {context.name: context for context in contexts_of(encoder)}
    strings = Strings.of([encoder.encode(text)[:, 0] for text in ("I", "R", "GPG", "VKE")])
    assert by_name["hydropathy"].values(strings)[:2].tolist() == [4, 0]
    assert by_name["loop"].values(strings).tolist() == [0, 0, 4, 4, 4, 0, 0, 0]
    assert by_name["left"].values(strings).tolist() == [3, 3, 3, 5, 5, 3, 0, 3]
    assert by_name["right"].values(strings).tolist() == [3, 3, 5, 5, 3, 3, 4, 3]


def test_where_nothing_is_known_of_the_letters():
    assert MOST_LETTERS == 8
    with pytest.raises(ValueError, match="The 'context' parameter must be 'auto' or 'none' for words, and for an a"):
        SequenceAligner(context="letters", alphabet="ABCDEFGHI").fit([("AB", "AB")], [("AB", "AB")])
    words = [(["a", "b"], ["a", "b"])]
    with pytest.raises(ValueError, match="The 'context' parameter must be 'auto' or 'none' for words"):
        SequenceAligner(context="letters").fit(words, words)


def test_files_and_other_parameters(tmp_path):
    X, y = pairs_by_context(30, 0)
    model = SequenceAligner(context="letters", C=1.0, warm_start=True, **SETTINGS).fit(X, y)
    model.save(tmp_path / "with")
    again = structsvm.load(tmp_path / "with")
    assert again.model_.oracle.contexts == model.model_.oracle.contexts and again.predict(X) == model.predict(X)
    assert again.predict_kbest(X[:1], 3)[0][0][0] == model.predict(X[:1])[0]
    with pytest.raises(ValueError, match="trained with another 'context'"):
        again.set_params(context="none").fit(X, y)
    plain = SequenceAligner(context="none", C=1.0, **SETTINGS).fit(X, y)
    plain.save(tmp_path / "without")
    with pytest.raises(ValueError, match="trained with another 'context'"):
        structsvm.load(tmp_path / "without").set_params(context="letters", warm_start=True).fit(X, y)
