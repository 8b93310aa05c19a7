"""All structures on given scores, against the enumeration of their outputs in float64.

A row of CASES is a structure, a function that draws potentials, and one that lists the outputs of a batch entry with
the score of each, from the definition alone.
"""

from itertools import pairwise, product

import numpy as np
import pytest

from structsvm.layers import Chain, hinge, log_loss, perturbed, ramp, softmax_margin

LENGTHS = np.array([4, 0, 1, 3])
LOSSES = {"log": log_loss, "hinge": hinge, "softmax_margin": softmax_margin, "ramp": ramp, "perturbed": perturbed}


def chain_parts(rng, kind, n=4, longest=4, K=3):
    shape = {"shared": (K, K), "sequence": (n, 1, K, K), "step": (n, longest - 1, K, K)}[kind]
    return tuple(rng.normal(size=size) for size in ((n, longest, K), shape, K, K))


def chain_outputs(parts, lengths, b):
    emissions, transitions, start, end = parts
    _, longest, K = emissions.shape
    steps = np.broadcast_to(transitions if transitions.ndim == 2 else transitions[b], (longest - 1, K, K))
    for y in product(range(K), repeat=lengths[b]):
        score = sum(emissions[b, t, q] for t, q in enumerate(y)) + sum(
            steps[t, a, q] for t, (a, q) in enumerate(pairwise(y))
        )
        if y:
            score += start[y[0]] + end[y[-1]]
        yield [*y, *[-1] * (longest - len(y))], score


CASES = {
    f"chain, {kind}": (Chain, lambda rng, kind=kind: chain_parts(rng, kind), chain_outputs)
    for kind in ("shared", "sequence", "step")
}


class Case:
    """Potentials of a structure, and all outputs of each entry in the order of their scores."""

    def __init__(self, name, dtype=np.float64, change=lambda parts, rng: None, n_threads=1):
        make, draw, outputs = CASES[name]
        rng = np.random.default_rng(5)
        wide = draw(rng)
        change(wide, rng)
        self.structure, self.lengths = make(n_threads=n_threads), LENGTHS
        self.parts = tuple(part.astype(dtype) for part in wide)
        self.outputs, self.scores = [], []
        for b in range(len(LENGTHS)):
            found = sorted(outputs(self.parts, LENGTHS, b), key=lambda pair: -pair[1])
            found = [(y, score) for y, score in found if score > -np.inf]
            self.outputs.append(np.array([y for y, _ in found]))
            self.scores.append(np.array([score for _, score in found], np.float64))

    def call(self, verb, **options):
        return getattr(self.structure, verb)(*self.parts, lengths=self.lengths, **options)

    def probabilities(self, b):
        p = np.exp(self.scores[b] - self.scores[b].max())
        return p / p.sum()


def mask(parts, rng):
    """-inf in each part, but never for all outputs."""
    parts[0][rng.random(parts[0].shape) < 0.2] = -np.inf
    parts[0][..., 0] = 0.0
    for part in parts[1:]:
        part[rng.random(part.shape) < 0.3] = -np.inf
    parts[1][..., 0, 0] = 0.0
    parts[2][0] = parts[3][0] = 0.0


def spread(parts, rng):
    """So far apart that probabilities cannot be scaled, in one part and in the other."""
    for part in parts:
        part *= 2000


def mixed(parts, rng):
    """Masks before great differences: states whose probability is tiny are all that is left later."""
    mask(parts, rng)
    parts[0][:] *= 500


CHANGES = {"plain": lambda parts, rng: None, "masked": mask, "spread": spread, "mixed": mixed}

pytestmark = pytest.mark.filterwarnings("error")
every_case = pytest.mark.parametrize("name", CASES)
every_change = pytest.mark.parametrize("change", CHANGES)
every_type = pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-9), (np.float32, 1e-4)])


