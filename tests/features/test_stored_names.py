"""Names of features in files: compact, the same when read again, as in earlier files, and no bomb."""

import numpy as np
import pytest

from structsvm.features.attributes import MOST_SHARED, AttributeVocabulary
from structsvm.features.columns import Columns, Vocabulary
from structsvm.features.encoder import FeatureEncoder

WORDS = [f"word{k}" for k in range(200)]
SHARING = [f"{key}{word}" for word in WORDS for key in ("w=", "w[-1]=", "w[+1]=", "next:suffix:")]
NAMES = {
    "shared": SHARING,
    "alone": WORDS,
    "odd": ["", "a:", ":", "=", "a=b=c", "a:b:c", "é=ü", "\ud800", "bias"],
    "none": [],
    "long": ["k" * 5000 + f":{k % 7}" + f"{k // 7}" for k in range(200)],
}
COLUMNS = Columns.from_sequences([[(word, f"T{k % 5}") for k, word in enumerate(WORDS)], [("wörd", "T")]])


def old_arrays(names):
    whole = Vocabulary.from_strings(names)
    return {"names": whole.data, "name_starts": whole.starts}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_names_are_read_as_they_were(names):
    arrays = AttributeVocabulary(names).to_arrays()
    assert AttributeVocabulary.from_arrays(arrays, len(names)).names == names
    assert AttributeVocabulary.from_arrays(old_arrays(names), len(names)).names == names
    size = sum(array.nbytes for array in arrays.values())
    assert size <= sum(array.nbytes for array in old_arrays(names).values())
    assert ("keys" in arrays) == (names is SHARING)


def test_shared_names_take_a_third_of_their_bytes():
    new, old = AttributeVocabulary(SHARING).to_arrays(), old_arrays(SHARING)
    assert 3 * sum(array.nbytes for array in new.values()) < sum(array.nbytes for array in old.values())


def test_forged_names_are_refused():
    arrays, n = AttributeVocabulary(SHARING).to_arrays(), len(SHARING)
    for name, array in arrays.items():
        others = [] if name in ("keys", "values") else [array + 200]
        for wrong in (None, array[None], array[:-1], *others):
            forged = {key: value for key, value in (arrays | {name: wrong}).items() if value is not None}
            with pytest.raises((ValueError, KeyError)):
                AttributeVocabulary.from_arrays(forged, n)
    alike = {name: arrays[name] * 0 for name in ("keys.ids", "values.ids")}
    with pytest.raises(ValueError, match="there twice"):
        AttributeVocabulary.from_arrays(arrays | alike, n)


def test_a_small_file_does_not_unfold_to_long_names():
    text = np.full(1 << 16, ord("a"), dtype=np.uint8)
    ids = np.zeros(1 << 12, dtype=np.uint8)
    keys = {"keys": text, "keys.lengths": np.array([1 << 16], dtype=np.int32), "keys.ids": ids}
    values = {"values": text[:0], "values.lengths": np.array([0], dtype=np.uint8), "values.ids": ids}
    with pytest.raises(ValueError, match="names of 268435456 bytes from arrays of"):
        AttributeVocabulary.from_arrays(keys | values, len(ids))
    assert MOST_SHARED * (len(text) + 2 * len(ids) + 2) < 1 << 28


@pytest.mark.parametrize("templates", ["rich", "crf++", "U0:%x[0,0]\nB\nB1:%x[0,1]\n"])
def test_features_of_templates_are_read_as_they_were(templates):
    encoder = FeatureEncoder(templates=templates)
    tokens = encoder.fit_transform(COLUMNS)
    meta, arrays = encoder.to_arrays()
    again = FeatureEncoder.from_arrays(meta, arrays)
    assert again.feature_names == encoder.feature_names
    assert again.bigram_names == encoder.bigram_names
    np.testing.assert_array_equal(again.transform(COLUMNS).indices, tokens.indices)
    for name in [name for name in arrays if name.endswith(("feature_spaces", ".lengths")) and len(arrays[name])]:
        for wrong in (arrays[name][:-1], arrays[name] + 100, None):
            forged = {key: value for key, value in (arrays | {name: wrong}).items() if value is not None}
            with pytest.raises((ValueError, KeyError)):
                FeatureEncoder.from_arrays(meta, forged)


def old_template_arrays(vocabulary):
    """The arrays of earlier files."""
    arrays = {}
    for i, strings in enumerate(vocabulary._strings):
        arrays |= {f"strings_{i}": strings.data, f"string_starts_{i}": strings.starts}
    for i, (ids, codes) in enumerate(zip(vocabulary._ids, vocabulary._codes, strict=True)):
        arrays |= {f"feature_ids_{i}": ids, f"feature_codes_{i}": codes}
    return arrays


def test_templates_of_earlier_files_are_read():
    encoder = FeatureEncoder(templates="rich")
    encoder.fit(COLUMNS)
    meta, arrays = encoder.to_arrays()
    old = old_template_arrays(encoder._vocabulary)
    assert FeatureEncoder.from_arrays(meta, old).feature_names == encoder.feature_names
    assert 2 * sum(array.nbytes for array in arrays.values()) < sum(array.nbytes for array in old.values())


@pytest.mark.parametrize("templates", [None, "rich"])
def test_an_encoder_of_some_features_finds_these_alone(templates):
    X = COLUMNS if templates else [[{"w": word, "n": str(k % 3)} for k, word in enumerate(WORDS)]]
    encoder = FeatureEncoder(templates=templates)
    tokens = encoder.fit_transform(X)
    kept = np.arange(encoder.n_features) % 3 == 0
    narrow = encoder.narrowed(kept)
    assert narrow.feature_names == encoder.feature_names[::3]
    assert narrow.n_features == kept.sum() < encoder.n_features
    found = narrow.transform(X)
    np.testing.assert_array_equal(np.flatnonzero(kept)[found.indices], tokens.indices[kept[tokens.indices]])
    assert FeatureEncoder.from_arrays(*narrow.to_arrays()).feature_names == narrow.feature_names


def test_hashed_features_and_numbers_are_not_left_out():
    for encoder in (FeatureEncoder(hash_bits=5).fit([["a"]]), FeatureEncoder().fit([np.eye(3)])):
        assert not encoder.can_narrow
        with pytest.raises(ValueError, match="features without names"):
            encoder.narrowed(np.ones(encoder.n_features, dtype=bool))
