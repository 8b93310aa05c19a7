"""Conformal sets of labels: they have the true ones as often as promised."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from numbers import Integral
from typing import TYPE_CHECKING, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from structsvm.parameters import FLAG, NONE, RANDOM_STATE, Constraints, Interval, Options, declared, parameter
from structsvm.risk.base import SHARE, Promise, at_hand, chosen, fresh, generator, trained_on
from structsvm.risk.bounds import check_weights, conformal_quantile, conformal_rank, mean_quantile, needed_for_quantile
from structsvm.risk.outputs import kind_of, n_inputs, unwrapped
from structsvm.risk.strangeness import ROWS, SUBTREES, Units, check_units, classes, path_of, units_of, values_at
from structsvm.risk.tables import UNSEEN
from structsvm.risk.wrapped import learnt_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Floats, LabelArray
    from structsvm.model_file import Destination
    from structsvm.risk.strangeness import Strange
    from structsvm.risk.wrapped import Estimator, Inputs, Outputs
    from structsvm.structures.taxonomy import Taxonomy

# Entries of labels that an estimator of a fold does not know.
NEVER = np.inf


@declared
class ConformalSets(Promise):
    """Predicts sets of labels that have the true ones with probability ``1 - alpha``, whatever the estimator is.

    On outputs that the estimator has not seen, `calibrate` finds how strange the truth may be to it: 1 less its
    probability, or how far the best output with it falls short of the best of all. A set has all labels that are no
    stranger, and the best one (split conformal prediction: Papadopoulos et al. 2002). The promise is a mean over
    outputs and calibrations, and assumes that later outputs are drawn as the held-out ones were: whole outputs, not
    their tokens. Sets are of the labels of each token or node, of the heads of each word, of classes; of label sets,
    of all that may be in it; of a taxonomy, the labels of a subtree.

    Parameters
    ----------
    estimator : estimator
        `SequenceLabeler`, `GraphLabeler`, `DependencyParser`, `MultilabelClassifier`, `TaxonomyClassifier` or another
        classifier, of scikit-learn too, or a pipeline that ends in one. `calibrate` takes it fitted; `fit` trains a
        clone.
    alpha : float, default=0.1
        The probability that the truth is not in its set.
    cover : {"output", "unit"}, default="output"
        What has the probability ``1 - alpha``: that all sets of an output are right at once, or that the set of a unit
        drawn from the output is (a token, a word): smaller sets, by conformal risk control (Angelopoulos et al. 2022).
    subtree : bool or "auto", default="auto"
        Whether sets of nodes of a taxonomy are the labels of a subtree; "auto": those of a `TaxonomyClassifier` are.
    by_label : bool, default=False
        For classes: keep the promise for each true class, by a threshold for each.
    cv : int, optional
        `fit` trains so many estimators, each on all folds but one, so that all examples are held out once (CV+: Barber
        et al. 2021): for few examples. Proven is ``1 - 2 alpha - sqrt(2 / n)`` then (their theorem 4), and about
        ``1 - alpha`` is what is found.
    held_out : float, default=0.3
        The share of the examples that `fit` holds out without `cv`.
    random_state : int, RandomState or None, default=None
        For `fit`: which ones.

    Attributes
    ----------
    estimator_ : estimator
        With `cv` it is trained on all examples, and its labels are those of the folds' estimators.
    quantile_ : float or dict
        The greatest strangeness in a set; by class with `by_label`, by group if `calibrate` was given groups. With
        `cv` there is none.
    n_calibration_ : int
        The number of held-out outputs.

    Examples
    --------
    >>> from structsvm.datasets import make_sequences
    >>> from structsvm.risk import ConformalSets
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = make_sequences(300, random_state=0)
    >>> tagger = SequenceLabeler(C=0.1, random_state=0).fit(X[:200], y[:200])
    >>> sets = ConformalSets(tagger, alpha=0.2).calibrate(X[200:], y[200:]).predict(X[:1])
    >>> len(sets[0]) == len(X[0]), all(len(labels) > 0 for labels in sets[0])
    (True, True)
    """

    estimator: object = parameter(kw_only=False)
    alpha: float = parameter(SHARE, default=0.1)
    cover: Literal["output", "unit"] = parameter(Options("output", "unit"), default="output")
    subtree: bool | Literal["auto"] = parameter(FLAG, Options("auto"), default="auto")
    by_label: bool = parameter(FLAG, default=False)
    cv: int | None = parameter(Interval(Integral, 2), NONE, default=None)
    held_out: float = parameter(SHARE, default=0.3)
    random_state: int | np.random.RandomState | None = parameter(*RANDOM_STATE, default=None)
    _constraints: ClassVar[Constraints]

    # ---- calibration ------------------------------------------------------------------------------

    def fit(self, X: Inputs, y: Outputs | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train clones of the estimator, and calibrate on the examples that each has not seen.

        Parameters
        ----------
        X, y
            As the estimator's `fit` takes them.
        sample_weight : array-like, optional
            For both; not with `cv`.

        Returns
        -------
        self
        """
        if self.cv is None:
            return super().fit(X, y, sample_weight)
        self._check_wrapped()
        if sample_weight is not None or self.by_label or self.cover == "unit":
            raise ValueError("cv goes without sample_weight, by_label and cover='unit'")
        X, y = at_hand(X), None if y is None else at_hand(y)
        n = n_inputs(X)
        if conformal_rank(n, self.alpha) > n:
            raise ValueError(f"alpha={self.alpha:g} needs at least {needed_for_quantile(self.alpha)} examples, got {n}")
        fold, parts = generator(self.random_state).permutation(n) % self.cv, []
        for k in range(self.cv):
            (X_known, y_known), (X_held, y_held) = (
                (chosen(X, part), None if y is None else chosen(y, part)) for part in (fold != k, fold == k)
            )
            trained = trained_on(fresh(self.estimator), X_known, y_known)
            X_own, y_own, _ = self._read(trained, X_held, y_held, None)
            estimator, inputs = unwrapped(trained, X_own)
            parts.append((trained, np.sort(worst_of(self._values(estimator, inputs, y_own)))))
        trained = trained_on(fresh(self.estimator), X, y)
        self._store({"folds_": parts, "quantile_": None, "n_calibration_": n}, trained)
        return self

    def save(self, path: Destination, *, training_state: bool | None = None) -> None:
        """Write the estimator and what is promised to one file; see `RiskController.save`. TypeError with `cv`."""
        check_is_fitted(self)
        if self.quantile_ is None:
            raise TypeError(
                f"a model file holds one estimator, and with cv={self.cv} there are several: pickle the whole"
            )
        super().save(path, training_state=training_state)

    def calibrate(
        self,
        X: Inputs,
        y: Outputs | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Settle the sets, on examples that the estimator has not seen.

        Nothing may have been learnt from them: no weights, no C, no temperature.

        Parameters
        ----------
        X, y, sample_weight
            See `RiskController.calibrate`.
        groups : array-like of shape (n_inputs,), optional
            A group per input: the promise is kept within each, where no later weight is above the largest of its
            group. `predict` needs them too.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For fewer outputs, in a group or of a class, than are needed (the message says how many), for unknown ones,
            and if the estimator knows the labels of too few.
        """
        self._check_wrapped()
        estimator = self._trained()
        before = learnt_by(estimator)
        X, y, weight = self._read(estimator, X, y, sample_weight)
        self._store(self._calibrate(estimator, X, y, weight, groups), estimator, before)
        return self

    def _calibrate(
        self, estimator: Estimator, X: Inputs, y: Outputs, weight: Floats | None, groups: ArrayLike | None = None
    ) -> dict[str, object]:
        estimator, X = unwrapped(estimator, X)
        n = n_inputs(X)
        names = None if groups is None else group_of_each(groups, n)
        if self.by_label:
            names = self._classes_of(estimator, X, y, names)
        values = self._values(estimator, X, y)
        if names is None:
            quantile: float | dict[Hashable, float] = self._quantile(values, weight)
        else:
            quantile = {}
            places: dict[Hashable, list[int]] = {}
            for i, name in enumerate(names):
                places.setdefault(name, []).append(i)
            for name, part in places.items():
                own = None if weight is None else weight[part]
                try:
                    quantile[name] = self._quantile([values[i] for i in part], own)
                except ValueError as error:
                    raise ValueError(f"{'class' if self.by_label else 'group'} {name!r}: {error}") from None
        return {"quantile_": quantile, "n_calibration_": n}

    def _quantile(self, values: list[Floats], weight: Floats | None) -> float:
        """The greatest strangeness of some outputs, each given by its true labels'; ValueError if there is none."""
        if self.cover == "unit":
            check_weights(weight)
            own = np.ones(len(values)) if weight is None else weight / weight.max()
            sizes = np.array(list(map(len, values)))
            shares = np.repeat(own / np.maximum(sizes, 1), sizes)
            quantile = mean_quantile(np.concatenate(values), shares, float(own.sum()), self.alpha)
        else:
            quantile = conformal_quantile(worst_of(values), self.alpha, weight)
        if quantile == NEVER:
            n_known = int(np.isfinite(worst_of(values)).sum())
            raise ValueError(
                f"no sets have the truth with probability {1.0 - self.alpha:g}: the estimator knows all labels of only "
                f"{n_known} of {len(values)} held-out outputs; train it on more labels, or take a greater alpha"
            )
        return quantile

    def _units(self, estimator: Estimator) -> Units:
        """The units that have sets."""
        is_taxonomy = kind_of(estimator) == "taxonomy"
        if self.subtree is True and not is_taxonomy:
            raise ValueError(f"subtree=True is for a TaxonomyClassifier, and this is {type(estimator).__name__}")
        return SUBTREES if self.subtree and is_taxonomy else units_of(estimator)

    def _values(self, estimator: Estimator, X: Inputs, y: Outputs) -> list[Floats]:
        """Per output, the strangeness of its true labels."""
        units = self._units(estimator)
        strange, true = units.strange(estimator, X), units.true(estimator, X, y)
        check_units(units, strange, true)
        return [values_at(*pair) for pair in zip(strange, true, strict=True)]

    def _classes_of(self, estimator: Estimator, X: Inputs, y: Outputs, groups: list[Hashable] | None) -> list[Hashable]:
        """The true class of each row; ValueError where outputs are no classes."""
        if groups is not None:
            raise ValueError("groups and by_label do not go together")
        if self._units(estimator) is not ROWS:
            raise ValueError(
                f"by_label is for sets of classes, and {type(estimator).__name__} has others"
                + "; take subtree=False" * (self._units(estimator) is SUBTREES)
            )
        ids = [int(own[0, 1]) for own in ROWS.true(estimator, X, y)]
        if UNSEEN in ids:
            raise ValueError(
                f"by_label: the estimator does not know the class of row {ids.index(UNSEEN)}: leave it out"
            )
        names = classes(estimator)
        return [names[k] for k in ids]

    # ---- prediction -------------------------------------------------------------------------------

    def predict_masks(
        self, X: Inputs, *, groups: ArrayLike | None = None
    ) -> list[NDArray[np.bool_]] | NDArray[np.bool_]:
        """Return which labels are in the sets: per input a bool array (n_units, n_labels).

        Columns are in the order of the estimator's labels, for heads from 0, the root; for rows and sets of labels one
        array (n_inputs, n_labels).
        """
        masks, _, units, _ = self._masks(X, groups, *self._inputs(X))
        return np.concatenate(masks) if units.is_row and masks else masks

    def predict(self, X: Inputs, *, groups: ArrayLike | None = None) -> list[object]:
        """Return the sets: per input a list of labels for each token, node or word, the best label first.

        For rows a list of classes; of sets of labels, all that may be in it; of a taxonomy, the node above the labels.
        What `SequenceLabeler.predict` takes as ``allowed`` has the same form.
        """
        estimator, inputs = self._inputs(X)
        masks, strange, units, names = self._masks(X, groups, estimator, inputs)
        if units is SUBTREES:
            return [
                top_of(estimator.taxonomy_, node, {names[k] for k in np.flatnonzero(mask[0])})
                for node, mask in zip(cast("LabelArray", estimator.predict(inputs)).tolist(), masks, strict=True)
            ]
        found = [
            [in_order_of(each, mask, names) for mask, each in zip(own, values, strict=True)]
            for own, values in zip(masks, strange, strict=True)
        ]
        return [own[0] for own in found] if units.is_row else list(found)

    def _masks(
        self, X: Inputs, groups: ArrayLike | None, estimator: Estimator, inputs: Inputs
    ) -> tuple[list[NDArray[np.bool_]], Strange, Units, list[Hashable]]:
        """Masks, strangeness, units and names of the labels; X are the inputs of the estimators of folds."""
        units, n = self._units(estimator), n_inputs(inputs)
        names = [] if units.names is None else units.names(estimator)
        if (groups is None) == (isinstance(self.quantile_, dict) and not self.by_label):
            raise ValueError("predict takes groups if calibrate was given groups, and only then")
        strange = units.strange(estimator, inputs)
        if self.quantile_ is None:
            masks = self._masks_of_folds(X, units, names)
        elif self.by_label:
            each = cast("dict[Hashable, float]", self.quantile_)
            most = np.array([each.get(name, np.inf) for name in names])
            masks = [own <= most for own in strange]
        elif groups is not None:
            most_of = [self._of_group(name) for name in group_of_each(groups, n)]
            masks = [own <= most for own, most in zip(strange, most_of, strict=True)]
        else:
            masks = [own <= cast("float", self.quantile_) for own in strange]
        if not units.many:
            for mask, own in zip(masks, strange, strict=True):
                mask[np.arange(len(own)), own.argmin(axis=1)] = True
        return masks, strange, units, names

    def _of_group(self, name: Hashable) -> float:
        """The greatest strangeness in a group; ValueError for one without."""
        known = cast("dict[Hashable, float]", self.quantile_)
        if name not in known:
            raise ValueError(f"groups: {name!r} is none of the groups of calibrate, {list(known)!r:.200}")
        return float(known[name])

    def _masks_of_folds(self, X: Inputs, units: Units, names: list[Hashable]) -> list[NDArray[np.bool_]]:
        """Labels stranger than fewer held-out truths than the rank, each by the estimator that had not seen it."""
        counts: list[NDArray[np.int64]] = []
        for trained, scores in self.folds_:
            estimator, inputs = unwrapped(trained, X)
            strange = units.strange(estimator, inputs)
            if units.names is not None and (own := units.names(estimator)) != names:
                at = {name: k for k, name in enumerate(own)}
                columns = np.array([at.get(name, len(own)) for name in names])
                strange = [np.pad(one, ((0, 0), (0, 1)), constant_values=NEVER)[:, columns] for one in strange]
            below = [np.searchsorted(scores, one, side="left") for one in strange]
            counts = below if not counts else [a + b for a, b in zip(counts, below, strict=True)]
        rank = conformal_rank(self.n_calibration_, self.alpha)
        return [own < rank for own in counts]

    def score(
        self,
        X: Inputs,
        y: Outputs | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> float:
        """Return the share of outputs that have all true labels in their sets; `groups` are those of `predict`."""
        X, y, weight = self._asked(X, y, sample_weight)
        estimator, inputs = self._inputs(X)
        masks, strange, units, _ = self._masks(X, groups, estimator, inputs)
        truth = units.true(estimator, inputs, y)
        check_units(units, strange, truth)
        pairs = zip(masks, truth, strict=True)
        inside = [not np.isinf(values_at(np.where(mask, 0.0, NEVER), true)).any() for mask, true in pairs]
        return float(np.average(inside, weights=weight))


def worst_of(values: list[Floats]) -> Floats:
    """The strangest true label of each output."""
    return np.array([own.max(initial=-np.inf) for own in values])


def group_of_each(groups: ArrayLike, n: int) -> list[Hashable]:
    """Groups as a list; ValueError unless there is one per input."""
    if isinstance(groups, str) or not isinstance(groups, Iterable) or getattr(groups, "ndim", 1) != 1:
        raise ValueError(f"groups must have one entry per input, in one dimension, got {groups!r:.80}")
    found: list[Hashable] = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)  # type: ignore[arg-type]
    if len(found) != n:
        raise ValueError(f"groups has {len(found)} entries, X has {n} inputs")
    for i, name in enumerate(found):
        check_group(name, i)
    return found


def check_group(name: Hashable, i: int) -> None:
    """ValueError for the group of input i that is missing, or that is no value which groups are looked up by."""
    try:
        hash(name)
    except TypeError:
        raise ValueError(
            f"groups: input {i} has {name!r:.80}, which cannot be hashed; take a text or a tuple"
        ) from None
    try:
        is_missing = name is None or bool(name != name)
    except TypeError:  # neither equal to itself nor not: NA of pandas
        is_missing = True
    if is_missing:
        raise ValueError(f"groups: input {i} has none, but {name!r}")


def in_order_of(strange: Floats, mask: NDArray[np.bool_], names: list[Hashable]) -> list[Hashable]:
    """The labels of a mask, the least strange first, by name or number."""
    order = np.argsort(strange, kind="stable")
    return [names[k] if names else k for k in order[mask[order]].tolist()]


def top_of(taxonomy: Taxonomy, node: Hashable, labels: set[Hashable]) -> Hashable:
    """The first node from a node up to the root that all labels are or lie below."""
    return next(
        top
        for top in path_of(taxonomy, node)
        if all(top in {*taxonomy.ancestors(own), taxonomy.root} for own in labels)
    )
