"""Vectors of other programs' objects, known by their methods; words and vectors in one labeler."""

from types import SimpleNamespace

import numpy as np
import pytest

from structsvm.datasets import make_addresses
from structsvm.features.vectors import LookedUp, document_rows, with_vectors
from structsvm.tasks import ArcFeatures, SequenceLabeler

TABLE = {"cat": np.array([3.0, 4.0]), "Graz": np.array([1.0, 0.5])}
WORDS = ["Graz", "cat", "Cat", "graz", "Graz"]


class KeyedVectors:
    """As gensim's: brackets and `in`, and no method `get` or `values`."""

    def __init__(self, table):
        self.table, self.key_to_index, self.vector_size = table, dict.fromkeys(table), 2

    def __contains__(self, word):
        return word in self.table

    def __getitem__(self, word):
        return self.table[word]

    def __len__(self):
        return len(self.table)

    def get_vector(self, word):
        raise KeyError(word)


def per_word(word):
    return TABLE.get(word, np.zeros(2))


SOURCES = {
    "mapping": TABLE,
    "gensim": KeyedVectors(TABLE),
    "fastText": SimpleNamespace(get_word_vector=per_word),
    "model2vec": SimpleNamespace(encode=lambda words: np.array([per_word(word) for word in words], np.float32)),
    "spaCy": SimpleNamespace(get_vector=per_word),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_each_source_gives_the_vectors_of_words(kind):
    vectors = LookedUp(SOURCES[kind])
    lower = kind in {"mapping", "gensim"}  # the others know what to do with a case
    wanted = [per_word(word) if not lower or word in TABLE else per_word(word.lower()) for word in WORDS]
    found = vectors(WORDS)
    assert found.tolist() == np.array(wanted).tolist()
    assert found.dtype == np.float32
    assert vectors.unknown == ({"graz"} if lower else {"Cat", "graz"})
    assert vectors([]).shape == (0, 2)
    assert vectors(["zebra"]).tolist() == [[0.0, 0.0]]


def test_each_word_is_looked_up_once():
    asked = []
    vectors = LookedUp(SimpleNamespace(get_word_vector=lambda word: asked.append(word) or per_word(word)))
    vectors(WORDS)
    vectors(WORDS)
    assert asked == ["Graz", "cat", "Cat", "graz"]


def test_one_known_vector_tells_the_length():
    """However many there are: looking up word by word stays linear."""
    read = []

    class Known(dict):
        def values(self):
            return (read.append(row) or row for row in super().values())

    source = SimpleNamespace(get_word_vector=lambda word: np.ones(2))
    vectors = LookedUp(source)
    vectors._known = Known()
    for k in range(50):
        vectors([str(k)])
    assert len(read) == 49
    source.get_word_vector = lambda word: np.ones(3)
    with pytest.raises(ValueError, match="vectors of one length"):
        vectors(["other"])


def test_documents_have_tensors_or_vectors_of_tokens():
    tokens = [SimpleNamespace(vector=per_word(word)) for word in ("cat", "Graz")]

    class Doc(list):
        tensor = np.zeros(0)

    doc = Doc(tokens)
    assert document_rows(doc).tolist() == [[3.0, 4.0], [1.0, 0.5]]
    doc.tensor = np.ones((2, 3))
    assert document_rows(doc).shape == (2, 3)
    assert document_rows(doc, vectors=True).shape == (2, 2)
    assert document_rows(Doc()).shape == (0, 0)
    with pytest.raises(ValueError, match="tokens with vectors"):
        document_rows(Doc([SimpleNamespace(vector=np.zeros(0))]))
    with pytest.raises(ValueError, match="document must have finite vectors"):
        document_rows(Doc([SimpleNamespace(vector=[np.nan])]))


def test_a_document_of_spacy():
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    nlp.vocab.reset_vectors(width=2)
    for word, row in TABLE.items():
        nlp.vocab.set_vector(word, row.astype(np.float32))
    doc = nlp("cat Graz zebra")
    assert document_rows(doc).tolist() == [[3.0, 4.0], [1.0, 0.5], [0.0, 0.0]]
    assert LookedUp(nlp.vocab)(["cat", "zebra"]).tolist() == [[3.0, 4.0], [0.0, 0.0]]


def test_words_and_vectors_in_one_labeler():
    """Labels that a word's form tells in the first half, and its vector in the second."""
    X, y = make_addresses(60, random_state=0)
    rng = np.random.default_rng(0)
    vectors = LookedUp({word: rng.normal(size=4) for sentence in X for word in sentence})
    rows = [vectors(sentence) for sentence in X]
    both = SequenceLabeler(C=1.0, random_state=0).fit(with_vectors(X, rows), y)
    assert both.score(with_vectors(X, rows), y) > 0.95
    moved = with_vectors(X, [-row for row in rows])
    assert (both.decision_function(moved)[0] != both.decision_function(with_vectors(X, rows))[0]).any()
    named = with_vectors([[{"form": word} for word in sentence] for sentence in X], rows, name="own")
    assert named[0][0].keys() == {"form", "own"}


def test_a_parser_takes_it_for_its_columns():
    ArcFeatures(columns=LookedUp(TABLE))
    found = LookedUp(TABLE)(["cat"])
    assert found.shape == (1, 2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: LookedUp(3), TypeError, "source must be a mapping of words .* Got int"),
        (lambda: LookedUp("glove.txt"), TypeError, "source must be a mapping of words .* Got str"),
        (lambda: LookedUp(b"cat"), TypeError, "Got bytes"),
        (lambda: LookedUp({}), ValueError, "source must have vectors. Got none"),
        (lambda: LookedUp({"a": [1.0], "b": [1.0, 2.0]})(["a", "b"]), ValueError, "vectors of one length"),
        (lambda: LookedUp({"a": [np.inf]})(["a"]), ValueError, "finite vectors, and has not for 'a'"),
        (lambda: LookedUp(SimpleNamespace(encode=lambda words: [0.0]))(["a"]), ValueError, "encode must return 1 rows"),
        (lambda: with_vectors([["a"]], []), ValueError, "one array per sentence, 1. Got 0"),
        (lambda: with_vectors([["a"]], [np.zeros((2, 3))]), ValueError, r"sentence 0 must have shape \(1, n_dim"),
        (lambda: with_vectors([[{"vector": 1}]], [np.zeros((1, 3))]), ValueError, "has a feature 'vector'"),
    ],
)
def test_what_does_not_fit_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
