"""Scores for label sequences, counted over the chunks that labels make by their scheme.

The counter is conlleval's automaton (Tjong Kim Sang and Buchholz, CoNLL-2000) over the whole corpus at once: every
sequence is followed by an ``O`` token, like conlleval's blank lines, and the automaton's state at a token follows from
the last event before it, so no Python code runs per token once the labels are encoded. What begins and ends a chunk is
a table: by the roles of a scheme (`structsvm.metrics._schemes`), or by conlleval's own tags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import eq
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsvm.metrics._counts import AUTO
from structsvm.metrics._labels import LabelScore, LabelSequences, known_tokens, label_score
from structsvm.metrics._schemes import OUTSIDE, Part, Scheme, scheme_for


@dataclass(frozen=True)
class ChunkScores:
    """Scores of chunks as conlleval prints them, as numbers; returned by :func:`chunk_scores`.

    Attributes
    ----------
    precision, recall, f1 : float
        Over the chunks of all types together (micro), as fractions.
    accuracy : float
        Fraction of tokens with the right label.
    per_label : dict of str to LabelScore
        Scores of each chunk type, in alphabetical order.
    n_tokens, n_true, n_predicted, n_correct : int
        Numbers of tokens, of chunks in ``y_true``, in ``y_pred``, and in both.
    scheme : str
        The scheme that chunks were read by, and the form of its labels unless it is ``B-X``: "bio", "bilou X_B".

    Examples
    --------
    >>> from structsvm.metrics import chunk_scores
    >>> print(chunk_scores([["B-NP", "I-NP", "O"]], [["B-NP", "O", "O"]]).report())
    processed 3 tokens with 1 phrases; found: 1 phrases; correct: 0.
    accuracy:  66.67%; precision:   0.00%; recall:   0.00%; FB1:   0.00
                   NP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1
    """

    precision: float
    recall: float
    f1: float
    accuracy: float
    per_label: dict[str, LabelScore]
    n_tokens: int
    n_true: int
    n_predicted: int
    n_correct: int
    scheme: str

    def report(self) -> str:
        """Text in conlleval's format: percentages, then one line per chunk type."""
        ratios = "precision: {:6.2f}%; recall: {:6.2f}%; FB1: {:6.2f}"
        overall = ratios.format(100 * self.precision, 100 * self.recall, 100 * self.f1)
        lines = [
            (
                f"processed {self.n_tokens} tokens with {self.n_true} phrases; "
                f"found: {self.n_predicted} phrases; correct: {self.n_correct}."
            ),
            f"accuracy: {100 * self.accuracy:6.2f}%; {overall}",
        ]
        for name, score in self.per_label.items():
            line = ratios.format(100 * score.precision, 100 * score.recall, 100 * score.f1)
            lines.append(f"{name:>17s}: {line}  {score.predicted}")
        return "\n".join(lines)


class _Table(NamedTuple):
    """Where chunks begin and end, by the tags of a token and of the one before.

    Attributes
    ----------
    tags : str
        Tags are encoded as their indices, others as the index of "?".
    starts, ends : bool arrays (n_tags, n_tags)
        Pairs (previous tag, tag) at which a chunk starts or ends regardless of type.
    is_inside : bool array (n_tags,)
        Tags at which a change of type starts or ends one.
    """

    tags: str
    starts: NDArray[np.bool_]
    ends: NDArray[np.bool_]
    is_inside: NDArray[np.bool_]

    @classmethod
    def of(cls, tags: str, starts: str, ends: str, outside: str) -> _Table:
        """The table of pairs, in which "*" is every tag."""
        found = np.zeros((2, len(tags), len(tags)), dtype=bool)
        for pairs, into in zip((starts, ends), found, strict=True):
            for before, after in map(tuple, pairs.split()):
                at = (slice(None) if tag == "*" else tags.index(tag) for tag in (before, after))
                into[tuple(at)] = True
        return cls(tags, found[0], found[1], np.array([tag not in outside for tag in tags]))

    def id_of(self, tag: str) -> int:
        """The index of a tag."""
        return self.tags.index(tag if len(tag) == 1 and tag in self.tags else "?")


