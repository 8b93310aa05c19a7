"""Forged model files, with right checksums: every array is checked, every number bounded, nothing run or opened."""

import copy
import tempfile
import tracemalloc
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cases import CASES, LINE_TAGS, LINES, Case
from forgeries import arrays_of, forged_headers, forgeries
from sklearn.feature_extraction.text import TfidfVectorizer

import structsvm
from structsvm import LaRank
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.tasks import (
    MultivariateClassifier,
    Ranker,
    SequenceAligner,
    SequenceLabeler,
    TaxonomyClassifier,
    TokenFeatures,
)
from structsvm.tasks.common.model import AROUND

OWN = {
    "templates": Case(
        SequenceLabeler,
        {"templates": "U:%x[0,0]\nB\n", "features": TokenFeatures(min_count=2), "C": 0.1, "max_iter": 2},
        LINES,
        LINE_TAGS,
    ),
    "solver": Case(SequenceLabeler, {"solver": LaRank(C=0.1, max_iter=2)}, LINES, LINE_TAGS),
    "texts": Case(
        TaxonomyClassifier,
        {"vectorizer": TfidfVectorizer(), "C": 1.0},
        ["sun rain", "snow", "sun"] * 4,
        list("aba") * 4,
    ),
}
ALL = CASES | OWN


@cache
def folder():
    return tempfile.TemporaryDirectory()


@cache
def source(name):
    """The model file of a case."""
    path = Path(folder().name) / f"{name}.model"
    ALL[name].trained.save(path)
    return path


def opened(path, name):
    return structsvm.load(path, **ALL[name].load)


def forged(tmp_path, original, *, meta=None, arrays=None):
    """A file like the original, with other parts of the header or other arrays (None: without)."""
    file = read_model(original)
    path = tmp_path / original.name
    arrays = {name: array for name, array in (file.arrays | (arrays or {})).items() if array is not None}
    write_model(path, file.kind, file.meta | (meta or {}), arrays)
    return path


@pytest.mark.parametrize("case", ALL)
def test_every_array_is_checked(case, tmp_path):
    """An array of another type, shape or length, missing, or with wrong values is an error that names it."""
    file, table = read_model(source(case)), arrays_of(opened(source(case), case)._fitted().record)
    for name, array in file.arrays.items():
        # See test_forged_states.py.
        if "state." in name or "history." in name:
            continue
        wrong = forgeries(array, table[name]) if name in table else (array[None], array.astype("<c16"))
        others = [np.concatenate([array, array])[:-1]] if len(array) > 1 and not name.startswith("params.") else []
        for k, forgery in enumerate([*wrong, *others]):
            path = forged(tmp_path, source(case), arrays={name: forgery})
            with pytest.raises(ModelFileError, match=rf"{path.name}: ") as caught:
                opened(path, case)
            assert "array" in str(caught.value), (name, k, caught.value)


@pytest.mark.parametrize("case", ALL)
def test_every_field_is_checked(case, tmp_path):
    """Missing, of another type, or beyond its bounds: an error that names it."""
    file, n = read_model(source(case)), 0
    for record in (AROUND, opened(source(case), case)._fitted().record):
        for name, header in forged_headers(record, file.meta):
            write_model(tmp_path / "forged", file.kind, header, file.arrays)
            with pytest.raises(ModelFileError) as caught:
                opened(tmp_path / "forged", case)
            # Without a machine it is a model with weights, which lacks others.
            wanted = "is missing" if name == "machine" else name.rpartition(".")[2]
            assert wanted in str(caught.value), (name, caught.value)
            n += 1
    assert n > 20


def places(value):
    """Entries of a header, as (parent, key); the first two and the last of a list."""
    items = value.items() if isinstance(value, dict) else [*enumerate(value)] if isinstance(value, list) else ()
    for key, inner in items if isinstance(value, dict) else [*items[:2], *items[2:][-1:]]:
        yield value, key
        yield from places(inner)


