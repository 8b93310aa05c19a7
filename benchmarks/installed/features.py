"""The data sets of the tables, each with the features that programs make of its tokens: dicts for python-crfsuite.

Addresses: usaddress's own. Chunks and entities: those of python-crfsuite's tutorial. Citations: of AnyStyle's kind
(word, its beginning and end, capitals, digits, punctuation, place), as its own are made in Ruby.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from defaults.data import tutorial
from structsvm.datasets import fetch_addresses, fetch_citations, fetch_conll2000, fetch_conll2002


@dataclass(frozen=True)
class DataSet:
    """A data set and how its installed program trains.

    Attributes
    ----------
    name : str
    load : callable
        Returns sentences of words and labels, those to train on and those to test on.
    features : callable
        From the words of a sentence to a dict per word.
    settings : dict
        The program's own parameters of CRFsuite.
    """

    name: str
    load: Callable[[], tuple[Any, Any, Any, Any]]
    features: Callable[[Any], list[dict[str, Any]]]
    settings: dict[str, Any] = field(default_factory=dict)


def addresses():
    data = [fetch_addresses(part=part) for part in ("labeled", "us50")]
    X, y = ([item for part in data for item in getattr(part, name)] for name in ("X_test", "y_test"))
    return data[0].X_train, data[0].y_train, X, y


def split_of(fetch):
    def load():
        data = fetch()
        return data.X_train, data.y_train, data.X_test, data.y_test

    return load


def of_usaddress(words):
    try:
        from usaddress import tokens2features
    except ImportError:
        sys.exit("the features of addresses are usaddress's: pip install usaddress")
    return tokens2features(list(words))


def of_citation(words):
    """Features of citations: a word's own, and word, shape and punctuation of its neighbours."""
    own = [of_word(word, t, len(words)) for t, word in enumerate(words)]
    found = []
    for t, features in enumerate(own):
        around = {
            f"{offset:+d}:{name}": own[t + offset][name]
            for offset in (-2, -1, 1, 2)
            if 0 <= t + offset < len(own)
            for name in ("bare", "shape", "last")
        }
        found.append(features | around | {"bias": True})
    return found


def of_word(word, t, n):
    bare = word.strip(".,;:()[]\"'«»“”").lower()
    shape = re.sub(r"[^\W\d_]", "a", re.sub(r"[A-ZÀ-Þ]", "A", re.sub(r"\d", "0", word)))
    features = {
        "word": word,
        "bare": bare,
        "shape": re.sub(r"(.)\1+", r"\1", shape),
        "last": word[-1],
        "first": word[0],
    }
    features |= {f"prefix{k}": bare[:k] for k in (1, 2, 3, 4)} | {f"suffix{k}": bare[-k:] for k in (1, 2, 3, 4)}
    features |= {"digits": str(sum(map(str.isdigit, word))), "year": bool(re.search(r"\b(1[6-9]|20)\d\d\b", word))}
    return features | {"place": str(10 * t // n), "is_first": t == 0, "is_last": t == n - 1}


SETS = {
    "addresses": DataSet("addresses", addresses, of_usaddress, {"c1": 0.1, "c2": 0.01, "feature.minfreq": 0}),
    "citations": DataSet("citations", split_of(fetch_citations), of_citation, {"c1": 1.0, "c2": 1e-3}),
    "chunks": DataSet("CoNLL-2000", split_of(fetch_conll2000), tutorial, {"c1": 1.0, "c2": 1e-3, "max_iterations": 50}),
    "entities": DataSet(
        "CoNLL-2002 es", split_of(fetch_conll2002), tutorial, {"c1": 1.0, "c2": 1e-3, "max_iterations": 50}
    ),
}
