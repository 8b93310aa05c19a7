"""A tagger, and a parser that uses its tags."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from structsvm.model_file import read_model, unsound, write_model
from structsvm.parameters import Constraints, Interval, declared, parameter, validate
from structsvm.stored_values import Count
from structsvm.structures.dependencies import DependencyTree
from structsvm.tasks.common.bases import BaseEstimator
from structsvm.tasks.common.estimator import as_list
from structsvm.tasks.common.inspection.inputs import are_sentences, refuse
from structsvm.tasks.dependency.estimator import DependencyParser
from structsvm.tasks.grammar.estimator import GrammarParser
from structsvm.tasks.sequence.estimator import SequenceLabeler
from structsvm.tasks.tagged.lattice import as_taken, check_no_blanks, decides, likely_tags
from structsvm.tasks.tagged.sentences import (
    COLUMNS,
    UPOS,
    check_sentences,
    check_tags,
    columns_in,
    columns_of,
    tokens_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from structsvm.arrays import AnyArray
    from structsvm.model_file import Destination, Origin
    from structsvm.tasks.common.inspection.weights import Explanation
    from structsvm.tasks.tagged.lattice import Tagged, Tags
    from structsvm.tasks.tagged.sentences import SentenceLike

KIND = "tagged"
PARTS = {"tagger": (SequenceLabeler,), "parser": (DependencyParser, GrammarParser)}  # estimators that a file can hold


@declared
class TaggedParser(BaseEstimator):
    """A parser of words alone: a tagger predicts their tags for a parser that was trained on such tags.

    A tagger is nearly always right on its own training sentences, and a parser trained on these tags relies on them too
    much. So the parser is trained on jackknifed tags: each fold of the sentences is tagged by a tagger trained on the
    others.

    The tags of words in CoNLL-U are UPOS and XPOS, or FEATS where there is no XPOS: the tagger predicts them together,
    or UPOS alone where there are more than 128 pairs of these, which would take long. Where it has probabilities, both
    kinds of parser see the likeliest tag and all likely ones, and learn what these are worth; see
    `structsvm.tasks.tagged.lattice`.

    Parameters
    ----------
    parser : DependencyParser or GrammarParser, optional
        None: by the trees, ``DependencyParser()`` or ``GrammarParser(terminals="predicted")``, which takes the tags as
        evidence and finds those of its trees itself. With ``terminals="both"`` the tagger's are final.
    tagger : SequenceLabeler, or another estimator that takes columns and lists of labels, optional
        None: ``SequenceLabeler(loss="hamming")``, which with many labels takes half of the time of the log loss. Its
        input is the words, as `structsvm.features.columns.Columns` with one column.
    n_folds : int, default=5
        The tagger is trained that many times, and once more on all sentences.

    Attributes
    ----------
    tagger_, parser_ : estimators
        The trained clones of those given.
    tag_accuracy_ : float
        The share of right tags among those that the parser was trained on, an estimate for new sentences. Where words
        have several columns of tags, all of them must be right.
    columns_ : tuple of str
        The columns of tags: "upos", and "xpos" or "feats" if training had one of them.

    Examples
    --------
    >>> from structsvm.datasets import make_dependency_trees
    >>> from structsvm.tasks import DependencyParser, SequenceLabeler, TaggedParser
    >>> trees = make_dependency_trees(60, random_state=0)
    >>> parser = TaggedParser(DependencyParser(C=0.01), SequenceLabeler(C=0.1, random_state=0)).fit(trees)
    >>> words = [word.form for word in trees[0].words]
    >>> len(parser.predict([words])[0]) == len(words)
    True
    """

    parser: Any = parameter(default=None, kw_only=False)
    tagger: Any = parameter(default=None, kw_only=False)
    n_folds: int = parameter(Interval(Integral, 2), default=5)
    _constraints: ClassVar[Constraints]

    def fit(
        self, X: Sequence[SentenceLike], y: Sequence[object] | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train the tagger, and the parser on tags predicted for held-out sentences.

        Parameters
        ----------
        X : list of trees, or of sentences if there is y
            With their right tags: a dependency tree's are UPOS, and XPOS or FEATS; a sentence is a list of (word, tag)
            or of `structsvm.structures.dependencies.Word`.
        y : list of trees, optional
            In a form that the parser accepts.
        sample_weight : array-like of shape (n_sentences,), optional
            For the parser.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For fewer sentences than folds, a word without a tag (the message names sentence and word), and for what
            tagger or parser refuse.
        """
        validate(self, self._constraints)
        check_sentences(X)
        trees = as_list(y, "trees", "y") if y is not None else _trees_in(X)
        parser: Any = _usual_parser(trees) if self.parser is None else clone(self.parser)
        columns = (UPOS,) if isinstance(parser, GrammarParser) else columns_in(X)
        tokens = tokens_of(X, columns)
        if len(tokens) < self.n_folds:
            raise ValueError(f"{len(tokens)} sentences cannot be divided into n_folds={self.n_folds}")
        check_tags(tokens)
        if decides(parser):
            check_no_blanks(tokens)
        wanted = SequenceLabeler(loss="hamming") if self.tagger is None else self.tagger
        words, tags = columns_of(tokens), [[tag for _, tag in sentence] for sentence in tokens]
        fold = np.arange(len(tags)) % self.n_folds
        found: list[list[Tags]] = [[] for _ in tags]
        for k in range(self.n_folds):
            known, new = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            tagger = clone(wanted).fit(words[known], [tags[i] for i in known])
            for i, one in zip(new.tolist(), likely_tags(tagger, words[new], parser), strict=True):
                found[i] = one
        right = [a == b[0] for one, other in zip(tags, found, strict=True) for a, b in zip(one, other, strict=True)]
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        tagger = clone(wanted).fit(words, tags)
        self.parser_ = parser.fit(as_taken(tokens, found, columns, tagger, parser), trees, **weight)
        self.tagger_, self.tag_accuracy_, self.columns_ = tagger, float(np.mean(right)), columns
        return self

    def tagged(self, X: Sequence[SentenceLike]) -> list[list[Tagged]]:
        """Return the sentences with the tagger's tags, as the parser takes them.

        Lists of (word, tag), or of `Word` if there are two `columns_` of tags. Of a tagger with probabilities, those of
        0.1 or more are added: for ``GrammarParser(terminals="predicted")`` after the first, with blanks between them;
        for `DependencyParser` as FEATS of a `Word`.
        """
        check_is_fitted(self)
        tokens = tokens_of(X)
        tags: list[list[Tags]] = [[] for _ in tokens]
        filled = [i for i, sentence in enumerate(tokens) if sentence]
        if filled:
            words = columns_of([tokens[i] for i in filled])
            for i, found in zip(filled, likely_tags(self.tagger_, words, self.parser_), strict=True):
                tags[i] = found
        return as_taken(tokens, tags, self.columns_, self.tagger_, self.parser_)

    def predict(self, X: Sequence[SentenceLike]) -> list[Any]:
        """Return the parser's predictions for sentences: lists of words.

        Or text, cut at its blanks, lists of (word, tag), or trees, with tags ignored.
        """
        return self._trained().predict(self.tagged(X))

    def predict_kbest(self, X: Sequence[SentenceLike], k: int, **options: bool) -> list[list[tuple[Any, float]]]:
        """Return the parser's k best trees of each sentence."""
        return self._trained().predict_kbest(self.tagged(X), k, **options)

    def explain(self, x: SentenceLike) -> Explanation:
        """Return why the parser's best tree of one sentence wins over the second best, given the tagger's tags.

        Raises ValueError for a list of sentences.
        """
        if are_sentences(x):
            refuse(x)
        return self._trained().explain(self.tagged([x])[0])

    def score(self, X: Sequence[SentenceLike], y: Sequence[object] | None = None) -> float:
        """Return the parser's score on sentences and trees, as `fit` takes them, with the tagger's tags."""
        trees = y if y is not None else _trees_in(X)
        return float(self._trained().score(self.tagged(X), trees))

    def _trained(self) -> Any:
        """The trained parser; NotFittedError before `fit`."""
        check_is_fitted(self)
        return self.parser_

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "parser_" in state:
            state.setdefault("columns_", (UPOS,))  # pickles of one column of tags do not name it
        super().__setstate__(state)  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string = False, True
        tags.target_tags.single_output, tags.target_tags.multi_output = False, True
        return tags

    def compact(self, **options: object) -> Self:
        """Raise TypeError: compact models are those of one estimator."""
        raise TypeError(
            "TaggedParser has no compact models: parser_ and tagger_ have them each, where its own estimator has"
        )

    def save(self, path: Destination, *, training_state: bool | None = None) -> None:
        """Write tagger and parser to one file; `structsvm.load` opens it. `training_state`: see their `save`.

        Raises
        ------
        TypeError
            For a tagger that is not a `SequenceLabeler`, another parser, and what their own files cannot contain. No
            file is changed.
        """
        write_model(path, KIND, *self.contents(training_state=training_state), deflated=True)

    def contents(self, *, training_state: bool | None = None) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Header and arrays of the file that `save` writes; raises as `save` does."""
        check_is_fitted(self)
        header: dict[str, Any] = {"estimator": type(self).__name__}
        header |= {"n_folds": self.n_folds, "tag_accuracy": self.tag_accuracy_, "columns": list(self.columns_)}
        arrays: dict[str, AnyArray] = {}
        for name, kinds in PARTS.items():
            part = getattr(self, f"{name}_")
            if type(part) not in kinds:
                wanted = " or ".join(kind.__name__ for kind in kinds)
                raise TypeError(f"a model file cannot hold a {name} that is no {wanted}: {type(part).__name__}")
            header[name], own = part.contents(training_state=training_state)
            arrays |= {f"{name}.{key}": array for key, array in own.items()}
        return header, arrays

    @classmethod
    def load(cls, path: Origin, *, mmap: bool = False, trusted: bool = False) -> Self:
        """Open a file written by `save`; ModelFileError if it is not a complete, valid model of this class.

        `trusted`: see `structsvm.load`.
        """
        file, parts = read_model(path, kind=KIND, mmap=mmap), {}
        with unsound(path, KIND):
            for name, kinds in PARTS.items():
                own = file.meta[name]
                kind = {kind.__name__: kind for kind in kinds}[own["estimator"]]
                parts[name] = kind.of_contents(path, own, file.under(f"{name}."), trusted)
            accuracy = file.meta["tag_accuracy"]
            if type(accuracy) is not float or not 0.0 <= accuracy <= 1.0:
                raise ValueError(f"'tag_accuracy' must be from 0 to 1, got {accuracy!r:.80}")
            columns = tuple(file.meta.get("columns", [UPOS]))  # files of one column of tags do not name it
            if columns[:1] != (UPOS,) or columns != tuple(name for name in COLUMNS if name in columns):
                raise ValueError(f"'columns' must be some of {list(COLUMNS)}, with the first, got {columns!r:.80}")
            self = cls(clone(parts["parser"]), clone(parts["tagger"]), n_folds=Count(2).get("n_folds", file.meta))
        self.tagger_, self.parser_ = parts["tagger"], parts["parser"]
        self.tag_accuracy_, self.columns_ = accuracy, columns
        return self


def _trees_in(X: Sequence[object]) -> list[object]:
    """Trees without sentences, in a form that parsers accept."""
    return [tree.arcs if isinstance(tree, DependencyTree) else tree for tree in X]


def _usual_parser(trees: Sequence[object]) -> DependencyParser | GrammarParser:
    """The parser for trees of this kind: lists of arcs, or constituents."""
    first = next(iter(trees), None)
    are_constituents = isinstance(first, str) or hasattr(first, "label")
    return GrammarParser(terminals="predicted") if are_constituents else DependencyParser()