@pytest.mark.parametrize("case", ["taxonomy", "kernel taxonomy", "texts"])
def test_whatever_a_taxonomy_s_header_lacks_is_said(case, tmp_path):
    """Each of its parts in turn missing, twice there, or another text: refused, or a model that answers."""
    file, test = read_model(source(case)), ALL[case].X[:2]
    n_refused, n = 0, sum(1 for _ in places(file.meta))
    for k in range(n):
        for change in ("missing", "twice", "text"):
            meta = copy.deepcopy(file.meta)
            parent, key = list(places(meta))[k]
            if change == "missing":
                del parent[key]
            elif change == "text":
                parent[key] = "no such"
            elif isinstance(parent, list):
                parent.append(parent[key])
            else:
                continue
            path = tmp_path / "forged"
            write_model(path, file.kind, meta, file.arrays)
            try:
                model = structsvm.load(path)
            except ModelFileError:
                n_refused += 1
                continue
            with suppress(ValueError):
                model.predict(test)
    assert n_refused > n


@pytest.mark.parametrize("case", ["larank", "lasvm", "huller", "crammer singer", "kernel taxonomy"])
def test_offsets_that_fall(case, tmp_path):
    """An indptr of [0, nnz, 0] has no entries by scipy's count, and sends compiled code out of bounds."""
    prefix = "machine." if case == "kernel taxonomy" else ""
    indptr = read_model(source(case)).arrays[f"{prefix}coef.indptr"].copy()
    indptr[1:-1], indptr[-1] = indptr[-1], 0
    path = forged(tmp_path, source(case), arrays={f"{prefix}coef.indptr": indptr})
    with pytest.raises(ModelFileError, match=rf"array '{prefix}coef.indptr' must begin with 0 and never fall"):
        structsvm.load(path)


@pytest.mark.parametrize("value", [10**30, 10**400, 1e30, 2**31, -1, True, "3", None])
@pytest.mark.parametrize(
    ("case", "where"),
    [
        ("grammar", ("v",)),
        ("grammar", ("params", "max_length")),
        ("grammar", ("oracle", "max_length")),
        ("alignment", ("oracle", "window")),
        ("ambiguous", ("n_features_in",)),
        ("larank", ("n_features",)),
        ("larank", ("kernel", "degree")),
        ("larank", ("params", "n_reprocess")),
        ("lasvm", ("params", "steps", "params", "n_reprocess")),
        ("tracking", ("params", "n_reprocess")),
        ("sequence", ("oracle", "n_token_features")),
        ("templates", ("params", "features", "params", "min_count")),
        ("ospas", ("params", "method", "params", "window")),
        ("taxonomy", ("n_features",)),
    ],
)
def test_every_number_is_bounded(case, where, value, tmp_path):
    meta = read_model(source(case)).meta
    record = meta
    for key in where[:-1]:
        record = record[key]
    assert where[-1] in record
    if isinstance(record[where[-1]], float) and value == 1:
        return
    record[where[-1]] = value
    with pytest.raises(ModelFileError, match=rf"{case}.model: not a sound .* model"):
        structsvm.load(forged(tmp_path, source(case), meta=meta))


@pytest.mark.parametrize("value", [0, -1.0, "1", True, [1.0]])
@pytest.mark.parametrize("name", ["C", "temperature"])
def test_numbers_that_say_how_a_model_was_trained(name, value, tmp_path):
    with pytest.raises(ModelFileError, match=rf"grammar.model: not a sound grammar model: '{name}' must be a number"):
        structsvm.load(forged(tmp_path, source("grammar"), meta={name: value}))


@pytest.mark.parametrize("value", [10**30, 10**400])
def test_no_chain_is_longer_than_an_integer(value, tmp_path):
    original = source("grammar")
    grammar = read_model(original).meta["grammar"] | {"max_unary": value}
    with pytest.raises(ModelFileError, match=r"'grammar.max_unary' must be an integer from 0 to"):
        structsvm.load(forged(tmp_path, original, meta={"grammar": grammar}))


def test_no_checkpoint_comes_from_a_file(tmp_path):
    """Neither of the estimator nor of its solver: training would open or write whatever path it is."""
    target = tmp_path / "target"
    for case in ("sequence", "solver"):
        params = read_model(source(case)).meta["params"] | {"checkpoint": str(target)}
        if isinstance(params["solver"], dict):
            params["solver"]["params"]["checkpoint"] = str(target)
        labeler = structsvm.load(forged(tmp_path, source(case), meta={"params": params}))
        assert isinstance(labeler, SequenceLabeler)
        assert labeler.checkpoint is None
        assert getattr(labeler.solver, "checkpoint", None) is None
        labeler.fit([[["a"], ["b"]], [["b"]]], [["x", "y"], ["y"]])
        assert not target.exists()


