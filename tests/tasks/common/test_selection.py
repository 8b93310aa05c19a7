"""``C="auto"``: what is chosen, from what, how sure that is, and that everything else stays as it is with a number."""

import threading
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from cases import CHOICES, HOMOLOGUES, KINDS, LINE_TAGS, LINES, MANY
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

import structsvm
from structsvm import AdviceWarning, LaRank, tasks
from structsvm.callbacks import CallbackMonitor
from structsvm.datasets import make_taxonomy
from structsvm.progress import Monitor
from structsvm.solvers import ConditionalLikelihood, LatentSVM
from structsvm.solvers.choosing import Row
from structsvm.solvers.run import DualRun
from structsvm.tasks.common.selection import largest, pruning, sparse
from structsvm.tasks.common.selection import search as selection
from structsvm.tasks.common.selection.choice import Choice, ChosenLoss, ChosenSolver, ChosenSum
from structsvm.tasks.common.selection.largest import LargestSearch
from structsvm.tasks.common.selection.search import (
    Held,
    LossSearch,
    Search,
    first_scale,
    ratio,
    round_values,
    total_variance,
)
from structsvm.tasks.common.selection.sparse import RivalSearch, SparseSearch, Trial
from structsvm.tasks.common.selection.sums import SumSearch

each = pytest.mark.parametrize("case", CHOICES.values(), ids=CHOICES.keys())
pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")


@each
def test_the_best_of_the_table_is_chosen_and_trained_with(case, tmp_path):
    model = case.trained
    table = model.validation_
    n = len(case.X)
    score = table["score"] * (-1.0 if table["metric"].endswith(("loss", "error")) else 1.0)
    share = 0.5 if case.kind is tasks.DependencyParser else 0.0  # standard errors by which the least C may be worse
    best = table["C"][np.argmax(score >= score.max() - share * table["error"][score.argmax()])]
    if case.kind is tasks.SequenceLabeler and "log" in (table.get("loss"), case.params.get("loss")):
        own = score[table["C"] == model.C_].item()  # the largest of those that are as good, see `LargestSearch`
        assert best <= model.C_ and own >= score.max() - 2.0 * table["error"].max()
    else:
        assert best == model.C_
    assert (np.diff(table["C"]) > 0.0).all() and len(table["C"]) > (1 if "loss" in table else selection.PATIENCE)
    assert 0 < table["n_held_out"] <= n and (table["error"] >= 0.0).all() and (table["passes"] >= 1).all()
    # Nothing but C and the loss is passed on.
    fixed = case.fit(C=model.C_, **{"loss": table["loss"]} if "loss" in table else {})
    starts_there = fixed.result_.dual != model.result_.dual
    if starts_there:  # where the choice has ended: another way to the same optimum
        ends = [(one.result_.dual, one.result_.primal) for one in (fixed, model)]
        assert max(dual for dual, _ in ends) <= min(primal for _, primal in ends)
        assert model.result_.n_iter < fixed.result_.n_iter
    assert starts_there <= (model.model_.grows or "log" in (table.get("loss"), case.params.get("loss")))
    assert starts_there or "sum" in table or case.predicted(fixed) == case.predicted(model)
    assert fixed.C_ == model.C_
    with pytest.raises(AttributeError, match="C was given"):
        _ = fixed.validation_
    # The same again, and from a file.
    model.save(tmp_path / "m")
    for other in (case.fit(), structsvm.load(tmp_path / "m")):
        assert other.get_params()["C"] == "auto" and other.C_ == model.C_
        assert other.validation_.keys() == table.keys()
        np.testing.assert_equal(other.validation_, table)


@each
def test_too_few_examples_get_the_default(case):
    kind, X, y = case.kind, case.X, case.y
    # Few graphs are divided into parts, here of one node each.
    n = selection.LEAST_EXAMPLES // 2 - 1 if kind is tasks.GraphLabeler else selection.LEAST_EXAMPLES - 1
    model = case.make().fit(X[:n], None if y is None else y[:n])
    assert case.C_of_few == model.C_
    with pytest.raises(AttributeError, match="too few examples"):
        _ = model.validation_


@each
def test_a_warm_start_goes_on_with_the_choice(case, monkeypatch):
    model = case.fit(warm_start=True)
    C, table = model.C_, model.validation_
    monkeypatch.setattr(Search, "choose", lambda *_: pytest.fail("C is chosen again"))
    model.fit(case.X, case.y)
    assert model.C_ == C and model.validation_["score"].tolist() == table["score"].tolist()
    if hasattr(model, "partial_fit"):
        model.partial_fit(case.X[:10], None if case.y is None else case.y[:10])
        assert model.C_ == C
        fresh = case.make().partial_fit(case.X, case.y)
        with pytest.raises(AttributeError, match="too few"):
            _ = fresh.validation_


@each
def test_a_killed_training_resumes_with_the_choice(case, tmp_path, monkeypatch):
    whole = case.fit(**case.passes(4))
    end_pass, n = CallbackMonitor.end_pass, [0]

    def kill(self, run):
        n[0] += 1
        if n[0] == 3:
            raise SystemExit
        return end_pass(self, run)

    monkeypatch.setattr(CallbackMonitor, "end_pass", kill)
    model = case.make(**case.passes(4, checkpoint=tmp_path / "c"))
    with pytest.raises(SystemExit):
        model.fit(case.X, case.y)
    monkeypatch.undo()
    monkeypatch.setattr(Search, "choose", lambda *_: pytest.fail("C is chosen again"))
    model.fit(case.X, case.y)
    assert model.C_ == whole.C_ and model.result_.dual == whole.result_.dual
    assert model.validation_["score"].tolist() == whole.validation_["score"].tolist()
    assert case.predicted(model) == case.predicted(whole)


