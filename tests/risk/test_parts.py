"""Parts of outputs: their losses, thresholds by label, and promises about them."""

import tracemalloc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from cases import TABLE
from scipy.stats import beta
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

import structsvm
from structsvm import ConvergenceWarning
from structsvm.datasets import make_dependency_trees, make_sequences
from structsvm.metrics import path_loss
from structsvm.metrics._schemes import BIO, BIOES
from structsvm.risk import ConformalSets, ConformalSpans, LossController, RiskController
from structsvm.risk.bounds import conformal_rank, says_below
from structsvm.risk.curves import curves_of, own_curves_of
from structsvm.risk.losses import LOSSES
from structsvm.risk.parts import known_parts, parts_of, true_paths
from structsvm.risk.steps import GRID, first_of_grid, grid, path_by_label
from structsvm.risk.tables import UNSEEN, PartTable, joined, names_alone, nodes, places_in
from structsvm.structures.taxonomy import Taxonomy
from structsvm.structures.trees import parse_tree
from structsvm.tasks import DependencyParser, GrammarParser, MultilabelClassifier, SequenceLabeler

RNG = np.random.default_rng(0)
X, Y = make_sequences(1300, mean_length=5.0, random_state=0)
ROWS = TABLE["multilabel, tree"].X


@pytest.fixture(scope="module")
def tagger():
    return SequenceLabeler(loss="log", C=1.0, random_state=0).fit(X[:100], Y[:100])


# ---- losses ---------------------------------------------------------------------------------------


def invented(n, labels="abc"):
    """Outputs with parts ``(place, label)``, some of them true, and their probabilities."""
    likely, true = [], []
    for _ in range(n):
        parts = {(k, labels[RNG.integers(len(labels))]): RNG.random() for k in range(RNG.integers(0, 7))}
        likely.append(parts)
        lost = {(9, "a")} if RNG.random() < 0.2 else set()  # a true part that is not probable at all
        true.append(frozenset(part for part, p in parts.items() if RNG.random() < p) | lost)
    return likely, true


def table(outputs, names="abc", form=nodes):
    """A table of dicts of parts ``(place, label)``, or of sets of them; of labels alone with `names_alone`."""
    dicts = [own if isinstance(own, dict) else dict.fromkeys(own, 1.0) for own in outputs]
    parts = [part if form is nodes else (0, part) for own in dicts for part in own]
    first, label = ([part[k] if k == 0 else names.index(part[k]) for part in parts] for k in (0, 1))
    columns = [np.array(own, dtype=np.int64) for own in (first, np.zeros(len(parts)), label)]
    chance = np.array([p for own in dicts for p in own.values()], dtype=np.float64)
    return PartTable(np.cumsum([0, *map(len, dicts)]), *columns, chance, list(names), form)


def by_sets(name, true, found):
    """The losses as they are defined."""
    right = len(true & found)
    if name == "missed":
        return 1.0 - right / len(true) if true else 0.0
    if name == "wrong":
        return 1.0 - right / len(found) if found else 0.0
    if name == "f1":
        return 1.0 - 2.0 * right / (len(true) + len(found)) if true or found else 0.0
    return min(len(true ^ found) / 12, 1.0)


def along(curves):
    """The losses at all steps: array (n_outputs, n_steps)."""
    return np.stack([curves.at(step) for step in range(curves.n_steps)], axis=1)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_along_the_grid_are_those_of_sets(name):
    likely, true = invented(60)
    tables = table(likely), table(true)
    curves, asked = curves_of(grid(), *tables, LOSSES[name].of, most=12), []

    def own(truth, found):
        asked.append(found)
        return by_sets(name, truth, found)

    losses = along(curves)
    assert losses.shape == (60, len(GRID)) and losses.min() >= 0.0 and losses.max() <= 1.0
    assert along(own_curves_of(grid(), *tables, own)) == pytest.approx(losses)
    assert len(likely) < len(asked) == len(curves.step) <= sum(len(parts) + 1 for parts in likely)  # a set once
    for step in range(0, len(GRID), 20):
        found = [frozenset(part for part, p in parts.items() if p >= GRID[step]) for parts in likely]
        assert losses[:, step] == pytest.approx([by_sets(name, *pair) for pair in zip(true, found, strict=True)])


