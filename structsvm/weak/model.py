"""A model of votes: a chain of true labels that nobody sees, and a confusion matrix for each source.

With z the true labels of a sequence and v_st the vote of source s at token t,

    P(z, v) = P(z_1) prod_t P(z_t | z_t-1) prod_{s, t} P_s(v_st | z_t)

over the votes that are cast. Parameters are found by expectation-maximisation (Dawid and Skene 1979; with a chain:
Nguyen and others 2017; Lison and others 2020): expected labels and pairs of labels by the chain's own sums, then
parameters that maximise the expected log-likelihood plus the log of a Dirichlet prior. No step lowers that sum.

The prior comes from the start, the shares of the votes as labels. Two dangers make it: a matrix has a row for each
label, and rows of rare labels fit anything, so each gets pseudo-votes of the source's average quality; and sources that
copy one another look like a label of their own, which the likelihood prefers to the true one, so the votes of the start
are counted again: the more often, the more of their votes two sources share beyond what true labels explain.

Where most sources know but some spans, one vote is enough at the start. Then a list with a common word in it, alone
with it a thousand times, starts as always right and stays so: a maximum like any other. A second start judges each
source by the votes of all others, as if it had not voted; what one source alone knows starts as wrong. Where the two
end in different maxima, the likelihood chooses; of dependent sources before any vote is counted again, since it would
prefer the start that is more like them.
"""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from structsvm._warnings import warn
from structsvm.layers.chain import Chain
from structsvm.parameters import FLAG, NONE, Interval, check_arguments, validate
from structsvm.result import ConvergenceWarning
from structsvm.weak.votes import VoteTable, counts_of, shares, shares_of, table_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers
    from structsvm.weak.votes import Votes

__all__ = ["VoteModel"]

# Tokens of the sequences whose sums are taken at a time, with those beyond the ends of shorter ones.
AT_ONCE = 1 << 14
MOVES = 0.1  # pseudo-counts of a row of transitions, per pseudo-vote of a row of a source
FREE, HELD = 0.5, 5.0  # how often the votes of the start count again: independent sources, and more if they copy
MANY = 0.25  # a share of copied votes from which on the likelihood of a run with them counted again says little
MOST_ERRORS = 6.0  # standard errors by which sources that are independent may agree too often
MOST = 1e100  # sums of more pseudo-votes, and logs of fewer than its inverse, may not be finite
CONSTRAINTS = {
    "max_iter": (Interval(Integral, 1),),
    "tol": (Interval(Real, 0),),
    "smoothing": (Interval(Real, 1.0 / MOST, MOST, closed="both"),),
    "anchor": (Interval(Real, 0, MOST, closed="both"), NONE),
    "chain": (FLAG,),
}


