"""Lists of words as sequences to align."""

import io

import numpy as np
import pytest

import structsvm
from structsvm.metrics import alignment_scores, pair_f1
from structsvm.plotting import AlignmentDisplay
from structsvm.structures.gapped import join_rows, split_rows
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment.files import read_words, to_words
from structsvm.tasks.alignment.words import MOST_WORDS, WordEncoder


def sentences(n, n_words, seed=0, word=str, rare=False):
    """Pairs of lists that differ by words left out, put in and spelt otherwise, and their rows."""
    rng, X, y = np.random.default_rng(seed), [], []
    for k in range(n):
        rows = [], []
        for w in rng.integers(0, n_words, 8).tolist():
            name = word(f"{k}/{w}" if rare else w)
            kind = rng.random()
            rows[0].append(None if kind < 0.12 else name)
            rows[1].append(None if kind > 0.88 else word(f"{k}/x" if rare else n_words) if w == 0 else name)
        if all(any(w is not None for w in row) for row in rows) and any(None not in pair for pair in zip(*rows)):
            X.append(tuple([w for w in row if w is not None] for row in rows))
            y.append(rows)
    return X, y


X, Y = sentences(60, 30)


@pytest.mark.parametrize("mode", ["auto", "global", "local"])
@pytest.mark.parametrize("word", [str, int, lambda w: (str(w), "NN")], ids=["str", "int", "tuple"])
def test_sentences(mode, word, tmp_path):
    """Words of any hashable kind; predictions are lists of them, and a file's are the same."""
    X, y = sentences(60, 30, word=word)
    model = SequenceAligner(mode=mode, C=0.1, random_state=0).fit(X[:40], y[:40])
    found = model.predict(X)
    for (x, z), rows in zip(X, found, strict=True):
        assert all(isinstance(row, list) for row in rows) and len(rows[0]) == len(rows[1])
        assert [[w for w in row if w != "-"] for row in rows] == [x, z]
    assert model.score(X[40:], y[40:]) > 0.95 and pair_f1(y[40:], found[40:]) > 0.9
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.predict(X) == found and loaded.model_.encoder.words == model.model_.encoder.words
    loaded.partial_fit(X[40:], y[40:])
    assert loaded.score(X, y) > 0.95
    assert model.predict_kbest(X[:1], 2)[0][0][0] == found[0]
    assert "with" in str(model.explain(X[0])) or "gap" in str(model.explain(X[0]))
    with pytest.raises(ValueError, match="explain takes one input, got 3"):
        model.explain(X[:3])
    assert model.calibrate(X[40:], y[40:]).temperature_ > 0.0


def test_words_that_are_frequent_are_as_letters():
    """With every word frequent, costs are those of letters."""
    rng, letters = np.random.default_rng(0), "ABCD"
    X, y = [], []
    for _ in range(15):
        row_x = "".join(rng.choice([*letters], 8))
        row_z = "".join(rng.choice(["-", *letters]) if rng.random() < 0.4 else c for c in row_x[1:]) + row_x[0]
        row_x = row_x[1:] + row_x[0]
        X.append((row_x, row_z.replace("-", "")))
        y.append((row_x, row_z))
    settings = {"C": 0.1, "mode": "global", "prior": None, "solver": "cutting_plane", "tol": 1e-3, "max_iter": 500}
    one = SequenceAligner(alphabet=letters, **settings).fit(X, y)
    other = SequenceAligner(**settings).fit(*([tuple(map(list, pair)) for pair in pairs] for pairs in (X, y)))
    assert sorted(other.model_.encoder.words) == [*letters]
    assert other.result_.primal == pytest.approx(one.result_.primal, rel=2e-3)
    for a in letters:
        assert other.substitution_matrix_[a, "A"] == pytest.approx(one.substitution_matrix_[a, "A"], abs=0.02)


def test_words_never_seen():
    """Other words are the same, or they are not: what training learnt of rare ones holds for all."""
    X, y = sentences(60, 30, rare=True)
    model = SequenceAligner(C=0.1, random_state=0).fit(X, y)
    assert model.model_.encoder.words == () and model.coef_.shape == (4,)
    new = (["ein", "Hund", "bellt"], ["ein", "großer", "Hund", "bellt"])
    assert model.predict([new]) == [(["ein", "-", "Hund", "bellt"], new[1])]
    matrix = model.substitution_matrix_
    assert matrix["(other)", "(other)"] > matrix["(other)", "(another)"]
    assert any("(other) with (another)" in name for name in model.model_.weight_names())
    many = WordEncoder.of_lists("protein", [[k, k % 700] for k in range(5000)])
    assert len(many.words) == MOST_WORDS