@pytest.mark.parametrize("name", LOSSES)
def test_sums_and_raised_losses_are_those_of_the_table(name):
    likely, true = invented(80)
    curves = curves_of(grid(), table(likely), table(true), LOSSES[name].of, most=12)
    losses, weight = along(curves), RNG.random(80)
    assert curves.sums(weight) == pytest.approx(weight @ losses)
    assert curves.means(weight) == pytest.approx(np.average(losses, axis=0, weights=weight))
    assert (along(curves.raised(from_last=False)) == np.maximum.accumulate(losses, axis=1)).all()
    assert (along(curves.raised(from_last=True)) == np.maximum.accumulate(losses[:, ::-1], axis=1)[:, ::-1]).all()
    assert curves.are_binary == np.isin(losses, (0.0, 1.0)).all()


def test_places_in_the_grid_are_exact():
    near = [np.nextafter(GRID[1:], side) for side in (0.0, 1.0)]
    chance = np.concatenate([GRID[1:], *near, RNG.random(5000), [0.0, 5e-324, 1.0, 1.0 + 1e-15, np.nan]])
    assert (first_of_grid(chance) == np.searchsorted(-GRID, -chance)).all()


def plain_step(losses, safe, alpha, delta, weight):
    """The step of a table of losses (n_outputs, n_steps), as the papers have it; -1: none. No weight is above 1."""
    own = np.ones(len(losses)) if weight is None else weight
    if safe == "all":
        losses = losses[:, ::-1]
    if delta is None:
        total = own @ np.maximum.accumulate(losses, axis=1)
        is_kept = (total + 1.0) / (own.sum() + 1.0) <= alpha + 1e-9
    else:
        excess = own[:, None] * (losses - alpha)
        binary = bool((own == 1.0).all() and np.isin(losses, (0.0, 1.0)).all())
        is_kept = says_below(lambda of: of(excess).sum(axis=0), len(losses), alpha, delta, binary=binary)
    last = int(np.argmin(np.append(is_kept, False))) - 1
    return losses.shape[1] - 1 - last if safe == "all" and last >= 0 else last


@pytest.mark.parametrize("delta", [None, 0.2])
@pytest.mark.parametrize("name", ["missed", "wrong"])
def test_thresholds_are_those_of_the_plain_definition(name, delta):
    found = []
    for seed in range(40):
        likely, true = invented(40)
        curves = curves_of(grid(), table(likely), table(true), LOSSES[name].of)
        weight = [None, np.full(40, 0.3), RNG.random(40)][seed % 3]
        promise = LossController(None, loss=name, alpha=[0.3, 0.5, 0.7][seed % 3], delta=delta)
        wanted = plain_step(along(curves), LOSSES[name].safe, promise.alpha, delta, weight)
        try:
            found.append(promise._step(curves, weight))
        except ValueError:
            found.append(-1)
        assert found[-1] == wanted
    assert len(set(found)) > 10


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n", [0, 1, 300])
def test_losses_are_those_of_each_output_alone(name, n):
    likely, true = many(n)
    curves = curves_of(grid(), likely, true, LOSSES[name].of, 12)
    assert len(curves) == n and curves.sums(np.ones(n)).shape == (len(GRID),)
    losses = along(curves)
    for i in range(0, n, 50):
        one = np.arange(n) == i
        alone = curves_of(grid(), likely.take(one), true.take(one), LOSSES[name].of, 12)
        assert (along(alone)[0] == losses[i]).all()


def many(n, parts=4):
    """Outputs with as many parts each, and with half of them as true ones."""
    count = n * parts
    columns = [np.tile(np.arange(parts), n), np.zeros(count, dtype=np.int64), RNG.integers(0, 3, count)]
    likely = PartTable(np.arange(n + 1) * parts, *columns, RNG.random(count), list("abc"), nodes)
    return likely, likely.keep(likely.first % 2 == 0)


