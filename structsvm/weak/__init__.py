"""Weak labels: votes of labelling functions and of annotators, brought to candidates with weights."""

from structsvm.weak.model import VoteModel
from structsvm.weak.votes import majority, spans_as_votes

__all__ = ["VoteModel", "majority", "spans_as_votes"]
