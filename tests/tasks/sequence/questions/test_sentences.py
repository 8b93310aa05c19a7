"""Pools of sequences: exact with few readings, values against definitions, models that grow."""

import copy
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from structsvm.datasets import make_sequences
from structsvm.structures.languages import max_length
from structsvm.tasks import Pool, SequenceLabeler, TokenFeatures
from structsvm.tasks.sequence.questions import scores
from structsvm.tasks.sequence.questions.growth import labels_in

SENTENCES, TAGS = make_sequences(400, mean_length=8, random_state=0)
SENTENCES = [list(x) for x in SENTENCES]
WORDS = [[word for word, _ in x] for x in SENTENCES]
NAMED = [[{"word": word, "tag": tag} for word, tag in x] for x in SENTENCES]
KIND = next(tag[2:] for y in TAGS for tag in y if tag != "O")
KINDS = {
    "rich": (SENTENCES, {"templates": "rich"}),
    "records": (SENTENCES, {"templates": "records"}),
    "kinds": (WORDS, {"templates": "record-kinds"}),
    "words": (WORDS, {}),
    "named": (NAMED, {}),
    "end": (NAMED, {"features": TokenFeatures(end=True)}),
    "bio": (SENTENCES, {"constraints": "bio"}),
    "log": (NAMED, {"loss": "log"}),
    "hashed": (NAMED, {"features": TokenFeatures(hash_bits=12)}),
    "counted": (NAMED, {"features": TokenFeatures(min_count=2)}),
    "order 2": (NAMED, {"order": 2}),
    "rows": ([np.random.default_rng(i).normal(size=(len(x), 3)) for i, x in enumerate(SENTENCES)], {}),
}
FOLLOWED = ("rich", "records", "kinds", "words", "named", "end", "bio", "log")


def labeler(kind, **params):
    X, own = KINDS[kind]
    return X, SequenceLabeler(**{"C": 0.1, "random_state": 0, "loss": "hamming"} | own | params)


def anew(estimator, X, pool, k, **options):
    """The answers of a pool that was not read before."""
    other = Pool(estimator, X)
    other.discard(np.setdiff1d(np.arange(len(pool)), pool.left))
    return estimator.query(other, k, **options).tolist()


def anew_pool(estimator, X):
    """A pool that was asked once."""
    pool = Pool(estimator, X)
    estimator.query(pool)
    return pool


@pytest.mark.parametrize("kind", KINDS)
def test_it_ranks_as_if_all_were_read(kind):
    X, estimator = labeler(kind)
    estimator.fit(X[:40], TAGS[:40])
    rest, answers = X[40:200], TAGS[40:200]
    pool = Pool(estimator, rest)
    for _ in range(5):
        first, *_ = found = estimator.query(pool, 5).tolist()
        assert found == anew(estimator, rest, pool, 5)
        value = estimator._reader_of(estimator.model_, estimator._pool_inputs(rest)).read
        every = value(estimator.model_, pool.left, "margin")
        order = pool.left[np.lexsort((pool.left, -every))]
        assert found == order[:5].tolist()
        pool.discard(first)
        estimator.teach(rest[first], answers[first])


@pytest.mark.parametrize("kind", FOLLOWED)
def test_few_are_read(kind):
    """Once the pool is encoded, an answer has a few sequences read, not all of them."""
    X, estimator = labeler(kind)
    estimator.fit(X[:40], TAGS[:40])
    pool = Pool(estimator, X[40:])
    for _ in range(10):
        before = pool.n_read
        (i,) = estimator.query(pool)
        assert pool.n_read - before <= 64
        pool.discard(i)
        estimator.teach(X[40 + i], TAGS[40 + i])
    before = pool.n_read
    estimator.query(pool, 3)
    read = pool.n_read - before
    estimator.query(pool, 3)
    assert 0 < read <= 64 and pool.n_read == before + read  # nothing has changed