# Roles of schemes: all begin after O, and after a chunk's last token.
_ROLES = _Table.of("BIEOS?", "*B *S OI OE EI EE SI SE", "E* S* BB BO BS IB IO IS", "O?")
# The functions startOfChunk and endOfChunk of conlleval.
_CONLLEVAL = _Table.of("BIEO.[]?", "BB IB OB OI EE EI OE *[ *]", "BB BO IB IO EE EI EO [* ]*", "O.")
CONLLEVAL = "conlleval"


def _conlleval_part(label: object) -> Part:
    """Split by conlleval's pattern ^([^-]*)-(.*)$; a label without "-" is a tag with the empty type."""
    if not isinstance(label, str):
        raise TypeError(
            "chunk scores need labels that are strings such as 'B-NP', 'I-NP' or 'O'. "
            f"Got {label!r} of type {type(label).__name__}."
        )
    tag, _, kind = label.partition("-")
    return Part(tag, kind)


class _Encoder(dict[object, int]):
    """Label -> index of its (tag, type), in order of first appearance."""

    def __init__(self, part: Callable[[object], Any]) -> None:
        self.part = part
        self.pairs: dict[tuple[str, str], int] = {}

    def __missing__(self, label: object) -> int:
        return self.setdefault(label, self.pairs.setdefault(self.part(label), len(self.pairs)))

    def encode(self, y: Sequence[Sequence[object]]) -> NDArray[np.intp]:
        """Return the indices of the labels of all sequences, with an "O" before the first and after each."""
        stream = chain(("O",), chain.from_iterable(chain(seq, ("O",)) for seq in y))
        size = 1 + sum(map(len, y)) + len(y)
        return np.fromiter(map(self.__getitem__, stream), dtype=np.intp, count=size)


