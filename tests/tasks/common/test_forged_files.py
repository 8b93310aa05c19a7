"""Forged model files, with right checksums: every array is checked, every number bounded, nothing run or opened."""

import copy
import json
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from stored_data import decoded

import structsvm
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.tasks import (
    GrammarParser,
    MultivariateClassifier,
    Ranker,
    SequenceAligner,
    SequenceLabeler,
)

FOLDER = Path(__file__).parents[2] / "data" / "models-0.1.0"
RECORDS = json.loads((FOLDER / "records.json").read_text())["records"]
FILES = sorted(FOLDER.glob("*.model"))


def opened(path, name):
    oracle = ViterbiOracle(**RECORDS[name]["oracle"]) if "oracle" in RECORDS[name] else None
    return structsvm.load(path, oracle=oracle)


def forged(tmp_path, source, *, meta=None, arrays=None):
    """A file like `source`, with other parts of the header or other arrays (None: without)."""
    file = read_model(source)
    path = tmp_path / source.name
    arrays = {name: array for name, array in (file.arrays | (arrays or {})).items() if array is not None}
    write_model(path, file.kind, file.meta | (meta or {}), arrays)
    return path


@pytest.mark.parametrize("source", FILES, ids=lambda path: path.stem)
def test_every_array_is_checked(source, tmp_path):
    """An array of another type, shape or length, missing, or with impossible values: an error that names it."""
    file = read_model(source)
    for name, array in file.arrays.items():
        # See test_forged_states.py.
        if name.startswith(("state.", "history.")):
            continue
        forgeries = [array[None], array.astype("<c16")]
        if not name.startswith(("oracle.", "params.")):  # these a file may be without
            forgeries.append(None)
        if len(array) > 1 and not name.startswith("params."):
            forgeries.append(np.concatenate([array, array])[:-1])
        if array.dtype.kind == "f":
            forgeries += [np.full_like(array, np.nan), np.full_like(array, -np.inf)]
        if array.dtype.kind == "i" and "counters" not in name:
            forgeries += [
                np.full_like(array, np.iinfo(array.dtype).max),
                np.full_like(array, np.iinfo(array.dtype).min),
            ]
        for k, forgery in enumerate(forgeries):
            path = forged(tmp_path, source, arrays={name: forgery})
            with pytest.raises(ModelFileError, match=rf"{path.name}: ") as caught:
                opened(path, source.stem)
            assert "array" in str(caught.value), (name, k, caught.value)


def places(value):
    """Entries of a header, as (parent, key); the first two and the last of a list."""
    items = value.items() if isinstance(value, dict) else [*enumerate(value)] if isinstance(value, list) else ()
    for key, inner in items if isinstance(value, dict) else [*items[:2], *items[2:][-1:]]:
        yield value, key
        yield from places(inner)


@pytest.mark.parametrize(
    "source", [FOLDER / f"taxonomy{kind}.model" for kind in ("", "-kernel", "-text")], ids=lambda path: path.stem
)
def test_whatever_a_taxonomy_s_header_lacks_is_said(source, tmp_path):
    """Each of its parts in turn missing, twice there, or another text: refused, or a model that answers."""
    record, file = RECORDS[source.stem], read_model(source)
    test = decoded(json.loads((FOLDER / "records.json").read_text())["data"][record["test"]])[:2]
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


@pytest.mark.parametrize(
    "name", ["multiclass-larank", "binary-lasvm", "binary-huller", "multiclass-crammer-singer", "taxonomy-kernel"]
)
def test_offsets_that_fall(name, tmp_path):
    """An indptr of [0, nnz, 0] has no entries by scipy's count, and sends compiled code out of bounds."""
    prefix = "machine." if name == "taxonomy-kernel" else ""
    source = FOLDER / f"{name}.model"
    indptr = read_model(source).arrays[f"{prefix}coef.indptr"].copy()
    indptr[1:-1], indptr[-1] = indptr[-1], 0
    path = forged(tmp_path, source, arrays={f"{prefix}coef.indptr": indptr})
    with pytest.raises(ModelFileError, match=r"array 'coef.indptr' must begin with 0 and never fall"):
        structsvm.load(path)


@pytest.mark.parametrize("value", [10**30, 10**400, 1e30, 2**31, -1, True, "3", None])
@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("grammar", ("v",)),
        ("grammar", ("params", "max_length")),
        ("grammar", ("oracle", "max_length")),
        ("alignment", ("oracle", "window")),
        ("ambiguous", ("n_features_in",)),
        ("multiclass-larank", ("n_features",)),
        ("multiclass-larank", ("kernel", "degree")),
        ("multiclass-larank", ("params", "n_reprocess")),
        ("binary-lasvm", ("params", "n_reprocess")),
        ("binary-tracking", ("params", "n_reprocess")),
        ("sequence-attributes", ("oracle", "n_token_features")),
        ("sequence-attributes", ("params", "min_count")),
        ("semantics", ("params", "window")),
        ("taxonomy", ("n_features",)),
    ],
)
def test_every_number_is_bounded(name, where, value, tmp_path):
    source = FOLDER / f"{name}.model"
    meta = read_model(source).meta
    record = meta
    for key in where[:-1]:
        record = record[key]
    assert where[-1] in record
    if isinstance(record[where[-1]], float) and value == 1:
        return
    record[where[-1]] = value
    with pytest.raises(ModelFileError, match=rf"{name}.model: not a sound .* model"):
        structsvm.load(forged(tmp_path, source, meta=meta))


