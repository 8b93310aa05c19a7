"""Text vectorizers in model files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.arrays import Arrays, checksum
from structsvm.export.texts import TOKEN_PATTERNS
from structsvm.parameters import plain
from structsvm.stored_values import Array, Flag, OneOf, Record, Value

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.feature_extraction.text import CountVectorizer

    from structsvm.arrays import AnyArray, Floats

# Parameters with functions of the user's, which may take documents that are no texts.
FUNCTIONS = ("analyzer", "preprocessor", "tokenizer")
VECTORIZERS = ("CountVectorizer", "TfidfVectorizer")
DTYPES = ("float32", "float64", "int32", "int64")
MAX_NGRAM = 1000


def takes_texts(vectorizer: BaseEstimator) -> bool:
    """Whether a vectorizer takes nothing but texts: it reads no files, and has no function of the user's."""
    params = vectorizer.get_params()
    return params.get("input") == "content" and not any(callable(params.get(name)) for name in FUNCTIONS)


def are_words(x: object) -> bool:
    """Whether x is a list of texts without a blank: the words of a document, and no list of documents."""
    return isinstance(x, (list, tuple)) and all(isinstance(word, str) and len(word.split()) < 2 for word in x)


def checked_documents(vectorizer: BaseEstimator, X: Any) -> Any:
    """Return the documents X; ValueError, with the remedy, unless they are what the vectorizer takes."""
    if isinstance(X, (str, bytes)) or getattr(X, "ndim", 1) != 1:
        raise ValueError(f"with a vectorizer X must be a list of texts, got {X!r:.80}")
    if not takes_texts(vectorizer):
        return X
    X = X if hasattr(X, "__len__") else list(X)
    for k, document in enumerate(X):
        if not isinstance(document, (str, bytes)):
            name, remedy = type(vectorizer).__name__, "give a text"
            if isinstance(document, (list, tuple)):
                remedy = (
                    f"join its words by blanks, or give vectorizer={name}(analyzer=list), which takes lists of words"
                )
            raise ValueError(
                f"the vectorizer {name} takes texts, and X[{k}] is the {type(document).__name__} {document!r:.60}: "
                + remedy
            )
    return X


def params_to_file(vectorizer: BaseEstimator) -> dict[str, Any]:
    """The class and parameters of a vectorizer as a dict for JSON; TypeError for those that a file cannot hold."""
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
    return {"name": name, "params": params, "is_fixed": vectorizer.vocabulary is not None}


def params_from_file(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a vectorizer as its constructor takes them; ValueError or TypeError for those that it cannot have.

    One with another input than "content" opens files.
    """
    if params["input"] != "content" or params["dtype"] not in DTYPES:
        raise ValueError(f"a vectorizer with input={params['input']!r:.80} and dtype={params['dtype']!r:.80}")
    ngrams = tuple(params["ngram_range"])
    if any(type(n) is not int or not 1 <= n <= MAX_NGRAM for n in ngrams):
        raise ValueError(f"a vectorizer of n-grams of {ngrams!r:.80} words, expected 1 to {MAX_NGRAM}")
    try:
        re.compile(params["token_pattern"])
        "".encode(params["encoding"])
    except (re.error, LookupError) as error:
        raise ValueError(f"a vectorizer whose token_pattern or encoding is none: {error}") from None
    return params | {"dtype": np.dtype(params["dtype"]).type, "ngram_range": ngrams}


VECTORIZER = Record({
    "name": OneOf(VECTORIZERS),
    "params": Value(params_from_file),
    "is_fixed": Flag(),
    "terms": Array("u1", ("n_bytes",)),
    "idf": Array("f8", ("n_terms",), needed=False),
})  # fmt: skip


def vectorizer_to_file(vectorizer: BaseEstimator) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return a fitted vectorizer as a dict for JSON and arrays; TypeError for one that a file cannot hold."""
    header = params_to_file(vectorizer)
    terms = "\0".join(sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.get))
    arrays: dict[str, AnyArray] = {"terms": np.frombuffer(terms.encode(), dtype=np.uint8)}
    if header["name"] == "TfidfVectorizer" and vectorizer.use_idf:
        arrays["idf"] = np.asarray(vectorizer.idf_, dtype=np.float64)
    return header, arrays


def vectorizer_from_file(meta: object, arrays: Arrays) -> CountVectorizer:
    """The inverse of `vectorizer_to_file`; ValueError, KeyError or TypeError for what it cannot have written."""
    from sklearn.feature_extraction import text

    stored = VECTORIZER.read(meta, arrays)
    found = stored.arrays()
    terms = found["terms"].tobytes().decode().split("\0")
    if stored.name == "TfidfVectorizer" and Flag().get("use_idf", stored.params):
        if found["idf"] is None or len(found["idf"]) != len(terms):
            raise ValueError(f"array 'vectorizer.idf' is not of {len(terms)} terms")
    else:
        found["idf"] = None
    vectorizer = with_terms(getattr(text, stored.name)(**stored.params), terms, found["idf"])
    return vectorizer.set_params(vocabulary=terms if stored.is_fixed else None)


def with_terms(vectorizer: CountVectorizer, terms: list[str], idf: Floats | None = None) -> CountVectorizer:
    """The vectorizer, fitted to these terms and their inverse document frequencies."""
    with np.errstate(divide="ignore"):  # without `smooth_idf`
        vectorizer.set_params(vocabulary=terms).fit([terms[0]])
    if idf is not None:
        vectorizer.idf_ = idf
    return vectorizer


def suspicion(header: Mapping[str, Any] | None) -> str | None:
    """Reason not to use the vectorizer of a file whose author is not known; None: there is none."""
    pattern = TOKEN_PATTERNS[0] if header is None else header["params"]["token_pattern"]
    if pattern in TOKEN_PATTERNS:
        return None
    return f"its vectorizer runs the regular expression token_pattern={pattern!r:.200}"


def check_vectorizer(
    given: BaseEstimator | None, before: BaseEstimator | None, stored: CountVectorizer | None, *, is_new: bool
) -> None:
    """ValueError unless shards' fitted vectorizer has the parameters given, and the terms of a model to resume."""

    def parameters(vectorizer: BaseEstimator | None) -> dict[str, Any] | None:
        return None if vectorizer is None else params_to_file(vectorizer)

    if given is not None and parameters(given) != parameters(stored):
        raise ValueError(f"the shards were made with vectorizer={stored!r:.80}, and the classifier has {given!r:.80}")
    if not is_new and vectorizer_print(before) != vectorizer_print(stored):
        raise ValueError("the model to resume has another vectorizer than the shards")


def vectorizer_print(vectorizer: BaseEstimator | None) -> int:
    """A checksum of a fitted vectorizer; None has one too."""
    header, arrays = (None, {}) if vectorizer is None else vectorizer_to_file(vectorizer)
    return checksum([np.frombuffer(repr(header).encode(), dtype=np.uint8), *arrays.values()])
