"""Built-in templates for words, chosen on held-out sequences: ``templates="auto"``.

Running text is labelled by its words. Records (addresses, names, references: short strings with many labels) are
labelled by position, shape and marks. Two sets are compared on a sample of the training sequences: with each, one half
is trained on and the other labelled, in turn. The usual one stays unless that for records labels more sequences wholly
right, beyond noise, and no fewer tokens; or, where few sequences are wholly right with either, more tokens. If that one
is better, it is compared likewise with its own extension by the kinds of words; running text does not pay for this.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm.features.encoder import FeatureEncoder
from structsvm.features.ranges import take_ranges
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.solvers import LaRank
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.selection.search import Held, difference
from structsvm.tasks.sequence.labels import fragments
from structsvm.tasks.sequence.parameters import features_of, sets_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from structsvm.arrays import Integers
    from structsvm.features.columns import Columns
    from structsvm.tasks.sequence.parameters import LabelerParams

USUAL = "rich"
# Fewer sequences say nothing; among more, so many are enough.
FEWEST, MOST, MOST_TOKENS = 50, 600, 15_000
# Records have tens of labels; with more of them, pairs take much memory.
MOST_LABELS = 100
# Passes over a half, with the usual C of a margin: the sets are compared, not tuned.
PASSES, C = 4, 0.1
# Another set is better if the gain is more than so many of its standard errors.
ERRORS = 1.5


class TemplateChoice(NamedTuple):
    """The set that was chosen, and how each one labelled held-out sequences.

    Attributes
    ----------
    name : str
    sequences, tokens : dict of str to float
        By set, the shares of sequences that were wholly right, and of tokens.
    n_held_out : int
        Sequences, each of which was held out once.
    n_argmax : int
        Sequences that were decoded in training.
    """

    name: str
    sequences: dict[str, float]
    tokens: dict[str, float]
    n_held_out: int
    n_argmax: int

    @property
    def templates(self) -> str | None:
        """The set as a parameter of `FeatureEncoder`, whose default, None, is the usual one."""
        return None if self.name == USUAL else self.name

    @property
    def text(self) -> str:
        """One line: what was chosen, and by how much."""
        shares = [f"{100.0 * share:.1f} with {name!r}" for name, share in self.sequences.items()]
        return f"templates = {self.name!r} (held-out sequences wholly right, in %: {', '.join(shares)})"


class Trial(NamedTuple):
    """How held-out sequences were labelled with one set: whole ones that are right, tokens, decodings in training."""

    sequences: Held
    tokens: Held
    n_argmax: int


def choose_templates(
    params: LabelerParams,
    X: Columns,
    labels: Sequence[Hashable],
    label_ids: NDArray[np.int32],
    weight: ArrayLike | None = None,
) -> TemplateChoice | None:
    """The choice for columns; None for many labels, or few sequences with known labels whose weight is not 0.

    Where few have all labels known, others with half of them count as well, by those.

    Parameters
    ----------
    params : object with `SequenceLabeler`'s parameters as attributes
    X : Columns
    labels, label_ids : see `encode_known`
    weight : array-like of shape (n_sequences,), optional
    """
    rows = _sample(X, label_ids < len(labels), weight)
    if len(rows) < FEWEST or len(labels) > MOST_LABELS:
        return None
    label_ids = label_ids[take_ranges(X.offsets, rows)[1]]
    X = X.take(rows)
    chosen, *others = sets_of(params)
    trials = {chosen: _tried(params, chosen, X, len(labels), label_ids)}
    for name in others:
        trials[name] = _tried(params, name, X, len(labels), label_ids)
        if not _is_better(trials[chosen], trials[name]):
            break
        chosen = name
    of_sequences, of_tokens = (
        {name: float(held.numerator.sum() / held.denominator.sum()) for name, held in zip(trials, every, strict=True)}
        for every in ([trial.sequences for trial in trials.values()], [trial.tokens for trial in trials.values()])
    )
    return TemplateChoice(chosen, of_sequences, of_tokens, len(rows), sum(trial.n_argmax for trial in trials.values()))


def _sample(X: Columns, is_known: NDArray[np.bool_], weight: ArrayLike | None) -> Integers:
    """Sequences that decide: of weight, without an unknown label or, if these are few, with half of them known.

    They are drawn if there are many, always the same ones.
    """
    n_known = np.diff(np.append(0, np.cumsum(is_known))[X.offsets])
    weights = checked_sample_weight(weight, len(X))
    may = (n_known > 0) if weights is None else (n_known > 0) & (weights > 0.0)
    rows = np.flatnonzero(may & (n_known == X.lengths))
    rows = np.flatnonzero(may & (2 * n_known >= X.lengths)) if len(rows) < FEWEST else rows
    rows = np.random.default_rng(0).permutation(rows)[:MOST]
    return rows[: max(int((np.cumsum(X.lengths[rows]) <= MOST_TOKENS).sum()), 1)]


def _tried(params: LabelerParams, name: str, X: Columns, n_labels: int, label_ids: NDArray[np.int32]) -> Trial:
    """Train on each half of sequences, on their runs of known labels, with a set of templates; label the other half."""
    encoder = FeatureEncoder(name, hash_bits=features_of(params).hash_bits)  # min_count is about all sequences
    every = encoder.fit_transform(X)
    predicted, n_argmax = np.empty_like(label_ids), 0
    places, is_known = np.arange(len(X)), label_ids < n_labels
    for half in (0, 1):
        rows, others = places[half::2], places[1 - half :: 2]
        known, counted = copy.copy(encoder), is_known & np.repeat(places % 2 == half, X.lengths)
        tokens = known.learn_kinds(X, every, label_ids, counted)
        oracle = ViterbiOracle(n_labels, known.n_features, n_bigrams=known.n_bigrams)
        solver = LaRank(C=C, max_iter=PASSES, random_state=0)
        own = take_ranges(X.offsets, rows)[1]
        runs, ids, _ = fragments(tokens.take(rows), label_ids[own], n_labels)
        run = solver.start(oracle.bind(runs, ids, **solver.formulation()))
        for _ in range(PASSES):
            while not run.advance():
                pass
        n_argmax += run.state.n_argmax
        weights = run.problem.to_oracle(run.weights)
        predicted[take_ranges(X.offsets, others)[1]] = oracle.chain(tokens.take(others)).decode(weights)
    sums = (np.append(0, np.cumsum(of))[X.offsets] for of in (predicted == label_ids, is_known))
    right, n_known = map(np.diff, sums)
    whole = Held("accuracy", 1.0 * (right == n_known), np.ones(len(X)))
    return Trial(whole, Held("accuracy", 1.0 * right, 1.0 * n_known), n_argmax)


def _is_better(usual: Trial, other: Trial) -> bool:
    """Whether another set gains in sequences wholly right or in tokens, beyond noise, and loses in neither."""
    gains = [difference(a, b) for a, b in ((usual.sequences, other.sequences), (usual.tokens, other.tokens))]
    return any(gain > ERRORS * error for gain, error in gains) and all(gain >= -error for gain, error in gains)