class VoteModel:
    """True labels from the votes of several sources, each with its own confusion matrix.

    Parameters
    ----------
    labels : list, optional
        All labels, in their order; None: those of the votes, sorted.
    outside : label, optional
        The label where there is nothing to find, such as "O": for sources that give spans, and None elsewhere. An
        abstention is then a vote of its own, which is usual at this label. None: abstentions tell nothing, as those of
        annotators who skip a word. A source's None in place of a whole sequence never tells anything.
    max_iter : int, default=200
        Most steps of expectation-maximisation.
    tol : float, default=1e-5
        Training ends once a step gains less than this per vote, in nats.
    smoothing : float, default=100.0
        Pseudo-votes for each row of a source's matrix, shared as its votes on all labels are at the start; a tenth of
        it for each row of transitions. From 1e-100 to 1e100.
    anchor : float, optional
        How often the votes are counted as they are at the start, beside once as they are expected. 0 suits independent
        sources; it lets dependent ones (a word list copied from another, two taggers of the same corpus) overrule all
        others. 3 stays near the start, the shares of the votes. From 0 to 1e100. None: 0.5, and up to 5.5 where two
        sources agree far more often than their matrices say, as they are found with 0: 5 times the share of what they
        could agree on besides.
    chain : bool, default=True
        Whether a label depends on the one before it; False for rows, or sequences without order.

    Attributes
    ----------
    labels_ : list
    confusions_ : ndarray of shape (n_sources, n_labels, n_labels)
        ``confusions_[s, k, v]``: the probability that source s, if it votes, votes v where k is true. With `outside`
        one more column, (n_sources, n_labels, n_labels + 1): the probability that it abstains where k is true.
    transitions_ : ndarray of shape (n_labels, n_labels)
        Probability of a label after each label.
    start_ : ndarray of shape (n_labels,)
    objectives_ : list of float
        The log-likelihood and the log of the prior's density, up to a constant, before each step; it does not fall.

    Examples
    --------
    >>> from structsvm.weak import VoteModel
    >>> good, poor = [["a", "b", "a"], ["b", "b"]], [["a", "a", None], ["a", "b"]]
    >>> model = VoteModel().fit([good, good, poor])
    >>> model.predict([good, good, poor])
    [['a', 'b', 'a'], ['b', 'b']]
    """

    labels_: list[Hashable]
    confusions_: Floats
    transitions_: Floats
    start_: Floats
    objectives_: list[float]
    # Pickles from before these two were parameters have none of their own.
    outside: Hashable | None = None
    anchor: float | None = None

    def __init__(
        self,
        labels: Sequence[Hashable] | None = None,
        *,
        outside: Hashable | None = None,
        max_iter: int = 200,
        tol: float = 1e-5,
        smoothing: float = 100.0,
        anchor: float | None = None,
        chain: bool = True,
    ) -> None:
        self.labels, self.outside, self.max_iter, self.tol = labels, outside, max_iter, tol
        self.smoothing, self.anchor, self.chain = smoothing, anchor, chain

    def fit(self, votes: Votes, *, lengths: Sequence[int] | None = None) -> Self:
        """Find the quality of each source.

        Parameters
        ----------
        votes : list (sources) of lists (sequences) of label lists
            None in place of a label, or of a whole sequence: the source abstains. See `spans_as_votes`.
        lengths : list of int, optional
            Tokens of each sequence; needed where all sources abstain from a whole one.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, votes of different lengths, a label that is none of `labels`, no votes.

        Warns
        -----
        ConvergenceWarning
            `max_iter` steps were too few.
        """
        validate(self, CONSTRAINTS)
        labels, table = table_of(votes, self.labels, lengths, self.outside)
        if not table.n_votes:
            raise ValueError("all sources abstain everywhere: there are no votes")
        found, objectives, _, is_done = (
            self._chosen(table) if self.anchor is None else self._likeliest(table, self.anchor)
        )
        if not is_done:
            warn(
                f"VoteModel stopped after {self.max_iter} steps, and the last gained more than tol={self.tol} per "
                "vote: set max_iter for more of them",
                ConvergenceWarning,
            )
        self.labels_, self.objectives_ = labels, objectives
        self.confusions_, self.transitions_, self.start_ = found.confusions, found.transitions, found.start
        return self

    def _chosen(self, table: VoteTable) -> Run:
        """The run with an anchor for sources as dependent as these are.

        An anchor would flatten the matrices that tell how dependent they are, and then which start is the better one.
        """
        starts = starts_of(table)
        free = [self._run(table, start, 0.0) for start in starts]
        best = int(np.argmax([run.log_likelihood for run in free]))
        share = copied(free[best].found, table)
        anchor = FREE + HELD * share
        return self._run(table, starts[best], anchor) if share > MANY else self._likeliest(table, anchor)

    def _likeliest(self, table: VoteTable, anchor: float) -> Run:
        """The run from all starts that ends with the greatest likelihood."""
        return max((self._run(table, start, anchor) for start in starts_of(table)), key=lambda run: run.log_likelihood)

    def _run(self, table: VoteTable, counts: Counts, anchor: float) -> Run:
        """Expectation-maximisation from one start."""
        least = self.tol * int((table.votes >= 0).sum())
        prior = prior_of(counts, self.smoothing, anchor, table.outside)
        found = maximum(counts, prior, is_chain=self.chain)
        objectives: list[float] = []
        for _ in range(self.max_iter):
            expected = Expected(found, table)
            objectives.append(expected.log_likelihood + found.log_density(prior))
            found = maximum(expected.counts, prior, is_chain=self.chain)
            if len(objectives) > 1 and objectives[-1] - objectives[-2] < least:
                return Run(found, objectives, expected.log_likelihood, is_done=True)
        return Run(found, objectives, expected.log_likelihood, is_done=False)

    def predict_marginals(self, votes: Votes, *, lengths: Sequence[int] | None = None) -> list[NDArray[np.float64]]:
        """Return per sequence an array (length, n_labels) of the probability of each label at each token.

        Parameters
        ----------
        votes, lengths : see `fit`
            Of the same sources.

        Raises
        ------
        ValueError
            Before `fit`; for votes of another number of sources, or on other labels.
        """
        if not hasattr(self, "confusions_"):
            raise ValueError("this VoteModel is not fitted yet: call fit")
        has_outside = self.confusions_.shape[2] > len(self.labels_)
        _, table = table_of(votes, self.labels_, lengths, self.outside if has_outside else None)
        if table.votes.shape[1] != len(self.confusions_):
            raise ValueError(f"votes of {table.votes.shape[1]} sources, the model has {len(self.confusions_)}")
        parameters = Parameters(self.confusions_, self.transitions_, self.start_)
        tokens = Expected(parameters, table).labels
        return [tokens[a:b] for a, b in pairwise(table.offsets.tolist())]

    def predict(self, votes: Votes, *, lengths: Sequence[int] | None = None) -> list[list[Hashable]]:
        """Return per sequence the most probable label of each token."""
        return [[self.labels_[k] for k in p.argmax(axis=1)] for p in self.predict_marginals(votes, lengths=lengths)]

    def candidates(
        self, votes: Votes, *, lengths: Sequence[int] | None = None, least: float = 0.01
    ) -> list[list[Hashable | dict[Hashable, float]]]:
        """Return per sequence what is known of each token's label: labels with weights, as the log loss learns from.

        They are the y of ``SequenceLabeler(loss="log")``, and flat those of ``AmbiguousClassifier`` and
        ``TaxonomyClassifier(loss="log")``: a label alone where no other one is probable, else a dict of the labels and
        their probabilities.

        Parameters
        ----------
        votes, lengths : see `predict_marginals`
        least : float, default=0.01
            Labels of a lower probability than that are left out; the most probable one stays. From 0 to 1.
        """
        check_arguments("candidates", locals(), least=Interval(Real, 0, 1, closed="both"))
        return [[self._known(p, least) for p in rows] for rows in self.predict_marginals(votes, lengths=lengths)]

    def _known(self, p: Floats, least: float) -> Hashable | dict[Hashable, float]:
        chosen = np.flatnonzero(p >= least) if p.max() >= least else np.array([p.argmax()])
        if len(chosen) == 1:
            return self.labels_[int(chosen[0])]
        return {self.labels_[k]: float(p[k]) for k in chosen.tolist()}


