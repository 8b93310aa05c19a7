"""The log loss and probabilities of parse trees."""

import math
from collections import Counter

import numpy as np
import pytest
from command_line import run

import structsvm
from structsvm import LaRank
from structsvm.datasets import make_treebank
from structsvm.solvers import ConditionalLikelihood
from structsvm.structures.trees import parse_tree, write_trees
from structsvm.tasks import GrammarParser, SpanFeatures, TreebankGrammar

TRAIN = make_treebank(60, max_length=8, random_state=0)
TEST = make_treebank(30, max_length=8, random_state=1)
SENTENCES = [tree.tokens() for tree in TEST]
SHORT = max(TRAIN, key=lambda tree: len(tree.leaves())).tokens()  # the longest; the first of several

pytestmark = pytest.mark.filterwarnings("ignore:the grammar has no tree for:structsvm.AdviceWarning")


def likelihoods(parser, trees):
    """Minus the log-likelihood of each tree, by the k best of all trees."""
    found = []
    for tree in trees:
        (ranked,) = parser.predict_kbest([tree.tokens()], 10_000, probabilities=True)
        found.append(-math.log({str(t): p for t, p in ranked}[str(tree)]))
    return np.array(found)


@pytest.fixture(scope="module")
def log_linear():
    return GrammarParser(
        loss="log",
        C=1.0,
        grammar=TreebankGrammar(h=None),
        features=SpanFeatures(templates=()),
        max_iter=48,
        random_state=0,
    ).fit(TRAIN)


@pytest.fixture(scope="module")
def margin():
    return GrammarParser(C=1.0, probability=True, random_state=0).fit(TRAIN)


ATTACHED = [
    "(S (NP (DT the) (NN cat)) (VP (VB saw) (NP (NP (DT a) (NN dog)) (PP (IN in) (NP (NN rain))))))",
    "(S (NP (DT the) (NN cat)) (VP (VB saw) (NP (DT a) (NN dog)) (PP (IN in) (NP (NN rain)))))",
    "(S (NP (NN rain)) (VP (VB saw) (NP (NP (NN rain)) (PP (IN in) (NP (NP (NN dog)) (PP (IN in) (NP (NN rain))))))))",
    "(S (VP (VB saw) (NP (NN rain))))",
]


@pytest.mark.parametrize("terminals", ["tags", "words", "both"])
def test_probabilities_of_brackets_by_enumeration(terminals):
    parser = GrammarParser.from_counts(ATTACHED * 2, terminals=terminals, smoothing=0.1)
    x = parse_tree(ATTACHED[2])
    x = x.leaves() if terminals == "words" else x.tokens()
    (ranked,) = parser.predict_kbest([x], 10_000, probabilities=True)
    assert len(ranked) > 2 and sum(p for _, p in ranked) == pytest.approx(1.0)
    chances = Counter()
    for tree, p in ranked:
        chances.update(dict.fromkeys(parser.model_.brackets_of(tree), p))
    (found,) = parser.predict_spans([x], least=1e-9)
    assert {span[:3]: p for *span, p in found for span in [tuple(span)]} == pytest.approx(chances)
    assert (0, len(x), "S") in chances and "NN" not in {label for _, _, label in chances}
    (likely,) = parser.predict_spans([x])
    assert likely == [span for span in found if span[3] >= 0.5] and 0 < len(likely) < len(found)


def test_brackets_that_are_not_known():
    parser = GrammarParser.from_counts(ATTACHED)
    assert parser.predict_spans([[], ["NN", "NN"], ["XX"]]) == [[], [], []]
    with pytest.raises(ValueError, match=r"The .least. parameter of GrammarParser.predict_spans must be"):
        parser.predict_spans([["NN"]], least=0.0)
    with pytest.raises(ValueError, match="predict_spans needs probabilities"):
        GrammarParser(C=1.0, random_state=0).fit(TRAIN).predict_spans(SENTENCES)


@pytest.mark.parametrize("which", ["log_linear", "margin", "pcfg"])
def test_probabilities_of_all_trees_sum_to_one(which, request):
    parser = GrammarParser.from_counts(TRAIN) if which == "pcfg" else request.getfixturevalue(which)
    for x in [tree.tokens() for tree in TRAIN[:8]]:
        (found,) = parser.predict_kbest([x], 100_000, probabilities=True)
        assert sum(p for _, p in found) == pytest.approx(1.0, abs=1e-9)
        (scored,) = parser.predict_kbest([x], 5)
        assert [str(t) for t, _ in found[:5]] == [str(t) for t, _ in scored]
        for (_, p), (_, score) in zip(found[1:5], scored[1:], strict=True):
            log_odds = (score - scored[0][1]) / parser.temperature_
            assert math.log(p / found[0][1]) == pytest.approx(log_odds, abs=1e-8)


