"""Pools of models without bounds, of which an answer refreshes some inputs alone; and which examples are kept."""

import pickle

import numpy as np
import pytest
from cases import HOUSE
from sklearn.base import clone

import structsvm
from structsvm.datasets import make_dependency_trees, make_sequences
from structsvm.tasks import (
    AmbiguousClassifier,
    DependencyParser,
    Hybrid,
    LaSVMClassifier,
    Pool,
    SemanticParser,
    SequenceLabeler,
    TaxonomyClassifier,
)
from structsvm.tasks.ambiguous.questions import BagReader
from structsvm.tasks.common.questions import loop as loop_module

pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(80, 4))
CLASSES = np.array(["a", "b", "c"])[ROWS[:, :3].argmax(axis=1)].tolist()
TREES = make_dependency_trees(60, max_length=6, random_state=0)
SENTENCES, TAGS = make_sequences(60, mean_length=6, random_state=0)

LOOPS = {
    "rows": (AmbiguousClassifier(C=1.0, random_state=0), ROWS, CLASSES),
    "trees": (DependencyParser(C=1.0, random_state=0), TREES, [tree.arcs for tree in TREES]),
    "meanings": (SemanticParser(method=Hybrid(), random_state=0), HOUSE.sentences, HOUSE.bags),
    "chains of order 2": (SequenceLabeler(C=0.1, order=2, random_state=0), SENTENCES, TAGS),
    "chains": (SequenceLabeler(C=0.1, random_state=0), SENTENCES, TAGS),
}


@pytest.fixture
def rows():
    """A fitted estimator, and the rows that its pool has."""
    return AmbiguousClassifier(C=1.0, random_state=0).fit(ROWS[:20], CLASSES[:20]), ROWS[20:], CLASSES[20:]


@pytest.fixture
def read(monkeypatch):
    """The rows that were read, in a list that a test may clear."""
    found, plain = [], BagReader.read

    def recorded(self, model, chosen, strategy):
        found.extend(chosen.tolist())
        return plain(self, model, chosen, strategy)

    monkeypatch.setattr(BagReader, "read", recorded)
    return found


@pytest.mark.parametrize("name", LOOPS)
def test_a_refresh_of_all_finds_the_best_of_all(name):
    estimator, X, y = LOOPS[name]
    estimator = clone(estimator).fit(X[:20], y[:20])
    pools = Pool(estimator, X[20:50]), Pool(estimator, X[20:50], refresh=30)
    for _ in range(4):
        found, other = (estimator.query(pool, 3).tolist() for pool in pools)
        assert found == other and pools[1].n_stale == 0
        for pool in pools:
            pool.discard(found[0])
        estimator.teach(X[20 + found[0]], y[20 + found[0]])


@pytest.mark.parametrize("name", ["trees", "meanings", "chains of order 2"])
def test_an_answer_refreshes_some_sentences(name):
    estimator, X, y = LOOPS[name]
    estimator = clone(estimator).fit(X[:20], y[:20])
    pool = Pool(estimator, X[20:40], refresh=8)
    (i,) = estimator.query(pool)
    assert pool.n_read == 20 and pool.n_stale == 0
    pool.discard(i)
    estimator.teach(X[20 + i], y[20 + i]).query(pool, 2)
    assert pool.n_read == 28 and pool.n_stale == 11


def test_the_best_of_those_that_were_read(rows, read):
    estimator, X, y = rows
    pool = Pool(estimator, X, refresh=8)
    before = {i: n for n, i in enumerate(estimator.query(pool, 60).tolist())}
    for i in range(3):
        read.clear()
        pool.discard(i)
        estimator.teach(X[i], y[i])
        found = estimator.query(pool, 2).tolist()
        own = [*read]
        assert len(own) == len(set(own)) == 8 and pool.n_stale == len(pool.left) - 8
        everything = estimator.query(X, 60).tolist()
        assert found == [j for j in everything if j in own][:2]
        if not i:  # six of them by their values, of those that are left
            assert {*sorted(pool.left.tolist(), key=before.__getitem__)[:6]} <= {*own}
    read.clear()
    assert estimator.query(pool, 2).tolist() == found and not read
    assert len(estimator.query(pool, 10)) == 10 and len(read) == 2


def test_the_oldest_values_are_refreshed(rows, read):
    """None is older than as many answers as a quarter of the reading takes for all."""
    estimator, X, y = rows
    pool = Pool(estimator, X, refresh=8)
    estimator.query(pool)
    read.clear()
    for i in range(30):
        estimator.teach(X[i], y[i]).query(pool)
    assert {*read} == {*range(60)}


