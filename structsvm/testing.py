"""Checks for oracles that users write: the protocol, tested on data."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm._problem import Problem
from structsvm._warnings import warn
from structsvm.adapter import INFERENCES, OracleError, by_place, checked_expect, sign_constrained, sparse_feature
from structsvm.protocol import Oracle, Penalty, Rescaling

__all__ = ["check_oracle"]

# Allowed rounding error, as a fraction of the sum of the terms' absolute values: enough for float32.
ROUNDING = 1e-5

N_EXAMPLES = 5

Feature = tuple[NDArray[np.int32], NDArray[np.float64]]
Output = tuple[float, Feature]  # loss and joint feature


def check_oracle(
    oracle: Oracle,
    X: Sequence[Any],
    Y: Sequence[Any],
    *,
    known: Sequence[Any] | None = None,
    n_trials: int = 20,
    random_state: int = 0,
) -> None:
    """Check on data that an oracle satisfies the protocol of `structsvm.Oracle`; returns None if it does.

    Outputs are collected with `argmax` under several weights, then each is compared with what `argmax` returns
    under all the others. That finds most mistakes in inference but proves nothing: on small structures,
    also enumerate all outputs in your tests.

    - `n_features`, `inference`, `nonnegative`, `rescalings` and `penalties` have values that the solvers support
      (weights that are `nonnegative` are tried as such);
    - `joint_feature` returns finite values for indices in range, the same each time, in arrays that no later call
      changes; nor does a later `argmax` change an output that was returned (threads would overwrite each other's);
    - `loss` is finite, the same each time, 0 for the true output and positive for outputs with another joint feature;
    - `argmax` modifies neither weights nor input, is deterministic, and, unless its inference is ``"approximate"``,
      no other output found has a higher score: in plain inference, and in the loss-augmented problem of every
      rescaling and penalty that the oracle declares. With ``"relaxed"`` inference fractional outputs are among them;
    - `expect`, if the class implements it, returns the same each time, a log-sum that is not below that of the outputs
      found, and an expectation that lies between the log-sum's finite differences in random directions;
    - `complete`, if the class implements it, returns the same each time, returns a fully known true output unchanged,
      and for what is only `known` an output whose score is not below those of the true output and of the
      completions under other weights;
    - `expect_known`, if the class implements it, returns the score of a fully known true output, and for what
      is only `known` a sum over at most all outputs and at least those; its expectation is tested like that of
      `expect`;
    - the oracle can be pickled (a warning if not: saving and parallel work need it).

    Parameters
    ----------
    oracle : Oracle
    X, Y : sequences of equal length
        Inputs and true outputs. A few are enough; small structures find more mistakes.
    known : sequence of the same length, optional
        Partial knowledge of each true output, for `complete` and `expect_known`.
    n_trials : int, default=20
        Number of weight vectors, distributed over at most five of the examples. Each of these has one vector more,
        under which the true output beats those found on average.
    random_state : int, default=0
        Seeds the weights and the choice of examples.

    Raises
    ------
    OracleError
        For the first mistake found; names class, method and example, and says what to do.
    ValueError
        If X and Y have different lengths, or are empty.

    Warns
    -----
    UserWarning
        If the oracle cannot be pickled.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.viterbi import ViterbiOracle
    >>> from structsvm.testing import check_oracle
    >>> check_oracle(ViterbiOracle(n_labels=2, n_token_features=1), [np.array([[1.0], [2.0]])], [[0, 1]])
    """
    X, Y, known = by_place(X), by_place(Y), by_place(known)
    if len(X) != len(Y):
        raise ValueError(f"X has {len(X)} examples, Y has {len(Y)}")
    if known is not None and len(known) != len(X):
        raise ValueError(f"X has {len(X)} examples, known has {len(known)}")
    if len(X) == 0:
        raise ValueError("check_oracle needs at least one example")
    _check_declarations(oracle)
    rng = np.random.default_rng(random_state)
    chosen = rng.permutation(len(X))[:N_EXAMPLES]
    for k, i in enumerate(chosen):
        size = len(range(k, n_trials, len(chosen)))
        trial = _Trial(oracle, X, Y, int(i))
        all_weights = [_weights(oracle.n_features, rng) for _ in range(size)]
        for w in all_weights:
            w[trial.signs] = np.abs(w[trial.signs])
        trial.run(all_weights)
        if oracle.has_complete:
            trial.complete_whole(all_weights)
            if known is not None:
                trial.complete_known(known[i], all_weights)
        if oracle.has_expect_known:
            trial.sum_whole(all_weights)
            if known is not None:
                trial.sum_known(known[i], all_weights)
    try:
        pickle.loads(pickle.dumps(oracle))
    except Exception as error:  # noqa: BLE001 - whatever a user's class raises
        warn(
            f"{type(oracle).__name__} cannot be pickled ({error!r:.200}): models that hold it cannot be "
            "saved by pickle or sent to other processes",
            UserWarning,
        )


def _weights(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Weights of various magnitudes, sometimes with ties and zeros."""
    w = rng.normal(size=n) * rng.choice([0.1, 1.0, 10.0])
    return np.round(w) if rng.random() < 0.3 else w


def _check_declarations(oracle: Oracle) -> None:
    name = type(oracle).__name__
    if not isinstance(oracle, Oracle):
        raise OracleError(f"{name} is not an Oracle: derive it from structsvm.Oracle")
    n = getattr(oracle, "n_features", None)
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 0 < n < 2**31:
        raise OracleError(f"{name}.n_features must be an integer in 1 .. 2**31 - 1, got {n!r}: set it in __init__")
    if oracle.inference not in INFERENCES:
        raise OracleError(f"{name}.inference must be one of {', '.join(INFERENCES)}, got {oracle.inference!r:.80}")
    declared: tuple[tuple[str, tuple[str | None, ...]], ...] = (
        ("rescalings", ("margin", "slack")),
        ("penalties", ("linear", "quadratic", None)),
    )
    for attribute, known in declared:
        value = getattr(oracle, attribute)
        if not isinstance(value, (tuple, list)) or not set(value) <= set(known):
            raise OracleError(f"{name}.{attribute} must be a tuple of names among {known}, got {value!r}")


class _Trial:
    """One example under several weights."""

    def __init__(self, oracle: Oracle, X: Sequence[Any], Y: Sequence[Any], i: int) -> None:
        self.oracle, self.x, self.y, self.i = oracle, X[i], Y[i], i
        self.X, self.Y = X, Y
        signs = sign_constrained(oracle.nonnegative, oracle.n_features, type(oracle).__name__)
        self.signs = np.empty(0, np.int64) if signs is None else signs
        self.outputs: list[Output] = []  # the true output, then all that were found
        self.found_ys: list[Any] = []
        self.true_returned: Any = None  # the true output's joint feature as the oracle returned it

    def where(self, method: str) -> str:
        return f"{type(self.oracle).__name__}.{method} (example {self.i})"

    def run(self, all_weights: list[NDArray[np.float64]]) -> None:
        self.found(self.y)
        if self.outputs[0][0] != 0.0:
            raise OracleError(
                f"{self.where('loss')} returned {self.outputs[0][0]} for the true output itself, expected 0"
            )
        modes: list[Rescaling | None] = [None, *self.oracle.rescalings]
        answers: list[tuple[NDArray[np.float64], Rescaling | None, Output | None]] = [
            (w, mode, self.argmax(w, mode)) for w in all_weights for mode in modes
        ]
        if self.oracle.inference != "approximate":
            w = self.favouring_the_truth()
            answers += [(w, mode, self.argmax(w, mode)) for mode in modes]
        for y, (_, feature) in zip(self.found_ys, self.outputs):
            if not _equal(self.feature(y), feature):
                raise OracleError(
                    f"{self.where('argmax')} returned an output that a later call has changed: return a new object "
                    "each time"
                )
        if self.oracle.has_expect:
            for k, w in enumerate(all_weights):
                self.compare_expectation("expect", self.distinct(), w, all_weights[k - 1])
        if self.oracle.inference == "approximate":
            return
        for w, mode, answer in answers:
            if answer is not None:
                self.compare(w, mode, answer)
        self.compare_constraints(all_weights)

    def favouring_the_truth(self) -> NDArray[np.float64]:
        """Weights under which the true output beats those found, on average, by half of the least loss or of 1 at most.

        So any that it beats wins with its loss, under both rescalings (1 - lead > 0), and a search that leaves the loss
        out returns the true one, whatever the size of features is.
        """
        (_, true), *others = self.outputs
        w = np.zeros(self.oracle.n_features)
        np.add.at(w, true[0], true[1])
        for _, (indices, values) in others:
            np.subtract.at(w, indices, values / len(others))
        w[self.signs] = np.maximum(w[self.signs], 0.0)
        lead = max(abs(_score(true, w)[0] - _score(feature, w)[0]) for _, feature in self.outputs)
        losses = [loss for loss, _ in others if loss > 0.0]
        return w * (0.5 * min(1.0, *losses) / lead if losses else 0.0) if lead > 0.0 else w

    def feature(self, y: Any) -> Feature:
        where = self.where("joint_feature")
        n = self.oracle.n_features
        indices, values = sparse_feature(self.oracle.joint_feature(self.x, y), n, where)
        again = sparse_feature(self.oracle.joint_feature(self.x, y), n, where)
        if not _equal((indices, values), again):
            raise OracleError(
                f"{where} returned different values for the same input and output: it must depend on nothing else"
            )
        return indices, values

    def found(self, y: Any) -> Output:
        """Add an output to `outputs`; return its loss and joint feature."""
        loss = self.oracle.loss(self.y, y)
        try:
            number = float(loss)
        except (TypeError, ValueError):
            number = np.nan
        if not (np.isfinite(number) and number >= 0.0):
            raise OracleError(f"{self.where('loss')} returned {loss!r:.80}, expected a finite number >= 0")
        again = self.oracle.loss(self.y, y)
        if again != loss:
            raise OracleError(
                f"{self.where('loss')} returned {loss!r:.80}, then {again!r:.80} for the same outputs: it must depend "
                "on nothing else"
            )
        feature = self.feature(y)
        if number == 0.0 and self.outputs and not _equal(feature, self.outputs[0][1]):
            raise OracleError(
                f"{self.where('loss')} returned 0 for an output whose joint feature differs from the true "
                "one's; give every wrong output a positive loss"
            )
        if not self.outputs:
            self.true_returned = self.oracle.joint_feature(self.x, y)
        else:
            where = self.where("joint_feature")
            if not _equal(sparse_feature(self.true_returned, self.oracle.n_features, where), self.outputs[0][1]):
                raise OracleError(
                    f"{where} returned arrays that a later call has filled with other values: return new ones each time"
                )
        self.outputs.append((number, feature))
        self.found_ys.append(y)
        return self.outputs[-1]

    def argmax(self, w: NDArray[np.float64], mode: Rescaling | None) -> Output | None:
        """The oracle's output under w, called twice; None where an inexact oracle has no such inference."""
        where = self.where("argmax") + ("" if mode is None else f", rescaling={mode!r}")
        answers = []
        for _ in range(2):
            given = w.copy()
            try:
                y = (
                    self.oracle.argmax(self.x, given)
                    if mode is None
                    else self.oracle.argmax(self.x, given, y_true=self.y, rescaling=mode)
                )
            except NotImplementedError as error:
                if mode is None or self.oracle.inference != "approximate":
                    raise OracleError(
                        f"{where} is not implemented: write it, or take {mode!r} out of 'rescalings'"
                    ) from error
                return None
            if y is None:
                raise OracleError(f"{where} returned None, expected an output: is its 'return' missing?")
            if not np.array_equal(given, w):
                raise OracleError(f"{where} modified the weights: work on a copy (solvers hand out a read-only view)")
            if not _equal(self.feature(self.y), self.outputs[0][1]):
                raise OracleError(f"{where} modified the input, or the true output: work on a copy")
            answers.append(self.found(y))
        if not _equal(answers[0][1], answers[1][1]):
            raise OracleError(
                f"{where} returned two different outputs for the same weights: break ties in one fixed way"
            )
        return answers[0]

    def complete_whole(self, all_weights: list[NDArray[np.float64]]) -> None:
        """A fully known true output is its own completion."""
        for w in all_weights:
            y = self.complete(self.y, w)
            if float(self.oracle.loss(self.y, y)) != 0.0 or not _equal(self.feature(y), self.outputs[0][1]):
                raise OracleError(
                    f"{self.where('complete')} returned another output where all of the true one was known: return that"
                )

    def complete_known(self, known: Any, all_weights: list[NDArray[np.float64]]) -> None:
        """Each completion against the true output and those found under the other weights, which agree as well."""
        answers = [(w, self.feature(self.complete(known, w))) for w in all_weights]
        agreeing = [self.outputs[0][1], *(feature for _, feature in answers)]
        for w, feature in answers if self.oracle.inference != "approximate" else ():
            score, size = _score(feature, w)
            for k, other in enumerate(agreeing):
                better, other_size = _score(other, w)
                if better - score > ROUNDING * (1.0 + size + other_size):
                    which = "the true output" if k == 0 else "a completion found under other weights"
                    raise OracleError(
                        f"{self.where('complete')} returned an output with the score {score:.6g}, but {which} has "
                        f"{better:.6g}: return the best one that agrees with what is known"
                    )

    def complete(self, known: Any, w: NDArray[np.float64]) -> Any:
        """The oracle's completion under w, called twice."""
        where, given = self.where("complete"), w.copy()
        y, again = (self.oracle.complete(self.x, known, given) for _ in range(2))
        if not np.array_equal(given, w):
            raise OracleError(f"{where} modified the weights: work on a copy (solvers hand out a read-only view)")
        if not _equal(self.feature(y), self.feature(again)):
            raise OracleError(
                f"{where} returned two different outputs for the same weights: break ties in one fixed way"
            )
        return y

    def sum_whole(self, all_weights: list[NDArray[np.float64]]) -> None:
        """The sum of a fully known true output is its score."""
        true = self.outputs[0][1]
        for k, w in enumerate(all_weights):
            score, size = _score(true, w)
            log_sum, _ = self.sum_of("expect_known", w, self.y)
            if abs(log_sum - score) > ROUNDING * (1.0 + size):
                raise OracleError(
                    f"{self.where('expect_known')} returned the log-sum {log_sum:.6g} where all of the true output was "
                    f"known, whose score is {score:.6g}: it alone agrees"
                )
            self.compare_expectation("expect_known", [true], w, all_weights[k - 1], self.y)

    def sum_known(self, known: Any, all_weights: list[NDArray[np.float64]]) -> None:
        """The sum is not below that of the outputs known to agree, and not above that of all outputs."""
        agreeing = [self.outputs[0][1]]
        if self.oracle.has_complete:
            agreeing += [self.feature(self.complete(known, w)) for w in all_weights]
        for k, w in enumerate(all_weights):
            self.compare_expectation("expect_known", unique(agreeing), w, all_weights[k - 1], known)
            inside, _ = self.sum_of("expect_known", w, known)
            log_sum, expectation = self.sum_of("expect", w)
            if inside - log_sum > ROUNDING * (1.0 + abs(log_sum) + _score(expectation, w)[1]):
                raise OracleError(
                    f"{self.where('expect_known')} returned the log-sum {inside:.6g}, but all outputs together have "
                    f"{log_sum:.6g}: the sum is over those that agree"
                )

    def sum_of(self, verb: str, w: NDArray[np.float64], *known: Any) -> tuple[float, Feature]:
        """Result of `expect`, or of `expect_known` with what is known."""
        given = w.copy()
        answer = getattr(self.oracle, verb)(self.x, *known, given)
        log_sum, expectation = checked_expect(answer, self.oracle.n_features, lambda: self.where(verb))
        if not np.array_equal(given, w):
            raise OracleError(
                f"{self.where(verb)} modified the weights: work on a copy (solvers hand out a read-only view)"
            )
        return log_sum, expectation

    def compare_expectation(
        self, verb: str, found: list[Feature], w: NDArray[np.float64], other: NDArray[np.float64], *known: Any
    ) -> None:
        """The log-sum L is convex: L(w + d) >= L(w) + <E, d>, for +d and -d, holds for its gradient alone as d -> 0."""
        where = self.where(verb)
        log_sum, expectation = self.sum_of(verb, w, *known)
        again = self.sum_of(verb, w, *known)
        if again[0] != log_sum or not _equal(again[1], expectation):
            raise OracleError(f"{where} returned two different answers for the same weights")
        scored = [_score(feature, w) for feature in found]
        best = max(score for score, _ in scored)
        least = best + float(np.log(sum(np.exp(score - best) for score, _ in scored)))
        size = max(size for _, size in scored) + _score(expectation, w)[1]
        if least - log_sum > ROUNDING * (1.0 + size):
            raise OracleError(
                f"{where} returned the log-sum {log_sum:.6g}, but the outputs found alone have {least:.6g}: "
                f"the sum is over all outputs{' that agree with what is known' if known else ''}"
            )
        step = np.sqrt(ROUNDING * (1.0 + size)) / (1.0 + np.abs(other).max())
        for d in (step * other, -step * other):
            d[self.signs] = np.maximum(w + d, 0.0)[self.signs] - w[self.signs]
            rise, slope = self.sum_of(verb, w + d, *known)[0] - log_sum, _score(expectation, d)[0]
            if slope - rise > ROUNDING * (1.0 + size):
                raise OracleError(
                    f"{where} returned an expectation that is not the log-sum's gradient: in some direction it says "
                    f"that the log-sum changes by at least {slope:.6g}, and it changes by {rise:.6g}"
                )

    def distinct(self) -> list[Feature]:
        """The joint features of the outputs found, each once."""
        return unique([feature for _, feature in self.outputs])

    def value(self, w: NDArray[np.float64], mode: Rescaling | None, output: Output) -> tuple[float, float]:
        """The objective of argmax, and the size of the terms in it."""
        (loss, feature), true = output, self.outputs[0][1]
        score, size = _score(feature, w)
        if mode is None:
            return score, size
        if mode == "margin":
            return loss + score, loss + size
        true_score, true_size = _score(true, w)
        return loss * (1.0 - true_score + score), loss * (1.0 + true_size + size)

    def compare(self, w: NDArray[np.float64], mode: Rescaling | None, answer: Output) -> None:
        value, size = self.value(w, mode, answer)
        for k, output in enumerate(self.outputs):
            other, other_size = self.value(w, mode, output)
            if other - value > ROUNDING * (1.0 + size + other_size):
                what = "score" if mode is None else f"{mode}-rescaled score"
                which = "the true output" if k == 0 else "an output found under other weights"
                raise OracleError(
                    f"{self.where('argmax')} returned an output with the {what} {value:.6g}, "
                    f"but {which} has {other:.6g}: "
                    "correct the inference, or set inference = 'approximate' if it is a search that may miss the best"
                )

    def compare_constraints(self, all_weights: list[NDArray[np.float64]]) -> None:
        """The bound problem's most violated constraint, for every formulation declared."""
        for mode in self.oracle.rescalings:
            for penalty in self.oracle.penalties:
                problem = self.oracle.bind(self.X, self.Y, rescaling=mode, penalty=penalty)
                if problem.n_samples != len(self.X):
                    return  # its examples are others (tokens, say)
                for w in all_weights:
                    self.compare_constraint(problem, w, mode, penalty)

    def compare_constraint(
        self, problem: Problem, w: NDArray[np.float64], mode: Rescaling, penalty: Penalty | None
    ) -> None:
        b, psi = problem.separate(self.i, w)
        violation, size = b - psi @ w, np.abs(psi) @ np.abs(w)
        true_score, true_size = _score(self.outputs[0][1], w)
        for loss, feature in self.outputs:
            if loss == 0.0:
                continue
            score, other_size = _score(feature, w)
            b = 1.0 if penalty is None else np.sqrt(loss) if penalty == "quadratic" else loss
            scale = b if mode == "slack" else 1.0
            other = b - scale * (true_score - score)
            if other - violation > ROUNDING * (1.0 + b + size + scale * (true_size + other_size)):
                raise OracleError(
                    f"{self.where('argmax')} leads to a constraint that is violated by {violation:.6g} with "
                    f"rescaling={mode!r} and penalty={penalty!r}, "
                    "but one of an output found under other weights is by "
                    f"{other:.6g}: correct the inference for this penalty, or take it out of 'penalties'"
                )


def unique(features: list[Feature]) -> list[Feature]:
    """Each of some joint features once."""
    return list({tuple(array.tobytes() for array in feature): feature for feature in features}.values())


def _equal(a: Feature, b: Feature) -> bool:
    return np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1])


def _score(feature: Feature, w: NDArray[np.float64]) -> tuple[float, float]:
    """<w, psi>, and the sum of the terms' absolute values."""
    indices, values = feature
    terms = values * w[indices]
    return float(terms.sum()), float(np.abs(terms).sum())
