"""Votes of several sources: read, counted, and weighed by a model of each source's errors."""

import pickle
import re
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.result import ConvergenceWarning
from structsvm.tasks import AmbiguousClassifier, SequenceLabeler
from structsvm.weak import VoteModel, majority, spans_as_votes
from structsvm.weak import model as model_of_votes
from structsvm.weak.model import (
    FREE,
    HELD,
    MANY,
    MOST_ERRORS,
    Counts,
    Expected,
    Parameters,
    agreements,
    average_rows,
    copied,
    prior_of,
    votes_by_others,
)
from structsvm.weak.votes import counts_of, shares, table_of

LABELS = "abcd"
K = len(LABELS)
MOVES = np.full((K, K), 0.1) + 0.6 * np.eye(K)


def simulated(qualities, seed=0, n=300, abstains=0.3):
    """True labels of chains, the confusions of sources, and their votes."""
    rng = np.random.default_rng(seed)
    truth = []
    for _ in range(n):
        z = [int(rng.integers(K))]
        while len(z) < rng.integers(3, 20):
            z.append(int(rng.choice(K, p=MOVES[z[-1]])))
        truth.append(z)
    confusions = [q * np.eye(K) + (1.0 - q) * rng.dirichlet(np.ones(K), size=K) for q in qualities]
    votes = [
        [[None if rng.random() < abstains else LABELS[rng.choice(K, p=c[k])] for k in z] for z in truth]
        for c in confusions
    ]
    return [[LABELS[k] for k in z] for z in truth], np.array(confusions), votes


def accuracy(truth, found):
    return np.mean([a == b for y, p in zip(truth, found, strict=True) for a, b in zip(y, p, strict=True)])


def test_confusions_are_recovered_within_sampling_error():
    truth, confusions, votes = simulated([0.9, 0.7, 0.6, 0.5, 0.4], n=600)
    model = VoteModel().fit(votes)
    n_votes = np.array([[sum(map(list(z).count, [k])) for z in ["".join(y) for y in truth]] for k in LABELS]).sum(
        axis=1
    )
    # Four standard errors of a share of the votes on each label, of which 70 % are cast.
    error = 4.0 * np.sqrt(0.25 / (0.7 * n_votes))[:, np.newaxis]
    assert (np.abs(model.confusions_ - confusions) < error + 0.02).all()
    assert np.abs(model.transitions_ - MOVES).max() < 0.06
    np.testing.assert_allclose(model.confusions_.sum(axis=2), 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_better_than_majority_where_sources_differ(seed):
    truth, _, votes = simulated([0.9, 0.4, 0.4, 0.3, 0.3], seed)
    alone = VoteModel(chain=False).fit(votes)
    whole = VoteModel().fit(votes)
    scores = [accuracy(truth, found) for found in (majority(votes), alone.predict(votes), whole.predict(votes))]
    assert scores[0] + 0.03 < scores[1] < scores[2]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([0.1, 1.0, 5.0]))
def test_no_step_lowers_the_objective(seed, chain, smoothing):
    _, _, votes = simulated([0.8, 0.5, 0.4], seed, n=20)
    model = VoteModel(chain=chain, smoothing=smoothing, max_iter=40, tol=1e-4).fit(votes)
    assert (np.diff(model.objectives_) > -1e-7).all()


def test_marginals_are_those_of_all_labellings():
    _, _, votes = simulated([0.8, 0.5], n=30)
    model = VoteModel().fit(votes)
    x = [[source[0][:3]] for source in votes]
    scores = np.zeros((K, K, K))
    for z in np.ndindex(K, K, K):
        p = model.start_[z[0]] * model.transitions_[z[0], z[1]] * model.transitions_[z[1], z[2]]
        for s, source in enumerate(x):
            for t, vote in enumerate(source[0]):
                p *= 1.0 if vote is None else model.confusions_[s, z[t], LABELS.index(vote)]
        scores[z] = p
    scores /= scores.sum()
    found = model.predict_marginals(x)[0]
    for t in range(3):
        np.testing.assert_allclose(found[t], scores.sum(axis=tuple({0, 1, 2} - {t})), atol=1e-10)


