"""Text vectorizers in model files."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.parameters import plain

VECTORIZERS = ("CountVectorizer", "TfidfVectorizer")


def vectorizer_to_file(vectorizer: Any) -> tuple[Any, Any]:
    """Return a fitted vectorizer as a dict for JSON and arrays; TypeError for one that a file cannot hold."""
    from sklearn.feature_extraction import text

    name = type(vectorizer).__name__
    if name not in VECTORIZERS or getattr(text, name) is not type(vectorizer):
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


def vectorizer_from_file(meta: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """The inverse of `vectorizer_to_file`; ValueError, KeyError or TypeError for what it cannot have written."""
    from sklearn.feature_extraction import text

    if meta["name"] not in VECTORIZERS:
        raise ValueError(f"a vectorizer {meta['name']!r:.80}")
    params = dict(meta["params"])
    params["dtype"] = np.dtype(params["dtype"]).type
    params["ngram_range"] = tuple(params["ngram_range"])
    terms = arrays["vectorizer.terms"].tobytes().decode().split("\0")
    vectorizer = getattr(text, meta["name"])(**params | {"input": "content"}, vocabulary=terms)
    vectorizer.fit([terms[0]])
    if "vectorizer.idf" in arrays:
        vectorizer.idf_ = arrays["vectorizer.idf"]
    return vectorizer.set_params(input=params["input"], vocabulary=terms if meta["is_fixed"] else None)
