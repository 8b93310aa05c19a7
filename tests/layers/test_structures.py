"""All structures on given scores, against the enumeration of their outputs in float64.

A row of CASES is a structure with what draws potentials of four entries, what lists the outputs of one of them with the
score of each, from the definition alone, and what the structure's outputs are like.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise, permutations, product
from typing import Any

import numpy as np
import pytest

import structsvm
from structsvm.layers import (
    Alignment,
    Arborescence,
    Assignment,
    Chain,
    LabelSets,
    Ordering,
    Projective,
    SemiMarkov,
    Spans,
    Taxonomy,
    hinge,
    kl_divergence,
    log_loss,
    minimum_risk,
    perturbed,
    ramp,
    softmax_margin,
    sparsemap,
)
from structsvm.layers.structure import Structure

LENGTHS = np.array([4, 0, 1, 3])
LOSSES = {
    "log": log_loss,
    "hinge": hinge,
    "softmax_margin": softmax_margin,
    "ramp": ramp,
    "perturbed": perturbed,
    "sparsemap": partial(sparsemap, tol=1e-13),
}
NEEDS_SUMS = {"log", "softmax_margin"}


@dataclass
class Row:
    make: Callable[..., Any]
    draw: Callable[..., Any]  # a tuple of arrays, from a generator
    outputs: Callable[..., Any]  # (output, score) of each output of an entry, from the parts and the entry
    close: Callable[..., Any]  # the place in an array of parts, at entry 3, without which there are no outputs
    place: tuple[int, ...] = (3, 2, 1)  # in the first part
    lengths: Any = None
    constants: tuple[int, ...] = (0,)  # parts that may be raised all together
    always: bool = False  # whether masks always leave an output
    same_pairs: bool = False  # whether outputs may differ in nothing that has a cost
    has_sums: bool = True
    has_extreme_sums: bool = True
    some: Callable[..., Any] = lambda y: np.where(np.arange(y.shape[1]) % 2, -1, y)  # forgets a part of outputs
    agrees: Callable[..., Any] = lambda known, outputs: ((known < 0) | (outputs == known)).all(axis=1)


def chain_parts(rng, kind, order=1, n=4, longest=4, K=3):
    def table(order):
        shape = (K,) * (order + 1)
        sizes = {"shared": shape, "sequence": (n, 1, *shape), "step": (n, longest - order, *shape)}
        return rng.normal(size=sizes[kind])

    emissions, steps, start, end = rng.normal(size=(n, longest, K)), table(order), *rng.normal(size=(2, K))
    return emissions, steps, start, end, *([table(1)] if order == 2 else [])


def chain_outputs(parts, b):
    emissions, _, start, end, *_ = parts
    _, longest, K = emissions.shape
    for y in product(range(K), repeat=LENGTHS[b]):
        score = sum(emissions[b, t, q] for t, q in enumerate(y))
        for table in (parts[1], *parts[4:]):
            order = table.ndim - 1 if table.shape[0] == K else table.ndim - 3
            steps = np.broadcast_to(table if table.shape[0] == K else table[b], (longest - order, *[K] * (order + 1)))
            score += sum(steps[t][y[t : t + order + 1]] for t in range(len(y) - order))
        if y:
            score += start[y[0]] + end[y[-1]]
        yield [*y, *[-1] * (longest - len(y))], score


def closed_chain(parts):
    parts[0][3, 1] = -np.inf


def cuts(size, longest):
    """All ways to cut so many tokens into segments, as lists of (first token, length)."""
    for marks in product((False, True), repeat=max(size - 1, 0)):
        bounds = [0, *[t + 1 for t, mark in enumerate(marks) if mark], size] if size else [0]
        pieces = [(t, after - t) for t, after in pairwise(bounds)]
        if all(length <= longest for _, length in pieces):
            yield pieces


def segment_outputs(parts, b):
    segments, K = parts[0], parts[0].shape[3]
    transitions, start, end = (
        part[b] if part.ndim > rank else part for part, rank in zip(parts[1:], (2, 1, 1), strict=True)
    )
    for pieces in cuts(LENGTHS[b], segments.shape[2]):
        for labels in product(range(K), repeat=len(pieces)):
            y, score = [-1] * 4, sum(transitions[pair] for pair in pairwise(labels))
            for (t, length), k in zip(pieces, labels, strict=True):
                score += segments[b, t, length - 1, k]
                y[t : t + length] = [k] + [K + k] * (length - 1)
            if labels:
                score += start[labels[0]] + end[labels[-1]]
            yield y, score


def closed_segments(parts):
    parts[0][3, :2] = -np.inf


def brackets(i, j):
    """All binary trees over words i .. j, as tuples of spans, the widest first."""
    if i == j:
        yield ((i, i),)
    for m in range(i, j):
        for left, right in product(brackets(i, m), brackets(m + 1, j)):
            yield ((i, j), *left, *right)


def bracket_outputs(parts, b):
    spans, K = parts[0], parts[0].shape[3]
    rules = None if len(parts) == 1 else parts[1] if parts[1].ndim == 3 else parts[1][b]
    for tree in brackets(0, LENGTHS[b] - 1) if LENGTHS[b] else [()]:
        for labels in product(range(K), repeat=len(tree)):
            y, score = np.full((4, 4), -1), 0.0
            for (i, j), k in zip(tree, labels, strict=True):
                y[i, j], score = k, score + spans[b, i, j, k]
            for i, j in tree if rules is not None else ():
                for m in range(i, j):
                    if y[i, m] >= 0 and y[m + 1, j] >= 0:
                        score += rules[y[i, j], y[i, m], y[m + 1, j]]
            yield y.tolist(), score


def closed_brackets(parts):
    parts[0][3, 1, 1] = -np.inf


def is_tree(heads):
    for word in range(1, len(heads) + 1):
        seen = set()
        while word and word not in seen:
            seen.add(word)
            word = heads[word - 1]
        if word:
            return False
    return True


def crosses(heads):
    spans = [sorted((head, word)) for word, head in enumerate(heads, start=1)]
    return any(a < c < b < d or c < a < d < b for (a, b), (c, d) in combinations(spans, 2))


def tree_outputs(parts, b, projective, several):
    size = LENGTHS[b]
    for heads in product(range(size + 1), repeat=size):
        if not is_tree(heads) or (heads.count(0) > 1 and not several) or (projective and crosses(heads)):
            continue
        yield [*heads, *[-1] * (4 - size)], sum(parts[0][b, h, m] for m, h in enumerate(heads, start=1))


def labelled_outputs(parts, b, projective, several):
    """The trees, with all labels of their arcs."""
    for heads, _ in tree_outputs((parts[0][..., 0],), b, projective, several):
        arcs = [(head, word) for word, head in enumerate(heads, start=1) if head >= 0]
        for labels in product(range(parts[0].shape[3]), repeat=len(arcs)):
            score = sum(parts[0][b, head, word, label] for (head, word), label in zip(arcs, labels, strict=True))
            yield [list(pair) for pair in zip(heads, [*labels, *[-1] * (4 - len(labels))], strict=True)], score


def labels_forgotten(y):
    """One word without its label, the next with it alone."""
    known = y.copy()
    known[:, 0, 1] = known[:, 1, 0] = -1
    return known


def closed_trees(parts):
    parts[0][3, :, 2] = -np.inf


def set_outputs(parts, b, edges):
    labels, pairs, off = parts
    own = np.broadcast_to(pairs, (4, len(edges)))[b], np.broadcast_to(off, labels.shape)[b]
    for y in product(range(2), repeat=labels.shape[1]):
        score = sum(labels[b, j] if on else own[1][j] for j, on in enumerate(y))
        yield list(y), score + sum(own[0][e] for e, (i, j) in enumerate(edges) if y[i] and y[j])


def closed_sets(parts):
    parts[0][3, 1] = parts[2][3, 1] = -np.inf


SIZES = np.array([[3, 4], [0, 2], [2, 0], [3, 2]])


def matchings(parts, b):
    pairs, alone = parts if len(parts) == 2 else (parts[0], None)
    left, right = SIZES[b]
    for y in product(range(-1, right), repeat=left):
        partners = [j for j in y if j >= 0]
        if len(set(partners)) < len(partners) or (alone is None and len(partners) < min(left, right)):
            continue
        single = [0.0 if alone is None else np.broadcast_to(alone, (4, 3))[b, i] for i in range(left)]
        yield [*y, *[-1] * (3 - left)], sum(single[i] if j < 0 else pairs[b, i, j] for i, j in enumerate(y))


def closed_matchings(parts):
    parts[0][3, :, :] = -np.inf
    if len(parts) == 2:
        parts[1][3, 1] = -np.inf


EDGES = [("r", "a"), ("r", "b"), ("a", "c"), ("a", "d"), ("b", "d"), ("b", "e"), ("e", "f")]
NODES = structsvm.Taxonomy(EDGES)


def ancestors(node):
    found = {node}
    for parent, child in EDGES:
        if child == node:
            found |= ancestors(parent)
    return found


def node_outputs(parts, b, outputs):
    for k, node in enumerate(outputs):
        score = sum(parts[0][b, NODES.number(one)] for one in ancestors(node))
        yield NODES.number(node), score + np.broadcast_to(parts[1], (4, len(outputs)))[b, k]


def closed_nodes(parts):
    parts[0][3, 0] = -np.inf


def taxonomy_row(outputs, alone):
    inner = NODES.number("a")
    return Row(
        make=lambda: Taxonomy(NODES, outputs),
        draw=lambda rng: (rng.normal(size=(4, 7)), rng.normal(size=alone)),
        outputs=lambda parts, b: node_outputs(parts, b, NODES.leaves if outputs is None else outputs),
        close=closed_nodes,
        place=(3, 2),
        constants=(1,),
        some=lambda y: np.where(y == NODES.number("c"), inner if outputs is None else y, y),
        agrees=lambda known, found: (
            (found == known)
            | np.array(["a" in ancestors(NODES.nodes[k]) and known == inner and outputs is None for k in found])
        ),
    )


CASES = {
    f"chain{' of order 2' * (order == 2)}, {kind}": Row(
        make=lambda order=order, **options: Chain(order=order, **options),
        draw=lambda rng, kind=kind, order=order: chain_parts(rng, kind, order),
        outputs=chain_outputs,
        close=closed_chain,
        lengths=LENGTHS,
    )
    for order in (1, 2)
    for kind in ("shared", "sequence", "step")
}
CASES |= {
    f"segments, {name}": Row(
        make=SemiMarkov,
        draw=lambda rng, L=L, own=own: tuple(
            rng.normal(size=size) for size in ((4, 4, L, 2), (*own, 2, 2), (*own, 2), (*own, 2))
        ),
        outputs=segment_outputs,
        close=closed_segments,
        place=(3, 2, 0, 1),
        lengths=LENGTHS,
        constants=(2, 3),
    )
    for name, L, own in (("shared", 3, ()), ("of any length", 6, ()), ("of one or two", 2, (4,)), ("of one", 1, ()))
}
CASES |= {
    f"brackets, {name}": Row(
        make=Spans,
        draw=lambda rng, shapes=shapes: tuple(rng.normal(size=size) for size in shapes),
        outputs=bracket_outputs,
        close=closed_brackets,
        place=(3, 1, 2, 1),
        lengths=LENGTHS,
        constants=tuple(range(len(shapes))),
        some=lambda y: np.where(np.arange(4) % 2, -1, y),
        agrees=lambda known, outputs: ((known < 0) | (outputs == known)).all(axis=(1, 2)),
    )
    for name, shapes in (
        ("alone", [(4, 4, 4, 2)]),
        ("with rules", [(4, 4, 4, 2), (2, 2, 2)]),
        ("with rules of their own", [(4, 4, 4, 2), (4, 2, 2, 2)]),
    )
}
CASES |= {
    f"{kind.__name__}, {'several roots' if several else 'one root'}": Row(
        make=lambda kind=kind, several=several, **options: kind(several_roots=several, **options),
        draw=lambda rng: (rng.normal(size=(4, 5, 5)),),
        outputs=lambda parts, b, kind=kind, several=several: tree_outputs(parts, b, kind is Projective, several),
        close=closed_trees,
        lengths=LENGTHS,
        has_extreme_sums=kind is Projective,
    )
    for kind in (Projective, Arborescence)
    for several in (False, True)
}
CASES |= {
    f"{kind.__name__}, labelled, {'several roots' if several else 'one root'}": Row(
        make=lambda kind=kind, several=several, **options: kind(several_roots=several, **options),
        draw=lambda rng: (rng.normal(size=(4, 5, 5, 2)),),
        outputs=lambda parts, b, kind=kind, several=several: labelled_outputs(parts, b, kind is Projective, several),
        close=closed_trees,
        lengths=LENGTHS,
        has_extreme_sums=kind is Projective,
        some=labels_forgotten,
        agrees=lambda known, outputs: ((known < 0) | (outputs == known)).all(axis=(1, 2)),
    )
    for kind, several in ((Projective, True), (Arborescence, False))
}
CASES |= {
    f"sets, {name}": Row(
        make=lambda edges=edges: LabelSets(5, edges),
        draw=lambda rng, edges=edges, own=own: (
            rng.normal(size=(4, 5)),
            rng.normal(size=(4, len(edges)) if own else len(edges)),
            rng.normal(size=(4, 5)),
        ),
        outputs=lambda parts, b, edges=edges: set_outputs(parts, b, sorted(map(sorted, edges))),
        close=closed_sets,
        place=(3, 2),
        constants=(0, 2),
    )
    for name, edges, own in (
        ("forest", [(0, 3), (1, 3), (2, 4)], False),
        ("tree", [(0, 1), (0, 2), (2, 3), (2, 4)], True),
        ("no pairs", [], False),
    )
}
CASES |= {
    f"matchings, {name}": Row(
        make=Assignment,
        draw=lambda rng, alone=alone: (rng.normal(size=(4, 3, 4)), *([rng.normal(size=(4, 3))] if alone else ())),
        outputs=matchings,
        close=closed_matchings,
        lengths=SIZES,
        has_sums=False,
    )
    for name, alone in (("full", False), ("with unmatched", True))
}
CASES |= {
    "taxonomy, leaves": taxonomy_row(None, 4 - 1),
    "taxonomy, any node": taxonomy_row(["a", "r", "d", "c", "f"], (4, 5)),
}


LETTERS = np.array([[3, 4], [0, 2], [2, 0], [3, 2]])


def gap_parts(rng, kind):
    """Scores of pairs, and of letters that open and extend gaps, by what each has a score of its own for."""
    shapes = {"number": ((), ()), "letters": ((3,), (4,)), "entries": ((4, 3), (4, 4))}[kind]
    return rng.normal(size=(4, 3, 4)), *(rng.normal(size=shapes[side]) for side in (0, 0, 1, 1))


def alignments(parts, b, mode):
    """All ascending partners, and where letters beyond the outer pairs may be outside, these."""
    n, m = LETTERS[b].tolist()
    pairs = parts[0][b]
    opens, extends = (
        [np.broadcast_to(part, (4, width))[b] for part, width in zip(parts[k::2], (3, 4), strict=True)] for k in (1, 2)
    )
    free = {"global": [(1, 1)], "local": [(0, 0)], "semi-global": [(0, 0), (1, 0), (0, 1)]}[mode]

    def gap(side, start, stop, pays=True):
        return sum((opens if k == start else extends)[side][k] for k in range(start, stop) if pays)

    for y in product([*range(m), 4], repeat=n):
        used = [(i, j) for i, j in enumerate(y) if j < 4]
        if any(a[1] >= c[1] for a, c in pairwise(used)):
            continue
        inner = sum(pairs[i, j] for i, j in used)
        for (i, j), (k, h) in pairwise(used):
            inner += gap(0, i + 1, k) + gap(1, j + 1, h)
        if not used:
            pays = mode == "global"
            yield [4 if pays else 5] * n + [-1] * (3 - n), gap(0, 0, n, pays) + gap(1, 0, m, pays)
            continue
        (i, j), (k, h) = used[0], used[-1]
        both = i > 0 < j, k < n - 1 and h < m - 1
        for left, right in product(free, repeat=2):
            if mode == "semi-global" and (any(left), any(right)) != both:
                continue
            row = [4 if left[0] else 5] * i + list(y[i : k + 1]) + [4 if right[0] else 5] * (n - 1 - k)
            ends = gap(0, 0, i, left[0]) + gap(1, 0, j, left[1]) + gap(0, k + 1, n, right[0])
            yield row + [-1] * (3 - n), inner + ends + gap(1, h + 1, m, right[1])


def closed_alignments(parts):
    parts[0][3] = -np.inf
    for part in parts[1:]:
        part[3] = -np.inf


CASES |= {
    f"alignments, {mode}, {kind}": Row(
        make=lambda mode=mode, **options: Alignment(mode, **options),
        draw=lambda rng, kind=kind: gap_parts(rng, kind),
        outputs=lambda parts, b, mode=mode: alignments(parts, b, mode),
        close=closed_alignments,
        lengths=LETTERS,
        constants=(),
        always=mode != "global" or kind != "entries",
        same_pairs=mode == "semi-global",
    )
    for mode in ("global", "semi-global", "local")
    for kind in ("number", "letters", "entries")
    if mode == "semi-global" or kind != "letters"
}


def orders(parts, b):
    for y in permutations(range(LENGTHS[b])):
        yield [*y, *[-1] * (4 - len(y))], sum(parts[0][b, i, j] for i, j in combinations(y, 2))


def closed_orders(parts):
    parts[0][3, 0, 2] = parts[0][3, 2, 0] = -np.inf


def agree_in_order(known, outputs):
    """Whether the listed items come in their order."""
    listed = [item for item in known.tolist() if item >= 0]
    return np.array([[item for item in y if item in listed] == listed for y in outputs.tolist()])


CASES["orders"] = Row(
    make=Ordering,
    draw=lambda rng: (rng.normal(size=(4, 4, 4)),),
    outputs=orders,
    close=closed_orders,
    lengths=LENGTHS,
    agrees=agree_in_order,
)


RANKED = {}  # outputs and scores of potentials, which most tests ask for


class Case:
    """Potentials of a structure, and all outputs of each entry in the order of their scores."""

    def __init__(self, name, dtype=np.float64, change=lambda case, rng: None, **options):
        self.row = CASES[name]
        rng = np.random.default_rng(5)
        self.structure, self.lengths = self.row.make(**options), self.row.lengths
        self.parts = self.row.draw(rng)
        change(self, rng)
        self.parts = tuple(part.astype(dtype) for part in self.parts)
        key = (name, dtype, change)
        if key not in RANKED:
            RANKED[key] = tuple(zip(*map(self.ranked, range(4)), strict=True))
        self.outputs, self.scores = RANKED[key]

    def ranked(self, b):
        """All outputs of an entry and their scores, the best first."""
        found = sorted(self.row.outputs(self.parts, b), key=lambda pair: -pair[1])
        found = [(y, score) for y, score in found if score > -np.inf]
        return np.array([y for y, _ in found]), np.array([score for _, score in found], np.float64)

    def call(self, verb, *first, **options):
        return getattr(self.structure, verb)(*first, *self.parts, lengths=self.lengths, **options)

    def checked(self):
        return self.structure.check(self.parts, self.lengths)

    def indicators(self, b, outputs):
        """Indicators of outputs of an entry, one per row."""
        outputs = np.asarray(outputs, np.int32)
        return self.structure.indicators(outputs, self.checked().take([b] * len(outputs)))

    def probabilities(self, b):
        p = np.exp(self.scores[b] - self.scores[b].max())
        return p / p.sum()


def mask(case, rng):
    """-inf in each part, but never for all outputs."""
    kept = case.structure.indicators(
        np.array([next(iter(case.row.outputs(case.parts, b)))[0] for b in range(4)], np.int32), case.checked()
    )
    for part, keep in zip(case.parts, kept, strict=False):
        needed = keep if part.shape == keep.shape else keep.any(axis=0).reshape(part.shape)
        part[(rng.random(part.shape) < 0.25) & (needed == 0)] = -np.inf


def spread(case, rng):
    """So far apart that probabilities cannot be scaled, in one part and in the other."""
    for part in case.parts:
        part *= 2000


def mixed(case, rng):
    """Masks before great differences: what has a tiny probability is all that is left later."""
    mask(case, rng)
    case.parts[0][:] *= 500


CHANGES = {"plain": lambda case, rng: None, "masked": mask, "spread": spread, "mixed": mixed}
SUMS = [name for name, row in CASES.items() if row.has_sums]
THREADS = [name for name in CASES if name.startswith(("chain", "segm", "brackets", "Proj", "Arbo", "align"))]

# Parts that are missing cost nothing.
ONLY_WRONG = [*(name for name in THREADS if not name.startswith(("segm", "align"))), "orders"]

pytestmark = pytest.mark.filterwarnings("error")
every_case = pytest.mark.parametrize("name", CASES)
every_sum = pytest.mark.parametrize("name", SUMS)
every_change = pytest.mark.parametrize("change", CHANGES)
every_type = pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-9), (np.float32, 1e-4)])


@every_change
@every_type
@every_sum
def test_sums_are_those_of_the_enumeration(name, change, dtype, tol):
    case = Case(name, dtype, CHANGES[change])
    if change == "spread" and not case.row.has_extreme_sums:
        with pytest.raises(ValueError, match=r"batch entry 0 underflows.*Scale the scores"):
            case.call("log_partition")
        return
    log_z, marginals, entropy = case.call("log_partition"), case.call("marginals"), case.call("entropy")
    for b, found in enumerate(case.scores):
        top = found.max()
        p = case.probabilities(b)
        scale = max(1.0, np.abs(top))
        assert log_z[b] == pytest.approx(top + np.log(np.exp(found - top).sum()), abs=tol * scale)
        used = p[p > 0]
        assert entropy[b] == pytest.approx(-(used * np.log(used)).sum(), abs=tol * scale * 10)
        counts = case.indicators(b, case.outputs[b])
        for count, marginal, part in zip(counts, marginals, case.parts, strict=False):
            assert marginal.dtype == part.dtype
            expected = np.tensordot(p, count, axes=1).reshape(marginal[b].shape)
            np.testing.assert_allclose(marginal[b], expected, atol=tol * (1 if change == "plain" else 100))


@every_sum
def test_entropies_of_float32_are_those_of_the_same_numbers(name):
    case = Case(name)
    scale = 300 if case.row.has_extreme_sums else 30
    narrow = [(scale * part).astype(np.float32) for part in case.parts]
    wide = [part.astype(np.float64) for part in narrow]
    found, wanted = (case.structure.entropy(*parts, lengths=case.lengths) for parts in (narrow, wide))
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@every_case
@every_change
def test_the_best_outputs_come_in_order_and_without_repeats(name, change):
    case = Case(name, change=CHANGES[change])
    best, (labels, values) = case.call("argmax"), case.call("kbest", k=40)
    through = case.call("max_marginals")
    assert through.shape == case.parts[0].shape
    for b, (outputs, found) in enumerate(zip(case.outputs, case.scores, strict=True)):
        m = min(40, len(found))
        np.testing.assert_allclose(values[b, :m], found[:m], rtol=1e-12, atol=1e-9)
        assert (values[b, m:] == -np.inf).all() and (labels[b, m:] == -1).all()
        assert len(np.unique(labels[b, :m], axis=0)) == m
        assert case.call("score", best)[b] == pytest.approx(found[0])
        having = np.where(case.indicators(b, outputs)[0] > 0, found.reshape(-1, *[1] * through[b].ndim), -np.inf)
        np.testing.assert_allclose(through[b], having.max(axis=0), rtol=1e-12, atol=1e-9)
    for j in range(3):
        good = values[:, j] > -np.inf
        chosen = np.where(good.reshape(-1, *[1] * (best.ndim - 1)), labels[:, j], best)
        np.testing.assert_allclose(case.call("score", chosen)[good], values[good, j], atol=1e-9)


@every_sum
def test_samples_have_the_frequencies_of_the_marginals(name):
    case = Case(name, change=mask)
    labels = case.call("sample", n_samples=4000, seed=3)
    for b in range(4):
        for count, marginal, _ in zip(case.indicators(b, labels[b]), case.call("marginals"), case.parts, strict=False):
            np.testing.assert_allclose(count.mean(axis=0).reshape(marginal[b].shape), marginal[b], atol=0.04)
    alone = [p[:1] if len(q) == 4 else p for p, q in zip(case.parts, case.checked().parts, strict=False)]
    lengths = None if case.lengths is None else case.lengths[:1]
    np.testing.assert_array_equal(case.structure.sample(*alone, n_samples=4000, seed=3, lengths=lengths)[0], labels[0])


@every_sum
def test_numbers_of_samples_and_seeds_that_are_none(name):
    case = Case(name)
    assert case.call("sample", n_samples=0, seed=np.int64(0)).shape[:2] == (4, 0)
    for options in ({"n_samples": -1, "seed": 0}, {"n_samples": 1.0, "seed": 0}, {"n_samples": 1, "seed": None}):
        with pytest.raises(ValueError, match=r"^(n_samples|seed) must be an integer of at least 0, got"):
            case.call("sample", **options)


@every_case
def test_masked_entries_are_refused(name):
    case = Case(name)
    first, *others = case.parts
    masked, y = np.ma.masked_array(first, first > 0), truth_of(case)
    with pytest.raises(ValueError, match=f"^{case.structure.part_names[0]} has masked entries"):
        hinge(case.structure, (masked, *others), y, case.lengths)
    with pytest.raises(ValueError, match=r"^y has masked entries, 1 of them"):
        hinge(case.structure, case.parts, np.ma.masked_array(y, np.arange(y.size).reshape(y.shape) == 0), case.lengths)


def truth_of(case, place=1):
    return np.array([outputs[min(place, len(outputs) - 1)] for outputs in case.outputs])


@pytest.mark.parametrize(
    ("name", "loss"), [(name, loss) for name in CASES for loss in LOSSES if name in SUMS or loss not in NEEDS_SUMS]
)
def test_gradients_are_those_of_finite_differences(name, loss):
    case = Case(name)
    y = truth_of(case)
    values, gradients = LOSSES[loss](case.structure, case.parts, y, case.lengths)
    assert values.shape == (4,) and (loss == "perturbed" or (values >= 0).all())
    rng = np.random.default_rng(2)
    for j, gradient in enumerate(gradients):
        assert gradient.shape == case.parts[j].shape
        direction = rng.normal(size=gradient.shape)
        ends = []
        for step in (1e-6, -1e-6):
            parts = [part + step * direction if i == j else part for i, part in enumerate(case.parts)]
            ends.append(LOSSES[loss](case.structure, parts, y, case.lengths)[0].sum())
        assert (gradient * direction).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


@every_case
def test_the_hinge_is_zero_exactly_if_the_truth_wins_by_its_cost(name):
    case = Case(name)
    y = truth_of(case, 0)
    indicator = case.structure.indicators(y.astype(np.int32), case.checked())[0]
    assert hinge(case.structure, case.parts, y, case.lengths)[0].max() > 0
    for bonus, won in ((16.0, True), (-16.0, False)):
        parts = (case.parts[0] + bonus * (2 * indicator - 1), *case.parts[1:])
        values, gradients = hinge(case.structure, parts, y, case.lengths)
        assert ((values == 0) == [won or len(scores) == 1 for scores in case.scores]).all()
        if won:
            assert all((gradient == 0).all() for gradient in gradients)
    for b, outputs in enumerate(case.outputs):
        wrong, own = case.indicators(b, outputs)[0], indicator[b]
        cost = ((wrong > own) if name in ONLY_WRONG else (wrong != own)).reshape(len(outputs), -1).sum(axis=1)
        assert (cost[1:] > 0).all() or case.row.same_pairs
        expected = (case.scores[b] + cost).max() - case.scores[b][0]
        assert hinge(case.structure, case.parts, y, case.lengths)[0][b] == pytest.approx(expected)
        assert ramp(case.structure, case.parts, y, case.lengths)[0][b] == pytest.approx(expected)
        if case.row.has_sums:
            soft = np.logaddexp.reduce(case.scores[b] + cost) - case.scores[b][0]
            assert softmax_margin(case.structure, case.parts, y, case.lengths)[0][b] == pytest.approx(soft)


@pytest.mark.parametrize(
    ("name", "loss"), [(name, loss) for name in CASES for loss in LOSSES if name in SUMS or loss not in NEEDS_SUMS]
)
def test_a_masked_truth_is_named(name, loss):
    case = Case(name)
    y = truth_of(case, 0)
    right = case.structure.indicators(y.astype(np.int32), case.checked())
    part = next(j for j, indicator in enumerate(right) if indicator[3].any())
    if len(case.checked().parts[part]) == 4:
        case.parts[part][3][tuple(np.argwhere(right[part][3] > 0)[-1])] = -np.inf
        with pytest.raises(ValueError, match=r"y of batch entry 3 has a part whose score is -inf"):
            LOSSES[loss](case.structure, case.parts, y, case.lengths)


@every_sum
def test_the_log_loss_of_a_truth_known_in_part_sums_over_the_rest(name):
    case = Case(name)
    y = truth_of(case)
    known = case.row.some(y)
    values, _ = log_loss(case.structure, case.parts, known, case.lengths)
    for b, outputs in enumerate(case.outputs):
        agrees = case.row.agrees(known[b], outputs)
        assert values[b] == pytest.approx(-np.log(case.probabilities(b)[agrees].sum()), abs=1e-9)
    everything = log_loss(case.structure, case.parts, np.full_like(y, -1), case.lengths)
    assert (everything[0] == 0).all() and all((g == 0).all() for g in everything[1])


@every_sum
def test_the_divergence_from_a_teacher_is_that_of_the_enumeration(name):
    case, teacher = Case(name), Case(name, change=of_a_teacher)
    values, gradients = kl_divergence(case.structure, case.parts, teacher.parts, case.lengths)
    for b in range(4):
        student = dict(zip(map(repr, case.outputs[b].tolist()), np.log(case.probabilities(b)), strict=True))
        terms = zip(teacher.probabilities(b), teacher.outputs[b].tolist(), strict=True)
        assert values[b] == pytest.approx(sum(p * (np.log(p) - student[repr(y)]) for p, y in terms if p), abs=1e-9)
    rng = np.random.default_rng(2)
    for j, gradient in enumerate(gradients):
        direction = rng.normal(size=gradient.shape)
        ends = []
        for step in (1e-6, -1e-6):
            parts = [part + step * direction if i == j else part for i, part in enumerate(case.parts)]
            ends.append(kl_divergence(case.structure, parts, teacher.parts, case.lengths)[0].sum())
        assert (gradient * direction).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)
    itself = kl_divergence(case.structure, case.parts, case.parts, case.lengths)
    assert (itself[0] == 0).all() and all((g == 0).all() for g in itself[1])
    with pytest.raises(ValueError, match=r"has a part whose score is -inf, but not the teacher's"):
        kl_divergence(case.structure, teacher.parts, case.parts, case.lengths)


def of_a_teacher(case, rng):
    for part in case.parts:
        part += rng.normal(size=part.shape)
    mask(case, rng)


@every_sum
@pytest.mark.parametrize("change", ["plain", "masked"])
def test_the_least_expected_cost_is_that_of_the_enumeration(name, change):
    case = Case(name, change=CHANGES[change])
    found = minimum_risk(case.structure, case.parts, case.lengths)
    for b, outputs in enumerate(case.outputs):
        indicators = case.indicators(b, outputs)[0].reshape(len(outputs), -1)
        costs = np.stack([case.structure.costs(row) for row in indicators])
        risks = indicators @ (case.probabilities(b) @ costs)
        own = case.indicators(b, found[b : b + 1])[0].reshape(-1)
        assert own @ (case.probabilities(b) @ costs) == pytest.approx(risks.min(), abs=1e-6)
        assert case.call("score", found)[b] > -np.inf


@every_case
def test_masks_are_very_low_potentials_and_constants_do_not_matter(name):
    case, low = Case(name, change=mask), Case(name, change=mask)
    low.parts = tuple(np.where(np.isneginf(part), -1e5, part) for part in low.parts)
    np.testing.assert_array_equal(case.call("argmax"), low.call("argmax"))
    if not case.row.has_sums:
        return
    moved = [part + 3.0 * (j in case.row.constants) for j, part in enumerate(case.parts)]
    for one, other, raised in zip(
        case.call("marginals"),
        low.call("marginals"),
        case.structure.marginals(*moved, lengths=case.lengths),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-9)
        np.testing.assert_allclose(one, raised, atol=1e-9)


@pytest.mark.parametrize("name", THREADS)
@every_type
def test_threads_and_batches_do_not_change_a_bit(name, dtype, tol):
    one, three = Case(name, dtype), Case(name, dtype, n_threads=3)
    for verb in ("argmax", "log_partition"):
        np.testing.assert_array_equal(one.call(verb), three.call(verb))
    for a, b in zip(one.call("marginals"), three.call("marginals"), strict=True):
        np.testing.assert_array_equal(a, b)


@every_case
def test_an_empty_batch_has_empty_answers(name):
    case = Case(name)
    parts = [p[:0] if len(q) == 4 else p for p, q in zip(case.parts, case.checked().parts, strict=False)]
    lengths = None if case.lengths is None else case.lengths[:0]
    assert case.structure.argmax(*parts, lengths=lengths).shape == case.call("argmax")[:0].shape
    for loss in (hinge, log_loss) if case.row.has_sums else (hinge,):
        values, gradients = loss(case.structure, parts, truth_of(case)[:0], lengths)
        assert values.shape == (0,) and [g.shape for g in gradients] == [p.shape for p in parts]


@every_case
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
def test_bad_numbers_are_named_by_entry_and_position(name, bad):
    case = Case(name)
    place, first = case.row.place, case.structure.part_names[0]
    case.parts[0][place] = bad
    with pytest.raises(ValueError, match=rf"{first} must be finite.* at batch entry 3, position \({place[1]},"):
        case.call("argmax")
    if case.lengths is not None:
        case.parts[0][place] = 0.0
        case.parts[0][1:3, 3:] = bad  # beyond the lengths
        best = case.call("argmax")
        assert np.isfinite(case.call("score", best)).all()
        assert np.isfinite(perturbed(case.structure, case.parts, best, case.lengths)[0]).all()


def read_only(array):
    array = array.copy()
    array.setflags(write=False)
    return array


def strided(array):
    wide = np.full([2 * size for size in array.shape], -7, array.dtype)
    found = wide[(..., *[slice(None, None, 2)] * array.ndim)]
    found[...] = array
    return found


KINDS = {
    "read-only": read_only,
    "by columns": lambda array: np.array(array, order="F"),
    "strided": strided,
    "of the other byte order": lambda array: array.astype(array.dtype.newbyteorder()),
    "lists": lambda array: array.tolist(),
}


@every_case
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_any_kind_are_taken_and_left_as_they_are(name, kind):
    case, change = Case(name), KINDS[kind]
    given, y = [change(part) for part in case.parts], truth_of(case)
    lengths = None if case.lengths is None else change(case.lengths)
    before = repr(given)
    for loss in (hinge, log_loss) if case.row.has_sums else (hinge,):
        values, gradients = loss(case.structure, case.parts, y, case.lengths)
        found = loss(case.structure, given, change(y), lengths)
        np.testing.assert_array_equal(found[0], values)
        for one, other in zip(found[1], gradients, strict=True):
            np.testing.assert_array_equal(one, other)
    for verb, options in {"argmax": {}, "kbest": {"k": 3}, "max_marginals": {}}.items():
        wanted, same = case.call(verb, **options), getattr(case.structure, verb)(*given, lengths=lengths, **options)
        for one, other in zip(*((a,) if verb != "kbest" else a for a in (wanted, same)), strict=True):
            np.testing.assert_array_equal(one, other)
    assert repr(given) == before


@pytest.mark.parametrize("name", [name for name, row in CASES.items() if not row.always])
def test_an_entry_without_outputs_is_named(name):
    case = Case(name)
    case.row.close(case.parts)
    with pytest.raises(ValueError, match="Batch entry 3 has no output"):
        case.call("argmax")
    labels, values = case.call("kbest", k=2)
    assert (values[3] == -np.inf).all() and (labels[3] == -1).all()
    if case.row.has_sums:
        assert case.call("log_partition")[3] == -np.inf
        for verb, options in (("marginals", {}), ("sample", {"n_samples": 2, "seed": 0})):
            with pytest.raises(ValueError, match="Batch entry 3 has no output"):
                case.call(verb, **options)


@pytest.mark.parametrize("verb", ["log_partition", "marginals", "entropy", "sample"])
def test_matchings_have_no_sums_and_say_what_there_is(verb):
    case = Case("matchings, full")
    options = {"n_samples": 2, "seed": 0} if verb == "sample" else {}
    with pytest.raises(NotImplementedError, match=r"permanents.*hinge, ramp, perturbed and sparsemap"):
        case.call(verb, **options)


@every_case
@pytest.mark.parametrize("error", [-3, 99])
def test_outputs_that_do_not_fit_are_refused(name, error):
    case = Case(name)
    y = truth_of(case)
    y[(3, 0) if y.ndim > 1 else 3] = error
    with pytest.raises(ValueError, match=rf"Got {error} at batch\s+entry 3"):
        hinge(case.structure, case.parts, y, case.lengths)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("structure", "shapes"),
    [
        (Chain(), [(2, 9, 4), (4, 4), (4,), (4,)]),
        (Chain(order=2), [(2, 9, 3), (3, 3, 3)]),
        (SemiMarkov(), [(2, 9, 4, 3), (3, 3), (3,), (3,)]),
        (Spans(), [(2, 7, 7, 3)]),
        (Spans(), [(2, 7, 7, 3), (3, 3, 3)]),
    ],
)
def test_the_best_output_with_a_part_is_the_first_of_the_k_best_that_has_it(structure, shapes, dtype):
    rng, lengths = np.random.default_rng(7), np.array([shapes[0][1], 5])
    parts = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    best = structure.max_marginals(*parts, lengths=lengths)
    outputs, values = structure.kbest(*parts, k=200, lengths=lengths)
    assert (np.diff(values) <= 0).all() and np.isfinite(values).all()
    ranked = outputs.reshape(400, *outputs.shape[2:])
    assert len({(j // 200, y.tobytes()) for j, y in enumerate(ranked)}) == 400
    repeated = [np.repeat(parts[0], 200, axis=0), *parts[1:]]
    scored = structure.score(ranked, *repeated, lengths=np.repeat(lengths, 200))
    np.testing.assert_allclose(scored, values.ravel(), rtol=1e-12, atol=1e-12)
    scores = structure.check(repeated, np.repeat(lengths, 200))
    has = structure.indicators(structure.check_output(ranked, scores), scores)[0].reshape(2, 200, *best.shape[1:]) > 0
    first = has.argmax(axis=1)
    found = np.take_along_axis(values.reshape(2, 200, *[1] * (best.ndim - 1)), first[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(found[has.any(axis=1)], best[has.any(axis=1)], rtol=1e-12)
    assert has.any(axis=1).sum() > 40


@pytest.mark.parametrize("structure", [Chain, SemiMarkov, Spans])
def test_what_computes_sums_is_not_public(structure):
    public = {name for name in dir(structure) if not name.startswith("_")}
    assert public - set(dir(Structure)) == {"part_names"}