def test_what_was_never_read_is_read(rows, read):
    estimator, X, y = rows
    pool = Pool(estimator, X, refresh=4)
    pool.keep(np.arange(10))
    estimator.query(pool)
    assert sorted(read) == [*range(10)]
    estimator.teach(X[0], y[0])
    pool.keep(np.arange(60))
    read.clear()
    estimator.query(pool)
    assert sorted(read) == [*range(10, 60)] and pool.n_stale == 10


def test_another_strategy_reads_all(rows):
    estimator, X, y = rows
    pool = Pool(estimator, X, refresh=8)
    assert pool.n_stale == 0
    estimator.query(pool)
    estimator.teach(X[0], y[0]).query(pool, strategy="confidence")
    assert pool.n_stale == 0 and pool.n_read == 120


def test_diverse_questions_are_of_those_that_were_read(rows):
    estimator, X, y = rows
    pool = Pool(estimator, X, refresh=8)
    estimator.query(pool)
    assert len(estimator.teach(X[0], y[0]).query(pool, 3, diversity=0.5)) == 3
    assert pool.n_read == 68


@pytest.mark.parametrize("k", [3, 8, 12])
def test_diverse_questions_of_a_pool_that_is_all_read(rows, k):
    """They are the same ones, whatever would be read after an answer; after one, they are among those read."""
    estimator, X, y = rows
    pool = Pool(estimator, X, refresh=8)
    found = estimator.query(pool, k, diversity=0.9).tolist()
    assert found == estimator.query(X, k, diversity=0.9).tolist() and pool.n_read == 60
    assert {*found} != {*estimator.query(pool, k).tolist()}
    found = estimator.teach(X[0], y[0]).query(pool, k, diversity=0.9).tolist()
    assert len({*found}) == k and pool.n_read == 60 + max(k, 8) and pool._is_read[found].all()


def test_what_the_last_query_passed_over_stays_what_it_was(rows):
    estimator, X, y = rows
    pool = Pool(estimator, X, refresh=8)
    estimator.query(pool)
    estimator.teach(X[0], y[0]).query(pool)
    assert pool.n_stale == 52
    pool.discard(np.arange(60))
    assert pool.n_stale == 52
    pool.keep([3])
    estimator.query(pool, strategy="random")
    assert pool.n_stale == 0


@pytest.mark.parametrize("change", ["fit", "partial_fit", "consolidate"])
def test_another_training_reads_all(rows, read, change):
    """Values of models before an answer say something of those after it, others nothing."""
    estimator, X, y = rows
    pool = Pool(estimator, X, refresh=8)
    estimator.teach(X[0], y[0]).query(pool)
    estimator.consolidate() if change == "consolidate" else getattr(estimator, change)(X[30:50], y[30:50])
    read.clear()
    found = estimator.query(pool).tolist()
    assert sorted(read) == [*range(60)] and pool.n_stale == 0
    assert found == estimator.query(X).tolist()


def test_a_new_label_that_needs_a_fit_reads_all():
    """Unlike an answer with known labels, from which a kernel machine goes on."""
    estimator = TaxonomyClassifier(C=1.0, kernel="rbf", random_state=0).fit(ROWS[:20], CLASSES[:20])
    pool = Pool(estimator, ROWS[20:], refresh=8)
    estimator.query(pool)
    estimator.teach(ROWS[20], CLASSES[20]).query(pool)
    assert pool.n_read == 68 and pool.n_stale == 52
    found = estimator.teach(ROWS[21], "new").query(pool).tolist()
    assert pool.n_read == 128 and pool.n_stale == 0
    assert found == estimator.query(ROWS[20:]).tolist()


def test_a_pool_pickled_without_the_line_of_its_model(rows):
    estimator, X, _ = rows
    pool = Pool(estimator, X, refresh=8)
    estimator.query(pool)
    vars(pool).pop("_line")
    again = pickle.loads(pickle.dumps(pool))
    assert again.estimator.query(again).tolist() == estimator.query(X).tolist()


def test_scores_that_overflow_are_no_values(rows, monkeypatch):
    """Also the second time."""
    estimator, X, _ = rows
    pool = Pool(estimator, X, refresh=8)
    estimator.query(pool)
    reader = pool._reader
    monkeypatch.setattr(type(reader), "read", lambda *given: np.full(len(given[2]), np.nan))
    estimator.teach(X[0], rows[2][0])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"input \d+ of the pool: its scores overflow"):
            estimator.query(pool)


