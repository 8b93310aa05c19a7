"""Relative frequencies as the weights that training starts from; the trees that choose C; passes."""

import numpy as np
import pytest

import structsvm
from structsvm.datasets import make_treebank
from structsvm.solvers.choosing import Row
from structsvm.structures.trees import parse_tree
from structsvm.tasks import GrammarParser, TreebankGrammar
from structsvm.tasks.grammar.model import SCALE, SHORT, SMOOTHING, GrammarModel, TreeSearch
from structsvm.tasks.grammar.parameters import MANY_TREES, PASSES, PASSES_OF_MANY
from structsvm.tasks.grammar.preparation import prepare

TREES = make_treebank(120, max_length=12, random_state=0)


def origin(parser, trees=TREES):
    """The weights w0 of a parser, by another estimator."""
    generative = GrammarParser.from_counts(trees, smoothing=SMOOTHING, grammar=TreebankGrammar(h=0))
    assert generative.grammar_[0][0] == parser.grammar_[0][0]
    weights = np.zeros(len(parser.coef_))
    weights[: len(generative.coef_)] = SCALE * generative.coef_
    return weights


def test_training_starts_from_frequencies():
    test = make_treebank(50, max_length=12, random_state=1)
    near = GrammarParser(C=1e-9, random_state=0).fit(TREES)
    assert np.allclose(near.coef_, origin(near), atol=1e-6)
    nothing = GrammarParser(C=1e-9, prior=None, random_state=0).fit(TREES)
    assert np.abs(nothing.coef_).max() < 1e-6
    assert near.score(test) > nothing.score(test)
    fresh = GrammarParser(C=1e-9, random_state=0).partial_fit(TREES)
    assert np.allclose(fresh.coef_, origin(fresh), atol=1e-6)


def test_the_certificate_is_around_frequencies():
    parser = GrammarParser(C=0.1, tol=0.01, random_state=0).fit(TREES[:40])
    result, w = parser.result_, parser.coef_
    assert result.status == "converged" and 0.0 <= result.relative_gap <= 0.01
    model, examples = prepare(parser, TREES[:40])
    problem = model.oracle.bind(None, examples.trees)
    slacks = [max(b - psi @ w, 0.0) for b, psi in (problem.separate(i, w) for i in range(len(examples)))]
    distance = w - origin(parser, TREES[:40])
    assert 0.5 * distance @ distance + 0.1 * sum(slacks) == pytest.approx(result.primal)
    exact = GrammarParser(C=0.1, tol=1e-6, solver="cutting_plane", random_state=0).fit(TREES[:40]).result_
    assert result.dual <= exact.primal * (1 + 1e-9) and exact.dual <= result.primal * (1 + 1e-9)


def test_weights_of_trees_weigh_their_rules():
    few = TREES[:20]
    weight = np.ones(len(few))
    weight[:5] = 3.0
    doubled = GrammarParser(C=1e-9, random_state=0).fit([*few[:5], *few[:5], *few])
    weighted = GrammarParser(C=1e-9, random_state=0).fit(few, sample_weight=weight)
    assert np.allclose(weighted.coef_, doubled.coef_, atol=1e-6)


def test_trees_known_in_part_tell_the_rules_they_know():
    texts = (
        "(S (NP (DT a) (NN b)) (VP (VB c)))",
        "(S (NP (NN a) (NN b)) (VP (VB c)))",
        "(S (NP (NN a) (NN b)) (_ (VB c)))",
    )
    parser = GrammarParser(C=1e-9, random_state=0).fit([parse_tree(text) for text in texts])
    weights = {str(rule): weight for rule, weight in parser.grammar_}
    both = np.array([weights["NP -> 'DT' 'NN'"], weights["NP -> 'NN' 'NN'"]])
    assert np.allclose(np.exp(both / SCALE), [1.5 / 4, 2.5 / 4])


def test_no_held_out_tree_is_counted(monkeypatch):
    counted = []

    def log_frequencies(model, trees, *rest):
        counted.append(len(trees))
        return true(model, trees, *rest)

    true = GrammarModel.log_frequencies
    monkeypatch.setattr(GrammarModel, "log_frequencies", log_frequencies)
    parser = GrammarParser(random_state=0).fit(TREES)
    n_held_out = parser.validation_["n_held_out"]
    # Three parts that are held out in turn, then all.
    assert counted[-1] == len(TREES) and sum(len(TREES) - n for n in counted[:-1]) == n_held_out == len(TREES)
    assert (parser.validation_["C"] < 1e-6).any()  # the frequencies alone are scored, too


