"""Rows of weights in the runtime's file, and sums that are rounded once."""

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from runtime_models import COMPILER, RUNTIME, arrays_of
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from structsvm import export
from structsvm.export.weights import form_of
from structsvm.tasks import TaxonomyClassifier

N_LABELS = 300


def matrix(longest, *, is_whole=False):
    """A hundred rows with few weights, one of them with `longest`."""
    rng = np.random.default_rng(0)
    found = np.zeros((100, N_LABELS), dtype=np.float32)
    found[rng.integers(100, size=400), rng.integers(N_LABELS, size=400)] = 1.0
    found[7, :longest] = 1.0
    return found * (rng.integers(-9, 9, size=found.shape) if is_whole else rng.normal(size=found.shape)).astype("<f4")


@pytest.mark.parametrize("longest", [200, 255, 256, N_LABELS])
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_long_row_costs_its_own_weights(longest, is_whole):
    weights = matrix(longest, is_whole=is_whole)
    n_weights = int(np.count_nonzero(weights))
    form = form_of(weights, N_LABELS)
    assert form.number == (2 if is_whole else 1)
    layout, heads, columns, values = (np.asarray(array, dtype=dtype) for dtype, array in form.arrays)
    sizes, exponents = parts_of(layout, heads)
    np.testing.assert_array_equal(sizes, np.count_nonzero(weights, axis=1))
    assert len(columns) == len(values) == n_weights
    assert heads.dtype == (np.uint16 if sizes.max() > 255 or len({*exponents.tolist()}) > 1 else np.uint8)
    assert sum(np.asarray(array, dtype=dtype).nbytes for dtype, array in form.arrays) < weights.nbytes // 10


def test_the_last_label_that_a_column_holds_and_one_more():
    most = 1 << 16
    weights = np.zeros((2, most + 1), dtype=np.float32)
    weights[1, most - 1] = 0.3
    columns = form_of(weights[:, :-1], most).arrays[-2]
    assert np.asarray(columns[1], dtype=columns[0]).tolist() == [most - 1]
    assert f"MOST_LABELS = 1 << {most.bit_length() - 1}," in (RUNTIME / "structsvm_core.h").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"a model of 65,537 labels cannot be exported: .* no more than 65,536"):
        form_of(weights, most + 1)


def test_more_sparse_rows_than_there_is_room_for_are_refused(monkeypatch):
    source = (RUNTIME / "structsvm_core.h").read_text(encoding="utf-8")
    assert "typedef struct { uint32_t start, size; float unit; } extent;" in source  # 12 bytes
    assert "#define MOST_ROOM ((uint64_t)1 << 31)" in source
    assert export.weights.MOST_ROWS == 2**31 // 12 == 178_956_970
    monkeypatch.setattr(export.weights, "MOST_ROWS", 99)
    for is_whole in (False, True):
        with pytest.raises(
            ValueError, match=r"100 rows of weights cannot be exported: .* no more than 99; .* 2\*\*row_"
        ):
            form_of(matrix(9, is_whole=is_whole), N_LABELS)
        assert form_of(matrix(9, is_whole=is_whole)[1:], N_LABELS).number > 0
    full = np.random.default_rng(0).normal(size=(100, 2)).astype("<f4")
    assert form_of(full, 2).number == 0


def parts_of(layout, heads):
    """Sizes of rows, and exponents of their units."""
    size_bits, base = layout.astype(np.int32).tolist()
    return heads & ((1 << size_bits) - 1), base + (heads >> size_bits).astype(int)


@pytest.mark.parametrize(
    ("longest", "exponents", "wanted"),
    [
        (31, range(-9, -1), np.uint8),
        (32, range(-9, -1), np.uint16),
        (31, range(-9, 0), np.uint16),
        (3, [-100], np.uint8),
    ],
)
def test_sizes_and_units_share_a_byte_where_they_fit(longest, exponents, wanted):
    exponents = np.array(exponents)
    weights = np.zeros((len(exponents) + 2, 40), dtype=np.float32)  # the last two rows have none
    weights[: len(exponents), 0] = 127.0 * 2.0**exponents
    weights[0, :longest] = 2.0 ** exponents[0] * np.arange(127, 127 - longest, -1)
    form = form_of(weights, 40)
    layout, heads, columns, values = (np.asarray(array, dtype=dtype) for dtype, array in form.arrays)
    sizes, units = parts_of(layout, heads)
    assert (form.number, heads.dtype) == (2, wanted)
    np.testing.assert_array_equal(units[:-2], exponents)
    found = np.zeros_like(weights)
    found[np.repeat(np.arange(len(sizes)), sizes), columns] = np.ldexp(values.astype("f4"), np.repeat(units, sizes))
    np.testing.assert_array_equal(found, weights)


