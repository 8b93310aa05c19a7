"""What model files keep of a `TaxonomyClassifier`'s parameters, and of its text vectorizer."""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from structsvm.parameters import plain
from structsvm.solvers.base import Solver
from structsvm.tasks.common.labels import label_from_json, label_to_json
from structsvm.tasks.common.solver import solver_from_json, solver_to_json

VECTORIZERS = {"CountVectorizer": CountVectorizer, "TfidfVectorizer": TfidfVectorizer}


def params_to_file(params):
    """An estimator's parameters: a dict for the header of its file, and arrays, those that are matrices.

    Taxonomy and vectorizer are kept elsewhere.
    """
    stored, arrays = {}, {}
    for name, value in params.items():
        if isinstance(value, Solver):
            value = solver_to_json(value)
        elif name == "class_weight" and isinstance(value, dict):
            value = {"weights": [[label_to_json(label), float(weight)] for label, weight in value.items()]}
        elif name in ("loss", "attributes") and not isinstance(value, str):
            dense = value.toarray() if hasattr(value, "toarray") else value
            arrays[f"params.{name}"], value = np.asarray(dense, dtype=np.float64), None
        elif name in ("checkpoint", "vectorizer", "taxonomy"):
            value = None
        else:
            value = plain(value)
        stored[name] = value
    return stored, arrays


def params_from_file(file, model):
    """The inverse of `params_to_file`."""
    params = file.meta["params"] | file.under("params.")
    if isinstance(params["solver"], dict):
        params["solver"] = solver_from_json(params["solver"])
    if params["solver"] is None:  # of a user's own class
        del params["solver"]
    if isinstance(params["class_weight"], dict):
        params["class_weight"] = {label_from_json(label): weight for label, weight in params["class_weight"]["weights"]}
    if model.taxonomy.root is not None:
        params["taxonomy"] = model.taxonomy
    return params


def vectorizer_to_file(vectorizer):
    """Return a fitted vectorizer as a dict for JSON and arrays; TypeError for one that a file cannot hold."""
    name = type(vectorizer).__name__
    if VECTORIZERS.get(name) is not type(vectorizer):
        raise TypeError(
            f"a model file cannot hold a {name}: use scikit-learn's CountVectorizer or TfidfVectorizer, or keep it in "
            "front of the classifier"
        )
    params = {}
    for key, value in vectorizer.get_params().items():
        if key == "vocabulary":
            continue
        if key == "dtype":
            value = np.dtype(value).name
        elif key in ("ngram_range", "stop_words") and isinstance(value, (tuple, list)):
            value = list(value)
        elif plain(value) is None and value is not None:
            raise TypeError(f"a model file cannot hold the parameter {key}={value!r:.80} of the vectorizer")
        params[key] = plain(value) if not isinstance(value, list) else value
    terms = "\0".join(sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.get))
    arrays = {"vectorizer.terms": np.frombuffer(terms.encode(), dtype=np.uint8)}
    if name == "TfidfVectorizer" and vectorizer.use_idf:
        arrays["vectorizer.idf"] = np.asarray(vectorizer.idf_, dtype=np.float64)
    return {"name": name, "params": params, "is_fixed": vectorizer.vocabulary is not None}, arrays


def vectorizer_from_file(meta, arrays):
    """The inverse of `vectorizer_to_file`; ValueError, KeyError or TypeError for what it cannot have written."""
    params = dict(meta["params"])
    params["dtype"] = np.dtype(params["dtype"]).type
    params["ngram_range"] = tuple(params["ngram_range"])
    terms = arrays["vectorizer.terms"].tobytes().decode().split("\0")
    vectorizer = VECTORIZERS[meta["name"]](**params | {"input": "content"}, vocabulary=terms)
    vectorizer.fit([terms[0]])
    if "vectorizer.idf" in arrays:
        vectorizer.idf_ = arrays["vectorizer.idf"]
    return vectorizer.set_params(input=params["input"], vocabulary=terms if meta["is_fixed"] else None)