class Parameters(NamedTuple):
    """Parameters of the model: see the attributes of `VoteModel`."""

    confusions: Floats
    transitions: Floats
    start: Floats

    def log_density(self, prior: Counts) -> float:
        """The log of the Dirichlet prior's density, up to a constant."""
        rows = zip(self, (prior.votes, prior.pairs, prior.starts), strict=True)
        return float(sum((counts * np.log(p)).sum() for p, counts in rows))


class Counts(NamedTuple):
    """Counts of votes by source and label, of pairs of labels, and of first labels: what parameters are found from."""

    votes: Floats
    pairs: Floats
    starts: Floats

    @classmethod
    def of_shares(cls, table: VoteTable) -> Counts:
        """The counts to begin with: shares of votes as labels, each token by itself."""
        p = shares(table)
        p[~p.any(axis=1)] = 1.0 / table.n_labels
        inside = np.ones(len(p) - 1, dtype=bool)
        inside[table.offsets[1:-1][(table.offsets[1:-1] > 0) & (table.offsets[1:-1] < len(p))] - 1] = False
        starts = table.offsets[:-1][table.lengths > 0]
        return cls(counted(p, table), p[:-1][inside].T @ p[1:][inside], p[starts].sum(axis=0))


def starts_of(table: VoteTable) -> list[Counts]:
    """The counts to begin with: the shares of votes, and with `outside` each source as all others judge it."""
    own = Counts.of_shares(table)
    has_others = table.outside is not None and table.votes.shape[1] > 1
    return [own, own._replace(votes=votes_by_others(table))] if has_others else [own]


