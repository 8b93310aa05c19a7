"""Label chains known in part: likelihoods of what is known, losses of known tokens, greedy completions; bad input."""

import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structures_table import Chains, GreedyChains

from structsvm import LaRank, LatentSVM, UnsupportedFormulation
from structsvm.dual._rounds import completions, log_losses, losses
from structsvm.oracles.chain import KnownLabels
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.solvers import ConditionalLikelihood

CLOSE = {"rel": 2e-5, "abs": 3e-5}  # scores are float32


@st.composite
def chains(draw, **options):
    seed, K, order = draw(st.integers(0, 10**6)), draw(st.integers(2, 4)), draw(st.sampled_from([1, 2]))
    lengths = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    flags = {name: draw(st.booleans()) for name in ("end", "ones", "masks")}
    return Chains(seed, K, lengths, order, n_bigrams=draw(st.integers(0, 1)), **flags, **options), seed


def log_sum(scores):
    top = scores.max()
    return top + np.log(np.exp(scores - top).sum())


def under(psi, w):
    """``(log-sum, probabilities, entropy)`` of outputs."""
    scores = psi @ w
    total = log_sum(scores)
    p = np.exp(scores - total)
    return total, p, total - p @ scores


@settings(max_examples=50, deadline=None)
@given(chains())
def test_the_likelihood_of_what_is_known(drawn):
    case, seed = drawn
    knowledge, w = case.knowledge(seed), case.weights(seed)
    problem = case.oracle.bind(case.X, [known for known, _ in knowledge], rescaling=None)
    for part in (problem, pickle.loads(pickle.dumps(problem))):
        for i, (space, (_, agree)) in enumerate(zip(case.spaces, knowledge, strict=True)):
            total, p, entropy = under(space.psi, w)
            inside, q, entropy_inside = under(space.psi[agree], w)
            loss, found, gradient = part.expect(i, w)
            assert loss == pytest.approx(total - inside, **CLOSE)
            assert gradient == pytest.approx(p @ space.psi - q @ space.psi[agree], **CLOSE)
            assert found == pytest.approx(entropy - entropy_inside, **CLOSE)
    assert losses(problem, w) == pytest.approx([problem.expect(i, w)[0] for i in range(len(case.X))], **CLOSE)
    shard = problem.shard(len(case.X) - 1, len(case.X))
    np.testing.assert_array_equal(shard.expect(0, w)[2], problem.expect(len(case.X) - 1, w)[2])
    # A completed problem has another loss, and remembers what was known.
    completed = problem.with_targets(completions(problem, w))
    everything = np.arange(len(case.X))
    for found, expected in zip(log_losses(completed.incomplete, w, everything), log_losses(problem, w, everything)):
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=30, deadline=None)
@given(chains())
def test_weights_of_labels(drawn):
    """A prior over what agrees, by enumeration; loss = <w, gradient> + entropy."""
    case, seed = drawn
    rng = np.random.default_rng(seed)
    w, lengths = case.weights(seed), [len(y) for y in case.Y]
    gold, n = np.concatenate(case.Y), sum(lengths)
    sets = rng.choice([0.0, 0.25, 0.5, 1.0], size=(n, case.K))
    sets[np.arange(n), gold] = 1.0  # so that the masks allow something
    known = KnownLabels((case.K + np.arange(n)).astype(np.int32), sets)
    problem = case.oracle.bind(case.X, known, rescaling=None)
    at = 0
    for i, (space, length) in enumerate(zip(case.spaces, lengths, strict=True)):
        own = sets[at : at + length]
        prior = np.array([np.prod(own[np.arange(length), np.asarray(y)]) for y in space.outputs])
        scores = space.psi @ w
        p, q = np.exp(scores - scores.max()), prior * np.exp(scores - scores.max())
        loss, entropy, gradient = problem.expect(i, w)
        assert loss == pytest.approx(np.log(p.sum() / q.sum()), **CLOSE)
        assert gradient == pytest.approx(p / p.sum() @ space.psi - q / q.sum() @ space.psi, **CLOSE)
        assert loss == pytest.approx(w @ gradient + entropy, rel=1e-4, abs=2e-4)
        at += length
    with pytest.raises(UnsupportedFormulation, match="weights of labels need exact inference and the log loss"):
        case.oracle.bind(case.X, known)
    with pytest.raises(ValueError, match="or of float64 weights from 0 to 1"):
        case.oracle.bind(case.X, known._replace(sets=2.0 * sets), rescaling=None)