def test_answers_do_not_have_more_and_more_read():
    """Scores that have changed often have wide bounds: they are summed anew before these tell nothing."""
    estimator = SequenceLabeler(C=0.1, loss="log", templates="records", random_state=0)
    estimator.fit(SENTENCES[:40], TAGS[:40])
    pool, n_read, n_anew = Pool(estimator, SENTENCES[40:]), 0, 0
    for n in range(20):
        before = pool.n_read
        (i,) = estimator.query(pool)
        if n >= 10:
            other = Pool(estimator, SENTENCES[40:])
            other.keep(pool.left)
            assert estimator.query(other).tolist() == [i]
            n_read, n_anew = n_read + pool.n_read - before, n_anew + other.n_read
        pool.discard(i)
        estimator.teach(SENTENCES[40 + i], TAGS[40 + i])
    assert n_read < 1.5 * n_anew


@pytest.mark.parametrize("templates", ["rich", "records"])
@pytest.mark.parametrize("constraints", [None, "bio"])
@pytest.mark.parametrize("strategy", ["confidence", "entropy", "risk", "span"])
def test_few_are_read_for_probabilities(strategy, constraints, templates):
    """No value is above its bound from scores, and few bounds are above the k-th value."""
    estimator = SequenceLabeler(
        C=0.1,
        loss="log",
        templates=templates,
        constraints=constraints,
        features=TokenFeatures(end=True),
        random_state=0,
    )
    estimator.fit(SENTENCES[:40], TAGS[:40])
    rest, answers = SENTENCES[40:280], TAGS[40:280]
    pool = Pool(estimator, rest)
    for _ in range(3):
        before = pool.n_read
        found = estimator.query(pool, 2, strategy=strategy).tolist()
        assert pool.n_read - before <= 80
        reader = estimator._reader_of(estimator.model_, rest)
        upper = reader.upper(estimator.model_, strategy)
        values = reader.read(estimator.model_, pool.left, strategy)
        assert (upper[pool.left] >= values).all()
        assert np.median(upper[pool.left] - values) < 0.2
        assert found == pool.left[np.lexsort((pool.left, -values))][:2].tolist()
        pool.discard(found[0])
        estimator.teach(rest[found[0]], answers[found[0]])


@pytest.mark.parametrize("strategy", ["margin", "confidence", "entropy", "risk", "span"])
def test_a_strategy_from_an_array_is_its_text(strategy):
    estimator = SequenceLabeler(C=1.0, loss="log", random_state=0).fit(SENTENCES[:40], TAGS[:40])
    found, wanted = (estimator.query(Pool(estimator, SENTENCES), 2, strategy=s) for s in (np.str_(strategy), strategy))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("labels", ["B-x I-x O", "x O", "B-x I-x E-x S-x O", "I-x I-y O", "S-x E-x I-x B-x"])
def test_doubts_about_chunks_are_none_too_small(labels):
    """Against the probabilities of all chunks of the best labelling, in each scheme."""
    names, rng = labels.split(), np.random.default_rng(0)
    X = [[f"w{rng.integers(9)}" for _ in range(rng.integers(1, 7))] for _ in range(60)]
    y = [[names[rng.integers(len(names))] for _ in x] for x in X]
    estimator = SequenceLabeler(C=1.0, loss="log", random_state=0).fit(X, y)
    estimator.query(X[:1], strategy="span")
    reader = estimator._reader_of(estimator.model_, X)
    upper = reader.upper(estimator.model_, "span")
    values = reader.read(estimator.model_, np.arange(60), "span")
    assert (upper >= values).all() and np.median(upper - values) < 0.5