class Run(NamedTuple):
    """Expectation-maximisation from one start: parameters, objectives before each step, and the last log-likelihood."""

    found: Parameters
    objectives: list[float]
    log_likelihood: float
    is_done: bool


class Expected:
    """Expected labels and pairs of labels under parameters.

    Attributes
    ----------
    labels : ndarray of shape (n_tokens, n_labels)
    pairs : ndarray of shape (n_labels, n_labels)
    starts : ndarray of shape (n_labels,)
    log_likelihood : float
    """

    def __init__(self, parameters: Parameters, table: VoteTable) -> None:
        K, self.table = len(parameters.start), table
        self.labels, self.pairs, self.starts = np.zeros((len(table.votes), K)), np.zeros((K, K)), np.zeros(K)
        self.log_likelihood = 0.0
        with_none = np.concatenate([parameters.confusions, np.ones((*parameters.confusions.shape[:2], 1))], axis=2)
        logs = np.log(with_none)  # by source, label and vote; the last vote is an abstention
        chain, moves, start = Chain(), np.log(parameters.transitions), np.log(parameters.start)
        for rows, lengths in padded(table):
            scores = np.zeros((*rows.shape, K))
            for s, of_source in enumerate(logs):
                scores += of_source.T[table.votes[rows, s]]
            scores[np.arange(rows.shape[1]) >= lengths[:, np.newaxis]] = 0.0
            self.log_likelihood += float(chain.log_partition(scores, moves, start, lengths=lengths).sum())
            nodes, pairs, starts = (
                np.zeros(0) if part is None else part for part in chain.marginals(scores, moves, start, lengths=lengths)
            )
            inside = np.arange(rows.shape[1]) < lengths[:, np.newaxis]
            self.labels[rows[inside]] = nodes[inside]
            self.pairs += pairs.sum(axis=0)
            self.starts += starts.sum(axis=0)

    @property
    def counts(self) -> Counts:
        return Counts(counted(self.labels, self.table), self.pairs, self.starts)


