"""Label sequences: chunking, named entities, part-of-speech tags, handwritten words (thesis, section 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, count, islice, pairwise
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from structsvm.callbacks import with_callbacks
from structsvm.export.folders import TARGETS, write_files
from structsvm.features.attributes import unwrapped
from structsvm.metrics._counts import mark_for
from structsvm.metrics._labels import check_no_nan_in, check_sequences
from structsvm.parameters import Options, check_arguments, declared
from structsvm.shards.sequences import SequenceShards
from structsvm.tasks.common.estimator import StructureEstimator
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.inspection.confidence import of_labelling
from structsvm.tasks.common.labels import Not, agreement, check_stream_weight
from structsvm.tasks.common.likelihood import check_least
from structsvm.tasks.common.outputs import Outputs
from structsvm.tasks.common.questions.denied import as_answers
from structsvm.tasks.common.questions.loop import LearningLoop
from structsvm.tasks.sequence.chains import decoder_of
from structsvm.tasks.sequence.constraints import allowed_masks
from structsvm.tasks.sequence.labels import COLLECTIONS, by_sequence
from structsvm.tasks.sequence.model import SequenceModel
from structsvm.tasks.sequence.parameters import SequenceLabelerParameters, loss_of, solver_for
from structsvm.tasks.sequence.portable.binary import runtime_files
from structsvm.tasks.sequence.portable.plain import json_files
from structsvm.tasks.sequence.preparation import prepare
from structsvm.tasks.sequence.questions.growth import grown, labels_in
from structsvm.tasks.sequence.questions.sentences import SentenceReader
from structsvm.tasks.sequence.selection.templates import USUAL

if TYPE_CHECKING:
    import os
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Floats
    from structsvm.result import Result
    from structsvm.solvers import Solver
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.common.questions.given import Batch
    from structsvm.tasks.sequence.constraints import ConstraintsLike
    from structsvm.tasks.sequence.examples import AllowedLike, LabeledSequences, LabelsLike, Masks, SequencesLike

# Sequences of a stream that are labelled at once.
BATCH = 256


def check_marked_tokens(y: Iterable[object]) -> None:
    """Raise ValueError for a mark in the place of a sequence's labels."""
    for i, labels in enumerate(y):
        if isinstance(labels, Not):
            raise ValueError(
                f"sequence {i}: y holds {labels!r:.80}. Not(...) stands for a token's label, in a list with an entry "
                "per token"
            )