class Seen(Exception):
    """Ends a training before it begins."""


@pytest.mark.parametrize(
    ("name", "params", "most"),
    [
        ("loss of sequences", {}, 64),  # tags: the solver with the 1-norm is tried for fields alone
        ("loss of sequences", {"max_iter": 3}, 3),
        ("loss of sequences", {"tol": 0.1}, 1000),
        ("loss of sequences", {"solver": "frank_wolfe"}, 20),
        ("log loss", {}, 64),
        ("sequence", {}, 20),
        ("taxonomy", {}, 64),
        ("taxonomy", {"loss": "tree"}, 20),
        ("kernel taxonomy", {}, 2),
        ("ambiguous", {"loss": "mean"}, 20),
        ("ambiguous", {"loss": "max"}, LatentSVM(LaRank(), start="soft").n_passes),
        ("ambiguous", {"loss": "auto"}, LatentSVM(LaRank(), start="soft").n_passes),
        ("ambiguous", {"loss": "auto", "max_iter": 3}, LatentSVM(LaRank(max_iter=3), start="soft").n_passes),
    ],
)
def test_progress_counts_the_passes_of_whichever_solver_is_chosen(name, params, most, monkeypatch):
    def begin(self, estimator, X, y, max_iter, *args, **metadata):
        raise Seen(max_iter)

    monkeypatch.setattr(CallbackMonitor, "__init__", begin)
    case = CHOICES[name]
    with pytest.raises(Seen, match=f"^{most}$"):
        case.make(**params).fit(case.X, case.y)


@each
def test_ctrl_c_in_the_search_leaves_a_partial_model(case, monkeypatch):
    judged, n = selection.Part.held_out_scores, [0]

    def interrupt(self):
        n[0] += 1
        if n[0] == 3:
            raise KeyboardInterrupt
        return judged(self)

    monkeypatch.setattr(selection.Part, "held_out_scores", interrupt)
    model = case.make()
    with pytest.raises(KeyboardInterrupt, match="holds the model as it was then"):
        model.fit(case.X, case.y)
    assert model.result_.status == "interrupted"
    assert model.C_ > 0.0
    assert case.predicted(model)