def padded(table: VoteTable) -> Iterator[tuple[Integers, Integers]]:
    """Yield ``(rows, lengths)`` of sequences of like lengths: the rows of their tokens, filled up."""
    order = np.argsort(-table.lengths, kind="stable")
    order = order[table.lengths[order] > 0]
    first = 0
    while first < len(order):
        longest = int(table.lengths[order[first]])
        chosen = order[first : first + max(AT_ONCE // longest, 1)]
        lengths = table.lengths[chosen]
        steps = np.minimum(np.arange(longest), lengths[:, np.newaxis] - 1)
        yield table.offsets[chosen][:, np.newaxis] + steps, lengths
        first += len(chosen)


def counted(labels: Floats, table: VoteTable) -> NDArray[np.float64]:
    """Expected counts of votes by source and label: array (n_sources, n_labels, n_votes); see `VoteTable`."""
    counts = np.zeros((table.votes.shape[1], labels.shape[1], table.n_symbols))
    for of_source, votes in zip(counts, table.votes.T, strict=True):
        for v in range(table.n_symbols):
            of_source[:, v] = labels[votes == v].sum(axis=0)
    return counts


def votes_by_others(table: VoteTable) -> NDArray[np.float64]:
    """The counts of each source's votes, by the labels that all other sources give; none where no other has read."""
    counts, n_read = counts_of(table), (table.votes >= 0).sum(axis=1)
    found = np.zeros((table.votes.shape[1], table.n_labels, table.n_symbols))
    for of_source, own in zip(found, table.votes.T, strict=True):
        tokens, others = np.flatnonzero((own >= 0) & (own < table.n_labels)), counts.copy()
        others[tokens, own[tokens]] -= 1.0
        p = shares_of(others, table.outside)
        p[n_read == (own >= 0)] = 0.0
        of_source[:] = counted(p, table._replace(votes=own[:, np.newaxis]))[0]
    return found


class Agreements(NamedTuple):
    """By pairs of sources, arrays (n_sources, n_sources): how many tokens they agree on.

    Votes for `outside`, and abstentions, are no agreement.

    Attributes
    ----------
    found : ndarray
    expected : ndarray
        By their matrices, as if they were independent given the true label.
    most : ndarray
        Tokens on which both vote. With `outside` the votes of the one that has fewer: it could have found the same.
    """

    found: Floats
    expected: Floats
    most: Floats

    @property
    def errors(self) -> Floats:
        """Standard errors by which sources agree more often than expected."""
        found: Floats = (self.found - self.expected) / (self.expected + 1.0) ** 0.5
        return found

    @property
    def shares(self) -> Floats:
        """The share of what they could agree on beyond that: 1 for copies, 0 for independent sources."""
        found: Floats = np.clip((self.found - self.expected) / np.maximum(self.most - self.expected, 1.0), 0.0, 1.0)
        return found


def agreements(found: Parameters, table: VoteTable) -> Agreements:
    """How often pairs of sources agree, and would by parameters."""
    real = np.delete(np.arange(table.n_labels), [] if table.outside is None else table.outside)
    has_read = (table.votes >= 0).astype(np.float64)
    agrees, expected = np.zeros((2, has_read.shape[1], has_read.shape[1]))
    is_real = np.zeros_like(has_read)
    for k in real.tolist():
        votes = (table.votes == k).astype(np.float64)
        agrees += votes.T @ votes
        is_real += votes
    for z, weights in enumerate(Expected(found, table).labels.T):
        rows = found.confusions[:, z, real]
        expected += ((has_read * weights[:, np.newaxis]).T @ has_read) * (rows @ rows.T)
    n_votes = is_real.sum(axis=0)
    most = is_real.T @ is_real if table.outside is None else np.minimum.outer(n_votes, n_votes)
    return Agreements(agrees, expected, most)


def copied(found: Parameters, table: VoteTable) -> float:
    """The greatest share of votes that two sources have in common beyond their matrices; 0 within `MOST_ERRORS`."""
    pairs = agreements(found, table)
    return float(np.triu(np.where(pairs.errors > MOST_ERRORS, pairs.shares, 0.0), k=1).max())


def prior_of(start: Counts, smoothing: float, anchor: float, outside: int | None) -> Counts:
    """Pseudo-counts: votes of each source's average quality, and those of the start."""
    labels: NDArray[np.float64] = start.starts + start.pairs.sum(axis=0)
    moves = MOVES * smoothing * (labels + 1.0) / (labels + 1.0).sum()
    votes = smoothing * average_rows(start.votes, outside) + anchor * start.votes
    return Counts(votes, np.tile(moves, (len(moves), 1)), moves)


def average_rows(counts: Floats, outside: int | None) -> NDArray[np.float64]:
    """Rows of a matrix for each source in which no label differs from another, by its votes on all of them.

    A label that the source gives is right with the source's share of right votes on such labels, and wrong votes are
    spread as all its wrong ones are. The row of `outside`, the usual label, is its own.
    """
    K, n_symbols = counts.shape[1:]
    own = np.diagonal(counts, axis1=1, axis2=2)
    given = (counts.sum(axis=1)[:, :K] > 0.0) & (np.arange(K) != outside)
    quality = ((own * given).sum(axis=1) + 1.0) / ((counts.sum(axis=2) * given).sum(axis=1) + 2.0)
    wrong: NDArray[np.float64] = counts.sum(axis=1)
    wrong[:, :K] -= own
    if outside is not None:
        wrong[:, K] -= counts[:, outside, K]
    wrong = np.maximum(wrong, 0.0) + 1.0 / n_symbols
    right = quality[:, np.newaxis] * given
    rows = (1.0 - right)[:, :, np.newaxis] * (wrong / wrong.sum(axis=1, keepdims=True))[:, np.newaxis]
    rows[:, np.arange(K), np.arange(K)] += right
    if outside is not None:
        usual = counts[:, outside] + 1.0 / n_symbols
        rows[:, outside] = usual / usual.sum(axis=1, keepdims=True)
    return rows


def maximum(counts: Counts, prior: Counts, *, is_chain: bool) -> Parameters:
    """Parameters from counts and pseudo-counts; without a chain all labels come from one distribution."""
    votes, pairs, starts = (own + pseudo for own, pseudo in zip(counts, prior, strict=True))
    if not is_chain:
        starts = starts + pairs.sum(axis=0)
        pairs = np.tile(starts, (len(starts), 1))
    return Parameters(
        votes / votes.sum(axis=2, keepdims=True), pairs / pairs.sum(axis=1, keepdims=True), starts / starts.sum()
    )