def literal_step(parameters, prior, votes, n_symbols):
    """One step of expectation-maximisation, token by token: Rabiner's forward and backward probabilities, and counts.

    votes: per sequence a list (tokens) of lists (sources) of numbers of votes; n_symbols where nothing is said.
    Returns ``(log_likelihood, new parameters)``.
    """
    confusions, moves, start = parameters
    counts = [np.array(part) for part in prior]
    log_likelihood = 0.0
    for x in votes:
        n, K = len(x), len(start)
        seen = np.ones((n, K))
        for t, k, (s, v) in product(range(n), range(K), enumerate(np.transpose(x))):
            seen[t, k] *= 1.0 if v[t] == n_symbols else confusions[s, k, v[t]]
        forward, backward = [start * seen[0]], [np.ones(K)]
        for t in range(1, n):
            forward.append((forward[-1] @ moves) * seen[t])
        for t in range(n - 1, 0, -1):
            backward.insert(0, moves @ (seen[t] * backward[0]))
        total = forward[-1].sum()
        log_likelihood += np.log(total)
        for t in range(n):
            p = forward[t] * backward[t] / total
            counts[2] += p if t == 0 else 0.0
            for s, v in enumerate(x[t]):
                if v < n_symbols:
                    counts[0][s, :, v] += p
        for t in range(1, n):
            counts[1] += np.outer(forward[t - 1], seen[t] * backward[t]) * moves / total
    return log_likelihood, [part / part.sum(axis=-1, keepdims=True) for part in counts]


@pytest.mark.parametrize("outside", [None, "a"])
@pytest.mark.parametrize("anchor", [0.0, 0.5])
def test_steps_are_those_of_literal_expectation_maximisation(outside, anchor):
    _, _, votes = simulated([0.8, 0.5, 0.4], n=12, abstains=0.4)
    votes[1][3] = None  # unread, which is no vote that nothing is there
    options = {"labels": list(LABELS), "outside": outside, "anchor": anchor, "smoothing": 3.0, "tol": 0.0}
    n_symbols = K + (outside is not None)
    silent = K if outside else n_symbols
    lengths = [len(one) for one in votes[0]]
    numbers = [
        [
            [n_symbols if of[i] is None else silent if of[i][t] is None else LABELS.index(of[i][t]) for of in votes]
            for t in range(n)
        ]
        for i, n in enumerate(lengths)
    ]
    _, table = table_of(votes, list(LABELS), lengths, outside)
    start = Counts.of_shares(table)
    starts = [start, start._replace(votes=votes_by_others(table))] if outside else [start]
    priors = [prior_of(own, 3.0, anchor, table.outside) for own in starts]
    runs = [
        (0.0, 0.0, [(a + b) / (a + b).sum(axis=-1, keepdims=True) for a, b in zip(own, prior, strict=True)])
        for own, prior in zip(starts, priors, strict=True)
    ]
    for n_steps in range(1, 6):
        for r, ((_, _, parameters), prior) in enumerate(zip(runs, priors, strict=True)):
            density = sum((counts * np.log(p)).sum() for counts, p in zip(prior, parameters, strict=True))
            value, parameters = literal_step(parameters, prior, numbers, n_symbols)
            runs[r] = value, value + density, parameters
        _, objective, parameters = max(runs, key=lambda run: run[0])
        with pytest.warns(ConvergenceWarning):
            model = VoteModel(max_iter=n_steps, **options).fit(votes, lengths=lengths)
        np.testing.assert_allclose(model.objectives_[-1], objective, rtol=1e-12)
        found = model.confusions_, model.transitions_, model.start_
        for own, expected in zip(found, parameters, strict=True):
            np.testing.assert_allclose(own, expected, rtol=1e-9)