def test_the_longest_of_many_trees_do_not_choose_c():
    parser = GrammarParser(C=0.1, max_iter=1, random_state=0).fit(TREES)
    _, examples = prepare(parser, TREES, weight=np.arange(len(TREES)))
    lengths = np.array([len(tree.leaves()) for tree in examples.trees])
    assert examples.subsample(len(TREES)) is examples
    drawn = examples.subsample(50)
    longest = max(len(tree.leaves()) for tree in drawn.trees)
    assert len(drawn) == 50 and longest == np.quantile(lengths, SHORT) < lengths.max()
    assert all(examples.trees[k] is tree for k, tree in zip(drawn.weight, drawn.trees, strict=True))


def test_of_many_trees_as_many_are_held_out_as_are_trained_on(monkeypatch):
    monkeypatch.setattr("structsvm.tasks.grammar.model.TRAINED", 40)
    monkeypatch.setattr(GrammarModel, "most_examples", 80)
    searched = []
    true = TreeSearch.divisions

    def divisions(search):
        for held_out in true(search):
            searched.append((len(held_out), int(held_out.sum())))
            yield held_out

    monkeypatch.setattr(TreeSearch, "divisions", divisions)
    parser = GrammarParser(max_iter=1, random_state=0).fit(TREES)
    assert searched == [(80, 40)] and parser.validation_["n_held_out"] == 40
    GrammarParser(max_iter=1, random_state=0).fit(TREES[:60])
    assert searched[1:] == [(60, 20)] * 3


def test_of_many_trees_powers_of_ten_are_tried_and_the_least_is_chosen_that_is_about_as_good(monkeypatch):
    monkeypatch.setattr("structsvm.tasks.grammar.model.TRAINED", 40)
    monkeypatch.setattr(GrammarModel, "most_examples", 80)
    monkeypatch.setattr(GrammarModel, "scale", lambda model, data: 100.0)
    monkeypatch.setattr(TreeSearch, "tried", lambda search, parts, C, monitor: scored(search, C))
    scores = {0.01: 0.70, 0.1: 0.79, 1.0: 0.80, 10.0: 0.79}

    def scored(search, C):
        search.last, search.metric, search.n_held_out = None, "F1", 40
        return Row(C, scores.get(C, C / 100.0), errors[-1], 1)

    errors = []
    for error, chosen in ((0.005, 1.0), (0.02, 0.1)):
        errors.append(error)
        parser = GrammarParser(max_iter=1, random_state=0).fit(TREES)
        assert [C for C in parser.validation_["C"] if C > 1e-6] == list(scores)
        assert chosen == parser.C_
    scores[1.0] = 0.785
    parser = GrammarParser(max_iter=1, random_state=0).fit(TREES[:60])
    assert 0.003 in parser.validation_["C"] and parser.C_ == 0.1


@pytest.mark.parametrize("seed", [0, 1])
def test_the_path_of_the_log_loss_begins_where_other_brackets_are_predicted(seed):
    """Smaller values, among which a search would end before it has learnt anything, predict as the prior does."""
    trees = make_treebank(120, max_length=12, random_state=seed)
    parser = GrammarParser(loss="log", random_state=0).fit(trees)
    of_prior, first = parser.validation_["score"][:2]
    assert first != of_prior and parser.C_ > 0.1 and parser.result_.primal_norm > 1.0


def test_passes_are_fewer_over_many_trees():
    few = TREES[:10]
    assert GrammarParser(C=0.1).fit(few).n_iter_ == PASSES
    assert GrammarParser(C=0.1).fit(few * (MANY_TREES // len(few))).n_iter_ == PASSES_OF_MANY
    assert GrammarParser(C=0.1, max_iter=2).fit(few).n_iter_ == 2


def test_a_file_has_the_frequencies(tmp_path):
    parser = GrammarParser(C=0.1, max_iter=2, random_state=0, warm_start=True).fit(TREES)
    parser.save(tmp_path / "model")
    stored = structsvm.load(tmp_path / "model")
    base = stored.model_.state["base"]
    assert np.array_equal(base, parser.model_.state["base"]) and np.allclose(base, origin(parser))
    for other in (parser, stored):
        other.set_params(max_iter=5).fit(TREES)
    assert np.array_equal(parser.coef_, stored.coef_) and parser.result_.primal == stored.result_.primal
    with pytest.raises(ValueError, match="The 'prior' parameter of GrammarParser must be"):
        GrammarParser(prior="frequencies").fit(TREES)