@pytest.mark.parametrize("name", ["goes_on_from", "set_state"])
def test_ctrl_c_while_a_run_takes_over_keeps_what_was_learnt(name, monkeypatch):
    """From a run with another C, or from where its own C was left."""

    def interrupt(self, arrays, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(DualRun, name, interrupt)
    model = tasks.SequenceLabeler(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(LINES, LINE_TAGS)
    assert model.result_.n_iter > 0 and np.any(model.model_.weights)


def test_a_solver_object_or_a_number_rules():
    assert tasks.SequenceLabeler(solver=LaRank(C=0.25, random_state=0)).fit(LINES, LINE_TAGS).C_ == 0.25
    assert tasks.SequenceLabeler(0.5, random_state=0).fit(LINES, LINE_TAGS).C_ == 0.5
    assert tasks.SequenceLabeler(None, random_state=0).fit(LINES, LINE_TAGS).C_ == 0.1
    perceptron = tasks.SequenceLabeler(solver="perceptron", random_state=0).fit(LINES, LINE_TAGS)
    with pytest.raises(AttributeError, match="there is no C"):
        _ = perceptron.C_
    for name in ("cutting_plane", "frank_wolfe", "passive_aggressive"):
        model = tasks.SequenceLabeler(solver=name, max_iter=3, tol=None, random_state=0).fit(LINES, LINE_TAGS)
        assert model.C_ == CHOICES["sequence"].trained.C_
    with pytest.raises(ValueError, match=r"'C' parameter of SequenceLabeler must be a float .* or 'auto' .*or None"):
        tasks.SequenceLabeler("best").fit(LINES, LINE_TAGS)


@pytest.mark.parametrize("factor", [0.01, 100.0])
def test_the_choice_does_not_depend_on_units(factor):
    """Features in other units: C in their inverse square, all else the same."""
    bags = [{c} for c in KINDS.tolist()]
    settings = {"loss": "log", "fit_intercept": False, "standardize": False, "random_state": 0}
    one, other = (tasks.AmbiguousClassifier(**settings) for _ in range(2))
    one.fit(MANY, bags)
    other.fit(factor * MANY, bags)
    # Trainings end at a gap that is small, not 0: scores that are equal but for a thousandth may be chosen either way,
    # and the path goes on behind the best.
    near, n = 0.002, min(len(one.validation_["C"]), len(other.validation_["C"]))
    np.testing.assert_allclose(other.validation_["C"][:n], one.validation_["C"][:n] / factor**2)
    np.testing.assert_allclose(other.validation_["score"][:n], one.validation_["score"][:n], atol=near)
    for C in (one.C_, other.C_ * factor**2):
        (score,) = one.validation_["score"][np.isclose(one.validation_["C"], C)]
        assert score <= one.validation_["score"].min() + near


@pytest.mark.parametrize(
    "name", ["sequence", "loss of sequences", "log loss", "taxonomy", "larank", "lasvm", "ambiguous"]
)
def test_a_factor_of_all_weights_divides_c(name):
    """Where the path began at the same values for all, weights that sum to 1 were trained with far too small ones."""
    case = CHOICES[name]
    once, scaled = (
        case.make().fit(case.X, case.y, sample_weight=np.full(len(case.X), factor)) for factor in (1.0, 1e-4)
    )
    assert once.validation_["C"][0] == pytest.approx(1e-4 * scaled.validation_["C"][0])
    assert 0.3 <= 1e-4 * scaled.C_ / once.C_ <= 3.4  # scores are rounded: a tie may have another end


@pytest.mark.parametrize("name", ["sequence", "log loss", "taxonomy", "larank"])
def test_a_heavy_example_hardly_moves_the_path(name):
    """Where the path began at the mean weight, nothing was learnt on all of it."""
    case = CHOICES[name]
    weight = np.ones(len(case.X))
    once = case.make().fit(case.X, case.y, sample_weight=weight)
    weight[0] = 1e6
    heavy = case.make().fit(case.X, case.y, sample_weight=weight)
    assert 0.09 <= heavy.validation_["C"][0] / once.validation_["C"][0] <= 3.4
    assert heavy.C_ >= 0.09 * once.C_


def test_weights_that_are_numbers_of_copies_begin_where_copies_do():
    assert selection.mean_weight(None) == selection.mean_weight(np.zeros(3)) == 1.0
    assert selection.mean_weight(np.array([0.0, 1.0, 2.0, 3.0])) == 1.0
    assert selection.mean_weight(np.array([0.0, 0.02, 0.02])) == 0.01


@pytest.mark.parametrize("n", [40, selection.LEAST_EXAMPLES - 1])
@pytest.mark.parametrize("name", ["loss of sequences", "sequence"])
def test_weights_beyond_which_c_would_be_infinite_are_refused(name, n):
    case = CHOICES[name]
    for weight in (np.full(n, 1e-310), np.full(n, 1e308), np.r_[1e300, np.ones(n - 1)]):
        with pytest.raises(ValueError, match="sample_weight must be at most 1e"):
            case.make().fit(case.X[:n], case.y[:n], sample_weight=weight)
    weight = np.full(n, 1e-100)
    assert case.make().fit(case.X[:n], case.y[:n], sample_weight=weight).C_ > 1e98


@pytest.mark.parametrize("weight", [1e-3, 1e3, 1.0])
def test_the_default_of_few_examples_is_divided_by_their_weight(weight):
    n = selection.LEAST_EXAMPLES - 1
    for weights in (np.full(n, weight), np.r_[0.0, np.full(n - 1, weight)]):
        model = tasks.SequenceLabeler(random_state=0).fit(LINES[:n], LINE_TAGS[:n], sample_weight=weights)
        assert model.C_ * weight == pytest.approx(1.0, rel=1e-15)


def test_examples_without_weight_are_not_there():
    weight = np.ones(400)
    weight[::4] = 0.0
    kept = weight > 0.0
    model = tasks.TaxonomyClassifier(random_state=0).fit(MANY, KINDS, sample_weight=weight)
    other = tasks.TaxonomyClassifier(random_state=0).fit(MANY[kept], KINDS[kept])
    assert model.validation_["score"].tolist() == other.validation_["score"].tolist()
    np.testing.assert_array_equal(model.coef_, other.coef_)
    for name in ("larank", "lasvm", "sequence"):
        case = CHOICES[name]
        weight = np.ones(len(case.X))
        weight[: len(weight) // 2] = 0.0
        model = case.make().fit(case.X, case.y, sample_weight=weight)
        assert model.validation_["n_held_out"] <= len(weight) // 2


def test_families_of_pairs_stay_together(monkeypatch):
    X = [*HOMOLOGUES.X, *((z, x) for x, z in HOMOLOGUES.X)]
    y = [*HOMOLOGUES.y, *((b, a) for a, b in HOMOLOGUES.y)]
    seen = []
    start = selection.Part.__init__

    def watched(part, model, examples, held_out, solver):
        start(part, model, examples, held_out, solver)
        both = (examples.take(rows).references for rows in (part.rows, part.held_out))
        seen.append([{*some.x.tolist(), *some.z.tolist()} for some in both])

    monkeypatch.setattr(selection.Part, "__init__", watched)
    tasks.SequenceAligner(random_state=0).fit(X, y)
    assert len(seen) >= selection.PARTS_OF_FEW
    assert all(train and test and not train & test for train, test in seen)


def test_each_label_keeps_its_share():
    y = np.repeat(["often", "rarely", "once"], [359, 40, 1])
    model = tasks.TaxonomyClassifier(random_state=0)
    prepared, examples = model._prepare(MANY[:, :3], y, None, None)
    search = Search(prepared, examples, LaRank())
    (held_out,) = search.divisions()
    names = prepared.labels[search.examples.label_ids[held_out]]
    assert {name: int((names == name).sum()) for name in ("often", "rarely", "once")} == {
        "often": pytest.approx(72, abs=1),
        "rarely": 8,
        "once": 0,
    }


class Fixed:
    """A search that is over: how examples were predicted."""

    def __init__(self, loss, metric, right):
        self.loss, self.model, self.held = (
            loss,
            SimpleNamespace(loss=loss),
            Held(metric, np.array(right), np.ones(len(right))),
        )
        self.seed, self.choice = 0, Choice(1.0, metric, [Row(1.0, 0.5, 0.1, 1)], 4)

    def choose(self, monitor):
        return self.choice

    def release(self):
        pass


def test_the_best_loss_is_chosen_and_of_equal_ones_the_first():
    little, as_little, much = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]
    for metric, turns, chosen in (("F1", as_little, "a"), ("F1", much, "b"), ("mean loss", much, "a")):
        choice = LossSearch([Fixed("a", metric, little), Fixed("b", metric, turns)]).choose(None)
        compared = choice.get(ChosenLoss)
        assert compared.loss == chosen and choice.get(ChosenSum) is None
        assert compared.losses["a"][:2] == (1.0, 0.25)
    assert (
        LossSearch([Fixed("a", "mean loss", much), Fixed("b", "mean loss", little)]).choose(None).others[0].loss == "b"
    )


def test_losses_of_sequences_are_added():
    case = CHOICES["loss of sequences"]
    model = case.trained
    table = model.validation_
    assert table["losses"].keys() == table["scales"].keys() == model.results_.keys() == {"log", "hamming"}
    assert table["loss"] == model.loss_ == "log" and table["losses"]["log"][0] == model.C_
    assert model.temperature_ == 1.0 and model.results_["log"] is model.result_
    parts = {loss: case.fit(loss=loss, C=row[0], tol=1e-4) for loss, row in table["losses"].items()}
    for loss, part in parts.items():  # each starts where the choice has ended: another way to the same optimum
        assert model.results_[loss].dual <= part.result_.primal and part.result_.dual <= model.results_[loss].primal
    assert model.results_["log"].relative_gap <= 0.1
    for name in ("emission_", "transition_"):
        total = sum(table["scales"][loss] * getattr(part, name) for loss, part in parts.items())
        np.testing.assert_allclose(getattr(model, name), total, atol=0.1 * np.abs(total).max())  # gaps of 1 and .01 %
    # Other parameters leave one loss.
    for params in ({"C": 0.3}, {"inference": "greedy"}, {"class_weight": "balanced"}, {"solver": "frank_wolfe"}):
        alone = case.make(max_iter=2, **params).fit(LINES, LINE_TAGS)
        assert alone.loss_ == "hamming" and alone.results_.keys() == {"hamming"}
    assert case.make().fit(LINES[:10], LINE_TAGS[:10]).loss_ == "hamming"
    assert case.make().partial_fit(LINES, LINE_TAGS).loss_ == "hamming"
    field = tasks.SequenceLabeler(solver=ConditionalLikelihood(random_state=0)).fit(LINES, LINE_TAGS)
    assert field.loss_ == "log"


def test_losses_are_searched_and_trained_side_by_side(monkeypatch):
    case, inside = CHOICES["loss of sequences"], []
    train = selection.Part.train
    monkeypatch.setattr(
        selection.Part, "train", lambda self, *given: inside.append(threading.get_ident()) or train(self, *given)
    )
    alone = case.fit()
    assert set(inside) == {threading.get_ident()}
    inside.clear()
    together = case.fit(n_jobs=2)
    assert len(set(inside)) == 2
    np.testing.assert_equal(together.validation_, alone.validation_)
    assert together.result_.dual == alone.result_.dual
    assert case.predicted(together) == case.predicted(alone)


def test_parts_and_sum_are_log_odds_of_held_out_sequences(monkeypatch):
    seen = []
    choose = SumSearch.choose
    monkeypatch.setattr(SumSearch, "choose", lambda self, monitor: seen.append(self) or choose(self, monitor))
    model = CHOICES["loss of sequences"].fit()
    (search,), scales = seen, model.validation_["scales"]
    problem, _ = search.searches[0].model.bind(search.searches[0].examples, ConditionalLikelihood())
    chosen = [part.held_out for part in search.searches[0].parts]
    assert np.sort(np.concatenate(chosen)).tolist() == list(range(len(LINES)))  # few: all, in turn

    def temperature(scaled):
        found = [one.model.copy() for one in search.searches[0].parts]
        for k, one in enumerate(found):
            one.weights = sum(scales[s.model.loss] * s.models[k].weights for s in scaled)
        turns = list(zip(found, chosen, strict=True))
        return found[0].calibration.temperature(found[0], turns, problem, None)

    assert temperature(search.searches) == pytest.approx(1.0, abs=0.01)
    first, second = (temperature([one]) for one in search.searches)
    assert first == pytest.approx(second, rel=0.01)  # each at its own, divided by that of the sum


def test_few_examples_are_held_out_in_turn():
    model = tasks.TaxonomyClassifier(random_state=0)
    prepared, examples = model._prepare(MANY[:100], KINDS[:100], None, None)
    held_out = list(Search(prepared, examples, LaRank()).divisions())
    assert len(held_out) == 3
    np.testing.assert_array_equal(np.sum(held_out, axis=0), 1)


def test_the_metric_is_that_of_the_task():
    assert {name: case.trained.validation_["metric"] for name, case in CHOICES.items()} == {
        name: case.metric for name, case in CHOICES.items()
    }
    texts, y, taxonomy = make_taxonomy(200, random_state=0)
    documents = TfidfVectorizer().fit_transform(texts), y
    for metric, data, params in (
        ("accuracy", documents, {"taxonomy": taxonomy}),
        ("mean loss", documents, {"taxonomy": taxonomy, "leaf_only": False}),
        ("mean loss", (MANY, KINDS), {"loss": 1.0 - np.eye(3)}),
    ):
        model = tasks.TaxonomyClassifier(**params, random_state=0).fit(*data)
        assert model.validation_["metric"] == metric
    accuracy = 1.0 - tasks.TaxonomyClassifier(loss="tree", random_state=0).fit(MANY, KINDS).validation_["score"]
    np.testing.assert_allclose(model.validation_["score"], accuracy)
    heads = [[tag[0] for tag in tags] for tags in LINE_TAGS]  # B, I and O are chunks without a type
    for made, wanted in ((str, "F1"), (str.lower, "accuracy")):
        tags = tasks.SequenceLabeler(random_state=0).fit(LINES, [list(map(made, labels)) for labels in heads])
        assert tags.validation_["metric"] == wanted


def test_the_line_says_what_was_chosen_and_how_sure_that_is():
    table = [Row(0.1, 0.93, 0.003, 2), Row(1.0, 0.931, 0.003, 1), Row(10.0, 0.9, 0.004, 1)]
    choice = Choice(1.0, "F1", table, 100)
    assert choice.text == "C = 1 (of 0.1 to 10; held-out F1 93.1 +- 0.3, next best 93.0 at C = 0.1)"
    least = Choice(0.1, "F1", table, 100)
    assert least.text == "C = 0.1 (of 0.1 to 10; held-out F1 93.0 +- 0.3, best 93.1 at C = 1)"
    loss = Choice(10.0, "tree loss", table, 100)
    assert loss.text == "C = 10 (of 0.1 to 10; held-out tree loss 0.900 +- 0.004, next best 0.930 at C = 0.1)"
    assert not choice.is_at_edge and loss.is_at_edge
    assert not Choice(0.1, "F1", table[:1], 100).is_at_edge
    both = ChosenLoss("log", {"log": (1.0, 0.932, 0.002), "hamming": (0.3, 0.92, 0.004)})
    compared = Choice(1.0, "F1", table, 100, (both,))
    assert compared.text == f"loss = 'log' (held-out F1 93.2 +- 0.2, 92.0 with 'hamming'), {choice.text}"
    assert Choice.from_json(compared.to_json()) == compared
    assert Choice.from_json(choice.to_json()) == choice


def test_each_part_of_a_sum_may_be_at_the_edge():
    inside = [Row(0.1, 0.8, 0.003, 2), Row(1.0, 0.931, 0.003, 1), Row(10.0, 0.9, 0.004, 1)]
    outside = [Row(0.1, 0.92, 0.003, 2), Row(1.0, 0.931, 0.003, 1), Row(10.0, 0.94, 0.004, 1)]
    losses = {"log": (1.0, 0.931, 0.003), "hamming": (10.0, 0.94, 0.004)}
    scales, tables = dict.fromkeys(losses, 1.0), {"log": inside, "hamming": outside}
    total = ChosenSum("log", losses, scales, (0.95, 0.003), tables)
    choice = Choice(1.0, "F1", inside, 100, (total,))
    assert choice.edges == ["C = 10 of the loss 'hamming'"] and not choice.is_at_edge
    assert choice.columns["tables"]["hamming"].tolist() == [list(row) for row in outside]
    assert Choice.from_json(choice.to_json()) == choice
    without = replace(total, tables={})
    assert Choice(1.0, "F1", inside, 100, (without,)).edges == []  # its file has no tables
    forged = choice.to_json() | {"tables": {"hamming": [[0.1, np.nan, 0.0, 1]]}}
    with pytest.raises(ValueError, match="a choice of losses"):
        Choice.from_json(forged)
    single = Choice(10.0, "F1", outside, 100)
    assert single.edges == [single.text]


@pytest.mark.parametrize(
    "change",
    [
        {"C": 2.0},
        {"C": "1"},
        {"metric": 1},
        {"n_held_out": 0},
        {"table": []},
        {"table": [[0.1, "x", 0, 1]]},
        {"table": 3},
        {"table": [[0.1, 0.5, 0.0, 1], [0.0, 0.5, 0.0, 1]], "C": 0.0},
        {"table": [[0.1, 0.5, np.nan, 1]]},
        {"losses": {"log": [0.0, 0.5, 0.0]}, "loss": "log"},
        {"losses": {"log": [0.1, 0.5, 0.0], "hamming": [np.inf, 0.5, 0.0]}, "loss": "log"},
        {"losses": {"log": [0.1, 0.5, 0.0]}, "loss": "log", "tables": {"log": [[0.0, 0.5, 0.0, 1]]}},
        {"losses": {"log": [0.1, 0.5, 0.0]}},
        {"scales": {"log": 1.0}},
        {"losses": {"log": [0.1, 0.5, 0.0]}, "loss": "log", "scales": {"log": 1.0}, "sum": [0.5]},
        {"gammas": [[1.0, 0.1, 0.5, 0.0]]},
        {"gammas": [[1.0, 0.1, 0.5, 0.0]], "gamma": 2.0},
        {"threshold": "high"},
    ],
    ids=str,
)
def test_tables_that_are_refused(change):
    stored = Choice(0.1, "F1", [Row(0.1, 0.5, 0.0, 1)], 9).to_json()
    with pytest.raises((KeyError, TypeError, ValueError, IndexError)):
        Choice.from_json(stored | change)


@pytest.mark.parametrize("rising", [True, False])
def test_a_choice_at_the_edge_is_a_warning(monkeypatch, rising):
    scores = iter(np.linspace(0.5, 0.9, 30) if rising else [0.5, 0.4, 0.3, *np.linspace(0.6, 0.9, 30)])
    monkeypatch.setattr(selection, "ratio", lambda a, b: (next(scores), 0.0))
    with pytest.warns(AdviceWarning, match="is at the edge of the values that were tried"):
        model = tasks.TaxonomyClassifier(loss="tree", random_state=0).fit(MANY, KINDS)
    assert model.validation_["C"][-1 if rising else 0] == model.C_


@pytest.mark.parametrize(
    ("name", "loss", "longest"),
    [
        ("taxonomy", "log", selection.LONGEST_OF_LOG),
        ("multilabel", "log", selection.LONGEST_OF_LOG),
        ("ordering", "log", selection.LONGEST_OF_LOG),
        ("taxonomy", "tree", selection.LONGEST),
        ("multilabel", "hamming", selection.LONGEST),
        ("ordering", "kendall", selection.LONGEST),
        ("sequence", "log", largest.MOST),  # by F1
    ],
)
def test_a_path_is_longer_where_the_metric_is_a_log_loss(name, loss, longest, monkeypatch):
    falling = iter(range(100, 0, -1))
    monkeypatch.setattr(selection, "ratio", lambda a, b: (float(next(falling)), 1e3))
    monkeypatch.setattr(Search, "patience", 100)
    table = CHOICES[name].fit(loss=loss).validation_
    assert (table["metric"] == "log loss") == (longest > selection.LONGEST) and len(table["C"]) == longest


BLANK = {
    "nothing is found": ([0.0, 0.0, 0.0, 0.0, 0.5, 0.4, 0.4, 0.9], 7, 7),
    "one label throughout": ([0.2, 0.2, 0.2, 0.2, 0.5, 0.4, 0.4, 0.9], 3, 7),
}


@pytest.mark.parametrize(("scores", "of_margin", "of_norm"), BLANK.values(), ids=BLANK.keys())
@pytest.mark.parametrize("params", [{"loss": "hamming"}, {"loss": "log"}, {"solver": "sparse_likelihood"}], ids=str)
def test_a_path_goes_on_until_something_is_learnt(params, scores, of_margin, of_norm, monkeypatch):
    monkeypatch.setattr("structsvm.tasks.sequence.model.FEW_SEQUENCES", 0)
    falling = iter(scores)
    monkeypatch.setattr(selection, "ratio", lambda a, b: (next(falling), 0.1))
    table = CHOICES["sequence"].fit(**{"loss": "auto"} | params).validation_
    assert len(table["C"]) == (of_norm if "solver" in params else of_margin)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=2, max_size=30))