def test_templates_of_a_file_are_text(tmp_path):
    original = source("templates")
    meta = read_model(original).meta
    (tmp_path / "secret").write_text("U:%x[0,0]\n")
    encoder = meta["encoder"] | {"templates": str(tmp_path / "secret")}
    with pytest.raises(ModelFileError, match="not a path"):
        structsvm.load(forged(tmp_path, original, meta={"encoder": encoder}))
    params = meta["params"] | {"templates": str(tmp_path / "secret")}
    loaded = structsvm.load(forged(tmp_path, original, meta={"params": params}))
    assert loaded.templates == meta["encoder"]["templates"]


def test_parameters_of_another_version_are_named(tmp_path):
    original = source("sequence")
    params = read_model(original).meta["params"] | {"segment_length": None, "hash_bits": 3}
    path = forged(tmp_path, original, meta={"params": params})
    with pytest.warns(
        structsvm.AdviceWarning, match="whose SequenceLabeler had the parameters hash_bits, segment_length;"
    ):
        model = structsvm.load(path)
    assert model.get_params() == structsvm.load(original).get_params()


@pytest.mark.parametrize("gaps", [[], [-2.0, None]], ids=["alone", "with gaps"])
def test_a_matrix_in_a_file_asks_for_trust(gaps, tmp_path):
    original = source("alignment")
    matrix = tmp_path / "matrix.txt"
    matrix.write_text("  A C G\nA 2 -1 -1\nC -1 2 -1\nG -1 -1 2\n")
    params = read_model(original).meta["params"] | {"prior": [str(matrix), *gaps] if gaps else str(matrix)}
    path = forged(tmp_path, original, meta={"params": params})
    with pytest.raises(ModelFileError, match=r"its prior is a substitution matrix in the file .* trusted=True"):
        structsvm.load(path)
    assert structsvm.load(path, trusted=True).prior == ((str(matrix), *gaps) if gaps else str(matrix))
    # Files of `save` need none: the matrix itself is in the file.
    aligner = SequenceAligner(alphabet="ACG", prior=(matrix, *gaps) if gaps else matrix, max_iter=1).fit(
        [("AC", "AG")], [("AC", "AG")]
    )
    aligner.save(tmp_path / "own")
    own = structsvm.load(tmp_path / "own").prior
    assert (own[0] if gaps else own)["A", "A"] == 2.0 and (not gaps or list(own[1:]) == gaps)


def test_names_of_features_fit(tmp_path):
    original = source("taxonomy")
    for names in (["a"], ["a"] * 5, "abcde", [1, 2, 3, 4, 5]):
        with pytest.raises(ModelFileError, match="feature"):
            structsvm.load(forged(tmp_path, original, meta={"feature_names": names}))


SCORES_OF_ROWS = [(Ranker(C=1.0), {"group": [2]}), (MultivariateClassifier(C=1.0), {})]


@pytest.mark.parametrize(("model", "about"), SCORES_OF_ROWS, ids=str)
def test_a_temperature_of_a_model_without_probabilities(model, about, tmp_path):
    """A classifier would have offered them."""
    model.fit(np.eye(2), [0, 1], **about).save(tmp_path / "a.model")
    with pytest.raises(ModelFileError, match="a temperature, which models of this kind do not have"):
        structsvm.load(forged(tmp_path, tmp_path / "a.model", meta={"temperature": 1.0}))


@pytest.mark.parametrize(("model", "about"), SCORES_OF_ROWS, ids=str)
def test_weights_are_counted_before_there_is_room_for_them(model, about, tmp_path):
    model.fit(np.eye(2), [0, 1], **about).save(tmp_path / "a.model")
    path = forged(tmp_path, tmp_path / "a.model", meta={"n_features_in": 2**31 - 1})
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r"array 'weights' has \d+ numbers for 2147483647 features"):
            structsvm.load(path)
        assert tracemalloc.get_traced_memory()[1] < 10**8
    finally:
        tracemalloc.stop()