@every_case
@every_change
@every_type
def test_sums_are_those_of_the_enumeration(name, change, dtype, tol):
    case = Case(name, dtype, CHANGES[change])
    log_z, marginals, entropy = case.call("log_partition"), case.call("marginals"), case.call("entropy")
    scores = case.structure.check(case.parts, LENGTHS)
    for b, found in enumerate(case.scores):
        top = found.max()
        p = case.probabilities(b)
        scale = max(1.0, np.abs(top))
        assert log_z[b] == pytest.approx(top + np.log(np.exp(found - top).sum()), abs=tol * scale)
        used = p[p > 0]
        assert entropy[b] == pytest.approx(-(used * np.log(used)).sum(), abs=tol * scale * 10)
        total = [0.0] * len(marginals)
        for y, weight in zip(case.outputs[b], p, strict=True):
            batch = np.full((4, *y.shape), -1)
            batch[b] = y
            counts = scores.per_entry(case.structure.indicators(batch.astype(np.int32), scores))
            total = [t + weight * c[b] for t, c in zip(total, counts, strict=True)]
        for expected, marginal, part in zip(total, marginals, case.parts, strict=True):
            assert marginal.dtype == part.dtype
            np.testing.assert_allclose(marginal[b], expected, atol=tol * (1 if change == "plain" else 100))


@every_case
@every_change
def test_the_best_outputs_come_in_order_and_without_repeats(name, change):
    case = Case(name, change=CHANGES[change])
    best, (labels, values) = case.call("argmax"), case.call("kbest", k=40)
    through = case.call("max_marginals")
    for b, (outputs, found) in enumerate(zip(case.outputs, case.scores, strict=True)):
        m = min(40, len(found))
        np.testing.assert_allclose(values[b, :m], found[:m], rtol=1e-12, atol=1e-9)
        assert (values[b, m:] == -np.inf).all() and (labels[b, m:] == -1).all()
        assert len(np.unique(labels[b, :m], axis=0)) == m
        assert case.structure.score(best, *case.parts, lengths=LENGTHS)[b] == pytest.approx(found[0])
        for place in product(*map(range, through.shape[1:])):
            having = found[outputs[:, place[0]] == place[1]]
            assert through[b][place] == pytest.approx(having.max() if len(having) else -np.inf)
    for j in range(3):
        good = values[:, j] > -np.inf
        chosen = np.where(good[:, None], labels[:, j], best)
        np.testing.assert_allclose(
            case.structure.score(chosen, *case.parts, lengths=LENGTHS)[good], values[good, j], atol=1e-9
        )


@every_case
def test_samples_have_the_frequencies_of_the_marginals(name):
    case = Case(name, change=mask)
    labels = case.call("sample", n_samples=4000, seed=3)
    marginal = case.call("marginals")[0]
    for place in product(*map(range, marginal.shape[1:])):
        frequency = (labels[:, :, place[0]] == place[1]).mean(axis=1)
        np.testing.assert_allclose(frequency, marginal[(slice(None), *place)], atol=0.04)
    alone = case.structure.sample(
        *[p[:1] if p.ndim > 2 else p for p in case.parts], n_samples=4000, seed=3, lengths=LENGTHS[:1]
    )
    np.testing.assert_array_equal(alone[0], labels[0])


def truth_of(case, place=1):
    return np.array([outputs[min(place, len(outputs) - 1)] for outputs in case.outputs])


@every_case
@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_those_of_finite_differences(name, loss):
    case = Case(name)
    y = truth_of(case)
    values, gradients = LOSSES[loss](case.structure, case.parts, y, LENGTHS)
    assert values.shape == (4,) and (loss == "perturbed" or (values >= 0).all())
    rng = np.random.default_rng(2)
    for j, gradient in enumerate(gradients):
        assert gradient.shape == case.parts[j].shape
        direction = rng.normal(size=gradient.shape)
        ends = []
        for step in (1e-6, -1e-6):
            parts = [part + step * direction if i == j else part for i, part in enumerate(case.parts)]
            ends.append(LOSSES[loss](case.structure, parts, y, LENGTHS)[0].sum())
        assert (gradient * direction).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