def test_average_rows_have_the_quality_of_the_source():
    counts = np.array([[[6.0, 2.0, 0.0], [1.0, 1.0, 0.0], [4.0, 0.0, 0.0]]])  # never votes for the third label
    rows = average_rows(counts, None)
    quality, wrong = (7.0 + 1.0) / (10.0 + 2.0), np.array([5.0, 2.0, 0.0]) + 1.0 / 3.0
    for k, is_given in enumerate([True, True, False]):
        right = quality * is_given
        np.testing.assert_allclose(rows[0, k], (1.0 - right) * wrong / wrong.sum() + right * np.eye(3)[k])
    with_none = np.array([[[90.0, 5.0, 905.0], [1.0, 3.0, 6.0]]])  # two labels, and abstentions
    rows = average_rows(with_none, 0)
    np.testing.assert_allclose(rows[0, 0], (with_none[0, 0] + 1.0 / 3.0) / 1001.0)
    quality, wrong = (3.0 + 1.0) / (10.0 + 2.0), np.array([1.0, 5.0, 6.0]) + 1.0 / 3.0
    np.testing.assert_allclose(rows[0, 1], (1.0 - quality) * wrong / wrong.sum() + [0.0, quality, 0.0])


def word_lists(seed, n=400):
    """True labels of spans "A" and "B" among "O", and the votes of lists that know a part of them.

    The list of "A" has names of the other kind as well; the tagger finds most spans and is seldom wrong.
    """
    rng = np.random.default_rng(seed)
    truth = [
        ["O", *(["OAB"[rng.choice(3, p=[0.7, 0.15, 0.15])] for _ in range(rng.integers(8, 16))])] for _ in range(n)
    ]

    def found_by(chances):
        return [[kind if rng.random() < chances[one] else None for one in y] for y in truth for kind in [chances["as"]]]

    tagger = [[one if one != "O" and rng.random() < 0.7 else None for one in y] for y in truth]
    lists = [{"as": "A", "A": 0.5, "B": 0.4, "O": 0.01}, {"as": "B", "A": 0.0, "B": 0.4, "O": 0.01}]
    return truth, [*map(found_by, lists), tagger]


@pytest.mark.parametrize("seed", range(3))
def test_lists_that_find_nothing_vote_for_outside(seed):
    truth, votes = word_lists(seed)
    lengths = [len(y) for y in truth]
    most = majority(votes, lengths=lengths, outside="O")
    assert {label for y in majority(votes, lengths=lengths) for label in y} == {"A", "B", None}
    model = VoteModel(outside="O").fit(votes, lengths=lengths)
    assert model.confusions_.shape == (3, 3, 4) and model.labels_ == ["A", "B", "O"]
    assert accuracy(truth, model.predict(votes, lengths=lengths)) > accuracy(truth, most) + 0.01
    assert np.abs(model.confusions_[0, :, 0] - [0.5, 0.4, 0.01]).max() < 0.15
    assert np.abs(model.confusions_[2, :2, 3] - 0.3).max() < 0.1
    # A sequence that no source has read: its labels are those that sequences begin with.
    unread = model.predict_marginals([[None]] * 3, lengths=[1])[0]
    np.testing.assert_allclose(unread, model.start_[np.newaxis], atol=1e-12)


def test_sources_are_judged_by_all_others():
    votes = [[["a", "a", None, "O"], ["a"]], [["a", None, "b", "O"], None], [["a", "b", "b", None], None]]
    _, table = table_of(votes, ["a", "b", "O"], [4, 1], "O")
    counts = votes_by_others(table)
    # By label of the others and vote, a, b, O and nothing found; nobody else has read the last sequence.
    np.testing.assert_array_equal(counts[0], [[1, 0, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0]])
    np.testing.assert_array_equal(counts[1], [[1, 0, 0, 0.5], [0, 1, 0, 0.5], [0, 0, 1, 0]])
    np.testing.assert_array_equal(counts[2], [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]])


@pytest.mark.parametrize("seed", range(3))
def test_a_list_with_a_common_word_is_found_out(seed):
    """Alone with its word a thousand times, it starts as always right; by the votes of the others, as wrong."""
    truth, (good, other, tagger) = word_lists(seed)
    rng = np.random.default_rng(seed)
    noisy = [["A" if rng.random() < (0.5 if one == "A" else 0.1) else None for one in y] for y in truth]
    votes, lengths = [good, other, tagger, noisy], [len(y) for y in truth]
    most = accuracy(truth, majority(votes, lengths=lengths, outside="O"))
    model = VoteModel(outside="O").fit(votes, lengths=lengths)
    assert accuracy(truth, model.predict(votes, lengths=lengths)) > most + 0.03
    assert abs(model.confusions_[3, 2, 0] - 0.1) < 0.03


