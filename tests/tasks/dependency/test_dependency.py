"""DependencyParser: what it learns, what sentences may be, what is refused, probabilities, trees known in part."""

import contextlib
from itertools import pairwise

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import structsvm
from structsvm import AdviceWarning, LaRank
from structsvm.datasets import make_dependency_trees
from structsvm.dual.cuts import joined, scaled
from structsvm.metrics import dependency_scores
from structsvm.structures.dependencies import DependencyTree, Word, parse_conllu
from structsvm.tasks import ArcFeatures, DependencyParser
from structsvm.tasks.dependency.arcs import outputs_of
from structsvm.tasks.dependency.examples import ParsedSentences
from structsvm.tasks.dependency.pairs import Halves, turning_point

TRAIN, TEST = (make_dependency_trees(120, max_length=12, random_state=k) for k in range(2))
MOVED = make_dependency_trees(120, max_length=12, crossing=0.6, random_state=2)


def trained(trees=TRAIN, **params):
    return DependencyParser(**{"C": 0.1, "max_iter": 3, "random_state": 0} | params).fit(trees)


@pytest.fixture(scope="module")
def parser():
    return trained(probability=True)


def test_it_learns(parser):
    scores = dependency_scores(TEST, parser.predict(TEST))
    assert scores.uas > 0.85 and scores.las > 0.8
    assert parser.score(TEST) == scores.uas == parser.score(TEST, [tree.arcs for tree in TEST])
    assert parser.projective_ and parser.n_crossing_ == 0
    assert parser.classes_.tolist() == sorted({label for tree in TRAIN for _, label in tree.arcs})
    assert all(tree.with_arcs(arcs).is_projective for tree, arcs in zip(TEST, parser.predict(TEST)))
    assert all([head for head, _ in arcs].count(0) == 1 for arcs in parser.predict(TEST))


def test_arcs_may_cross():
    parser = trained(MOVED)
    assert not parser.projective_ and parser.n_crossing_ > 10
    assert any(not tree.with_arcs(arcs).is_projective for tree, arcs in zip(MOVED, parser.predict(MOVED)))
    with pytest.warns(
        AdviceWarning, match=r"\d+ of 120 trees have crossing arcs, which a projective parser never finds"
    ):
        parser = trained(MOVED, projective=True)
    assert parser.projective_ and parser.result_.gap >= 0.0
    assert not trained(TRAIN[:20], projective=False).projective_
    # One tree in eight has crossing arcs, but they are few.
    crossing = [tree for tree in MOVED if not tree.is_projective]
    few = [*crossing[:15], *TRAIN[:105]]
    parser = trained(few, order=1)
    assert parser.projective_ and parser.n_crossing_ == 15
    assert all(tree.with_arcs(arcs).is_projective for tree, arcs in zip(few, parser.predict(few)))
    parser = trained(few)
    assert not parser.projective_ and parser.model_.oracle.projective
    assert any(not tree.with_arcs(arcs).is_projective for tree, arcs in zip(few, parser.predict(few)))


def test_tags_that_are_too_fine_give_way(tmp_path):
    """XPOS of more than 100 values: UPOS stands in for it."""
    fine = [tree.with_arcs(tree.arcs) for tree in TRAIN[:40]]
    words = [
        tuple(w._replace(xpos=f"{w.upos}{(7 * i + k) % 101}") for k, w in enumerate(t.words))
        for i, t in enumerate(fine)
    ]
    fine = [DependencyTree(some) for some in words]
    bare = [DependencyTree(tuple(w._replace(xpos="_") for w in tree.words)) for tree in fine]
    one, other = trained(fine), trained(bare)
    assert len({w.xpos for tree in fine for w in tree.words}) > 100 and one.model_.coarse and not other.model_.coarse
    assert np.array_equal(one.coef_, other.coef_)
    one.save(tmp_path / "m")
    assert structsvm.load(tmp_path / "m").predict(fine) == one.predict(bare) == other.predict(bare)
    assert one.calibrate(fine).temperature_ == other.calibrate(bare).temperature_
    few = trained([DependencyTree(tuple(w._replace(xpos=w.upos + "x") for w in tree.words)) for tree in bare])
    assert not few.model_.coarse