@every_case
def test_the_hinge_is_zero_exactly_if_the_truth_wins_by_its_cost(name):
    case = Case(name)
    y = truth_of(case, 0)
    scores = case.structure.check(case.parts, LENGTHS)
    indicator = case.structure.indicators(y, scores)[0]
    assert hinge(case.structure, case.parts, y, LENGTHS)[0].max() > 0
    for bonus, won in ((8.0, True), (-8.0, False)):
        parts = (case.parts[0] + bonus * indicator, *case.parts[1:])
        values, gradients = hinge(case.structure, parts, y, LENGTHS)
        assert ((values == 0) == (won | (LENGTHS == 0))).all()
        if won:
            assert all((gradient == 0).all() for gradient in gradients)
    for b, outputs in enumerate(case.outputs):
        cost = (outputs != y[b]).sum(axis=1)
        expected = (case.scores[b] + cost).max() - case.scores[b][0]
        assert hinge(case.structure, case.parts, y, LENGTHS)[0][b] == pytest.approx(expected)
        assert ramp(case.structure, case.parts, y, LENGTHS)[0][b] == pytest.approx(expected)
        soft = np.logaddexp.reduce(case.scores[b] + cost) - case.scores[b][0]
        assert softmax_margin(case.structure, case.parts, y, LENGTHS)[0][b] == pytest.approx(soft)


@every_case
def test_the_log_loss_of_a_truth_known_in_part_sums_over_the_rest(name):
    case = Case(name)
    y = truth_of(case)
    known = y.copy()
    known[:, 1::2] = -1
    values, _ = log_loss(case.structure, case.parts, known, LENGTHS)
    for b, outputs in enumerate(case.outputs):
        agrees = ((known[b] < 0) | (outputs == known[b])).all(axis=1)
        assert values[b] == pytest.approx(-np.log(case.probabilities(b)[agrees].sum()), abs=1e-9)
    everything = log_loss(case.structure, case.parts, np.full_like(y, -1), LENGTHS)
    assert (everything[0] == 0).all() and all((g == 0).all() for g in everything[1])


@every_case
def test_masks_are_very_low_potentials_and_constants_do_not_matter(name):
    case, low = Case(name, change=mask), Case(name, change=mask)
    low.parts = tuple(np.where(np.isneginf(part), -1e5, part) for part in low.parts)
    np.testing.assert_array_equal(case.call("argmax"), low.call("argmax"))
    shifted = (case.parts[0] + 3.0, *case.parts[1:])
    for one, other, moved in zip(
        case.call("marginals"), low.call("marginals"), case.structure.marginals(*shifted, lengths=LENGTHS), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-9)
        np.testing.assert_allclose(one, moved, atol=1e-9)


@every_case
@every_type
def test_threads_and_batches_do_not_change_a_bit(name, dtype, tol):
    one, three = Case(name, dtype), Case(name, dtype, n_threads=3)
    for verb in ("argmax", "log_partition"):
        np.testing.assert_array_equal(one.call(verb), three.call(verb))
    for a, b in zip(one.call("marginals"), three.call("marginals"), strict=True):
        np.testing.assert_array_equal(a, b)


@every_case
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
def test_bad_numbers_are_named_by_entry_and_position(name, bad):
    case = Case(name)
    case.parts[0][3, 2, 1] = bad
    with pytest.raises(ValueError, match=r"emissions must be finite.* at batch entry 3, position \(2, 1\)"):
        case.call("log_partition")
    case.parts[0][3, 2, 1] = 0.0
    case.parts[0][1:3, 3] = bad  # beyond the lengths
    assert np.isfinite(case.call("log_partition")).all()


@every_case
def test_an_entry_without_outputs_is_named(name):
    case = Case(name)
    case.parts[0][3, 1] = -np.inf
    assert case.call("log_partition")[3] == -np.inf
    for verb, options in (("argmax", {}), ("marginals", {}), ("sample", {"n_samples": 2, "seed": 0})):
        with pytest.raises(ValueError, match="Batch entry 3 has no output"):
            case.call(verb, **options)
