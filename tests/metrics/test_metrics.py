"""Metrics against references that share no code with them, and against hand-made counts."""

import math
import subprocess
import sys
import warnings
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from structsvm import metrics
from structsvm.metrics import chunk_scores, label_report, token_accuracy


@pytest.fixture
def quiet_seqeval():
    """seqeval, without its warnings of scores that are not defined."""
    found = pytest.importorskip("seqeval.metrics")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield found


# --- references -----------------------------------------------------------------------------


def split(label):
    return tuple(label.split("-", 1)) if "-" in label else (label, "")


def spans(labels):
    """Set of (type, first, last) of a sequence over the tags B, I, E, S, O: chunk by chunk."""
    found, t = set(), 0
    while t < len(labels):
        tag, kind = split(labels[t])
        first = t
        t += 1
        if tag == "O":
            continue
        while t < len(labels) and tag not in "ES" and split(labels[t])[0] in "IE" and split(labels[t])[1] == kind:
            tag = split(labels[t])[0]
            t += 1
        found.add((kind, first, t - 1))
    return found


def starts(before, label):
    (p, p_kind), (t, kind) = split(before), split(label)
    by_tag = f"{p} {t}" in {"B B", "I B", "O B", "O I", "E E", "E I", "O E"}
    return by_tag or t in {"[", "]"} or (t not in {"O", "."} and p_kind != kind)


def ends(before, label):
    (p, p_kind), (t, kind) = split(before), split(label)
    by_tag = f"{p} {t}" in {"B B", "B O", "I B", "I O", "E E", "E I", "E O"}
    return by_tag or p in {"[", "]"} or (p not in {"O", "."} and p_kind != kind)


def automaton(y_true, y_pred):
    """conlleval's definition, token by token: (correct, true, predicted) lists of types."""
    right, true, pred = [], [], []
    a0 = b0 = "O"
    is_open = False
    for sequence in zip(y_true, y_pred, strict=True):
        for a, b in [*zip(*sequence, strict=True), ("O", "O")]:
            a_kind, b_kind, a0_kind, b0_kind = (split(x)[1] for x in (a, b, a0, b0))
            if is_open:
                if ends(a0, a) and ends(b0, b) and a0_kind == b0_kind:
                    is_open = False
                    right.append(a0_kind)
                elif ends(a0, a) != ends(b0, b) or a_kind != b_kind:
                    is_open = False
            if starts(a0, a) and starts(b0, b) and a_kind == b_kind:
                is_open = True
            true += [a_kind] * starts(a0, a)
            pred += [b_kind] * starts(b0, b)
            a0, b0 = a, b
    if is_open:
        right.append(split(a0)[1])
    return right, true, pred


def counts(scores):
    return scores.n_correct, scores.n_true, scores.n_predicted


def pairs_of(labels):
    """Pairs (y_true, y_pred); half of the predictions are copies with few changes."""
    token = st.tuples(labels, labels, st.booleans()).map(lambda t: (t[0], t[0] if t[2] else t[1]))
    corpus = st.lists(st.lists(token, max_size=12), min_size=1, max_size=5)
    corpus = corpus.filter(lambda c: any(c))
    return corpus.map(lambda c: tuple([[t[k] for t in seq] for seq in c] for k in (0, 1)))


def labels_over(tags, kinds):
    tags = st.sampled_from(tags)
    return st.one_of(st.just("O"), st.builds(lambda t, k: f"{t}-{k}", tags, st.sampled_from(kinds)))


# --- chunks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("letters", ["BI", "BIES", "IE"])
@pytest.mark.parametrize("form", ["{0}-{1}", "{1}-{0}"])
def test_seqeval_counts_the_same(quiet_seqeval, letters, form):
    """Labels at random, broken chunks among them."""
    rng = np.random.default_rng(0)
    tags = ["O", *(form.format(tag, kind) for kind in "XY" for tag in letters)]
    is_suffix = form[1] == "1"
    for _ in range(30):
        true = [[tags[k] for k in rng.integers(0, len(tags), n)] for n in rng.integers(1, 9, 3)]
        pred = [[tags[rng.integers(0, 5)] if rng.random() < 0.4 else tag for tag in sentence] for sentence in true]
        found = chunk_scores(true, pred)
        wanted = [
            getattr(quiet_seqeval, f"{name}_score")(true, pred, suffix=is_suffix)
            for name in ("precision", "recall", "f1")
        ]
        assert (found.precision, found.recall, found.f1) == pytest.approx(wanted)
        assert found.accuracy == pytest.approx(accuracy_score([*chain(*true)], [*chain(*pred)]))


