"""Text vectorizers in model files."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.parameters import plain
from structsvm.stored_values import Array, checked_arrays, stored_flag

VECTORIZERS = ("CountVectorizer", "TfidfVectorizer")
# Regular expressions that take linear time: scikit-learn's default, words of one letter too, whatever stands between
# blanks. Others may take exponential time.
TOKEN_PATTERNS = (r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", r"\S+")
DTYPES = ("float32", "float64", "int32", "int64")
MAX_NGRAM = 1000

TERMS = {"vectorizer.terms": Array("u1", ("n_bytes",))}
IDF = {"vectorizer.idf": Array("f8", ("n_terms",))}


def vectorizer_to_file(vectorizer: Any) -> tuple[Any, Any]:
    """Return a fitted vectorizer as a dict for JSON and arrays; TypeError for one that a file cannot hold."""
    from sklearn.feature_extraction import text

    name = type(vectorizer).__name__
    if name not in VECTORIZERS or getattr(text, name) is not type(vectorizer):
        raise TypeError(
            f"a model file cannot hold a {name}: use scikit-learn's CountVectorizer or TfidfVectorizer, or keep it in "
            "front of the classifier"
        )
    if vectorizer.input != "content":
        raise TypeError(
            f"a model file cannot hold a vectorizer with input={vectorizer.input!r}, which opens files: give it texts, "
            "input='content'"
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
    if params["input"] != "content":
        raise ValueError(f"a vectorizer with input={params['input']!r:.80}, which opens files")
    if params["dtype"] not in DTYPES:
        raise ValueError(f"a vectorizer of numbers of type {params['dtype']!r:.80}")
    params["dtype"] = np.dtype(params["dtype"]).type
    params["ngram_range"] = tuple(params["ngram_range"])
    if any(type(n) is not int or not 1 <= n <= MAX_NGRAM for n in params["ngram_range"]):
        raise ValueError(f"a vectorizer of n-grams of {params['ngram_range']!r:.80} words, expected 1 to {MAX_NGRAM}")
    try:
        re.compile(params["token_pattern"])
        "".encode(params["encoding"])
    except (re.error, LookupError) as error:
        raise ValueError(f"a vectorizer whose token_pattern or encoding is none: {error}") from None
    terms = checked_arrays(arrays, TERMS)["vectorizer.terms"].tobytes().decode().split("\0")
    vectorizer = getattr(text, meta["name"])(**params, vocabulary=terms)
    vectorizer.fit([terms[0]])
    if meta["name"] == "TfidfVectorizer" and stored_flag(params, "use_idf"):
        vectorizer.idf_ = checked_arrays(arrays, IDF, n_terms=len(terms))["vectorizer.idf"]
    return vectorizer.set_params(vocabulary=terms if stored_flag(meta, "is_fixed") else None)
