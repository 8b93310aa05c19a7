"""Data sets: real ones, fetched on first use, and simulated ones."""

from structsvm.datasets._bags import CandidateLabels, fetch_lost, fetch_msrcv2
from structsvm.datasets._child_world import make_ambig_child_world
from structsvm.datasets._concept_world import Universe, make_concept_world
from structsvm.datasets._fetch import DatasetUnavailableError
from structsvm.datasets._house import AmbiguousSentences, make_ambig_house
from structsvm.datasets._meanings import GeoQuery, Sportscast, SportsGame, fetch_geoquery, fetch_robocup
from structsvm.datasets._sequences import (
    LetterSequences,
    TextSequences,
    fetch_conll2000,
    fetch_conll2002,
    fetch_ocr_letters,
    fetch_treebank_tags,
)
from structsvm.datasets._simulate import make_sequences, write_columns

__all__ = [
    "AmbiguousSentences",
    "CandidateLabels",
    "DatasetUnavailableError",
    "GeoQuery",
    "LetterSequences",
    "SportsGame",
    "Sportscast",
    "TextSequences",
    "Universe",
    "fetch_conll2000",
    "fetch_conll2002",
    "fetch_geoquery",
    "fetch_lost",
    "fetch_msrcv2",
    "fetch_ocr_letters",
    "fetch_robocup",
    "fetch_treebank_tags",
    "make_ambig_child_world",
    "make_ambig_house",
    "make_concept_world",
    "make_sequences",
    "write_columns",
]