def test_what_a_sentence_may_be(parser):
    tree = TEST[0]
    expected = parser.predict([tree])
    dicts = [{"form": word.form, "upos": word.upos, "xpos": word.xpos} for word in tree.words]
    assert parser.predict([tree.words]) == parser.predict([dicts]) == expected
    tags = trained([DependencyTree(tuple(w._replace(xpos="_") for w in tree.words)) for tree in TRAIN])
    pairs = [(word.form, word.upos) for word in tree.words]
    assert tags.predict([pairs]) == tags.predict([[Word(form, upos=tag) for form, tag in pairs]])
    assert parser.predict([]) == []
    one = [TRAIN[0].words[0]]
    assert parser.predict([[], one, []])[1] == [(0, "root")]
    assert [len(found) for found in parser.predict_kbest([[], one], 3)] == [0, 1]
    assert [p.shape for p in parser.predict_proba([[], one])] == [(0, 1), (1, 2)]
    mixed = parser.predict([[one[0]._replace(form=form) for form in ("Привет", "ミ", "\U0001f600", "a" * 1000, "٣")]])
    assert len(mixed[0]) == 5
    parser.set_params(n_jobs=2)
    assert parser.predict([[], *TEST]) == [[], *parser.set_params(n_jobs=None).predict(TEST)]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([b"the dog"], r"sentence 0: a sentence must be a list"),
        (["the", "dog"], "X must be a list of sentences, and seems to be the words of one"),
        ([["a"], [3]], r"sentence 1: a word must be a str"),
        ([[("a", 1)]], r"sentence 0: a word's upos must be a str"),
        ([[""]], r"sentence 0: a word must have a form"),
        ([[{"word": "a"}]], r"has no column 'word'"),
        ([[{"upos": "a"}]], r"needs 'form'"),
        ([["a"] * 31], r"sentence 0: 31 words are more than the cap max_length=30"),
        (None, "X must be a list of sentences, got None"),
        (TRAIN[0], "X must be a list of sentences, got DependencyTree"),
    ],
)
def test_what_is_no_sentence(X, message):
    parser = trained(TRAIN[:5], max_length=30)
    with pytest.raises(ValueError, match=message):
        parser.predict(X)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2"])
def test_how_many_trees_are_wanted(order, k):
    with pytest.raises(ValueError, match="k must be an integer of at least 1, got"):
        trained(TRAIN[:5], order=order).predict_kbest([["a"]], k)


@pytest.mark.parametrize(
    ("heads", "message"),
    [((2, 1), "word 1 is below itself"), ((0, 2), "word 2 is below itself"), ((3, 0), "word 1 has head 3, of 2 words")],
)
def test_score_needs_trees(heads, message):
    with pytest.raises(ValueError, match=f"sentence 0: .*{message}"):
        trained(TRAIN[:5]).score([["a", "b"]], [[(head, "x") for head in heads]])


def test_several_roots(tmp_path):
    """As treebanks of CoNLL-X have them: trained on below the first root, told, and wrong for whoever predicts one."""
    X, y = [["a", "b", "c"]] * 3, [[(2, "x"), (0, "root"), (0, "punct")]] * 3
    with pytest.warns(AdviceWarning, match=r"3 of 4 sentences have several words below the root \(sentence 1 is the"):
        parser = DependencyParser(C=0.1, random_state=0).fit([["a"], *X], [[(0, "root")], *y])
    one = [[(0, "root")], *[[(2, "x"), (0, "root"), (2, "punct")]] * 3]
    same = DependencyParser(C=0.1, random_state=0).fit([["a"], *X], one)
    np.testing.assert_array_equal(parser.coef_, same.coef_)
    assert parser.predict(X[:1]) == one[1:2] and parser.score(X, y) == pytest.approx(2 / 3)
    with pytest.warns(AdviceWarning, match="several words below the root"):
        parser.calibrate(X, y)