def test_with_bounds_nothing_is_passed_over():
    estimator, X, y = LOOPS["chains"]
    estimator = clone(estimator).fit(X[:20], y[:20])
    pool = Pool(estimator, X[20:], refresh=4)
    for i in range(3):
        estimator.teach(X[20 + i], y[20 + i])
        assert estimator.query(pool, 5).tolist() == estimator.query(X[20:], 5).tolist()
        assert pool.n_stale == 0


@pytest.mark.parametrize("wrong", [3, 0, -4, 4.5, "all", True])
def test_a_refresh_is_a_count(rows, wrong):
    estimator, X, _ = rows
    with pytest.raises(ValueError, match=r"The 'refresh' parameter of Pool must be an int in the range \[4"):
        Pool(estimator, X, refresh=wrong)


def test_a_pool_is_of_what_can_be_taught():
    machine = LaSVMClassifier(C=1.0).fit(ROWS, np.array(CLASSES) == "a")
    with pytest.raises(TypeError, match="LaSVMClassifier has none"):
        Pool(machine, ROWS)


@pytest.mark.parametrize("step", ["fit", "partial_fit"])
def test_what_an_interrupted_training_was_given_is_kept(step, monkeypatch):
    """Its model has the place of the one before, so its examples stand for it when all are fitted."""
    X, y = ROWS, CLASSES
    estimator = AmbiguousClassifier(C=1.0, random_state=0).fit(X[:20], y[:20])

    def interrupt(run):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(loop_module, "raise_if_interrupted", interrupt)
        with pytest.raises(KeyboardInterrupt):
            getattr(estimator, step)(X[20:50], y[20:50])
    first = 20 if step == "fit" else 0
    whole = clone(estimator).fit(X[first:50], y[first:50])
    np.testing.assert_array_equal(estimator.consolidate().coef_, whole.coef_)
    with pytest.raises(ValueError, match="y"):
        estimator.fit(X[:3], y[:2])
    np.testing.assert_array_equal(estimator.consolidate().coef_, whole.coef_)