@given(pairs_of(labels_over("BIES", ["X", "Y", "Z-z"])))
def test_chunk_scores_equal_span_sets(pair):
    scores = chunk_scores(*pair)
    true, pred = ({(i, *span) for i, labels in enumerate(y) for span in spans(labels)} for y in pair)
    assert counts(scores) == (len(true & pred), len(true), len(pred))
    for kind, score in scores.per_label.items():
        t, p = ({s for s in found if s[1] == kind} for found in (true, pred))
        assert (score.support, score.predicted) == (len(t), len(p))
        assert math.isclose(score.precision, len(t & p) / max(len(p), 1))
        assert math.isclose(score.recall, len(t & p) / max(len(t), 1))
    assert set(scores.per_label) == {s[1] for s in true | pred}


odd_labels = st.one_of(
    labels_over(["B", "I", "E", "S", "O", ".", "[", "]", "", "BB"], ["X", "Y", ""]),
    st.sampled_from(["B", "I", "E", "S", ".", "[", "]", "", "X"]),
)


@given(pairs_of(odd_labels))
def test_scores_of_conlleval_equal_the_automaton_for_any_labels(pair):
    check_automaton(pair, chunk_scores(*pair, scheme="conlleval"))


@given(pairs_of(labels_over("BI", ["X", "Y"])))
def test_bio_counts_as_in_conlleval(pair):
    check_automaton(pair, chunk_scores(*pair))
    assert vars(chunk_scores(*pair)) | {"scheme": ""} == vars(chunk_scores(*pair, scheme="conlleval")) | {"scheme": ""}


def check_automaton(pair, scores):
    right, true, pred = automaton(*pair)
    assert counts(scores) == (len(right), len(true), len(pred))
    for kind, score in scores.per_label.items():
        assert (score.support, score.predicted) == (true.count(kind), pred.count(kind))
        assert math.isclose(score.recall, right.count(kind) / max(true.count(kind), 1))


@given(pairs_of(labels_over("BI", ["X", "Y"])))
def test_ratios(pair):
    s = chunk_scores(*pair)
    assert math.isclose(s.accuracy, token_accuracy(*pair))
    if s.n_correct:
        assert math.isclose(s.precision, s.n_correct / s.n_predicted)
        assert math.isclose(s.recall, s.n_correct / s.n_true)
        assert math.isclose(s.f1, 2 * s.precision * s.recall / (s.precision + s.recall))
    else:
        assert s.f1 == 0
    assert metrics.chunk_f1(*pair) == s.f1
    assert metrics.chunk_precision(*pair) == s.precision
    assert metrics.chunk_recall(*pair) == s.recall


Y_TRUE = [["B-NP", "I-NP", "B-VP", "O", "B-NP"], ["I-PP", "I-NP", "I-NP", "B-NP"], ["B-NP"]]
Y_PRED = [["B-NP", "I-NP", "I-VP", "O", "O"], ["B-PP", "B-NP", "B-NP", "B-NP"], ["I-NP"]]


def test_hand_counted():
    # true: NP VP NP | PP NP(2) NP | NP = 7; predicted: NP VP | PP NP NP NP | NP = 7;
    # right: NP VP | PP, last NP | NP = 5. Tokens right: 4 of 10.
    scores = chunk_scores(Y_TRUE, Y_PRED)
    assert counts(scores) == (5, 7, 7)
    assert scores.accuracy == pytest.approx(0.4)
    assert scores.precision == scores.recall == pytest.approx(5 / 7)
    assert list(scores.per_label) == ["NP", "PP", "VP"]
    assert scores.per_label["NP"] == pytest.approx((3 / 5, 3 / 5, 3 / 5, 5, 5))
    assert scores.per_label["VP"] == (1.0, 1.0, 1.0, 1, 1)
    assert scores.report() == (
        "processed 10 tokens with 7 phrases; found: 7 phrases; correct: 5.\n"
        "accuracy:  40.00%; precision:  71.43%; recall:  71.43%; FB1:  71.43\n"
        "               NP: precision:  60.00%; recall:  60.00%; FB1:  60.00  5\n"
        "               PP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1\n"
        "               VP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1"
    )


@pytest.mark.parametrize(
    ("labels", "n_chunks", "by_conlleval"),
    [
        (["I-X", "I-X", "B-X"], 2, 2),  # IOB1
        (["B-X", "I-Y", "I-Y"], 2, 2),  # a change of type
        (["O", "I-X", "O"], 1, 1),  # I- without B-
        (["I-X", "E-X", "E-X"], 2, 2),  # IOE
        (["S-X", "S-X", "S-Y"], 3, 2),  # conlleval has no rule for S
        (["U-X", "U-X", "B-X", "L-X"], 3, 1),
        (["S_X", "S_X", "O"], 2, 0),
        (["X-B", "X-I", "X-B"], 2, 3),
        (["B", "M", "E", "S", "S"], 3, 1),
        (["B", "I", "B"], 2, 2),  # bare tags: chunks of the empty type
        (["B-X", "O-X", "I-X"], 2, 2),
        (["B-a-b", "I-a-c"], 2, 2),  # split at the first hyphen
        (["B-1", "I-1"], 1, 1),
        (["O", "O"], 0, 0),
    ],
)
def test_schemes(labels, n_chunks, by_conlleval):
    assert chunk_scores([labels], [labels]).n_true == n_chunks
    assert chunk_scores([labels], [labels], scheme="conlleval").n_true == by_conlleval