def test_score_needs_heads():
    with pytest.raises(ValueError, match="sentence 1: word 2 has no head"):
        trained(TRAIN[:5]).score([["a"], ["a", "b"]], [[(0, "x")], [(2, "x"), (None, "y")]])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "there are no sentences"),
        ("text", None, "DependencyParser learns from examples, not from the text 'text'"),
        ([["a"]], None, "sentence 0: without y it must be a DependencyTree"),
        ([["a"]], [], "X has 1 sentences, y has 0 trees"),
        ([["a"]], "a", "y must be a list of trees"),
        ([["a"]], ["a"], r"sentence 0: its tree must be a list of \(head, label\)"),
        ([["a"]], [["a"]], r"sentence 0: an arc must be a pair"),
        ([["a"]], [[("0", "root")]], "sentence 0: a head must be an int"),
        ([["a"]], [[(0, 3)]], "sentence 0: a label must be a str"),
        ([["a"]], [[(0, "root"), (1, "x")]], "sentence 0: 1 words, and its tree has 2 arcs"),
        ([["a", "b"]], [[(0, "root"), (3, "x")]], "sentence 0: word 2 has head 3, of 2 words"),
        ([["a", "b"]], [[(0, "root"), (2, "x")]], "sentence 0: word 2 has head 2, of 2 words"),
        ([["a", "b", "c"]], [[(2, "x"), (1, "x"), (0, "root")]], r"sentence 0: word \d is below itself"),
        ([["a"], []], [[(0, "root")], []], "sentence 1 has no words"),
        ([["a"]], [[(0, None)]], "no arc has a label"),
    ],
)
def test_what_is_no_training_data(X, y, message):
    parser = DependencyParser(C=0.1, random_state=0)
    with pytest.raises(ValueError, match=message):
        parser.fit(X, y)
    assert not hasattr(parser, "model_")


def test_ten_thousand_labels_an_unknown_one_and_a_long_sentence(parser):
    labels = [f"l{k}" for k in range(10_000)]
    X, y = [["a", "b"], ["c", "d", "e"]], [[(2, "l7"), (0, "l9")], [(2, "l0"), (0, "l9"), (2, "l7")]]
    many = DependencyParser(C=1.0, random_state=0).partial_fit(X, y, classes=labels)
    assert many.classes_.tolist() == sorted(labels)
    assert {label for arcs in many.predict(X) for _, label in arcs} <= set(labels)
    with pytest.raises(ValueError, match="sentence 0: word 1 has the label 'new', which the model does not know"):
        many.partial_fit([["a"]], [[(0, "new")]])
    (arcs,) = parser.predict([[TRAIN[0].words[0]] * 500])
    assert len(arcs) == 500 and [head for head, _ in arcs].count(0) == 1