@declared
class SequenceLabeler(SequenceLabelerParameters, LearningLoop, StructureEstimator):
    """Support vector machine or conditional random field for label sequences.

    Parameters
    ----------
    C : float, {"auto", "records", "tokens"} or None, default="auto"
        Weight of the sum of slacks, or of log losses. "auto": chosen on held-out examples (`validation_`), see
        `structsvm.tasks.common.selection`; 1 with fewer than 20 sequences, and 0.1 (log loss: 1) in `partial_fit`
        before any `fit`. The choice goes by F1 of chunks where labels have a scheme, by whole sequences of records
        (`structsvm.tasks.sequence.selection.records`), and else by tokens. "records", "tokens": as "auto", and by
        these, as ``scoring`` says in searches of scikit-learn. None: as in `partial_fit`. A solver object has its own.
    solver : str or Solver, default="larank"
        "larank", "cutting_plane", "frank_wolfe", "passive_aggressive", "perceptron", "sparse_likelihood" (the log loss
        with the 1-norm, which leaves most weights 0) or "elastic_likelihood" (with both norms): a name, to which `C`,
        `max_iter`, `tol`, `random_state` and `checkpoint` apply. "auto": "elastic_likelihood" if it predicts held-out
        sequences better than "larank" does with ``loss="auto"``, by more than two standard errors of the difference,
        else "larank". "larank" does so, too, for attributes of up to 200,000 tokens times labels that have no scheme,
        with `loss` and `C` left open (`validation_`). Or a solver object with its own parameters (then leave those five
        unset, and search over ``solver__C``).
    inference : {"exact", "greedy"}, default="exact"
        Viterbi over whole sequences, or left to right with a history of `order` labels.
    order : int, optional
        Number of previous labels that a score may depend on. Exact: 1 (default) or 2. Greedy: any, default 2.
    templates : str or path, optional
        For column data: a built-in set ("rich", "records", "record-kinds", "record-tokens", "crf++", "attributes"), or
        templates of CRF++ or Wapiti. "auto": "rich" or, if they label held-out training sequences better, "records" or
        "record-kinds", see `structsvm.tasks.sequence.selection.templates`. None: "auto" for words alone, else "rich".
    features : TokenFeatures, optional
        How the attributes of tokens become features: which are dropped, hashed, or conjoined with pairs of labels.
        Default: ``TokenFeatures()``.
    constraints : str, Rule, Automaton, tuple of bool arrays, or list of these, optional
        Labellings that may be predicted: those of the scheme "bio", "bioes", "bilou", "bmes", "bmewo", "iob1", "ioe1",
        "ioe2" or "io", also by other names such as "IOBES" (see `structsvm.metrics.Scheme`); of a regular expression
        over labels, ``"(O | B-NAME I-NAME*)*"``, a rule such as `at_most_once`, or an automaton
        (`structsvm.structures.languages`); or masks ``(transitions (K, K), first (K,), last (K,))`` in the order of
        `classes_`. All of a list hold. Inference is exact in training and prediction. Of whole segments, rules speak
        about types, expressions about labels in the form of y.
    broken : {"refuse", "repair", "predict"}, default="refuse"
        What to do with training labels that violate the constraints: raise an error; with a scheme alone, replace them
        by valid labels for the chunks that are read in them (with "bio" I-X where no chunk is open becomes B-X); or
        train on them unchanged, and constrain only predictions.
    segments : bool or int, default=False
        Whether whole segments have weights, of their length and of their phrases (`structsvm.tasks.sequence.phrases`),
        beside those of tokens. y contains labels in a scheme, which `constraints` may name; labels of which none looks
        like a tag, each run of one label a segment; or per sequence a list of spans ``(start, stop, label)``, which
        `predict` then returns; `classes_` are the tags B, I, E and S of each
        type. Exact inference of order 1, without `end` and bigrams. A token's word is its feature "word", "w" or
        the like, or the first column; its part of speech the feature "pos", "tag" or the like, or the second column.
        An int is the length of the longest segments with their own weight and phrases, from 2 tokens on; longer ones,
        which are found as well, share one. True: the length that nearly all training segments do not exceed, 4 to 8.
    loss : {"auto", "hamming", "zero_one", "log"}, default="auto"
        A margin of the number of wrong labels, or of 1 for any wrong sequence; or the log loss, with which the model
        is a conditional random field, trained by `structsvm.solvers.ConditionalLikelihood` or `SparseLikelihood`
        (exact inference, no other `solver`, no `class_weight`). "auto": "log" and "hamming", each with its own C, with
        both models' log-odds added (`structsvm.tasks.common.selection`); "hamming" alone if C is not "auto" or cannot
        be chosen, and if the log loss is not possible.
    probability : bool, default=True
        Whether training on a margin fits the temperature at which scores are probabilities: at the end, on sequences
        that are removed from the trained dual (exact inference and solvers with a dual; the log loss needs none).
    class_weight : dict or "balanced", optional
        Cost of a wrong label, by the true label (default 1).
    unknown : object, default="auto"
        The mark of tokens whose label is not known, in y; "auto": -1, and training says how many there are. None: there
        is none, and -1 is a label. None and -100 in y are always unknown labels.
    max_iter, tol, random_state
        As for the solver; None: the solver's own.
    warm_start : bool, default=False
        Whether `fit` resumes the last one, on the same data.
    n_jobs : int, optional
        Threads for prediction; while training, jobs for the rounds of batch solvers and for the certificate.
    checkpoint : path-like, optional
        File that stores the state of training after every pass (a `structsvm.Checkpoint`: after some); if it exists,
        `fit` resumes from it.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels, sorted.
    emission_ : ndarray of shape (n_features, n_labels), float32
    intercept_ : ndarray of shape (n_labels,), float32
        0 except for rows of numbers.
    transition_ : ndarray of shape (n_labels, n_labels), float32
        Weight of label b after label a (for greedy inference: of the label just before).
    start_, end_ : ndarray of shape (n_labels,), float32
        Weights of the first and of the last label, 0 where the chain has none; not for greedy inference.
    feature_names_ : list of str
    templates_ : str or None
        The templates of column data, by name or as text, given or chosen. None: there are none.
    bigram_ : ndarray of shape (n_bigrams, n_labels, n_labels), float32
        Weight of label b after label a at a token with each of the attributes `bigram_names_`.
    bigram_names_ : list of str
    C_ : float
        The C of the last training.
    validation_ : dict
        The table from which "auto" chose C: arrays "C", "score", "error" (standard errors of the scores) and "passes"
        (over the part that was trained on), the "metric" and the number of examples "n_held_out", and "least_weight",
        the size below which weights are 0, as held-out labels do not feel them; with ``solver="auto"`` the "solver"
        that was chosen, "solvers" (per name: score, standard error) and the "gain" of the 1-norm with its standard
        error; with ``loss="auto"`` also the "loss" of these, "losses" (per loss: C, score, standard error), "tables"
        (per loss: rows of C, score, error and passes), "sum", the score of the added models and its standard error, and
        "scales", the factors of their weights in the sum.
    loss_ : str
        The loss that the model was trained with; for a sum "log", with which `partial_fit` continues.
    result_ : Result
        Of the training with that loss.
    results_ : dict of str to Result
        By loss: a sum has two trainings, each with its own certificate, and none for the sum.
    n_iter_ : int
    n_features_in_ : int
        Number of distinct features.
    temperature_ : float or None
        Divisor of the scores for probabilities: 1 for the log loss; None if unknown.

    Notes
    -----
    X is a list of sequences, a sequence a list of tokens, a token a dict of features, a list of attribute
    strings, or a row of a 2-D array or CSR matrix (see `structsvm.features.encoder.FeatureEncoder`); a `Columns`
    object of a CoNLL file; or one matrix with `lengths`. Columns of numbers may have any units, and have an intercept
    (`structsvm.tasks.common.units`). y is a list of label lists; labels may be anything
    hashable.

    Examples
    --------
    >>> from structsvm.tasks import SequenceLabeler
    >>> X = [["the", "cat"], ["a", "dog"], ["the", "dog", "barks"]]
    >>> y = [["DT", "NN"], ["DT", "NN"], ["DT", "NN", "VB"]]
    >>> labeler = SequenceLabeler(C=1.0, random_state=0).fit(X, y)
    >>> labeler.predict([["a", "cat", "barks"]])
    [['DT', 'NN', 'VB']]
    """

    _confidence = of_labelling
    _model_class = SequenceModel
    _reader = "features.columns.read_columns"
    # A 2-D array alone does not say where sequences end; one of 3 dimensions does.
    _inputs = ("three_d_array", "sparse", "dict", "string")
    _takes_one_label = True
    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self,
        X: SequencesLike | SequenceShards,
        y: LabelsLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
    ) -> Self:
        """Train on labelled sequences.

        Parameters
        ----------
        X : list of sequences, Columns, matrix with `lengths`, or SequenceShards
            With shards, which contain the labels too, without y; `loss` "auto" is then "hamming", and C is chosen on as
            many sequences as one shard may have.
        y : list of label lists
            In place of a label, None (any label; so are -100 and the mark `unknown`), or a set or list of labels that
            contains the token's. With ``loss="log"`` training maximises the likelihood of what is known, C is chosen by
            the known tokens of held-out sequences, and a dict from labels to weights (such as votes of annotators) is
            accepted; with a margin, such sequences are completed and trained on in turn (`structsvm.LatentSVM`), and C
            is chosen on the runs of known tokens. "auto" adds both from 300 sequences with known labels on, and is
            the log loss for fewer, for weights and with `segments`.
        sample_weight : array-like of shape (n_sequences,), optional
            Factor on each sequence's C.
        lengths : array-like of int, optional
            Rows of each sequence, if X is one matrix.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, an empty sequence, values that are not finite, X and y that do not match (the
            message names parameter or sequence).
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.
        """
        if isinstance(X, SequenceShards):
            if y is not None:
                raise ValueError("X has the labels of its sequences: fit(shards), without y")
            y = X.labels
        return self._train(X, y, sample_weight, metadata={"lengths": lengths}, lengths=lengths)

    @with_callbacks
    def partial_fit(
        self,
        X: SequencesLike,
        y: LabelsLike,
        classes: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
    ) -> Self:
        """One pass over a batch, starting from the current weights.

        The first call fixes features and labels (`classes` names labels that come later); after that,
        unknown features are ignored: use ``TokenFeatures(hash_bits=...)`` on streams. The batch's problem is solved
        around the current weights w0: minimise ``1/2 |w - w0|^2 + C sum_i xi_i``; `result_` certifies that problem.
        """
        check_stream_weight(self.class_weight)
        if isinstance(X, SequenceShards):
            raise TypeError("shards are for fit; partial_fit takes a batch of sequences in memory")
        metadata = {"lengths": lengths}
        return self._train(X, y, sample_weight, passes=1, metadata=metadata, lengths=lengths, classes=classes)

    def calibrate(self, X: SequencesLike, y: LabelsLike, *, lengths: ArrayLike | None = None) -> Self:
        """Fit `temperature_` to labelled sequences that the model was not trained on, by their likelihood.

        Returns
        -------
        self
        """
        return self._calibrated(X, y, lengths=lengths)

    def _make_solver(self, before: TaskModel[LabeledSequences] | None = None) -> Solver:
        choice = None if before is None else before.choice
        return solver_for(self.get_params(deep=False), loss_of(self, before), choice)

    def _prepare(
        self,
        X: SequencesLike | SequenceShards,
        y: LabelsLike | None,
        sample_weight: ArrayLike | None,
        before: SequenceModel | None,
        *,
        lengths: ArrayLike | None = None,
        classes: Iterable[Hashable] | None = None,
    ) -> tuple[SequenceModel, LabeledSequences]:
        return prepare(self, X, y, before, lengths=lengths, classes=classes, weight=sample_weight)

    # ---- the learning loop ------------------------------------------------------------------------

    def _reader_of(self, model: SequenceModel, X: Any) -> SentenceReader:
        return SentenceReader(model, X)

    def _labels_in(self, y: Sequence[Any]) -> set[Hashable]:
        if self.segments:
            y = [[span[2] if isinstance(span, tuple) and len(span) == 3 else span for span in one or ()] for one in y]
        return labels_in(y, self.unknown)

    def _known_labels(self, model: SequenceModel) -> set[Hashable]:
        kinds = () if model.segments is None else (part.kind for part in model.parts_of_tags if part is not None)
        return {*model.labels, *model.shown, *kinds}

    def _choices(
        self, y: Sequence[Any], named: set[Hashable], model: SequenceModel | None
    ) -> tuple[set[Hashable], Callable[[Hashable], set[Hashable]]]:
        if self.segments:
            raise ValueError("segments do not take Not(...): a labelling without them does (segments=False)")
        return named | {*(() if model is None else model.labels)}, lambda label: {label}

    def _without_marks(self, y: object, model: Any, classes: Iterable[Hashable] | None) -> object:
        answers = as_answers(y) or []
        if len(answers) == 1 or any(isinstance(one, (list, tuple, np.ndarray)) for one in answers):  # not flat
            check_marked_tokens(answers)
        return super()._without_marks(y, model, classes)

    def _check_first(self, batch: Batch) -> None:
        check_marked_tokens(batch.y)

    def _grown(
        self, model: SequenceModel, X: Sequence[Any], y: Sequence[Any], new: set[Hashable]
    ) -> SequenceModel | None:
        return grown(self, model, X, new)

    # ---- prediction -----------------------------------------------------------------------------

    def _multiplies(self, name: str) -> bool:
        """Predictions make products of matrices of rows of numbers alone: see `SequenceModel.scored`."""
        return not name.startswith("predict") or self._model is None or self._model.multiplies

    def _masks(self, allowed: AllowedLike | None) -> Masks | None:
        """The allowed labels, as boolean arrays."""
        model = self._fitted()
        allowed = None if allowed is None else [unwrapped(some) for some in unwrapped(allowed)]
        if model.segments is not None:
            allowed = model.segments.allowed(allowed, self.unknown)
        return allowed_masks(allowed, model.labels, self.unknown)

    def _under(self, constraints: ConstraintsLike) -> SequenceModel:
        """The fitted model, under more constraints."""
        model: SequenceModel = self._fitted()
        return model.constrained_by(constraints)

    @overload
    def predict(self, X: Iterator[object]) -> Iterator[list[Any]]: ...  # type: ignore[overload-overlap]
    @overload
    def predict(
        self,
        X: SequencesLike,
        *,
        lengths: ArrayLike | None = None,
        allowed: AllowedLike | None = None,
        constraints: ConstraintsLike = None,
    ) -> list[list[Any]]: ...
    def predict(
        self,
        X: SequencesLike | Iterator[object],
        *,
        lengths: ArrayLike | None = None,
        allowed: AllowedLike | None = None,
        constraints: ConstraintsLike = None,
    ) -> list[list[Any]] | Iterator[list[Any]]:
        """Return the best labelling of each sequence: a list of label lists; an empty sequence has an empty one.

        A generator, or another iterator, is read as its predictions are asked for: see `predict_iter`.

        `allowed` restricts labels (a partly annotated sequence): per sequence None, or a list with, per
        token, None, a label, or a collection of the labels that it may have. `constraints` are those of
        `SequenceLabeler`, for these predictions alone; the model's own hold as well.
        """
        model = self._under(constraints)
        if isinstance(X, Iterator) and lengths is None and allowed is None and constraints is None:
            return self.predict_iter(X)
        masks = self._masks(allowed)
        return Outputs(model.predict(X, lengths=lengths, allowed=masks, n_jobs=self._threads))

    def predict_iter(self, X: Iterable[object]) -> Iterator[list[Any]]:
        """Yield the best labelling of each sequence, in memory for some hundred of them.

        Each is that of `predict`. Sequences are read 256 at a time, when the first of their labellings is asked for.
        """
        sequences = iter(X)
        while batch := list(islice(sequences, BATCH)):
            yield from self.predict(batch)

    def predict_marginals(
        self,
        X: SequencesLike,
        *,
        lengths: ArrayLike | None = None,
        allowed: AllowedLike | None = None,
        constraints: ConstraintsLike = None,
    ) -> list[NDArray[np.float64]]:
        """Return per sequence an array (length, n_labels) of the probability of each label at each token.

        Exact, by forward-backward: of the model itself with ``loss="log"``; otherwise of its scores, divided by
        `temperature_`. `allowed` and `constraints` are those of `predict`: what is known of the labels. Exact inference
        only.
        """
        model = self._under(constraints)
        return model.marginals(X, lengths=lengths, allowed=self._masks(allowed))

    def predict_kbest(
        self,
        X: SequencesLike,
        k: int,
        *,
        lengths: ArrayLike | None = None,
        allowed: AllowedLike | None = None,
        constraints: ConstraintsLike = None,
        probabilities: bool = False,
    ) -> list[list[tuple[list[Any], float]]]:
        """Return per sequence its k best labellings: a list of ``(labels, score)``, best first.

        Fewer if fewer exist: an empty sequence has one, with score 0. Exact inference only. With `probabilities`
        the labelling's probability replaces its score (see `predict_marginals`).
        """
        model = self._under(constraints)
        masks = self._masks(allowed)
        return model.predict_kbest(X, k, lengths=lengths, allowed=masks, probabilities=probabilities)

    def predict_spans(
        self,
        X: SequencesLike,
        *,
        lengths: ArrayLike | None = None,
        probabilities: bool = False,
        least: float | None = None,
        constraints: ConstraintsLike = None,
    ) -> list[list[Any]]:
        """Return the spans ``(start, stop, label)`` of each sequence.

        They are those of `segments`, or the chunks of labels of a scheme (BIO, BIOES and others); labels without a
        scheme, as of fields of a record, make a span of each run of one label but O. With `probabilities` a fourth
        entry is the probability that exactly this span is a true one: the sum over all labellings that have it (see
        `predict_marginals`).

        With `probabilities` and `least`, over 0 and up to 1, the spans are not those of the best labelling, but all
        that have at least this probability, by place. The lower, the more true spans are found, and the more of the
        spans are wrong; those of more than one half never overlap.
        `structsvm.risk.LossController` finds the number that keeps either share.

        `constraints` are those of `predict`: spans and probabilities are those of the labellings that keep them.
        """
        if least is not None:
            check_least(least, "SequenceLabeler.predict_spans")
            if not probabilities:
                raise ValueError("least is a probability: it needs probabilities=True")
        model = self._under(constraints)
        return model.predict_spans(X, lengths=lengths, probabilities=probabilities, least=least)

    def probability_of(
        self, X: SequencesLike, y: LabelsLike, *, lengths: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return the probability of given labellings: array (n_sequences,), float64.

        A labelling that is known in part (see `fit`) has the sum over all labellings that agree with it: so has a field
        of a record, whose tokens alone are known, and what an annotator doubts. An empty sequence has 1.

        Raises
        ------
        ValueError
            If there are no probabilities (`temperature_` is None), and as `calibrate` does.
        """
        return self._fitted().probability_of(X, y, lengths=lengths)

    def decision_function(self, X: SequencesLike, *, lengths: ArrayLike | None = None) -> list[Floats]:
        """Return per sequence an array (length, n_labels) of what each label would cost at each token.

        The score of the best labelling that has the label there, minus the score of the best labelling of
        all (max-marginals): 0 for the predicted label, and minus the margin for the runner-up. For greedy
        inference the scores of the decision at each token, minus the best one.
        """
        model = self._fitted()
        if model.is_greedy:
            tokens = model.encode(X, lengths)
            scores = model.oracle.chain(tokens.without_empty()).decision_scores(model.weights)
            scores -= scores.max(axis=1, keepdims=True, initial=-np.inf)
            return [scores[a:b] for a, b in pairwise(tokens.offsets.tolist())]
        tokens = model.encode(X, lengths)
        chain, places = decoder_of(model.oracle, tokens), count()
        nothing = np.empty((0, len(model.labels)), dtype=np.float32)
        margins = [chain.max_marginals(model.weights, next(places)) if n else nothing for n in tokens.lengths.tolist()]
        return [m - m.max(axis=1, keepdims=True) if len(m) else m for m in margins]

    def score(
        self, X: SequencesLike, y: Any, sample_weight: ArrayLike | None = None, *, lengths: ArrayLike | None = None
    ) -> float:
        """Return the share of tokens whose label is right, or among those that y admits; tokens of which y says nothing
        are left out.
        """
        predicted = self.predict(list(X) if isinstance(X, Iterator) else X, lengths=lengths)
        if predicted and self._fitted().has_spans:
            y, predicted = self._fitted().as_tags(y, predicted, X, lengths)
        elif lengths is not None:
            y = by_sequence(y, [len(labels) for labels in predicted])
        weight = checked_sample_weight(sample_weight, len(predicted))
        y, predicted = check_sequences(y, predicted)
        check_no_nan_in(y)
        unknown = mark_for(self.unknown, self._fitted().labels)
        right, says = agreement(
            chain.from_iterable(y), chain.from_iterable(predicted), unknown, COLLECTIONS, seen=self._seen
        )
        weights = 1.0 * says if weight is None else says * np.repeat(weight, [len(labels) for labels in predicted])
        return float(np.average(right, weights=weights))

    @property
    def _seen(self) -> set[Hashable]:
        """The labels as users have them, and as tags."""
        model = self._fitted()
        return {*model.labels, *model.shown}

    def export(self, folder: str | os.PathLike[str], to: str = "c") -> None:
        """Write the model to a folder for use without Python: labels and scores are the same, bit for bit.

        Parameters
        ----------
        folder : path-like
            A folder, made if it is missing. Files of earlier exports are replaced.
        to : {"c", "wasm", "page", "json"}, default="c"
            "c": ``model.bin``, and ``structsvm_runtime.c`` and ``.h``, in C99, that read it. "wasm": ``model.bin``, and
            the same as WebAssembly with a module in JavaScript. "page": ``tagger.html``, all of these in one page
            that browsers open from a file; for words. "json": ``model.json``, names and weights.

        Raises
        ------
        ValueError
            For a model that the runtime does not support: of numbers, hashed features, greedy inference, segments in
            IOB1, rules that are no single automaton, regular expressions in templates, or labels that are not str.
        ImportError
            For "wasm" and "page" without zig, which compiles the runtime.

        Examples
        --------
        >>> import os, tempfile
        >>> from structsvm.tasks import SequenceLabeler
        >>> folder = tempfile.mkdtemp()
        >>> SequenceLabeler(C=1.0, random_state=0).fit([["a", "b"]], [["x", "y"]]).export(folder)
        >>> sorted(os.listdir(folder))
        ['model.bin', 'structsvm_runtime.c', 'structsvm_runtime.h']
        """
        check_arguments("SequenceLabeler.export", locals(), to=Options(*TARGETS))
        model: SequenceModel = self._fitted()
        write_files(folder, json_files(model) if to == "json" else runtime_files(model, to))

    def _examples_of(self, model: SequenceModel, X: SequencesLike, y: LabelsLike) -> LabeledSequences:
        return prepare(self, X, y, model, held_out=True)[1]

    # ---- views, files ---------------------------------------------------------------------------

    @property
    def loss_(self) -> str:
        return self._fitted().loss

    @property
    def results_(self) -> dict[str, Result]:
        return self._fitted().results

    @property
    def emission_(self) -> Floats:
        return self._fitted().emission()

    @property
    def intercept_(self) -> Floats:
        return self._fitted().intercept()

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """Weights that are not 0 by ``(feature, label)``, as sklearn-crfsuite has them."""
        table = self._fitted().weight_table()
        return {
            (table.features[j], table.labels[k]): value for j, k, value in zip(*map(np.ndarray.tolist, table.entries()))
        }

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights of label b after label a by ``(a, b)``, as sklearn-crfsuite has them."""
        labels, weights = self._fitted().labels, self.transition_.tolist()
        return {(a, b): weight for a, row in zip(labels, weights) for b, weight in zip(labels, row)}

    @property
    def transition_(self) -> Floats:
        return self._fitted().transition()

    @property
    def start_(self) -> Floats:
        return self._fitted().edges()[0]

    @property
    def end_(self) -> Floats:
        return self._fitted().edges()[1]

    @property
    def feature_names_(self) -> list[str]:
        return self._fitted().encoder.feature_names

    @property
    def templates_(self) -> str | None:
        encoder = self._fitted().encoder
        return encoder.templates or (USUAL if encoder.kind == "columns" else None)

    @property
    def bigram_(self) -> Floats:
        return self._fitted().bigram()

    @property
    def bigram_names_(self) -> list[str]:
        return self._fitted().encoder.bigram_names