@pytest.mark.parametrize("strategy", ["margin", "risk"])
def test_under_a_language_all_are_read(strategy):
    estimator = SequenceLabeler(C=0.1, loss="log", constraints=max_length(KIND, 30), random_state=0)
    estimator.fit(SENTENCES[:40], TAGS[:40])
    rest = SENTENCES[40:100]
    pool = Pool(estimator, rest)
    for n in (1, 2):
        (i,) = estimator.query(pool, strategy=strategy)
        assert pool.n_read == n * len(rest) - (n - 1)
        assert [i] == anew(estimator, rest, pool, 1, strategy=strategy)
        pool.discard(i)
        estimator.teach(rest[i], TAGS[40 + i])


@pytest.mark.parametrize("is_first", [False, True])
def test_an_interrupted_query_leaves_no_half_added_changes(monkeypatch, is_first):
    """Neither those of an answer, nor those of a sum anew; the next query ranks as if all were read."""
    X, estimator = labeler("named", loss="log")
    estimator.fit(X[:20], TAGS[:20])
    rest = X[30:]
    pool = Pool(estimator, rest)
    estimator.query(pool, 5)
    estimator.partial_fit(X[20:30], TAGS[20:30])
    if is_first:
        pool._reader.scores.n_changes = scores.MOST_CHANGES

    def interrupted(*others):
        *others, features, changes = others
        half = len(features) // 2
        add_rows(*others, features[:half], changes[:half])
        raise KeyboardInterrupt

    add_rows = scores.add_rows
    monkeypatch.setattr(scores, "add_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        estimator.query(pool, 5)
    monkeypatch.undo()
    assert estimator.query(pool, 5).tolist() == anew(estimator, rest, pool, 5)
    one, other = (own._reader.scores.scores for own in (pool, anew_pool(estimator, rest)))
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_scores_of_another_model_are_summed_anew_after_an_interruption(monkeypatch):
    def interrupted(*others, **options):
        raise KeyboardInterrupt

    X, estimator = labeler("named")
    estimator.fit(X[:20], TAGS[:20])
    rest = X[60:120]
    pool = Pool(estimator, rest)
    estimator.query(pool, 5)
    estimator.fit(X[20:60], TAGS[20:60])
    monkeypatch.setattr(scores.ChainScores, "follow", interrupted)
    with pytest.raises(KeyboardInterrupt):
        estimator.query(pool, 5)
    monkeypatch.undo()
    assert estimator.query(pool, 5).tolist() == anew(estimator, rest, pool, 5)
    one, other = (own._reader.scores.scores for own in (pool, anew_pool(estimator, rest)))
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_values_are_their_definitions():
    """By the probabilities of all labellings."""
    X = [["a", "b", "c"], ["b", "b"], ["c", "a", "b"], ["d"]]
    y = [["B-x", "I-x", "O"], ["O", "O"], ["O", "B-x", "I-x"], ["B-x"]]
    model = SequenceLabeler(C=1.0, loss="log", random_state=0).fit(X * 3, y * 3)
    labels = model.classes_.tolist()
    reader = model._reader_of(model.model_, X)
    for i, x in enumerate(X):
        n = len(labels) ** len(x)
        ((ranked),) = model.predict_kbest([x], n, probabilities=True)
        ((scored),) = model.predict_kbest([x], 2)
        p = np.array([chance for _, chance in ranked])
        best = ranked[0][0]
        assert len(p) == len([*product(labels, repeat=len(x))]) and p.sum() == pytest.approx(1.0)
        wrong = sum(chance * sum(a != b for a, b in zip(labels, best, strict=True)) for labels, chance in ranked)
        spans = [*model.predict_spans([x], probabilities=True)[0]]
        marginals = model.predict_marginals([x])[0].max(axis=1)
        least = min([chance for *_, chance in spans] or marginals.tolist())
        expected = {
            "margin": -(scored[0][1] - scored[1][1]),
            "confidence": np.log(1.0 - p[0]),
            "entropy": np.log(-(p * np.log(p)).sum()),
            "risk": np.log(wrong),
            "span": np.log(1.0 - least),
        }
        for strategy, value in expected.items():
            found = reader.read(model.model_, np.array([i]), strategy)
            assert found[0] == pytest.approx(value, rel=1e-3, abs=1e-4), strategy


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("tqdpc"), st.integers(0, 99), st.integers(1, 4)), max_size=8), st.booleans())
def test_any_order_of_steps_ranks_alike(steps, is_log):
    X, estimator = labeler("words", loss="log" if is_log else "hamming")
    estimator.fit(X[:5], TAGS[:5])
    rest, answers = X[100:160], TAGS[100:160]
    pool = Pool(estimator, rest)
    for step, number, k in steps:
        i = int(pool.left[number % len(pool.left)])
        if step == "t":
            known = [tag if (number + j) % k == 0 else None for j, tag in enumerate(answers[i])]
            estimator.teach(rest[i], known if any(known) else answers[i])
        elif step == "p":
            estimator.partial_fit(rest[i : i + 1], [[estimator.classes_[0]] * len(rest[i])])
        elif step == "d":
            pool.discard(i)
        elif step == "c":
            estimator.consolidate()
        assert estimator.query(pool, k).tolist() == anew(estimator, rest, pool, k)