def test_ratios_and_their_errors(counts):
    a, b = np.array(counts, dtype=float).T
    r, error = ratio(a, b)
    assert r == pytest.approx(a.sum() / b.sum())
    assert error == pytest.approx(np.sqrt(np.var(a - r * b, ddof=1) / len(a)) / b.mean(), abs=1e-12)
    assert ratio(0.0 * a, 0.0 * b) == (0.0, 0.0)


def test_the_path_has_round_values():
    assert [*islice(round_values(0.5), 4)] == [0.3, 1.0, 3.0, 10.0]
    assert [*islice(round_values(1.0), 2)] == [1.0, 3.0] and next(round_values(0.31)) == 0.1


def test_scales():
    model = tasks.TaxonomyClassifier(random_state=0, fit_intercept=False, standardize=False)
    prepared, examples = model._prepare(MANY + 5.0, KINDS, None, None)
    assert total_variance(examples.rows) == pytest.approx(np.var(MANY, axis=0).sum(), rel=1e-4)
    same, _ = model._prepare(np.ones((40, 3)), np.arange(40) % 2, None, None)
    assert total_variance(same.rows.encode(structsvm.oracles.taxonomy.as_documents(np.ones((40, 3))))) == 3.0
    problem, _ = prepared.bind(examples, LaRank())
    assert first_scale(problem) == pytest.approx(
        2.0 * (examples.rows.values.astype(float) ** 2).sum() / len(examples), rel=0.2
    )


