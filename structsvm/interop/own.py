"""Models of other programs as our own, to be saved, calibrated and trained further."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm.interop.chain_model import PROGRAMS, ChainModel
from structsvm.interop.conversions import converted

if TYPE_CHECKING:
    from structsvm.tasks.sequence.model import SequenceModel


def own_model(chain: ChainModel) -> SequenceModel:
    """The `SequenceModel` of the log loss with these weights, in float32; its labels are sorted.

    Raises
    ------
    ValueError
        For a model with patterns, whose observations would have to be taken apart; and for weights of pairs of labels
        with an attribute.
    """
    from structsvm.features.encoder import FeatureEncoder
    from structsvm.oracles.viterbi import ViterbiOracle
    from structsvm.tasks.sequence.model import SequenceModel
    from structsvm.tasks.sequence.parameters import TokenFeatures

    if chain.patterns:
        raise ValueError(
            f"model: features of templates are not taken over from {PROGRAMS[chain.kind]}: train again with the same "
            "file as templates="
        )
    chain = (chain if chain.kind == "crfsuite" else converted(chain, "crfsuite")).rescaled()
    order = sorted(range(len(chain.labels)), key=chain.labels.__getitem__)
    labels, n, K = [chain.labels[k] for k in order], len(chain.attributes), len(order)
    place = np.argsort(order)
    encoder = FeatureEncoder().fit([[list(chain.attributes)]])  # names that occur once have the numbers of their order
    encoder.seen = None  # the columns of training are not known
    oracle = ViterbiOracle(K, n, end=chain.end is not None, loss="log")
    rows = np.zeros((oracle.n_rows, oracle.stride))
    rows[chain.states.rows(), place[chain.states.targets]] = chain.states.weights
    for k, weights in enumerate((chain.transitions, chain.start, chain.end)):
        if weights is not None:
            first = n + (k > 0) * (K + k - 1)
            rows[first : first + (1 if k else K), :K] = weights[np.ix_(order, order)] if k == 0 else weights[order]
    model = SequenceModel(encoder, labels, oracle, weights=rows.astype(np.float32).ravel())
    model.params = {"loss": "log", "templates": None, "features": TokenFeatures(end=oracle.end)}
    return model
