"""Sequence alignment with learnt costs (Tsochantaridis and others 2004, section 5.4)."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm.callbacks import with_callbacks
from structsvm.metrics import homologue_error, q_score
from structsvm.parameters import declared
from structsvm.structures.gapped import to_biopython
from structsvm.tasks.alignment.decoding import BEST, PAIRS
from structsvm.tasks.alignment.examples import AlignedPairs
from structsvm.tasks.alignment.model import ALIGNMENT_C, AlignmentModel, as_pair, listed
from structsvm.tasks.alignment.parameters import SequenceAlignerParameters
from structsvm.tasks.alignment.significance import KarlinAltschul, fitted_to_chance
from structsvm.tasks.common.estimator import StructureEstimator, as_list
from structsvm.tasks.common.examples import checked_sample_weight
from structsvm.tasks.common.labels import check_no_classes
from structsvm.tasks.common.solver import make_solver

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers
    from structsvm.solvers import Solver
    from structsvm.structures.substitution_matrix import SubstitutionMatrix
    from structsvm.tasks.alignment.examples import GappedRows, String, StringPair
    from structsvm.tasks.alignment.selection import Costs, MatrixSource
    from structsvm.tasks.common.model import TaskModel

# Rounds of aligning and learning, if the homologues' alignments are unknown.


@declared
class SequenceAligner(SequenceAlignerParameters, StructureEstimator):
    """Alignments of two sequences with costs learnt by a structural SVM.

    Parameters
    ----------
    C : float, "auto" or None, default="auto"
        Weight of the sum of slacks. "auto": chosen on held-out examples (`validation_`), see
        `structsvm.tasks.common.selection`; 0.001 with fewer than 20 families of pairs, and in `partial_fit` before
        any `fit`. None: 0.001. A solver given as an object has its own.
    solver : {"larank", "cutting_plane", "frank_wolfe", "passive_aggressive", "perceptron"} or Solver, default="larank"
        A name, to which `C`, `max_iter`, `tol`, `random_state` and `checkpoint` apply; or a solver object with its own
        parameters.
    mode : {"auto", "semi_global", "global", "local"}, default="auto"
        What an alignment must cover: from the first letter of one sequence to the last letter of one, with free
        overhanging ends; both whole; or any part of each (Smith-Waterman). "auto": the first, unless another one does
        better on held-out training pairs, by more than two standard errors.
    gaps : {"affine", "linear"}, default="affine"
    symmetric : bool, default=True
        One weight for the pairs (a, b) and (b, a).
    letter_gaps : bool, default=False
        Gaps also have weights by the opposite letter.
    classes : "hydrophobicity" or tuple of str, optional
        Position features, crossed with all operations: computed from the letters (see `hydrophobicity`), or annotations
        with these alphabets; a sequence is then a tuple of its letters and its annotations, ``("MKV", "HHC")``.
    context : {"auto", "letters", "none"}, default="auto"
        Weights by the letters around a position, for paired letters and for the place of a gap (see
        `structsvm.tasks.alignment.contexts`): of proteins and of alphabets of at most 8 letters. "auto": with a prior,
        where they find more of the assessed columns of held-out training pairs, by more than one standard error.
    alphabet : {"protein", "dna"} or str, default="protein"
        A name, or all letters, of any script; the rule for other letters is at the head of
        `structsvm.tasks.alignment.letters`.
    band : int or (int, int), optional
        Search only near the diagonal; see `SmithWatermanOracle`.
    loss : {"q", "zero_one"}, default="q"
        Share of the reference's pairs missed, or 1 for any other alignment. Ignored with decoys.
    window : int, default=0
        "q": the distance up to which a reference pair counts as found.
    prior : str, path-like, SubstitutionMatrix, Biopython's Array or tuple, default="auto"
        A matrix to start from and to stay close to: ``1/2 |w - w0|^2`` is minimised in place of ``1/2 |w|^2``. A name
        such as "BLOSUM62" is looked up in Biopython's package data; without Biopython, in
        `structsvm.datasets.fetch_substitution_matrix`. "auto": of BLOSUM62 and its kin (DNA: NUC.4.4; other letters,
        or without Biopython: equal letters 1, others -1) and the log-odds of the training pairs, the one that aligns
        the pairs best, in the unit that suits the loss. None: zero. A tuple ``(matrix, gap_open, gap_extend)`` has the
        scores of the first and of each further letter of a gap as well, in the unit of the matrix; if they are not
        given, or None, they are those that align the training pairs best.
    max_iter, tol, random_state
        As for the solver; None: the solver's own.
    n_jobs : int, optional
        Threads for prediction; while training, jobs for the rounds of batch solvers and for the certificate.
    checkpoint
        As for the solver.
    warm_start : bool, default=False
        Whether `fit` resumes from the current model: the same run on the same examples, around the current costs
        on others.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    substitution_matrix_ : SubstitutionMatrix
        Learnt scores of pairs of letters; ``.to_ncbi()`` is a text that other tools read.
    gap_open_, gap_extend_ : float
        Learnt scores of the first and of each further letter of a gap.
    coef_ : ndarray of shape (n_features,), float64
        All weights, in the order of `SmithWatermanOracle`.
    mode_ : str
    prior_ : Costs or None
        The costs w0: names of mode and matrix, `gap_open`, `gap_extend` in the matrix's unit, and the factor `scale`
        on all of them.
    beta_ : float
        The factor on scores under which the most expected pairs are predicted, chosen with C; 0: best alignments are.
    temperature_ : float or None
        Divisor of the scores for probabilities; None before `calibrate`.
    C_ : float
        The C of the last training.
    validation_ : dict
        The table from which "auto" chose C: arrays "C", "score", "error" (standard errors of the scores) and "passes"
        (over the part that was trained on), the "metric" and the number of examples "n_held_out".
    result_ : Result
    n_iter_ : int

    Notes
    -----
    X is a list of pairs ``(x, z)`` of strings; y a list of pairs of gapped rows. A sequence may also be a list of words
    (any hashable objects), and rows are then lists with ``"-"`` or None as gaps; `predict` returns lists with ``"-"``,
    with None where a sequence has the word ``"-"``. The 200 most frequent words that training saw in five lists or more
    have costs of their own, all others share theirs (`structsvm.tasks.alignment.words`). Biopython's Seq and
    SeqRecord may replace strings, its alignments of two sequences elements of X and of y. Columns with a lower-case
    letter are not assessed: losses and metrics ignore them, and the alignment of their letters is left open. Before
    training they are aligned in the best way by the prior (or by the current model, or without either by one pass
    over the rows as given); `result_` certifies the problem with these alignments.

    With `decoys` the costs are learnt such that x is closer to its homologue z, aligned as in y, than to any decoy
    in any alignment. With s(x, z) the score of the best alignment, unknown alignments of homologues make the
    objective

        1/2 |w - w0|^2 + C sum_i max(0, 1 + max_t s(x_i, z_i^t) - s(x_i, z_i)),

    which is not convex. `LatentSVM` solves it in rounds: each aligns the homologues by the current costs, and solves
    the resulting convex problem (the concave-convex procedure of Yu and Joachims 2009: no exact round raises the
    objective). It ends when the alignments no longer change or the objective hardly falls; `result_` is that of the
    last round.

    Examples
    --------
    >>> from structsvm.datasets import make_alignment
    >>> from structsvm.tasks import SequenceAligner
    >>> data = make_alignment(10, random_state=0)
    >>> aligner = SequenceAligner(C=0.1, mode="global", prior=None, random_state=0).fit(data.X, data.y)
    >>> row_x, row_z = aligner.predict(data.X[:1])[0]
    >>> row_x.replace("-", "").upper() == data.X[0][0]
    True
    """

    _model_class = AlignmentModel
    _reader = "tasks.alignment.files.read_alignments"
    # ---- training -------------------------------------------------------------------------------

    @with_callbacks
    def fit(
        self,
        X: Iterable[StringPair],
        y: Iterable[GappedRows | None] | None,
        sample_weight: ArrayLike | None = None,
        *,
        decoys: Iterable[Iterable[String]] | None = None,
    ) -> Self:
        """Learn the costs.

        Parameters
        ----------
        X : list of (x, z)
            Sequences and their homologues.
        y : list of (str, str) or None, or None
            Their alignments, as gapped rows. None, for all or for one of them, if they are unknown and there are
            decoys: training then maximises over them (see Notes), which needs a `prior` to begin with.
        sample_weight : array-like of shape (n_pairs,), optional
            Factor on each pair's C.
        decoys : list of (list of sequences), optional
            Per pair at least one sequence from which x must be farther than from z.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For a parameter out of range, or sequences and alignments that do not fit one another; the message names
            parameter or example.
        KeyboardInterrupt
            On Ctrl-C, after the partial model has been stored.
        """
        X, y, decoys = listed(as_list(X, "pairs"), y, decoys)
        which = "y" if y is None else next((f"y, example {k}," for k, rows in enumerate(y) if rows is None), None)
        if which is not None:
            self._check_params()
            if decoys is None:
                raise ValueError(
                    f"{which} is None: without alignments there must be decoys to tell the homologues from"
                )
            if self.prior is None:
                raise ValueError(
                    f"{which} is None: homologues are first aligned by the costs of a prior, and prior is None"
                )
        y = [None] * len(X) if y is None else y
        return self._train(X, y, sample_weight, metadata={"decoys": decoys}, decoys=decoys)

    @with_callbacks
    def partial_fit(
        self,
        X: Iterable[StringPair],
        y: Iterable[GappedRows | None] | None,
        classes: None = None,
        sample_weight: ArrayLike | None = None,
        *,
        decoys: Iterable[Iterable[String]] | None = None,
    ) -> Self:
        """One pass over a batch, starting from the current costs; arguments are those of `fit`.

        The batch's problem is solved around the current costs w0 (at first, those of `prior`): minimise
        ``1/2 |w - w0|^2 + C sum_i xi_i``; `result_` certifies that problem. `classes` must be None: alignments have
        none.
        """
        check_no_classes(classes, "alignments have no classes")
        X, y, decoys = listed(as_list(X, "pairs"), y, decoys)
        return self._train(X, y, sample_weight, passes=1, metadata={"decoys": decoys}, decoys=decoys)

    def _make_solver(self, before: TaskModel | None = None) -> Solver:
        return make_solver(self, ALIGNMENT_C)

    def _prepare(
        self,
        X: Sequence[StringPair],
        y: Any,
        sample_weight: ArrayLike | None,
        before: AlignmentModel | None,
        *,
        decoys: Sequence[Iterable[String]] | None = None,
    ) -> tuple[AlignmentModel, AlignedPairs]:
        if len(y) == len(X) and all(rows is None for rows in y):
            y = None
        if before is not None:
            before.check_unchanged(self)
        if before is None:
            weight = checked_sample_weight(sample_weight, len(X))
            model, references = AlignmentModel.prepared(self, X, y, decoys, weight)
        else:
            model = before
            references = model.references(X, y, decoys)
        return model, AlignedPairs(references, weight=checked_sample_weight(sample_weight, len(references)))

    @classmethod
    def from_costs(cls, matrix: MatrixSource, gap_open: float, gap_extend: float | None = None, **params: Any) -> Self:
        """An aligner with given costs, which needs no training: BLOSUM62, or the generative model.

        Parameters
        ----------
        matrix : str, path-like, SubstitutionMatrix or Biopython's Array
            As `prior`.
        gap_open, gap_extend : float
            Scores of the first and of each further letter of a gap; without `gap_extend`, gaps are linear.
        params
            Parameters of the class.
        """
        self = cls(**{"gaps": "linear" if gap_extend is None else "affine", "mode": "semi_global"} | params)
        self._check_params()
        model = AlignmentModel.of(self)
        model.set_costs(matrix, gap_open, gap_open if gap_extend is None else gap_extend)
        self._adopt(model)
        return self

    # ---- prediction -----------------------------------------------------------------------------

    def predict(
        self, X: Iterable[StringPair], *, biopython: bool = False, decode: Literal["pairs", "best"] | None = None
    ) -> list[Any]:
        """Align pairs of sequences: a list of pairs of gapped rows, or with `biopython` of `Bio.Align.Alignment`.

        `decode` asks for "best", the alignment with the highest score, or for "pairs", the one whose expected number of
        right pairs is the greatest, under p ~ exp(beta score). None: as was chosen with C, "pairs" where it found more
        of the assessed columns of held-out pairs, by more than a standard error; "best" where C was not chosen.

        In local mode, unaligned letters are in lower case, against gaps. An empty sequence is aligned with gaps only;
        `predict_kbest` and `decision_function` raise ValueError for one.
        """
        if decode not in (BEST, PAIRS, None):
            raise ValueError(f"decode must be '{BEST}', '{PAIRS}' or None, got {decode!r:.40}")
        model, X = self._fitted(), as_list(X, "pairs")
        found = model.align(X, self._threads, decode)
        if not biopython:
            return found
        if model.encoder.is_annotated:
            raise ValueError("biopython=True needs sequences of letters alone, and this aligner's are annotated")
        if model.encoder.words is not None:
            raise ValueError("biopython=True needs sequences of letters, and this aligner's are lists of words")
        local = model.oracle.mode == "local"
        pairs = [pair if isinstance(pair, (tuple, list)) else as_pair(pair, k) for k, pair in enumerate(X)]
        return [to_biopython(x, z, rows, local=local) for (x, z), rows in zip(pairs, found, strict=True)]

    def predict_kbest(
        self, X: Iterable[StringPair], k: int, *, probabilities: bool = False
    ) -> list[list[tuple[tuple[str, str], float]]]:
        """Per pair a list of ``(rows, score)`` of its k best alignments, best first; fewer if fewer exist.

        With `probabilities` the alignment's probability replaces its score: among all alignments, at the
        temperature that `calibrate` has fitted.
        """
        model, X = self._fitted(), as_list(X, "pairs")
        found = [model.align_kbest(pair, k, probabilities=probabilities) for pair in X]
        model.say_unseen(string for k, pair in enumerate(X) for string in as_pair(pair, k))
        return found

    def calibrate(self, X: Iterable[StringPair], y: Iterable[GappedRows | None]) -> Self:
        """Fit `temperature_` to aligned pairs that the model was not trained on, by their likelihood.

        Unassessed columns count with all alignments that agree with the assessed ones.

        Returns
        -------
        self
        """
        return self._calibrated(*listed(as_list(X, "pairs"), y)[:2])

    def decision_function(
        self, X: Iterable[String], candidates: Iterable[Sequence[String]]
    ) -> list[NDArray[np.float64]]:
        """The scores of the best alignments of each x of X with each of its candidates: a list of arrays."""
        model, X, candidates = self._fitted(), as_list(X, "sequences"), list(candidates)
        if len(X) != len(candidates):
            raise ValueError(f"X has {len(X)} sequences, there are {len(candidates)} lists of candidates")
        text = next((of_one for of_one in candidates if isinstance(of_one, str)), None)
        if text is not None:
            raise ValueError(f"candidates must be a list of strings, got {text!r:.80}")
        return model.scores(X, candidates, self._threads)

    def rank(self, x: String, candidates: Sequence[String]) -> Integers:
        """Return the candidates' indices from the closest to x to the farthest; equal ones in their order."""
        (scores,) = self.decision_function([x], [candidates])
        return np.argsort(-scores, kind="stable")

    def significance(
        self,
        background: Iterable[String],
        *,
        n_pairs: int = 1000,
        length: int = 600,
        random_state: int | np.random.Generator = 0,
    ) -> KarlinAltschul:
        """Significance of scores: bit scores and E-values, from parameters fitted to random strings.

        Parameters
        ----------
        background : list of str
            Strings such as those that are searched; letters are drawn with their frequencies.
        n_pairs, length : int
            Random pairs to align, half of them of that length and half of half that length. In short strings the ends
            leave less room for alignments, and lambda is greater: at 300 letters by a tenth for BLOSUM62, 11 and 1.
        random_state : int or numpy.random.Generator, default=0

        Returns
        -------
        KarlinAltschul
            Its methods `bits` and `evalues` take what `decision_function` returns.

        Raises
        ------
        ValueError
            The mode is not "local", the sequences are annotated, or alignments of unrelated strings grow with their
            lengths: these costs have no E-values.

        Examples
        --------
        >>> from structsvm.structures.substitution_matrix import SubstitutionMatrix
        >>> from structsvm.tasks import SequenceAligner
        >>> matrix = SubstitutionMatrix("ACGT", [[5, -4, -4, -4], [-4, 5, -4, -4], [-4, -4, 5, -4], [-4, -4, -4, 5]])
        >>> aligner = SequenceAligner.from_costs(matrix, -12, -2, alphabet="ACGT", mode="local")
        >>> chance = aligner.significance(["ACGT"], n_pairs=100, length=100)
        >>> scores = aligner.decision_function(["ACGTTGCATTGACCA"], [["ACGTTGCATTGACCA", "TTGTTGCA"]])[0]
        >>> chance.evalues(scores, 15, 23) < 1e-3
        array([ True, False])
        """
        model = self._fitted()
        if model.oracle.mode != "local" or model.encoder.is_annotated or model.encoder.words is not None:
            raise ValueError(
                "E-values are those of local alignments of letters alone: mode='local', no classes or words"
            )
        limits = (("n_pairs", n_pairs, 20), ("length", length, 20))
        for name, value, least in limits:
            if not isinstance(value, Integral) or value < least:
                raise ValueError(f"The {name!r} parameter must be an int of at least {least}. Got {value!r} instead.")
        return fitted_to_chance(self, background, int(n_pairs), int(length), np.random.default_rng(random_state))

    def score(self, X: Any, y: Any, *, decoys: Iterable[Iterable[String]] | None = None) -> float:
        """The mean share of reference pairs found; with decoys, the share of examples whose homologue is chosen."""
        if decoys is None:
            return q_score(y, self.predict(X))
        X, decoys = as_list(X, "pairs"), list(decoys)
        if len(decoys) != len(X):
            raise ValueError(f"X has {len(X)} pairs, decoys has {len(decoys)}")
        scores = self.decision_function(
            [x for x, _ in X], [[z, *others] for (_, z), others in zip(X, decoys, strict=True)]
        )
        return 1.0 - homologue_error([s[0] for s in scores], [s[1:] for s in scores])

    # ---- views ---------------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        return self._fitted().weights

    @property
    def mode_(self) -> str:
        return self._fitted().oracle.mode

    @property
    def beta_(self) -> float:
        return self._fitted().beta

    @property
    def prior_(self) -> Costs | None:
        return self._fitted().costs

    @property
    def substitution_matrix_(self) -> SubstitutionMatrix:
        return self._fitted().substitution_matrix

    @property
    def gap_open_(self) -> float:
        return self._fitted().gap_open

    @property
    def gap_extend_(self) -> float:
        return self._fitted().gap_extend