@pytest.mark.parametrize("name", [name for name, case in CHOICES.items() if case.has_rows])
def test_what_has_no_weight_has_no_influence(name):
    """Rows without weight, as the others or far away, but not so far that kernels compute with more digits."""
    case = CHOICES[name]
    n = len(case.X) // 10
    y, weight = [*case.y, *case.y[:n]], np.r_[np.ones(len(case.X)), np.zeros(n)]
    params = {"gamma": "auto"} if "gamma" in case.params else {}
    tables = []
    for more in (case.X[:n], np.full_like(case.X[:n], 30.0)):
        model = case.make(**params).fit(np.vstack([case.X, more]), y, sample_weight=weight)
        assert model.C_ in model.validation_["C"]
        tables.append(model.validation_)
    np.testing.assert_equal(*tables)


def test_of_values_that_score_the_same_the_one_with_the_least_log_loss_is_chosen():
    search = SparseSearch.__new__(SparseSearch)
    search.metric, search.n_held_out = "accuracy", 8
    rights = {1.0: [1, 1, 1, 1, 1, 1, 0, 0], 3.0: [1, 1, 1, 1, 1, 0, 1, 0], 10.0: [0] * 8}
    losses = {1.0: 5.0, 3.0: 4.0, 10.0: 1.0}
    search.trials = {C: Trial(Held("accuracy", np.array(of), np.ones(8)), losses[C]) for C, of in rights.items()}
    search.table = [Row(C, np.mean(of), 0.1, 1) for C, of in rights.items()]
    assert search.choice_of(1.0).C == 3.0 and search.held is search.trials[3.0].held
    search.trials[1.0] = search.trials[1.0]._replace(loss=4.0)
    assert search.choice_of(3.0).C == 1.0  # in a tie the least