def test_decoys():
    decoys = [[X[(k + 1) % len(X)][1], X[(k + 2) % len(X)][1]] for k in range(len(X))]
    for y in (Y, None):
        model = SequenceAligner(C=0.1, random_state=0).fit(X, y, decoys=decoys)
        assert model.score(X, Y, decoys=decoys) > 0.95
    order = model.rank(X[0][0], [X[3][1], X[0][1], X[4][1]])
    assert order[0] == 1


def test_gaps():
    """None and "-" are gaps; where "-" is a word, None alone is."""
    x, z = ["a", "-", "b"], ["a", "b"]
    y = (x, ["a", None, "b"])
    dashes = [tuple(["-" if w is None else w for w in row] for row in rows) for rows in Y]
    assert SequenceAligner(C=0.1, random_state=0).fit(X, dashes).predict(X) == (
        SequenceAligner(C=0.1, random_state=0).fit(X, Y).predict(X)
    )
    model = SequenceAligner(C=0.1, mode="global", random_state=0).fit([(x, z)] * 20, [y] * 20)
    assert model.predict([(x, z), (["a", "b"], ["a"])]) == [y, (["a", "b"], ["a", "-"])]
    with pytest.raises(ValueError, match=r"its row of x is not x: .* word 2 on; where '-' is a word, gaps are None"):
        SequenceAligner(C=0.1).fit([(x, ["a", "c", "b"])], [(x, ["a", "c", "b"])])
    assert model.predict([([], ["a", "b"])]) == [(["-", "-"], ["a", "b"])]
    assert split_rows(["a", None], ["b", "c"]) == (["a"], ["b", "c"], b"MZ")
    assert join_rows(["a", "b"], ["c"], 1, 0, b"M") == (["a", "b"], ["-", "c"])
    assert alignment_scores([(["a", "b"], ["a", "-"])], [(["a", "b"], ["-", "a"])]).q == 0.0


def test_what_is_refused():
    model = SequenceAligner(C=0.1, random_state=0).fit(X, Y)
    for pair, message in (
        (("the cat", "cat"), "x of example 0: expected a list of words"),
        (([["a"]], ["b"]), "must be hashable"),
        (([None], ["b"]), "stands for something else"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict([pair])
    with pytest.raises(ValueError, match="z of example 1: expected a list of words"):
        SequenceAligner().fit([X[0], (X[1][0], "text")], Y[:2])
    with pytest.raises(ValueError, match="must be None where the sequences are lists of words"):
        SequenceAligner(classes="hydrophobicity").fit(X, Y)
    with pytest.raises(ValueError, match="lists of words"):
        model.predict(X, biopython=True)
    with pytest.raises(ValueError, match="of letters"):
        model.substitution_matrix_.to_ncbi()


def test_a_matrix_of_words_as_prior():
    prior = SubstitutionMatrix(["a", "b"], [[3.0, 2.0], [2.0, 3.0]])
    x = (["a", "b"], ["b", "b"])
    model = SequenceAligner(C=0.1, prior=(prior, -4.0, -1.0), mode="global").fit([x] * 5, [x] * 5)
    assert model.predict([x]) == [x] and model.substitution_matrix_["a", "b"] > 1.0


def test_symbols():
    """Frequent words have numbers of their own, words of one list alone share one, the others are numbered."""
    encoder = WordEncoder("protein", ["the"])
    found = encoder.encode_all([["the", "cat", "cat", "ran"], ["the", "dog", "ran"], ["cat"]])
    assert [array.tolist() for array in found] == [[0, 2, 2, 3], [0, 1, 3], [2]]


def test_pictures():
    assert len(AlignmentDisplay({"true": Y[0]}).plot().x) == len(X[0][0])


def test_files_of_words():
    text = "the - cat\tthe black cat\ta dog\n\na b\ta -\n"
    file = read_words(io.StringIO(text))
    assert file.rows == [(["the", None, "cat"], ["the", "black", "cat"]), (["a", "b"], ["a", None])]
    assert file.decoys == [[["a", "dog"]], []] and file.pairs[1] == (["a", "b"], ["a"]) and not file.has_decoys
    assert [to_words(rows) for rows in file.rows] == ["the - cat\tthe black cat", "a b\ta -"]
    for wrong, message in (("a b\n", "line 1: expected two"), ("a\t-\n", "line 1: expected two"), ("\n", "has no")):
        with pytest.raises(ValueError, match=message):
            read_words(io.StringIO(wrong))
