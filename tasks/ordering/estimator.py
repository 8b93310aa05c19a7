"""Learning to order the items of a set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.callbacks import with_callbacks
from structsvm.oracles.ordering import ORDER_LOSSES, known_orders
from structsvm.parameters import Options, declared, parameter
from structsvm.solvers import Solver
from structsvm.tasks.common.estimator import StructureEstimator, as_list, share_of
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.labels import check_no_classes
from structsvm.tasks.common.likelihood import probabilities_in
from structsvm.tasks.common.outputs import Outputs
from structsvm.tasks.common.parameters import OF_C, OF_SOLVER, Probability, Standardize, Training, check_unchanged
from structsvm.tasks.common.solver import AUTO
from structsvm.tasks.common.units import check_scale
from structsvm.tasks.ordering.model import OrderedSets, OrderingModel, distance, read_orders

if TYPE_CHECKING:
    from structsvm.arrays import Floats
    from structsvm.tasks.ordering.model import Items, Order


@declared
class ItemOrderer(Training, Standardize, Probability, StructureEstimator):
    """Linear model of the order of the items of a set: which of two comes first, by features of items and of pairs.

    An order scores the sum over its pairs, item i before item j, of

        <w, x_i - x_j> + <v, P_ij - P_ji> / 2.

    Minimises ``1/2 |(w, v)|^2 + C sum_i xi_i`` with margin rescaling by the loss. Features of items alone make the best
    order a sort; features of pairs can say more, cycles of preferences among it, and the best order is then a linear
    ordering problem. Inference is exact for up to 10 items. With more, training takes the optimum of an assignment
    relaxation, and prediction a local search.

    Parameters
    ----------
    loss : {"kendall", "zero_one", "log"}, default="kendall"
        The share of pairs in the wrong order, (1 - Kendall's tau) / 2; whether the order is wrong. "log": the log loss
        of whole orders. The last two are for sets of at most 10 items.
    C : float, "auto" or None, default="auto"
        Weight of the sum of losses. "auto": chosen on held-out sets (`validation_`), by the loss itself, see
        `structsvm.tasks.common.selection`; 0.1 (log loss: 1) with fewer than 20 sets whose order is known whole, and in
        `partial_fit` before any `fit`. None: these numbers. A solver object has its own.
    solver : {"larank", "passive_aggressive", "cutting_plane", "frank_wolfe", "perceptron"} or Solver, default="larank"
    standardize : bool, default=True
        Train on dense columns, those of mostly nonzero features of items and all of pairs, with variance 1 within sets,
        so units make no difference. `coef_` and `pair_coef_` are for the features as given, C and `result_` for the
        scaled ones.
    probability : bool, default=False
        Whether training on a margin fits the temperature that probabilities need: at the end, on held-out sets. For
        sets of at most 10 items.
    max_iter, tol, random_state
        As for the solver; None: the solver's own.
    warm_start : bool, default=False
        Whether `fit` resumes from the current model: the same run on the same sets, around the current weights on
        others.
    n_jobs : int, optional
        Threads for `predict`; while training, jobs for the rounds of batch solvers and for the certificate.
    checkpoint : path-like, optional
        File that stores the state of training after every pass (a `structsvm.Checkpoint`: after some); if it exists,
        `fit` resumes from it.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        w: the greater ``<coef_, x>``, the earlier the item.
    pair_coef_ : ndarray of shape (n_pair_features,)
        v.
    C_ : float
    validation_ : dict
        The table from which "auto" chose C.
    temperature_ : float or None
        Divisor of the scores for probabilities; 1 with ``loss="log"``, None if unknown.
    result_ : Result
        Its `inference` says whether all training sets were ordered exactly, or some by the relaxation.
    n_iter_, n_features_in_ : int

    Notes
    -----
    X is a list of sets, 1 to 1024 items each: arrays (n_items, n_features), CSR matrices, or tuples ``(rows, P)`` with
    an array P (n_items, n_items, n_pair_features), of which P[i, j] speaks for item i before item j. Predictions for a
    set without items are the empty order.

    y lists per set its items in their order, best first, as `predict` returns them; or, where the order is known in
    part, precedences: a list of pairs (i, j), item i before item j; None: nothing is known. Training completes such
    orders (`structsvm.LatentSVM`; with the log loss it sums over all that agree).

    Examples
    --------
    >>> from structsvm.datasets import make_orderings
    >>> from structsvm.tasks import ItemOrderer
    >>> X, y = make_orderings(60, noise=0.1, random_state=0)
    >>> model = ItemOrderer(C=0.01, random_state=0).fit(X[:40], y[:40])
    >>> bool(model.score(X[40:], y[40:]) > 0.9)
    True
    """

    loss: Literal["kendall", "zero_one", "log"] = parameter(Options(*ORDER_LOSSES), default="kendall", kw_only=False)
    C: float | Literal["auto"] | None = parameter(*OF_C, default=AUTO)
    solver: str | Solver = parameter(*OF_SOLVER, default="larank")

    _model_class = OrderingModel
    _reader = ""
    _inputs = ("three_d_array", "sparse")
    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Iterable[Items], y: Iterable[Order], sample_weight: ArrayLike | None = None) -> Self:
        """Train on sets of items and their orders.

        Parameters
        ----------
        X, y : see the notes of the class
        sample_weight : array-like of shape (n_sets,), optional
            Factor on each set's C.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, numbers of items or features that do not match, values that are not finite,
            orders that are no permutations, precedences with a cycle (the message names parameter or example).
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.
        """
        return self._train(X, y, sample_weight)

    @with_callbacks
    def partial_fit(
        self, X: Iterable[Items], y: Iterable[Order], classes: None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """One pass over a batch of sets, starting from the current weights; arguments are those of `fit`.

        The first call fixes the scales of features. The batch's problem is solved around the current weights w0:
        minimise ``1/2 |w - w0|^2 + C sum_i xi_i``; `result_` certifies that problem.
        """
        check_no_classes(classes, "orders have no labels")
        return self._train(X, y, sample_weight, passes=1)

    def calibrate(self, X: Iterable[Items], y: Iterable[Order]) -> Self:
        """Fit `temperature_` to ordered sets that the model was not trained on, by their likelihood."""
        return self._calibrated(as_list(X, "sets of items"), as_list(y, "orders", "y"))

    def _prepare(
        self, X: Iterable[Items], y: Iterable[Order], sample_weight: ArrayLike | None, before: OrderingModel | None
    ) -> tuple[OrderingModel, OrderedSets]:
        X, model = as_list(X, "sets of items"), before
        if not X:
            raise ValueError("X has no sets of items")
        orders = read_orders(as_list(y, "orders", "y"), len(X))
        weight = checked_sample_weight(sample_weight, len(X))
        if model is None:
            model = OrderingModel(*widths(X[0]), self.loss)
            model.set_names(X)
        else:
            check_unchanged(self, model, ("loss",))
        sets = model.item_sets(X)
        sizes = np.diff(sets.bounds)
        for i in np.flatnonzero(sizes == 0)[:1]:
            raise ValueError(f"example {i} has no items: leave it out")
        known_orders(orders, sizes.tolist())
        if not any(map(len, orders)):
            raise ValueError("y has no known order")
        if self.probability and sizes.max() > model.oracle.most_exact:
            raise ValueError(
                f"probability=True is for sets of at most {model.oracle.most_exact} items, "
                f"example {sizes.argmax()} has {sizes.max()}"
            )
        if before is None:
            check_scale(sets.rows.values)
            check_scale(sets.pairs)
        if before is None and self.standardize:
            model.set_units(sets if weight is None else sets.take(np.flatnonzero(weight)))
        if before is None:
            model.settle_sizes(sets)
        else:
            sets = model.later(sets, is_cut=self.standardize)
        return model, OrderedSets(model.in_units(sets), orders, weight=weight)

    # ---- prediction -----------------------------------------------------------------------------

    def predict(self, X: Iterable[Items], *, known: Iterable[Order] | None = None) -> list[NDArray[np.int32]]:
        """Return per set its items in the best order, an int array (n_items,).

        Exact for up to 10 items; with more the order of a local search.

        Parameters
        ----------
        X : list of sets of items
        known : list, optional
            Per set precedences (None: none), or orders, as for y: the order agrees with them.
        """
        model = self._fitted()
        known = None if known is None else as_list(known, "orders", "known")
        return Outputs(model.predict(as_list(X, "sets of items"), known, self._threads))

    def probability_of(self, X: Iterable[Items], y: Iterable[Order]) -> NDArray[np.float64]:
        """Return the probability of given orders: array (n_sets,), float64.

        An order that is known in part has the sum over all orders that agree with it.

        Raises
        ------
        ValueError
            If there are no probabilities (`temperature_` is None), and as `calibrate` does.
        """
        model = self._fitted()
        return probabilities_in(model, model.known_problem(as_list(X, "sets of items"), as_list(y, "orders", "y")))

    def predict_kbest(
        self, X: Iterable[Items], k: int, *, probabilities: bool = False
    ) -> list[list[tuple[NDArray[np.int32], float]]]:
        """Return per set its k best orders: a list of ``(order, score)``, best first.

        Fewer if fewer exist. With `probabilities` the order's probability replaces its score.

        Raises
        ------
        ValueError
            For a set of more than 10 items; for probabilities without a temperature.
        """
        return self._fitted().predict_kbest(as_list(X, "sets of items"), k, probabilities=probabilities)

    def predict_proba(self, X: Iterable[Items]) -> list[NDArray[np.float64]]:
        """Return per set an array (n_items, n_items): the probability that the row's item comes before the column's.

        An order's probability is proportional to the exponential of its score over `temperature_`; sums over all orders
        are exact. The diagonal is 0.

        Raises
        ------
        ValueError
            For a set of more than 10 items; without a temperature: train with ``probability=True`` or ``loss="log"``,
            or call `calibrate`.
        """
        return self._fitted().proba(as_list(X, "sets of items"))

    def decision_function(self, X: Iterable[Items]) -> list[NDArray[np.float64]]:
        """Return per set an array (n_items, n_items): what an order's score loses if the row's item stands right before
        the column's, and the two are exchanged.
        """
        return self._fitted().preferences(as_list(X, "sets of items"))

    def score(self, X: Iterable[Items], y: Iterable[Order], sample_weight: ArrayLike | None = None) -> float:
        """Return 1 minus the mean normalised Kendall distance: the share of pairs in the right order, a mean over sets.

        Where y is known in part, the share of its precedences. Sets of which nothing is known, or of one item, are left
        out.
        """
        found = self.predict(X)
        orders = read_orders(as_list(y, "orders", "y"), len(found))
        known_orders(orders, list(map(len, found)))
        distances = np.array([distance(*both) for both in zip(orders, found, strict=True)])
        says = ~np.isnan(distances)
        if not says.any():
            raise ValueError("y has no known order")
        return share_of(1.0 - np.where(says, distances, 0.0), says, sample_weight)

    # ---- views ----------------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        model = self._fitted()
        return model.coef[: model.oracle.n_item_features]

    @property
    def pair_coef_(self) -> Floats:
        model = self._fitted()
        return model.coef[model.oracle.n_item_features :]


def widths(x: Items) -> tuple[int, int]:
    """The numbers of features of items and of pairs; ValueError for what is no set of items."""
    rows, pairs = x if isinstance(x, tuple) and len(x) == 2 else (x, None)
    shapes = [np.shape(part) for part in (rows, *([] if pairs is None else [pairs]))]
    if [len(shape) for shape in shapes] not in ([2], [2, 3]):
        raise ValueError(f"example 0: expected an array (n_items, n_features) or (rows, P), got {x!r:.80}")
    return shapes[0][1], shapes[1][2] if len(shapes) == 2 else 0
