"""Tuples of codes in the runtime's file: few bytes each, and none is taken for another."""

from itertools import product

import numpy as np
import pytest
import runtime_models
from runtime_models import arrays_of, bytes_of, fitted, sound

from structsvm.export.binary import PairTable, RuntimeFile, TupleTable
from structsvm.tasks import SequenceLabeler
from structsvm.tasks.sequence.portable.binary import Templates


def found_in(table, first, second):
    """The number of a pair, or None: the steps of `joined` in structsvm_sequences.c, in whole numbers."""
    mask = (1 << table.bits) - 1
    x = ((first << table.second_bits | second) * 0x9E3779B97F4A7C15) & mask
    x = ((x ^ x >> (table.bits + 1) // 2) * 0xBF58476D1CE4E5B9) & mask
    bucket, rest = x >> table.rest_bits, x & ((1 << table.rest_bits) - 1)
    begin, end = table.buckets[bucket : bucket + 2].tolist()
    return next((i for i in range(begin, end) if int(table.rests[i]) == rest), None)


@pytest.mark.parametrize(("n_first", "n_second"), [(1, 1), (1, 9), (9, 1), (7, 3), (40, 50), (300, 2)])
def test_a_table_has_its_pairs_and_no_others(n_first, n_second):
    every = np.random.default_rng(0).permutation(n_first * n_second)
    for share in (0, 1, len(every) // 3, len(every)):
        first, second = np.divmod(every[:share], n_second)
        table = PairTable.of(first, second, n_first, n_second)
        wanted = dict(zip(zip(first.tolist(), second.tolist(), strict=True), table.place.tolist(), strict=True))
        assert sorted(wanted.values()) == list(range(len(first)))
        for pair in product(range(n_first), range(n_second)):
            assert found_in(table, *pair) == wanted.get(pair)


@pytest.mark.parametrize(("n", "n_first", "n_second", "most"), [
    (10_000, 8_000, 45, 3.0), (3_000, 900, 45, 2.0), (100_000, 20_000, 20_000, 5.0), (40, 1 << 18, 1 << 18, 8.0),
])  # fmt: skip
def test_a_pair_takes_few_bytes_and_buckets_have_few_pairs(n, n_first, n_second, most):
    rng = np.random.default_rng(0)
    pairs = np.unique(np.stack([rng.integers(n_first, size=n), rng.integers(n_second, size=n)], axis=1), axis=0)
    table, file = PairTable.of(*pairs.T, n_first, n_second), RuntimeFile()
    table.add_to(file)
    assert len(file.contents()) - 100 < most * len(pairs)
    assert np.diff(table.buckets).max() < 20
    assert table.rests.max(initial=0) < 1 << 32


def test_no_code_of_a_tuple_is_left_out():
    file = RuntimeFile()
    codes = np.array([[1, 2, 0], [1, 2, 1], [0, 2, 1], [3, 0, 0]])
    TupleTable.of(codes, np.array([5, 3, 8, 1], dtype=np.int32), [4, 3, 2]).add_to(file, as_run=False)
    ids, (_, _, _), first, _, (_, _, _), second, _ = arrays_of(file.contents())
    assert (sorted(ids.tolist()), len(first), len(second)) == ([1, 3, 5, 8], 3, 4)


@pytest.fixture(scope="module")
def joint():
    """A labeler whose templates see up to six words of a large vocabulary, and one that sees none."""
    rng = np.random.default_rng(1)
    X = [[f"w{k}" for k in rng.integers(2_000, size=12)] for _ in range(150)]
    y = [[f"l{int(word[1:]) % 3}" for word in x] for x in X]
    sixth = "/".join(f"%x[{k},0]" for k in range(-3, 3))
    text = f"U0:{sixth}\nU1:%x[0,0]/%x[1,0]\nU2:%x[-1,0]/%x[0,0]/%x[1,0]\nU3\nU4:%x[1,0]\nB0:%x[0,0]/%x[-1,0]\nB\n"
    return SequenceLabeler(templates=text, C=0.1, max_iter=2, random_state=0).fit(X, y), X


def test_templates_of_many_words_label_as_in_python(runtime, joint):
    model, X = joint
    tagger = runtime.load(bytes_of(model))
    rng = np.random.default_rng(2)
    mixed = [[x[t] if rng.random() < 0.8 else z[t] for t in range(12)] for x, z in zip(X, X[1:] + X[:1], strict=True)]
    for given in (X, mixed):
        assert [tagger.predict(x) for x in given] == model.predict(given)
        assert [tagger.kbest(x, 3) for x in given[:40]] == [
            [(list(labels), score) for labels, score in best] for best in model.predict_kbest(given[:40], 3)
        ]


def test_features_of_compact_models_are_numbered_as_they_stand(runtime, joint):
    """Each space then has the number of its first feature alone; labels and scores are those of the compact model."""
    model, X = joint
    compact = model.compact(bits=8)
    encoder = compact.model_.encoder
    vocabulary = encoder.vocabularies[0]
    firsts = [ids.min() for ids in vocabulary.tables[1] if len(ids)]
    assert firsts == sorted(firsts)
    assert [len(ids) for ids in vocabulary.tables[1]] == [np.ptp(ids) + 1 for ids in vocabulary.tables[1]]
    assert Templates.of(vocabulary).are_runs == [True] * len(vocabulary.tables[1])
    whole, small = bytes_of(model), bytes_of(compact)
    assert len(whole) - len(small) > 3 * encoder.n_features  # less of a number of two bytes, and of float32
    tagger = runtime.load(small)
    assert [tagger.predict(x) for x in X] == compact.predict(X)
    assert [tagger.kbest(x, 3) for x in X[:40]] == [
        [(list(labels), score) for labels, score in best] for best in compact.predict_kbest(X[:40], 3)
    ]


def test_features_that_several_templates_find_keep_their_order(runtime):
    """Sums are in the order of features, and a token may have several of one space."""
    X, y = runtime_models.X, runtime_models.Y
    X = [[token[0] for token in tokens] for tokens in X]
    model = SequenceLabeler(templates="*:%x[-1,0]\n*:%x[0,0]\n*:%x[1,0]\n", C=0.1, max_iter=3, random_state=0)
    compact = model.fit(X, y).compact(bits=16)
    assert Templates.of(compact.model_.encoder.vocabularies[0]).are_runs == [False]
    tagger = runtime.load(bytes_of(compact))
    assert [tagger.kbest(x, 3) for x in X] == [
        [(list(labels), score) for labels, score in best] for best in compact.predict_kbest(X, 3)
    ]


def test_a_run_beyond_the_last_feature_is_refused(runtime, joint):
    compact = joint[0].compact(bits=8)
    last = max(int(ids.min()) for ids in compact.model_.encoder.vocabularies[0].tables[1])
    data = bytearray(bytes_of(compact))
    (first,) = [array for array in arrays_of(data)[10:] if array.tolist() == [last]]
    runtime.load(bytes(data))
    first[0] += 1
    with pytest.raises(runtime.ModelError, match="not a complete, sound model"):
        runtime.load(sound(bytes(data)))


@pytest.mark.parametrize(("place", "value"), [(0, 32), (1, 63), (1, 0), (2, 33), (2, 0)])
def test_tables_of_other_bits_are_refused(runtime, place, value):
    data = bytearray(bytes_of(fitted("words")))
    tables = [array for array in arrays_of(data) if array.itemsize == 4 and len(array) == 3]
    assert len(tables) > 1
    runtime.load(bytes(data))
    tables[0][place] = value
    with pytest.raises(runtime.ModelError, match="not a complete, sound model"):
        runtime.load(sound(bytes(data)))