@settings(max_examples=30, deadline=None)
@given(chains(), st.sampled_from([0.1, 1.0, 10.0]))
def test_the_greatest_likelihood(drawn, C):
    """Training ends where the gradient vanishes; the certificate is half of its square."""
    case, seed = drawn
    knowledge = case.knowledge(seed)
    problem = case.oracle.bind(case.X, [known for known, _ in knowledge], rescaling=None)
    run = ConditionalLikelihood(C, max_iter=400, random_state=0).solve(problem)
    w = np.asarray(run.weights, dtype=float)
    gradient, value = w.copy(), 0.5 * w @ w
    for space, (_, agree) in zip(case.spaces, knowledge, strict=True):
        (total, p, _), (inside, q, _) = under(space.psi, w), under(space.psi[agree], w)
        value += C * (total - inside)
        gradient += C * (p @ space.psi - q @ space.psi[agree])
    assert run.primal == pytest.approx(value, rel=1e-4, abs=1e-4 * C)
    assert np.linalg.norm(gradient) <= 0.02 * (1.0 + C)
    if "marginals" in problem.offers:
        assert run.primal - run.dual == pytest.approx(0.5 * gradient @ gradient, rel=1e-2, abs=1e-5 * (1.0 + C))
    again = ConditionalLikelihood(C, random_state=0).start(problem)
    again.set_state(run.get_state())
    np.testing.assert_array_equal(again.weights, run.weights)


@settings(max_examples=30, deadline=None)
@given(chains(), st.booleans())
def test_only_known_tokens_are_judged(drawn, with_costs):
    """The most violated constraint of a completed problem, by enumeration of losses over what is known."""
    case, seed = drawn
    if with_costs:
        costs = np.random.default_rng(seed).uniform(0.5, 2.0, case.K)
        case.oracle = ViterbiOracle(
            case.K, case.F, n_bigrams=case.oracle.n_bigrams, **case.structure | {"label_costs": costs}
        )
    costs = np.ones(case.K) if not with_costs else costs
    knowledge, w = case.knowledge(seed), case.weights(seed)
    problem = case.oracle.bind(case.X, [known for known, _ in knowledge])
    if "marginals" in problem.offers:
        with pytest.raises(ValueError, match=r"known in part: train with LatentSVM"):
            [problem.separate(i, w) for i in range(problem.n_samples)]
    completed = problem.with_targets(completions(problem, case.weights(seed + 1)))
    bounds, words = completed.targets
    for i, (space, (known, _)) in enumerate(zip(case.spaces, knowledge, strict=True)):
        allowed = known if known.ndim == 2 else np.eye(case.K, dtype=bool)[known]
        gold = space.find(words[bounds[i] : bounds[i + 1]])
        loss = np.array([sum(costs[a].min() for a, label in zip(allowed, y) if not a[label]) for y in space.outputs])
        best = (loss + (space.psi - space.psi[gold]) @ w).max()
        b, psi = completed.separate(i, w)
        assert b - psi @ w == pytest.approx(best, rel=1e-4, abs=1e-4)


SCHEME = ("O", "B-x", "I-x", "B-y", "I-y")


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_boundaries_of_spans(seed):
    """Where spans begin and end is known, what they are is not, nor anything of some tokens."""
    rng, T = np.random.default_rng(seed), 4
    follows = np.array([[b[0] != "I" or a[1:] == b[1:] for b in SCHEME] for a in SCHEME])
    first = np.array([label[0] != "I" for label in SCHEME])
    kinds = {kind: np.array([label[0] == kind for label in SCHEME]) for kind in "OBI"}
    outputs = [y for y in product(range(5), repeat=T) if first[y[0]] and all(follows[a, b] for a, b in pairwise(y))]
    true = outputs[int(rng.integers(len(outputs)))]
    unknown = rng.random(T) < 0.2
    known = np.array([kinds[SCHEME[k][0]] | u for k, u in zip(true, unknown, strict=True)])
    agree = [k for k, y in enumerate(outputs) if known[np.arange(T), y].all()]
    oracle = ViterbiOracle(5, 2, allowed_transitions=follows, allowed_first=first)
    x, w = rng.normal(size=(T, 2)).astype(np.float32), rng.normal(size=oracle.n_features).astype(np.float32)
    psi = np.array([oracle.joint_feature(x, np.array(y)) for y in outputs])
    scores = psi @ w
    found = oracle.complete(x, known, w)
    assert outputs.index(tuple(found.tolist())) in agree
    assert psi[outputs.index(tuple(found.tolist()))] @ w == pytest.approx(scores[agree].max(), **CLOSE)
    if not unknown.any():
        assert [SCHEME[k][0] for k in found] == [SCHEME[k][0] for k in true]
    loss, _, _ = oracle.bind([x], [known], rescaling=None).expect(0, w)
    assert loss == pytest.approx(log_sum(scores) - log_sum(scores[agree]), **CLOSE)


