"""Data sets: real ones, fetched on first use, and simulated ones."""

from structsvm.datasets._fetch import DatasetUnavailableError
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

__all__ = [
    "DatasetUnavailableError",
    "LetterSequences",
    "TaxonomyDocuments",
    "TextSequences",
    "fetch_amazon_reviews",
    "fetch_clinc150",
    "fetch_conll2000",
    "fetch_conll2002",
    "fetch_imclef07a",
    "fetch_ocr_letters",
    "fetch_treebank_tags",
    "make_sequences",
    "make_taxonomy",
    "write_columns",
    "write_documents",
]
