"""Whole records as the criterion by which C and the loss are chosen.

Of addresses, names and references users want whole records without an error. The C that is best for tokens need not be
best for these. In fivefold cross-validation on the training parts, each with three divisions, with features of programs
and with words alone, the choice by records had .76 points more of 1,514 references right (standard error .16), and .14
more of 1,513 addresses (.14); tokens right were no fewer.

Records are told from running text by their labels: nearly every field stands there once, in one run. Parts of speech
and letters of words recur.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm.tasks.common.selection.search import Held
from structsvm.tasks.common.solver import CRITERIA, RECORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Integers
    from structsvm.tasks.sequence.examples import LabeledSequences

# Fields of a record that are one run, as a share of all fields: .99 in addresses and references, .87 in the letters of
# words, .59 in parts of speech.
SHARE_OF_FIELDS = 0.95
# Among fewer sequences, whole ones that are right vary too much. Of longer ones hardly any is wholly right.
FEWEST, MOST_TOKENS = 300, 50


def criterion_of(C: object, examples: LabeledSequences, *, may_be_records: bool) -> str | None:
    """The criterion that a parameter C names, or the one of the examples; None: that of the task.

    `may_be_records`: whether examples may be records without being named so.
    """
    if isinstance(C, str) and C in CRITERIA:
        return C
    return RECORDS if may_be_records and are_records(examples) else None


def are_records(examples: LabeledSequences) -> bool:
    """Whether sequences are records, by their labels, which are all known."""
    if examples.is_stored or examples.has_unknown:
        return False
    examples = examples.of_weight()
    n, ids = len(examples), examples.label_ids
    is_long = len(ids) > MOST_TOKENS * n
    return n >= FEWEST and not is_long and share_of_fields(ids, examples.tokens.offsets) >= SHARE_OF_FIELDS


def share_of_fields(ids: NDArray[np.int32], offsets: Integers) -> float:
    """The share of the labels of sequences that are one run each."""
    begins = np.append(True, ids[1:] != ids[:-1])[: len(ids)]
    begins[offsets[:-1][np.diff(offsets) > 0]] = True
    at = np.flatnonzero(begins)
    fields = (np.searchsorted(offsets, at, side="right") - 1) * (int(ids.max(initial=0)) + 1) + ids[at]
    _, counts = np.unique(fields, return_counts=True)
    return float((counts == 1).mean()) if len(counts) else 0.0


def whole(held: Held) -> Held:
    """Sequences that are wholly right, by how many tokens of each are right; of those with a token that counts."""
    _, right, counted = held
    return Held("records", 1.0 * ((right == counted) & (counted > 0)), 1.0 * (counted > 0))