def test_losses_of_many_outputs_take_the_memory_of_their_changes():
    """A table of all outputs and steps is never made."""
    likely, true = many(10_000)
    tracemalloc.start()
    try:
        curves = curves_of(grid(), likely, true, LOSSES["f1"].of)
        curves.raised(from_last=False).sums(np.ones(10_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(curves.step) <= 5 * 10_000 and peak < 10_000 * len(GRID) * 8 / 4


def test_the_loss_of_a_path_is_that_of_metrics():
    edges = [("r", "a"), ("r", "b"), ("a", "a1"), ("a", "a2"), ("b", "b1"), ("b1", "b2")]
    taxonomy = Taxonomy(edges)
    for a in taxonomy.nodes:
        for b in taxonomy.nodes:
            true, found = (frozenset(taxonomy.ancestors(node)) for node in (a, b))
            tables = (table([own], taxonomy.nodes, names_alone) for own in (found, true))
            most = 2 * int(taxonomy.depth.max())
            loss = curves_of(grid().only(-1), *tables, LOSSES["path"].of, most).at(0)
            assert loss == pytest.approx([path_loss([a], [b], taxonomy) / most])


def test_a_path_by_label_is_the_best_for_its_price():
    likely, true = invented(200)
    path = path_by_label(table(likely), table(true), others=0.5)
    assert (np.diff(path.thresholds[:, :-1], axis=0) <= 0.0).all() and set(path.labels) == set("abc")
    for price in (0.2, 1.0, 5.0):
        best = []
        for threshold in GRID:
            for_each = [
                sum(
                    (part in truth) - price * (part not in truth)
                    for part, p in own.items()
                    if part[1] == "a" and p >= threshold
                )
                for own, truth in zip(likely, true, strict=True)
            ]
            best.append(sum(for_each))
        column = path.thresholds[:, path.labels.index("a")]
        values = [best[int(np.argmin(np.abs(np.where(np.isinf(GRID), 2.0, GRID) - min(own, 2.0))))] for own in column]
        assert max(values) == pytest.approx(max(best), abs=1.2)  # prices stand some way apart


# ---- what parts are -------------------------------------------------------------------------------


def test_parts_of_sets_and_arcs(tagger):
    model = MultilabelClassifier(C=1.0, probability=True, random_state=0).fit(ROWS, TABLE["multilabel, tree"].y)
    parts = parts_of(model)
    proba, names = model.predict_proba(ROWS), model.classes_.tolist()
    for own, row in zip(parts.likely(model, ROWS), proba, strict=True):
        assert own == {name: p for name, p in zip(names, row.tolist(), strict=True) if p >= 1e-3}
    truth = parts.true(model, ROWS, TABLE["multilabel, tree"].y).frozen()
    assert [sorted(map(names.index, own)) for own in truth] == [
        np.flatnonzero(row).tolist() for row in TABLE["multilabel, tree"].y
    ]
    trees = make_dependency_trees(30, max_length=7, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        parser = DependencyParser(C=0.1, probability=True, random_state=0).fit(trees)
    words = [tree.words for tree in trees]
    true = parts_of(parser).true(parser, words, [tree.arcs for tree in trees])
    assert true.frozen()[0] == {(k, head) for k, (head, _) in enumerate(trees[0].arcs, 1)}
    for own, table in zip(parts_of(parser).likely(parser, words), parser.predict_proba(words), strict=True):
        assert all(p == table[word - 1, head] for (word, head), p in own.items())
    spans = parts_of(tagger).true(tagger, [X[100][:1] * 3], [["B-NP", "I-NP", "B-VP"]])
    assert spans.frozen() == [{(0, 2, "NP"), (2, 3, "VP")}]
    with pytest.raises(ValueError, match="sequence 1 is not known, or in part"):
        parts_of(tagger).true(tagger, X[:2], [Y[0], [None, *Y[1][1:]]])


def test_paths_are_made_for_nodes_that_occur(monkeypatch):
    """A taxonomy of thousands of nodes is not walked through node by node."""
    edges = [("r", f"n{k}") for k in range(3)] + [(f"n{k % 3}", f"n{k}") for k in range(3, 1000)]
    taxonomy, asked = Taxonomy(edges), []
    walk = Taxonomy.ancestors
    monkeypatch.setattr(Taxonomy, "ancestors", lambda self, node: asked.append(node) or walk(self, node))
    y = ["n7", "n1", "r", "n7", "unseen", "n999"] * 3
    found = true_paths(SimpleNamespace(taxonomy_=taxonomy), range(len(y)), y)
    assert sorted(asked) == ["n1", "n7", "n999", "r"]
    paths = [{"n1", "n7"}, {"n1"}, set(), {"n1", "n7"}, {(UNSEEN,)}, {"n0", "n999"}]
    assert found.frozen() == [frozenset(path) for path in paths] * 3


def test_tables_are_dicts_of_parts():
    """Matching, choosing and sorting columns gives what dicts and sets give."""
    likely, true = invented(80)
    columns, truth = table(likely), table(true, "cab")  # labels in another order
    assert list(columns) == likely and truth.frozen() == true
    order = [(i, part) for i, own in enumerate(likely) for part in own]
    places = places_in(columns, truth).tolist()
    wanted = [(i, part) for i, own in enumerate(true) for part in own]
    assert dict(zip(wanted, places, strict=True)) == {
        pair: order.index(pair) if pair in order else -1 for pair in wanted
    }
    is_high, some = columns.chance > 0.5, RNG.random(80) < 0.5
    assert columns.chosen(is_high) == [[part for part, p in own.items() if p > 0.5] for own in likely]
    assert list(columns.keep(is_high)) == [{part: p for part, p in own.items() if p > 0.5} for own in likely]
    assert list(columns.take(some)) == [own for own, is_in in zip(likely, some, strict=True) if is_in]
    assert [list(own) for own in columns.by_chance()] == [sorted(own, key=lambda part: -own[part]) for own in likely]
    unseen = table([{(0, "q")}], "q")
    assert places_in(columns, unseen).tolist() == [-1] and places_in(table([{}]), table([set()])).tolist() == []


def test_rows_of_large_numbers_keep_apart():
    columns = [RNG.integers(0, high, 500) for high in (3, 2**40, 2**40, 5)]
    columns[1][::2] = columns[1][0]
    rows = np.stack(columns, axis=1)
    same = (rows[:, None] == rows[None]).all(axis=2)
    keys = joined(columns)
    assert ((keys[:, None] == keys[None]) == same).all()


def test_labels_come_by_probability():
    model = MultilabelClassifier(C=1.0, probability=True, random_state=0).fit(ROWS, TABLE["multilabel, tree"].y)
    found = LossController(model, alpha=0.2).calibrate(ROWS, TABLE["multilabel, tree"].y)
    proba, names = model.predict_proba(ROWS), model.classes_.tolist()
    for own, row in zip(found.predict(ROWS), proba, strict=True):
        chances = [row[names.index(name)] for name in own]
        assert chances == sorted(chances, reverse=True) and len(own) == (row >= found.threshold_).sum()


def test_labels_and_tokens_go_together(tagger):
    """A sequence with too few labels or too many is refused, not counted."""
    for wrong in (Y[110][:-1], [*Y[110], "O"]):
        bad = [*Y[100:110], wrong, *Y[111:200]]
        for promise in (ConformalSpans(tagger), LossController(tagger)):
            with pytest.raises(ValueError, match=rf"y: sequence 10 has {len(wrong)} labels, X has {len(X[110])}"):
                promise.calibrate(X[100:200], bad)
        sets = ConformalSets(tagger).calibrate(X[100:200], Y[100:200])
        for asked in (sets.calibrate, sets.score):
            with pytest.raises(ValueError, match=rf"y: output 10 has {len(wrong)} labels, X has {len(X[110])}"):
                asked(X[100:200], bad)


NAMES = ["sequence", "log loss of sequences", "segments", "multilabel", "graph", "taxonomy", "multiclass"]


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning", "ignore::structsvm.AdviceWarning")
@pytest.mark.parametrize("name", [name for name in NAMES if name in TABLE])
def test_all_kinds_of_outputs(name):
    case = TABLE[name]
    model = case.trained
    if getattr(model, "temperature_", 1.0) is None:
        with pytest.raises(TypeError, match="has scores without probabilities"):
            LossController(model).calibrate(case.X, case.y)
        return
    for loss in ("missed", "wrong"):
        found = LossController(model, loss=loss, alpha=0.4).calibrate(case.X, case.y)
        outputs = found.predict(case.X)
        assert len(outputs) == len(case.y) == found.n_calibration_
        assert found.size_ == pytest.approx(np.mean([len(own) for own in outputs]))
        assert found.score(case.X, case.y) == pytest.approx(1.0 - found.risk_) and found.risk_ <= 0.4
        parts = parts_of(model)
        truth = parts.true(model, case.X, case.y).frozen()
        risk = np.mean([by_sets(loss, a, frozenset(b)) for a, b in zip(truth, outputs, strict=True)])
        assert risk == pytest.approx(found.risk_)


PARTS = [*NAMES, "grammar", "dependency", "multilabel, tree", "lasvm"]


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning", "ignore::structsvm.AdviceWarning")
@pytest.mark.parametrize("name", [name for name in PARTS if name in TABLE])
def test_answers_with_few_wrong_parts(name):
    """An answer's loss is the share of its parts that are not true, its confidence their mean probability."""
    case = TABLE[name]
    model, y = case.trained, case.X if case.y is None else case.y
    X = case.questions
    careful = RiskController(model, alpha=0.6, delta=0.3, loss="parts").calibrate(X, y)
    outputs, true_of = model.predict(X), known_parts(model).true
    truth, found = (true_of(model, X, own).frozen() for own in (y, outputs))
    losses = np.array([by_sets("wrong", *pair) for pair in zip(truth, found, strict=True)])
    passed, sure = np.array([answer is not None for answer in careful.predict(X)]), careful.predict_confidence(X)
    if model.temperature_ is None:
        assert sure.tolist() == model.predict_confidence(X).tolist()
    else:
        chances = parts_of(model).likely(model, X)
        means = [
            np.mean([own.get(part, 0.0) for part in some] or 1.0) for own, some in zip(chances, found, strict=True)
        ]
        assert sure == pytest.approx(means)
    assert careful.coverage_ == passed.mean() and careful.curve_.risk[-1] == pytest.approx(losses.mean())
    assert careful.risk_ == pytest.approx(losses[passed].mean()) if passed.any() else np.isnan(careful.risk_)


SPANS = [BIO.chunks(labels) for labels in Y]
LABELS = {
    "bio": [BIO.labels(spans, len(x)) for x, spans in zip(X, SPANS, strict=True)],
    "bioes": [BIOES.labels(spans, len(x)) for x, spans in zip(X, SPANS, strict=True)],
}
SEGMENTS = SequenceLabeler(segments=True, loss="log", C=1.0, random_state=0)


HELD_OUT, ASKED, SHOWN = slice(100, 160), slice(160, 185), slice(185, 195)


def promises_of_segments(model, y):
    """Promises of every kind about a model of segments, each with its score and outputs."""
    for promise in (
        RiskController(model, loss="parts", alpha=0.4, delta=0.1),
        LossController(model, loss="missed", alpha=0.4),
        LossController(model, loss="wrong", alpha=0.3, delta=0.1),
        ConformalSpans(model, alpha=0.3),
        ConformalSets(model, alpha=0.2),
        ConformalSets(model, alpha=0.2, cover="unit"),
    ):
        promise.calibrate(X[HELD_OUT], y[HELD_OUT])
        outputs = None if isinstance(promise, RiskController) else promise.predict(X[SHOWN])
        yield promise, promise.score(X[ASKED], y[ASKED]), outputs


def test_segments_in_every_form():
    """Promises are those of spans, whatever the labels look like in which a model of segments was trained."""
    truth, of_spans = [set(spans) for spans in SPANS[HELD_OUT]], None
    for y in (SPANS, *LABELS.values()):
        model = clone(SEGMENTS).fit(X[:100], y[:100])
        found = [set(spans) for spans in model.predict_spans(X[HELD_OUT])]
        losses = [by_sets("wrong", *pair) for pair in zip(truth, found, strict=True)]
        promises = [*promises_of_segments(model, y)]
        of_spans = of_spans or promises
        for own, same in zip(promises, of_spans, strict=True):
            assert own[1:] == same[1:] and own[1] < 1.0
            promise = own[0]
            if isinstance(promise, RiskController):
                assert promise.curve_.risk[-1] == pytest.approx(np.mean(losses)) and promise.coverage_ > 0.0
                assert promise.threshold_ == same[0].threshold_ and promise.risk_ == same[0].risk_


@pytest.mark.parametrize("mark", [None, "?"])
@pytest.mark.parametrize("form", ["bio", "bioes"])
def test_segments_known_in_part_are_refused(form, mark):
    y = LABELS[form]
    model = clone(SEGMENTS).set_params(unknown=mark).fit(X[:40], y[:40])
    bad = [*y[100:110], [*y[110][:-1], mark], *y[111:150]]
    for promise in (RiskController(model, loss="parts"), LossController(model), ConformalSets(model)):
        with pytest.raises(ValueError, match="y: sequence 10 is not known, or in part: leave it out"):
            promise.calibrate(X[100:150], bad)


def test_wrong_parts_of_given_outputs():
    found = SequenceLabeler(loss="log", C=1.0, random_state=0).fit([["a", "b", "c"]] * 3, [["B-X", "O", "B-Y"]] * 3)
    truth = [["B-X", "O", "B-Y"], ["B-X", "I-X", "B-Y"], ["O", "O", "O"]]
    careful = RiskController(found, alpha=0.9, delta=0.9, loss="parts").calibrate([["a", "b", "c"]] * 3, truth)
    assert careful.curve_.risk.tolist() == pytest.approx([(0.0 + 0.5 + 1.0) / 3])
    orders = TABLE["ordering"]
    with pytest.raises(TypeError, match="outputs of ItemOrderer have no parts that are right or wrong"):
        RiskController(orders.trained, alpha=0.6, delta=0.3, loss="parts").calibrate(orders.X, orders.y)


# ---- what is refused ------------------------------------------------------------------------------


def test_what_is_refused(tagger):
    def asked(**params):
        return LossController(tagger, **params).calibrate(X[100:200], Y[100:200])

    with pytest.raises(ValueError, match=r"alpha=0\.005 needs at least 199 held-out outputs, got 100"):
        asked(alpha=0.005)
    with pytest.raises(ValueError, match=r"alpha=0\.02 with delta=0\.1 needs at least 114 held-out outputs, got 100"):
        asked(alpha=0.02, delta=0.1)
    with pytest.raises(ValueError, match=r"needs at least 118 held-out outputs, got 100"):
        asked(alpha=0.05, delta=0.05, by_label=True)
    for loss in ("f1", "path", lambda *_: 0.0):
        with pytest.raises(ValueError, match=r"falls neither towards more parts nor towards fewer"):
            asked(loss=loss)
    with pytest.raises(ValueError, match=r"loss='path' is for nodes of a taxonomy, not for SequenceLabeler"):
        asked(loss="path", delta=0.1)
    with pytest.raises(ValueError, match="by_label=True is not for a loss that is a function"):
        asked(loss=lambda *_: 0.0, delta=0.1, by_label=True)
    with pytest.raises(ValueError, match="loss must return a number from 0 to 1, got 2 for output"):
        asked(loss=lambda *_: 2.0, delta=0.1)
    with pytest.raises(ValueError, match=r"no threshold keeps the expected loss at alpha=0\.1: the least mean loss"):
        asked(loss="f1", delta=0.1)
    for params in ({"loss": "precision"}, {"alpha": 0.0}, {"delta": 1.0}, {"by_label": "yes"}):
        with pytest.raises(ValueError, match=f"The '{next(iter(params))}' parameter of LossController must be"):
            asked(**params)
    margins = SequenceLabeler(C=1.0, probability=False, random_state=0).fit(X[:50], Y[:50])
    for promise in (LossController, ConformalSpans):
        with pytest.raises(TypeError, match="SequenceLabeler has scores without probabilities"):
            promise(margins).calibrate(X[100:], Y[100:])
        with pytest.raises(TypeError, match=r"LinearSVC has scores without probabilities"):
            promise(LinearSVC().fit(ROWS, np.arange(len(ROWS)) % 2)).calibrate(ROWS, np.arange(len(ROWS)) % 2)
    model = LogisticRegression().fit(ROWS, np.arange(len(ROWS)) % 2)
    with pytest.raises(TypeError, match="LogisticRegression have no spans: ConformalSets takes"):
        ConformalSpans(model).calibrate(ROWS, np.arange(len(ROWS)) % 2)


def test_spans_that_are_not_probable_at_all(tagger):
    strange = [["B-QQ"] * len(own) for own in Y]
    with pytest.raises(ValueError, match=r"no sets have all true spans with probability 0\.9: those of 100 of 100 "):
        ConformalSpans(tagger).calibrate(X[100:200], strange[100:200])
    with pytest.raises(ValueError, match=r"label 'QQ': no sets have all true spans"):
        ConformalSpans(tagger, by_label=True).calibrate(X[100:200], strange[100:200])
    rare = [*Y[100:130], ["B-QQ"] * len(Y[130])]
    with pytest.raises(ValueError, match=r"label '[A-Z]+': alpha=0\.1 needs at least 9 held-out outputs, got \d"):
        ConformalSpans(tagger, by_label=True).calibrate(X[100:131], rare)
    with pytest.raises(ValueError, match=r"at alpha=0\.9: the least mean loss of the held-out outputs is 1;"):
        LossController(tagger, alpha=0.9).calibrate(X[100:200], strange[100:200])


# ---- pipelines, files -----------------------------------------------------------------------------


@pytest.mark.parametrize("by_label", [False, True])
def test_files_and_pipelines(tagger, tmp_path, by_label):
    for promise in (
        LossController(tagger, by_label=by_label, random_state=0),
        ConformalSpans(tagger, by_label=by_label),
    ):
        promise.calibrate(X[100:900], Y[100:900])
        promise.save(tmp_path / "m")
        loaded = structsvm.load(tmp_path / "m")
        assert type(loaded) is type(promise) and loaded.by_label is by_label
        assert loaded.predict(X[900:]) == promise.predict(X[900:])
        assert loaded.score(X[900:], Y[900:]) == promise.score(X[900:], Y[900:])
    with pytest.raises(TypeError, match="contains no code, and loss="):
        LossController(tagger, loss=lambda a, b: float(a != b), alpha=0.9, delta=0.1).calibrate(X[100:], Y[100:]).save(
            "x"
        )
    whole = make_pipeline(FunctionTransformer(), tagger)
    same = ConformalSpans(whole, by_label=by_label).calibrate(X[100:900], Y[100:900])
    assert same.quantile_ == promise.quantile_ and same.predict(X[900:]) == promise.predict(X[900:])
    trained = LossController(SequenceLabeler(loss="log", C=1.0, random_state=0), alpha=0.3, random_state=0).fit(
        X[:200], Y[:200]
    )
    assert trained.n_calibration_ == 60


def test_weights_are_later_proportions(tagger):
    """Outputs that count twice are as if they were there twice, but for the last term, one more output's."""
    weight = np.where(np.arange(400) % 2, 2.0, 1.0)
    twice = [i for i in range(400) for _ in range(int(weight[i]))]
    one = LossController(tagger, alpha=0.2).calibrate(X[100:500], Y[100:500], weight)
    other = LossController(tagger, alpha=0.2).calibrate([X[100 + i] for i in twice], [Y[100 + i] for i in twice])
    assert one.risk_ <= 0.2 and one.threshold_ <= other.threshold_
    assert one.threshold_ == pytest.approx(other.threshold_, abs=0.02)


# ---- promises are kept ----------------------------------------------------------------------------


class Table:
    """Parts of many outputs that were found beforehand, and what is calibrated on some of them."""

    def __init__(self, tagger, X, Y):
        parts = parts_of(tagger)
        self.likely, self.true = parts.likely(tagger, X), parts.true(tagger, X, Y)

    def predict_some(self, promise, chosen):
        loss = LOSSES[promise.loss].of
        return curves_of(promise._found_steps, self.likely, self.true, loss).at(0)[chosen]


def splits(n, size, rng):
    order = 100 + rng.permutation(n)
    return order[:size], order[size:]


@pytest.mark.parametrize(
    "params", [{"loss": "missed"}, {"loss": "wrong"}, {"loss": "missed", "by_label": True}], ids=str
)
def test_the_mean_over_splits_is_controlled(tagger, params):
    rng, means, every = np.random.default_rng(0), [], Table(tagger, X[100:], Y[100:])
    for seed in range(25):
        held, later = splits(1200, 150, rng)
        promise = LossController(tagger, alpha=0.15, random_state=seed, **params)
        promise.calibrate([X[i] for i in held], [Y[i] for i in held])
        means.append(every.predict_some(promise, later - 100).mean())
    error = 3.0 * np.std(means) / 5.0
    assert 0.15 - 0.05 <= np.mean(means) <= 0.15 + error


@pytest.mark.parametrize(
    "params", [{"loss": "missed"}, {"loss": "f1", "alpha": 0.4}, {"loss": "wrong", "by_label": True}], ids=str
)
def test_few_splits_break_a_promise_with_delta(tagger, params):
    rng, broken, answered, every = np.random.default_rng(1), 0, [], Table(tagger, X[100:], Y[100:])
    params = {"alpha": 0.2} | params
    for seed in range(30):
        held, later = splits(1200, 300, rng)
        promise = LossController(tagger, delta=0.1, random_state=seed, **params)
        promise.calibrate([X[i] for i in held], [Y[i] for i in held])
        broken += every.predict_some(promise, later - 100).mean() > params["alpha"]
        answered.append(promise.size_)
    assert broken <= 8  # binomial: 30 splits, probability 0.1, once in a thousand
    assert np.mean(answered) > 0.5


@pytest.mark.parametrize("alpha", [0.02, 0.2, 0.5])
def test_spans_of_whole_outputs_are_covered(tagger, alpha):
    """The share of later outputs with all true spans follows a beta distribution with mean 1 - alpha."""
    rng, found, every = np.random.default_rng(2), [], Table(tagger, X[100:], Y[100:])
    worst = np.array(
        [
            max((1.0 - own.get(span, -np.inf) for span in true), default=-np.inf)
            for own, true in zip(every.likely, every.true, strict=True)
        ]
    )
    for _ in range(40):
        held, later = splits(1200, 200, rng)
        promise = ConformalSpans(tagger, alpha=alpha).calibrate([X[i] for i in held], [Y[i] for i in held])
        found.append((worst[later - 100] <= promise.quantile_).mean())
    assert promise.score([X[i] for i in later], [Y[i] for i in later]) == pytest.approx(found[-1])
    k = conformal_rank(200, alpha)
    low, high = beta.ppf([0.0005, 0.9995], k, 201 - k)
    assert 1.0 - alpha - 0.02 <= np.mean(found) <= 1.0 - alpha + 0.03
    assert np.mean([(own < low - 0.03) | (own > high + 0.03) for own in found]) == 0.0


ATTACHED = [
    "(S (NP (DT the) (NN cat)) (VP (VB saw) (NP (NP (DT a) (NN dog)) (PP (IN in) (NP (NN rain))))))",
    "(S (NP (DT the) (NN cat)) (VP (VB saw) (NP (DT a) (NN dog)) (PP (IN in) (NP (NN rain)))))",
    "(S (NP (NN rain)) (VP (VB saw) (NP (NP (NN rain)) (PP (IN in) (NP (NP (NN dog)) (PP (IN in) (NP (NN rain))))))))",
    "(S (VP (VB saw) (NP (NN rain))))",
]


def test_brackets_of_trees():
    """Trees drawn from a grammar of which the parser has seen few: all true brackets are in 0.8 of the sets."""
    rng = np.random.default_rng(0)
    trees = [ATTACHED[k] for k in rng.choice(4, size=600, p=[0.2, 0.3, 0.3, 0.2])]
    parser = GrammarParser.from_counts(trees[:10], smoothing=0.5)
    sets = ConformalSpans(parser, alpha=0.2).calibrate(trees[10:300])
    sentences = [parse_tree(tree).tokens() for tree in trees[300:]]
    found = sets.predict(sentences)
    true = [parser.model_.brackets_of(parse_tree(tree)) for tree in trees[300:]]
    inside = [a <= set(b) for a, b in zip(true, found, strict=True)]
    assert sets.score(trees[300:]) == np.mean(inside) >= 0.8 - 0.06
    wrong = LossController(parser, loss="wrong", alpha=0.05).calibrate(trees[10:300])
    likely = wrong.predict(sentences)
    assert np.mean([by_sets("wrong", a, frozenset(b)) for a, b in zip(true, likely, strict=True)]) <= 0.05 + 0.03
    assert all((0, len(x), "S") in own for x, own in zip(sentences, likely, strict=True))
    with pytest.raises(ValueError, match="tree 1: it is known in part"):
        sets.calibrate([ATTACHED[0], "(S (_ (NN rain)) (VP (VB saw) (NP (NN rain))))"] * 20)
