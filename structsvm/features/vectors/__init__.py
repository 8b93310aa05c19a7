"""Vectors that another program has computed, as rows of numbers for each word: of sub-words, documents and tables."""

from structsvm.features.vectors.pieces import pool_offsets, pool_word_ids
from structsvm.features.vectors.words import LookedUp, document_rows, with_vectors

__all__ = ["LookedUp", "document_rows", "pool_offsets", "pool_word_ids", "with_vectors"]