@pytest.mark.parametrize("kind", ["rich", "records", "words", "named", "bio"])
def test_features_may_be_new(kind):
    """A grown model has the features of one that is fitted on everything, and learns new ones."""
    X, estimator = labeler(kind)
    estimator.fit(X[:5], TAGS[:5])
    before, names = estimator.feature_names_, None
    for i in range(5, 12):
        estimator.teach(X[i], TAGS[i])
    names = estimator.feature_names_
    whole = clone(estimator).fit(X[:12], TAGS[:12])
    assert sorted(names) == sorted(whole.feature_names_) and names[: len(before)] == before
    assert sorted(estimator.bigram_names_) == sorted(whole.bigram_names_)
    assert np.abs(estimator.emission_[len(before) :]).sum() > 0.0


@pytest.mark.parametrize("kind", ["hashed", "counted", "rows"])
def test_other_features_are_those_of_the_first_fit(kind):
    X, estimator = labeler(kind)
    estimator.fit(X[:20], TAGS[:20])
    n = estimator.n_features_in_
    assert estimator.teach(X[24], TAGS[24]).n_features_in_ == n


@pytest.mark.parametrize("order", [1, 2])
def test_a_new_label_keeps_the_scores_of_the_others(order):
    X, estimator = labeler("named", order=order, features=TokenFeatures(end=True))
    estimator.fit(X[:30], TAGS[:30])
    grown = estimator._grown(estimator.model_, [X[0]], [["A-new"]], {"A-new", "ZZ"})
    other = copy.copy(estimator)
    other.model_ = grown
    assert grown.labels == sorted([*estimator.classes_, "A-new", "ZZ"])
    allowed = [[set(estimator.classes_.tolist())] * len(x) for x in X[30:50]]
    assert other.predict(X[30:50], allowed=allowed) == estimator.predict(X[30:50])
    before, after = (model.transition_features_ for model in (estimator, other))
    assert {pair: after[pair] for pair in before} == before


def test_answers_known_in_part():
    X, estimator = labeler("named", loss="log")
    estimator.fit(X[:10], TAGS[:10])
    labels = set(estimator.classes_.tolist())
    (best,) = estimator.predict([X[20]])
    wrong = labels - {best[0]}
    place = estimator.classes_.tolist().index(best[0])
    before = estimator.predict_marginals([X[20]])[0][0, place]
    for _ in range(20):
        estimator.teach(X[20], [wrong, *[None] * (len(X[20]) - 1)])
    assert estimator.predict_marginals([X[20]])[0][0, place] < 0.8 * before
    with pytest.raises(ValueError, match="y tells no label of any token"):
        estimator.teach(X[20], [None] * len(X[20]))
    estimator.consolidate()
    assert estimator.n_unknown_ == 20 * (len(X[20]) - 1)