def test_bad_parameters():
    for params in (
        {"C": 0.0}, {"loss": "f1"}, {"projective": "no"}, {"features": 3}, {"max_length": 0}, {"solver": "pcfg"},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter"):
            DependencyParser(**params).fit(TRAIN)
    for params in ({"arc_bits": 0}, {"row_bits": 29}, {"arcs": 3}):
        with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter of ArcFeatures"):
            DependencyParser(features=ArcFeatures(**params)).fit(TRAIN)
    with pytest.raises(ValueError, match="no column 'word'"):
        DependencyParser(features=ArcFeatures(arcs="h.word")).fit(TRAIN)
    with pytest.raises(ValueError, match="a template must be a str, got 1"):
        DependencyParser(features=ArcFeatures(labels=[1, 2])).fit(TRAIN)
    with pytest.raises(ValueError, match="'columns' must return"):
        DependencyParser(features=ArcFeatures(columns=lambda words: None)).fit(TRAIN)
    for n_jobs in (-2, 0, 1.5, "a"):
        with pytest.raises(ValueError, match="'n_jobs' parameter of DependencyParser must be"):
            trained(TRAIN[:5]).set_params(n_jobs=n_jobs).predict(TEST)
    with pytest.raises(ValueError, match="both empty"):
        DependencyParser(features=ArcFeatures(arcs="", labels=())).fit(TRAIN)
    with pytest.raises(ValueError, match="words are more than the cap max_length=3"):
        DependencyParser(max_length=3).fit(TRAIN)
    for params in ({"features__arc_bits": 12}, {"subtypes": False}, {"features__labels": ("m.upos",)}):
        parser = trained(TRAIN[:5], warm_start=True).set_params(features=ArcFeatures()).fit(TRAIN[:5])  # as None
        with pytest.raises(ValueError, match=f"the model was trained with another '{next(iter(params))}'"):
            parser.set_params(**params).fit(TRAIN[:5])


def test_templates_and_subtypes(tmp_path):
    text = "# tags\nh.upos m.upos dist\n\nm.form  # the word\n"
    parser = trained(TRAIN, features=ArcFeatures(arcs=text, labels=["m.upos", "h.upos m.upos dir"]), subtypes=False)
    assert parser.model_.oracle.templates.arcs == ("h.upos m.upos dist", "m.form")
    assert "acl" in parser.classes_ and "acl:relcl" not in parser.classes_
    parser.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.predict(TEST) == parser.predict(TEST)
    assert loaded.get_params()["features__labels"] == ("m.upos", "h.upos m.upos dir")


def test_all_trees_of_two_stages():
    X = [TRAIN[0].words[:3]]
    trees, found = (trained(TRAIN, order=order).predict_kbest(X, None)[0] for order in (1, 2))
    assert sorted(arcs for arcs, _ in found) == sorted(arcs for arcs, _ in trees)
    for k in (10**30, True):
        with pytest.raises(ValueError, match="k must be") if k is True else contextlib.nullcontext():
            assert trained(TRAIN, order=1).predict_kbest(X, k)[0] == trees


def test_known_arcs_may_cross_in_a_projective_parser():
    X, y = [[(word.form, word.upos) for word in tree.words] for tree in TRAIN[:20]], [tree.arcs for tree in TRAIN[:20]]
    crossing = [(3, "a"), (4, "b"), (0, "root"), (3, None)]
    parser = DependencyParser(C=0.1, max_iter=1, projective=True, random_state=0)
    parser.fit([*X, [(form, "X") for form in "abcd"]], [*y, crossing])
    assert parser.n_crossing_ == 1
    hidden = [[(head if m % 2 else None, label) for m, (head, label) in enumerate(arcs)] for arcs in y]
    parser = DependencyParser(C=0.1, max_iter=1, random_state=0).fit(X, hidden)
    assert parser.n_crossing_ == 0 and parser.projective_


def test_probabilities(parser):
    assert parser.temperature_ > 0.0
    X = [tree for tree in TEST if len(tree) < 8][:10]
    for tree, chances, ranked in zip(X, parser.predict_proba(X), parser.predict_kbest(X, 5, probabilities=True)):
        assert chances.shape == (len(tree), len(tree) + 1)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
        shares = [p for _, p in ranked]
        assert shares == sorted(shares, reverse=True) and sum(shares) <= 1.0 + 1e-9
        for arcs, p in ranked:
            assert all(chances[m, head] >= p - 1e-6 for m, (head, _) in enumerate(arcs))
    assert [found[0][0] for found in parser.predict_kbest(X, 2)] == parser.predict(X)
    with pytest.raises(ValueError, match="needs probabilities"):
        trained(TRAIN[:5]).predict_proba(X)
    likely = DependencyParser(C=1.0, loss="log", max_iter=2, random_state=0).fit(TRAIN[:20])
    assert likely.temperature_ == 1.0
    model = trained(TRAIN[:30])
    assert model.calibrate(TRAIN[30:60]).temperature_ > 0.0
    y = [tree.arcs for tree in TRAIN[30:60]]
    y[3] = [y[3][0], *((None, label) for _, label in y[3][1:])]
    with pytest.raises(ValueError, match="sentence 3: its tree is known in part, and calibrate needs whole ones"):
        model.calibrate(TRAIN[30:60], y)


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
def test_trees_that_are_known_in_part():
    """Heads without labels, and labels without heads, are better than nothing."""
    rng = np.random.default_rng(0)
    y = [tree.arcs for tree in TRAIN]
    for k in range(20, 120):
        y[k] = [(None if rng.random() < 0.5 else head, label) for head, label in y[k]]
    few = DependencyParser(C=0.1, random_state=0).fit(TRAIN[:20])
    more = DependencyParser(C=0.1, random_state=0).fit(TRAIN, y)
    assert more.score(TEST) > few.score(TEST)
    unparsed = parse_conllu("1\ta\t_\tNOUN\t_\t_\t_\t_\t_\t_\n\n")
    assert DependencyParser(C=0.1, random_state=0).fit([*TRAIN[:20], *unparsed]).predict(unparsed) == [[(0, "root")]]


def test_a_solver_of_ones_own():
    parser = DependencyParser(solver=LaRank(C=0.1, max_iter=1, random_state=0)).fit(TRAIN)
    assert parser.n_iter_ == 1
    for solver in ("perceptron", "passive_aggressive", "frank_wolfe"):
        C = None if solver == "perceptron" else 0.1
        tol = None if solver == "perceptron" else 0.9
        model = DependencyParser(C, solver=solver, max_iter=3, tol=tol, random_state=0).fit(TRAIN)
        assert model.score(TEST) > 0.75, solver


def test_pairs_of_arcs(tmp_path):
    """A second stage that changes trees for the better, by the first one's scores; in files, lists and explanations."""
    first = trained(order=1)
    second = trained()
    assert first.model_.pairs is None
    for wanted, least in ((first, 120), (second, 115)):
        ranked = wanted.predict_kbest(TEST, 3)
        assert sum(found[0][0] == arcs for found, arcs in zip(ranked, wanted.predict(TEST))) >= least
        assert all(a[1] >= b[1] for found in ranked for a, b in pairwise(found))
    assert first.predict(TEST) != second.predict(TEST)
    assert dependency_scores(TEST, second.predict(TEST)).las > dependency_scores(TEST, first.predict(TEST)).las
    assert np.array_equal(trained().model_.pairs.weights, second.model_.pairs.weights)
    second.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.predict(TEST) == second.predict(TEST) and loaded.predict_kbest(TEST[:3], 4) == second.predict_kbest(
        TEST[:3], 4
    )
    assert loaded.get_params()["order"] == 2
    told = second.explain(TEST[0])
    assert any(one.feature == "pairs of arcs" for one in told.contributions)
    scores = [score for _, score in second.predict_kbest(TEST[:1], 2)[0]]
    assert sum(one.value for one in told.contributions) == pytest.approx(scores[0] - scores[1], abs=1e-4)


def test_errors_name_a_sentence_among_all():
    """Also where C is chosen on a part of them."""
    (cycle,) = parse_conllu("".join(f"{m}\tw\t_\tX\t_\t_\t{3 - m}\tdep\t_\t_\n" for m in (1, 2)) + "\n")
    for C in (0.1, "auto"):
        with pytest.raises(ValueError, match="sentence 60: word 1 is below itself"):
            DependencyParser(C, random_state=0).fit([*TRAIN[:60], cycle])


def test_a_perceptron_s_scores_are_put_into_units_of_the_loss(tmp_path):
    """Without that all candidates but the best were too far away, and arcs outweighed all pairs."""
    first, second = (trained(solver="perceptron", C=None, order=order) for order in (1, 2))
    assert second.model_.pairs.unit > 5.0 and second.model_.pairs.arc_unit > 0.0
    assert dependency_scores(TEST, second.predict(TEST)).las > dependency_scores(TEST, first.predict(TEST)).las
    second.save(tmp_path / "m")
    assert structsvm.load(tmp_path / "m").predict(TEST) == second.predict(TEST)
    assert trained().model_.pairs.unit == 1.0


def test_the_hinge_loss_is_least_at_the_turning_point():
    model = trained(order=1, solver="perceptron", C=None).model_
    codes, offsets = model.encode(TEST)
    outputs = outputs_of([tree.arcs for tree in TEST], offsets, model.labels, model.subtypes)
    margins = []
    for a, b in pairwise(offsets.tolist()):
        table = model.oracle.decoder(b - a).table(codes[a:b], model.weights)
        for m, (head, label) in enumerate(outputs[a:b].tolist()):
            true, table[head, m, label] = table[head, m, label], -np.inf
            margins.append(float(true) - float(table[:, m].max()))
    margins = np.array(margins)
    scales = np.geomspace(0.1, 1000.0, 2000)
    losses = [np.maximum(0.0, 1.0 - margins / t).sum() for t in scales]
    t = turning_point(model.oracle, model.weights, ParsedSentences(codes, offsets, outputs))
    assert np.maximum(0.0, 1.0 - margins / t).sum() <= min(losses) * (1.0 + 1e-9)
    assert turning_point(model.oracle, 0.0 * model.weights, ParsedSentences(codes, offsets, outputs)) == 0.0


def test_the_first_stage_starts_from_halves():
    """From their alphas at the best of all scales; it is the same problem, and solved after fewer passes."""
    model = trained(order=1).model_
    codes, offsets = model.encode(TRAIN)
    solver = LaRank(C=0.1, random_state=0)
    outputs = outputs_of([tree.arcs for tree in TRAIN], offsets, model.labels, model.subtypes)
    problem, _ = model.bind(ParsedSentences(codes, offsets, outputs), solver)
    run = solver.start(problem)
    halves = Halves.trained(model.oracle, solver, problem, None)
    halves.start(run)
    state, best = run.state.get_state(), run.state.dual
    run.state.set_state(state | scaled(state, 0.98))
    assert best > run.state.dual > 0.99 * best
    run.state.set_state(state | joined(halves.parts), adapt=True)
    assert best > run.state.dual > 0.0
    first, second = (trained(order=order, max_iter=3).result_ for order in (1, 2))
    assert second.dual > first.dual and second.n_argmax > first.n_argmax
    first, second = (trained(order=order, max_iter=None, tol=0.01).result_ for order in (1, 2))
    assert second.dual == pytest.approx(first.dual, rel=0.01) and second.n_iter < first.n_iter


def test_when_there_is_no_second_stage(monkeypatch):
    assert trained(TRAIN[:19]).model_.pairs is None and trained(TRAIN[:20]).model_.pairs is not None
    y = [tree.arcs for tree in TRAIN]
    y[19] = [(None, label) for _, label in y[19]]
    assert DependencyParser(C=0.1, max_iter=1).fit(TRAIN[:20], y[:20]).model_.pairs is None
    assert DependencyParser(C=1.0, loss="log", max_iter=1).fit(TRAIN[:20]).model_.pairs is None
    stream = DependencyParser(C=0.1, random_state=0).partial_fit(TRAIN, classes=["root", *parser_labels()])
    assert stream.model_.pairs is None
    stream = trained()
    before = stream.model_.pairs
    assert stream.partial_fit(TRAIN[:5]).model_.pairs is before
    assert stream.set_params(order=1, warm_start=True).fit(TRAIN).model_.pairs is None
    parser = DependencyParser(C=0.1, features=ArcFeatures(pairs="x.tag"))
    with pytest.raises(ValueError, match=r"'x\.tag' is no part of one of pairs"):
        parser.fit(TRAIN)
    assert not hasattr(parser, "model_")
    few = trained(features=ArcFeatures(pairs=["h.label m.label"])).model_.pairs.oracle.templates
    assert few.texts == ("h.label m.label",)

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("structsvm.tasks.dependency.model.train_pairs", interrupt)
    parser = DependencyParser(C=0.1, max_iter=2, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        parser.fit(TRAIN)
    assert parser.model_.pairs is None and parser.score(TEST) > 0.8


def parser_labels():
    return sorted({label for tree in TRAIN for _, label in tree.arcs} - {"root"})


def test_classes_with_subtypes_that_are_left_out():
    X, y = [["a", "b"]] * 5, [[(2, "acl:relcl"), (0, "root")]] * 5
    parser = DependencyParser(C=1.0, subtypes=False).partial_fit(X, y, classes=["acl:relcl", "root"])
    parser.partial_fit(X, y, classes=["acl:relcl", "root"])
    assert parser.classes_.tolist() == ["acl", "root"]


@pytest.mark.parametrize("C", [1e4, 1e6])
def test_a_dual_is_below_its_primal_whatever_rounding_does(C):
    trees = make_dependency_trees(60, max_length=8, random_state=0)
    parser = DependencyParser(loss="log", C=C, order=1, max_iter=100, projective=True, random_state=0).fit(trees)
    assert parser.result_.dual <= parser.result_.primal


def test_features_nest_as_solvers_do(tmp_path):
    X, y = [tree.words for tree in TRAIN], [tree.arcs for tree in TRAIN]
    parser = DependencyParser(C=0.1, max_iter=1, order=1, random_state=0, features=ArcFeatures(arc_bits=10))
    search = GridSearchCV(parser, {"features__row_bits": [4, 5], "features__labels": [None, "m.upos dir"]}, cv=2)
    assert len(search.fit(X, y).cv_results_["params"]) == 4 and parser.features.row_bits is None
    parser.set_params(features__row_bits=5).fit(X, y).save(tmp_path / "m", training_state=True)
    other = structsvm.load(tmp_path / "m")
    assert repr(other) == repr(parser) and other.predict(TEST) == parser.predict(TEST)
    assert other.set_params(warm_start=True).fit(X, y).n_iter_ == 2
    with pytest.raises(ValueError, match="trained with another 'features__row_bits'"):
        other.set_params(features__row_bits=6).fit(X, y)