def shared(votes, seed, share):
    """A source that copies another one's votes on a part of the tokens, and is as poor elsewhere."""
    rng, (source, own) = np.random.default_rng(seed), votes
    return [
        [a if rng.random() < share else b for a, b in zip(*pair, strict=True)] for pair in zip(source, own, strict=True)
    ]


def parameters_of(model):
    return Parameters(model.confusions_, model.transitions_, model.start_)


@pytest.mark.parametrize("seed", range(3))
def test_dependent_sources_are_found(seed):
    """Independent ones keep the model that believes them; copies are held to the votes, by the share that they copy."""
    truth, _, votes = simulated([0.6, 0.8, 0.7, 0.7, 0.6], seed)
    _, whole = table_of(votes)
    independent, free = VoteModel().fit(votes), VoteModel(anchor=0.0).fit(votes)
    assert copied(parameters_of(free), whole) == 0.0
    np.testing.assert_array_equal(independent.confusions_, VoteModel(anchor=0.5).fit(votes).confusions_)
    for share in (0.6, 1.0):
        some = [*votes[:4], shared((votes[0], votes[4]), seed, share)]
        model = VoteModel().fit(some)
        found = copied(parameters_of(VoteModel(anchor=0.0).fit(some)), table_of(some)[1])
        # Whole copies may look like truth to the run that measures them, and others then like copies of one another.
        assert found > 0.3 if share == 1.0 else abs(found - share) < 0.1
        np.testing.assert_array_equal(model.confusions_, VoteModel(anchor=FREE + HELD * found).fit(some).confusions_)
        assert accuracy(truth, model.predict(some)) > accuracy(truth, majority(some))


def test_many_independent_votes_are_not_dependent():
    """Agreements are compared with matrices that no anchor flattens: else the difference grows with their number."""
    rng = np.random.default_rng(0)
    truth = rng.integers(K, size=50_000)
    wrong = (truth + rng.integers(1, K, size=(4, len(truth)))) % K
    is_right = rng.random((4, len(truth))) < np.array([[0.8], [0.75], [0.7], [0.3]])
    votes = np.where(is_right, truth, wrong)[:, :, np.newaxis]
    model = VoteModel(chain=False).fit(votes)
    np.testing.assert_array_equal(model.confusions_, VoteModel(chain=False, anchor=0.5).fit(votes).confusions_)
    twice = np.concatenate([votes, votes[3:]])[:, :2_000]
    model = VoteModel(chain=False).fit(twice)
    np.testing.assert_array_equal(model.confusions_, VoteModel(chain=False, anchor=FREE + HELD).fit(twice).confusions_)


