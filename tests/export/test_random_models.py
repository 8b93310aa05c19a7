"""Models with random weights in the runtime in C: outputs and scores are Python's, for all models of the tests.

Weights that were learnt seldom tie, and are of one size. Drawn ones may be 0 but for a few, multiples of a power of 2,
of which many sums are equal, or so large that small ones are lost beside them.
"""

import copy
import warnings
from functools import cache

import candidate_models
import document_models
import numpy as np
import parser_models
import pytest
import runtime_models
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_models import COMPILER

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
FEW = 12  # sequences, texts or sentences of which a model is made
MODULES = {"tokens": runtime_models, "texts": document_models, "candidates": candidate_models, "trees": parser_models}
TABLE = [
    *(("tokens", name) for name in runtime_models.MODELS),
    *(("texts", name) for name in document_models.MODELS),
    *(("candidates", name) for name in candidate_models.TEXTS),
    *(("trees", name) for name in parser_models.MODELS),
]


@cache
def inputs(kind, name):
    if kind == "tokens":
        return runtime_models.sequences(name)[:80]
    return parser_models.new_sentences()[:40] if kind == "trees" else document_models.texts()


def drawn(rng, weights, scale, share, unit):
    """Normal numbers in the place of a share of the weights that are not 0, in multiples of a unit if there is one."""
    found = np.where((weights != 0) & (rng.random(weights.shape) < share), scale * rng.normal(size=weights.shape), 0.0)
    return (np.round(found / unit) * unit if unit else found).astype(weights.dtype)


def with_drawn_weights(kind, name, *draws):
    """A copy of a small model with other weights: the estimator, behind its vectorizer if it has one of its own."""
    whole = copy.deepcopy(MODULES[kind].fitted(name, FEW))
    model = (whole[-1] if kind == "candidates" else whole).model_
    model.weights = drawn(*draws[:1], model.weights, *draws[1:])
    if kind == "trees" and model.pairs is not None:
        model.pairs.weights = drawn(*draws[:1], model.pairs.weights, *draws[1:])
    return whole


def exported(kind, model):
    if kind != "candidates":
        return runtime_models.bytes_of(model)
    return runtime_models.bytes_by(lambda folder: model[-1].export(folder, pipeline=model))


def ranked(kind, model, x, k=4):
    """The k best outputs of Python with their scores, as the runtime has them."""
    if kind in ("tokens", "trees"):
        return [(list(output), score) for output, score in model.predict_kbest([x], k)[0]]
    scores = model.decision_function([x])[0]
    best = np.argsort(-scores, kind="stable")[:k]
    return list(zip(model.classes_[best].tolist(), scores[best].tolist(), strict=True))


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(TABLE),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.01, 1.0, 100.0]),
    st.sampled_from([0.02, 0.3, 1.0]),
    st.sampled_from([0, 0, 2.0**-3, 0.5]),
)
def test_outputs_and_scores_are_those_of_python(runtime, case, seed, scale, share, unit):
    kind, name = case
    rng = np.random.default_rng(seed)
    model = with_drawn_weights(kind, name, rng, scale, share, unit)
    own = runtime.load(exported(kind, model))
    for i in rng.integers(len(inputs(kind, name)), size=5).tolist():
        x = inputs(kind, name)[i]
        shown = parser_models.columns(x) if kind == "trees" else x
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # texts without a known word, which Python warns of, are among those tried
            best = ranked(kind, model, x)
            output = model.predict([x])[0]
        assert own.kbest(shown, 4) == best
        if kind in ("tokens", "trees"):
            assert own.predict(shown) == list(output)
        else:
            assert own.predict([shown]) == [output]


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([one for one in TABLE if one[0] != "trees" or one[1].startswith("log loss")]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.01, 1.0]),
    st.sampled_from([0.3, 1.0]),
)
def test_probabilities_are_those_of_python(runtime, case, seed, scale, share):
    kind, name = case
    rng = np.random.default_rng(seed)
    model = with_drawn_weights(kind, name, rng, scale, share, 0)
    if (model[-1] if kind == "candidates" else model).temperature_ is None:
        return
    own = runtime.load(exported(kind, model))
    for i in rng.integers(len(inputs(kind, name)), size=5).tolist():
        x = inputs(kind, name)[i]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proba = model.predict_marginals if kind == "tokens" else model.predict_proba
            wanted = proba([x])[0]
        if kind == "tokens":
            wanted = wanted @ runtime_models.columns_of_labels(model)
        shown = parser_models.columns(x) if kind == "trees" else x
        found = own.probability(shown) if kind in ("tokens", "trees") else own.probability([shown])[0]
        np.testing.assert_allclose(np.reshape(found, wanted.shape), wanted, atol=5e-5)