def of_few(rights):
    """A search that has tried values, by which of eight held-out sequences are right."""
    search = LargestSearch.__new__(LargestSearch)
    search.metric, search.n_held_out, search.values = "records", 8, None
    helds = {C: Held("records", np.array(of), np.ones(8)) for C, of in rights.items()}
    search.helds, search.kept = helds, {C: ([f"model {C:g}"], [{}]) for C in helds}
    search.table = [Row(C, *ratio(*held[1:]), 1) for C, held in helds.items()]
    return search


def test_of_values_that_few_examples_cannot_tell_apart_the_largest_is_chosen():
    search = of_few({1.0: [1] * 5 + [0] * 3, 3.0: [1] * 7 + [0], 10.0: [1] * 6 + [0, 1], 30.0: [1, 1, 1] + [0] * 5})
    assert [row.C for row in sorted(search.table, key=search.rank)] == [10.0, 3.0, 1.0, 30.0]
    assert search.choice_of(10.0).C == 10.0
    assert (search.held, search.models) == (search.helds[10.0], ["model 10"])
    assert search.kept.keys() == {3.0, 10.0, 30.0}  # values below the best are no longer needed


def test_models_of_values_that_may_yet_be_chosen_are_kept_on_the_way_down():
    search = of_few({1.0: [1] * 7 + [0], 0.3: [1] * 5 + [0] * 3})
    assert search.choice_of(1.0).C == 1.0 and search.kept.keys() == {0.3, 1.0}