@pytest.mark.parametrize("outside", [None, "a"])
def test_agreements_and_votes_by_others_are_counted_for_all_pairs(outside):
    """Matrices of all sources at once give what pairs of sources, one by one, do."""
    _, confusions, votes = simulated([0.8, 0.6, 0.5, 0.4], n=20, abstains=0.4)
    votes[1][3] = None
    _, table = table_of(votes, list(LABELS), [len(one) for one in votes[0]], outside)
    rows = confusions if outside is None else np.concatenate([0.6 * confusions, np.full((4, K, 1), 0.4)], axis=2)
    found = Parameters(rows, MOVES, np.full(K, 1.0 / K))
    counted = agreements(found, table)
    real, labels, most_copied = [k for k in range(K) if LABELS[k] != outside], Expected(found, table).labels, []
    for i, j in combinations(range(4), 2):
        pairs = [(p, a, b) for p, a, b in zip(labels, *table.votes[:, [i, j]].T, strict=True) if a >= 0 and b >= 0]
        expected = sum(p[z] * rows[i, z, k] * rows[j, z, k] for p, _, _ in pairs for z in range(K) for k in real)
        agrees = sum(a == b and a in real for _, a, b in pairs)
        most = sum(a in real and b in real for _, a, b in pairs)
        if outside is not None:
            most = min(sum(a in real for a in table.votes[:, s]) for s in (i, j))
        np.testing.assert_allclose([part[i, j] for part in counted], [agrees, expected, most], rtol=1e-9)
        np.testing.assert_allclose(counted.errors[i, j], (agrees - expected) / (expected + 1.0) ** 0.5, rtol=1e-9)
        np.testing.assert_allclose(counted.shares[i, j], max(agrees - expected, 0.0) / (most - expected), rtol=1e-9)
        most_copied.append(counted.shares[i, j] * (counted.errors[i, j] > MOST_ERRORS))
    assert copied(found, table) == max(most_copied)
    for s, counts in enumerate(votes_by_others(table)):
        others = np.delete(table.votes, s, axis=1)
        p = shares(table._replace(votes=others)) * (others >= 0).any(axis=1, keepdims=True)
        expected = [p[table.votes[:, s] == v].sum(axis=0) for v in range(table.n_symbols)]
        np.testing.assert_allclose(counts, np.transpose(expected), atol=1e-12)


def test_pairs_of_many_sources_are_counted_at_once(monkeypatch):
    """Neither the shares of the votes nor the places of labels are found again for each source, or pair of them."""
    rng, calls = np.random.default_rng(0), []
    monkeypatch.setattr(model_of_votes, "counts_of", lambda table: calls.append("counts") or counts_of(table))
    monkeypatch.setattr(model_of_votes.np, "isin", lambda *args, **options: calls.append("isin"))
    votes = np.where(rng.random((60, 50, 1)) < 0.9, rng.integers(3, size=(60, 50, 1)), 3)
    _, table = table_of(votes, [0, 1, 2, 3], None, 3)
    votes_by_others(table)
    copied(Parameters(np.full((60, 4, 5), 0.2), np.full((4, 4), 0.25), np.full(4, 0.25)), table)
    assert calls == ["counts"]


def test_outside_is_a_label():
    votes = [[["a", None]], [[None, "a"]]]
    assert VoteModel(outside="O").fit(votes).labels_ == ["O", "a"]
    with pytest.raises(ValueError, match="outside: the label 'O' is not one of labels="):
        VoteModel(labels=["a", "b"], outside="O").fit(votes)
    with pytest.raises(ValueError, match="outside: a vote must be a label"):
        VoteModel(outside=float("nan")).fit(votes)
    with pytest.raises(ValueError, match="all sources abstain everywhere"):
        VoteModel(outside="O").fit([[[None, None]]])
    assert VoteModel(outside="O").fit([[["O", "O"]]]).predict([[["O", None]]]) == [["O", "O"]]


def test_dependent_sources_do_not_make_a_label_of_their_own():
    """Two copies of a poor source agree everywhere; the likelihood alone prefers them to three better ones."""
    truth, _, votes = simulated([0.6, 0.8, 0.7, 0.7], 5)
    votes = [*votes, votes[0]]
    free, anchored = (accuracy(truth, VoteModel(anchor=a).fit(votes).predict(votes)) for a in (0.0, 0.5))
    assert anchored > free


def test_candidates_train_a_labeler():
    """Soft labels teach more than the labels of a majority."""
    rng = np.random.default_rng(1)
    truth, _, votes = simulated([0.9, 0.4, 0.4, 0.3], 3)
    X = [[f"{label}{rng.integers(40)}" for label in y] for y in truth]
    model = VoteModel().fit(votes)
    y = model.candidates(votes, least=0.05)
    weights = [one for labels in y for one in labels if isinstance(one, dict)]
    assert weights and all(min(one.values()) >= 0.05 and len(one) > 1 for one in weights)
    half = len(X) // 2
    soft, hard = (SequenceLabeler(C=1.0, loss="log", random_state=0) for _ in range(2))
    soft.fit(X[:half], y[:half])
    hard.fit(X[:half], [[label or "a" for label in one] for one in majority(votes)[:half]])
    assert soft.score(X[half:], truth[half:]) > hard.score(X[half:], truth[half:]) + 0.02


