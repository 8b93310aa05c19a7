"""Data sets: real ones, fetched on first use, and simulated ones."""

from structsvm.datasets._alignments import AlignmentPairs, fetch_oxbench, fetch_prefab, fetch_substitution_matrix
from structsvm.datasets._fetch import DatasetUnavailableError
from structsvm.datasets._homologues import Homologues, make_homologues, write_alignments
from structsvm.datasets._sequences import (
    LetterSequences,
    TextSequences,
    fetch_conll2000,
    fetch_conll2002,
    fetch_ocr_letters,
    fetch_treebank_tags,
)
from structsvm.datasets._simulate import make_sequences, write_columns
from structsvm.datasets._taxonomies import (
    TaxonomyDocuments,
    fetch_amazon_reviews,
    fetch_clinc150,
    fetch_imclef07a,
    make_taxonomy,
    write_documents,
)
from structsvm.datasets._trees import Treebank, fetch_wsj_sample, make_trees

__all__ = [
    "AlignmentPairs",
    "DatasetUnavailableError",
    "Homologues",
    "LetterSequences",
    "TaxonomyDocuments",
    "TextSequences",
    "Treebank",
    "fetch_amazon_reviews",
    "fetch_clinc150",
    "fetch_conll2000",
    "fetch_conll2002",
    "fetch_imclef07a",
    "fetch_ocr_letters",
    "fetch_oxbench",
    "fetch_prefab",
    "fetch_substitution_matrix",
    "fetch_treebank_tags",
    "fetch_wsj_sample",
    "make_homologues",
    "make_sequences",
    "make_taxonomy",
    "make_trees",
    "write_alignments",
    "write_columns",
    "write_documents",
]