def test_labels_in_answers():
    assert labels_in([["a", None, {"b", "c"}, {"d": 0.5}, -1, -100], None, "text"], "auto") == {"a", "b", "c", "d"}


def test_what_pools_refuse():
    X, estimator = labeler("named")
    estimator.fit(X[:10], TAGS[:10])
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        Pool(estimator, [X[0], []])
    with pytest.raises(ValueError, match="needs inference='exact'"):
        clone(estimator).set_params(inference="greedy").fit(X[:10], TAGS[:10]).query(X)
    one = clone(estimator).set_params(probability=False).fit(X[:10], TAGS[:10])
    with pytest.raises(ValueError, match="strategy='entropy' needs probabilities"):
        one.query(X, strategy="entropy")


@pytest.mark.parametrize("strategy", ["margin", "confidence", "risk", "span"])
@pytest.mark.parametrize("length", [60, 500])
def test_bounds_of_long_sequences_hold(length, strategy):
    """Sums of hundreds of float32 numbers, of features that say the same, and one token that is not clear."""
    names, rng = [f"f{j}" for j in range(20)], np.random.default_rng(1)

    def sequence(n):
        return [dict.fromkeys(names, label) for label in rng.choice(["a", "b"], size=n)]

    X = [sequence(10) for _ in range(30)]
    estimator = SequenceLabeler(C=0.1, loss="log", random_state=0).fit(X, [[token["f0"] for token in x] for x in X])
    rest = [sequence(length) for _ in range(60)]
    for x in rest:
        labels = np.array(["a", "b"])[rng.permutation(20) % 2].tolist()
        x[rng.integers(length)] = dict(zip(names, labels, strict=True))
    pool = anew_pool(estimator, rest)
    for n in range(3):
        found = estimator.query(pool, 5, strategy=strategy)
        values = pool._reader.read(estimator.model_, np.arange(60), strategy)
        assert (values <= pool._upper).all()
        assert found.tolist() == np.lexsort((np.arange(60), -values))[:5].tolist()
        estimator.teach(X[n], [token["f0"] for token in X[n]])


@pytest.mark.parametrize("strategy", ["margin", "confidence"])
def test_sequences_whose_scores_overflow_are_named(strategy):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 4)) for _ in range(20)]
    estimator = SequenceLabeler(C=0.1, random_state=0).fit(X, [[str(int(row[0] > 0)) for row in x] for x in X])
    rest = [rng.normal(size=(6, 4)) for _ in range(40)]
    rest[3] = np.full((6, 4), 3e38) * rng.choice([1, -1], size=(6, 4))
    with pytest.raises(ValueError, match="sequence 3 of the pool: its scores overflow"):
        estimator.query(rest, 5, strategy=strategy)
    pool = Pool(estimator, rest)
    pool.discard(3)
    assert len(estimator.query(pool, 5, strategy=strategy)) == 5


def test_cost_counts_words():
    X, estimator = labeler("named", loss="log")
    estimator.fit(X[:10], TAGS[:10])
    lengths = np.array([len(x) for x in X[10:]])
    whole, per_word = (estimator.query(X[10:], 20, strategy="entropy", cost=cost) for cost in (0.0, 3.0))
    assert lengths[per_word].mean() < lengths[whole].mean()


def test_segments_are_asked_and_taught():
    X = [["the", "red", "cat"], ["a", "dog"], ["runs", "the"], ["red", "cat"]] * 5
    y = [[(0, 2, "P"), (2, 3, "N")], [(0, 1, "P")], [(1, 2, "P")], [(1, 2, "N")]] * 5
    estimator = SequenceLabeler(C=1.0, segments=True, random_state=0).fit(X, y)
    assert len(estimator.query(X, 3)) == 3
    estimator.teach(["blue", "cat"], [(0, 1, "P")])
    assert estimator.teach(["new", "cat"], [(0, 1, "Q")]).predict([["new"]])  # a new type: fitted anew
    assert "Q" in estimator._known_labels(estimator.model_)