def test_the_log_loss_trains_a_log_linear_grammar(log_linear):
    assert log_linear.temperature_ == 1.0
    assert log_linear.result_.dual == pytest.approx(log_linear.result_.primal, rel=1e-6)  # moments are float32
    own = ConditionalLikelihood(1.0, max_iter=48, random_state=0)
    by_object = GrammarParser(
        loss="log", solver=own, grammar=TreebankGrammar(h=None), features=SpanFeatures(templates=())
    ).fit(TRAIN)
    np.testing.assert_array_equal(by_object.coef_, log_linear.coef_)
    assert log_linear.score(TEST) > 0.6
    # The primal is the objective: likelihoods by enumeration, and the norm.
    losses = likelihoods(log_linear, TRAIN[:20])
    problem = log_linear.model_.oracle.bind(
        None, [log_linear.model_.oracle.grammar.decode(*_encoded(log_linear, t)) for t in TRAIN[:20]], rescaling=None
    )
    found = [problem.expect(i, log_linear.coef_)[0] for i in range(20)]
    np.testing.assert_allclose(found, losses, rtol=1e-6, atol=1e-8)


def _encoded(parser, tree):
    """Derivation and terminals of a tree of tags."""
    model = parser.model_
    terminals, _ = model.terminals.of_sentence(tree.tokens(), model.oracle.grammar)
    (encoded,) = structsvm.tasks.grammar.model.encode_trees(model.terminals, model.v, [tree], model.oracle.grammar)
    return model.oracle.grammar.encode(encoded)[1], terminals


def test_the_temperature_is_that_of_greatest_likelihood(margin):
    plain = GrammarParser(C=1.0, random_state=0).fit(TRAIN)
    np.testing.assert_array_equal(plain.coef_, margin.coef_)
    assert plain.temperature_ is None and margin.temperature_ > 0.0
    known = [tree for tree in make_treebank(60, max_length=8, random_state=5) if covered(plain, tree)]
    assert len(known) > 20
    plain.calibrate(known)
    best, total = plain.temperature_, likelihoods(plain, known).sum()
    for factor in (0.8, 1.25):
        plain.model_.temperature = factor * best
        assert likelihoods(plain, known).sum() > total


def covered(parser, tree):
    try:
        _encoded(parser, tree)
    except ValueError:
        return False
    return True


@pytest.mark.filterwarnings("default::structsvm.AdviceWarning")
def test_files_and_the_command_line(margin, tmp_path):
    margin.save(tmp_path / "m")
    again = structsvm.load(tmp_path / "m")
    assert again.temperature_ == margin.temperature_
    assert again.predict_kbest([SHORT], 3, probabilities=True) == margin.predict_kbest([SHORT], 3, probabilities=True)
    write_trees(tmp_path / "t.mrg", TRAIN)
    (tmp_path / "x").write_text(" ".join(f"{word}/{tag}" for word, tag in SHORT) + "\n\nx/XX\n")
    run(tmp_path, "train", "grammar", "t.mrg", "-m", "cli", "-C", "1", "--probability", "-q")
    out, err = run(tmp_path, "predict", "cli", "x", "--confidence")
    (((tree, p),),) = margin.predict_kbest([SHORT], 1, probabilities=True)
    first, blank, flat = out.split("# 1 ")[1], out.splitlines()[2], out.split("# 1 ")[2]
    assert first.startswith(f"{p:.6f}\n{tree}\n") and blank == "" and flat.startswith("0.000000\n")
    assert "1 of 2 sentences (50.0%) are not covered" in err
    run(tmp_path, "train", "grammar", "t.mrg", "-m", "log", "-C", "1", "--loss", "log", "-q")
    out, _ = run(tmp_path, "predict", "log", "x", "--confidence", "-k", "2")
    assert out.count("# 2 ") == 1


def test_without_probabilities():
    plain = GrammarParser(C=1.0, random_state=0).fit(TRAIN[:20])
    with pytest.raises(ValueError, match=r"probabilities=True needs probabilities.*loss='log'.*calibrate"):
        plain.predict_kbest(SENTENCES, 2, probabilities=True)
    for params, message in [
        ({"solver": "frank_wolfe"}, "solver='frank_wolfe' trains a margin"),
        ({"solver": LaRank()}, "solver='LaRank' trains a margin"),
    ]:
        with pytest.raises(ValueError, match=message):
            GrammarParser(loss="log", **{"C": None} | params).fit(TRAIN)
    with pytest.raises(ValueError, match="minimises the log loss; use it with loss='log'"):
        GrammarParser(C=None, solver=ConditionalLikelihood()).fit(TRAIN)