def test_few_sequences_have_a_path_of_their_own(monkeypatch):
    case, searches, first = CHOICES["log loss"], [], LargestSearch._first

    def watched(self):
        searches.append(self)
        return first(self)

    monkeypatch.setattr(LargestSearch, "_first", watched)
    few = case.fit()
    table = few.validation_["C"]
    assert searches and len(table) <= largest.MOST and few.C_ == min(searches[0].table, key=searches[0].rank).C
    monkeypatch.setattr("structsvm.tasks.sequence.model.FEW_SEQUENCES", 0)
    searches.clear()
    many = case.fit().validation_["C"]
    assert not searches and many[0] * largest.ABOVE == pytest.approx(table[0])
    # A margin has the usual one.
    CHOICES["sequence"].fit()
    assert not searches


@pytest.mark.parametrize(("scores", "n"), [([0.1, 0.2, 0.3, 0.4, 0.41], 5), ([0.0] * 7, 7), ([0.4] * 4, 4)], ids=str)
def test_a_path_of_few_goes_on_while_scores_rise(scores, n, monkeypatch):
    rising = iter(scores)
    monkeypatch.setattr(selection, "ratio", lambda a, b: (next(rising), 0.05))
    monkeypatch.setattr(largest, "difference", lambda before, after: (0.0, 1.0))
    assert len(CHOICES["log loss"].fit().validation_["C"]) == n


def test_the_path_of_the_1_norm_begins_where_weights_leave_0(monkeypatch):
    case, searches, first = CHOICES["sequence"], [], SparseSearch._first

    def watched(self):
        searches.append(self)
        return first(self)

    monkeypatch.setattr(SparseSearch, "_first", watched)
    labeler = tasks.SequenceLabeler(solver="sparse_likelihood", random_state=0).fit(case.X, case.y)
    (search,), begin = searches, labeler.validation_["C"][0]
    idle = [search.solver.idle_C(part.problem) for part in search.parts]
    assert max(idle) < begin <= 10.0 * max(*idle, search.lowest / search.scale)
    assert labeler.C_ in labeler.validation_["C"] and search.held is search.trials[labeler.C_].held