def test_rows_are_sequences_of_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    truth = [["a", "b", "c"][k] for k in X.argmax(axis=1)]
    votes = [[[label if rng.random() < q else "abc"[rng.integers(3)]] for label in truth] for q in (0.9, 0.5, 0.2, 0.2)]
    known = VoteModel(chain=False).fit(votes).candidates(votes)
    model = AmbiguousClassifier(C=1.0, loss="log", random_state=0).fit(X, [one for (one,) in known])
    assert model.score(X, truth) > 0.85


def test_a_majority_and_its_ties():
    votes = [[["a", None, "b"]], [["b", None, "b"]], [None]]
    assert majority(votes) == [["a", None, "b"]]


def test_spans_are_votes():
    spans = [[(1, 3, "LOC"), (3, 4, "PER")], [], None]
    assert spans_as_votes(spans, [5, 2, 1]) == [[None, "B-LOC", "I-LOC", "B-PER", None], [None, None], None]
    assert spans_as_votes(spans, [5, 2, 1], scheme="IOBES", outside="O") == [
        ["O", "B-LOC", "E-LOC", "S-PER", "O"],
        ["O", "O"],
        None,
    ]
    for wrong in ([(0, 2, "A"), (1, 3, "B")], [(0, 6, "A")], [(2, 2, "A")], [(-1, 1, "A")]):
        with pytest.raises(ValueError, match="sequence 0: the span"):
            spans_as_votes([wrong], [5])
    with pytest.raises(ValueError, match="scheme must be one of bio"):
        spans_as_votes(spans, [5, 2, 1], scheme="tags")
    with pytest.raises(ValueError, match="spans has 3 sequences, lengths 1"):
        spans_as_votes(spans, [5])


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ([], "votes must be a list with the votes of each source, got []"),
        ("ab", "votes must be a list with the votes of each source"),
        ([[["a"]], []], "source 1 votes on 0 sequences, source 0 on 1"),
        ([[["a"]], [["a", "b"]]], "source 1, sequence 0: 2 votes on 1 tokens"),
        ([[None], [None]], "sequence 0: all sources abstain from it"),
        ([[[None]], [[None]]], "all sources abstain everywhere"),
        ([[[]], [[]]], "there are no tokens to vote on"),
        ([[["a"]], [[["a"]]]], "source 1, sequence 0, token 0: a vote must be a label, or None"),
        ([["car", "dog"], ["car", "cat"]], "source 0, sequence 0: votes must be a list of labels, got 'car'"),
        ([[["a"]], None], "source 1: its votes must be a list of sequences, got None"),
        ([[["a"]], [3]], "source 1, sequence 0: votes must be a list of labels, got 3"),
        ([[np.array("a")]], "source 0, sequence 0: votes must be a list of labels, got array"),
    ],
)
def test_votes_that_do_not_fit_are_refused(votes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        VoteModel().fit(votes)


def test_wrong_uses_are_refused():
    votes = [[["a", "b"]], [["a", "a"]]]
    with pytest.raises(ValueError, match="not fitted yet"):
        VoteModel().predict(votes)
    with pytest.raises(ValueError, match="source 0, sequence 0, token 1: the label 'b' is not one of labels="):
        VoteModel(labels=["a", "c"]).fit(votes)
    model = VoteModel().fit(votes)
    with pytest.raises(ValueError, match="votes of 1 sources, the model has 2"):
        model.predict(votes[:1])
    with pytest.raises(ValueError, match="'least' parameter of candidates"):
        model.candidates(votes, least=2.0)
    for name, wrong in (("max_iter", 0), ("tol", -1.0), ("smoothing", 0.0), ("anchor", -0.5), ("chain", 2)):
        with pytest.raises(ValueError, match=f"'{name}' parameter of VoteModel"):
            VoteModel(**{name: wrong}).fit(votes)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 steps"):
        VoteModel(max_iter=1).fit(votes)
    lengths = [2, 3]
    assert VoteModel().fit([[["a", "b"], None]], lengths=lengths).predict([[["a", "b"], None]], lengths=lengths)[1]


@pytest.mark.parametrize("wrong", [{"anchor": 1e308}, {"smoothing": 1e308}, {"smoothing": 5e-324}])
def test_pseudo_votes_without_finite_sums_are_refused(wrong):
    _, _, votes = simulated([0.8, 0.6, 0.4], n=20)
    (name,) = wrong
    with pytest.raises(ValueError, match=f"'{name}' parameter of VoteModel"):
        VoteModel(**wrong).fit(votes)


@pytest.mark.parametrize("extreme", [{"anchor": 1e100}, {"smoothing": 1e100}, {"smoothing": 1e-100, "anchor": 0.0}])
def test_the_most_extreme_pseudo_votes_have_finite_sums(extreme):
    _, _, votes = simulated([0.8, 0.6, 0.4], n=20)
    model = VoteModel(**extreme, max_iter=1000).fit(votes)
    assert np.isfinite(model.objectives_).all()
    for p in model.predict_marginals(votes):
        np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_a_pickle_without_the_newer_parameters_is_fitted_again():
    _, _, votes = simulated([0.8, 0.6, 0.4], n=20)
    model = VoteModel()
    for name in ("outside", "anchor"):
        del model.__dict__[name]
    again = pickle.loads(pickle.dumps(model)).fit(votes)
    np.testing.assert_array_equal(again.confusions_, VoteModel().fit(votes).confusions_)


def test_labels_keep_their_order():
    votes = [[[2, "b", 1]], [[2, "b", 1]]]
    assert VoteModel().fit(votes).labels_ == [1, 2, "b"]
    assert VoteModel(labels=["b", 2, 1]).fit(votes).labels_ == ["b", 2, 1]


def test_nan_is_no_vote():
    for wrong in (float("nan"), np.float32("nan"), np.datetime64("NaT"), np.timedelta64("NaT")):
        with pytest.raises(ValueError, match="source 1, sequence 0, token 1: a vote must be a label, or None"):
            VoteModel().fit([[["a", "b"]], [["a", wrong]]])
        with pytest.raises(ValueError, match="labels: a vote must be a label"):
            VoteModel(labels=["a", wrong]).fit([[["a"]]])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b", "a"], "labels must be different labels, none of them None"),
        (["a", "b", "b"], "labels must be different labels, none of them None"),
        ([True, 1], "labels must be different labels, none of them None"),
        ([None, "a"], "labels must be different labels, none of them None"),
        (["a", float("nan")], "labels: a vote must be a label"),
        (["a", ["b"]], "labels: a vote must be a label"),
        ("ab", "labels must be a list of labels, got 'ab'"),
        ([], "labels must be a list of labels, got []"),
    ],
)
def test_labels_that_are_none_are_refused(labels, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        VoteModel(labels=labels).fit([[["a", "a"]]])


@pytest.mark.parametrize("lengths", [1, None, "2", {2: 3}])
def test_lengths_are_a_list(lengths):
    with pytest.raises(ValueError, match="lengths must be a list of whole numbers"):
        spans_as_votes([[]], lengths)
    if lengths is not None:
        with pytest.raises(ValueError, match="lengths must be a list of whole numbers"):
            VoteModel().fit([[["a", "b"]]], lengths=lengths)


def test_rows_of_a_series_are_counted_from_0():
    pandas = pytest.importorskip("pandas")
    votes = [[["a", "b"], ["b"]], [["a", "a"], ["b"]]]
    named = pandas.Series([pandas.Series(own, index=[5, 6]) for own in votes], index=[5, 6])
    assert majority(named) == majority(votes)
    assert majority([pandas.Series([pandas.Series(x, index=range(7, 7 + len(x))) for x in own]) for own in votes]) == [
        ["a", "a"],
        ["b"],
    ]
    assert VoteModel(labels=pandas.Series(["b", "a"], index=[5, 6])).fit(named).labels_ == ["b", "a"]


@pytest.mark.parametrize("length", [1.5, -1, float("nan"), "1"])
def test_lengths_are_whole_numbers(length):
    with pytest.raises(ValueError, match=r"lengths must be whole numbers from 0, got .* for sequence 1"):
        VoteModel().fit([[["a", "b"], None]], lengths=[2, length])
    with pytest.raises(ValueError, match=r"lengths must be whole numbers from 0, got .* for sequence 0"):
        spans_as_votes([[]], [length])


def test_spans_have_three_parts():
    nameless = (0, 1, None), (0, 1, 7), [(0, 1, 7), (2, 3, "A")], iter([0, 1, "A"]), 3
    for wrong in ((0, 1), (0, 1.5, "A"), ("0", 1, "A"), *nameless):
        with pytest.raises(ValueError, match=r"sequence 0: a span is \(start, stop, label\)"):
            spans_as_votes([wrong if isinstance(wrong, list) else [wrong]], [5])
    for wrong in (3, "ab"):
        with pytest.raises(ValueError, match=r"sequence 0: its spans must be a list of \(start, stop, label\)"):
            spans_as_votes([wrong], [5])
    for wrong in (3, None, "ab"):
        with pytest.raises(ValueError, match="spans must be a list with the spans of each sequence"):
            spans_as_votes(wrong, [5])


def test_spans_may_come_from_a_generator():
    spans = [(2, 3, "B"), (0, 2, "A")]
    expected = spans_as_votes([spans], [4], outside="O")
    assert expected == [["B-A", "I-A", "B-B", "O"]]
    assert spans_as_votes([iter(spans)], [4], outside="O") == expected
    numbers = [(np.int64(2), np.int64(3), "B"), [0, 2, "A"]]
    assert spans_as_votes([numbers], [4], outside="O") == expected


def test_no_votes_at_all():
    with pytest.raises(ValueError, match="all sources abstain everywhere"):
        VoteModel(labels=["a", "b"]).fit([[[None, None]], [None]])
    model = VoteModel(labels=["a", "b"]).fit([[["a", "b"]]])
    np.testing.assert_allclose(model.predict_marginals([[[None, None]]])[0].sum(axis=1), 1.0)


def test_one_label_and_one_source():
    assert VoteModel().fit([[["a", "a"]]]).candidates([[["a", None]]]) == [["a", "a"]]
    assert VoteModel().fit([[["a", "b", "a"], []]]).predict([[["a", "b", "a"], []]]) == [["a", "b", "a"], []]


def test_a_source_that_always_abstains_says_nothing():
    votes = [[["a", "b", "a", "a"]], [["a", "b", "b", "a"]]]
    silent = [[None] * 4]
    alone, with_silent = VoteModel().fit(votes), VoteModel().fit([*votes, silent])
    np.testing.assert_allclose(with_silent.confusions_[:2], alone.confusions_)
    np.testing.assert_allclose(
        with_silent.predict_marginals([*votes, silent])[0], alone.predict_marginals(votes)[0], atol=1e-12
    )


def test_arrays_of_votes_give_labels_of_python():
    votes = np.array([[["a", "b"]], [["a", "a"]]])
    assert [type(label) for label in VoteModel().fit(votes).labels_] == [str, str]
    assert majority(np.array([[[1, 0]], [[1, 1]]])) == [[1, 0]]


@pytest.mark.parametrize("seed", range(2))
def test_a_few_copied_votes_leave_the_choice_to_the_likelihood(seed):
    """A tagger that shares errors with a list, and a list with a common word: neither hides the other."""
    truth, (good, other, tagger) = word_lists(seed + 1, 1200)
    rng = np.random.default_rng(seed + 1)
    noisy = [["A" if rng.random() < (0.5 if one == "A" else 0.1) else None for one in y] for y in truth]
    votes, lengths = [good, other, tagger, shared((tagger, other), seed + 1, 0.7), noisy], [len(y) for y in truth]
    _, table = table_of(votes, None, lengths, "O")
    model = VoteModel(outside="O")
    assert 0.0 < copied(model._likeliest(table, 0.0).found, table) < MANY
    most = accuracy(truth, majority(votes, lengths=lengths, outside="O"))
    assert accuracy(truth, model.fit(votes, lengths=lengths).predict(votes, lengths=lengths)) > most + 0.04