@pytest.mark.parametrize("form", [list, np.asarray])
def test_what_lists_get_later_is_no_part_of_what_was_given(form):
    """Who teaches an answer and adds it to the own lists gives it once."""
    X, y, weight = [*ROWS[:20].tolist()], [*CLASSES[:20]], [*RNG.uniform(0.5, 2.0, size=20)]
    estimator = AmbiguousClassifier(C=1.0, random_state=0).fit(X, form(y), sample_weight=weight)
    for i in range(20, 24):
        estimator.teach(ROWS[i], CLASSES[i])
        X.append(ROWS[i].tolist())
        y.append(CLASSES[i])
        weight.append(9.0)
    whole = clone(estimator).fit(ROWS[:24], CLASSES[:24], sample_weight=[*weight[:20], 1.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(estimator.consolidate().coef_, whole.coef_)


@pytest.mark.parametrize("place", ["estimator", "solver", "inner"])
def test_answers_have_no_part_in_the_checkpoint_of_a_fit(place, tmp_path):
    """It is of one run: what it holds stays, whatever is taught and consolidated."""
    path = tmp_path / "run.ckpt"

    def made(checkpoint):
        if place == "estimator":
            return AmbiguousClassifier(C=1.0, random_state=0, checkpoint=checkpoint)
        solver = structsvm.LaRank(C=1.0, random_state=0, checkpoint=checkpoint)
        return AmbiguousClassifier(solver=structsvm.LatentSVM(solver) if place == "inner" else solver)

    estimator = made(path).fit(ROWS[:20], CLASSES[:20])
    stored = path.read_bytes()
    estimator.teach(ROWS[20], CLASSES[20]).consolidate()
    assert path.read_bytes() == stored
    whole = made(None).fit(ROWS[:21], CLASSES[:21])
    np.testing.assert_array_equal(estimator.coef_, whole.coef_)
    holder = {
        "estimator": lambda: estimator,
        "solver": lambda: estimator.solver,
        "inner": lambda: estimator.solver.solver,
    }
    assert holder[place]().checkpoint == path


def test_answers_have_no_part_in_the_checkpoint_of_a_solver_within_a_method(tmp_path):
    path = tmp_path / "run.ckpt"
    _, X, y = LOOPS["meanings"]
    solver = structsvm.LatentSVM(structsvm.LaRank(C=1.0, random_state=0, checkpoint=path))
    parser = SemanticParser(method=Hybrid(solver=solver)).fit(X[:20], y[:20])
    stored = path.read_bytes()
    parser.teach(X[20], y[20])
    assert path.read_bytes() == stored and parser.method.solver.solver.checkpoint == path


@pytest.mark.parametrize("begin", ["fit", "teach"])
@pytest.mark.parametrize("grow", ["in place", "anew"])
def test_answers_that_are_added_to_the_lists_count_once(begin, grow):
    """The usual loop: an answer is taught, then added to the lists that training goes on from."""
    rows, n = ROWS.tolist(), 20 if begin == "fit" else 0
    X, y = rows[:n], CLASSES[:n]
    estimator = AmbiguousClassifier(C=1.0, random_state=0)
    if n:
        estimator.fit(X, y)
    for i in range(n, n + 6):
        estimator.teach(rows[i], CLASSES[i])
        if grow == "in place":
            X.append(rows[i])
            y.append(CLASSES[i])
        else:
            X, y = [*X, rows[i]], [*y, CLASSES[i]]
    estimator.teach(rows[40], CLASSES[40]).partial_fit(X, np.array(y))
    assert [len(batch) for batch in estimator._given.batches] == [n + 6, 1]
    whole = clone(estimator).fit([*X, rows[40]], [*y, CLASSES[40]])
    np.testing.assert_array_equal(estimator.consolidate().coef_, whole.coef_)


def test_other_answers_to_what_was_taught_are_further_examples():
    """A second annotator's, say; equal inputs that are other objects are other examples, too."""
    X, y = ROWS[:20].tolist(), CLASSES[:20]
    other = next(label for label in "abc" if label != y[3])
    estimator = AmbiguousClassifier(C=1.0, random_state=0).fit(X, y)
    estimator.teach(X[3], other).teach([*X[4]], y[4]).partial_fit(X, [*y])
    assert [len(batch) for batch in estimator._given.batches] == [20, 1, 1]
    estimator.partial_fit(X, [*y[:3], other, *y[4:]])
    assert [len(batch) for batch in estimator._given.batches] == [20, 20, 1]


def test_an_answer_that_is_corrected_in_the_list_given_has_no_other():
    X, y = ROWS[:20].tolist(), CLASSES[:20]
    estimator = AmbiguousClassifier(C=1.0, random_state=0).fit(X, y)
    y[5] = next(label for label in "abc" if label != y[5])
    whole = clone(estimator).fit(X, [*y])
    np.testing.assert_array_equal(estimator.partial_fit(X, y).consolidate().coef_, whole.coef_)


@pytest.mark.parametrize("step", ["fit", "partial_fit", "teach", "consolidate"])
def test_a_model_has_its_place_with_its_line_and_examples(step, monkeypatch):
    """Ctrl-C as soon as the model is stored finds all of them stored."""
    estimator = AmbiguousClassifier(C=1.0, random_state=0).fit(ROWS[:20], CLASSES[:20])
    pool = Pool(estimator, ROWS[20:], refresh=8)
    estimator.query(pool)
    plain = AmbiguousClassifier._adopt

    def interrupted(self, model, **beside):
        plain(self, model, **beside)
        if self is estimator:
            raise KeyboardInterrupt

    more = {"teach": (ROWS[20], CLASSES[20]), "consolidate": ()}.get(step, (ROWS[20:30], CLASSES[20:30]))
    with monkeypatch.context() as patched:
        patched.setattr(AmbiguousClassifier, "_adopt", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(estimator, step)(*more)
    assert len(estimator._given) == {"fit": 10, "partial_fit": 30, "teach": 21, "consolidate": 20}[step]
    estimator.query(pool)
    assert pool.n_stale == (52 if step == "teach" else 0) and pool.n_read == (68 if step == "teach" else 120)


def test_examples_that_have_grown_in_place_count_once():
    X, y = ROWS[:20].tolist(), [*CLASSES[:20]]
    estimator = AmbiguousClassifier(C=1.0, random_state=0).partial_fit(X, [*y], classes=sorted({*CLASSES}))
    X.append(ROWS[20].tolist())
    estimator.partial_fit(X, [*y, CLASSES[20]])
    whole = clone(estimator).fit(ROWS[:21], CLASSES[:21])
    np.testing.assert_array_equal(estimator.consolidate().coef_, whole.coef_)
