"""Words labelled with the concepts of a world that they refer to (Bordes 2010, appendix C)."""

from __future__ import annotations

from collections import Counter
from numbers import Integral
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.callbacks import with_callbacks
from structsvm.parameters import (
    COUNT,
    FLAG,
    NONE,
    POSITIVE,
    Interval,
    Kind,
    Options,
    Seed,
    checked_k,
    declared,
    parameter,
)
from structsvm.tasks.common.estimator import StructureEstimator
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.inspection.confidence import without
from structsvm.tasks.common.labels import check_no_classes
from structsvm.tasks.common.outputs import Outputs
from structsvm.tasks.common.parameters import Running
from structsvm.tasks.concepts._network import STRATEGIES
from structsvm.tasks.concepts.model import SIZES, ConceptModel
from structsvm.tasks.concepts.solver import ConceptTraining
from structsvm.tasks.concepts.worlds import CONCEPTS, read_labels

if TYPE_CHECKING:
    from collections.abc import Iterable

    from structsvm.solvers import Solver
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.concepts.model import Scenes, SentenceInWorld, WordLabels


def size(name: str) -> Interval:
    """Return the interval that a size of the network must be in."""
    low, high = SIZES[name]
    return Interval(Integral, low, high, closed="both")


@declared
class ConceptLabeler(Seed, Running, StructureEstimator):
    """Labels each word of a sentence with the concept of a world that it refers to, or ``"-"``.

    A network (thesis, appendix C) learns vectors of words and of concepts. A concept is its name together with what
    the world's relations currently say about it, such as where it is; so "he" in "he cooks the rice" can be resolved to
    whoever is where the rice is. Words are labelled greedily, the surest first, and each label helps with the next
    ones.

    Parameters
    ----------
    relations : list of str, optional
        The relations of worlds to use; by default all that the worlds of the first training have. An empty list: no
        knowledge of the world.
    strategy : {"order_free", "left_right", "independent"}, default="order_free"
        Which word is labelled next: the one whose best label scores highest, the next one, or each by itself, from
        words alone.
    dimension : int, default=20
        Size of the vectors of words and names.
    hidden : int, default=200
        Size of the space that words in context share with concepts.
    window : int, default=6
        Words, and their labels, to the left and to the right that a label may depend on.
    learning_rate : float, default=0.02
        Length of a step of gradient descent.
    max_iter : int, optional
        Passes over the data; a pass without a wrong label ends training. By default 60,000 divided by the number of
        sentences, but at least 10 and at most 100.
    lowercase : bool, default=True
    random_state : int, RandomState or None
        Seeds the vectors and layers at the start, and the order of sentences.
    warm_start : bool, default=False
        Whether `fit` resumes from the current model, on the same sentences or others.
    n_jobs : int, optional
        Threads for `predict`; -1: one per processor.
    checkpoint : path-like, optional
        File that stores the state of training after every pass (a `structsvm.Checkpoint`: after some); if it exists,
        `fit` resumes from it.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of str
        The labels.
    relations_ : list of str
    result_ : Result
        Passes, labels given (`n_argmax`), seconds; no objective is claimed.
    n_iter_ : int

    Notes
    -----
    X is a list of pairs ``(sentence, world)``. A sentence is text, split at blanks, or a list of words. A world is a
    dict of relations, or an object with such attributes, and a relation a dict from concepts to concepts (or to any
    other text: a property)::

        {"location": {"john": "kitchen", "rice": "kitchen"}, "containedby": {"rice": "fridge"}}

    All learnt labels may be predicted, or only those in the collection ``"concepts"`` of a world that has
    one. None is a world about which nothing is known. One object may be the world of many sentences, and is read once.

    y has per sentence a list with the label of each word, or a set (with repetitions: a `collections.Counter`) of
    labels without their words; the other words are then ``"-"``.

    Examples
    --------
    >>> from structsvm.datasets import make_concept_world
    >>> from structsvm.tasks import ConceptLabeler
    >>> words, concepts, worlds = make_concept_world(400, random_state=0)
    >>> X = list(zip(words, worlds))
    >>> model = ConceptLabeler(relations=["location", "containedby"], random_state=0).fit(X[:300], concepts[:300])
    >>> model.score(X[300:], concepts[300:]) > 0.3
    True
    """

    relations: list[str] | None = parameter(Kind((list, tuple), "a list of str"), NONE, default=None, kw_only=False)
    strategy: str = parameter(Options(*STRATEGIES), default="order_free")
    dimension: int = parameter(size("dimension"), default=20)
    hidden: int = parameter(size("hidden"), default=200)
    window: int = parameter(size("window"), default=6)
    learning_rate: float = parameter(POSITIVE, default=0.02)
    max_iter: int | None = parameter(COUNT, NONE, default=None)
    lowercase: bool = parameter(FLAG, default=True)

    _confidence = without
    _model_class = ConceptModel
    _reader = ""
    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self, X: Iterable[SentenceInWorld], y: Iterable[WordLabels], sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train on sentences in their worlds, and their labels.

        Parameters
        ----------
        X : list of (sentence, world)
        y : list of labels
            See the notes of the class.
        sample_weight : array-like of shape (n_sentences,), optional
            Factor on the steps of each sentence.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For a parameter out of range, or an invalid sentence, world or label; the message names parameter or
            sentence. Or if the network overflows.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.
        """
        return self._train(X, y, sample_weight)

    @with_callbacks
    def partial_fit(
        self,
        X: Iterable[SentenceInWorld],
        y: Iterable[WordLabels],
        classes: None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One pass over more sentences, also with new words, concepts and labels.

        The relations are those of the first call. `classes` must be None: y gives the labels.
        """
        check_no_classes(classes, "y tells the labels")
        return self._train(X, y, sample_weight, passes=1)

    def _check_params(self) -> None:
        super()._check_params()
        names = self.relations or []
        if not all(isinstance(name, str) and name not in ("", CONCEPTS) for name in names) or (
            len(set(names)) != len(names)
        ):
            raise ValueError(
                f"The 'relations' parameter of {type(self).__name__} must be a list of distinct str, {CONCEPTS!r} not "
                f"among them. Got {names!r:.80} instead."
            )

    def _make_solver(self, before: TaskModel[Scenes] | None = None) -> Solver:
        given = {name: getattr(self, name) for name in ConceptTraining().get_params()}
        return ConceptTraining(**{name: value for name, value in given.items() if value is not None})

    def _prepare(
        self,
        X: Iterable[SentenceInWorld],
        y: Iterable[WordLabels],
        sample_weight: ArrayLike | None,
        before: ConceptModel | None,
    ) -> tuple[ConceptModel, Scenes]:
        model = ConceptModel(self) if before is None else before
        model.follow(self)
        examples = model.read_labeled(X, y, sample_weight)
        if not len(examples):
            raise ValueError("there are no sentences to train on")
        return model, examples

    # ---- prediction -----------------------------------------------------------------------------

    def predict(self, X: Iterable[SentenceInWorld]) -> list[list[str]]:
        """Return the label of each word of each sentence: a list of lists."""
        return Outputs(self._fitted().predict(X, self._threads)[0])

    def predict_order(self, X: Iterable[SentenceInWorld]) -> list[list[int]]:
        """Return when each word was labelled, 0 for the first of its sentence: a list of lists."""
        return list(self._fitted().predict(X, self._threads)[1])

    def score(
        self, X: Iterable[SentenceInWorld], y: Iterable[WordLabels], sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the share of sentences in which all labels are right; in any order if y has a set or Counter."""
        X = list(X)
        found = self.predict(X)
        wanted = read_labels(y, found)
        right = [
            labels == said if isinstance(labels, list) else labels == Counter(said)
            for labels, said in zip(wanted, found, strict=True)
        ]
        return float(np.average(right, weights=checked_sample_weight(sample_weight, len(right)))) if right else np.nan

    # ---- views ----------------------------------------------------------------------------------

    def similar_concepts(self, concept: str, k: int = 3) -> list[str]:
        """Return the k labels whose vectors are nearest to a concept's (table C.3 of the thesis)."""
        k = checked_k(k)
        return list(self._fitted().similar(concept, k))

    @property
    def relations_(self) -> list[str]:
        return list(self._fitted().relations)

    @property
    def classes_(self) -> NDArray[np.str_]:
        return np.array(sorted(self._fitted().labels))
