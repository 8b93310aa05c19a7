"""Features of Wapiti's patterns: the program's observations, byte by byte, and what training takes of them."""

from collections import Counter

import numpy as np
import pytest
from feature_reference import copied_by_arrays, decoded, occurrences, same
from hypothesis import given
from hypothesis import strategies as st

from structsvm.features.columns import Columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.functions.patterns import read_wapiti_patterns
from structsvm.features.templates import TemplateError, is_of_wapiti, parse_templates
from structsvm.tasks import SequenceLabeler

PATTERNS = r"""# the word, its neighbours
u:w=%X[0,0]
U:%x[-6,0]/%x[5,1]   # far beyond short sequences
u:t=%t[-1,0,"^\u"]|%T[1,0,"x"]
u:first=%m[0,0,"^."]%M[0,0,".$"]
*:p=%x[-1,1]
b:%t[0,0,"\d"]
u:bias
*
"""
words = st.text(st.sampled_from("aBé1_x-+"), min_size=1, max_size=4)
rows = st.lists(st.lists(st.tuples(words, words), min_size=1, max_size=7), min_size=1, max_size=4)


def observed(sequences, *letters):
    """Observations by the patterns themselves, of tokens as counters of names."""
    found = []
    for sequence in sequences:
        tokens = [[string.encode() for string in token] for token in sequence]
        patterns = [
            pattern
            for pattern in read_wapiti_patterns(PATTERNS)
            if pattern.source[0] in letters and (pattern.commands or "u" in letters)
        ]
        columns = [pattern.apply(tokens) for pattern in patterns]
        found.append([Counter(name.decode("utf-8", "surrogateescape") for name in names) for names in zip(*columns)])
        if "b" in letters:
            found[-1][0] = Counter()
    return found


@given(rows, rows)
def test_features_are_the_programs_observations(fit, other):
    encoder = FeatureEncoder(PATTERNS)
    tokens = encoder.fit_transform(Columns.from_sequences(fit))
    names, pairs = encoder.feature_names, encoder.bigram_names
    assert decoded(tokens, names) == observed(fit, "u", "*")
    assert decoded(tokens.bigrams, pairs) == observed(fit, "b", "*")
    assert set(names) == set(occurrences(observed(fit, "u", "*")))
    again = copied_by_arrays(encoder)
    assert same(again.transform(fit), tokens)
    found = again.transform(other)
    cut = [[{k: v for k, v in token.items() if k in names} for token in s] for s in observed(other, "u", "*")]
    assert decoded(found, names) == cut


@given(rows)
def test_hashed_features_are_equal_where_the_names_are(sequences):
    encoder = FeatureEncoder(PATTERNS, hash_bits=30)
    tokens = encoder.fit_transform(Columns.from_sequences(sequences))
    n = [sum(token.values()) for sequence in observed(sequences, "u", "*") for token in sequence]
    assert np.diff(tokens.indptr).tolist() == n
    names = {name for sequence in observed(sequences, "u", "*") for token in sequence for name in token}
    assert len(np.unique(tokens.indices)) == len(names)


@pytest.mark.parametrize(
    ("text", "is_its"),
    [
        ("U:%x[0,0]\nB\n", False),
        ("# u\nU:%lower[0,0]\n", False),
        ("u:%x[0,0]", True),
        ("U:%x[0,0]\n*\n", True),
        ("b", True),
        ("U:%X[0,0]", True),
        ('U:%t[0,0,"a"]', True),
        ("U:%x[@1,0]", True),
        ("U:%x[0,0] # %X[0,0]", False),
    ],
)
def test_recognised(text, is_its):
    assert is_of_wapiti(text) is is_its


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("u:%x[@1,0]", "p:2: .*'@'"),
        ("u:%x[101,0]", "p:2: .*not within"),
        ("u:%x[0]", "p:2: .*wanted %x"),
        ("q:%x[0,0]", "p:2: .*starts with"),
        ('u:%t[0,0,"*"]', "p:2: .*repeats nothing"),
    ],
)
def test_refused(line, message):
    with pytest.raises(TemplateError, match=message):
        parse_templates(f"u:%x[0,0]\n{line}\n", "p")


def test_a_column_that_is_not_there():
    with pytest.raises(ValueError, match=r"templates:1: 'u:%t\[0,2,\"a\"\]': column 2"):
        FeatureEncoder('u:%t[0,2,"a"]').fit([[("a", "b")]])


@pytest.mark.parametrize("given_as", ["text", "path"])
def test_training(tmp_path, given_as):
    (tmp_path / "patterns").write_text(PATTERNS)
    templates = PATTERNS if given_as == "text" else tmp_path / "patterns"
    X = [[("The", "D"), ("cat", "N"), ("1", "M")], [("A", "D"), ("dog", "N")]] * 3
    y = [["d", "n", "m"], ["d", "n"]] * 3
    labeler = SequenceLabeler(C=1.0, templates=templates, random_state=0).fit(X, y)
    assert labeler.predict(X) == y
    labeler.save(tmp_path / "m")
    again = type(labeler).load(tmp_path / "m")
    assert again.predict(X) == y
    assert again.feature_names_ == labeler.feature_names_
    assert "u:w=the" in again.feature_names_
    assert "*:p=N" in again.bigram_names_