def test_true_and_predicted_labels_decide_together():
    scores = chunk_scores([["S-P", "S-P"], ["O"]], [["B-P", "E-P"], ["O"]])
    assert counts(scores) == (0, 2, 1)
    assert scores.scheme == "bioes"


@pytest.mark.parametrize("labels", [["NN", "VB"], ["B", "O"], ["B-1", "I-95"], ["B-X", "B_X"], ["B-X", "X-B"], ["b-X"]])
def test_labels_without_a_scheme_have_no_chunk_scores(labels):
    with pytest.raises(ValueError, match=r"no scheme of chunks.*Name the scheme"):
        metrics.chunk_f1([labels], [labels])


@pytest.mark.parametrize("scheme", ["bio", "IOB2", "iob1"])
def test_labels_outside_the_scheme_are_named(scheme):
    with pytest.raises(ValueError, match=r"the label 'E-X' is none of the scheme \w+, whose tags are.*BIOES"):
        metrics.chunk_f1([["B-X", "E-X"]], [["B-X", "E-X"]], scheme)
    with pytest.raises(ValueError, match=r"no scheme 'foo'; there are bio"):
        metrics.chunk_f1([["B-X"]], [["B-X"]], "foo")
    assert metrics.chunk_f1([["B-1", "B"]], [["B-1", "B"]], scheme) == 1.0


def test_sequences_do_not_join():
    scores = chunk_scores([["B-X"], ["I-X"]], [["B-X"], ["I-X"]])
    assert counts(scores) == (2, 2, 2)


def test_many_labels():
    y = [[f"B-k{k}" for k in range(20_000)]]
    assert chunk_scores(y, y).n_correct == 20_000


def test_arrays_and_empty_sequences():
    y = [np.array(["B-X", "O"]), np.array([], dtype=str)]
    assert chunk_scores(y, y).f1 == 1.0
    assert token_accuracy(np.array([["a", "b"]]), [("a", "c")]) == 0.5


# --- tokens ---------------------------------------------------------------------------------


@given(pairs_of(st.sampled_from([1, -2.5, "a", (2, "b")])))
def test_label_report_for_any_hashable_label(pair):
    flat = list(zip(*(chain.from_iterable(y) for y in pair), strict=True))
    assert math.isclose(token_accuracy(*pair), sum(a == b for a, b in flat) / len(flat))
    for label, score in label_report(*pair).items():
        right = sum(a == b == label for a, b in flat)
        assert score.support == sum(a == label for a, _ in flat)
        assert score.predicted == sum(b == label for _, b in flat)
        assert math.isclose(score.precision, right / max(score.predicted, 1))
        assert math.isclose(score.recall, right / max(score.support, 1))
        assert math.isclose(score.f1, 2 * right / (score.support + score.predicted))


def test_label_report_is_sorted():
    assert list(label_report([[3, 1], [2]], [[3, 2], [0]])) == [0, 1, 2, 3]


# --- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [token_accuracy, label_report, chunk_scores])
def test_bad_input(metric):
    with pytest.raises(ValueError, match=r"sequence 1: y_true has 2 labels and y_pred has 1"):
        metric([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match=r"y_true has 2 sequences and y_pred has 1"):
        metric([["O"], ["O"]], [["O"]])
    with pytest.raises(ValueError, match="no tokens"):
        metric([[]], [[]])
    with pytest.raises(ValueError, match="no sequences to score"):
        metric([], [])
    with pytest.raises(TypeError, match=r"y_true\[0\] must be a sequence of labels"):
        metric(["O", "O"], ["O", "O"])
    with pytest.raises(TypeError, match=r"y_pred\[1\] must be a sequence of labels"):
        metric([["O"], ["O"]], [["O"], None])


def test_chunk_labels_must_be_strings():
    with pytest.raises(TypeError, match=r"labels that are strings.*Got 3 of type int"):
        chunk_scores([[3]], [[3]])


# --- scikit-learn ---------------------------------------------------------------------------


def test_scorers_in_grid_search():
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import GridSearchCV

    class Constant(BaseEstimator):
        def __init__(self, label="O"):
            self.label = label

        def fit(self, X, y):
            return self

        def predict(self, X):
            return [[self.label] * len(x) for x in X]

    X = [["a"], ["b"], ["c"], ["d"]]
    y = [["B-X"]] * 4
    search = GridSearchCV(Constant(), {"label": ["O", "B-X"]}, scoring=metrics.chunk_f1_scorer, cv=2)
    assert search.fit(X, y).best_params_ == {"label": "B-X"}


def test_light_import():
    code = (
        "import sys, structsvm.metrics, structsvm.plotting, structsvm.datasets;"
        "print({'sklearn', 'scipy', 'matplotlib', 'pooch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