def test_units_too_far_apart_for_heads_are_written_as_floats():
    weights = np.zeros((2, 1000), dtype=np.float32)
    weights[0] = 2.0**-100
    weights[1, 0] = 1.0
    assert form_of(weights, 1000).number == 1  # 10 bits of the longest row's size, 7 of units
    weights[0] = 2.0**-60
    assert form_of(weights, 1000).number == 2


def test_rows_that_are_full_stay_dense():
    assert form_of(np.ones((40, N_LABELS), dtype=np.float32) / 3, N_LABELS).number == 0


def contents_of(model):
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder)
        return (Path(folder) / "model.bin").read_bytes()


@pytest.mark.parametrize("vectorizer", [TfidfVectorizer(), CountVectorizer()], ids=["tfidf", "counts"])
def test_models_of_many_labels_score_as_python_does(runtime, vectorizer):
    """A word of all texts has a weight for each label, those of few texts for few."""
    rng = np.random.default_rng(0)
    X = [f"all w{k} w{k // 2} x{k % 40} r{rng.integers(60)}" for k in range(N_LABELS) for _ in range(2)]
    y = [f"label {k}" for k in range(N_LABELS) for _ in range(2)]
    model = TaxonomyClassifier(vectorizer=vectorizer, C=1.0, max_iter=2, random_state=0).fit(X, y)
    data = contents_of(model)
    assert int(arrays_of(data)[0][9]) == 1
    assert len(data) < 4 * N_LABELS * int(arrays_of(data)[0][7])
    texts = [f"{a} {b}" for a, b in zip(X[::2], X[::-2], strict=True)] + ["all all all"]
    tagger, scores = runtime.load(data), model.decision_function(texts)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :9]
    assert [tagger.kbest(text, 9) for text in texts] == [
        [(y_, s) for y_, s in zip(model.classes_[best].tolist(), own[best].tolist(), strict=True)]
        for own, best in zip(scores, order, strict=True)
    ]


# ---- a * b + c, rounded once --------------------------------------------------------------------

ROUNDED = """
#include "structsvm_sequences.c"
#include <stdio.h>
int main(void) {
    float x[3];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        float made[2] = {fused_by_doubles(x[0], x[1], x[2]), (float)((double)x[0] * x[1] + x[2])};
        fwrite(made, sizeof made, 1, stdout);
    }
    return 0;
}
"""


def numbers():
    """Triples of float32: of all sizes; sums near the middle of two numbers, near the least numbers, and near none."""
    rng, n = np.random.default_rng(0), 25_000
    of_all = np.frombuffer(rng.bytes(12 * n), dtype="<f4").reshape(n, 3)
    of_all = of_all[np.isfinite(of_all).all(axis=1) & (np.abs(of_all) < 1e18).all(axis=1)]
    # (1 + d) (1 - d) = 1 - d^2 is a little less than 1: the product is half a unit of c, but for it.
    d = 2.0 ** -rng.integers(13, 23, size=n)
    sign, scale = rng.choice([-1.0, 1.0], size=(2, n)), 2.0 ** rng.integers(-148, 100, size=n)
    c = sign[0] * scale * (1.0 + rng.integers(0, 1 << 23, size=n) * 2.0**-23)
    middles = np.stack([sign[1] * (1.0 + d), (1.0 - d) * scale * 2.0**-24, c], axis=1)
    small = rng.normal(size=(n, 3)) * 2.0 ** np.array([-75.0, -74.0, -148.0])
    cancelled = rng.normal(size=(n, 3))
    cancelled[:, 2] = -(cancelled[:, 0] * cancelled[:, 1])
    return np.concatenate([of_all, middles, small, cancelled]).astype("<f4")


def exact(triples):
    """The float32 nearest to each a * b + c, by integers: ties to even."""
    found = []
    for row in triples.astype(np.float64):
        # All are multiples of 2^-298: float32 of the smallest size has 2^-149.
        (a, b, c), unit = (int(np.ldexp(x, 149)) for x in row), 149
        total = a * b + (c << unit)
        size = max(abs(total).bit_length() - 24, unit)
        whole, rest = divmod(abs(total), 1 << size)
        whole += 2 * rest > 1 << size or (2 * rest == 1 << size and whole % 2 == 1)
        found.append(np.copysign(np.ldexp(float(whole), size - 298), total or 1.0))
    return np.array(found).astype("<f4")


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_products_by_doubles_are_rounded_once(tmp_path):
    (tmp_path / "rounded.c").write_text(ROUNDED)
    program = tmp_path / "rounded"
    options = ["-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-I", str(RUNTIME)]
    subprocess.run([COMPILER, *options, str(tmp_path / "rounded.c"), "-lm", "-o", str(program)], check=True)
    triples = numbers()
    done = subprocess.run([str(program)], input=triples.tobytes(), capture_output=True, check=True)
    made, twice = np.frombuffer(done.stdout, dtype="<f4").reshape(-1, 2).T
    wanted = exact(triples)
    np.testing.assert_array_equal(made, wanted)
    assert (twice != wanted).sum() > 1000  # rounding twice, which the sum in float64 alone does, is seen