# --- greedy ---------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 2), st.integers(0, 1))
def test_greedy_completions(seed, order, n_bigrams):
    case = GreedyChains(seed, 3, (4, 2, 3), order, n_bigrams=n_bigrams)
    rng, known = np.random.default_rng(seed), []
    for y in case.Y:
        allowed = rng.random((len(y), 3)) < rng.choice([0.0, 0.5, 1.0], len(y))[:, None]
        allowed[np.arange(len(y)), y] = True
        known.append(allowed)
    problem = case.oracle.bind(case.X, known)
    for w in (case.weights(seed), case.weights(seed + 1)):
        _, labels = completions(problem, w)
        for x, reference, allowed, part in zip(
            case.X, case.references, known, np.split(labels, np.cumsum([4, 2])), strict=True
        ):
            reference.allowed = allowed
            assert reference.decode(w)[0] == part.tolist()
            assert case.oracle.complete(x, allowed, w).tolist() == part.tolist()
        # By turns, by examples, in shards, it is the same.
        _, turns = completions(problem, w, turn=1, turns=2)
        assert turns.tolist() == labels[1::2].tolist()
        assert [problem.complete(i, w)[0] for i in (8, 0, 3, 2)] == labels[[8, 0, 3, 2]].tolist()
        assert completions(problem.shard(4, 9), w)[1].tolist() == labels[4:].tolist()
        assert completions(problem, w, 4, 9)[1].tolist() == labels[4:].tolist()
    if any((a.sum(axis=1) > 1).any() for a in known):
        with pytest.raises(ValueError, match="is not known: train with LatentSVM"):
            problem.separate(0, case.weights(0))
    run = LatentSVM(LaRank(C=0.3, random_state=0)).solve(problem)
    assert all(
        a[t, c] for a, y in zip(known, np.split(run.problem.labels, [4, 6]), strict=True) for t, c in enumerate(y)
    )


# --- bad input ------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(chains())
def test_what_contradicts_the_masks(drawn):
    """The first sequence and token up to which no labelling agrees, by enumeration of the beginnings."""
    case, seed = drawn
    rng = np.random.default_rng(seed)
    known = [rng.random((len(y), case.K)) < 0.5 for y in case.Y]
    for allowed in known:
        allowed[~allowed.any(axis=1), 0] = True
    place = None
    for i, (reference, allowed) in reversed(list(enumerate(zip(case.references, known, strict=True)))):
        for t in reversed(range(len(allowed))):
            reference.T, reference.allowed = t + 1, allowed
            last, reference.last = reference.last, reference.last if t + 1 == len(allowed) else None
            place = (i, t) if not reference.labellings() else place
            reference.last = last
    offsets = np.cumsum([0, *map(len, known)])
    labels, flat = KnownLabels.of(known, case.tokens, case.K)
    if flat is None:
        flat = KnownLabels(labels.astype(np.int32), np.zeros((0, case.K), dtype=bool))
    assert case.oracle.contradicted_at(offsets, flat) == place
    if place is not None and len(flat.sets):
        message = (
            rf"sequence {place[0]}: the mask allows no labelling that agrees with what is known, at token {place[1]}"
        )
        with pytest.raises(ValueError, match=message):
            case.oracle.bind(case.X, known)


@pytest.mark.parametrize("kind", [ViterbiOracle, GreedyOracle])
def test_knowledge_that_is_refused(kind):
    oracle, X = kind(3, 1), [np.ones((2, 1)), np.ones((1, 1))]
    every = np.ones((2, 3), dtype=bool)
    empty = every.copy()
    empty[1] = False
    for Y, message in [
        ([empty, [0]], "sequence 0, token 1: no label may stand there"),
        ([every, [3]], r"labels lie in 3\.\.3, expected 0\.\.2"),
        ([every, [0, 1]], "sequence 0 has 1 tokens but 2 labels"),
        ([every[:1], [0]], "sequence 0 has 2 tokens but 1 labels"),
        ([np.ones((2, 4), dtype=bool), [0]], "sequence 0 has a boolean array of 4 labels, expected 3"),
        (KnownLabels(np.array([0, 1, 3], np.int32), np.zeros((0, 3), bool)), r"lie in 0\.\.3, expected 0\.\.2"),
        (KnownLabels(np.array([0, 1], np.int32), np.ones((1, 3), bool)), "must be 3 label or set indices"),
        (KnownLabels(np.zeros(3, np.int32), np.zeros((1, 3), bool)), "none of them empty"),
        (KnownLabels(np.zeros(3, np.int32), np.ones((1, 2), bool)), r"a boolean array \(n_sets, 3\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            oracle.bind(X, Y)