def _boundaries(
    table: _Table, tags: NDArray[np.intp], kinds: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether a chunk starts at, and whether one ends before, each token except the first."""
    before, after = tags[:-1], tags[1:]
    new_kind = kinds[:-1] != kinds[1:]
    start = table.starts[before, after] | (table.is_inside[after] & new_kind)
    end = table.ends[before, after] | (table.is_inside[before] & new_kind)
    return start, end


def _correct_chunks(
    start: Sequence[NDArray[np.bool_]],
    end: Sequence[NDArray[np.bool_]],
    kind_true: NDArray[np.intp],
    kind_pred: NDArray[np.intp],
) -> NDArray[np.intp]:
    """Return where correct chunks end: the indices of their last tokens, by conlleval's ``inCorrect`` automaton.

    A chunk opens where both labellings start one of the same type. It is correct if both end at the same token, with
    the same type, and is dropped at a token where only one ends or the types differ. Hence it is open before token t
    iff the last opening before t is not earlier than the last closing before t (at one token, closing precedes
    opening).
    """
    same_kind = kind_true == kind_pred
    opens = start[0] & start[1] & same_kind[1:]
    both_end = end[0] & end[1] & same_kind[:-1]
    closes = both_end | (end[0] != end[1]) | ~same_kind[1:]

    step = np.arange(1, len(opens) + 1)
    last_open = np.maximum.accumulate(np.append(0, np.where(opens, step, 0)))
    last_close = np.maximum.accumulate(np.append(0, np.where(closes, step, 0)))
    is_open = (last_open >= last_close) & (last_open > 0)
    # Labels such as a bare "B" then "." leave a chunk open at the end of the data; it counts.
    return np.flatnonzero(is_open & np.append(both_end, True))


def _marks(
    y_true: Sequence[Sequence[object]], y_pred: Sequence[Sequence[object]], scheme: str | Scheme | None
) -> tuple[Any, ...]:
    """Encode two labellings: the scheme and the names of types; then of each labelling types and where chunks start;
    and where correct chunks end.
    """
    table, encoder = _CONLLEVAL, _Encoder(_conlleval_part)
    if scheme != CONLLEVAL:
        scheme = scheme_for(chain.from_iterable(chain(y_true, y_pred)), scheme)
        table, encoder = _ROLES, _Encoder(scheme.part)
    codes = np.stack([encoder.encode(y_true), encoder.encode(y_pred)])
    return str(scheme), *_marks_of(table, codes, list(encoder.pairs))


def _marks_of(table: _Table, codes: NDArray[np.intp], pairs: Sequence[tuple[str, str]]) -> tuple[Any, ...]:
    """`_marks` but for the scheme, of two labellings as indices of pairs of a tag and a type: (2, size)."""
    names = sorted({kind for _, kind in pairs})
    kind_ids = {name: k for k, name in enumerate(names)}
    tags = np.array([table.id_of(tag) for tag, _ in pairs])[codes]
    kinds = np.array([kind_ids[kind] for _, kind in pairs])[codes]
    start, end = zip(*(_boundaries(table, *each) for each in zip(tags, kinds, strict=True)), strict=True)
    return names, kinds, start, _correct_chunks(start, end, *kinds)


def chunk_counts(
    y_true: LabelSequences, y_pred: LabelSequences, scheme: str | Scheme | None = None
) -> NDArray[np.intp]:
    """Numbers of true, predicted and correct chunks of each sequence: array (3, n_sequences); see `chunk_scores`."""
    true_sequences, pred_sequences = known_tokens(y_true, y_pred)
    _, _, _, start, right = _marks(true_sequences, pred_sequences, scheme)
    return _counted(start, right, np.array([len(s) for s in true_sequences]))


def chunk_counts_of_ids(
    true: NDArray[np.integer],
    predicted: NDArray[np.integer],
    lengths: NDArray[np.integer],
    labels: Sequence[str],
    scheme: Scheme,
) -> NDArray[np.intp]:
    """`chunk_counts` of labels that are indices of `labels`, of all tokens of sequences of these lengths."""
    used = np.bincount(np.concatenate([true, predicted]), minlength=len(labels)) > 0
    scheme = scheme_for([label for label, is_used in zip(labels, used, strict=True) if is_used], scheme)
    codes = np.full((2, 1 + len(true) + len(lengths)), len(labels))
    codes[:, 1 + np.arange(len(true)) + np.repeat(np.arange(len(lengths)), lengths)] = true, predicted
    parts = [(scheme.part(label) if is_used else None) or OUTSIDE for label, is_used in zip(labels, used, strict=True)]
    _, _, start, right = _marks_of(_ROLES, codes, [*parts, OUTSIDE])
    return _counted(start, right, lengths)


def _counted(
    start: Sequence[NDArray[np.bool_]], right: NDArray[np.intp], lengths: NDArray[np.integer]
) -> NDArray[np.intp]:
    """The chunks of each sequence of these lengths: true, predicted and correct ones, by where they start or end."""
    # The sequence of each token of the stream, whose first one belongs to none.
    owner = np.append(0, np.repeat(np.arange(len(lengths)), lengths + 1))
    places = (*(owner[1:][at] for at in start), owner[right])
    return np.stack([np.bincount(place, minlength=len(lengths)) for place in places])


def chunk_scores(
    y_true: LabelSequences, y_pred: LabelSequences, scheme: str | Scheme | None = None, unknown: object = AUTO
) -> ChunkScores:
    """Chunk precision, recall and F1 by the scheme of the labels.

    A chunk begins at B and S, after E and S, and wherever none of its type is open (:class:`Scheme`). BIO labels count
    as the script ``conlleval`` counts them, and those of other schemes as seqeval does, ill-formed sequences as well:
    an ``I-`` without ``B-`` starts a chunk, and so does a change of type.

    Parameters
    ----------
    y_true, y_pred : list of (list or array of shape (length,)) of str
        Label sequences.
    scheme : str or Scheme, optional
        The name of a scheme, such as "bio", "bioes", "bilou", "bmes". "conlleval": the rules of that script for any
        labels; it has none for ``S-``, nor for ``B-`` after ``E-``, and so merges such chunks. None: read off all
        labels, true and predicted.
    unknown : as :func:`token_accuracy` takes it
        Tokens whose true label is None, -100 or -1, or this mark, are left out.

    Returns
    -------
    ChunkScores

    Raises
    ------
    ValueError
        As in :func:`token_accuracy`; and for labels that are none of the scheme, or have none (parts of speech, say).
    TypeError
        A label is not a string.

    References
    ----------
    E. Tjong Kim Sang and S. Buchholz, Introduction to the CoNLL-2000 Shared Task: Chunking, 2000.

    Examples
    --------
    >>> from structsvm.metrics import chunk_scores
    >>> scores = chunk_scores([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "B-NP", "B-VP"]])
    >>> round(scores.f1, 3), scores.recall, scores.accuracy
    (0.8, 1.0, 0.75)
    >>> chunk_scores([["S-NP", "S-NP"]], [["B-NP", "E-NP"]]).f1
    0.0
    """
    true_sequences, pred_sequences = known_tokens(y_true, y_pred, unknown)
    name, names, kinds, start, ends = _marks(true_sequences, pred_sequences, scheme)

    def count(of_kinds: NDArray[np.intp]) -> list[int]:
        return np.bincount(of_kinds, minlength=len(names)).tolist()

    true, pred = (count(kind[1:][at]) for kind, at in zip(kinds, start, strict=True))
    right = count(kinds[0][ends])

    n_tokens = sum(map(len, true_sequences))
    n_right = sum(map(eq, chain.from_iterable(true_sequences), chain.from_iterable(pred_sequences)))
    overall = label_score(sum(right), sum(true), sum(pred))
    counts = zip(names, right, true, pred, strict=True)
    return ChunkScores(
        *overall[:3],
        accuracy=float(n_right / n_tokens),
        per_label={name: label_score(r, t, p) for name, r, t, p in counts if t or p},
        n_tokens=n_tokens,
        n_true=sum(true),
        n_predicted=sum(pred),
        n_correct=sum(right),
        scheme=name,
    )


def chunk_precision(
    y_true: LabelSequences, y_pred: LabelSequences, scheme: str | Scheme | None = None, unknown: object = AUTO
) -> float:
    """Fraction of the predicted chunks that are right; see :func:`chunk_scores`.

    Examples
    --------
    >>> from structsvm.metrics import chunk_precision
    >>> chunk_precision([["B-NP", "O", "O"]], [["B-NP", "O", "B-VP"]])
    0.5
    """
    return chunk_scores(y_true, y_pred, scheme, unknown).precision


def chunk_recall(
    y_true: LabelSequences, y_pred: LabelSequences, scheme: str | Scheme | None = None, unknown: object = AUTO
) -> float:
    """Fraction of the true chunks that are predicted; see :func:`chunk_scores`.

    Examples
    --------
    >>> from structsvm.metrics import chunk_recall
    >>> chunk_recall([["B-NP", "O", "B-VP"]], [["B-NP", "O", "O"]])
    0.5
    """
    return chunk_scores(y_true, y_pred, scheme, unknown).recall


def chunk_f1(
    y_true: LabelSequences, y_pred: LabelSequences, scheme: str | Scheme | None = None, unknown: object = AUTO
) -> float:
    """Harmonic mean of chunk precision and recall; see :func:`chunk_scores`.

    Examples
    --------
    >>> from structsvm.metrics import chunk_f1
    >>> chunk_f1([["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]])
    0.5
    """
    return chunk_scores(y_true, y_pred, scheme, unknown).f1
