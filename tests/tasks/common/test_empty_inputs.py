"""Predictions for inputs without tokens, which web services get; training on them stays an error."""

import gc
import inspect
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from cases import TABLE, taking_part

from structsvm.datasets import make_alignment, make_ambig_house, make_sequences, make_treebank
from structsvm.tasks import GrammarParser, SemanticParser, SequenceAligner, SequenceLabeler, TokenFeatures

pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")

LISTS = {name: case for name, case in TABLE.items() if not case.has_rows}
ASKS = {"predict": (), "predict_kbest": (2,), "predict_proba": (), "decision_function": ()}


def asked(model, case):
    """The methods that answer for inputs alone, as functions of X."""
    for name, more in ASKS.items():
        ask = getattr(model, name, None)
        if ask is None or "candidates" in inspect.signature(ask).parameters:
            continue
        try:
            wanted = [*ask(case.questions[:2], *more)]
        except ValueError:  # not of such a model: greedy search, a method, margins without probabilities
            continue
        yield name, lambda X, ask=ask, more=more: [*ask(X, *more)], wanted


@taking_part("empty inputs", LISTS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_inputs_have_no_outputs(case, n_jobs):
    model = case.fitted()
    if "n_jobs" in case.shared:
        model.set_params(n_jobs=n_jobs)
    for name, ask, _ in asked(model, case):
        assert ask([]) == [], name


@taking_part("empty inputs", LISTS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_empty_inputs_leave_the_others_alone(case, n_jobs):
    model, (empty, _) = case.fitted(), case.empty
    if "n_jobs" in case.shared:
        model.set_params(n_jobs=n_jobs)
    for name, ask, wanted in asked(model, case):
        if name == "predict_kbest" and "k best of empty inputs" in case.apart:
            continue
        found = ask([empty, *case.questions[:2], empty])
        assert len(found) == 4 and repr(found[1:3]) == repr(wanted) and repr(found[0]) == repr(found[3]), name
        assert repr(ask([empty])) == repr(found[:1]), name


@taking_part("empty inputs", LISTS)
def test_training_on_an_empty_input_is_an_error_that_names_it(case):
    x, y = case.empty
    X, Y = (case.X, case.y) if case.y is not None else (case.questions, case.X)
    y = case.X[0] if case.y is None else y
    with pytest.raises(ValueError, match=rf"\b{len(X)}\b.* (is empty|has no (words|nodes|items)|at least one word)"):
        case.fit_on([*X, x], [*Y, y])


@taking_part("empty inputs", {name: case for name, case in TABLE.items() if case.has_rows})
def test_matrices_without_rows_are_refused(case):
    """As scikit-learn's estimators do: a row is never without columns, so nobody asks for none."""
    for name, ask, _ in asked(case.trained, case):
        with pytest.raises(ValueError, match="minimum of 1"):
            ask(case.X[:0])
        with pytest.raises(ValueError, match="Expected 2D array"):
            ask([])
        assert len(ask(case.X[:1])) == 1, name


X, Y = make_sequences(30, n_labels=5, n_words=60, mean_length=5.0, random_state=0)
ROWS = [np.random.default_rng(k).normal(size=(len(s), 3)) for k, s in enumerate(X)]
FORMS = {
    "attributes": (lambda: [[list(token) for token in s] for s in X], [], {}),
    "sets": (lambda: [[set(token) for token in s] for s in X], (), {}),
    "dicts": (lambda: [[{"w": w, "t": t} for w, t in s] for s in X], [], {}),
    "hashed": (lambda: [[list(token) for token in s] for s in X], [], {"features": TokenFeatures(hash_bits=10)}),
    "columns": (lambda: X, [], {"templates": "rich"}),
    "rows": (lambda: ROWS, np.zeros((0, 3)), {}),
    "lists of rows": (lambda: ROWS, [], {}),
    "csr": (lambda: [sp.csr_array(rows) for rows in ROWS], sp.csr_array((0, 3)), {}),
}


@cache
def labeler(form, inference):
    make, _, params = FORMS[form]
    return SequenceLabeler(
        C=0.1, max_iter=2, tol=1.0, probability=False, inference=inference, random_state=0, **params
    ).fit(make(), Y)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("inference", ["exact", "greedy"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_sequences(form, inference, n_jobs):
    make, nothing, _ = FORMS[form]
    model = labeler(form, inference).set_params(n_jobs=n_jobs)
    full = make()
    mixed = [nothing, *full[:7], nothing, nothing, *full[7:], nothing]
    at = [0, 8, 9, len(mixed) - 1]
    wanted, scores = model.predict(full), model.decision_function(full)
    for data in (mixed, iter(mixed)):
        found = list(model.predict(data))
        assert [found[i] for i in at] == [[]] * 4
        assert [labels for i, labels in enumerate(found) if i not in at] == wanted
    margins = model.decision_function(mixed)
    assert all(margins[i].shape == (0, 5) for i in at)
    for a, b in zip([m for i, m in enumerate(margins) if i not in at], scores, strict=True):
        np.testing.assert_array_equal(a, b)
    assert model.predict([nothing]) == model.predict([nothing, nothing])[:1] == [[]]
    assert model.predict([]) == []
    allowed = [None] * len(mixed)
    allowed[0], allowed[1] = [], [wanted[0][0]] * len(full[0]) if not sp.issparse(full[0]) else None
    if inference == "exact":
        assert model.predict(mixed, allowed=allowed)[0] == []
        kbest = model.predict_kbest(mixed, 2, allowed=allowed)
        assert [kbest[i] for i in at] == [[([], 0.0)]] * 4
        plain = model.predict_kbest(full, 2)
        assert [best for i, best in enumerate(kbest) if i not in at][1:] == plain[1:]
    gc.collect()


def test_lengths_may_be_zero():
    model = labeler("rows", "exact").set_params(n_jobs=None)
    table = np.concatenate(ROWS[:2])
    lengths = [0, len(ROWS[0]), 0, len(ROWS[1])]
    for matrix in (table, sp.csr_array(table)):
        assert model.predict(matrix, lengths=lengths) == [[], *model.predict(ROWS[:1]), [], *model.predict(ROWS[1:2])]
    with pytest.raises(ValueError, match=r"lengths\[1\] is -1"):
        model.predict(table, lengths=[len(table) + 1, -1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("resumes", [False, True])
def test_training_on_an_empty_sequence_is_an_error(form, resumes):
    make, nothing, params = FORMS[form]
    model = SequenceLabeler(max_iter=1, tol=1.0, random_state=0, warm_start=True, **params)
    if resumes:
        model.fit(make(), Y)
    for train in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="sequence 2 is empty"):
            train([*make()[:2], nothing], [*Y[:2], []])


def test_sentences_of_a_parser():
    trees = make_treebank(30, random_state=0)
    sentences = [tree.tokens() for tree in trees]
    parser = GrammarParser(max_iter=2, tol=1.0, random_state=0).fit(trees)
    wanted = parser.predict(sentences)
    for on_no_parse in ("flat", "raise"):
        for n_jobs in (1, 2):
            parser.set_params(on_no_parse=on_no_parse, n_jobs=n_jobs)
            assert parser.predict([[], *sentences, (), ""]) == [None, *wanted, None, None]
    assert [len(ranked) for ranked in parser.predict_kbest([[], sentences[0]], 1)] == [0, 1]
    with pytest.raises(ValueError, match="a sentence must be a list of tokens"):
        parser.predict([3])
    with pytest.raises(ValueError, match="at least one word"):
        parser.fit([[], *sentences], [trees[0], *trees])


def test_sentences_of_a_semantic_parser():
    house = make_ambig_house(60, level=1, random_state=0)
    parser = SemanticParser(random_state=0).fit(house.sentences, house.bags)
    mixed = ["", *house.sentences[:4], [], "  "]
    for n_jobs in (1, 3):
        parser.set_params(n_jobs=n_jobs)
        assert parser.predict(mixed) == [[], *parser.predict(house.sentences[:4]), [], []]
        assert parser.predict_alignment(mixed) == [[], *parser.predict_alignment(house.sentences[:4]), [], []]
    assert parser.predict([""]) == [[]]
    for train in (parser.fit, parser.partial_fit):
        with pytest.raises(ValueError, match="sentence 1 has no words"):
            train([house.sentences[0], ""], house.bags[:2])


@pytest.mark.parametrize("mode", ["global", "semi_global", "local"])
def test_pairs_of_an_aligner(mode):
    data = make_alignment(6, random_state=0)
    aligner = SequenceAligner(mode=mode, max_iter=2, tol=1.0, random_state=0).fit(data.X, data.y)
    word = "acd" if mode == "local" else "ACD"
    mixed = [("", "ACD"), data.X[0], ("ACD", ""), ("", ""), data.X[1]]
    one, other = aligner.predict(data.X[:2])
    for n_jobs in (1, 2):
        aligner.set_params(n_jobs=n_jobs)
        assert aligner.predict(mixed) == [("---", word), one, (word, "---"), ("", ""), other]
    assert aligner.predict([("", "")]) == [("", "")]
    for call in (lambda: aligner.predict_kbest([("", "ACD")], 2), lambda: aligner.rank("", ["ACD"])):
        with pytest.raises(ValueError, match="the string is empty"):
            call()
    with pytest.raises(ValueError, match="z of example 1: the letter '1'"):
        aligner.predict([("AC", "AC"), ("", "A1")])
    with pytest.raises(ValueError, match="empty"):
        aligner.fit([("", "ACD")], [("---", "ACD")])
