"""Dependency parsing with a large margin (McDonald, Crammer and Pereira 2005)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from numpy.typing import ArrayLike

from structsvm.callbacks import with_callbacks
from structsvm.export.folders import write_files
from structsvm.features.inputs.places import located
from structsvm.metrics import dependency_scores
from structsvm.parameters import Options, check_arguments, declared
from structsvm.tasks.common.estimator import StructureEstimator
from structsvm.tasks.common.likelihood import probabilities_in
from structsvm.tasks.common.outputs import Outputs
from structsvm.tasks.common.questions.loop import LearningLoop
from structsvm.tasks.dependency.arcs import arcs_of, known_arcs_of, single_rooted
from structsvm.tasks.dependency.model import DependencyModel
from structsvm.tasks.dependency.parameters import DependencyParserParameters, features_of, make_dependency_solver
from structsvm.tasks.dependency.portable import TARGETS, runtime_files
from structsvm.tasks.dependency.preparation import prepare
from structsvm.tasks.dependency.questions import TreeReader, labels_in
from structsvm.tasks.dependency.words import words_of

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Hashable, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from structsvm.arrays import Floats
    from structsvm.solvers import Solver
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.dependency.examples import Arcs, ArcsLike, ParsedSentences
    from structsvm.tasks.dependency.words import SentenceLike


@declared
class DependencyParser(DependencyParserParameters, LearningLoop, StructureEstimator):
    """A parser of dependency trees with labelled arcs, trained with a large margin.

    Parameters
    ----------
    C : float, "auto" or None, default="auto"
        Weight of the sum of slacks. "auto": chosen on held-out sentences (`validation_`), of at most 1000, see
        `structsvm.tasks.common.selection`; 0.1 with fewer than 20 trees, and in `partial_fit` before any `fit`.
        None: 0.1. A solver given as an object has its own.
    solver : {"larank", "cutting_plane", "frank_wolfe", "passive_aggressive", "perceptron"} or Solver
        Default "larank". A name, to which `C`, `max_iter`, `tol`, `random_state` and `checkpoint` apply; or a solver
        object with its own parameters.
    loss : {"hamming", "log"}, default="hamming"
        What training minimises: a margin loss, the number of words with a wrong head or label; or the
        negative log-likelihood of the trees, by `structsvm.solvers.ConditionalLikelihood`, which stores a number per
        possible labelled arc: for small treebanks.
    projective : bool or "auto", default="auto"
        Whether arcs may not cross. "auto": the first stage lets them if 2 % of the training arcs cross others, the
        second one if any do. Crossing arcs of training trees are never changed, even if the parser cannot predict them.
    order : {1, 2}, default=2
        2: a second stage scores pairs of arcs, too: neighbours below one head, and words with their head's head. It is
        trained after the first one, on trees that are wholly known, if there are at least 20, and searches among the
        arcs that score best by themselves: inference is then approximate. 1, and with the loss "log": arcs alone,
        exactly.
    probability : bool, default=False
        Whether training on a margin fits the temperature at which scores are probabilities: at the end, on held-out
        trees.
    subtypes : bool, default=True
        Whether labels keep what follows a colon: ``acl:relcl`` or ``acl``.
    features : ArcFeatures, optional
        What arcs, their labels and pairs of arcs see of words: templates, hashing, columns of the user's own.
    max_length : int, default=1000
        Longest sentence, in words.
    max_iter : int, optional
        None: the solver's own; 6 passes of LaRank, or 4 that start from where 3 over each half of the trees have come,
        if there is a second stage.
    tol, random_state, checkpoint
        As for the solver; None: the solver's own.
    warm_start : bool, default=False
        Whether `fit` resumes from the current model, with its labels and features: the same run on the same trees,
        around the current weights on others.
    n_jobs : int, optional
        Threads for prediction; while training, jobs for the rounds of batch solvers and for the certificate.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of str
        The labels, sorted.
    projective_ : bool
        Whether arcs may not cross.
    n_crossing_ : int
        Trees with crossing arcs among those that the model was first trained on.
    coef_ : ndarray of shape (n_features,), float32
    C_ : float
        The C of the last training.
    validation_ : dict
        The table from which "auto" chose C.
    temperature_ : float or None
        Divisor of the scores for probabilities; None if unknown.
    result_ : Result
    n_iter_ : int

    Notes
    -----
    A sentence is a `structsvm.structures.dependencies.DependencyTree` (of `read_conllu`), text that is cut at its
    blanks, or a list of words: strings, pairs (form, tag), dicts of CoNLL-U's columns, or `Word`. Its tree is a list of
    (head, label), one per word; head 0 is the root, k the k-th word. Trees have one word below the root. In training, a
    head or a label may be None: it is completed by `structsvm.LatentSVM`.

    Examples
    --------
    >>> from structsvm.tasks import DependencyParser
    >>> X = [[("cats", "NOUN"), ("sleep", "VERB")], [("the", "DET"), ("dog", "NOUN"), ("barks", "VERB")]]
    >>> y = [[(2, "nsubj"), (0, "root")], [(2, "det"), (3, "nsubj"), (0, "root")]]
    >>> parser = DependencyParser(random_state=0).fit(X, y)
    >>> parser.predict([[("the", "DET"), ("cat", "NOUN"), ("sleeps", "VERB")]])
    [[(2, 'det'), (3, 'nsubj'), (0, 'root')]]
    """

    _model_class = DependencyModel
    _reader = "structures.dependencies.read_conllu"
    _requires_y = False
    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self, X: Collection[SentenceLike], y: Collection[ArcsLike] | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train on sentences and their trees.

        Parameters
        ----------
        X : list of sentences
            See the notes of the class.
        y : list of trees, optional
            A list of (head, label) per sentence, or `DependencyTree`. None: those of X, which are then
            `DependencyTree`.
        sample_weight : array-like of shape (n_sentences,), optional
            Factor on each sentence's C.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, a cycle, no root, a head or a number of arcs that does not
            fit the sentence (the message names parameter, or sentence and word).
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.

        Warns
        -----
        AdviceWarning
            With ``projective=True``: many trees have crossing arcs. Trees have several words below the root: they are
            trained on with the others below the first.
        """
        return self._train(X, y, sample_weight)

    @with_callbacks
    def partial_fit(
        self,
        X: Collection[SentenceLike],
        y: Collection[ArcsLike] | None = None,
        classes: Iterable[str] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """One pass over a batch, starting from the current weights.

        The first call fixes the labels: those of `classes`, or of the batch; a later tree with another one raises
        ValueError. The batch's problem is solved around the current weights w0: minimise ``1/2 |w - w0|^2 + C sum_i
        xi_i``; `result_` certifies that problem.
        """
        return self._train(X, y, sample_weight, passes=1, classes=classes)

    def calibrate(self, X: Collection[SentenceLike], y: Collection[ArcsLike] | None = None) -> Self:
        """Fit `temperature_` to sentences that the model was not trained on, by the likelihood of their whole trees."""
        return self._calibrated(X, single_rooted(arcs_of(X, y)))

    def _fitted(self) -> DependencyModel:
        model = super()._fitted()
        columns = features_of(self).columns
        if columns is not None and model.own.features is None:  # it was read from a file
            model.set_columns(columns)
        return model

    def _make_solver(self, before: TaskModel[ParsedSentences] | None = None) -> Solver:
        return make_dependency_solver(self)

    def _prepare(
        self,
        X: Collection[SentenceLike],
        y: Collection[ArcsLike] | None,
        sample_weight: ArrayLike | None,
        before: DependencyModel | None,
        classes: Iterable[str] | None = None,
    ) -> tuple[DependencyModel, ParsedSentences]:
        return prepare(self, X, y, before, classes=classes, weight=sample_weight)

    # ---- the learning loop ------------------------------------------------------------------------

    def _reader_of(self, model: DependencyModel, X: Collection[SentenceLike]) -> TreeReader:
        return TreeReader(model, X)

    def _labels_in(self, y: Sequence[object]) -> set[Hashable]:
        labels = labels_in(y)
        return labels if self.subtypes else {str(label).partition(":")[0] for label in labels}

    # ---- prediction -----------------------------------------------------------------------------

    def predict(self, X: Collection[SentenceLike]) -> list[Arcs]:
        """Return per sentence a list of (head, label), one per word.

        Raises
        ------
        ValueError
            For an invalid sentence, or one longer than `max_length`; the message names its index.
            For words without a column (tags, say) that the words of training had, or with the values of another one.
        """
        return Outputs(self._fitted().predict(X, n_jobs=self._threads))

    def predict_kbest(
        self, X: Collection[SentenceLike], k: int, *, probabilities: bool = False
    ) -> list[list[tuple[Arcs, float]]]:
        """Return per sentence a list of ``(arcs, score)``, its k best trees, best first (fewer if fewer exist).

        With order 2 they are, in the order of their whole scores, the trees that score best by arcs alone and that of
        `predict`, whose search may have missed the first of them. With `probabilities` the tree's probability replaces
        its score: among all trees, by arcs alone, at `temperature_`.
        """
        return list(self._fitted().predict_kbest(X, k, probabilities=probabilities))

    def predict_proba(self, X: Collection[SentenceLike]) -> list[NDArray[np.float64]]:
        """Return per sentence an array (n_words, n_words + 1): the probability of each head of each word.

        Column 0 is the root. Sums over all trees, scored by arcs alone, at `temperature_`; ValueError without one.
        """
        return list(self._fitted().head_chances(X))

    def probability_of(self, X: Collection[SentenceLike], y: Collection[ArcsLike] | None = None) -> NDArray[np.float64]:
        """Return the probability of given trees: array (n_sentences,), float64.

        Among all trees of each sentence, with their relations; X and y are those of `fit`, and each tree is whole.

        Raises
        ------
        ValueError
            If there are no probabilities (`temperature_` is None), and as `calibrate` does.
        """
        model = self._fitted()
        problem = model.known_problem(X, single_rooted(arcs_of(X, y)), "probability_of")
        return probabilities_in(model, problem)

    def score(self, X: Collection[SentenceLike], y: Collection[ArcsLike] | None = None) -> float:
        """Return the unlabelled attachment score of predictions: the share of words with the right head."""
        with located(X):
            arcs = known_arcs_of(X, y)
        return dependency_scores(arcs, self.predict([words_of(sentence) for sentence in X])).uas

    def export(self, folder: str | os.PathLike[str], to: str = "c") -> None:
        """Write the model to a folder for use without Python: trees and their scores are the same, bit for bit.

        Parameters
        ----------
        folder : path-like
            A folder, made if it is missing. Files of earlier exports are replaced.
        to : {"c", "wasm"}, default="c"
            "c": ``model.bin``, and ``structsvm_runtime.c`` and ``.h``, in C99, that read it. "wasm": ``model.bin``, and
            the same as WebAssembly with a module in JavaScript.

        Raises
        ------
        ValueError
            For a model with columns of the user's own (`ArcFeatures.columns`).
        ImportError
            For "wasm" without zig, which compiles the runtime.

        Examples
        --------
        >>> import os, tempfile
        >>> from structsvm.tasks import DependencyParser
        >>> folder = tempfile.mkdtemp()
        >>> X, y = [[("cats", "NOUN"), ("sleep", "VERB")]], [[(2, "nsubj"), (0, "root")]]
        >>> DependencyParser(random_state=0).fit(X, y).export(folder)
        >>> sorted(os.listdir(folder))
        ['model.bin', 'structsvm_runtime.c', 'structsvm_runtime.h']
        """
        check_arguments("DependencyParser.export", locals(), to=Options(*TARGETS))
        write_files(folder, runtime_files(self._fitted(), to))

    # ---- views ---------------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        return self._fitted().weights

    @property
    def projective_(self) -> bool:
        return bool(self._fitted().projective)

    @property
    def n_crossing_(self) -> int:
        return int(self._fitted().n_crossing)