@pytest.mark.parametrize("value", [0, -1.0, "1", True, [1.0]])
@pytest.mark.parametrize("name", ["C", "temperature"])
def test_numbers_that_say_how_a_model_was_trained(name, value, tmp_path):
    with pytest.raises(ModelFileError, match=r"grammar.model: not a sound grammar model.*(a C of|a temperature)"):
        structsvm.load(forged(tmp_path, FOLDER / "grammar.model", meta={name: value}))


@pytest.mark.parametrize("value", [10**30, 10**400])
def test_no_chain_is_longer_than_the_grammar(value, tmp_path):
    """However long chains may be by the header, those of the rules end."""
    source = FOLDER / "grammar.model"
    grammar = read_model(source).meta["grammar"] | {"max_unary": value}
    model = structsvm.load(forged(tmp_path, source, meta={"grammar": grammar}))
    assert isinstance(model, GrammarParser)


def test_no_checkpoint_comes_from_a_file(tmp_path):
    """Neither of the estimator nor of its solver: training would open or write whatever path it is."""
    target = tmp_path / "target"
    for name in ("sequence-attributes", "sequence-solver"):
        source = FOLDER / f"{name}.model"
        params = read_model(source).meta["params"] | {"checkpoint": str(target)}
        if isinstance(params["solver"], dict):
            params["solver"]["params"]["checkpoint"] = str(target)
        labeler = structsvm.load(forged(tmp_path, source, meta={"params": params}))
        assert isinstance(labeler, SequenceLabeler)
        assert labeler.checkpoint is None
        assert getattr(labeler.solver, "checkpoint", None) is None
        labeler.fit([[["a"], ["b"]], [["b"]]], [["x", "y"], ["y"]])
        assert not target.exists()


def test_templates_of_a_file_are_text(tmp_path):
    source = FOLDER / "sequence-templates.model"
    meta = read_model(source).meta
    (tmp_path / "secret").write_text("U:%x[0,0]\n")
    encoder = meta["encoder"] | {"templates": str(tmp_path / "secret")}
    with pytest.raises(ModelFileError, match="not a path"):
        structsvm.load(forged(tmp_path, source, meta={"encoder": encoder}))
    params = meta["params"] | {"templates": str(tmp_path / "secret")}
    loaded = structsvm.load(forged(tmp_path, source, meta={"params": params}))
    assert loaded.templates == meta["encoder"]["templates"]


def test_a_matrix_in_a_file_asks_for_trust(tmp_path):
    source = FOLDER / "alignment.model"
    matrix = tmp_path / "matrix.txt"
    matrix.write_text("  A C G\nA 2 -1 -1\nC -1 2 -1\nG -1 -1 2\n")
    params = read_model(source).meta["params"] | {"prior": str(matrix)}
    path = forged(tmp_path, source, meta={"params": params})
    with pytest.raises(ModelFileError, match=r"its prior is a substitution matrix in the file .* trusted=True"):
        structsvm.load(path)
    assert structsvm.load(path, trusted=True).prior == str(matrix)
    # Files of `save` need none: the matrix itself is in the file.
    aligner = SequenceAligner(alphabet="ACG", prior=matrix, max_iter=1).fit([("AC", "AG")], [("AC", "AG")])
    aligner.save(tmp_path / "own")
    assert structsvm.load(tmp_path / "own").prior["A", "A"] == 2.0


def test_names_of_features_fit(tmp_path):
    source = FOLDER / "taxonomy.model"
    for names in (["a"], ["a"] * 5, "abcde", [1, 2, 3, 4, 5]):
        with pytest.raises(ModelFileError, match="feature"):
            structsvm.load(forged(tmp_path, source, meta={"feature_names": names}))


@pytest.mark.parametrize("model", [Ranker(C=1.0), MultivariateClassifier(C=1.0)], ids=str)
def test_a_temperature_of_a_model_without_probabilities(model, tmp_path):
    """A classifier would have offered them."""
    model.fit(np.eye(2), [0, 1]).save(tmp_path / "a.model")
    with pytest.raises(ModelFileError, match="a temperature, which models of this kind do not have"):
        structsvm.load(forged(tmp_path, tmp_path / "a.model", meta={"temperature": 1.0}))


@pytest.mark.parametrize("model", [Ranker(C=1.0), MultivariateClassifier(C=1.0)], ids=str)
def test_weights_are_counted_before_there_is_room_for_them(model, tmp_path):
    model.fit(np.eye(2), [0, 1]).save(tmp_path / "a.model")
    path = forged(tmp_path, tmp_path / "a.model", meta={"n_features_in": 2**31 - 1})
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r"array 'weights' has \d+ numbers for 2147483647 features"):
            structsvm.load(path)
        assert tracemalloc.get_traced_memory()[1] < 10**8
    finally:
        tracemalloc.stop()