def test_the_1_norm_is_taken_where_held_out_examples_surely_say_so(monkeypatch):
    """The difference of the same examples counts, not the scores' own errors; in doubt more of them are held out."""
    asked, held_out = [], object()

    class Other(Fixed):
        def __init__(self, metric, right):
            super().__init__("log", metric, right)
            self.parts, self.first_search = [None], self

        def divisions(self):
            return [held_out]

        def choose_on(self, found, monitor):
            assert found == [held_out]
            return self.choice

        def more(self, monitor):
            asked.append(self)
            return self.held._replace(numerator=np.tile(self.held.numerator, 9), denominator=np.ones(360))

    some, better = [1.0] * 20 + [0.0] * 20, [1.0] * 24 + [0.0] * 16
    mixed, luck = [0.0] * 12 + [1.0] * 28, [0.0] * 19 + [1.0] * 21
    for metric, usual, rival, chosen, n_asked in (
        ("F1", some, better, "second", 0),
        ("F1", better, some, "first", 0),
        ("F1", some, mixed, "second", 2),  # as much better, and no surer than chance before there are more
        ("F1", some, luck, "first", 2),
        ("F1", some, some, "first", 0),
        ("mean loss", better, some, "second", 0),
    ):
        asked.clear()
        search = RivalSearch(Other(metric, usual), Other(metric, rival), ("first", "second"), 1 + (n_asked > 0))
        choice = search.choose(None)
        found = choice.get(ChosenSolver)
        assert found.solver == chosen and found.solvers["first"][0] == np.mean(usual) and len(asked) == n_asked
        assert (search.search is search.rival) == (chosen == "second") == (choice.get(ChosenLoss) is not None)
        assert abs(found.gain[0]) == pytest.approx(abs(np.mean(usual) - np.mean(rival)))
        assert Choice.from_json(choice.to_json()) == choice and "solver = " in choice.text
        for change in ({"solver": "third"}, {"gain": [np.nan, 0.0]}, {"solvers": {chosen: [np.inf, 0.0]}}):
            with pytest.raises(ValueError, match="a choice of the solver"):
                Choice.from_json(choice.to_json() | change)


def test_in_doubt_the_1_norm_is_compared_with_the_sum_of_losses(monkeypatch):
    """As on the first part: the log loss alone may be a worse opponent."""
    asked, compared, more = [], [], SumSearch.more

    def watched(self, monitor):
        asked.append((self, more(self, monitor)))
        return asked[-1][1]

    def doubtful(usual, rival):
        compared.append(usual)
        return 0.5, 1.0

    monkeypatch.setattr(SumSearch, "more", watched)
    monkeypatch.setattr(sparse, "gained", doubtful)
    monkeypatch.setattr(Search, "enough", 0)  # one part of many examples is held out
    model = CHOICES["loss of sequences"].fit(solver="auto")
    assert model.validation_["solver"] == "larank" and "sum" in model.validation_
    (search, held), (first, whole) = *asked, compared
    np.testing.assert_array_equal(whole.numerator, np.concatenate([first.numerator, held.numerator]))
    searches = [one.elsewhere(Monitor()) for one in search.searches]
    for one in searches:
        assert [part.held_out.tolist() for part in one.parts] == [part.held_out.tolist() for part in searches[0].parts]
        assert len(one.parts) == selection.TURNS - 1
        others = np.concatenate([part.held_out for part in one.parts])
        assert not np.isin(search.first_search.parts[0].held_out, others).any()
    expected = []
    for part, *models in zip(searches[0].parts, *(one.models for one in searches), strict=True):
        part.model.weights = sum(search.scales[one.loss] * one.weights for one in models)
        expected.append(part.held_out_scores())
    np.testing.assert_array_equal(held.numerator, selection.joined(expected).numerator)


@pytest.mark.parametrize("surely", [np.inf, -np.inf], ids=["larank", "elastic_likelihood"])
def test_the_solver_is_chosen_with_C(surely, monkeypatch, tmp_path):
    monkeypatch.setattr(sparse, "SURELY", surely)
    monkeypatch.setattr(pruning, "LEAST_SHARE", 1.0)  # no weight becomes 0 after training
    case = CHOICES["loss of sequences"]
    model = case.fit(solver="auto")
    is_sparse = surely < 0.0
    table = model.validation_
    assert table["solver"] == ("elastic_likelihood" if is_sparse else "larank") and len(table["gain"]) == 2
    alone = case.fit(solver=table["solver"])
    assert alone.C_ == model.C_ and ("sum" in table) is not is_sparse and model.loss_ == "log"
    for name in ("emission_", "transition_"):
        assert np.array_equal(getattr(model, name), getattr(alone, name))
    model.save(tmp_path / "model", training_state=True)
    again = structsvm.load(tmp_path / "model").set_params(warm_start=True, max_iter=1).fit(case.X, case.y)
    assert again.validation_["solver"] == table["solver"] and again.C_ == model.C_
    for one in (model, again):
        assert (np.count_nonzero(one.emission_) < one.emission_.size / 2) == is_sparse


@pytest.mark.parametrize(
    ("name", "value"), [("C", 1.0), ("loss", "log"), ("inference", "greedy"), ("class_weight", "balanced")]
)
def test_what_leaves_no_choice_of_the_solver_is_refused(name, value):
    labeler = tasks.SequenceLabeler(solver="auto", **{name: value})
    with pytest.raises(ValueError, match=f"solver='auto' is chosen .* needs {name}="):
        labeler.fit(LINES, LINE_TAGS)


def test_scores_of_parts_without_f1_are_left_out():
    """A part in which no chunk is known is judged by accuracy: its counts are none of F1."""
    f1, accuracy = Held("F1", np.array([2.0]), np.array([4.0])), Held("accuracy", np.array([9.0]), np.array([9.0]))
    found = selection.joined([accuracy, f1])
    assert found.metric == "F1" and (found.numerator.tolist(), found.denominator.tolist()) == ([2.0], [4.0])
    assert selection.joined([accuracy, accuracy]).denominator.sum() == 18.0
