"""Data sets: real ones, downloaded on first use, and simulated ones.

Every fetcher takes the data folder and raises the errors that :func:`fetch_conll2000` describes. Every simulator draws
the same data from the same seed, and raises ValueError, naming it, for a parameter that is out of its range.
"""

from structsvm.datasets._alignments import AlignmentPairs, fetch_oxbench, fetch_prefab, fetch_substitution_matrix
from structsvm.datasets._binary import make_banana, make_ill_conditioned, make_waveform
from structsvm.datasets._classes import (
    CandidateLabels,
    LabelledRows,
    fetch_20newsgroups,
    fetch_adult,
    fetch_letter,
    fetch_lost,
    fetch_mnist,
    fetch_msrcv2,
    fetch_multilabel_yeast,
    fetch_usps,
    fetch_w8a,
)
from structsvm.datasets._fetch import DatasetUnavailableError
from structsvm.datasets._homologues import Homologues, make_alignment, write_alignments
from structsvm.datasets._meanings import GeoQuery, Sportscast, SportsGame, fetch_geoquery, fetch_robocup
from structsvm.datasets._rankings import QueryRows, fetch_rank_lightgbm, make_rankings
from structsvm.datasets._sequences import (
    LabelledGraphs,
    LabelledRecords,
    LetterSequences,
    TextSequences,
    fetch_addresses,
    fetch_citations,
    fetch_conll2000,
    fetch_conll2002,
    fetch_graph_horses,
    fetch_grid_horses64,
    fetch_ocr_letters,
    fetch_treebank_tags,
)
from structsvm.datasets._simulate import (
    make_label_sets,
    make_noisy_grids,
    make_orderings,
    make_sequences,
    make_snakes,
    make_word_alignments,
    write_columns,
)
from structsvm.datasets._taxonomies import (
    TaxonomyDocuments,
    fetch_amazon_reviews,
    fetch_clinc150,
    fetch_imclef07a,
    make_taxonomy,
    write_documents,
)
from structsvm.datasets._trees import (
    DependencyTreebank,
    Treebank,
    fetch_treebank_sample,
    fetch_ud_dutch,
    fetch_ud_english_ewt,
    make_dependency_trees,
    make_treebank,
)
from structsvm.datasets.english._addresses import make_addresses
from structsvm.datasets.english._citations import make_citations
from structsvm.datasets.english._products import make_products
from structsvm.datasets.english._recipes import make_recipes
from structsvm.datasets.worlds._child_world import make_ambig_child_world
from structsvm.datasets.worlds._concept_world import Universe, make_concept_world
from structsvm.datasets.worlds._house import AmbiguousSentences, make_ambig_house
from structsvm.datasets.worlds._queries import MapQueries, make_queries

__all__ = [
    "AlignmentPairs",
    "AmbiguousSentences",
    "CandidateLabels",
    "DatasetUnavailableError",
    "DependencyTreebank",
    "GeoQuery",
    "Homologues",
    "LabelledGraphs",
    "LabelledRecords",
    "LabelledRows",
    "LetterSequences",
    "MapQueries",
    "QueryRows",
    "SportsGame",
    "Sportscast",
    "TaxonomyDocuments",
    "TextSequences",
    "Treebank",
    "Universe",
    "fetch_20newsgroups",
    "fetch_addresses",
    "fetch_adult",
    "fetch_amazon_reviews",
    "fetch_citations",
    "fetch_clinc150",
    "fetch_conll2000",
    "fetch_conll2002",
    "fetch_geoquery",
    "fetch_graph_horses",
    "fetch_grid_horses64",
    "fetch_imclef07a",
    "fetch_letter",
    "fetch_lost",
    "fetch_mnist",
    "fetch_msrcv2",
    "fetch_multilabel_yeast",
    "fetch_ocr_letters",
    "fetch_oxbench",
    "fetch_prefab",
    "fetch_rank_lightgbm",
    "fetch_robocup",
    "fetch_substitution_matrix",
    "fetch_treebank_sample",
    "fetch_treebank_tags",
    "fetch_ud_dutch",
    "fetch_ud_english_ewt",
    "fetch_usps",
    "fetch_w8a",
    "make_addresses",
    "make_alignment",
    "make_ambig_child_world",
    "make_ambig_house",
    "make_banana",
    "make_citations",
    "make_concept_world",
    "make_dependency_trees",
    "make_ill_conditioned",
    "make_label_sets",
    "make_noisy_grids",
    "make_orderings",
    "make_products",
    "make_queries",
    "make_rankings",
    "make_recipes",
    "make_sequences",
    "make_snakes",
    "make_taxonomy",
    "make_treebank",
    "make_waveform",
    "make_word_alignments",
    "write_alignments",
    "write_columns",
    "write_documents",
]
