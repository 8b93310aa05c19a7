"""Encoded pairs of strings with their reference alignments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.structures.alignments import References
from structsvm.tasks.common.examples import Examples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from Bio.Align import Alignment as BioAlignment
    from Bio.Align import MultipleSeqAlignment
    from Bio.Seq import MutableSeq, Seq
    from Bio.SeqRecord import SeqRecord

    # A sequence as users give it: letters, or a tuple of letters and their annotations.
    String: TypeAlias = str | Sequence[str] | Seq | MutableSeq | SeqRecord
    StringPair: TypeAlias = Sequence[String] | BioAlignment | MultipleSeqAlignment
    # The rows of two sequences with gaps.
    GappedRows: TypeAlias = Sequence[str | Seq | MutableSeq | SeqRecord] | BioAlignment | MultipleSeqAlignment

    from structsvm.arrays import Integers


@dataclass(frozen=True, eq=False)
class AlignedPairs(Examples):
    """Pairs of strings: what is known of their alignments, and decoys.

    Attributes
    ----------
    references : References
    """

    references: References

    def take(self, chosen: NDArray[np.intp]) -> Self:
        weight = None if self.weight is None else self.weight[chosen]
        return replace(self, references=self.references.chosen(chosen), weight=weight)

    @property
    def has_unknown(self) -> bool:
        return len(self) > 0 and bool(self.references.has_unknown)

    @property
    def groups(self) -> Integers:
        """Pairs that share a string, directly or through others, have the same number."""
        return pool_groups(self.references)


def pool_groups(references: References) -> Integers:
    """The connected component of each pair where strings are nodes and pairs are edges: int array (n_pairs,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, sources = len(references), references.strings.sources
    graph = coo_array((np.ones(n), tuple(sources[references.pairs].T)), (len(sources),) * 2)
    return connected_components(graph, directed=False)[1][sources[references.x]]
